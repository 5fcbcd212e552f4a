/* SPDX-License-Identifier: Apache-2.0 */
/* feature.c - see feature.h. Versions are not compared: distributions backport, and a container or
 * lockdown takes away. A link is asked for on "/", which is no regular file: a kernel that knows
 * the attach type gets as far as saying EBADF, one that does not says EINVAL or E2BIG. */
#include "record/attach/feature.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "base/buf.h"
#include "base/file.h"
#include "record/probe/link.h"
#include "record/probe/sample/sample.h"

/* What each setting does was read in the kernel's source, and in the patches of Debian and
 * Ubuntu, whose perf_event_open() refuses everybody without CAP_SYS_ADMIN while kernel.perf_event_paranoid is above 2;
 * the kernel itself takes CAP_PERFMON at every level. */

static bool has(const struct obstacle_view *v, unsigned bit)
{
	return v->caps >> bit & 1;
}

void obstacle_look(const char *root, struct obstacle_view *ret)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *caps, *seccomp;

	*ret = (struct obstacle_view){.root = root};
	if (file_read_at(root, "/proc/self/status", 8192, &b) < 0)
		return;
	caps = strstr(buf_str(&b), "\nCapEff:\t");
	seccomp = strstr(buf_str(&b), "\nSeccomp:\t");
	if (caps)
		ret->caps = strtoull(caps + strlen("\nCapEff:\t"), NULL, 16);
	ret->has_seccomp = seccomp && seccomp[strlen("\nSeccomp:\t")] == '2';
}

bool obstacle_to_run(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	char line[128];

	if (file_read_line(v->root, "/sys/kernel/security/lockdown", line, sizeof(line)) < 0 ||
		!strstr(line, "[confidentiality]"))
		return false;
	snprintf(out, OBSTACLE_MAX,
		"kernel lockdown is \"confidentiality\", in which eBPF may not read the kernel's "
		"memory: boot with lockdown=integrity or without");
	return true;
}

/* All users of the machine are here under their own numbers, unless this is a user namespace. */
static bool is_user_namespace(const struct obstacle_view *v)
{
	unsigned long inside, outside, count;
	char line[128];

	return file_read_line(v->root, "/proc/self/uid_map", line, sizeof(line)) == 0 &&
	       sscanf(line, "%lu %lu %lu", &inside, &outside, &count) == 3 &&
	       (outside != 0 || count != 4294967295);
}

#define SECCOMP_ADVICE                                                                             \
	"a seccomp filter refuses %s: let it allow bpf and perf_event_open (docker and podman: "   \
	"--security-opt seccomp=unconfined, Kubernetes: seccompProfile Unconfined, or a profile "  \
	"of your own)"

bool obstacle_to_load(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	if (obstacle_to_run(v, out))
		return true;
	if (is_user_namespace(v))
		snprintf(out, OBSTACLE_MAX,
			"this is a user namespace, in which the capabilities do not count: start "
			"it as the machine's root (docker: --userns=host, podman: with sudo)");
	else if (!has(v, CAP_SYS_ADMIN_BIT) && !(has(v, CAP_BPF_BIT) && has(v, CAP_PERFMON_BIT)))
		return false; /* which is said of the capabilities */
	else if (v->has_seccomp)
		snprintf(out, OBSTACLE_MAX, SECCOMP_ADVICE, "bpf()");
	else
		return false;
	return true;
}

bool obstacle_to_sample(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	char level[16] = "";

	if (!has(v, CAP_SYS_ADMIN_BIT) && !has(v, CAP_PERFMON_BIT))
		return false; /* which is said of the capabilities */
	file_read_line(v->root, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level));
	if (!has(v, CAP_SYS_ADMIN_BIT) && strtol(level, NULL, 10) > 2)
		snprintf(out, OBSTACLE_MAX,
			"kernel.perf_event_paranoid is %s, and above 2 this kernel (Debian's, "
			"Ubuntu's) requires CAP_SYS_ADMIN for perf events: set it to 2 (sysctl -w "
			"kernel.perf_event_paranoid=2), or give CAP_SYS_ADMIN",
			level);
	else if (v->has_seccomp)
		snprintf(out, OBSTACLE_MAX, SECCOMP_ADVICE, "perf_event_open()");
	else
		return false;
	return true;
}

bool obstacle_to_look(const struct obstacle_view *v, char out[OBSTACLE_MAX])
{
	char profile[128];

	if (!has(v, CAP_SYS_PTRACE_BIT))
		snprintf(out, OBSTACLE_MAX,
			"give CAP_SYS_PTRACE to see the processes of other users");
	else if (file_read_line(v->root, "/proc/self/attr/current", profile, sizeof(profile)) ==
			 0 &&
		 strstr(profile, "(enforce)"))
		snprintf(out, OBSTACLE_MAX,
			"the AppArmor profile %.100s hides other processes from this one: start the "
			"container with --security-opt apparmor=unconfined",
			profile);
	else
		return false;
	return true;
}

#define INITIAL_PID_NAMESPACE "pid:[4026531836]" /* PROC_PID_INIT_INO, the same since Linux 3.8 */

static int map_errno(int err)
{
	if (err == -EPERM || err == -EACCES)
		return -EPERM;
	return err == -ENOMEM ? -ENOMEM : -EOPNOTSUPP;
}

static int load_program(unsigned attach_type)
{
	/* r0 = 0; exit */
	static const struct bpf_insn program[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		.expected_attach_type = (enum bpf_attach_type)attach_type);
	int fd = bpf_prog_load(
		BPF_PROG_TYPE_KPROBE, "ingero_try", "GPL", program, ARRAY_SIZE(program), &opts);

	return fd < 0 ? map_errno(fd) : fd;
}

int feature_bpf_load(void)
{
	_cleanup_fd_ int fd = load_program(0);

	return fd < 0 ? fd : 0;
}

static int try_link(unsigned attach_type)
{
	uint64_t offset = 0;
	_cleanup_fd_ int link = -1, fd = load_program(attach_type);
	struct link_uprobe_multi attr = {
		.prog_fd = (uint32_t)fd,
		.attach_type = attach_type,
		.path = (uint64_t)(uintptr_t) "/",
		.offsets = (uint64_t)(uintptr_t)&offset,
		.cnt = 1,
	};

	if (fd < 0)
		return fd;
	link = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	if (link >= 0 || errno == EBADF)
		return 0;
	return map_errno(-errno);
}

int feature_uprobe_session(void)
{
	return try_link(LINK_UPROBE_SESSION);
}

int feature_uprobe_multi(void)
{
	return try_link(LINK_UPROBE_MULTI);
}

int feature_uprobe_perf(void)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .uprobe_path = (uint64_t)(uintptr_t) "/"};
	_cleanup_fd_ int fd = -1;
	char type[16];

	if (file_read_line("", "/sys/bus/event_source/devices/uprobe/type", type, sizeof(type)) < 0)
		return -EOPNOTSUPP;
	attr.type = (uint32_t)strtoul(type, NULL, 10);
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	/* EINVAL: the kernel looked at the path, so it would have taken a file */
	if (fd >= 0 || errno == EINVAL)
		return 0;
	return map_errno(-errno);
}

static int (*const tries[])(void) = {
	[PROBE_SESSION] = feature_uprobe_session,
	[PROBE_MULTI] = feature_uprobe_multi,
	[PROBE_PERF] = feature_uprobe_perf,
};

int feature_method(enum probe_method m, struct errinfo *reterr)
{
	static const char *const since[] = {
		[PROBE_SESSION] = "Linux 6.13 or later",
		[PROBE_MULTI] = "Linux 6.6 or later",
		[PROBE_PERF] = "CONFIG_UPROBE_EVENTS",
	};
	int r = tries[m]();

	if (r == -EOPNOTSUPP)
		return errinfo_set(reterr, r, "this kernel has no %s probes: they need %s",
			probe_method_name(m), since[m]);
	return r < 0 ? errinfo_set(reterr, r,
			       "no permission to attach %s probes: start it with sudo",
			       probe_method_name(m))
		     : 0;
}

int feature_attach_method(enum probe_method *ret, struct errinfo *reterr)
{
	bool refused = false;

	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		int r = tries[i]();

		if (r == 0) {
			*ret = (enum probe_method)i;
			return 0;
		}
		refused |= r == -EPERM;
	}
	if (refused)
		return errinfo_set(reterr, -EPERM,
			"no permission to attach uprobes: start it with sudo, a container with "
			"`--user 0 --privileged --pid=host`, or give CAP_BPF and CAP_PERFMON "
			"(and CAP_SYS_ADMIN on kernels before 6.6)");
	return errinfo_set(reterr, -EOPNOTSUPP,
		"this kernel has no uprobes (CONFIG_UPROBE_EVENTS), or this is a sandbox without "
		"eBPF (gVisor): 'ingero check' shows what is missing");
}

/* A kernel may know a method and yet refuse our program for it. */
static int open_best(struct probe_settings s, struct probe **ret, struct errinfo *reterr)
{
	int r = feature_attach_method(&s.method, reterr);

	while (r >= 0) {
		r = probe_open(&s, ret, reterr);
		if (r >= 0 || r == -EPERM || s.method == PROBE_PERF)
			return r;
		s.method++;
		r = 0;
	}
	return r;
}

int feature_open(const struct probe_settings *s, struct probe **ret, struct errinfo *reterr)
{
	int r = open_best(*s, ret, reterr);
	struct obstacle_view v;
	char why[OBSTACLE_MAX];

	if (r != -EPERM && r != -EOPNOTSUPP)
		return r;
	obstacle_look("", &v);
	if (r == -EPERM ? feature_bpf_load() == r && obstacle_to_load(&v, why)
			: obstacle_to_run(&v, why))
		return errinfo_set(reterr, r, "no probe can be attached: %s", why);
	return r;
}

bool feature_host_pids(const char *root)
{
	char path[PATH_MAX], name[64];
	ssize_t n;

	if (file_join(path, sizeof(path), root, "/proc/self/ns/pid") < 0)
		return true;
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return true; /* nothing is known: no reason to complain */
	name[n] = 0;
	return !strcmp(name, INITIAL_PID_NAMESPACE);
}

int feature_cpu_clock(void)
{
	int r = sample_probe();

	if (r == -EACCES)
		return -EPERM;
	return r == 0 || r == -EPERM ? r : -EOPNOTSUPP;
}

static void btf_freep(struct btf **b)
{
	btf__free(*b);
}

int feature_tracepoints(const char *const *names, size_t count, bool *ret_present)
{
	_cleanup_(btf_freep) struct btf *btf = btf__load_vmlinux_btf();
	char type[128];

	if (libbpf_get_error(btf)) {
		btf = NULL;
		return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < count; i++) {
		snprintf(type, sizeof(type), "btf_trace_%s", names[i]);
		ret_present[i] = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
	}
	return 0;
}
