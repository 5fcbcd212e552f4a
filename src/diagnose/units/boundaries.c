/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/units/boundaries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/units/marks.h"
#include "diagnose/units/requests.h"
#include "diagnose/units/windows.h"
#include "base/array.h"
#include "base/macros.h"

#define SURE_MARKS    0.95
#define LIKELY_MARKS  0.8
#define SURE_WINDOWS  0.7 /* they are no steps, but time is accounted for all the same */
#define COVERED_SHARE 0.25
#define STEPS_HALF    2.0
#define WINDOWS_HALF  1.0

static int span_add(struct step_spans *s, int64_t start_ns, int64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	if (ARRAY_RESERVE(s->items, s->room, s->count + 1, RECORDING_ROWS_MAX) < 0)
		return -ENOMEM;
	s->items[s->count++] = (struct step_span){.start_ns = start_ns, .end_ns = end_ns};
	return 0;
}

static bool uses_gpu(const struct ledger_row *r)
{
	return r->launches || r->copies || r->waits || r->ns[LEDGER_LAUNCH] ||
	       r->ns[LEDGER_GPU_WAIT] || r->ns[LEDGER_COPY] || r->ns[LEDGER_GRAPH] ||
	       r->ns[LEDGER_COLLECTIVE];
}

/* Whether they are what the thread did on the GPU most of the time since the first of them: steps of a
 * warm-up are not those of a server. What came before them is set-up, however long it took. */
static bool is_covering(const struct timeline *t, const struct step_spans *s)
{
	struct timeline_range rows = timeline_of(t, s->tid);
	int64_t seen, covered;

	if (s->count < BOUNDARY_STEPS_MIN || !rows.count)
		return false;
	if (s->origin == STEP_BY_REQUEST) /* of many threads, and asked for already */
		return true;
	while (rows.count > 1 && !uses_gpu(rows.rows[rows.count - 1]))
		rows.count--;
	seen = ledger_end_ns(rows.rows[rows.count - 1]) - s->items[0].start_ns;
	covered = s->items[s->count - 1].end_ns - s->items[0].start_ns;
	return (double)covered >= COVERED_SHARE * (double)seen;
}

static double confidence(double sure, size_t n, double half)
{
	return sure * (double)n / ((double)n + half);
}

struct unit_search {
	const struct timeline *timeline;
	const struct step_table *waits;
};

struct unit_finder { /* one way to find units */
	enum step_origin origin;
	int (*find)(const struct unit_finder *f, const struct unit_search *in,
		struct step_spans *s); /* adds them to @s: its thread, spans and confidence */
	enum wire_mark mark;
	double sure;
};

/* Labels named "step" of the process, one after the other. */
static int from_labels(
	const struct unit_finder *f, const struct unit_search *in, struct step_spans *s)
{
	const struct recording *rec = in->timeline->rec;
	int64_t last = 0;

	for (size_t i = 0; i < rec->label_count; i++) {
		const struct annotation_label *l = &rec->labels[i];

		if (l->pid != s->pid || strcmp(l->key, "step"))
			continue;
		if (last && l->time_ns > last && span_add(s, last, l->time_ns) < 0)
			return -ENOMEM;
		last = l->time_ns;
	}
	s->tid = s->pid;
	s->confidence = confidence(f->sure, s->count, STEPS_HALF);
	return 0;
}

static int from_marks(
	const struct unit_finder *f, const struct unit_search *in, struct step_spans *s)
{
	_cleanup_(mark_times_done) struct mark_times m = {0};
	int r = marks_find(in->timeline, s->pid, f->mark, &m);

	for (size_t i = 1; r == 0 && i < m.count; i++)
		r = span_add(s, m.items[i - 1], m.items[i]);
	s->tid = m.tid;
	s->confidence = confidence(f->sure, s->count, STEPS_HALF);
	return r;
}

static bool process_feeds(const struct timeline *t, uint32_t pid)
{
	for (size_t i = 0; i < t->thread_count; i++)
		if (t->threads[i].pid == pid && t->threads[i].feeds)
			return true;
	return false;
}

/* Of a thread that only waits, while another one gives the GPU its work, the waits say nothing. */
static int from_waits(
	const struct unit_finder *f, const struct unit_search *in, struct step_spans *s)
{
	const struct step_list *l = steps_of(in->waits, s->pid);
	const struct timeline *t = in->timeline;

	if (!l || (!timeline_feeds(t, l->tid) && process_feeds(t, s->pid)))
		return 0;
	for (size_t i = 0; i < l->count; i++)
		if (span_add(s, l->items[i].start_ns, l->items[i].end_ns) < 0)
			return -ENOMEM;
	s->tid = l->tid;
	s->confidence = l->confidence * f->sure;
	return 0;
}

static int from_requests(
	const struct unit_finder *f, const struct unit_search *in, struct step_spans *s)
{
	_cleanup_(requests_done) struct requests q = {0};
	int r = requests_find(in->timeline, s->pid, &q);

	for (size_t i = 0; r == 0 && i < q.count; i++) {
		r = span_add(s, q.items[i].start_ns, q.items[i].end_ns);
		if (r == 0)
			s->items[s->count - 1].tid = q.items[i].tid;
	}
	s->tid = q.count ? q.items[q.count - 1].tid : 0;
	s->confidence = confidence(f->sure, s->count, STEPS_HALF);
	return r;
}

static int from_time(
	const struct unit_finder *f, const struct unit_search *in, struct step_spans *s)
{
	_cleanup_(windows_done) struct windows w = {0};
	int r = windows_find(in->timeline, s->pid, &w);

	for (size_t i = 0; r == 0 && i < w.count; i++)
		r = span_add(s, w.starts[i], w.starts[i] + (int64_t)w.each_ns);
	s->tid = w.tid;
	s->confidence = confidence(f->sure, s->count, WINDOWS_HALF);
	return r;
}

/* The surest first. A further kind of unit is a row here. */
static const struct unit_finder finders[] = {
	{STEP_BY_ANNOTATION, from_labels, MARK_TICK, 1},
	{STEP_BY_OPTIMIZER, from_marks, MARK_OPTIMIZER, SURE_MARKS},
	{STEP_BY_BACKWARD, from_marks, MARK_BACKWARD, SURE_MARKS},
	{STEP_BY_EXECUTE, from_marks, MARK_EXECUTE, LIKELY_MARKS},
	{STEP_BY_LOADER, from_marks, MARK_LOADER, LIKELY_MARKS},
	{STEP_BY_WAIT, from_waits, MARK_TICK, LIKELY_MARKS},
	{STEP_BY_GRAPH, from_marks, MARK_GRAPH, LIKELY_MARKS},
	{STEP_BY_COLLECTIVE, from_marks, MARK_COLLECTIVE, LIKELY_MARKS},
	{STEP_BY_REQUEST, from_requests, MARK_TICK, SURE_WINDOWS},
	{STEP_BY_TIME, from_time, MARK_TICK, SURE_WINDOWS},
};

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
				bool own = r->tid == (p->tid ? p->tid : s->tid);

				if (r->launches_off)
					p->launches_off |= launches;
				else
					p->launches +=
						share(r, r->launches, p->start_ns, p->end_ns);
				p->copy_bytes += share(r, r->copy_bytes, p->start_ns, p->end_ns);
				p->waits += share(r, r->waits, p->start_ns, p->end_ns);
				if (own)
					p->probed_ns +=
						share(r, probed_ns(r), p->start_ns, p->end_ns);
				if (!own || end <= p->start_ns || end > p->end_ns)
					continue;
				p->backwards += r->mark == MARK_BACKWARD;
				p->loads += r->mark == MARK_LOADER;
				p->executes += r->mark == MARK_EXECUTE;
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
	const struct unit_search in = {t, waits};
	bool found = false;

	*ret = (struct step_spans){.pid = pid};
	for (size_t i = 0; !found && i < ARRAY_SIZE(finders); i++) {
		int r;

		ret->count = 0;
		ret->origin = finders[i].origin;
		r = finders[i].find(&finders[i], &in, ret);
		if (r < 0)
			return r;
		found = is_covering(t, ret);
	}
	if (!found)
		ret->count = 0;
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
