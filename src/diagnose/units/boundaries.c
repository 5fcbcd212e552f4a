/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/units/boundaries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/units/unit_finder.h"
#include "base/array.h"
#include "base/macros.h"

#define SURE_MARKS    0.95
#define LIKELY_MARKS  0.8
#define SURE_WINDOWS  0.7 /* they are no steps, but time is accounted for all the same */
#define COVERED_SHARE 0.25
#define STEPS_HALF    2.0
#define WINDOWS_HALF  1.0

int unit_add(struct step_spans *s, int64_t start_ns, int64_t end_ns, uint32_t tid)
{
	if (end_ns <= start_ns)
		return 0;
	if (ARRAY_RESERVE(s->items, s->room, s->count + 1, RECORDING_ROWS_MAX) < 0)
		return -ENOMEM;
	s->items[s->count++] =
		(struct step_span){.start_ns = start_ns, .end_ns = end_ns, .tid = tid};
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

/* Labels named "step" of the process, one after the other. */
static int labels_find(const struct unit_search *in, struct step_spans *s)
{
	const struct recording *rec = in->timeline->rec;
	int64_t last = 0;

	for (size_t i = 0; i < rec->label_count; i++) {
		const struct annotation_label *l = &rec->labels[i];

		if (l->pid != s->pid || strcmp(l->key, "step"))
			continue;
		if (last && unit_add(s, last, l->time_ns, 0) < 0)
			return -ENOMEM;
		last = l->time_ns;
	}
	s->tid = s->pid;
	return 0;
}

static bool process_feeds(const struct timeline *t, uint32_t pid)
{
	for (size_t i = 0; i < t->thread_count; i++)
		if (t->threads[i].pid == pid && t->threads[i].feeds)
			return true;
	return false;
}

/* Of a thread that only waits, while another one gives the GPU its work, the waits say nothing. */
static int waits_find(const struct unit_search *in, struct step_spans *s)
{
	const struct step_list *l = steps_of(in->waits, s->pid);
	const struct timeline *t = in->timeline;

	if (!l || (!timeline_feeds(t, l->tid) && process_feeds(t, s->pid)))
		return 0;
	for (size_t i = 0; i < l->count; i++)
		if (unit_add(s, l->items[i].start_ns, l->items[i].end_ns, 0) < 0)
			return -ENOMEM;
	s->tid = l->tid;
	s->confidence = l->confidence;
	return 0;
}

/* The surest first. A further kind of unit is a row here. */
static const struct unit_finder {
	enum step_origin origin;
	unit_find *find;
	enum wire_mark mark;
	double sure, half; /* so many units give half of that */
} finders[] = {
	{STEP_BY_ANNOTATION, labels_find, MARK_TICK, 1, STEPS_HALF},
	{STEP_BY_OPTIMIZER, marks_find, MARK_OPTIMIZER, SURE_MARKS, STEPS_HALF},
	{STEP_BY_BACKWARD, marks_find, MARK_BACKWARD, SURE_MARKS, STEPS_HALF},
	{STEP_BY_EXECUTE, marks_find, MARK_EXECUTE, LIKELY_MARKS, STEPS_HALF},
	{STEP_BY_LOADER, marks_find, MARK_LOADER, LIKELY_MARKS, STEPS_HALF},
	{STEP_BY_WAIT, waits_find, MARK_TICK, LIKELY_MARKS, 0},
	{STEP_BY_WAIT, marks_find, MARK_READ, LIKELY_MARKS, STEPS_HALF},
	{STEP_BY_GRAPH, marks_find, MARK_GRAPH, LIKELY_MARKS, STEPS_HALF},
	{STEP_BY_COLLECTIVE, marks_find, MARK_COLLECTIVE, LIKELY_MARKS, STEPS_HALF},
	{STEP_BY_POLL, polls_find, MARK_TICK, LIKELY_MARKS, STEPS_HALF},
	{STEP_BY_REQUEST, requests_find, MARK_TICK, SURE_WINDOWS, STEPS_HALF},
	{STEP_BY_REPLY, replies_find, MARK_TICK, LIKELY_MARKS, STEPS_HALF},
	{STEP_BY_TIME, windows_find, MARK_TICK, SURE_WINDOWS, WINDOWS_HALF},
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
	bool found = false;

	*ret = (struct step_spans){.pid = pid};
	for (size_t i = 0; !found && i < ARRAY_SIZE(finders); i++) {
		const struct unit_finder *f = &finders[i];
		int r;

		ret->count = 0;
		ret->tid = 0;
		ret->origin = f->origin;
		ret->confidence = 1;
		r = f->find(&(struct unit_search){t, waits, f->mark}, ret);
		if (r < 0)
			return r;
		ret->confidence *=
			f->sure * (double)ret->count / MAX((double)ret->count + f->half, 1.0);
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
	return gpu_open_count(t, ret);
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
