/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - see requests.h. O(n log n) in the rows of the process. */
#include "diagnose/units/requests.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/array.h"
#include "base/macros.h"

#define REQUESTS_MIN 12
#define INSIDE_SHARE 0.5 /* of the process's work on the GPU */

static bool uses_gpu(const struct ledger_row *r)
{
	return r->launches || r->copies || r->waits || r->ns[LEDGER_LAUNCH] ||
	       r->ns[LEDGER_GPU_WAIT] || r->ns[LEDGER_COPY] || r->ns[LEDGER_GRAPH];
}

static int request_add(struct requests *ret, int64_t start_ns, int64_t end_ns, uint32_t tid)
{
	if (end_ns <= start_ns)
		return 0;
	if (ARRAY_RESERVE(ret->items, ret->room, ret->count + 1, RECORDING_ROWS_MAX) < 0)
		return -ENOMEM;
	ret->items[ret->count++] = (struct request){start_ns, end_ns, tid};
	return 0;
}

/* The lives of @th in which it used the GPU and that have ended: a number is used again. */
static int add_lives(
	const struct timeline *t, const struct timeline_thread *th, struct requests *ret)
{
	int64_t start = t->rows[th->first]->start.ns;
	bool used = false;

	for (size_t k = th->first; k < th->first + th->count; k++) {
		const struct ledger_row *r = t->rows[k];

		used |= uses_gpu(r);
		if (r->mark != MARK_EXIT)
			continue;
		if (used && request_add(ret, start, ledger_end_ns(r), th->tid) < 0)
			return -ENOMEM;
		start = k + 1 < th->first + th->count ? t->rows[k + 1]->start.ns : start;
		used = false;
	}
	return 0;
}

ORDER(by_end, struct request, ASCENDING(end_ns) ?: ASCENDING(tid))

/* Puts them one after the other, as requests.h says. */
static void put_in_line(struct requests *r)
{
	size_t kept = 0;

	if (r->count)
		qsort(r->items, r->count, sizeof(*r->items), by_end);
	for (size_t i = 0; i < r->count; i++) {
		struct request q = r->items[i];

		q.start_ns = kept ? MAX(q.start_ns, r->items[kept - 1].end_ns) : q.start_ns;
		if (q.end_ns > q.start_ns)
			r->items[kept++] = q;
	}
	r->count = kept;
}

/* Whether most of what @pid does on the GPU since the first of them is in one. */
static bool is_inside(const struct timeline *t, uint32_t pid, const struct requests *q)
{
	size_t all = 0, inside = 0;

	for (size_t i = 0; i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];
		size_t at = 0;

		for (size_t k = th->first; th->pid == pid && k < th->first + th->count; k++) {
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

int requests_find(const struct timeline *t, uint32_t pid, struct requests *ret)
{
	*ret = (struct requests){.count = 0};
	for (size_t i = 0; !t->is_derived && i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];

		if (th->pid == pid && th->tid != pid && th->feeds && add_lives(t, th, ret) < 0)
			return -ENOMEM;
	}
	put_in_line(ret);
	if (ret->count < REQUESTS_MIN || !is_inside(t, pid, ret))
		ret->count = 0;
	return 0;
}

void requests_done(struct requests *r)
{
	free(r->items);
	*r = (struct requests){0};
}
