/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c - see unit_finder.h. O(n log n) in the marks of a thread for each of at most 64 places. */
#include "diagnose/units/unit_finder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diagnose/rows/place.h"
#include "diagnose/units/runs.h"
#include "base/array.h"
#include "base/macros.h"
#include "base/search.h"
#include "stat/robust.h"

#define PLACES_MAX    64
#define KNOWN_SHARE   0.5 /* of the marks have a place, else none of them counts */
#define ROUND_REGULAR 0.7 /* of the distances between marks that close a round are the same */
#define ROUNDS_MIN                                                                                 \
	12 /* fewer long ones beside a busier place are of a log, an evaluation or a compiler */
#define ROUND_WHOLE  0.1 /* rounds of that length are all of the marks, give or take this share */
#define LASTS_MARKS  0.5
#define LASTS_TIME   0.25
#define PHASE_SHARE  0.1 /* of the marks follow one of another place, where places are phases */
#define USUAL_SHARE  0.5 /* of the units have so many backward passes as most have */
#define BESIDE_SHARE 0.5 /* of the time of the steps has backward passes in it */
#define THINNED      1.25
#define JOINED       10
#define LOOP_NS      ((int64_t)(500 * NS_PER_US)) /* marks are recorded as often, on average: */
#define CALL_NS      ((int64_t)(4 * NS_PER_MS))   /* see probe/ledger */

struct moment {
	int64_t ns;
	uint64_t place; /* place.h; 0: not known */
	uint64_t stack; /* the same in detail: one line of a program may lead to several marks */
};

struct moments {
	struct moment *items;
	size_t count, room;
};

static void moments_done(struct moments *m)
{
	free(m->items);
}

static uint64_t place_of(const struct timeline *t, const struct ledger_row *r)
{
	const struct stack_list *stacks = t->rec->stacks;
	const struct stack *s = stack_find(stacks, r->stack_hash);

	return s && stack_user_frame(s) ? place_key(s) : 0;
}

static size_t count_marks(
	const struct timeline *t, const struct timeline_thread *th, enum wire_mark mark)
{
	size_t n = 0;

	for (size_t k = th->first; k < th->first + th->count; k++)
		n += t->rows[k]->mark == mark;
	return n;
}

/* The thread of @pid with most of the marks; NULL: none has any. */
static const struct timeline_thread *busiest_thread(
	const struct timeline *t, uint32_t pid, enum wire_mark mark)
{
	const struct timeline_thread *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i < t->thread_count; i++) {
		const struct timeline_thread *th = &t->threads[i];
		size_t n = th->pid == pid ? count_marks(t, th, mark) : 0;

		if (n > most && timeline_feeds(t, th->tid)) {
			most = n;
			best = th;
		}
	}
	return best;
}

static int collect(const struct timeline *t, const struct timeline_thread *th, enum wire_mark mark,
	struct moments *ret)
{
	for (size_t k = th->first; k < th->first + th->count; k++) {
		const struct ledger_row *r = t->rows[k];

		if (r->mark != mark)
			continue;
		if (ARRAY_RESERVE(ret->items, ret->room, ret->count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		ret->items[ret->count++] =
			(struct moment){ledger_end_ns(r), place_of(t, r), r->stack_hash};
	}
	return 0;
}

static size_t first_after(const struct moments *m, int64_t ns)
{
	return LOWER_BOUND(i, m->count, m->items[i].ns <= ns);
}

static size_t count_between(const struct moments *m, int64_t from_ns, int64_t to_ns)
{
	return first_after(m, to_ns) - first_after(m, from_ns);
}

/* Whether backward passes are marked all the time that optimizers are. */
static bool are_beside(const struct moments *backwards, const struct moments *m)
{
	int64_t first, last, length;

	if (!m->count || !backwards->count)
		return false;
	first = MAX(backwards->items[0].ns, m->items[0].ns);
	last = MIN(backwards->items[backwards->count - 1].ns, m->items[m->count - 1].ns);
	length = m->items[m->count - 1].ns - m->items[0].ns;
	return (double)(last - first) >= BESIDE_SHARE * (double)length && last > first;
}

/* Steps of optimizers without a backward pass between them are one: the first of them. */
static void join_steps(struct moments *m, const struct moments *backwards)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->count; i++)
		if (!kept || count_between(backwards, m->items[kept - 1].ns, m->items[i].ns))
			m->items[kept++] = m->items[i];
	m->count = kept;
}

/* ---- rounds ---- */

struct mark_place {
	uint64_t place;
	size_t count;
	size_t first, last; /* of its marks */
	size_t round;       /* usual distance to the next of it, in marks; 0: there is none */
	int64_t along_ns;   /* between marks of it that follow each other */
};

static size_t places_count(const struct moments *m, struct mark_place *ret)
{
	size_t used = 0;

	for (size_t i = 0; i < m->count; i++) {
		const struct moment *at = &m->items[i];
		size_t k = 0;

		if (!at->place)
			continue;
		while (k < used && ret[k].place != at->place)
			k++;
		if (k == PLACES_MAX)
			continue;
		if (k == used)
			ret[used++] = (struct mark_place){.place = at->place, .first = i};
		ret[k].count++;
		ret[k].last = i;
		if (i && at[-1].place == at->place)
			ret[k].along_ns += at->ns - at[-1].ns;
	}
	return used;
}

/* Whether @p is of most of the marks, or of much of the time: a program that is set up, or compiled, leaves
 * many marks in a moment, or none in a long time. */
static bool is_lasting(const struct moments *m, const struct mark_place *p)
{
	double length = (double)(m->items[m->count - 1].ns - m->items[0].ns);

	return (double)(p->last - p->first + 1) >= LASTS_MARKS * (double)m->count ||
	       (double)(m->items[p->last].ns - m->items[p->first].ns) >= LASTS_TIME * length;
}

/* The distance at which marks of @p come back, from the first of them to the last; else 0. */
static size_t round_of(const struct moments *m, const struct mark_place *p, uint64_t *scratch)
{
	size_t last = p->first, n = 0, same = 0, all = p->last - p->first;
	uint64_t usual;
	double whole;

	for (size_t i = p->first + 1; i <= p->last; i++) {
		if (m->items[i].place != p->place)
			continue;
		scratch[n++] = i - last;
		last = i;
	}
	if (!n || !is_lasting(m, p))
		return 0;
	usual = robust_median_of(scratch, n);
	for (size_t i = 0; i < n; i++)
		same += scratch[i] == usual;
	whole = (double)usual * (double)n;
	if ((double)same < ROUND_REGULAR * (double)n || whole < (1 - ROUND_WHOLE) * (double)all ||
		whole > (1 + ROUND_WHOLE) * (double)all)
		return 0;
	return (size_t)usual;
}

/* Marks at several places one after the other, as of loops that follow each other. */
static bool are_phases(const struct moments *m)
{
	size_t changes = 0;

	for (size_t i = 1; i < m->count; i++)
		changes += m->items[i].place != m->items[i - 1].place;
	return (double)changes <= PHASE_SHARE * (double)m->count;
}

/* Those at @place; of unknown ones those that come where the next is due (@round 0: all since the first: what comes
 * before sets the program up). */
static void keep_place(struct moments *m, uint64_t place, size_t round)
{
	size_t kept = 0, last = SIZE_MAX;

	for (size_t i = 0; i < m->count; i++) {
		bool is_due = last != SIZE_MAX && (!round || i - last == round);

		if (m->items[i].place != place && (m->items[i].place || !is_due))
			continue;
		m->items[kept++] = m->items[i];
		last = i;
	}
	m->count = kept;
}

/* Leaves the marks that close a round. 1: done, 0: there are no rounds, or -ENOMEM. */
static int close_rounds(struct moments *m)
{
	_cleanup_free_ uint64_t *scratch = calloc(m->count + 1, sizeof(*scratch));
	struct mark_place places[PLACES_MAX];
	const struct mark_place *closing = NULL;
	size_t n = places_count(m, places), known = 0;

	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t round = round_of(m, &places[i], scratch);

		known += places[i].count;
		if (round > ROUNDS_MIN && places[i].count < ROUNDS_MIN &&
			EXISTS(k, n, places[k].count > m->count / 2))
			round = 0;
		places[i].round = round;
		if (round > 1 && (!closing || round > closing->round))
			closing = &places[i];
	}
	if (!closing || (double)known < KNOWN_SHARE * (double)m->count)
		return 0;
	keep_place(m, closing->place, closing->round);
	return 1;
}

static void swap_details(struct moments *m)
{
	for (size_t i = 0; i < m->count; i++) {
		uint64_t place = m->items[i].place;

		m->items[i].place = m->items[i].stack;
		m->items[i].stack = place;
	}
}

static bool is_busier(const struct mark_place *a, const struct mark_place *b)
{
	return a->along_ns != b->along_ns ? a->along_ns > b->along_ns : a->count > b->count;
}

/* Leaves the marks that close a round, by their places or, where these are one, in more detail; without rounds
 * those of the loop's place. @phases: loops at other places count as well. */
static int keep_rounds(struct moments *m, bool phases)
{
	struct mark_place places[PLACES_MAX];
	const struct mark_place *busiest = NULL;
	size_t n, known = 0;
	int r = close_rounds(m);

	if (r == 0) {
		swap_details(m);
		r = close_rounds(m);
		swap_details(m);
	}
	if (r != 0)
		return MIN(r, 0);
	n = places_count(m, places);
	for (size_t i = 0; i < n; i++) {
		known += places[i].count;
		if (!busiest || is_busier(&places[i], busiest))
			busiest = &places[i];
	}
	if (n && (double)known >= KNOWN_SHARE * (double)m->count && (!phases || !are_phases(m)))
		keep_place(m, busiest->place, 0);
	return 0;
}

/* ---- steps that a scaler left out ---- */

struct usual_unit {
	size_t backwards;
	int64_t after_ns; /* from its last backward pass to its end */
};

/* The number of @n sorted ones that comes most often, of several the largest, and how often. */
static size_t most_frequent(const uint64_t *sorted, size_t n, size_t *ret_times)
{
	size_t best = 0, next;

	*ret_times = 0;
	for (size_t i = 0; i < n; i = next) {
		for (next = i; next < n && sorted[next] == sorted[i];)
			next++;
		if (next - i >= *ret_times) {
			*ret_times = next - i;
			best = (size_t)sorted[i];
		}
	}
	return best;
}

/* What a unit is like that no step is missing in; 0 backward passes: not known. */
static struct usual_unit usual_of(
	const struct moments *m, const struct moments *backwards, uint64_t *scratch)
{
	struct usual_unit u = {0};
	size_t times, n = 0;

	for (size_t i = 1; i < m->count; i++)
		scratch[i - 1] = count_between(backwards, m->items[i - 1].ns, m->items[i].ns);
	robust_sort(scratch, m->count - 1);
	u.backwards = most_frequent(scratch, m->count - 1, &times);
	if (u.backwards != 1 && (double)times < USUAL_SHARE * (double)(m->count - 1))
		return (struct usual_unit){0};
	for (size_t i = 1; i < m->count; i++) {
		size_t last = first_after(backwards, m->items[i].ns);

		if (count_between(backwards, m->items[i - 1].ns, m->items[i].ns) == u.backwards &&
			u.backwards)
			scratch[n++] = (uint64_t)(m->items[i].ns - backwards->items[last - 1].ns);
	}
	u.after_ns = (int64_t)robust_median_of(scratch, n);
	return u;
}

/* Where units have twice as many backward passes as is usual, or more, steps were left out: they ended as
 * long after their last backward pass as others do, and before the next. Unless one of @others, which are all
 * the marks of optimizers, says what the backward passes were for. */
static int split_units(
	struct moments *m, const struct moments *backwards, const struct moments *others)
{
	_cleanup_free_ uint64_t *scratch = calloc(m->count + 1, sizeof(*scratch));
	_cleanup_(moments_done) struct moments all = {0};
	struct usual_unit u;

	if (!scratch)
		return -ENOMEM;
	u = usual_of(m, backwards, scratch);
	for (size_t i = 0; i < m->count; i++) {
		size_t at = i ? first_after(backwards, m->items[i - 1].ns) : 0;
		size_t n = i ? first_after(backwards, m->items[i].ns) - at : 0;

		if (i && count_between(others, m->items[i - 1].ns, m->items[i].ns) > 1)
			n = 0;
		if (ARRAY_RESERVE(all.items, all.room, m->count + backwards->count + 1,
			    2 * RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		for (size_t k = u.backwards; u.backwards && n % u.backwards == 0 && k < n;
			k += u.backwards)
			all.items[all.count++] =
				(struct moment){MIN(backwards->items[at + k - 1].ns + u.after_ns,
							backwards->items[at + k].ns),
					0, 0};
		all.items[all.count++] = m->items[i];
	}
	free(m->items);
	*m = all;
	all = (struct moments){0};
	return 0;
}

/* ---- marks that come too fast ---- */

static int64_t recorded_every(enum wire_mark mark)
{
	return mark == MARK_GRAPH || mark == MARK_COLLECTIVE || mark == MARK_READ ? CALL_NS
										  : LOOP_NS;
}

/* Whether marks come faster than they are recorded: some are missing then, more of them as time goes by. 1, 0 or
 * -ENOMEM. */
static int is_thinned(const struct moments *m, int64_t every_ns)
{
	_cleanup_free_ uint64_t *scratch = calloc(m->count + 1, sizeof(*scratch));

	if (!scratch)
		return -ENOMEM;
	if (m->count < 2)
		return 0;
	for (size_t i = 1; i < m->count; i++)
		scratch[i - 1] = (uint64_t)(m->items[i].ns - m->items[i - 1].ns);
	return (double)robust_median_of(scratch, m->count - 1) <= THINNED * (double)every_ns;
}

/* Leaves the marks with which rounds of places begin. 1: done, 0: there are none, or -ENOMEM. */
static int keep_runs(struct moments *m, int64_t every_ns)
{
	_cleanup_free_ struct run_mark *marks = calloc(m->count + 1, sizeof(*marks));
	_cleanup_free_ int64_t *begins = calloc(m->count + 1, sizeof(*begins));
	size_t n;

	if (!marks || !begins)
		return -ENOMEM;
	for (size_t i = 0; i < m->count; i++)
		marks[i] = (struct run_mark){m->items[i].ns, m->items[i].place};
	if (runs_find(marks, m->count, JOINED * every_ns, begins, &n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		m->items[i] = (struct moment){.ns = begins[i]};
	m->count = n ? n : m->count;
	return n > 0;
}

/* Units that hold many of them are alike. */
static void join_fast(struct moments *m, int64_t every_ns)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->count; i++)
		if (!kept || m->items[i].ns - m->items[kept - 1].ns >= JOINED * every_ns)
			m->items[kept++] = m->items[i];
	m->count = kept;
}

/* The units of optimizers' steps @m, beside backward passes. */
static int units_of_steps(struct moments *m, const struct moments *backwards)
{
	_cleanup_(moments_done) struct moments all = {0};
	int r;

	join_steps(m, backwards);
	all.items = calloc(m->count + 1, sizeof(*all.items));
	if (!all.items)
		return -ENOMEM;
	memcpy(all.items, m->items, m->count * sizeof(*all.items));
	all.count = m->count;
	r = keep_rounds(m, true);
	return r == 0 && m->count > 1 ? split_units(m, backwards, &all) : r;
}

int marks_find(const struct unit_search *in, struct step_spans *s)
{
	_cleanup_(moments_done) struct moments m = {0}, backwards = {0};
	const struct timeline *t = in->timeline;
	const struct timeline_thread *th = busiest_thread(t, s->pid, in->mark);
	int64_t every_ns = recorded_every(in->mark);
	int r;

	if (!th)
		return 0;
	s->tid = th->tid;
	r = collect(t, th, in->mark, &m);
	if (r == 0 && in->mark == MARK_OPTIMIZER)
		r = collect(t, th, MARK_BACKWARD, &backwards);
	if (r == 0)
		r = is_thinned(&m, every_ns) > 0 ? keep_runs(&m, every_ns) : 0;
	if (r == 0)
		r = are_beside(&backwards, &m) ? units_of_steps(&m, &backwards)
					       : keep_rounds(&m, in->mark == MARK_BACKWARD);
	if (r >= 0)
		r = is_thinned(&m, every_ns);
	if (r > 0)
		join_fast(&m, every_ns);
	for (size_t i = 1; r >= 0 && i < m.count; i++)
		r = unit_add(s, m.items[i - 1].ns, m.items[i].ns, 0);
	return MIN(r, 0);
}
