/* SPDX-License-Identifier: Apache-2.0 */
/* windows.c - see unit_finder.h. */
#include "diagnose/units/unit_finder.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"

#define WANTED     20 /* windows, where the recording is neither short nor long */
#define EACH_MAX   ((uint64_t)NS_PER_S)
#define EACH_USUAL (250 * NS_PER_MS)
#define EACH_MIN   (50 * NS_PER_MS)
/* A day and a half of seconds: in longer ones they are longer. A damaged time may be years away. */
#define COUNT_MAX (1u << 17)

/* Of a window: more is no rest. */
#define REST_OWN    0.05
#define REST_HELPER 0.2

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
	each = MAX(MIN(each, EACH_MAX), EACH_MIN);
	return MAX(each, length / COUNT_MAX + 1);
}

/* ---- rest ---- */

struct window_use {
	uint64_t own_ns;    /* in which threads of the process did anything, or were kept from it */
	uint64_t helper_ns; /* likewise of processes that use no GPU: they may be its workers */
	bool is_used;       /* it called the GPU */
};

/* Blocked on nothing but others: a lock, files that may be readable, a time. */
static uint64_t rest_ns(const struct ledger_row *r)
{
	return r->ns[LEDGER_LOCK] + r->ns[LEDGER_POLL] + r->ns[LEDGER_SLEEP] + r->ns[LEDGER_PIPE] +
	       r->ns[LEDGER_SOCKET] + r->ns[LEDGER_CHILD] + r->ns[LEDGER_BLOCKED];
}

static void use_add(
	const struct step_spans *w, const struct ledger_row *r, bool own, struct window_use *uses)
{
	int64_t first = w->items[0].start_ns, each = w->items[0].end_ns - first;
	int64_t from = MAX(r->start.ns - first, INT64_C(0)), to = ledger_end_ns(r) - first;
	uint64_t rest = MIN(rest_ns(r), r->dur_ns), busy = r->dur_ns - rest;

	for (size_t i = (size_t)(from / each); to > 0 && i < w->count && (int64_t)i * each < to;
		i++) {
		int64_t start = MAX(from, (int64_t)i * each),
			end = MIN(to, (int64_t)(i + 1) * each);
		uint64_t part = end > start ? (uint64_t)((__uint128_t)busy *
							 (uint64_t)(end - start) / r->dur_ns)
					    : 0;

		*(own ? &uses[i].own_ns : &uses[i].helper_ns) += part;
		uses[i].is_used |= own && is_use(r);
	}
}

/* Leaves out the windows in which the process rested. */
static int drop_rests(const struct timeline *t, struct step_spans *w)
{
	_cleanup_free_ struct window_use *uses = calloc(w->count + 1, sizeof(*uses));
	size_t kept = 0;

	if (!uses)
		return -ENOMEM;
	for (size_t i = 0; w->count && i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];

		if (th->pid != w->pid && timeline_uses_gpu(t, th->pid))
			continue;
		for (size_t k = th->first; k < th->first + th->count; k++)
			use_add(w, t->rows[k], th->pid == w->pid, uses);
	}
	for (size_t i = 0; i < w->count; i++) {
		double each = (double)(w->items[i].end_ns - w->items[i].start_ns);

		if (uses[i].is_used || (double)uses[i].own_ns > REST_OWN * each ||
			(double)uses[i].helper_ns > REST_HELPER * each)
			w->items[kept++] = w->items[i];
	}
	w->count = kept;
	return 0;
}

int windows_find(const struct unit_search *in, struct step_spans *s)
{
	const struct timeline *t = in->timeline;
	const struct timeline_thread *th = feeding_thread(t, s->pid);
	int64_t start, end;
	uint64_t length, each;
	int r = 0;

	if (!th || !span_of(t, th, &start, &end) || end <= start)
		return 0;
	s->tid = th->tid;
	length = (uint64_t)end - (uint64_t)start;
	each = each_of(length);
	for (uint64_t n = length / each; r == 0 && n > 0; n--) {
		r = unit_add(s, start, start + (int64_t)each, 0);
		start += (int64_t)each;
	}
	return r < 0 || is_rank(t, th) ? r : drop_rests(t, s);
}
