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
 * Later on, the first launch of each function loads its code: that is told by lazy_report(), and the
 * launches of such a process are left out here.
 *
 * Nothing is said of less than 5 ms. LOW, as it happens once. MEDIUM if the start was seen by a row and cost half a second and a tenth
 * of the time the process was observed. Confidence 0.9 with such a row, 0.6 without; times
 * completeness. */
#include "diagnose/findings/detector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "wire/names.h"
#include "wire/op_kind.h"
#include "base/search.h"
#include "base/array.h"

/* ---- code that is loaded when it is first launched ---- */

/* A launch names its function. CUDA loads the code of a function when it is first launched, so that
 * this launch takes milliseconds and the next one microseconds. A launch is slow here if it takes
 * 20 times the usual and 1 ms. A process loads lazily if the first launches of at least 3 functions
 * are slow, 50 ms together and 75 % of what slow launches cost beyond the usual.
 *
 * Rows are a selection that prefers slow calls, so that a slow launch may only seem to be the first
 * of its function. Therefore later launches must be slow five times as rarely as first ones, there
 * must be as many of them as functions, and at least 3 functions with a slow first launch must have
 * one. O(n log n) in launches.
 *
 * LOW, as it happens once for each function; MEDIUM if it cost half a second and a tenth of the time
 * the process was observed. Confidence = share of the slow launches' time that the first ones have
 * x n/(n+3) x completeness, n the functions. */

#define LAZY_SHOWN 4

struct lazy_loads { /* of one process */
	uint32_t pid;
	const struct op_group *op; /* of the slowest */
	size_t functions;          /* whose first launch is slow */
	size_t known;              /* functions that are launched in the recording */
	size_t repeats;            /* launches that are not the first of their function */
	size_t slow_repeats;
	uint64_t ns;                             /* of the slow first launches, beyond the usual */
	uint64_t repeats_ns;                     /* likewise of the slow repeats */
	const struct event *longest[LAZY_SHOWN]; /* of the first launches, longest first */
	int64_t first_ns, last_ns;               /* starts of slow first launches */
};

struct lazy_list {
	struct lazy_loads *items; /* by pid, only processes that load lazily */
	size_t count;
};

#define SLOW_RATIO     20
#define SLOW_NS        NS_PER_MS
#define FUNCTIONS_MIN  3
#define LOST_NS        (50 * NS_PER_MS)
#define FIRST_SHARE    0.75
#define REPEATED_MIN   3
#define RARER          5
#define LAZY_MAX       1024 /* processes */
#define MEDIUM_NS      (500 * NS_PER_MS)
#define MEDIUM_SHARE   0.1
#define FUNCTIONS_HALF 3.0

struct launch {
	const struct event *event;
	const struct op_group *op;
};

/* Of a program that calls the runtime, the driver's launches are the runtime's seen again. */
static const struct op_group *group_of(const struct op_table *ops, const struct event *e)
{
	uint32_t at;

	if (!op_kind_is_launch(e->source, e->op) || e->flags & WIRE_NESTED || !e->arg0 || e->ret ||
		!baseline_is_sane(e) ||
		!baseline_lookup(ops, e->pid, e->source, e->flags, e->op, &at))
		return NULL;
	if (e->source == SOURCE_DRIVER && ops->groups[ops->groups[at].process].has_runtime)
		return NULL;
	return &ops->groups[at];
}

ORDER(by_function_and_time, struct launch,
	ASCENDING(event->pid) ?: ASCENDING(event->arg0) ?: ASCENDING(event->start.ns)
					?: ASCENDING(event->seq))

static int launches_collect(const struct detector_input *s, struct launch **ret, size_t *ret_count)
{
	const struct op_table *ops = s->ops;
	_cleanup_free_ struct launch *list = NULL;
	size_t n = 0, room = 0;

	for (size_t i = 0; i < s->rec->event_count; i++) {
		const struct op_group *op = group_of(ops, &s->rec->events[i]);

		if (!op)
			continue;
		if (ARRAY_RESERVE(list, room, n + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		list[n++] = (struct launch){&s->rec->events[i], op};
	}
	if (n)
		qsort(list, n, sizeof(*list), by_function_and_time);
	*ret = TAKE(list);
	*ret_count = n;
	return 0;
}

static uint64_t extra_ns(const struct launch *l)
{
	const struct event *e = l->event;

	return e->dur_ns >= SLOW_NS && e->dur_ns / SLOW_RATIO >= l->op->baseline_ns
		       ? e->dur_ns - l->op->baseline_ns
		       : 0;
}

static void keep_longest(struct lazy_loads *p, const struct event *e)
{
	for (int i = 0; i < LAZY_SHOWN; i++) {
		const struct event *other = p->longest[i];

		if (other && other->dur_ns >= e->dur_ns)
			continue;
		p->longest[i] = e;
		if (!other)
			return;
		e = other;
	}
}

/* The launches [first, end) of one function. Returns whether its first one is slow and not alone. */
static bool add_function(struct lazy_loads *p, const struct launch *l, size_t n)
{
	uint64_t extra = extra_ns(&l[0]);

	p->known++;
	p->repeats += n - 1;
	for (size_t i = 1; i < n; i++) {
		p->repeats_ns += extra_ns(&l[i]);
		p->slow_repeats += extra_ns(&l[i]) > 0;
	}
	if (!extra)
		return false;
	p->functions++;
	p->ns += extra;
	p->first_ns = MIN(p->first_ns, l->event->start.ns);
	p->last_ns = MAX(p->last_ns, l->event->start.ns);
	keep_longest(p, l->event);
	if (p->longest[0] == l->event)
		p->op = l->op;
	return n > 1;
}

/* The process whose launches begin at @l. Returns how many it has; *ret_is_lazy: the verdict. */
static size_t judge(const struct launch *l, size_t n, struct lazy_loads *ret, bool *ret_is_lazy)
{
	size_t repeated = 0, end = 0, next;

	*ret = (struct lazy_loads){
		.pid = l->event->pid, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	for (size_t i = 0; i < n && l[i].event->pid == ret->pid; i = next) {
		for (next = i; next < n && l[next].event->pid == ret->pid &&
			       l[next].event->arg0 == l[i].event->arg0;)
			next++;
		repeated += add_function(ret, l + i, next - i);
		end = next;
	}
	*ret_is_lazy = ret->functions >= FUNCTIONS_MIN && ret->ns >= LOST_NS &&
		       (double)ret->ns >= FIRST_SHARE * (double)(ret->ns + ret->repeats_ns) &&
		       repeated >= REPEATED_MIN && ret->repeats >= ret->known &&
		       ret->slow_repeats * RARER * ret->known <= ret->functions * ret->repeats;
	return end;
}

static int lazy_find(const struct detector_input *s, struct lazy_list *ret)
{
	_cleanup_free_ struct launch *launches = NULL;
	size_t n, at = 0;

	*ret = (struct lazy_list){0};
	ret->items = calloc(LAZY_MAX, sizeof(*ret->items));
	if (!ret->items || launches_collect(s, &launches, &n) < 0)
		return -ENOMEM;
	while (at < n && ret->count < LAZY_MAX) {
		bool is_lazy;

		at += judge(launches + at, n - at, &ret->items[ret->count], &is_lazy);
		ret->count += is_lazy;
	}
	return 0;
}

static void lazy_done(struct lazy_list *l)
{
	free(l->items);
}

static bool lazy_tells(const struct lazy_list *l, const struct op_group *g)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->items[i].pid == g->pid)
			return op_kind_is_launch(g->source, g->op);
	return false;
}

static void describe_lazy(const struct lazy_loads *z, struct incident *inc)
{
	char n[TEXT_PLURAL_MAX], all[TEXT_MAX], was[TEXT_MAX], usual[TEXT_MAX], room[32];
	char repeats[TEXT_PLURAL_MAX], slow[TEXT_MAX];

	text_format_plural(n, z->functions, "functions");
	text_format_span(all, z->ns);
	text_format_span(was, z->longest[0]->dur_ns);
	text_format_span(usual, z->op->baseline_ns);
	snprintf(inc->summary, sizeof(inc->summary),
		"Lazy loading: the first launches of %s by %s cost %s, up to %s where a launch usually takes %s",
		n, z->longest[0]->comm, all, was, usual);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"Lazy loading: CUDA loads the code of a function when it is first launched");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"Launches were compared by function: %s of %zu in the recording had a slow first launch, "
		"%s beyond the usual in total; %s of %s were slow. Launches that are not stored are not "
		"compared.",
		n, z->known, all,
		z->slow_repeats ? text_format_count(slow, z->slow_repeats) : "none",
		text_format_plural(repeats, z->repeats, "later launches"));
	for (int i = 0; i < LAZY_SHOWN && z->longest[i]; i++) {
		const struct event *e = z->longest[i];
		const char *op = wire_op_name(e->source, e->op, room);

		incident_step(inc, e->start.ns, e->dur_ns,
			e->source == SOURCE_DRIVER ? "DRIVER" : "CUDA", op,
			"first %s of function 0x%llx, usually %s", op, (unsigned long long)e->arg0,
			usual);
		incident_evidence(inc, e);
	}
	incident_sql(inc,
		"SELECT id, timestamp, duration, arg0 FROM events WHERE pid = %u AND source = %u AND op = %u ORDER BY duration DESC LIMIT 20",
		z->pid, z->longest[0]->source, z->longest[0]->op);
}

static enum severity lazy_severity(uint64_t ns, double span_ns)
{
	return ns >= MEDIUM_NS && (double)ns >= MEDIUM_SHARE * span_ns ? SEVERITY_MEDIUM
								       : SEVERITY_LOW;
}

static void lazy_report(
	const struct detector_input *s, const struct lazy_loads *z, struct incident_list *out)
{
	struct incident *inc = incident_begin(out, PROBLEM_COLD_START);
	double n = (double)z->functions;

	incident_process(inc, z->longest[0], z->first_ns, z->last_ns);
	snprintf(inc->id, sizeof(inc->id), "lazy-loading-%u-%lld", z->pid, (long long)z->first_ns);
	incident_weigh(inc, lazy_severity(z->ns, (double)op_span_ns(s->ops, z->op)),
		(double)z->ns / (double)(z->ns + z->repeats_ns) * n / (n + FUNCTIONS_HALF),
		z->functions, "first launches");
	incident_complete(inc, s->completeness);
	inc->excess_ns = z->ns;
	inc->explained = 1;
	describe_lazy(z, inc);
	incident_keep(out, inc);
}

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
	char room[32], was[TEXT_MAX], later[TEXT_MAX], all[TEXT_MAX], n[TEXT_PLURAL_MAX];
	const char *op = wire_op_name(c->event->source, c->event->op, room);

	text_format_span(was, c->event->dur_ns);
	text_format_span(later, c->op->baseline_ns);
	snprintf(inc->summary, sizeof(inc->summary), "First %s of %s took %s instead of %s, once",
		op, c->event->comm, was, later);
	if (p->count > 1)
		snprintf(inc->summary + strlen(inc->summary),
			sizeof(inc->summary) - strlen(inc->summary), "; %s cost %s",
			text_format_plural(n, (uint64_t)p->count, "first calls"),
			text_format_span(all, p->ns));
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"Cold start: the first calls initialise the context, modules and libraries");
	snprintf(inc->explanation, sizeof(inc->explanation),
		"The first call of each function was compared with the median of all its calls. %s",
		seen ? "The start of the process is in the recording."
		     : "The process started before the recording; its first recorded call is one of the slow ones.");
	for (int i = 0; i < p->count; i++) {
		const struct event *e = p->cold[i].event;

		op = wire_op_name(e->source, e->op, room);
		incident_step(inc, e->start.ns, e->dur_ns,
			e->source == SOURCE_DRIVER ? "DRIVER" : "CUDA", op, "first %s, usually %s",
			op, text_format_span(later, p->cold[i].op->baseline_ns));
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
