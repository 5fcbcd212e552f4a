/* SPDX-License-Identifier: Apache-2.0 */
/* replies.c - see unit_finder.h. O(n log n) in the receives of the process. */
#include "diagnose/units/unit_finder.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/rows/reply.h"
#include "diagnose/thresholds.h"
#include "base/array.h"
#include "base/search.h"
#include "base/macros.h"

struct reply {
	int64_t ns; /* when it was received */
	uint64_t wait_ns;
	uint32_t tid;
	bool is_fed; /* the GPU was given work before the next one */
};

struct replies {
	struct reply *items; /* in order of time */
	size_t count, room;
};

static void replies_done(struct replies *r)
{
	free(r->items);
}

static int collect(const struct recording *rec, uint32_t pid, struct replies *ret)
{
	if (!reply_asks(rec, pid))
		return 0;
	for (size_t i = 0; i < rec->event_count; i++) {
		const struct event *e = &rec->events[i];

		if (!reply_is(e, pid))
			continue;
		if (ARRAY_RESERVE(ret->items, ret->room, ret->count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		ret->items[ret->count++] =
			(struct reply){.ns = event_end_ns(e), .wait_ns = e->wait_ns, .tid = e->tid};
	}
	return 0;
}

ORDER(by_time, struct reply, ASCENDING(ns) ?: ASCENDING(tid))

static void note_fed(const struct timeline *t, uint32_t pid, struct replies *r)
{
	for (size_t i = 0; i < t->row_count; i++) {
		const struct ledger_row *row = t->rows[i];
		size_t at;

		if (row->pid != pid || !(row->launches || row->copies || row->ns[LEDGER_LAUNCH] ||
					       row->ns[LEDGER_COPY] || row->ns[LEDGER_GRAPH]))
			continue;
		at = LOWER_BOUND(k, r->count, r->items[k].ns < ledger_end_ns(row));
		if (at)
			r->items[at - 1].is_fed = true;
	}
}

int replies_find(const struct unit_search *in, struct step_spans *s)
{
	_cleanup_(replies_done) struct replies r = {0};
	int64_t last = 0;
	uint64_t waited = 0;

	if (collect(in->timeline->rec, s->pid, &r) < 0)
		return -ENOMEM;
	if (r.count)
		qsort(r.items, r.count, sizeof(*r.items), by_time);
	note_fed(in->timeline, s->pid, &r);
	for (size_t i = 0; i < r.count; i++) {
		waited += last ? r.items[i].wait_ns : 0;
		if (!r.items[i].is_fed)
			continue;
		if (last && unit_add(s, last, r.items[i].ns, 0) < 0)
			return -ENOMEM;
		last = r.items[i].ns;
		s->tid = r.items[i].tid;
	}
	/* else other things make a unit what it is */
	if (s->count && (double)waited < THRESHOLD(PART) * (double)(last - s->items[0].start_ns))
		s->count = 0;
	return 0;
}
