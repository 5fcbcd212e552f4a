/* SPDX-License-Identifier: Apache-2.0 */
/* lazy_find.c - see lazy_find.h.
 *
 * A launch names its function. CUDA loads the code of a function when it is first launched, so that
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
#include "diagnose/findings/lazy_find.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/array.h"
#include "base/text.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define SLOW_RATIO     20
#define SLOW_NS        NS_PER_MS
#define FUNCTIONS_MIN  3
#define LOST_NS        (50 * NS_PER_MS)
#define FIRST_SHARE    0.75
#define REPEATED_MIN   3
#define RARER          5
#define PROCESSES_MAX  1024
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

int lazy_find(const struct detector_input *s, struct lazy_list *ret)
{
	_cleanup_free_ struct launch *launches = NULL;
	size_t n, at = 0;

	*ret = (struct lazy_list){0};
	ret->items = calloc(PROCESSES_MAX, sizeof(*ret->items));
	if (!ret->items || launches_collect(s, &launches, &n) < 0)
		return -ENOMEM;
	while (at < n && ret->count < PROCESSES_MAX) {
		bool is_lazy;

		at += judge(launches + at, n - at, &ret->items[ret->count], &is_lazy);
		ret->count += is_lazy;
	}
	return 0;
}

void lazy_done(struct lazy_list *l)
{
	free(l->items);
}

bool lazy_tells(const struct lazy_list *l, const struct op_group *g)
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
	text_format_duration(all, z->ns);
	text_format_duration(was, z->longest[0]->dur_ns);
	text_format_duration(usual, z->op->baseline_ns);
	snprintf(inc->summary, sizeof(inc->summary),
		"lazy loading: the first launches of %s by %s cost %s, up to %s where a launch usually takes %s",
		n, z->longest[0]->comm, all, was, usual);
	snprintf(inc->root_cause, sizeof(inc->root_cause),
		"lazy loading: CUDA loads the code of a function when it is first launched");
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

enum severity lazy_severity(uint64_t ns, double span_ns)
{
	return ns >= MEDIUM_NS && (double)ns >= MEDIUM_SHARE * span_ns ? SEVERITY_MEDIUM
								       : SEVERITY_LOW;
}

void lazy_report(
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
