/* SPDX-License-Identifier: Apache-2.0 */
/* windows.c - see windows.h. */
#include "diagnose/units/windows.h"

#include "base/macros.h"

#define WANTED     20 /* windows, where the recording is neither short nor long */
#define EACH_MAX   ((uint64_t)NS_PER_S)
#define EACH_USUAL (250 * NS_PER_MS)
#define EACH_MIN   (50 * NS_PER_MS)

struct feeding { /* by one thread */
	uint64_t calls;
	uint64_t ns; /* in them: some are not counted all the time */
};

static struct feeding feeding_of(const struct timeline *t, const struct timeline_thread *th)
{
	struct feeding f = {0};

	for (size_t k = th->first; k < th->first + th->count; k++) {
		const struct ledger_row *r = t->rows[k];

		f.calls += (uint64_t)r->launches + r->copies + (r->mark == MARK_GRAPH);
		f.ns += r->ns[LEDGER_LAUNCH] + r->ns[LEDGER_COPY] + r->ns[LEDGER_GRAPH] +
			r->ns[LEDGER_COLLECTIVE] + r->ns[LEDGER_GPU_WAIT];
	}
	return f;
}

static bool is_more(const struct feeding *a, const struct feeding *b)
{
	return a->calls != b->calls ? a->calls > b->calls : a->ns > b->ns;
}

static const struct timeline_thread *feeding_thread(const struct timeline *t, uint32_t pid)
{
	const struct timeline_thread *best = NULL;
	struct feeding most = {0};

	for (size_t i = 0; i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];
		struct feeding f;

		if (th->pid != pid || !th->feeds || th->is_idle)
			continue;
		f = feeding_of(t, th);
		if (!best || is_more(&f, &most)) {
			most = f;
			best = th;
		}
	}
	return best;
}

/* A model that is copied to the GPU is copied and waited for, and nothing else. */
static bool is_work(const struct ledger_row *r)
{
	return r->launches || r->ns[LEDGER_LAUNCH] || r->ns[LEDGER_GRAPH] ||
	       r->ns[LEDGER_COLLECTIVE] || (!r->copies && r->ns[LEDGER_GPU_WAIT]);
}

static bool is_use(const struct ledger_row *r)
{
	return is_work(r) || r->copies || r->ns[LEDGER_GPU_WAIT];
}

static bool is_rank(const struct timeline *t, const struct timeline_thread *th)
{
	for (size_t k = th->first; k < th->first + th->count; k++)
		if (t->rows[k]->ns[LEDGER_COLLECTIVE])
			return true;
	return false;
}

/* From the first work of @th to the end of its last, of a rank to its own end: others may wait for it.
 * Copies alone are work where there is nothing else. */
static bool span_of(const struct timeline *t, const struct timeline_thread *th, int64_t *ret_start,
	int64_t *ret_end)
{
	size_t first = th->first, end = th->first + th->count, use;
	bool rank = is_rank(t, th);

	while (first < end && !is_work(t->rows[first]))
		first++;
	for (use = th->first; first == end && use < end;)
		if (is_use(t->rows[use]))
			first = use;
		else
			use++;
	while (end > first && !rank && !is_use(t->rows[end - 1]))
		end--;
	if (first == end)
		return false;
	*ret_start = t->rows[first]->start.ns;
	*ret_end = ledger_end_ns(t->rows[end - 1]);
	return true;
}

static uint64_t each_of(uint64_t length)
{
	uint64_t each = length / WANTED;

	if (each < EACH_USUAL) /* a short one is better told with half as many */
		each = MIN(EACH_USUAL, length * 2 / WANTED);
	return MAX(MIN(each, EACH_MAX), EACH_MIN);
}

bool windows_find(const struct timeline *t, uint32_t pid, struct windows *ret)
{
	const struct timeline_thread *th = feeding_thread(t, pid);
	int64_t start, end;
	uint64_t each;

	if (!th || !span_of(t, th, &start, &end))
		return false;
	each = each_of((uint64_t)(end - start));
	*ret = (struct windows){th->tid, start, each, (size_t)((uint64_t)(end - start) / each)};
	return ret->count > 0;
}
