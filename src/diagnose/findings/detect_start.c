/* SPDX-License-Identifier: Apache-2.0 */
/* detect_start.c - what the start of a process costs: first calls that create the context, load
 * modules, initialise libraries.
 *
 * For each op of a process with at least 8 later calls: its first call is a cold one if it took 20
 * times the ordinary duration and 1 ms or more. Waits for the GPU and copies are left out: how long
 * they take depends on the work before them. Only first calls in the process's first 60 s count
 * (one that lasts longer is a hang).
 *
 * The start must have been seen: a fork or exec of the process, its admission at its first call, or
 * that its very first recorded call is itself a cold one (a process that was warm when the trace
 * began does not pay again). Otherwise nothing is said.
 *
 * Later on, the first launch of each function loads its code: that is told by lazy_find.c, and the
 * launches of such a process are left out here.
 *
 * Nothing is said of less than 5 ms. LOW, as it happens once. MEDIUM if the start was seen by a row and cost half a second and a tenth
 * of the time the process was observed. Confidence 0.9 with such a row, 0.6 without; times
 * completeness. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "diagnose/findings/detector.h"
#include "diagnose/findings/lazy_find.h"
#include "base/text.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define PROCESSES_MAX 256
#define OPS_MAX       16
#define COLD_RATIO    20
#define COLD_NS       NS_PER_MS
#define LATER_CALLS   8
#define START_NS      ((int64_t)(60 * NS_PER_S))
#define LEAST_NS      (5 * NS_PER_MS) /* below that nobody would look for it */

struct cold_call {
	const struct event *event;
	const struct op_group *op;
};

struct start {
	uint32_t pid;
	const struct event *first; /* of all its calls */
	const struct event *seen;  /* the row that shows its start */
	struct cold_call cold[OPS_MAX];
	int count;
	uint64_t ns;
};

static bool can_be_cold(const struct op_group *g)
{
	if (g->nested || g->calls < LATER_CALLS)
		return false;
	if (g->source == SOURCE_CUDA)
		return g->op == CUDA_MALLOC || g->op == CUDA_LAUNCH || g->op == CUDA_LAUNCH_EXC ||
		       g->op == CUDA_MALLOC_ASYNC || g->op == CUDA_HOST_ALLOC ||
		       g->op == CUDA_MEMSET_ASYNC || g->op == CUDA_LAUNCH_COOP ||
		       g->op == CUDA_EVENT_RECORD;
	return g->source == SOURCE_DRIVER &&
	       (g->op == DRIVER_LAUNCH || g->op == DRIVER_LAUNCH_EX || g->op == DRIVER_MALLOC ||
		       g->op == DRIVER_MEM_CREATE || g->op == DRIVER_MALLOC_ASYNC);
}

static bool is_first(const struct event *e, const struct event *than)
{
	if (!than || e->start.ns != than->start.ns)
		return !than || e->start.ns < than->start.ns;
	return e->dur_ns > than->dur_ns; /* the outer of two that begin together */
}

static bool shows_start(const struct event *e, uint32_t pid)
{
	if (e->source != SOURCE_HOST)
		return false;
	return (e->op == HOST_PROCESS_FORK && e->peer_pid == pid && !(e->flags & WIRE_THREAD)) ||
	       ((e->op == HOST_PROCESS_EXEC || e->op == HOST_TARGET_FOUND) && e->pid == pid);
}

struct starts {
	struct start *list;
	int count;
	const struct event **first_of_op; /* by group */
	int *slot;                        /* by group of a process: 1 + index in list */
};

static void starts_done(struct starts *l)
{
	free(l->list);
	free(l->first_of_op);
	free(l->slot);
}

static int starts_init(struct starts *l, const struct op_table *ops)
{
	l->list = calloc(PROCESSES_MAX, sizeof(*l->list));
	l->first_of_op = calloc(ops->count + 1, sizeof(*l->first_of_op));
	l->slot = calloc(ops->count + 1, sizeof(*l->slot));
	if (!l->list || !l->first_of_op || !l->slot)
		return -ENOMEM;
	for (size_t i = 0; i < ops->count && l->count < PROCESSES_MAX; i++) {
		if (ops->groups[i].source)
			continue;
		l->list[l->count++].pid = ops->groups[i].pid;
		l->slot[i] = l->count;
	}
	return 0;
}

static struct start *start_of(const struct starts *l, const struct op_group *g)
{
	int slot = g->source ? l->slot[g->process] : 0;

	return slot ? &l->list[slot - 1] : NULL;
}

/* One pass over the recording: first calls of processes, and the first call of each op. */
static void find_first(const struct detector_input *s, struct starts *l)
{
	const struct op_table *ops = s->ops;
	uint32_t at;

	for (size_t i = 0; i < s->rec->event_count; i++) {
		const struct event *e = &s->rec->events[i];
		struct start *p;

		if (!baseline_is_sane(e))
			continue;
		if (e->source == SOURCE_HOST && e->op != HOST_SCHED_SWITCH)
			for (int k = 0; k < l->count; k++)
				if (shows_start(e, l->list[k].pid))
					l->list[k].seen = e;
		if (!op_kind_is_cuda(e->source) ||
			!baseline_lookup(ops, e->pid, e->source, e->flags, e->op, &at))
			continue;
		if (is_first(e, l->first_of_op[at]))
			l->first_of_op[at] = e;
		p = start_of(l, &ops->groups[at]);
		if (p && is_first(e, p->first))
			p->first = e;
	}
}

static void add_cold(struct start *p, const struct event *e, const struct op_group *g)
{
	if (p->count == OPS_MAX || e->dur_ns > (uint64_t)START_NS ||
		e->start.ns - p->first->start.ns > START_NS || e->dur_ns < COLD_NS || e->ret ||
		(double)e->dur_ns < COLD_RATIO * (double)MAX(g->baseline_ns, UINT64_C(1)))
		return;
	p->cold[p->count++] = (struct cold_call){e, g};
	p->ns += e->dur_ns - g->baseline_ns;
}

static const struct cold_call *dearest(const struct start *p)
{
	const struct cold_call *most = &p->cold[0];

	for (int i = 1; i < p->count; i++)
		if (p->cold[i].event->dur_ns > most->event->dur_ns)
			most = &p->cold[i];
	return most;
}

static bool is_seen(const struct start *p)
{
	return p->seen && p->seen->start.ns <= event_end_ns(p->first) &&
	       p->first->start.ns - p->seen->start.ns <= START_NS;
}

/* A warm process pays for nothing at its first recorded call. */
static bool begins_cold(const struct start *p)
{
	for (int i = 0; i < p->count; i++)
		if (p->cold[i].event == p->first)
			return true;
	return false;
}

static void describe(const struct start *p, bool seen, struct incident *inc)
{
	const struct cold_call *c = dearest(p);
	char room[32], was[TEXT_MAX], later[TEXT_MAX], ratio[TEXT_MAX], all[TEXT_MAX];
	char n[TEXT_PLURAL_MAX];
	const char *op = wire_op_name(c->event->source, c->event->op, room);

	text_format_duration(was, c->event->dur_ns);
	text_format_duration(later, c->op->baseline_ns);
	text_format_ratio(
		ratio, (double)c->event->dur_ns / (double)MAX(c->op->baseline_ns, UINT64_C(1)));
	snprintf(inc->summary, sizeof(inc->summary),
		"first %s of %s took %s, later ones %s (%sx); %s cost %s: one-off", op,
		c->event->comm, was, later, ratio,
		text_format_plural(n, (uint64_t)p->count, "first calls"),
		text_format_duration(all, p->ns));
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"cold start: the context, modules and libraries are initialised by the first "
		"calls");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"The first call of each function was compared with the median of all its calls. %s",
		seen ? "The start of the process is in the recording."
		     : "The process started before the recording; its first recorded call is one of the slow ones.");
	for (int i = 0; i < p->count; i++) {
		const struct event *e = p->cold[i].event;

		op = wire_op_name(e->source, e->op, room);
		incident_step(inc, e->start.ns, e->dur_ns,
			e->source == SOURCE_DRIVER ? "DRIVER" : "CUDA", op, "first %s, usually %s",
			op, text_format_duration(later, p->cold[i].op->baseline_ns));
		incident_evidence(inc, e);
	}
	incident_sql(inc,
		"SELECT id, timestamp, duration, source, op FROM events WHERE pid = %u AND " OP_KIND_CUDA_SQL
		" AND timestamp <= %lld ORDER BY duration DESC LIMIT 20",
		p->pid, (long long)(p->first->start.ns + START_NS));
}

static void report(const struct detector_input *s, const struct start *p, struct incident_list *out)
{
	const struct op_group *process = &s->ops->groups[p->cold[0].op->process];
	bool seen = is_seen(p);
	double span = (double)MAX(process->last_ns - process->first_ns, INT64_C(1));
	struct incident *inc = incident_begin(out, PROBLEM_COLD_START);

	incident_process(inc, dearest(p)->event, p->first->start.ns, dearest(p)->event->start.ns);
	incident_weigh(inc, seen ? lazy_severity(p->ns, span) : SEVERITY_LOW, seen ? 0.9 : 0.6,
		(uint64_t)p->count, "first calls");
	incident_complete(inc, s->completeness);
	inc->excess_ns = p->ns;
	inc->explained = 1;
	describe(p, seen, inc);
	incident_keep(out, inc);
}

int detect_start(const struct detector_input *s, struct incident_list *out)
{
	const struct op_table *ops = s->ops;
	_cleanup_(starts_done) struct starts l = {0};
	_cleanup_(lazy_done) struct lazy_list lazy = {0};

	if (starts_init(&l, ops) < 0 || lazy_find(s, &lazy) < 0)
		return -ENOMEM;
	find_first(s, &l);
	for (size_t i = 0; i < ops->count; i++) {
		struct start *p = start_of(&l, &ops->groups[i]);

		if (p && p->first && l.first_of_op[i] && can_be_cold(&ops->groups[i]) &&
			!lazy_tells(&lazy, &ops->groups[i]))
			add_cold(p, l.first_of_op[i], &ops->groups[i]);
	}
	for (int k = 0; k < l.count; k++)
		if (l.list[k].ns >= LEAST_NS && (is_seen(&l.list[k]) || begins_cold(&l.list[k])))
			report(s, &l.list[k], out);
	for (size_t i = 0; i < lazy.count; i++)
		lazy_report(s, &lazy.items[i], out);
	return 0;
}
