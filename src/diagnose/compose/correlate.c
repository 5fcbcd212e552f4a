/* SPDX-License-Identifier: Apache-2.0 */
/* correlate.c - from a recording to explained incidents: detect, attribute, judge, tell.
 *
 * slow_calls.c finds stretches of slow calls of one (process, op); attribute.c cuts every slow call
 * into what its thread was kept by; culprit.c sums that; here the verdict is reached; incident_text.c and
 * evidence.c write it down. An incident is one stretch; views of one stall through several ops stay
 * separate incidents. Order: the most severe first, what the
 * tracer cost after what it did not, then most excess, then earliest, then pid and op.
 *
 * Verdict. lead.c chooses the culprit, or the layer of many, that explains at least 25 % of the
 * excess. Where there is none the incident is "unexplained", and kept only if the calls are slow by
 * the op's own standard: slow_p50 above 1.5 x the p95 of calm buckets. An op whose calls are long
 * now and then every day (a sync at the end of a step, copies of different sizes) is no incident;
 * without aggregates that cannot be told. Calls less than 3 x slower count only if the excess, of an
 * explained incident the explained part of it, is 3 % of the observed time.
 *
 * Severity follows the time that was lost. LOW: unexplained. HIGH: the explained excess is at least
 * 10 % of the time the process was observed; or, so that a bad minute in a long recording shows, 2 s
 * and 10 % of its own stretch. Else MEDIUM. What the tracer itself cost is one lower: it ends with the
 * recording.
 *
 * Confidence = share x n/(n+3) x completeness x origin, in 0..1, where share is the part of the
 * excess that the named layer or the named culprit explains, the larger of the two (unexplained: the
 * part nothing explains), n the slow calls (3 give 0.5, 27 give 0.9), completeness the share of hits that are in the data
 * (0.9 when not known), of the source that lost most of those the verdict rests on
 * and origin 1 for a baseline from aggregates, 0.8 for one from stored rows. */
#include "diagnose/compose/correlate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/calls/attribute.h"
#include "diagnose/calls/culprit.h"
#include "diagnose/compose/detector.h"
#include "diagnose/calls/slow_calls.h"
#include "diagnose/calls/lead.h"
#include "diagnose/accounts/tracer_name.h"
#include "diagnose/sentences/incident_text.h"
#include "diagnose/sentences/incident_stacks.h"
#include "diagnose/sentences/evidence.h"
#include "base/macros.h"
#include "stat/robust.h"
#include "wire/names.h"

#define ORDINARY_TAIL      1.5
#define PLAIN_RATIO        3
#define MILD_SPAN_SHARE    0.03
#define HIGH_SPAN_SHARE    0.10
#define HIGH_NS            (2 * NS_PER_S)
#define CALLS_HALF         3.0
#define ROWS_ORIGIN        0.8
#define STRETCHES_EXAMINED (4 * CORRELATE_INCIDENTS_MAX)

struct engine {
	const struct recording *rec;
	struct detection found;
	struct step_table steps;
	struct device_allocs allocs;
	struct attribution_index index;
	struct part_list parts;
	uint64_t lost, hits;
	double completeness; /* -1: not known */
};

static void engine_done(struct engine *g)
{
	detect_done(&g->found);
	steps_done(&g->steps);
	device_allocs_done(&g->allocs);
	attribute_index_done(&g->index);
	part_list_done(&g->parts);
}

/* Lost are also rows that could not be used, so that they are never dropped in silence. */
static void read_books(struct engine *g)
{
	const struct accounting *books = g->rec->books;

	g->completeness = -1;
	if (!books || books->unclean)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(books->source); i++) {
		g->hits += books->source[i].hits;
		g->lost += account_lost(&books->source[i]);
	}
	g->lost += g->found.ignored;
	g->hits = MAX(g->hits, g->lost);
	g->completeness = g->hits ? 1 - (double)g->lost / (double)g->hits : 1;
}

/* Of what the verdict rests on: the calls, the switches of their threads, and requests if it is the
 * disk. Rows that could not be used count as lost. */
static double completeness_for(const struct engine *g, const struct op_group *op, enum cause lead)
{
	unsigned sources = OF_SOURCE(op->source) | OF_SOURCE(SOURCE_HOST);

	if (lead == CAUSE_BLOCK_IO)
		sources |= OF_SOURCE(SOURCE_IO);
	if (g->completeness < 0)
		return -1;
	return MIN(g->completeness, completeness_of_sources(g->rec->books, sources));
}

static void judge(const struct engine *g, const struct op_group *op, struct incident *inc,
	struct verdict *ret)
{
	*ret = (struct verdict){.span_ns = detect_span_ns(&g->found, op),
		.from_aggregates = op->from_aggregates,
		.has_books = g->rec->books && !g->rec->books->unclean,
		.lost = g->lost,
		.hits = g->hits,
		.unseen = g->rec->books ? g->rec->books->unseen.processes : 0};
	lead_choose(inc, ret);
	inc->completeness = completeness_for(g, op, ret->lead->cause);
	inc->confidence = MAX(ret->layer_share, ret->lead_share + ret->other_share) *
			  (double)inc->slow_calls / ((double)inc->slow_calls + CALLS_HALF) *
			  completeness_weight(inc->completeness) *
			  (op->from_aggregates ? 1 : ROWS_ORIGIN);
}

static bool is_by_tracer(const struct verdict *v)
{
	return !v->is_crowd && v->lead->culprit_pid && tracer_is(v->lead->culprit);
}

static enum severity severity_of(const struct incident *inc, const struct verdict *v)
{
	double explained_ns = inc->explained * (double)inc->excess_ns;
	double own_ns = (double)(inc->last.ns - inc->first.ns) + (double)inc->slow_p50_ns;

	if (v->lead->cause == CAUSE_UNEXPLAINED)
		return SEVERITY_LOW;
	if (explained_ns >= HIGH_SPAN_SHARE * (double)v->span_ns ||
		(explained_ns >= HIGH_NS && explained_ns >= HIGH_SPAN_SHARE * own_ns))
		return is_by_tracer(v) ? SEVERITY_MEDIUM : SEVERITY_HIGH;
	return is_by_tracer(v) ? SEVERITY_LOW : SEVERITY_MEDIUM;
}

/* What nobody need look at: a stretch of calls that are only somewhat slower and cost the process
 * little, or an unexplained one within the op's own habits. */
static bool is_ordinary(
	const struct op_group *op, const struct verdict *v, const struct incident *inc)
{
	bool is_explained = v->lead->cause != CAUSE_UNEXPLAINED;
	double lost_ns = (is_explained ? inc->explained : 1) * (double)inc->excess_ns;
	bool is_mild =
		inc->tail_ratio < PLAIN_RATIO && lost_ns < MILD_SPAN_SHARE * (double)v->span_ns;

	if (is_explained)
		return is_mild;
	return op->from_aggregates &&
	       (is_mild || (double)inc->slow_p50_ns <= ORDINARY_TAIL * (double)op->calm_tail_ns);
}

/* The figures of a stretch, before anything is said about causes. */
static int measure(const struct engine *g, const struct slow_episode *s, struct incident *inc)
{
	const struct op_group *op = &g->found.ops.groups[s->group];
	const struct slow_call *calls = &g->found.slow[s->first];
	_cleanup_free_ uint64_t *durations = calloc(s->count, sizeof(*durations));
	char name[32];

	if (!durations)
		return -ENOMEM;
	*inc = (struct incident){.problem = PROBLEM_SLOW_CALL,
		.culprit_rank = -1,
		.pid = op->pid,
		.source = op->source,
		.op = op->op,
		.slow_calls = s->count,
		.calls = MAX(op->calls, (uint64_t)s->count),
		.baseline_ns = op->baseline_ns,
		.p50_ns = op->p50_ns,
		.p99_ns = op->p99_ns,
		.excess_ns = s->excess_ns,
		.first.ns = calls[0].start_ns};
	for (size_t i = 0; i < s->count; i++) {
		durations[i] = (uint64_t)(calls[i].end_ns - calls[i].start_ns);
		inc->last.ns = MAX(inc->last.ns, calls[i].start_ns);
	}
	robust_sort(durations, s->count);
	inc->slow_p50_ns = robust_median(durations, s->count);
	inc->tail_ratio = (double)inc->slow_p50_ns / (double)MAX(op->baseline_ns, UINT64_C(1));
	memcpy(inc->comm, g->rec->events[calls[0].event].comm, COMM_LEN);
	inc->comm[COMM_LEN - 1] = 0;
	snprintf(inc->id, sizeof(inc->id), "slow-%s-%u-%lld",
		wire_op_name(op->source, op->op, name), op->pid, (long long)inc->first.ns);
	return 0;
}

/* Returns 1 if the stretch is an incident, 0 if it is ordinary, or -ENOMEM. */
static int explain_episode(struct engine *g, const struct slow_episode *s, struct incident *inc)
{
	const struct op_group *op = &g->found.ops.groups[s->group];
	struct verdict v;
	int r;

	r = measure(g, s, inc);
	if (r == 0)
		r = attribute_episode(g->rec, &g->found, &g->index, s, &g->parts);
	if (r == 0)
		r = culprit_blame_disk(g->rec, &g->index, &g->parts, inc->pid);
	if (r == 0)
		r = culprit_sum(g->rec, &g->parts, inc);
	if (r < 0)
		return r;
	judge(g, op, inc, &v);
	if (is_ordinary(op, &v, inc))
		return 0;
	inc->severity = severity_of(inc, &v);
	r = incident_text_put(&g->found, s, &g->parts, &v, inc);
	if (r == 0)
		r = incident_stacks_sum(g->rec, &g->found, s, inc);
	if (r == 0)
		r = evidence_put(g->rec, &g->found, s, &g->parts, &v, inc);
	return r < 0 ? r : 1;
}

static int by_weight(const void *a, const void *b)
{
	const struct incident *x = a, *y = b;

	if (x->severity != y->severity)
		return x->severity > y->severity ? -1 : 1;
	if (tracer_is_blamed(x) != tracer_is_blamed(y))
		return tracer_is_blamed(x) ? 1 : -1;
	if (x->excess_ns != y->excess_ns)
		return x->excess_ns > y->excess_ns ? -1 : 1;
	if (x->first.ns != y->first.ns)
		return x->first.ns < y->first.ns ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (int)x->op - (int)y->op;
}

static int run_detectors(const struct engine *g, struct incident_list *out)
{
	const struct detector_input detector_input = {
		g->rec, &g->found, &g->steps, &g->allocs, g->completeness};
	static detector *const detectors[] = {
#define X(function) function,
		DETECTORS(X)
#undef X
			NULL};
	int r = 0;

	for (size_t i = 0; r == 0 && detectors[i]; i++)
		r = detectors[i](&detector_input, out);
	return r;
}

int correlate_run(const struct recording *rec, struct incident **ret, size_t *ret_count)
{
	_cleanup_(engine_done) struct engine g = {.rec = rec};
	_cleanup_free_ struct incident *list = NULL;
	struct incident_list found;
	size_t n = 0;
	int r;

	r = detect_run(rec, &g.found);
	if (r == 0)
		r = attribute_index(rec, &g.found, &g.index);
	if (r == 0)
		r = steps_find(rec, &g.steps);
	if (r == 0)
		r = device_allocs_run(rec, &g.allocs);
	if (r < 0)
		return r;
	read_books(&g);
	list = calloc(CORRELATE_INCIDENTS_MAX, sizeof(*list));
	if (!list)
		return -ENOMEM;
	found = (struct incident_list){.items = list, .max = CORRELATE_INCIDENTS_MAX};
	for (size_t i = 0; i < MIN(g.found.episode_count, (size_t)STRETCHES_EXAMINED) &&
			   n < CORRELATE_INCIDENTS_MAX / 2;
		i++) {
		r = explain_episode(&g, &g.found.slow_episodees[i], &list[n]);
		if (r < 0)
			return r;
		n += (size_t)r;
	}
	found.count = n;
	r = run_detectors(&g, &found);
	if (r < 0)
		return r;
	qsort(list, found.count, sizeof(*list), by_weight);
	*ret = TAKE(list);
	*ret_count = found.count;
	return 0;
}
