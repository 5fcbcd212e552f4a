/* SPDX-License-Identifier: Apache-2.0 */
/* check_rights.c - what this process may do, and what it can give up. */
#include <errno.h>
#include <string.h>

#include "record/check/check_private.h"
#include "base/file.h"

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

void check_capabilities(const struct check_context *c, struct check_row *row)
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
void check_paranoid(const struct check_context *c, struct check_row *row)
{
	char level[16], why[OBSTACLE_MAX];

	if (file_read_line(c->root, "/proc/sys/kernel/perf_event_paranoid", level, sizeof(level)) <
		0) {
		VALUE(row, "not there");
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

void check_ptrace_scope(const struct check_context *c, struct check_row *row)
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
void check_confinement(const struct check_context *c, struct check_row *row)
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
