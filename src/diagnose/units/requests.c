/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - see unit_finder.h. O(n log n) in the rows of the process. */
#include "diagnose/units/unit_finder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/macros.h"

#define REQUESTS_MIN 12
#define INSIDE_SHARE 0.5 /* of the process's work on the GPU */

static bool uses_gpu(const struct ledger_row *r)
{
	return r->launches || r->copies || r->waits || r->ns[LEDGER_LAUNCH] ||
	       r->ns[LEDGER_GPU_WAIT] || r->ns[LEDGER_COPY] || r->ns[LEDGER_GRAPH];
}

/* The lives of @th in which it used the GPU and that have ended: a number is used again. */
static int add_lives(
	const struct timeline *t, const struct timeline_thread *th, struct step_spans *ret)
{
	int64_t start = t->rows[th->first]->start.ns;
	bool used = false;

	for (size_t k = th->first; k < th->first + th->count; k++) {
		const struct ledger_row *r = t->rows[k];

		used |= uses_gpu(r);
		if (r->mark != MARK_EXIT)
			continue;
		if (used && unit_add(ret, start, ledger_end_ns(r), th->tid) < 0)
			return -ENOMEM;
		start = k + 1 < th->first + th->count ? t->rows[k + 1]->start.ns : start;
		used = false;
	}
	return 0;
}

ORDER(by_end, struct step_span, ASCENDING(end_ns) ?: ASCENDING(tid))

/* Puts them one after the other. */
static void put_in_line(struct step_spans *r)
{
	size_t kept = 0;

	if (r->count)
		qsort(r->items, r->count, sizeof(*r->items), by_end);
	for (size_t i = 0; i < r->count; i++) {
		struct step_span q = r->items[i];

		q.start_ns = kept ? MAX(q.start_ns, r->items[kept - 1].end_ns) : q.start_ns;
		if (q.end_ns > q.start_ns)
			r->items[kept++] = q;
	}
	r->count = kept;
}

/* Whether most of what @pid does on the GPU since the first of them is in one. */
static bool is_inside(const struct timeline *t, const struct step_spans *q)
{
	size_t all = 0, inside = 0;

	for (size_t i = 0; i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];
		size_t at = 0;

		for (size_t k = th->first; th->pid == q->pid && k < th->first + th->count; k++) {
			int64_t end = ledger_end_ns(t->rows[k]);

			if (!uses_gpu(t->rows[k]) || end <= q->items[0].start_ns)
				continue;
			while (at < q->count && q->items[at].end_ns <= t->rows[k]->start.ns)
				at++;
			all++;
			inside += at < q->count && q->items[at].start_ns < end;
		}
	}
	return (double)inside >= INSIDE_SHARE * (double)all;
}

int requests_find(const struct unit_search *in, struct step_spans *s)
{
	const struct timeline *t = in->timeline;

	for (size_t i = 0; !t->is_derived && i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];

		if (th->pid == s->pid && th->tid != s->pid && th->feeds && add_lives(t, th, s) < 0)
			return -ENOMEM;
	}
	put_in_line(s);
	if (s->count < REQUESTS_MIN || !is_inside(t, s))
		s->count = 0;
	s->tid = s->count ? s->items[s->count - 1].tid : 0;
	return 0;
}
