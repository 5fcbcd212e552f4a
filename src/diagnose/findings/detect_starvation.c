/* SPDX-License-Identifier: Apache-2.0 */
/* detect_starvation.c - pauses without work for the GPU, told by what they were spent on.
 *
 * gap.c finds the pauses and what each was spent on. Those of one process and kind are one
 * incident: NETWORK: tool-calls; agent-cost if such pauses are at least 60 % of the process's time,
 * which is indirect: nothing of tokens or requests is seen, only bursts and waits; WRITE:
 * checkpoint if they come back every so many steps, else starvation; SWAP:    told by detect_swap.c;
 *   others:  starvation.
 *
 * Material: at least 3 pauses and 20 ms, and 2 % of the time the process was observed. Severity by
 * that share: HIGH from 25 %, MEDIUM from 5 %, else LOW. LOW in any case where the cause was not
 * seen and the job may simply have had nothing to do: unknown, or asleep other than in half of the
 * steps or every so many for about the same time (a server that waits for requests sleeps as they
 * come). Asleep in the loop itself is a loader that is too slow, whatever it does: the steps show
 * that there was more to do. A server that has no requests is not told of at all (arrivals.h).
 *
 * Confidence = share x n/(n+3) x completeness, where share is the part of the excess that the
 * kind's own cause explains, n the pauses and completeness that of the data (0.9 when not known);
 * times 0.6 for what was not seen itself (asleep, unknown) and 0.8 for running, which is what is
 * left over. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/calls/arrivals.h"
#include "diagnose/calls/culprit.h"
#include "diagnose/sentences/idle_text.h"
#include "diagnose/sentences/incident_stacks.h"
#include "diagnose/findings/detect_swap.h"
#include "diagnose/sentences/evidence.h"
#include "stat/robust.h"
#include "wire/names.h"
#include "wire/op_kind.h"

#define LEAST_GAPS      3
#define LEAST_NS        (20 * NS_PER_MS)
#define LOW_SHARE       0.02
#define MEDIUM_SHARE    0.05
#define HIGH_SHARE      0.25
#define AGENT_SHARE     0.6
#define STEPS_WITH_GAPS 0.5 /* of the steps have a pause: the loop itself is starved */
#define EVEN_MAD        0.3 /* of the median; of a uniform distribution it is 0.5 */
#define GAPS_HALF       3.0
#define GAPS_SHOWN      5

static uint64_t process_span_ns(const struct detection *d, uint32_t pid)
{
	for (size_t i = 0; i < d->ops.count; i++) {
		const struct op_group *p = &d->ops.groups[i];

		if (p->pid == pid && p->source == 0 && p->last_ns > p->first_ns)
			return (uint64_t)(p->last_ns - p->first_ns);
	}
	return 1;
}

static int group_measure(struct idle_group *g)
{
	_cleanup_free_ uint64_t *lengths = calloc(g->count + 1, sizeof(*lengths));
	_cleanup_free_ size_t *at = calloc(g->count + 1, sizeof(*at));

	if (!lengths || !at)
		return -ENOMEM;
	g->span_ns = process_span_ns(g->s->slow, g->pid);
	for (size_t i = 0; i < g->count; i++) {
		const struct gap *p = &g->gaps->items[g->members[i]];

		g->excess_ns += p->span.excess_ns;
		g->bytes += g->idle == IDLE_WRITE ? p->written : p->read;
		lengths[i] = (uint64_t)(p->span.end_ns - p->span.start_ns);
		at[i] = p->step;
	}
	robust_sort(lengths, g->count);
	g->typical_ns = robust_median(lengths, g->count);
	g->is_even = (double)robust_mad(lengths, g->count) <= EVEN_MAD * (double)g->typical_ns;
	g->share = (double)g->excess_ns / (double)g->span_ns;
	g->is_periodic = g->steps && period_of_steps(g->steps, at, g->count, &g->period);
	return 0;
}

static enum problem problem_of(const struct idle_group *g)
{
	if (g->idle == IDLE_NETWORK)
		return g->share >= AGENT_SHARE ? PROBLEM_AGENT_COST : PROBLEM_TOOL_CALLS;
	return g->idle == IDLE_WRITE && g->is_periodic ? PROBLEM_CHECKPOINT : PROBLEM_STARVATION;
}

static enum severity severity_of(const struct idle_group *g, enum problem p)
{
	bool in_loop =
		g->steps && ((g->is_periodic && g->is_even) ||
				    (double)g->count >= STEPS_WITH_GAPS * (double)g->steps->count);
	enum severity s = g->share >= HIGH_SHARE     ? SEVERITY_HIGH
			  : g->share >= MEDIUM_SHARE ? SEVERITY_MEDIUM
						     : SEVERITY_LOW;

	if (g->idle == IDLE_UNKNOWN || (g->idle == IDLE_ASLEEP && !in_loop) ||
		(g->idle == IDLE_HOST_CODE && !g->steps))
		return SEVERITY_LOW;
	return MIN(s, problem_row(p)->worst);
}

static const struct gap *worst_of(const struct idle_group *g, size_t rank, size_t *order)
{
	return &g->gaps->items[order[rank]];
}

static int by_excess(const void *a, const void *b, void *gaps)
{
	const struct gap *g = gaps;
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	if (g[x].span.excess_ns != g[y].span.excess_ns)
		return g[x].span.excess_ns > g[y].span.excess_ns ? -1 : 1;
	return (x > y) - (x < y);
}

static const struct part *largest_part(const struct idle_group *g, const struct gap *p)
{
	const struct part *best = NULL;

	for (size_t i = p->part; i < p->part + p->parts; i++) {
		const struct part *v = &g->gaps->parts.items[i];

		if (v->event != SIZE_MAX && (!best || v->ns > best->ns))
			best = v;
	}
	return best;
}

static void put_timeline(const struct idle_group *g, const struct gap *p, struct incident *inc)
{
	const struct event *before = &g->s->rec->events[p->wait];
	const struct event *next = &g->s->rec->events[p->next];
	const struct part *part = largest_part(g, p);
	char a[32], b[32];

	incident_step(inc, before->start.ns, before->dur_ns, "CUDA",
		wire_op_name(before->source, before->op, a),
		op_kind_is_gpu_wait(before->source, before->op)
			? "thread %u waits for the GPU: it has no work queued afterwards"
			: "thread %u gives the GPU no work: it has none since its last wait",
		p->span.tid);
	incident_step(inc, p->span.start_ns, (uint64_t)(p->span.end_ns - p->span.start_ns),
		idle_rows[g->idle].layer, "pause", "%s", idle_rows[g->idle].what);
	if (part)
		incident_step(inc, part->start_ns, (uint64_t)(part->end_ns - part->start_ns),
			cause_layer(part->cause), cause_name(part->cause), "its longest part%s%s",
			part->culprit_pid ? ", by " : "", part->culprit_pid ? part->culprit : "");
	incident_step(inc, next->start.ns, next->dur_ns, "CUDA",
		wire_op_name(next->source, next->op, b), "the next call of the thread");
}

static int put_evidence(const struct idle_group *g, struct incident *inc)
{
	_cleanup_free_ size_t *order = calloc(g->count + 1, sizeof(*order));
	int64_t from = INT64_MAX, to = 0;

	if (!order)
		return -ENOMEM;
	memcpy(order, g->members, g->count * sizeof(*order));
	qsort_r(order, g->count, sizeof(*order), by_excess, g->gaps->items);
	put_timeline(g, worst_of(g, 0, order), inc);
	for (size_t i = 0; i < MIN(g->count, (size_t)GAPS_SHOWN); i++) {
		const struct gap *p = worst_of(g, i, order);
		const struct part *part = largest_part(g, p);
		const struct event *rows[] = {&g->s->rec->events[p->wait],
			&g->s->rec->events[p->next], part ? &g->s->rec->events[part->event] : NULL};

		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			if (!rows[k])
				continue;
			incident_evidence(inc, rows[k]);
			from = MIN(from, rows[k]->start.ns);
			to = MAX(to, event_end_ns(rows[k]));
		}
	}
	return evidence_sql_put(g->s->rec, from, to, inc);
}

static int put_stacks(const struct idle_group *g, struct incident *inc)
{
	_cleanup_free_ struct incident_stack *list = calloc(g->count + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < g->count; i++) {
		const struct gap *p = &g->gaps->items[g->members[i]];
		uint64_t hash = g->s->rec->events[p->next].stack_hash;

		if (hash)
			list[n++] = (struct incident_stack){hash, p->span.excess_ns, 1};
	}
	incident_stacks_merge(list, n, inc);
	return 0;
}

/* The parts of the group's pauses as the incident's causes. */
static int put_causes(const struct idle_group *g, struct incident *inc)
{
	_cleanup_(part_list_done) struct part_list own = {0};
	uint64_t seen = 0;
	size_t n = 0;
	int r;

	for (size_t i = 0; i < g->count; i++)
		n += g->gaps->items[g->members[i]].parts;
	own.items = calloc(n + 1, sizeof(*own.items));
	if (!own.items)
		return -ENOMEM;
	for (size_t i = 0; i < g->count; i++) {
		const struct gap *p = &g->gaps->items[g->members[i]];

		if (p->parts)
			memcpy(own.items + own.count, g->gaps->parts.items + p->part,
				p->parts * sizeof(*own.items));
		own.count += p->parts;
	}
	own.room = n + 1;
	r = culprit_blame_disk(g->s->rec, &g->gaps->index, &own, g->pid);
	if (r == 0)
		r = culprit_sum(g->s->rec, &own, inc);
	for (int i = 0; i < inc->cause_count; i++)
		if (inc->causes[i].cause != CAUSE_UNEXPLAINED &&
			inc->causes[i].cause != CAUSE_ASLEEP)
			seen += inc->causes[i].ns;
	inc->explained = inc->excess_ns ? (double)seen / (double)inc->excess_ns : 0;
	return r;
}

static int group_report(struct idle_group *g, struct incident_list *out)
{
	const struct gap *first = &g->gaps->items[g->members[0]];
	const struct gap *last = &g->gaps->items[g->members[g->count - 1]];
	const struct event *next = &g->s->rec->events[first->next];
	enum problem problem = problem_of(g);
	struct incident *inc = incident_begin(out, problem);
	int r;

	if (!inc)
		return 0;
	incident_id(inc, g->pid, first->span.start_ns);
	snprintf(inc->id + strlen(inc->id), sizeof(inc->id) - strlen(inc->id), "-%d", g->idle);
	memcpy(inc->comm, next->comm, COMM_LEN);
	inc->last.ns = last->span.start_ns;
	inc->source = next->source;
	inc->op = next->op;
	inc->count = g->count;
	inc->unit = "pauses";
	inc->excess_ns = g->excess_ns;
	inc->slow_p50_ns = g->typical_ns;
	inc->severity = severity_of(g, problem);
	if (g->is_periodic) {
		inc->period_steps = (uint32_t)MIN(lround(g->period.period), 1000000L);
		inc->period_confidence = g->period.confidence;
	}
	r = put_causes(g, inc);
	if (r < 0)
		return r;
	inc->completeness =
		completeness_of_sources(g->s->rec->books, OF_CALLS | OF_SOURCE(SOURCE_HOST));
	inc->confidence = idle_share(inc, g->idle) * idle_rows[g->idle].seen * (double)g->count /
			  ((double)g->count + GAPS_HALF) * completeness_weight(inc->completeness);
	r = put_stacks(g, inc);
	if (r == 0)
		r = put_evidence(g, inc);
	if (r == 0)
		r = idle_describe(g, inc);
	if (r == 0)
		incident_keep(out, inc);
	return r;
}

/* Whether the pauses are to be told: 0 if the process just has no requests, 1 if not, or -ENOMEM. */
static int is_starved(const struct idle_group *g)
{
	int r = 0;

	if (g->idle == IDLE_ASLEEP || g->idle == IDLE_NETWORK)
		r = arrivals_are_requests(g->s->rec, g->gaps, g->members, g->count);
	return r < 0 ? r : !r;
}

static int process_report(const struct detector_input *s, const struct step_table *steps,
	const struct gap_list *gaps, size_t first, size_t end, size_t *members,
	struct incident_list *out)
{
	for (int kind = 0; kind < IDLE_COUNT; kind++) {
		struct idle_group g = {.s = s,
			.gaps = gaps,
			.steps = steps_of(steps, gaps->items[first].span.pid),
			.members = members,
			.idle = (enum idle)kind,
			.pid = gaps->items[first].span.pid};
		int r;

		for (size_t i = first; i < end; i++)
			if (gaps->items[i].idle == g.idle)
				members[g.count++] = i;
		if (kind == IDLE_SWAP || g.count < LEAST_GAPS)
			continue;
		r = group_measure(&g);
		if (r == 0 && g.excess_ns >= LEAST_NS && g.share >= LOW_SHARE)
			r = is_starved(&g);
		if (r > 0)
			r = group_report(&g, out);
		if (r < 0)
			return r;
	}
	return 0;
}

int detect_starvation(const struct detector_input *s, struct incident_list *out)
{
	_cleanup_(gaps_done) struct gap_list gaps = {0};
	_cleanup_free_ size_t *members = NULL;
	size_t next;
	int r;

	r = gaps_find(s->rec, s->steps, &gaps);
	if (r == 0)
		r = swap_report(s, s->steps, &gaps, out);
	if (r < 0)
		return r;
	members = calloc(gaps.count + 1, sizeof(*members));
	if (!members)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < gaps.count; i = next) {
		for (next = i;
			next < gaps.count && gaps.items[next].span.pid == gaps.items[i].span.pid;)
			next++;
		r = process_report(s, s->steps, &gaps, i, next, members, out);
	}
	return r;
}
