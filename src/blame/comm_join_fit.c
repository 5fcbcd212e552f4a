/* SPDX-License-Identifier: Apache-2.0 */
/* comm_join_fit.c - see comm_join_fit.h.
 *
 * The shifts that are tried lie around the one that time suggests: wide where clocks have nothing to do with each other.
 * The error of a shift is how far ends are apart, less what is the same for all of them as far as the clocks may be wrong by
 * that: the median, as some waits were for something else. Where too few ends are known, or they do not tell, the entries
 * are taken, less what one rank is always later by. Within one communicator it is what nearly all of them keep within: calls
 * that follow each other closely are nearly as close by a wrong shift, but for those at the edges of a step. Steps of one
 * length make a shift by a whole step nearly as good, too: what is always later by more than clocks may be apart by tells
 * them apart.
 *
 * Where neither tells, as of hosts that run ahead of their GPUs: between two steps both rest, having made as many calls
 * as each other, and always so. Of messages, which one end may have long before the other looks for them, that is asked
 * first. Collectives that rest together need not be of one communicator.
 *
 * Of streams that may have nothing to do with each other the best shift must leave far less than calls are apart: some
 * shift is the best of those that are all wrong, too. */
#include "blame/comm_join_fit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/search.h"
#include "blame/comm_join.h"
#include "stat/robust.h"

#define NEAR        128  /* shifts to each side of the one that time suggests */
#define FAR         1024 /* the same where clocks are not known */
#define PAIRS_MAX   512  /* more say no more */
#define ENTRIES_MIN 20   /* pairs, where entries stand for ends */
#define ALIKE       0.95 /* of the pairs must be */
#define HALF        0.5  /* of the ends are within the error, */
#define NEARLY      0.9  /* or of the entries */
#define CLEARLY     3    /* times worse is every other shift, */
#define CLEARLY_ONE 2    /* or that, of one communicator */
#define ALWAYS      8    /* part of what one is always later by counts as error, too */
#define CLOSE       8    /* times less than calls are apart is the error */
#define RESTS_PART  32   /* part of a stream's pauses, the longest, are such rests, */
#define RESTS_MIN   8    /* so many at least, */
#define RESTS_AGREE 0.9  /* and so many of them have one shift */
#define RESTS_CLOCK 4    /* times what clocks may be apart is such a pause at least */
#define LOOSE_NS    UINT64_C(100000000) /* clocks that may be further apart suggest no shift */

struct trial {
	int64_t *gaps; /* of ends, or entries: PAIRS_MAX each */
	int64_t *entry_gaps;
	int64_t *scratch;
	uint64_t *work;
	uint64_t clock_ns; /* how far the clocks may be apart */
	bool is_one_comm, by_entries;
};

static uint64_t clock_error(const struct join_side *a, const struct join_side *b)
{
	if (strcmp(a->node, b->node) == 0)
		return 0;
	return MIN(a->error_ns, (uint64_t)INT64_MAX / 2) +
	       MIN(b->error_ns, (uint64_t)INT64_MAX / 2);
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

ORDER(compare_gaps, int64_t, COMPARE(*x, *y))

struct error {
	uint64_t ns;       /* UINT64_MAX: it cannot be this shift */
	uint64_t later_ns; /* what one is always later by, beyond clocks: a step is too much */
};

static const struct error impossible = {UINT64_MAX, 0};

/* What @part of @gaps keeps within when what is the same for all is taken away, up to @common_ns. */
static struct error error_of(
	struct trial *t, int64_t *gaps, size_t n, uint64_t common_ns, double part)
{
	int64_t limit = (int64_t)common_ns, middle = 0;
	uint64_t common;

	if (limit)
		middle = MAX(MIN(select_kth(gaps, n, n / 2, n), limit), -limit);
	for (size_t i = 0; i < n; i++)
		t->scratch[i] = (int64_t)MIN(distance(gaps[i], middle), (uint64_t)INT64_MAX);
	common = distance(middle, 0);
	return (struct error){
		(uint64_t)select_kth(t->scratch, n, (size_t)(part * (double)(n - 1)), n),
		common > t->clock_ns ? (common - t->clock_ns) / ALWAYS : 0};
}

static struct error try_shift(
	struct trial *t, const struct join_side *a, const struct join_side *b, int64_t shift)
{
	size_t i = a->count, k = b->count, pairs = 0, alike = 0, ends = 0;

	while (i > 0 && k > 0 && pairs < PAIRS_MAX) { /* the newest first */
		const struct join_point *x = &a->points[i - 1], *y = &b->points[k - 1];
		int64_t lead = x->number - (y->number + shift);

		++*t->work;
		if (lead == 0) {
			t->entry_gaps[pairs++] = x->enter_ns - y->enter_ns;
			alike += x->what == y->what;
			if (x->end_ns != JOIN_NO_END && y->end_ns != JOIN_NO_END)
				t->gaps[ends++] = x->end_ns - y->end_ns;
			if (pairs == 2 * COMM_JOIN_PAIRS &&
				(double)alike < ALIKE * (double)pairs - 1)
				return impossible;
		}
		i -= lead >= 0;
		k -= lead <= 0;
	}
	if (pairs < COMM_JOIN_PAIRS || (double)alike < ALIKE * (double)pairs)
		return impossible;
	if (t->by_entries)
		return pairs >= ENTRIES_MIN ? error_of(t, t->entry_gaps, pairs, INT64_MAX,
						      t->is_one_comm ? NEARLY : HALF)
					    : impossible;
	return ends >= COMM_JOIN_PAIRS ? error_of(t, t->gaps, ends, t->clock_ns, HALF) : impossible;
}

/* The shift by which a call in the middle of the shorter side's time stands beside that of the other side which is nearest
 * in time. */
static int64_t shift_by_time(const struct join_side *a, const struct join_side *b)
{
	const struct join_point *y = &b->points[b->count / 2], *nearest = &a->points[0];
	size_t low = 0, high = a->count;

	if (a->points[a->count - 1].enter_ns < y->enter_ns)
		y = &b->points[b->count - 1];
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (a->points[middle].enter_ns < y->enter_ns)
			low = middle + 1;
		else
			high = middle;
	}
	nearest = &a->points[MIN(low, a->count - 1)];
	if (low > 0 && distance(a->points[low - 1].enter_ns, y->enter_ns) <
			       distance(nearest->enter_ns, y->enter_ns))
		nearest = &a->points[low - 1];
	return nearest->number - y->number;
}

/* How far its calls are apart. */
static uint64_t spacing(const struct join_side *s)
{
	return distance(s->points[s->count - 1].enter_ns, s->points[0].enter_ns) / (s->count - 1);
}

static bool is_close(const struct join_side *s, const struct join_fit *f)
{
	return f->error_ns < spacing(s) / CLOSE;
}

struct best { /* of all shifts */
	int64_t shift;
	uint64_t ns, next_ns; /* what it is judged by, and what the second best is */
	uint64_t error_ns;
};

static void take_shift(struct best *b, int64_t shift, uint64_t ns, uint64_t error_ns)
{
	if (ns >= b->ns) {
		b->next_ns = MIN(b->next_ns, ns);
		return;
	}
	*b = (struct best){shift, ns, b->ns, error_ns};
}

static bool is_clear(const struct best *b, uint64_t times)
{
	return b->ns != UINT64_MAX && b->ns < b->next_ns / times;
}

/* Whether one shift is clearly the best, with what one is always later by, or else by the pattern alone: a rank that is
 * always later by half a step is as near by the next. */
static bool find_shift(
	struct trial *t, const struct join_side *a, const struct join_side *b, struct join_fit *ret)
{
	int64_t around = shift_by_time(a, b), width = t->clock_ns > LOOSE_NS ? FAR : NEAR;
	uint64_t times = t->is_one_comm && t->by_entries ? CLEARLY_ONE : CLEARLY;
	bool clear;
	struct best pattern = {.ns = UINT64_MAX, .next_ns = UINT64_MAX, .error_ns = UINT64_MAX};
	struct best whole = pattern;

	for (int64_t shift = around - width; shift <= around + width; shift++) {
		struct error e = try_shift(t, a, b, shift);

		if (e.ns == UINT64_MAX)
			continue;
		take_shift(&whole, shift, e.ns + e.later_ns, e.ns);
		take_shift(&pattern, shift, e.ns, e.ns);
	}
	clear = is_clear(&whole, times);
	*ret = (struct join_fit){whole.shift, whole.error_ns};
	if (!clear && times == CLEARLY) {
		clear = is_clear(&pattern, CLEARLY);
		*ret = (struct join_fit){pattern.shift, pattern.error_ns};
	}
	return clear && (t->is_one_comm || is_close(a, ret));
}

/* Whether they have too few calls in common yet to say anything, by what time suggests. */
static bool is_early(const struct join_side *a, const struct join_side *b)
{
	int64_t shift = shift_by_time(a, b);
	int64_t first = MAX(a->points[0].number, b->points[0].number + shift);
	int64_t last = MIN(a->points[a->count - 1].number, b->points[b->count - 1].number + shift);
	bool has_ends = a->points[a->count - 1].end_ns != JOIN_NO_END &&
			b->points[b->count - 1].end_ns != JOIN_NO_END;

	return last - first + 1 < (has_ends ? COMM_JOIN_PAIRS : ENTRIES_MIN);
}

/* How many calls of @s were entered before @at_ns. */
static size_t entered_before(const struct join_side *s, int64_t at_ns)
{
	return LOWER_BOUND(i, s->count, s->points[i].enter_ns < at_ns);
}

/* How long @b rests before its @k-th call. */
static int64_t pause_before(const struct join_side *b, size_t k)
{
	return b->points[k].enter_ns - b->points[k - 1].leave_ns;
}

/* The shift that most of the longest pauses of @b agree on; false: they do not. @room is for all its pauses. */
static bool find_rest(const struct join_side *a, const struct join_side *b, uint64_t clock_ns,
	int64_t *room, int64_t *ret_shift)
{
	size_t want = MAX((b->count - 1) / RESTS_PART, (size_t)RESTS_MIN), n = 0, alike = 1,
	       most = 0;
	int64_t least;

	if (b->count <= RESTS_MIN)
		return false;
	for (size_t k = 1; k < b->count; k++)
		room[k - 1] = pause_before(b, k);
	least = select_kth(room, b->count - 1, b->count - 1 - want, b->count);
	least = MAX(least, (int64_t)(RESTS_CLOCK * clock_ns) + 1);
	for (size_t k = 1; k < b->count; k++) {
		int64_t pause = pause_before(b, k);
		size_t i = entered_before(a, b->points[k].enter_ns - pause / 2);

		if (pause >= least && i > 0 && i < a->count)
			room[n++] = a->points[i - 1].number - b->points[k - 1].number;
	}
	qsort(room, n, sizeof(*room), compare_gaps);
	for (size_t i = 0; i < n; i++) {
		alike = i && room[i] == room[i - 1] ? alike + 1 : 1;
		if (alike > most) {
			most = alike;
			*ret_shift = room[i];
		}
	}
	return n >= RESTS_MIN && (double)most >= RESTS_AGREE * (double)n;
}

static int fit_at_rest(
	struct trial *t, const struct join_side *a, const struct join_side *b, struct join_fit *ret)
{
	_cleanup_free_ int64_t *room = calloc(b->count + 1, sizeof(*room));

	if (!room)
		return -ENOMEM;
	if (t->clock_ns > LOOSE_NS || !find_rest(a, b, t->clock_ns, room, &ret->shift))
		return -ENOENT;
	t->by_entries = true;
	ret->error_ns = try_shift(t, a, b, ret->shift).ns;
	return ret->error_ns == UINT64_MAX ? -ENOENT : 0;
}

int join_fit_find(const struct join_side *a, const struct join_side *b, bool is_one_comm,
	uint64_t *work, struct join_fit *ret)
{
	_cleanup_free_ int64_t *gaps = calloc(2 * PAIRS_MAX, sizeof(*gaps));
	_cleanup_free_ int64_t *scratch = calloc(PAIRS_MAX, sizeof(*scratch));
	struct trial t = {.gaps = gaps,
		.scratch = scratch,
		.work = work,
		.clock_ns = clock_error(a, b),
		.is_one_comm = is_one_comm};
	int r;

	if (!gaps || !scratch)
		return -ENOMEM;
	if (a->count < COMM_JOIN_PAIRS || b->count < COMM_JOIN_PAIRS)
		return -EAGAIN;
	t.entry_gaps = gaps + PAIRS_MAX;
	r = a->is_messages ? fit_at_rest(&t, a, b, ret) : -ENOENT;
	if (r != -ENOENT)
		return r;
	t.by_entries = false;
	if (find_shift(&t, a, b, ret))
		return 0;
	t.by_entries = !a->is_messages && (is_one_comm || ret->error_ns == UINT64_MAX);
	if (t.by_entries && find_shift(&t, a, b, ret))
		return 0;
	r = is_one_comm && !a->is_messages ? fit_at_rest(&t, a, b, ret) : -ENOENT;
	if (r != -ENOENT)
		return r;
	return is_early(a, b) ? -EAGAIN : is_close(a, ret) ? -ENOTUNIQ : -ENOENT;
}
