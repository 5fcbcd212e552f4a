/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - judges kernel, privileges, GPU and CUDA of this machine, one function a row.
 *
 * A row that cannot be known for want of privilege is not a failure of its own: the capabilities
 * row says once what is missing. Names of processes and paths stay raw here; printing escapes them.
 */
#include "agent/check/check.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "agent/attach/feature.h"
#include "agent/attach/coverage_assess.h"
#include "agent/discover/discover.h"
#include "base/file.h"
#include "base/text.h"

#define LISTED_MAX 8 /* libraries or processes named one by one */

static const struct {
	const char *name;
	bool needed;
} tracepoints[CHECK_TRACEPOINTS] = {
	{"sched_switch", true},
	{"sched_wakeup", true},
	{"sched_process_exec", true},
	{"sched_process_exit", true},
	{"sched_process_fork", true},
	{"block_rq_issue", false},
	{"block_rq_complete", false},
	{"mm_page_alloc", false},
	{"mark_victim", false},
	{"tcp_retransmit_skb", false},
};

static const struct capability {
	const char *name;
	unsigned bit, implied_by; /* numbers as in capabilities(7) */
	bool needed;
	const char *without;
} capabilities[] = {
	{"CAP_BPF", 39, 21, true, "no eBPF program can be loaded"},
	{"CAP_PERFMON", 38, 21, true, "no probe can be attached"},
	{"CAP_SYS_PTRACE", 19, 19, false, "processes of other users may not be found"},
	{"CAP_DAC_READ_SEARCH", 2, 1, false, "libraries in private directories cannot be opened"},
	{"CAP_CHECKPOINT_RESTORE", 40, 21, false,
		"libraries that were deleted or lie in some containers cannot be opened"},
};

#define CAP_SYS_ADMIN_BIT  21
#define CAP_SYS_PTRACE_BIT 19

struct context {
	const char *root;
	const struct check_probes *probes;
	uint64_t caps;
	bool has_seccomp;
	struct check_report *report;
};

static void append(char *out, size_t size, const char *fmt, ...) _printf_(3, 4);
static void append(char *out, size_t size, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, size - len, fmt, ap);
	va_end(ap);
}
#define VALUE(row, ...)  append((row)->value, sizeof((row)->value), __VA_ARGS__)
#define DETAIL(row, ...) append((row)->detail, sizeof((row)->detail), __VA_ARGS__)
#define ADVICE(row, ...) append((row)->advice, sizeof((row)->advice), __VA_ARGS__)

static bool has_cap(const struct context *c, unsigned bit)
{
	return c->caps >> bit & 1;
}

static int try_confinement(struct confine_report *ret)
{
	static const uint16_t calls[] = {__NR_write};
	static const struct confine_thread plan = {.paths = true,
		.calls = {.calls = calls,
			.call_count = ARRAY_SIZE(calls),
			.opens = true,
			.strict = true}};

	return confine_thread_try(&plan, ret);
}

void check_probe(struct check_probes *ret)
{
	const char *names[CHECK_TRACEPOINTS];
	struct utsname u;

	*ret = (struct check_probes){0};
	uname(&u);
	snprintf(ret->release, sizeof(ret->release), "%s", u.release);
	ret->bpf_load = feature_bpf_load();
	ret->session = feature_uprobe_session();
	ret->multi = feature_uprobe_multi();
	ret->perf = feature_uprobe_perf();
	ret->cpu_clock = feature_cpu_clock();
	for (size_t i = 0; i < CHECK_TRACEPOINTS; i++)
		names[i] = tracepoints[i].name;
	ret->caps = confine_thread_permitted();
	ret->confine_tried = try_confinement(&ret->confine);
	ret->btf = feature_tracepoints(names, CHECK_TRACEPOINTS, ret->tracepoints);
}

static void check_kernel(const struct context *c, struct check_row *row)
{
	unsigned major = 0, minor = 0;

	VALUE(row, "Linux %s", c->probes->release);
	if (sscanf(c->probes->release, "%u.%u", &major, &minor) == 2 &&
		(major > 5 || (major == 5 && minor >= 15)))
		return;
	row->state = CHECK_NO_FEATURE;
	ADVICE(row, "use kernel 5.15 or newer");
}

static void check_btf(const struct context *c, struct check_row *row)
{
	char path[PATH_MAX], size[TEXT_MAX];
	struct stat st;

	if (file_join(path, sizeof(path), c->root, "/sys/kernel/btf/vmlinux") == 0 &&
		stat(path, &st) == 0) {
		VALUE(row, "/sys/kernel/btf/vmlinux, %s",
			text_format_bytes(size, (uint64_t)st.st_size));
		return;
	}
	row->state = CHECK_NO_FEATURE;
	VALUE(row, "no /sys/kernel/btf/vmlinux");
	ADVICE(row, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (every current distribution's "
		    "is), or mount /sys in this container");
}

static void check_bpf(const struct context *c, struct check_row *row)
{
	int r = c->probes->bpf_load;

	if (r == 0) {
		VALUE(row, "a program was loaded");
		return;
	}
	VALUE(row, "%s", r == -EPERM ? "not permitted" : "the kernel rejected a trivial program");
	row->state = r == -EPERM ? CHECK_NO_PRIVILEGE : CHECK_NO_FEATURE;
	if (r != -EPERM)
		ADVICE(row, "use a kernel built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_EVENTS=y and "
			    "CONFIG_UPROBE_EVENTS=y");
	else if (!has_cap(c, CAP_SYS_ADMIN_BIT) && !(has_cap(c, 39) && has_cap(c, 38)))
		ADVICE(row, "see capabilities below");
	else if (c->has_seccomp)
		ADVICE(row,
			"the capabilities are there but a seccomp filter is active: let it allow "
			"bpf and perf_event_open (docker: --security-opt seccomp=…)");
	else
		ADVICE(row,
			"the capabilities are there but the kernel still refuses: check /sys/kernel/security/lockdown, the LSM in use, and whether this is a user namespace (capabilities only count in the initial one)");
}

static void check_uprobes(const struct context *c, struct check_row *row)
{
	const int results[] = {
		[PROBE_SESSION] = c->probes->session,
		[PROBE_MULTI] = c->probes->multi,
		[PROBE_PERF] = c->probes->perf,
	};
	bool refused = false;

	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		refused |= results[i] == -EPERM;
		if (results[i] == 0)
			VALUE(row, "%s%s", row->value[0] ? ", " : "",
				probe_method_name((enum probe_method)i));
	}
	if (row->value[0])
		return;
	if (c->probes->bpf_load == -EPERM) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown: needs the privilege to load eBPF");
	} else if (refused) {
		row->state = CHECK_NO_PRIVILEGE;
		VALUE(row, "not permitted");
		ADVICE(row, "kernels before 6.6 attach uprobes through perf events, which needs "
			    "CAP_SYS_ADMIN");
	} else {
		row->state = CHECK_NO_FEATURE;
		VALUE(row, "none");
		ADVICE(row, "use a kernel built with CONFIG_UPROBE_EVENTS=y");
	}
}

static void check_cpu_clock(const struct context *c, struct check_row *row)
{
	int r = c->probes->cpu_clock;

	if (r == 0) {
		VALUE(row, "cpu-clock");
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "%s", r == -EPERM ? "not permitted" : "the kernel has none");
	ADVICE(row, "%s; tracing works, but what runs between calls is not sampled",
		r == -EPERM ? "give CAP_PERFMON" : "use a kernel built with CONFIG_PERF_EVENTS=y");
}

static void check_capabilities(const struct context *c, struct check_row *row)
{
	char all[256] = ""; /* setcap replaces what a file had, so the advice names every one */

	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		const struct capability *k = &capabilities[i];

		append(all, sizeof(all), "%s%s", i ? "," : "", k->name);
		if (has_cap(c, k->bit) || has_cap(c, k->implied_by)) {
			VALUE(row, "%s%s", row->value[0] ? ", " : "", k->name);
			continue;
		}
		if (k->needed)
			row->state = CHECK_NO_PRIVILEGE;
		else if (row->state == CHECK_PASS)
			row->state = CHECK_OPTIONAL;
		DETAIL(row, "%swithout %s %s", row->detail[0] ? "\n" : "", k->name, k->without);
	}
	if (!row->value[0])
		VALUE(row, "none");
	if (row->state != CHECK_PASS)
		ADVICE(row, "run with sudo, or once: sudo setcap %s=ep $(command -v ingero)", all);
}

static void check_tracepoints(const struct context *c, struct check_row *row)
{
	size_t present = 0;

	if (c->probes->btf < 0) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown without BTF");
		return;
	}
	for (size_t i = 0; i < CHECK_TRACEPOINTS; i++) {
		present += c->probes->tracepoints[i];
		if (c->probes->tracepoints[i])
			continue;
		DETAIL(row, "%s%s is missing", row->detail[0] ? "\n" : "", tracepoints[i].name);
		if (tracepoints[i].needed)
			row->state = CHECK_NO_FEATURE;
		else if (row->state == CHECK_PASS)
			row->state = CHECK_OPTIONAL;
	}
	VALUE(row, "%zu of %d (scheduler, processes, block I/O, memory, TCP)", present,
		CHECK_TRACEPOINTS);
	if (row->state == CHECK_NO_FEATURE)
		ADVICE(row,
			"use a kernel built with CONFIG_TRACEPOINTS=y and CONFIG_SCHED_DEBUG=y");
	else if (row->state == CHECK_OPTIONAL)
		ADVICE(row, "explanations will not cover these (disk, memory, network)");
}

static void check_paranoid(const struct context *c, struct check_row *row)
{
	char level[16];

	if (file_read_line(c->root, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level)) <
		0)
		VALUE(row, "not there");
	else
		VALUE(row, "%s (does not matter with CAP_PERFMON)", level);
}

static void check_ptrace_scope(const struct context *c, struct check_row *row)
{
	char level[16];

	if (file_read_line(c->root, "/proc/sys/kernel/yama/ptrace_scope", level, sizeof(level)) <
		0) {
		VALUE(row, "not restricted (no yama)");
		return;
	}
	VALUE(row, "%s", level);
	if (level[0] == '0' || (level[0] != '3' && has_cap(c, CAP_SYS_PTRACE_BIT)))
		return;
	row->state = CHECK_OPTIONAL;
	ADVICE(row, "%s",
		level[0] == '3'
			? "no process's memory can be read, so stacks have no Python lines; only a "
			  "reboot with kernel.yama.ptrace_scope below 3 changes that"
			: "give CAP_SYS_PTRACE to read Python lines from other processes");
}

/* What a running trace gives up, so that a fault in it is worth little to an attacker. */
static void check_confinement(const struct context *c, struct check_row *row)
{
	const struct check_probes *p = c->probes;
	const char *separator = "";

	if (p->confine_tried < 0) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown: %s", strerror(-p->confine_tried));
		ADVICE(row, "nothing to do: a trace warns if it cannot drop privileges");
		return;
	}
	for (enum confine_part i = 0; i < CONFINE_PARTS; i++) {
		bool is_there = p->confine.parts[i] == 0;

		VALUE(row, "%s%s%s", separator, confine_part_name(i),
			is_there ? "" : " unavailable");
		separator = ", ";
		if (is_there)
			continue;
		row->state = CHECK_OPTIONAL;
		ADVICE(row, "%s%s: %s", row->advice[0] ? "; " : "", confine_part_name(i),
			confine_part_reason(i, p->confine.parts[i]));
	}
	if (row->state == CHECK_OPTIONAL)
		ADVICE(row, "; tracing works, without dropping all privileges");
}

/* The first word of @s that looks like a version (535.104.05). */
static void copy_version(const char *s, char *out, size_t size)
{
	while (*s) {
		size_t len = strcspn(s, " \t\n");

		if (*s >= '0' && *s <= '9' && memchr(s, '.', len)) {
			snprintf(out, size, "%.*s", (int)len, s);
			return;
		}
		s += len + (s[len] != 0);
	}
}

static void check_driver(const struct context *c, struct check_row *row)
{
	char line[256];

	if (file_read_line(c->root, "/proc/driver/nvidia/version", line, sizeof(line)) == 0 ||
		file_read_line(c->root, "/sys/module/nvidia/version", line, sizeof(line)) == 0)
		copy_version(line, row->value, sizeof(row->value));
	if (row->value[0]) {
		c->report->has_driver = true;
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "not loaded");
	ADVICE(row, "no NVIDIA driver: only the stand-in GPU can be traced (ingero demo)");
}

static void add_gpu(struct check_row *row, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *model;

	if (file_read(path, 8192, &b) < 0)
		return;
	model = strstr(buf_str(&b), "Model:");
	if (!model)
		return;
	model += strlen("Model:");
	model += strspn(model, " \t");
	VALUE(row, "%s%.*s", row->value[0] ? ", " : "", (int)strcspn(model, "\n"), model);
}

static void check_gpu(const struct context *c, struct check_row *row)
{
	char pattern[PATH_MAX];
	glob_t g = {0};

	if (file_join(pattern, sizeof(pattern), c->root,
		    "/proc/driver/nvidia/gpus/*/information") == 0 &&
		glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_gpu(row, g.gl_pathv[i]);
	globfree(&g);
	if (row->value[0]) {
		c->report->has_gpu = true;
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "none");
	if (c->report->has_driver)
		ADVICE(row,
			"the driver shows no GPU: look for Xid or \"fallen off the bus\" in dmesg, "
			"and whether this container was given one");
}

static void check_libraries(const struct context *c, struct check_row *row)
{
	_cleanup_free_ struct target_library *files = NULL;
	int n = discover_library_files(c->root, &files);

	for (int i = 0; i < MIN(n, LISTED_MAX); i++)
		DETAIL(row, "%s%s", i ? "\n" : "", files[i].path);
	if (n > LISTED_MAX)
		DETAIL(row, "\nand %d more", n - LISTED_MAX);
	if (n > 0) {
		VALUE(row, "%d %s on disk", n, n == 1 ? "file" : "files");
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "none in the usual places");
	ADVICE(row, "nothing to do if they lie elsewhere: a library is probed as soon as a process "
		    "maps it; `trace --library` names one in advance");
}

/* What a trace would see of @p; nothing is probed for that. */
static void describe_process(const struct context *c, struct coverage *coverage,
	const struct target_process *p, struct check_row *row)
{
	struct process_layers layers = {0};
	char sentence[LAYER_SENTENCE_MAX];

	DETAIL(row, "%spid %" PRIu32 " %s (uid %" PRIu32 ")", row->detail[0] ? "\n" : "", p->pid,
		p->comm, p->uid);
	if (!coverage)
		return;
	coverage_assess(coverage, c->root, p);
	coverage_assess_process(coverage, c->root, p, &layers);
	for (int l = 0; l < LAYER_COUNT; l++) {
		_cleanup_buf_ struct buf b = BUF_INIT(8192);

		if (layers.rows[l].state == LAYER_ABSENT)
			continue;
		/* A newline in a file's name must not begin a line of ours. */
		text_escape_terminal(&b,
			layer_sentence((enum layer)l, &layers.rows[l], sentence, sizeof(sentence)));
		DETAIL(row, "\n  %s", buf_str(&b));
	}
}

static void list_processes(
	const struct context *c, const struct discover_result *found, struct check_row *row)
{
	_cleanup_(coverage_freep) struct coverage *coverage = NULL;

	(void)coverage_new(NULL, &coverage);
	for (size_t i = 0; i < MIN(found->count, (size_t)LISTED_MAX); i++)
		describe_process(c, coverage, &found->processes[i], row);
	if (found->count > LISTED_MAX)
		DETAIL(row, "\nand %zu more", found->count - LISTED_MAX);
	VALUE(row, "%zu", found->count);
}

static void check_processes(const struct context *c, struct check_row *row)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *found;
	int r;

	if (c->probes->is_old) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "not checked: a server cannot inspect processes");
		ADVICE(row, "run `ingero check` to list them");
		return;
	}
	r = discover_scanner_new(c->root, &s);
	if (r == 0)
		r = discover_scan(s, &found);
	if (r < 0) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown: %s", strerror(-r));
		ADVICE(row, "mount /proc here, with the processes to trace in it");
		return;
	}
	list_processes(c, found, row);
	if (found->unreadable && !has_cap(c, CAP_SYS_PTRACE_BIT))
		VALUE(row, "; cannot inspect %zu of %zu processes", found->unreadable, found->seen);
	if (!feature_host_pids(c->root)) {
		row->state = CHECK_OPTIONAL;
		ADVICE(row, FEATURE_HOST_PIDS_ADVICE);
		return;
	}
	if (found->count > 0)
		return;
	row->state = CHECK_OPTIONAL;
	ADVICE(row, found->unreadable && !has_cap(c, CAP_SYS_PTRACE_BIT)
			    ? "give CAP_SYS_PTRACE to see the processes of other users"
			    : "nothing to do: processes are found when they start");
}

static const struct {
	const char *name;
	bool optional;
	void (*run)(const struct context *c, struct check_row *row);
} checks[] = {
	{"kernel", false, check_kernel},
	{"BTF", false, check_btf},
	{"eBPF loading", false, check_bpf},
	{"uprobes", false, check_uprobes},
	{"tracepoints", false, check_tracepoints},
	{"CPU samples", true, check_cpu_clock},
	{"capabilities", false, check_capabilities},
	{"perf_event_paranoid", true, check_paranoid},
	{"ptrace_scope", true, check_ptrace_scope},
	{"confinement", true, check_confinement},
	{"NVIDIA driver", true, check_driver},
	{"GPU", true, check_gpu},
	{"CUDA libraries", true, check_libraries},
	{"CUDA processes", true, check_processes},
};
STATIC_ASSERT(ARRAY_SIZE(checks) <= CHECK_ROWS_MAX);

static void read_status(struct context *c)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *caps, *seccomp;

	if (file_read_at(c->root, "/proc/self/status", 8192, &b) < 0)
		return;
	caps = strstr(buf_str(&b), "\nCapEff:\t");
	seccomp = strstr(buf_str(&b), "\nSeccomp:\t");
	if (c->probes->is_old)
		c->caps = c->probes->caps;
	else if (caps)
		c->caps = strtoull(caps + strlen("\nCapEff:\t"), NULL, 16);
	c->has_seccomp = !c->probes->is_old && seccomp && seccomp[strlen("\nSeccomp:\t")] == '2';
}

void check_run(const char *root, const struct check_probes *p, struct check_report *ret)
{
	struct context c = {.root = root, .probes = p, .report = ret};

	*ret = (struct check_report){.count = ARRAY_SIZE(checks)};
	read_status(&c);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		ret->rows[i].name = checks[i].name;
		ret->rows[i].optional = checks[i].optional;
		checks[i].run(&c, &ret->rows[i]);
	}
}

enum exit_code check_exit_code(const struct check_report *r)
{
	enum exit_code code = EXIT_OK;

	for (size_t i = 0; i < r->count; i++) {
		if (r->rows[i].state == CHECK_NO_FEATURE)
			return EXIT_NO_FEATURE;
		if (r->rows[i].state == CHECK_NO_PRIVILEGE)
			code = EXIT_NO_PERMISSION;
	}
	return code;
}
