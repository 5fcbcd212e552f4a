/* SPDX-License-Identifier: Apache-2.0 */
/* detect_errors.c - calls that returned an error: on the device, of a kernel that cannot run as
 * asked, of versions that do not fit, or refused.
 *
 * One mistake is one incident, with the processes that made it: calls of one family of processes (all that one
 * ancestor forked, as far as the recording shows it), of one kind (CUDA or NCCL), that returned the same error. Answers that
 * are no failures (not ready, already enabled, in progress) are left out, and so are errors that other detectors report
 * (memory, graph captures). device_error.c says what a number means.
 *
 * A process that is broken returns errors from then on, and what differs from the first one is a
 * consequence. Broken is a process after a sticky error, which every later call returns, and one that
 * was forked from a process that had used CUDA: there it cannot be initialised, whatever is called.
 *
 * Severity: device errors MEDIUM, the catalogue's worst; versions MEDIUM; launches MEDIUM if the process
 * ended with an error afterwards; other launches and refused calls LOW. Confidence 0.95 (the code was returned), 0.7 for the place if the error is
 * asynchronous (sticky errors come from an earlier call); times completeness. */
#include "diagnose/findings/detector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/text.h"
#include "wire/names.h"
#include "diagnose/findings/device_error.h"
#include "diagnose/accounts/lineage.h"
#include "base/search.h"
#include "base/array.h"
#include "wire/op_kind.h"

struct failure { /* one row */
	const struct event *event;
	uint32_t family;
	uint32_t forked_from; /* an ancestor that had used CUDA before the fork; 0: none */
};

struct failure_list {
	struct failure *items;
	size_t count;
};

struct error_group { /* failures that are told together, in order of process and time */
	const struct failure *items;
	size_t count;
	const struct error_row *row;
	const struct event *first;
	int64_t last_ns;
	uint64_t calls; /* rows have weights */
	uint32_t processes;
};

static inline bool failure_is_nccl(const struct event *e)
{
	return e->source == SOURCE_NCCL;
}

#define CODE_NOT_INITIALIZED 3  /* of runtime and driver */
#define FORKS_FOLLOWED       16 /* of processes that could not use CUDA themselves */

static void failures_done(struct failure_list *l)
{
	free(l->items);
	*l = (struct failure_list){0};
}

/* Pinned host memory is the host's: the rest of "out of memory" is told by detect_memory.c. */
static bool is_told_elsewhere(const struct event *e, enum error_class class)
{
	bool host = (e->source == SOURCE_CUDA && e->op == CUDA_HOST_ALLOC) ||
		    (e->source == SOURCE_DRIVER && e->op == DRIVER_HOST_ALLOC);

	return (class == ERROR_MEMORY && !host) || class == ERROR_CAPTURE;
}

static bool is_error(const struct event *e)
{
	enum error_class class;

	if (!op_kind_is_gpu(e->source) || e->ret <= 0 || (e->flags & WIRE_NESTED) ||
		!baseline_is_sane(e))
		return false;
	class = error_find(e->source, e->ret)->class;
	return class != ERROR_EXPECTED && !is_told_elsewhere(e, class);
}

ORDER(by_process, struct failure,
	ASCENDING(event->pid) ?: ASCENDING(event->start.ns) ?: ASCENDING(event->seq)
					?: ASCENDING(event))

/* Equal are two that are told together. */
ORDER(by_mistake_alone, struct failure,
	ASCENDING(family) ?: COMPARE(failure_is_nccl(x->event), failure_is_nccl(y->event))
			  ?: ASCENDING(event->ret) ?: COMPARE(!x->forked_from, !y->forked_from))

ORDER(by_mistake, struct failure, by_mistake_alone(x, y) ?: by_process(x, y))

static int collect(const struct recording *rec, struct failure_list *ret)
{
	size_t room = 0;

	for (size_t i = 0; i < rec->event_count; i++) {
		if (!is_error(&rec->events[i]))
			continue;
		if (ARRAY_RESERVE(ret->items, room, ret->count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		ret->items[ret->count++] = (struct failure){.event = &rec->events[i]};
	}
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_process);
	return 0;
}

/* Whether CUDA could not be initialised in @pid itself: its calls are no use of CUDA. */
static bool is_uninitialised(const struct failure_list *l, uint32_t pid)
{
	size_t at = LOWER_BOUND(i, l->count, l->items[i].event->pid < pid);

	for (; at < l->count && l->items[at].event->pid == pid; at++)
		if (!failure_is_nccl(l->items[at].event) &&
			l->items[at].event->ret == CODE_NOT_INITIALIZED)
			return true;
	return false;
}

static uint32_t forked_from(const struct detector_input *s, const struct lineage *lines,
	const struct failure_list *l, const struct event *e)
{
	uint32_t pid = e->pid;

	if (failure_is_nccl(e) || e->ret != CODE_NOT_INITIALIZED)
		return 0;
	for (int i = 0; i < FORKS_FOLLOWED; i++) {
		if (!lineage_forked_after_use(lines, s->ops, pid, e->start.ns, &pid))
			return 0;
		if (!is_uninitialised(l, pid))
			return pid;
	}
	return 0;
}

/* Names the family of each failure, which are in order of process and time. */
static void place(
	const struct detector_input *s, const struct lineage *lines, struct failure_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		struct failure *f = &l->items[i], *last = i ? f - 1 : NULL;

		f->family = lineage_root(lines, f->event->pid, f->event->start.ns);
		if (last && last->event->pid == f->event->pid && last->event->ret == f->event->ret)
			f->forked_from = last->forked_from;
		else
			f->forked_from = forked_from(s, lines, l, f->event);
	}
}

/* Leaves out the consequences of what broke a process. */
static void leave_consequences(struct failure_list *l)
{
	const struct event *broken = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct event *e = l->items[i].event;

		if (broken && broken->pid != e->pid)
			broken = NULL;
		if (broken &&
			(broken->ret != e->ret || failure_is_nccl(broken) != failure_is_nccl(e)))
			continue;
		l->items[kept++] = l->items[i];
		if (!broken && (l->items[i].forked_from || error_find(e->source, e->ret)->sticky))
			broken = e;
	}
	l->count = kept;
}

static int failures_find(const struct detector_input *s, struct failure_list *ret)
{
	_cleanup_(lineage_done) struct lineage lines = {0};
	int r;

	*ret = (struct failure_list){0};
	r = collect(s->rec, ret);
	if (r < 0 || !ret->count)
		return r;
	r = lineage_build(s->rec, &lines);
	if (r < 0)
		return r;
	place(s, &lines, ret);
	leave_consequences(ret);
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_mistake);
	return 0;
}

static struct error_group failures_group(const struct failure *items, const struct failure *end)
{
	struct error_group g = {.items = items, .first = items->event, .last_ns = INT64_MIN};

	g.row = error_find(items->event->source, items->event->ret);
	for (; items + g.count < end && !by_mistake_alone(items, items + g.count); g.count++) {
		const struct event *e = items[g.count].event;

		g.calls += MAX(e->weight, 1U);
		g.last_ns = MAX(g.last_ns, e->start.ns);
		g.processes += !g.count || e->pid != items[g.count - 1].event->pid;
		if (e->start.ns < g.first->start.ns ||
			(e->start.ns == g.first->start.ns && e->seq < g.first->seq))
			g.first = e;
	}
	return g;
}

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
