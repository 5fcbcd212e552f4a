/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/units/boundaries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/accounts/place.h"
#include "base/array.h"
#include "base/macros.h"
#include "base/search.h"
#include "stat/robust.h"

#define PLACES_MAX    64
#define SURE_MARKS    0.95
#define LIKELY_MARKS  0.8
#define COVERED_SHARE 0.25
#define STEPS_HALF    5.0
#define PIECE_NS      ((int64_t)NS_PER_S) /* of time, where there are no steps */

struct mark_place {     /* marks of one kind, thread and place of the program */
	uint64_t place; /* place.h; 0: not known */
	uint32_t tid;
	size_t count;
};

struct mark_kind {
	enum wire_mark mark;
	enum step_origin origin;
	double sure;
};

static const struct mark_kind kinds[] = {
	{MARK_OPTIMIZER, STEP_BY_OPTIMIZER, SURE_MARKS},
	{MARK_BACKWARD, STEP_BY_BACKWARD, SURE_MARKS},
	{MARK_EXECUTE, STEP_BY_EXECUTE, LIKELY_MARKS},
	{MARK_LOADER, STEP_BY_LOADER, LIKELY_MARKS},
	{MARK_TICK, STEP_BY_WAIT, 0}, /* stands for the waits that recur */
	{MARK_GRAPH, STEP_BY_GRAPH, LIKELY_MARKS},
	{MARK_COLLECTIVE, STEP_BY_COLLECTIVE, LIKELY_MARKS},
};

static uint64_t place_of(const struct timeline *t, const struct ledger_row *r)
{
	const struct stack_list *stacks = t->rec->stacks;
	const struct stack *s = stacks && r->stack_hash ? stack_find(stacks, r->stack_hash) : NULL;

	return s && stack_user_frame(s) ? place_key(s) : 0;
}

/* The place with most marks of @mark in @pid; count 0: there is none. */
static struct mark_place busiest_place(const struct timeline *t, uint32_t pid, enum wire_mark mark)
{
	struct mark_place places[PLACES_MAX] = {0}, best = {0};
	size_t used = 0;

	for (size_t i = 0; i < t->row_count; i++) {
		const struct ledger_row *r = t->rows[i];
		uint64_t place;
		size_t k = 0;

		if (r->pid != pid || r->mark != mark)
			continue;
		place = place_of(t, r);
		while (k < used && (places[k].tid != r->tid || places[k].place != place))
			k++;
		if (k == PLACES_MAX)
			continue;
		used = MAX(used, k + 1);
		places[k].tid = r->tid;
		places[k].place = place;
		places[k].count++;
	}
	for (size_t k = 0; k < used; k++)
		if (!best.count || (places[k].place && !best.place) ||
			(places[k].count > best.count && !places[k].place == !best.place))
			best = places[k];
	return best;
}

static int span_add(struct step_spans *s, int64_t start_ns, int64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	if (ARRAY_RESERVE(s->items, s->room, s->count + 1, CORRELATE_ROWS_MAX) < 0)
		return -ENOMEM;
	s->items[s->count++] = (struct step_span){.start_ns = start_ns, .end_ns = end_ns};
	return 0;
}

/* Whether they are what the thread does most of the time: steps of a warm-up are not those of a
 * server. */
static bool is_covering(const struct timeline *t, const struct step_spans *s)
{
	struct timeline_range rows = timeline_of(t, s->tid);
	int64_t seen;

	if (s->count < BOUNDARY_STEPS_MIN || !rows.count)
		return false;
	seen = ledger_end_ns(rows.rows[rows.count - 1]) - rows.rows[0]->start.ns;
	return (double)(s->items[s->count - 1].end_ns - s->items[0].start_ns) >=
	       COVERED_SHARE * (double)seen;
}

static double confidence(double sure, size_t n)
{
	return sure * (double)n / ((double)n + STEPS_HALF);
}

static int from_marks(const struct timeline *t, const struct mark_kind *kind, struct step_spans *s)
{
	struct mark_place place = busiest_place(t, s->pid, kind->mark);
	struct timeline_range rows = timeline_of(t, place.tid);
	int64_t last = 0;

	for (size_t i = 0; i < rows.count; i++) {
		const struct ledger_row *r = rows.rows[i];

		uint64_t at = r->mark == kind->mark ? place_of(t, r) : 0;

		if (r->mark != kind->mark || (at && at != place.place))
			continue;
		if (last && span_add(s, last, ledger_end_ns(r)) < 0)
			return -ENOMEM;
		last = ledger_end_ns(r);
	}
	s->tid = place.tid;
	s->origin = kind->origin;
	s->confidence = confidence(kind->sure, s->count);
	return 0;
}

/* Labels named "step" of the process, one after the other. */
static int from_labels(const struct timeline *t, uint32_t pid, struct step_spans *s)
{
	const struct recording *rec = t->rec;
	int64_t last = 0;

	for (size_t i = 0; i < rec->label_count; i++) {
		const struct annotation_label *l = &rec->labels[i];

		if (l->pid != pid || strcmp(l->key, "step"))
			continue;
		if (last && l->time_ns > last && span_add(s, last, l->time_ns) < 0)
			return -ENOMEM;
		last = l->time_ns;
	}
	s->tid = pid;
	s->origin = STEP_BY_ANNOTATION;
	s->confidence = confidence(1, s->count);
	return 0;
}

static int from_waits(const struct step_table *waits, uint32_t pid, struct step_spans *s)
{
	const struct step_list *l = steps_of(waits, pid);

	for (size_t i = 0; l && i < l->count; i++)
		if (span_add(s, l->items[i].start_ns, l->items[i].end_ns) < 0)
			return -ENOMEM;
	if (!l)
		return 0;
	s->tid = l->tid;
	s->origin = STEP_BY_WAIT;
	s->confidence = l->confidence * LIKELY_MARKS;
	return 0;
}

/* The thread of @pid that spent most time in calls; false: none did. */
static bool busiest_thread(const struct timeline *t, uint32_t pid, uint32_t *ret)
{
	uint64_t most = 0;

	for (size_t i = 0; i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];
		uint64_t sum = 0;

		if (th->pid != pid)
			continue;
		for (size_t k = th->first; k < th->first + th->count; k++)
			for (int line = LEDGER_LAUNCH; line <= LEDGER_CALL; line++)
				sum += t->rows[k]->ns[line];
		if (sum > most) {
			most = sum;
			*ret = th->tid;
		}
	}
	return most > 0;
}

static int from_time(const struct timeline *t, uint32_t pid, struct step_spans *s)
{
	struct timeline_range rows;
	uint32_t tid;

	if (!busiest_thread(t, pid, &tid))
		return 0;
	rows = timeline_of(t, tid);
	s->tid = tid;
	s->origin = STEP_BY_TIME;
	for (int64_t at = rows.rows[0]->start.ns, end = ledger_end_ns(rows.rows[rows.count - 1]);
		at + PIECE_NS <= end; at += PIECE_NS)
		if (span_add(s, at, at + PIECE_NS) < 0)
			return -ENOMEM;
	return 0;
}

/* The share of @r that lies in [from, to). */
static uint64_t share(const struct ledger_row *r, uint64_t value, int64_t from_ns, int64_t to_ns)
{
	int64_t start = MAX(r->start.ns, from_ns), end = MIN(ledger_end_ns(r), to_ns);

	return end > start ? (uint64_t)((__uint128_t)value * (uint64_t)(end - start) / r->dur_ns)
			   : 0;
}

/* In which launches were probed: where they were for a part of it, half is as good as any guess. */
static uint64_t probed_ns(const struct ledger_row *r)
{
	return !r->launches_off ? r->dur_ns : r->launches ? r->dur_ns / 2 : 0;
}

/* Whether launches of the thread are missing where they were not probed: one that never launches has none. */
static bool is_launching(const struct timeline *t, const struct timeline_thread *th)
{
	for (size_t k = th->first; k < th->first + th->count; k++)
		if (t->rows[k]->launches)
			return true;
	return false;
}

static void count_work(const struct timeline *t, struct step_spans *s)
{
	for (size_t i = 0; i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];
		size_t at = 0;
		bool launches;

		if (th->pid != s->pid)
			continue;
		launches = th->tid == s->tid || is_launching(t, th);
		for (size_t k = th->first; k < th->first + th->count; k++) {
			const struct ledger_row *r = t->rows[k];
			int64_t end = ledger_end_ns(r);

			while (at < s->count && s->items[at].end_ns <= r->start.ns)
				at++;
			for (size_t n = at; n < s->count && s->items[n].start_ns < end; n++) {
				struct step_span *p = &s->items[n];

				if (r->launches_off)
					p->launches_off |= launches;
				else
					p->launches +=
						share(r, r->launches, p->start_ns, p->end_ns);
				p->copy_bytes += share(r, r->copy_bytes, p->start_ns, p->end_ns);
				p->waits += share(r, r->waits, p->start_ns, p->end_ns);
				if (r->tid == s->tid)
					p->wait_ns += share(
						r, r->ns[LEDGER_GPU_WAIT], p->start_ns, p->end_ns);
				if (r->tid == s->tid)
					p->probed_ns +=
						share(r, probed_ns(r), p->start_ns, p->end_ns);
				if (r->tid != s->tid || end <= p->start_ns || end > p->end_ns)
					continue;
				p->backwards += r->mark == MARK_BACKWARD;
				p->loads += r->mark == MARK_LOADER;
			}
		}
	}
}

static void name_thread(const struct timeline *t, struct step_spans *s)
{
	struct timeline_range rows = timeline_of(t, s->tid);

	if (rows.count)
		memcpy(s->comm, rows.rows[rows.count - 1]->comm, COMM_LEN);
}

int boundaries_find(const struct timeline *t, const struct step_table *waits, uint32_t pid,
	struct step_spans *ret)
{
	int r;

	*ret = (struct step_spans){.pid = pid};
	r = from_labels(t, pid, ret);
	for (size_t i = 0; r == 0 && ret->count < BOUNDARY_STEPS_MIN && i < ARRAY_SIZE(kinds);
		i++) {
		ret->count = 0;
		r = kinds[i].origin == STEP_BY_WAIT ? from_waits(waits, pid, ret)
						    : from_marks(t, &kinds[i], ret);
	}
	if (r == 0 && !is_covering(t, ret)) {
		ret->count = 0;
		r = from_time(t, pid, ret);
	}
	if (r < 0)
		return r;
	name_thread(t, ret);
	count_work(t, ret);
	for (size_t i = 0; i < ret->count; i++) {
		struct step_span *p = &ret->items[i];

		if (t->is_derived) /* only some calls are known */
			p->launches = p->copy_bytes = p->waits = 0;
		else if (p->launches_off)
			p->launches = 0;
	}
	return 0;
}

bool boundaries_have(const struct timeline *t, uint32_t pid, enum wire_mark mark)
{
	for (size_t i = 0; i < t->row_count; i++)
		if (t->rows[i]->pid == pid && t->rows[i]->mark == mark)
			return true;
	return false;
}

void boundaries_done(struct step_spans *s)
{
	free(s->items);
	*s = (struct step_spans){0};
}
