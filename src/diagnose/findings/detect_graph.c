/* SPDX-License-Identifier: Apache-2.0 */
/* detect_graph.c - CUDA graphs that are captured again and again, and captures that fail.
 *
 * Captures, instantiations and updates are all stored; launches are counted by aggregates. A graph
 * pays when it is launched often. Graphs made during warm-up (before the first tenth of the
 * process's graph time is over, at least 1 s) are ordinary, however many; so is updating in place.
 * Instantiations after that are "late". They are reported when there are 3 or more of them and
 *   fewer than 50 launches come on one instantiation, or
 *   capturing and instantiating took 1 % of the process's time.
 * The cost is that of late captures (begin to end, on one thread) and instantiations. HIGH: 10 % of
 * the time. LOW: less than 0.05 %. Else MEDIUM. Confidence = n/(n+3) x completeness, n the late
 * instantiations.
 *
 * A failed capture is MEDIUM, HIGH if it failed for want of GPU memory (how full the host's memory was proves nothing and
 * is not used). A capture that is open for long, and launches that are delayed, are time of the steps that wait for them:
 * their accounts tell.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/search.h"
#include "diagnose/findings/detector.h"
#include "diagnose/findings/device_error.h"
#include "diagnose/rows/place.h"
#include "base/text.h"

#define PROCESSES_MAX   64
#define PLACE_MAX       192
#define WARM_NS         ((int64_t)NS_PER_S)
#define WARM_PARTS      10
#define LATE_LEAST      3
#define LAUNCHES_TO_PAY 50
#define COST_SHARE      0.01
#define HIGH_SHARE      0.10
#define TRIFLE_SHARE    0.0005
#define LATE_HALF       3.0
#define CAPTURE_MAX_NS  ((int64_t)(600 * NS_PER_S)) /* longer: its end was lost */
#define EVENTS_MAX      (1u << 20)                  /* graph events of one process */

struct graph_process {
	uint32_t pid;
	const struct event **events; /* of SOURCE_GRAPH, by time */
	size_t count;
	uint64_t launches; /* by aggregates, else by rows */
	int64_t first_ns, last_ns, warm_ns;
	uint64_t instantiated, late, updated;
	uint64_t cost_ns; /* of late ones */
	uint64_t failed;
	const struct event *first_failed, *first_late, *last_late, *dearest;
};

ORDER_OF_POINTERS(by_time, struct event, ASCENDING(start.ns) ?: ASCENDING(seq) ?: ASCENDING(op))

static bool is_graph_event(const struct event *e, uint32_t pid)
{
	return e->source == SOURCE_GRAPH && !(e->flags & WIRE_NESTED) && e->pid == pid &&
	       baseline_is_sane(e);
}

static int process_load(const struct recording *rec, uint32_t pid, struct graph_process *p)
{
	uint64_t by_aggregates = 0;
	size_t n = 0;

	*p = (struct graph_process){.pid = pid};
	for (size_t i = 0; i < rec->event_count; i++)
		n += is_graph_event(&rec->events[i], pid);
	n = MIN(n, (size_t)EVENTS_MAX);
	p->events = calloc(n + 1, sizeof(*p->events));
	if (!p->events)
		return -ENOMEM;
	for (size_t i = 0; i < rec->event_count && p->count < n; i++)
		if (is_graph_event(&rec->events[i], pid))
			p->events[p->count++] = &rec->events[i];
	qsort(p->events, p->count, sizeof(*p->events), by_time);
	for (size_t i = 0; i < p->count; i++)
		p->launches += p->events[i]->op == GRAPH_LAUNCH;
	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *a = &rec->aggregates[i];

		if (a->source != SOURCE_GRAPH || a->pid != pid || a->op != GRAPH_LAUNCH ||
			a->flags & WIRE_NESTED)
			continue;
		by_aggregates += a->sketch.count;
		p->last_ns = MAX(p->last_ns, a->bucket.ns);
	}
	p->launches = MAX(by_aggregates, p->launches);
	return 0;
}

static void process_done(struct graph_process *p)
{
	free(p->events);
}

/* When the process made its first and last call of any kind. */
static void process_span(const struct detector_input *s, struct graph_process *p)
{
	p->first_ns = p->events[0]->start.ns;
	for (size_t i = 0; i < p->count; i++)
		p->last_ns = MAX(p->last_ns, event_end_ns(p->events[i]));
	for (size_t i = 0; i < s->ops->count; i++) {
		const struct op_group *g = &s->ops->groups[i];

		if (g->source == 0 && g->pid == p->pid)
			p->last_ns = MAX(p->last_ns, g->last_ns);
	}
	p->warm_ns = p->first_ns + MAX(WARM_NS, (p->last_ns - p->first_ns) / WARM_PARTS);
}

static void note_failure(struct graph_process *p, const struct event *e)
{
	if (p->failed++ == 0)
		p->first_failed = e;
}

/* The capture that @p->events[at] ends: its begin on the same thread, searched backwards. */
static const struct event *capture_begin(const struct graph_process *p, size_t at)
{
	const struct event *end = p->events[at];

	for (size_t i = at; i-- > 0 && at - i < 4096;) {
		const struct event *e = p->events[i];

		if (e->tid != end->tid)
			continue;
		if (e->op == GRAPH_END_CAPTURE)
			return NULL;
		if (e->op == GRAPH_BEGIN_CAPTURE && e->ret == 0)
			return event_end_ns(end) - e->start.ns <= CAPTURE_MAX_NS ? e : NULL;
	}
	return NULL;
}

static void read_capture_end(struct graph_process *p, size_t at, int64_t *capture_ns)
{
	const struct event *e = p->events[at], *begin = capture_begin(p, at);
	int64_t ns = begin ? event_end_ns(e) - begin->start.ns : (int64_t)e->dur_ns;

	if (e->ret)
		note_failure(p, e);
	*capture_ns = ns;
}

static void process_read(struct graph_process *p)
{
	int64_t capture_ns = 0; /* of the capture that was ended last */

	for (size_t i = 0; i < p->count; i++) {
		const struct event *e = p->events[i];

		if (e->op == GRAPH_BEGIN_CAPTURE && e->ret)
			note_failure(p, e);
		if (e->op == GRAPH_END_CAPTURE)
			read_capture_end(p, i, &capture_ns);
		p->updated += e->op == GRAPH_EXEC_UPDATE && e->ret == 0;
		if (e->op != GRAPH_INSTANTIATE)
			continue;
		if (e->ret) {
			note_failure(p, e);
			continue;
		}
		p->instantiated++;
		if (e->start.ns < p->warm_ns)
			continue;
		if (p->late++ == 0)
			p->first_late = e;
		p->last_late = e;
		if (!p->dearest || e->dur_ns > p->dearest->dur_ns)
			p->dearest = e;
		p->cost_ns += e->dur_ns + (uint64_t)capture_ns;
		capture_ns = 0;
	}
}

static int add_stacks(const struct graph_process *p, struct incident *inc)
{
	_cleanup_free_ struct incident_stack *list = calloc(p->late + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	incident_evidence(inc, p->dearest);
	for (size_t i = 0; i < p->count; i++) {
		const struct event *e = p->events[i];

		if (e->op != GRAPH_INSTANTIATE || e->ret || e->start.ns < p->warm_ns)
			continue;
		if (e != p->dearest)
			incident_evidence(inc, e);
		if (e->stack_hash && n < p->late)
			list[n++] = (struct incident_stack){e->stack_hash, e->dur_ns, 1};
	}
	incident_stacks_merge(list, n, inc);
	return 0;
}

/* Where the program has them captured, by the stacks that @inc has. */
static void find_place(const struct recording *rec, struct incident *inc, char *at, size_t size)
{
	struct place_weight w[INCIDENT_STACKS];
	struct code_place place;

	for (int i = 0; i < inc->stack_count; i++)
		w[i] = (struct place_weight){inc->stacks[i].hash, inc->stacks[i].ns};
	if (!inc->stack_count || !place_cover(rec->stacks, w, (size_t)inc->stack_count, &place))
		return;
	place_format(&place, inc->place, sizeof(inc->place));
	place_at(&place, at, size);
}

static void sql_of(const struct graph_process *p, struct incident *inc)
{
	incident_sql(inc,
		"SELECT id, timestamp, duration, op, arg0, arg1, ret_code FROM events WHERE pid = "
		"%u AND source = %d AND op <> %d ORDER BY timestamp",
		p->pid, SOURCE_GRAPH, GRAPH_LAUNCH);
}

static int report_recapture(
	const struct detector_input *s, const struct graph_process *p, struct incident_list *out)
{
	double span = (double)MAX(p->last_ns - p->first_ns, INT64_C(1));
	double share = (double)p->cost_ns / span;
	double each = (double)p->launches / (double)MAX(p->instantiated, UINT64_C(1));
	char cost[TEXT_MAX], percent[TEXT_MAX], one[TEXT_MAX];
	char launches[TEXT_PLURAL_MAX], times[TEXT_PLURAL_MAX], at[PLACE_MAX] = "";
	struct incident *inc;

	if (p->late < LATE_LEAST || (each >= LAUNCHES_TO_PAY && share < COST_SHARE))
		return 0;
	inc = incident_begin(out, PROBLEM_GRAPH_RECAPTURE);
	incident_process(inc, p->first_late, p->first_late->start.ns, p->last_late->start.ns);
	incident_weigh(inc,
		share >= HIGH_SHARE    ? SEVERITY_HIGH
		: share < TRIFLE_SHARE ? SEVERITY_LOW
				       : SEVERITY_MEDIUM,
		(double)p->late / ((double)p->late + LATE_HALF), p->late,
		"instantiations after warm-up");
	incident_complete(inc, s->completeness);
	inc->excess_ns = p->cost_ns;
	inc->explained = 1;
	inc->period_steps = each >= 1 && each < 1e6 ? (uint32_t)(each + 0.5) : 0;
	inc->period_confidence = inc->period_steps ? 0.5 : 0;
	text_format_duration(cost, p->cost_ns);
	text_format_percent(percent, share);
	text_format_duration(one, p->cost_ns / p->late);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"graph re-capture: %s instantiated for %s, %llu updated in place",
		text_format_plural(times, p->instantiated, "graphs"),
		text_format_plural(launches, p->launches, "launches"),
		(unsigned long long)p->updated);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Graphs created in the first %.1f s count as warm-up. The cost is the duration of each later capture and its instantiation.",
		(double)(p->warm_ns - p->first_ns) / 1e9);
	incident_step(inc, p->first_late->start.ns, p->first_late->dur_ns, "GRAPH",
		"graphInstantiate", "first after warm-up, by thread %u", p->first_late->tid);
	incident_step(inc, p->last_late->start.ns, p->last_late->dur_ns, "GRAPH",
		"graphInstantiate", "last, by thread %u", p->last_late->tid);
	sql_of(p, inc);
	if (add_stacks(p, inc) < 0)
		return -ENOMEM;
	find_place(s->rec, inc, at, sizeof(at));
	snprintf(inc->summary, sizeof(inc->summary),
		"CUDA graphs captured repeatedly%s%s: %s after warm-up, once for every %s; %s "
		"each, %s in all (%s of the time)",
		at[0] ? " " : "", at, text_format_plural(times, p->late, "times"),
		text_format_plural(launches, (uint64_t)(each + 0.5), "launches"), one, cost,
		percent);
	incident_keep(out, inc);
	return 0;
}

static void report_failed(
	const struct detector_input *s, const struct graph_process *p, struct incident_list *out)
{
	const struct event *e = p->first_failed;
	const struct error_row *row;
	struct incident *inc;
	char n[TEXT_PLURAL_MAX];

	if (!p->failed)
		return;
	inc = incident_begin(out, PROBLEM_GRAPH_RECAPTURE);
	row = error_find(e->source, e->ret);
	incident_process(inc, e, e->start.ns, e->start.ns);
	snprintf(inc->id, sizeof(inc->id), "graph-capture-failed-%u-%lld", e->pid,
		(long long)e->start.ns);
	incident_weigh(inc, row->class == ERROR_MEMORY ? SEVERITY_HIGH : SEVERITY_MEDIUM, 0.95,
		p->failed, "failed captures");
	incident_complete(inc, s->completeness);
	snprintf(inc->summary, sizeof(inc->summary), "%s of %s failed%s error %d (%s)",
		text_format_plural(n, p->failed,
			p->failed == 1 ? "graph captures or instantiation"
				       : "graph captures or instantiations"),
		e->comm, p->failed == 1 ? " with" : "; the first with", e->ret, row->name);
	snprintf(inc->root_cause, sizeof(inc->root_cause), "capture failed: %s", row->meaning);
	snprintf(inc->explanation, sizeof(inc->explanation),
		"The work of a failed capture did not run and is in no graph.");
	inc->fix_count = 0;
	incident_fix(inc,
		row->class == ERROR_MEMORY
			? "Capture before the caches are filled, or give the graphs a smaller pool"
			: "Warm up libraries (cuBLAS, cuDNN) on the stream before capturing, and "
			  "keep synchronisation and allocation out of the capture");
	incident_step(
		inc, e->start.ns, e->dur_ns, "GRAPH", "capture", "error %d, %s", e->ret, row->name);
	incident_evidence(inc, e);
	sql_of(p, inc);
	incident_keep(out, inc);
}

int detect_graph(const struct detector_input *s, struct incident_list *out)
{
	uint32_t pids[PROCESSES_MAX];
	int count = 0, r = 0;

	for (size_t i = 0; i < s->rec->event_count && count < PROCESSES_MAX; i++) {
		const struct event *e = &s->rec->events[i];
		int k = 0;

		if (e->source != SOURCE_GRAPH || !baseline_is_sane(e))
			continue;
		while (k < count && pids[k] != e->pid)
			k++;
		if (k == count)
			pids[count++] = e->pid;
	}
	for (int i = 0; r == 0 && i < count; i++) {
		_cleanup_(process_done) struct graph_process p = {0};

		r = process_load(s->rec, pids[i], &p);
		if (r < 0 || !p.count)
			continue;
		process_span(s, &p);
		process_read(&p);
		report_failed(s, &p, out);
		r = report_recapture(s, &p, out);
	}
	return r;
}
