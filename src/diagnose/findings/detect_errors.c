/* SPDX-License-Identifier: Apache-2.0 */
/* detect_errors.c - calls that returned an error: on the device, of a kernel that cannot run as
 * asked, of versions that do not fit, or refused.
 *
 * One mistake is one incident, with the processes that made it: failures.c says what belongs together
 * and what is only a consequence, device_error.c what a number means.
 *
 * Severity: device errors MEDIUM, the catalogue's worst; versions MEDIUM; launches MEDIUM if the process
 * ended with an error afterwards; other launches and refused calls LOW. Confidence 0.95 (the code was returned), 0.7 for the place if the error is
 * asynchronous (sticky errors come from an earlier call); times completeness. */
#include <stdio.h>

#include "diagnose/findings/failures.h"
#include "diagnose/findings/detector.h"
#include "base/buf.h"
#include "base/text.h"
#include "wire/names.h"

#define FATAL_NS                                                                                   \
	((int64_t)(10 * NS_PER_S)) /* a traceback and the ends of libraries take their time */

static bool is_first_of_process(const struct error_group *g, size_t i)
{
	return i == 0 || g->items[i].event->pid != g->items[i - 1].event->pid;
}

static void add_processes(const struct error_group *g, struct incident *inc)
{
	if (g->processes < 2)
		return;
	inc->pid_total = g->processes;
	inc->pids[inc->pid_count++] = g->first->pid;
	for (size_t i = 0; i < g->count && inc->pid_count < INCIDENT_PIDS; i++)
		if (is_first_of_process(g, i) && g->items[i].event->pid != g->first->pid)
			inc->pids[inc->pid_count++] = g->items[i].event->pid;
}

/* The first row of all, then the first of each process, then the rest. */
static void add_evidence(const struct error_group *g, struct incident *inc)
{
	incident_evidence(inc, g->first);
	for (int rest = 0; rest < 2; rest++)
		for (size_t i = 0; i < g->count; i++)
			if (g->items[i].event != g->first && is_first_of_process(g, i) == !rest)
				incident_evidence(inc, g->items[i].event);
}

static void add_stacks(const struct error_group *g, struct incident *inc)
{
	struct incident_stack list[INCIDENT_STACKS];
	size_t n = 0;

	for (size_t i = 0; i < g->count && n < ARRAY_SIZE(list); i++) {
		const struct event *e = g->items[i].event;

		if (g->row->sticky && e != g->first)
			continue; /* where it is told again is not where it came from */
		if (e->stack_hash)
			list[n++] = (struct incident_stack){e->stack_hash, 1, 1};
	}
	incident_stacks_merge(list, n, inc);
}

static void add_sql(const struct error_group *g, struct incident *inc)
{
	_cleanup_buf_ struct buf who = BUF_INIT(1024);

	if (g->processes > INCIDENT_PIDS) {
		buf_printf(&who, "timestamp BETWEEN %lld AND %lld", (long long)g->first->start.ns,
			(long long)g->last_ns);
	} else {
		buf_printf(&who, "pid IN (%u", g->first->pid);
		for (int i = 1; i < inc->pid_count; i++)
			buf_printf(&who, ", %u", inc->pids[i]);
		buf_putc(&who, ')');
	}
	incident_sql(inc,
		"SELECT id, timestamp, pid, source, op, tid, ret_code, stack_hash FROM events "
		"WHERE %s AND ret_code = %d AND source %s 9 ORDER BY timestamp",
		buf_str(&who), g->first->ret, failure_is_nccl(g->first) ? "=" : "<>");
}

static void set_fixes(struct incident *inc, const char *const *fixes, int count)
{
	inc->fix_count = 0;
	while (count-- > 0)
		incident_fix(inc, "%s", fixes[count]);
}

static void advise(const struct error_group *g, struct incident *inc)
{
	static const char *const spawn[] = {
		"Use the spawn start method: `multiprocessing.set_start_method(\"spawn\")`, "
		"`DataLoader(multiprocessing_context=\"spawn\")`",
		"Or fork before the parent's first CUDA call, and use CUDA only in the children"};
	static const char *const refused[] = {
		"Check the arguments of that call: `ingero explain --stacks` shows where it is "
		"made"};

	const char *own = error_advice(g->first->source, g->first->ret);

	if (g->items->forked_from)
		set_fixes(inc, spawn, ARRAY_SIZE(spawn));
	else if (own)
		set_fixes(inc, &own, 1);
	else if (g->row->class == ERROR_REFUSED)
		set_fixes(inc, refused, ARRAY_SIZE(refused));
}

static void put_causes(const struct error_group *g, const char *op, struct incident *inc)
{
	uint32_t parent = g->items->forked_from;

	if (parent) {
		snprintf(inc->root_cause, sizeof(inc->root_cause),
			"CUDA used after fork: pid %u had used CUDA before it forked, so the forked "
			"child cannot use it",
			parent);
		snprintf(inc->explanation, sizeof(inc->explanation),
			"%s was the first call to return it, in pid %u. A context does not survive "
			"fork: every CUDA call of such a process fails.",
			op, g->first->pid);
		return;
	}
	snprintf(inc->root_cause, sizeof(inc->root_cause), "%s: %s", g->row->name, g->row->meaning);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"%s was the first call of the process to return it. %s", op,
		g->row->sticky
			? "CUDA reports such an error from a later call: the failed kernel was launched earlier. The error persists until the process ends."
			: "The call had no effect.");
}

static void describe(const struct error_group *g, struct incident *inc)
{
	const struct event *e = g->first;
	char room[32], n[TEXT_PLURAL_MAX], later[TEXT_PLURAL_MAX + 32] = "", in[64] = "";
	const char *op = wire_op_name(e->source, e->op, room);

	if (g->calls > 1 && g->row->sticky)
		snprintf(later, sizeof(later), "; %s returned it too",
			text_format_plural(n, g->calls - 1, "later calls"));
	else if (g->calls > 1)
		snprintf(later, sizeof(later), "; %s failed the same way",
			text_format_plural(n, g->calls - 1, "more calls"));
	if (g->processes > 1)
		snprintf(in, sizeof(in), ", in %s",
			text_format_plural(n, g->processes,
				g->items->forked_from ? "forked processes" : "processes"));
	snprintf(inc->summary, sizeof(inc->summary), "%s of %s returned %s error %d (%s)%s%s", op,
		e->comm, failure_is_nccl(e) ? "NCCL" : "CUDA", e->ret, g->row->name, later, in);
	put_causes(g, op, inc);
	incident_step(inc, e->start.ns, e->dur_ns, e->source == SOURCE_DRIVER ? "DRIVER" : "CUDA",
		op, "pid %u, thread %u: error %d, %s", e->pid, e->tid, e->ret, g->row->name);
	if (g->calls > 1)
		incident_step(inc, g->last_ns, 0, "CUDA", "last", "the last call that returned it");
}

/* Whether the process of the first failure ended soon after the last one, and not well. */
static bool is_fatal(const struct recording *rec, const struct error_group *g)
{
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (e->source == SOURCE_HOST && e->op == HOST_PROCESS_EXIT &&
			e->pid == g->first->pid && !(e->flags & WIRE_THREAD) && e->arg0 &&
			e->start.ns >= g->last_ns && e->start.ns - g->last_ns <= FATAL_NS)
			return true;
	}
	return false;
}

static bool is_loud(const struct recording *rec, const struct error_group *g)
{
	return g->row->class == ERROR_DEVICE || g->row->class == ERROR_VERSION ||
	       (g->row->class == ERROR_LAUNCH && is_fatal(rec, g));
}

static void report(
	const struct detector_input *s, const struct error_group *g, struct incident_list *out)
{
	static const enum problem problems[] = {
		[ERROR_MEMORY] = PROBLEM_DEVICE_ASSERT,
		[ERROR_REFUSED] = PROBLEM_DEVICE_ASSERT,
		[ERROR_LAUNCH] = PROBLEM_KERNEL_COMPILER,
		[ERROR_VERSION] = PROBLEM_VERSION_MISMATCH,
		[ERROR_DEVICE] = PROBLEM_DEVICE_ASSERT,
	};
	struct incident *inc = incident_begin(out, problems[g->row->class]);

	incident_process(inc, g->first, g->first->start.ns, g->last_ns);
	incident_weigh(inc, is_loud(s->rec, g) ? SEVERITY_MEDIUM : SEVERITY_LOW,
		g->row->sticky ? 0.7 : 0.95, g->calls, "failed calls");
	incident_complete(inc, s->completeness);
	describe(g, inc);
	advise(g, inc);
	add_processes(g, inc);
	add_evidence(g, inc);
	add_stacks(g, inc);
	add_sql(g, inc);
	incident_keep(out, inc);
}

int detect_errors(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(failures_done) struct failure_list l = {0};
	int r = failures_find(s, &l);

	for (size_t i = 0; r == 0 && i < l.count;) {
		struct error_group g = failures_group(l.items + i, l.items + l.count);

		report(s, &g, out);
		i += g.count;
	}
	return r;
}
