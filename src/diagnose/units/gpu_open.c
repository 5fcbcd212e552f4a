/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_open.c - see unit_finder.h. A row says what was called in it, not when: work is taken to begin with its row, and to be
 * over where a row ends with a wait. */
#include "diagnose/units/unit_finder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/macros.h"
#include "base/search.h"
#include "diagnose/thresholds.h"
#include "wire/op_kind.h"

struct open_span {
	int64_t start_ns, end_ns;
};

ORDER(by_start, struct open_span, ASCENDING(start_ns) ?: ASCENDING(end_ns))

struct open_list {
	struct open_span *items;
	size_t count, room;
};

static int open_add(struct open_list *l, int64_t start_ns, int64_t end_ns)
{
	if (end_ns <= start_ns)
		return 0;
	if (ARRAY_RESERVE(l->items, l->room, l->count + 1, RECORDING_ROWS_MAX) < 0)
		return -ENOMEM;
	l->items[l->count++] = (struct open_span){start_ns, end_ns};
	return 0;
}

/* Who waits for an event waits for a part of the work: more may be left. */
static bool waits_for_parts(const struct recording *rec, uint32_t pid)
{
	uint64_t all = 0, events = 0;

	for (size_t i = 0; i < rec->aggregate_count; i++) {
		const struct aggregate *g = &rec->aggregates[i];

		if (g->pid != pid || g->flags & WIRE_NESTED ||
			!op_kind_is_gpu_wait(g->source, g->op))
			continue;
		all += g->sketch.count;
		events += g->op == (g->source == SOURCE_CUDA ? CUDA_EVENT_SYNC : DRIVER_EVENT_SYNC)
				  ? g->sketch.count
				  : 0;
	}
	return (double)events > THRESHOLD(FEW) * (double)all;
}

static bool gives_work(const struct ledger_row *r)
{
	return r->launches || r->copies || r->launches_off || r->ns[LEDGER_LAUNCH] ||
	       r->ns[LEDGER_GRAPH] || r->ns[LEDGER_COLLECTIVE];
}

/* Whether nothing is left to do at the end of @r. */
static bool drains(const struct ledger_row *r)
{
	return r->mark == MARK_WAIT || r->mark == MARK_READ || (r->waits && !gives_work(r));
}

static bool never_waits(const struct timeline *t, const struct timeline_thread *th)
{
	for (size_t k = th->first; k < th->first + th->count; k++)
		if (t->rows[k]->waits)
			return false;
	return true;
}

/* The time in which work of @th's may be left. Of a thread that never waits other threads of the process do: @ends are the
 * ends of their waits. */
static int add_thread(const struct timeline *t, const struct timeline_thread *th,
	const struct open_list *ends, struct open_list *ret)
{
	bool waits = !never_waits(t, th);
	int64_t since = INT64_MAX, end = 0;

	for (size_t k = th->first; k < th->first + th->count; k++) {
		const struct ledger_row *r = t->rows[k];

		end = ledger_end_ns(r);
		if (gives_work(r))
			since = MIN(since, r->start.ns);
		if (since == INT64_MAX || (waits && !drains(r)))
			continue;
		if (!waits) {
			size_t at = LOWER_BOUND(i, ends->count, ends->items[i].end_ns < end);

			if (at == ends->count)
				break;
			end = ends->items[at].end_ns;
		}
		if (open_add(ret, since, end) < 0)
			return -ENOMEM;
		since = INT64_MAX;
	}
	return since == INT64_MAX
		       ? 0
		       : open_add(ret, since,
				 MAX(end, ledger_end_ns(t->rows[th->first + th->count - 1])));
}

ORDER(by_end, struct open_span, ASCENDING(end_ns))

static int find_ends(const struct timeline *t, uint32_t pid, struct open_list *ret)
{
	for (size_t i = 0; i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];

		for (size_t k = th->first; th->pid == pid && k < th->first + th->count; k++)
			if (t->rows[k]->waits && drains(t->rows[k]) &&
				open_add(ret, INT64_MIN, ledger_end_ns(t->rows[k])) < 0)
				return -ENOMEM;
	}
	SORT(ret->items, ret->count, by_end);
	return 0;
}

static void add_to_units(const struct open_list *l, struct step_spans *s)
{
	int64_t until = INT64_MIN; /* what overlaps counts once */
	size_t at = 0;

	for (size_t i = 0; i < l->count; i++) {
		int64_t from = MAX(l->items[i].start_ns, until), to = l->items[i].end_ns;

		while (at < s->count && s->items[at].end_ns <= from)
			at++;
		for (size_t n = at; n < s->count && s->items[n].start_ns < to; n++) {
			struct step_span *u = &s->items[n];
			int64_t both = MIN(to, u->end_ns) - MAX(from, u->start_ns);

			u->open_ns += both > 0 ? (uint64_t)both : 0;
		}
		until = MAX(until, to);
	}
}

int gpu_open_count(const struct timeline *t, struct step_spans *s)
{
	struct open_list ends = {0}, open = {0};
	int r = 0;

	if (t->is_derived || waits_for_parts(t->rec, s->pid))
		return 0;
	r = find_ends(t, s->pid, &ends);
	for (size_t i = 0; r == 0 && i < t->thread_count; i++)
		if (t->threads[i].pid == s->pid && t->threads[i].feeds)
			r = add_thread(t, &t->threads[i], &ends, &open);
	if (r == 0) {
		SORT(open.items, open.count, by_start);
		add_to_units(&open, s);
	}
	free(ends.items);
	free(open.items);
	return r;
}
