/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "base/macros.h"
#include "record/check/check.h"
#include "tree.h"

static struct check_report report;
static struct check_probes probes;
static char root[TREE_MAX];

static int setup(void **state)
{
	tree_init(root);
	tree_write(root, "/sys/kernel/btf/vmlinux", "types");
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
	tree_write(root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	tree_write(root, "/proc/driver/nvidia/version",
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\nGCC 12\n");
	tree_write(root, "/proc/driver/nvidia/gpus/0000:01:00.0/information",
		"Model: \t\t NVIDIA H200\nIRQ:   \t\t 7\n");
	tree_write(root, "/usr/local/cuda/lib64/libcudart.so.12", "x");
	tree_write(root, "/proc/77/stat",
		"77 (tr\033[2Jain) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 1 0 9 4096 42\n");
	tree_write(root, "/proc/77/status", "Name:\tx\nUid:\t1000\t1000\n");
	tree_write(root, "/proc/77/maps", "7f00-7f10 r-xp 0 08:01 5 /opt/libcudart.so.12\n");
	probes = (struct check_probes){.release = "6.8.0-45-generic", .session = -EOPNOTSUPP};
	memset(probes.tracepoints, true, sizeof(probes.tracepoints));
	probes.trial =
		(struct check_trial){.is_done = true, .method = PROBE_MULTI, .hit_ns = 812.4};
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

static const struct check_row *row(const char *name)
{
	for (size_t i = 0; i < report.count; i++)
		if (strcmp(report.rows[i].name, name) == 0)
			return &report.rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

static enum exit_code run(void)
{
	check_run(root, &probes, &report);
	for (size_t i = 0; i < report.count; i++)
		assert_true(report.rows[i].value[0] != 0);
	return check_exit_code(&report);
}

static void a_good_machine_passes(void **state)
{
	assert_int_equal(run(), EXIT_OK);
	for (size_t i = 0; i < report.count; i++) {
		assert_int_equal(report.rows[i].state, CHECK_PASS);
		assert_string_equal(report.rows[i].advice, "");
	}
	assert_string_equal(row("NVIDIA driver")->value, "535.104.05");
	assert_string_equal(row("GPU")->value, "NVIDIA H200");
	assert_string_equal(row("uprobes")->value, "multi, perf");
	assert_string_equal(row("programs")->value,
		"loaded; a probe (multi) was attached and fired, 812 ns per call");
	assert_string_equal(row("CUDA libraries")->detail, "/usr/local/cuda/lib64/libcudart.so.12");
	assert_non_null(strstr(row("CUDA processes")->detail, "pid 77"));
	assert_non_null(strstr(row("CUDA processes")->detail,
		"\n  runtime calls are not covered: cannot open /opt/libcudart.so.12"));
}

static void confinement_is_a_row(void **state)
{
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("confinement")->state, CHECK_PASS);
	assert_string_equal(
		row("confinement")->value, "capabilities, no_new_privs, landlock, seccomp");
	probes.confine.parts[CONFINE_PATHS] = -EOPNOTSUPP;
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("confinement")->state, CHECK_OPTIONAL);
	assert_string_equal(row("confinement")->value,
		"capabilities, no_new_privs, landlock unavailable, seccomp");
	assert_non_null(
		strstr(row("confinement")->advice, "landlock: not supported by the kernel"));
	probes.confine_tried = -EAGAIN;
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("confinement")->state, CHECK_OPTIONAL);
	assert_non_null(strstr(row("confinement")->value, "unknown"));
}

/* As a server has it that gave up its rights: what counts is what it had. */
static void an_old_reading_is_told_as_it_was(void **state)
{
	probes.is_old = true;
	assert_int_equal(run(), EXIT_NO_PERMISSION); /* it had nothing, whatever it has now */
	assert_int_equal(row("capabilities")->state, CHECK_NO_PRIVILEGE);
	probes.caps = UINT64_MAX;
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("capabilities")->state, CHECK_PASS);
	assert_int_equal(row("CUDA processes")->state, CHECK_OPTIONAL);
	assert_non_null(strstr(row("CUDA processes")->value, "not checked"));
}

static void old_or_bare_kernels_lack_a_feature(void **state)
{
	char path[512];

	snprintf(probes.release, sizeof(probes.release), "5.14.0-503.el9");
	assert_int_equal(run(), EXIT_OK); /* the programs were loaded: the number does not count */
	probes.trial.load = -EOPNOTSUPP;
	assert_int_equal(run(), EXIT_NO_FEATURE);
	assert_non_null(strstr(row("kernel")->advice, "5.15"));
	snprintf(probes.release, sizeof(probes.release), "5.15.0");
	probes.trial.load = 0;
	assert_int_equal(run(), EXIT_OK);
	probes.tracepoints[0] = false;
	assert_int_equal(run(), EXIT_NO_FEATURE);
	assert_string_equal(row("tracepoints")->detail, "sched_switch is missing");
	probes.tracepoints[0] = true;
	probes.tracepoints[CHECK_TRACEPOINTS - 1] = false; /* TCP: explanations do without */
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("tracepoints")->state, CHECK_OPTIONAL);
	probes.bpf_load = probes.multi = probes.perf = -EOPNOTSUPP;
	assert_int_equal(run(), EXIT_NO_FEATURE);
	assert_string_equal(row("uprobes")->value, "none");
	probes.bpf_load = probes.multi = probes.perf = 0;
	snprintf(path, sizeof(path), "%s/sys/kernel/btf/vmlinux", root);
	unlink(path);
	probes.btf = -EOPNOTSUPP;
	assert_int_equal(run(), EXIT_NO_FEATURE);
	assert_int_equal(row("tracepoints")->state, CHECK_OPTIONAL);
}

static void samples_are_done_without(void **state)
{
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("CPU samples")->state, CHECK_PASS);
	probes.cpu_clock = -EPERM;
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("CPU samples")->state, CHECK_OPTIONAL);
	assert_non_null(strstr(row("CPU samples")->advice, "CAP_PERFMON"));
	probes.cpu_clock = -EOPNOTSUPP;
	assert_int_equal(run(), EXIT_OK);
	assert_non_null(strstr(row("CPU samples")->advice, "CONFIG_PERF_EVENTS"));
	probes.cpu_clock = 0;
	part_miss(&probes.trial.missing, PART_SAMPLES, "this kernel refuses cpu_sample: x");
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("CPU samples")->state, CHECK_OPTIONAL);
	assert_string_equal(row("CPU samples")->value, "this kernel refuses cpu_sample: x");
}

/* Debian and Ubuntu refuse perf events to CAP_PERFMON above level 2; the kernel itself does not. */
static void the_setting_that_refuses_samples_is_named(void **state)
{
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t000001c000080004\nSeccomp:\t0\n");
	tree_write(root, "/proc/sys/kernel/perf_event_paranoid", "4\n");
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("perf_event_paranoid")->state, CHECK_PASS);
	probes.cpu_clock = -EPERM;
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("perf_event_paranoid")->state, CHECK_OPTIONAL);
	assert_non_null(strstr(row("CPU samples")->advice, "kernel.perf_event_paranoid is 4"));
	assert_non_null(
		strstr(row("CPU samples")->advice, "sysctl -w kernel.perf_event_paranoid=2"));
	tree_write(root, "/proc/sys/kernel/perf_event_paranoid", "2\n");
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t000001c000080004\nSeccomp:\t2\n");
	assert_int_equal(run(), EXIT_OK);
	assert_non_null(
		strstr(row("CPU samples")->advice, "seccomp filter refuses perf_event_open"));
}

static void what_became_of_the_programs_decides(void **state)
{
	probes.trial.load = -EOPNOTSUPP;
	snprintf(probes.trial.why, sizeof(probes.trial.why),
		"this kernel's verifier refuses the program call_entry: R5 unbounded");
	assert_int_equal(run(), EXIT_NO_FEATURE);
	assert_non_null(strstr(row("programs")->detail, "call_entry: R5 unbounded"));
	probes.trial.load = -EPERM;
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	probes.trial.load = 0;
	probes.trial.fire = -ENODATA; /* attached, and nothing happens */
	assert_int_equal(run(), EXIT_NO_FEATURE);
	assert_non_null(strstr(row("programs")->value, "did not fire"));
	probes.trial.fire = -EACCES;
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	probes.trial.fire = 0;
	part_miss(&probes.trial.missing, PART_FAULTS,
		"this kernel has no tracepoint mm_filemap_fault");
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("file faults")->state, CHECK_OPTIONAL);
	assert_non_null(strstr(row("file faults")->advice, "it needs Linux 6.12"));
	probes.trial = (struct check_trial){0};
	assert_int_equal(run(), EXIT_OK);
	assert_string_equal(row("programs")->value, "not tried by a server");
}

static void missing_privileges_are_told_apart(void **state)
{
	probes.bpf_load = probes.session = probes.multi = probes.perf = -EPERM;
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\nSeccomp:\t0\n");
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	assert_int_equal(row("uprobes")->state, CHECK_OPTIONAL);
	assert_non_null(
		strstr(row("capabilities")->advice, "setcap "
						    "CAP_BPF,CAP_PERFMON,CAP_SYS_PTRACE,CAP_DAC_"
						    "READ_SEARCH,CAP_CHECKPOINT_RESTORE=ep"));
	/* a kernel that lacks something too: root would not help */
	snprintf(probes.release, sizeof(probes.release), "5.4.0");
	probes.trial.load = -EPERM;
	assert_int_equal(run(), EXIT_NO_FEATURE);
}

static void some_capabilities_are_enough(void **state)
{
	/* CAP_BPF and CAP_PERFMON alone */
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t000000c000000000\nSeccomp:\t0\n");
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("capabilities")->state, CHECK_OPTIONAL);
	assert_string_equal(row("capabilities")->value, "CAP_BPF, CAP_PERFMON");
	assert_non_null(strstr(row("capabilities")->advice, "setcap CAP_BPF,CAP_PERFMON,CAP_SYS"));
	/* CAP_SYS_ADMIN stands for both, and for CAP_CHECKPOINT_RESTORE */
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t0000000000200000\nSeccomp:\t0\n");
	assert_int_equal(run(), EXIT_OK);
	assert_string_equal(
		row("capabilities")->value, "CAP_BPF, CAP_PERFMON, CAP_CHECKPOINT_RESTORE");
}

static void refusal_despite_capabilities_names_the_cause(void **state)
{
	probes.bpf_load = -EPERM;
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t2\n");
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	assert_non_null(strstr(row("eBPF loading")->advice, "seccomp"));
	tree_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n");
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	assert_non_null(strstr(row("eBPF loading")->advice, "security module"));
	tree_write(root, "/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	assert_non_null(strstr(row("eBPF loading")->advice, "lockdown=integrity"));
	tree_write(root, "/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	tree_write(root, "/proc/self/uid_map", "         0     100000      65536\n");
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	assert_non_null(strstr(row("eBPF loading")->advice, "user namespace"));
	tree_write(root, "/proc/self/uid_map", "         0          0 4294967295\n");
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	assert_null(strstr(row("eBPF loading")->advice, "user namespace"));
	probes.bpf_load = 0; /* a kernel before 6.6 without CAP_SYS_ADMIN */
	probes.multi = -EOPNOTSUPP;
	probes.perf = -EPERM;
	assert_int_equal(run(), EXIT_NO_PERMISSION);
	assert_non_null(strstr(row("uprobes")->advice, "CAP_SYS_ADMIN"));
}

static void no_gpu_is_no_failure(void **state)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/proc/driver", root);
	tree_done(path);
	assert_int_equal(run(), EXIT_OK);
	assert_false(report.has_gpu);
	assert_int_equal(row("GPU")->state, CHECK_OPTIONAL);
	assert_non_null(strstr(row("NVIDIA driver")->advice, "stand-in GPU"));
	tree_write(root, "/sys/module/nvidia/version", "580.65.06\n");
	assert_int_equal(run(), EXIT_OK);
	assert_string_equal(row("NVIDIA driver")->value, "580.65.06");
	assert_non_null(strstr(row("GPU")->advice, "dmesg"));
}

static void ptrace_scope_is_weighed(void **state)
{
	tree_write(root, "/proc/sys/kernel/yama/ptrace_scope", "1\n");
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("ptrace_scope")->state, CHECK_PASS);
	tree_write(root, "/proc/sys/kernel/yama/ptrace_scope", "3\n");
	assert_int_equal(run(), EXIT_OK);
	assert_int_equal(row("ptrace_scope")->state, CHECK_OPTIONAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_good_machine_passes, setup, teardown),
		cmocka_unit_test_setup_teardown(samples_are_done_without, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_setting_that_refuses_samples_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_became_of_the_programs_decides, setup, teardown),
		cmocka_unit_test_setup_teardown(confinement_is_a_row, setup, teardown),
		cmocka_unit_test_setup_teardown(an_old_reading_is_told_as_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(
			old_or_bare_kernels_lack_a_feature, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_privileges_are_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(some_capabilities_are_enough, setup, teardown),
		cmocka_unit_test_setup_teardown(
			refusal_despite_capabilities_names_the_cause, setup, teardown),
		cmocka_unit_test_setup_teardown(no_gpu_is_no_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(ptrace_scope_is_weighed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
