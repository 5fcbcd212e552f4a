/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - the rows of a report, in their order, and what they come to.
 *
 * A row that cannot be known for want of privilege is not a failure of its own: the capabilities
 * row says once what is missing. Names of processes and paths stay raw here; printing escapes them.
 */
#include "record/check/check.h"

#include <ctype.h>

#include "base/file.h"
#include "record/attach/uprobe.h"

/* What this process may do, and what it can give up. */

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
		"libraries that were deleted, or are in some containers, cannot be opened"},
};

static void check_capabilities(const struct check_context *c, struct check_row *row)
{
	char all[256] = ""; /* setcap replaces what a file had, so the advice names every one */

	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		const struct capability *k = &capabilities[i];

		check_append(all, sizeof(all), "%s%s", i ? "," : "", k->name);
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

/* The number alone says little: what counts is whether perf events were refused. */
static void check_paranoid(const struct check_context *c, struct check_row *row)
{
	char level[16], why[OBSTACLE_MAX];

	if (file_read_line(c->root, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level)) <
		0) {
		VALUE(row, "missing");
		return;
	}
	VALUE(row, "%s", level);
	if (c->probes->cpu_clock == 0) {
		VALUE(row, " (does not matter: perf events are permitted)");
	} else if (c->probes->cpu_clock == -EPERM && obstacle_to_sample(&c->view, why)) {
		row->state = CHECK_OPTIONAL;
		ADVICE(row, "%s", why);
	}
}

static void check_ptrace_scope(const struct check_context *c, struct check_row *row)
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
static void check_confinement(const struct check_context *c, struct check_row *row)
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

/* The programs of a trace, loaded and run: no list of features says as much of a kernel, whose verifier
 * may refuse a program though every feature that it uses is there. */

#define SAMPLE_HZ  99   /* as a trace by default */
#define RING_BYTES 4096 /* never read */

void check_try(struct check_probes *p)
{
	/* Of all processes, for one that has another number here than on the machine. */
	static const struct probe_settings settings = {.filter = FILTER_ALL,
		.ring_bytes = RING_BYTES,
		.stacks = true,
		.python = true,
		.sample_hz = SAMPLE_HZ};
	_cleanup_(probe_closep) struct probe *probe = NULL;
	struct check_trial *t = &p->trial;
	struct errinfo e = {0};

	*t = (struct check_trial){.is_done = true};
	t->load = feature_open(&settings, &probe, &e);
	snprintf(t->why, sizeof(t->why), "%s", e.text);
	if (t->load < 0)
		return;
	t->method = probe_method(probe);
	t->missing = *probe_missing(probe);
	probe_enable_calls(probe);
	t->fire = calibrate_hit_ns(probe, &t->hit_ns);
	probe_disable(probe);
}

static void check_programs(const struct check_context *c, struct check_row *row)
{
	const struct check_trial *t = &c->probes->trial;

	if (!t->is_done || c->probes->bpf_load == -EPERM) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "%s",
			t->is_done ? "unknown: needs the privilege to load eBPF"
				   : "not tried by a server");
		ADVICE(row, "%s",
			t->is_done ? "see above" : "run `ingero check` to have them loaded");
	} else if (t->load < 0) {
		row->state = t->load == -EPERM ? CHECK_NO_PRIVILEGE : CHECK_NO_FEATURE;
		VALUE(row, t->load == -EPERM ? "not permitted" : "refused by the kernel");
		DETAIL(row, "%s", t->why);
		ADVICE(row, t->load == -EPERM
				    ? "see above: what is missing is named there"
				    : "`ingero trace -v` shows what the kernel reported for "
				      "each program; docs/kernels.md lists the tested kernels");
	} else if (t->fire < 0) {
		row->state = t->fire == -EPERM || t->fire == -EACCES ? CHECK_NO_PRIVILEGE
								     : CHECK_NO_FEATURE;
		VALUE(row, "loaded, but a probe (%s) %s", probe_method_name(t->method),
			t->fire == -ENODATA ? "on a function of this program did not fire"
					    : "could not be attached");
		ADVICE(row, "%s: choose another method with `ingero trace --attach-method`",
			t->fire == -ENODATA ? "the kernel counted no call" : strerror(-t->fire));
	} else {
		VALUE(row, "loaded; a probe (%s) was attached and fired, %.0f ns per call",
			probe_method_name(t->method), t->hit_ns);
	}
}

/* check_missing - a row for each part that tracing goes on without, into @rows, which has room for all; their number. */
static size_t check_missing(const struct check_context *c, struct check_row *rows)
{
	const struct parts_missing *m = &c->probes->trial.missing;
	size_t count = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct probe_part_row *part = &probe_parts[m->rows[i].part];
		struct check_row *row = &rows[count];

		if (m->rows[i].part == PART_SAMPLES)
			continue; /* has a row in any case */
		row->name = part->name;
		row->state = CHECK_OPTIONAL;
		row->optional = true;
		VALUE(row, "not available: %s", m->rows[i].why);
		ADVICE(row, "tracing works, but %s; it needs %s%s", part->without,
			isdigit((unsigned char)part->since[0]) ? "Linux " : "a kernel with ",
			part->since);
		count++;
	}
	return count;
}

void check_append(char *out, size_t size, const char *fmt, ...)
{
	size_t len = strlen(out);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out + len, size - len, fmt, ap);
	va_end(ap);
}

static const struct {
	const char *name;
	bool optional;
	void (*run)(const struct check_context *c, struct check_row *row);
} checks[] = {
	{"kernel", false, check_kernel},
	{"BTF", false, check_btf},
	{"eBPF loading", false, check_bpf},
	{"uprobes", false, check_uprobes},
	{"tracepoints", false, check_tracepoints},
	{"programs", false, check_programs},
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
STATIC_ASSERT(ARRAY_SIZE(checks) + PART_COUNT <= CHECK_ROWS_MAX);

void check_run(const char *root, const struct check_probes *p, struct check_report *ret)
{
	struct check_context c = {.root = root, .probes = p, .report = ret};

	*ret = (struct check_report){.count = ARRAY_SIZE(checks)};
	obstacle_look(root, &c.view);
	if (p->is_old) {
		c.view.caps = p->caps;
		c.view.has_seccomp = false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		ret->rows[i].name = checks[i].name;
		ret->rows[i].optional = checks[i].optional;
		checks[i].run(&c, &ret->rows[i]);
	}
	ret->count += check_missing(&c, ret->rows + ret->count);
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
