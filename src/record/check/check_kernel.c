/* SPDX-License-Identifier: Apache-2.0 */
/* check_kernel.c - what the kernel can do: tried on it, then judged. */
#include <glob.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/text.h"
#include "record/attach/coverage.h"
#include "record/attach/feature.h"
#include "record/check/check.h"
#include "record/discover/discover.h"

/* The driver and its GPUs, CUDA's libraries, and the processes that use them. */

#define LISTED_MAX 8 /* libraries or processes named one by one */

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

void check_driver(const struct check_context *c, struct check_row *row)
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

void check_gpu(const struct check_context *c, struct check_row *row)
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
			"and check that this container has access to one");
}

void check_libraries(const struct check_context *c, struct check_row *row)
{
	_cleanup_free_ struct target_library *files = NULL;
	int n = discover_library_files(c->root, NULL, &files);

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
	ADVICE(row, "nothing to do if they are elsewhere: a library is probed as soon as a process "
		    "maps it; `trace --library` names one in advance");
}

/* What a trace would see of @p; nothing is probed for that. */
static void describe_process(const struct check_context *c, struct coverage *coverage,
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
	const struct check_context *c, const struct discover_result *found, struct check_row *row)
{
	_cleanup_(coverage_freep) struct coverage *coverage = NULL;

	(void)coverage_new(NULL, &coverage);
	for (size_t i = 0; i < MIN(found->count, (size_t)LISTED_MAX); i++)
		describe_process(c, coverage, &found->processes[i], row);
	if (found->count > LISTED_MAX)
		DETAIL(row, "\nand %zu more", found->count - LISTED_MAX);
	VALUE(row, "%zu", found->count);
}

void check_processes(const struct check_context *c, struct check_row *row)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *found;
	char why[OBSTACLE_MAX];
	bool is_kept_out;
	int r;

	if (c->probes->is_old) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "not checked: a server cannot inspect processes");
		ADVICE(row, "run `ingero check` to list them");
		return;
	}
	r = discover_scanner_new(c->root, &s);
	r = r ?: discover_scan(s, &found);
	if (r < 0) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown: %s", strerror(-r));
		ADVICE(row, "mount /proc here, with the processes to trace in it");
		return;
	}
	list_processes(c, found, row);
	is_kept_out = found->unreadable && obstacle_to_look(&c->view, why);
	if (is_kept_out)
		VALUE(row, "; cannot inspect %zu of %zu processes", found->unreadable, found->seen);
	if (!feature_host_pids(c->root)) {
		row->state = CHECK_OPTIONAL;
		ADVICE(row, FEATURE_HOST_PIDS_ADVICE);
		return;
	}
	if (found->count > 0)
		return;
	row->state = CHECK_OPTIONAL;
	ADVICE(row, "%s", is_kept_out ? why : "nothing to do: processes are found when they start");
}

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

void check_kernel(const struct check_context *c, struct check_row *row)
{
	const struct check_trial *t = &c->probes->trial;
	unsigned major = 0, minor = 0;

	VALUE(row, "Linux %s", c->probes->release);
	if (t->is_done && t->load == 0 && t->fire == 0)
		return; /* some distributions keep an old number and take in what is new (RHEL 9: 5.14) */
	if (sscanf(c->probes->release, "%u.%u", &major, &minor) == 2 &&
		(major > 5 || (major == 5 && minor >= 15)))
		return;
	row->state = CHECK_NO_FEATURE;
	ADVICE(row, "use kernel 5.15 or newer");
}

void check_btf(const struct check_context *c, struct check_row *row)
{
	char path[PATH_MAX];
	struct stat st;

	if (file_join(path, sizeof(path), c->root, "/sys/kernel/btf/vmlinux") == 0 &&
		stat(path, &st) == 0) {
		VALUE(row, "/sys/kernel/btf/vmlinux, %s", TEXT_SIZE((uint64_t)st.st_size));
		return;
	}
	row->state = CHECK_NO_FEATURE;
	VALUE(row, "no /sys/kernel/btf/vmlinux");
	ADVICE(row, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y (every current distribution's "
		    "is), or mount /sys in this container");
}

void check_bpf(const struct check_context *c, struct check_row *row)
{
	int r = c->probes->bpf_load;
	char why[OBSTACLE_MAX];

	if (r == 0) {
		VALUE(row, "a program was loaded");
		return;
	}
	VALUE(row, "%s", r == -EPERM ? "not permitted" : "the kernel rejected a trivial program");
	row->state = r == -EPERM ? CHECK_NO_PRIVILEGE : CHECK_NO_FEATURE;
	if (r != -EPERM)
		ADVICE(row, "use a kernel built with CONFIG_BPF_SYSCALL=y, CONFIG_BPF_EVENTS=y and "
			    "CONFIG_UPROBE_EVENTS=y; a sandbox with a kernel of its own (gVisor) "
			    "has no eBPF");
	else if (obstacle_to_load(&c->view, why))
		ADVICE(row, "%s", why);
	else if (!has_cap(c, CAP_SYS_ADMIN_BIT) &&
		 !(has_cap(c, CAP_BPF_BIT) && has_cap(c, CAP_PERFMON_BIT)))
		ADVICE(row, "see capabilities below");
	else
		ADVICE(row, "the capabilities are there but the kernel still refuses: look for a "
			    "denial by its security module (SELinux, AppArmor) in dmesg");
}

void check_uprobes(const struct check_context *c, struct check_row *row)
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
		ADVICE(row, "give CAP_SYS_ADMIN: kernels before 6.6 have only uprobes through perf "
			    "events, which need it");
	} else {
		row->state = CHECK_NO_FEATURE;
		VALUE(row, "none");
		ADVICE(row, "use a kernel built with CONFIG_UPROBE_EVENTS=y");
	}
}

void check_cpu_clock(const struct check_context *c, struct check_row *row)
{
	int r = c->probes->cpu_clock;
	const struct parts_missing *m = &c->probes->trial.missing;
	const char *refused = NULL;
	char why[OBSTACLE_MAX];

	for (size_t i = 0; i < m->count; i++)
		if (m->rows[i].part == PART_SAMPLES)
			refused = m->rows[i].why;
	if (r == 0 && !refused) {
		VALUE(row, "cpu-clock");
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "%s", refused ? refused : r == -EPERM ? "not permitted" : "the kernel has none");
	if (refused)
		ADVICE(row, "use another kernel");
	else if (r != -EPERM)
		ADVICE(row, "use a kernel built with CONFIG_PERF_EVENTS=y");
	else
		ADVICE(row, "%s", obstacle_to_sample(&c->view, why) ? why : "give CAP_PERFMON");
	ADVICE(row, "; tracing works, but what runs between calls is not sampled");
}

void check_tracepoints(const struct check_context *c, struct check_row *row)
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
