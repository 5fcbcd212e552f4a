/* SPDX-License-Identifier: Apache-2.0 */
/* blame_path.c - own time of each worker in each step, and what of it decided how long the job took.
 *
 * A worker's time is pauses, in which it waits in one or several communications at once, and its own
 * time between them. In a pause it waits for the last of those it communicates with, as long as that
 * one has not arrived; from then on it is the transfer, or its own GPU, and nobody's (blame_link.c).
 *
 * While most of its peers wait for each other in a communicator of a kind that a worker does not have, nobody waits for
 * that one, and what it does meanwhile is not known: its waits for its GPU are behind communications that it takes part in.
 *
 * The path is walked from the job's end: a worker's own time back to its last pause, from there to the
 * one it waited for, at the time that one arrived. So what somebody waited himself before he came late
 * is not his. Each pause is passed at most once, so the walk is linear in the number of calls. */
#include "blame/blame_job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/hash.h"

#define MOMENTS   8192
#define ASIDE_MAX (1u << 22) /* pauses */

ORDER(pauses_by_start, struct job_pause, ASCENDING(start_ns) ?: ASCENDING(end_ns))

/* What a wait of @worker for a match's last one is: JOB_NONE if it is itself, or if the clocks cannot
 * tell who was later. */
static struct job_pause pause_of(const struct job *j, uint32_t worker, const struct job_item *t)
{
	struct job_pause p = {t->start_ns, t->leave_ns, INT64_MIN, JOB_NONE, t->match};
	const struct job_match *m;
	uint32_t last;
	uint64_t error;

	if (t->match == JOB_NONE)
		return p;
	m = &j->matches[t->match];
	last = job_item_worker(j, m->last);
	error = MIN(blame_error(j, worker, last), 2 * (uint64_t)INT32_MAX);
	/* Who had left before the last one came did not wait for it: the host ran ahead. */
	if (last == worker || m->arrival_ns <= t->start_ns + (int64_t)error ||
		m->arrival_ns > t->leave_ns + (int64_t)error)
		return p;
	p.match = t->match;
	p.arrival_ns = m->arrival_ns;
	return p;
}

/* How long the worker of @t was held up in it, at most, by those that came later than it did: the GPU works on from when it
 * has made the call, whenever its host begins to wait. INFINITY: not known. */
static double held_ns(const struct job *j, const struct job_item *t)
{
	double waited = (double)(t->leave_ns - t->start_ns);
	const struct job_match *m;
	uint32_t last;

	if (job_call(j, (uint32_t)(t - j->items))->wait_ns == UINT64_MAX)
		return INFINITY;
	if (t->match == JOB_NONE)
		return waited;
	m = &j->matches[t->match];
	last = job_item_worker(j, m->last);
	if (last == t->worker)
		return 0;
	return MIN(waited,
		(double)(m->arrival_ns - t->enter_ns) + (double)blame_error(j, t->worker, last));
}

struct job_seen {        /* the latest collective of a communicator that a worker was in */
	uint32_t worker; /* + 1 */
	uint32_t match;
};

/* Whether calls of @t's worker are missing before it: others were in collectives of its communicator
 * since the last one that it was seen in. What it did meanwhile is then not known. */
static bool is_after_hole(const struct job *j, const struct job_item *t, struct job_seen *seen)
{
	struct job_seen *s = &seen[t->comm];
	uint32_t from = s->worker == t->worker + 1 ? s->match + 1 : UINT32_MAX;

	if (t->match == JOB_NONE || blame_is_pair(t->op))
		return false;
	*s = (struct job_seen){t->worker + 1, t->match};
	for (uint32_t m = from; m < t->match; m++)
		if (j->matches[m].count)
			return true;
	return false;
}

struct aside {           /* when peers of one group wait in communicators that some of it lack */
	uint64_t *sizes; /* by worker: of its communicators, a bit each */
	uint64_t *most;  /* by group: those that more than half of it have */
	struct job_pause *list; /* by group */
	size_t *first;          /* likewise */
};

static void aside_done(struct aside *a)
{
	free(a->sizes);
	free(a->most);
	free(a->list);
	free(a->first);
}

static uint64_t size_bit(const struct job *j, const struct job_item *t)
{
	if (t->match == JOB_NONE || blame_is_pair(t->op))
		return 0;
	return UINT64_C(1) << (hash_number(j->comms[t->comm].nranks) & 63);
}

/* What of its group's communicators @worker lacks. */
static uint64_t lacks(const struct job *j, const struct aside *a, uint32_t worker)
{
	return a->sizes[worker] ? a->most[j->group[worker]] & ~a->sizes[worker] : 0;
}

static int find_sizes(const struct job *j, struct aside *a)
{
	_cleanup_free_ uint32_t *counts = calloc((size_t)j->group_count * 65 + 1, sizeof(*counts));

	a->sizes = calloc(j->worker_count + 1, sizeof(*a->sizes));
	a->most = calloc((size_t)j->group_count + 1, sizeof(*a->most));
	a->first = calloc((size_t)j->group_count + 2, sizeof(*a->first));
	if (!counts || !a->sizes || !a->most || !a->first)
		return -ENOMEM;
	for (size_t i = 0; i < j->item_count; i++)
		a->sizes[j->items[i].worker] |= size_bit(j, &j->items[i]);
	for (uint32_t w = 0; w < j->worker_count; w++) {
		uint32_t *of = counts + (size_t)j->group[w] * 65;

		of[64] += a->sizes[w] != 0;
		for (int b = 0; b < 64; b++)
			of[b] += a->sizes[w] >> b & 1;
	}
	for (uint32_t g = 0; g < j->group_count; g++)
		for (int b = 0; b < 64; b++)
			if (counts[(size_t)g * 65 + (size_t)b] * 2 > counts[(size_t)g * 65 + 64])
				a->most[g] |= UINT64_C(1) << b;
	return 0;
}

/* The waits of peers that some of their group lack, by group; *ret_more: how many pauses they are for these. */
static int find_aside(const struct job *j, struct aside *a, size_t *ret_more)
{
	_cleanup_free_ uint64_t *lacked = calloc((size_t)j->group_count + 1, sizeof(*lacked));
	_cleanup_free_ size_t *at = calloc((size_t)j->group_count + 1, sizeof(*at));
	size_t n = 0;
	int r = find_sizes(j, a);

	*ret_more = 0;
	if (r < 0 || !lacked || !at)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++)
		lacked[j->group[w]] |= lacks(j, a, w);
	for (size_t i = 0; i < j->item_count; i++)
		a->first[j->group[j->items[i].worker] + 1] +=
			(size_bit(j, &j->items[i]) & lacked[j->group[j->items[i].worker]]) != 0;
	for (uint32_t g = 0; g < j->group_count; g++) {
		at[g] = a->first[g];
		n = a->first[g + 1] += a->first[g];
	}
	a->list = calloc(n + 1, sizeof(*a->list));
	if (!a->list)
		return -ENOMEM;
	for (size_t i = 0; i < j->item_count; i++) {
		const struct job_item *t = &j->items[i];

		if (size_bit(j, t) & lacked[j->group[t->worker]])
			a->list[at[j->group[t->worker]]++] = (struct job_pause){
				t->start_ns, t->leave_ns, INT64_MIN, JOB_NONE, JOB_NONE};
	}
	for (uint32_t w = 0; w < j->worker_count; w++)
		if (lacks(j, a, w))
			*ret_more += a->first[j->group[w] + 1] - a->first[j->group[w]];
	if (*ret_more > ASIDE_MAX)
		*ret_more = SIZE_MAX; /* nobody is looked at that way */
	return 0;
}

/* Pauses of @worker at pauses[at], joined where they overlap. How many. */
static size_t list_pauses(
	struct job *j, uint32_t worker, size_t at, struct job_seen *seen, const struct aside *a)
{
	struct job_pause *p = j->pauses + at;
	size_t n = 0, kept = 0;
	bool ordered = true;

	if (j->is_guessed || lacks(j, a, worker))
		j->held_ns[worker] = INFINITY;
	for (size_t i = j->first[worker]; i < j->first[worker + 1]; i++) {
		const struct job_item *t = &j->items[i];

		if (is_after_hole(j, t, seen) && i > j->first[worker] &&
			t[-1].leave_ns < t->enter_ns)
			p[n++] = (struct job_pause){
				t[-1].leave_ns, t->enter_ns, INT64_MIN, JOB_NONE, JOB_NONE};
		j->held_ns[worker] += MAX(held_ns(j, t), 0.0);
		if (t->leave_ns <= t->start_ns)
			continue;
		p[n++] = pause_of(j, worker, t);
		ordered = ordered && (n < 2 || p[n - 2].start_ns <= p[n - 1].start_ns);
	}
	for (size_t i = a->first[j->group[worker]];
		lacks(j, a, worker) && i < a->first[j->group[worker] + 1]; i++) {
		p[n++] = a->list[i];
		ordered = false;
	}
	if (!ordered)
		qsort(p, n, sizeof(*p), pauses_by_start);
	for (size_t i = 0; i < n; i++) {
		struct job_pause *last = kept ? &p[kept - 1] : NULL;

		/* The clock that both are told by goes a bit faster or slower than the worker's own. */
		if (!last || p[i].start_ns >= last->end_ns - JOB_EDGE_NS) {
			p[kept] = p[i];
			p[kept].start_ns = last ? MAX(p[i].start_ns, last->end_ns) : p[i].start_ns;
			p[kept].end_ns = MAX(p[i].end_ns, p[kept].start_ns);
			kept++;
			continue;
		}
		if (p[i].end_ns >= last->end_ns)
			last->within = p[i].within;
		last->end_ns = MAX(last->end_ns, p[i].end_ns);
		if (p[i].match != JOB_NONE && p[i].arrival_ns > last->arrival_ns) {
			last->match = p[i].match;
			last->arrival_ns = p[i].arrival_ns;
		}
	}
	for (size_t i = 0; i < kept; i++)
		p[i].arrival_ns = MIN(p[i].arrival_ns, p[i].end_ns);
	return kept;
}

/* The step that @ns lies in, or the nearest. */
static size_t step_at(const struct job *j, const int64_t *cuts, int64_t ns)
{
	size_t low = 0, high = j->step_count;

	while (low + 1 < high) {
		size_t mid = (low + high) / 2;

		if (cuts[mid] <= ns)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static const int64_t *cuts_of(const struct job *j, uint32_t worker)
{
	return j->group_cuts + (size_t)j->group[worker] * (j->step_count + 1);
}

/* Adds the time from @start to @end to @worker's row of @table, step by step. @near: a step to look
 * from, kept. */
static void add_time(const struct job *j, float *table, uint32_t worker, int64_t start, int64_t end,
	size_t *near)
{
	float *row = table + (size_t)worker * j->step_count;
	const int64_t *cuts = cuts_of(j, worker);
	size_t s = *near;

	start = MAX(start, cuts[0]);
	end = MIN(end, cuts[j->step_count]);
	if (start >= end)
		return;
	if (start < cuts[s] || start >= cuts[s + 1])
		s = s + 1 < j->step_count && start >= cuts[s + 1] && start < cuts[s + 2]
			    ? s + 1
			    : step_at(j, cuts, start);
	*near = s;
	for (; start < end; s++) {
		int64_t until = MIN(end, cuts[s + 1]);

		row[s] += (float)(until - start);
		start = until;
	}
}

static void add_own(struct job *j, uint32_t worker)
{
	int64_t from = 0;
	size_t near = 0;

	if (j->first[worker] == j->first[worker + 1])
		return;
	from = j->items[j->first[worker]].enter_ns;
	for (size_t i = j->pause_first[worker]; i < j->pause_first[worker + 1]; i++) {
		add_time(j, j->own, worker, from, j->pauses[i].start_ns, &near);
		from = j->pauses[i].end_ns;
	}
	add_time(j, j->own, worker, from, j->items[j->first[worker + 1] - 1].enter_ns, &near);
}

/* Where the path begins: at the worker whose last call within the steps ends last. */
static uint32_t last_worker(const struct job *j, int64_t end_ns)
{
	int64_t best = INT64_MIN;
	uint32_t worker = 0;

	for (uint32_t w = 0; w < j->worker_count; w++) {
		size_t i = j->pause_first[w + 1];

		while (i > j->pause_first[w] && j->pauses[i - 1].end_ns > end_ns)
			i--;
		if (i > j->pause_first[w] && j->pauses[i - 1].end_ns > best) {
			best = j->pauses[i - 1].end_ns;
			worker = w;
		}
	}
	return worker;
}

static void note_visit(struct job *j, const struct job_pause *p, uint32_t worker)
{
	if (p->arrival_ns < j->cuts[0])
		return;
	j->visits[j->visit_count++] = (struct job_visit){.worker = worker,
		.match = p->match,
		.step = (uint32_t)step_at(j, j->cuts, p->arrival_ns),
		.lag_ns = (uint64_t)(p->arrival_ns - p->start_ns)};
}

/* What is left of a pause when all have come. */
static void add_transfer(struct job *j, const struct job_pause *p, int64_t now)
{
	int64_t from = MAX(p->start_ns, j->matches[p->within].arrival_ns);
	int64_t end = MIN(p->end_ns, now);

	if (from >= j->cuts[0] && end > from)
		j->transfer[p->within] += (float)(end - from);
}

static void walk(struct job *j, size_t *cursor)
{
	int64_t now = j->end_ns;
	uint32_t w = last_worker(j, now);
	size_t near = 0;

	while (now > j->begin_ns && j->first[w] != j->first[w + 1]) {
		const struct job_pause *p;

		while (cursor[w] > j->pause_first[w] && j->pauses[cursor[w] - 1].start_ns >= now)
			cursor[w]--;
		if (cursor[w] == j->pause_first[w]) {
			add_time(j, j->path, w, j->items[j->first[w]].enter_ns, now, &near);
			return;
		}
		p = &j->pauses[--cursor[w]];
		add_time(j, j->path, w, p->end_ns, now, &near);
		if (p->within != JOB_NONE)
			add_transfer(j, p, now);
		if (p->match == JOB_NONE || p->arrival_ns > now) {
			now = MIN(now, p->start_ns);
			continue;
		}
		now = MIN(now, p->arrival_ns);
		w = job_item_worker(j, j->matches[p->match].last);
		note_visit(j, p, w);
	}
}

struct moment { /* a piece of the job's time: the first and last that anybody did in it */
	int64_t first_ns, last_ns;
};

static void note_moment(const struct job *j, struct moment *moments, double a_ns, int64_t at_ns)
{
	struct moment *m = &moments[(size_t)((double)(at_ns - j->begin_ns) * a_ns)];

	m->first_ns = MIN(m->first_ns, at_ns);
	m->last_ns = MAX(m->last_ns, at_ns);
}

/* The longest time in which nobody enters or leaves a call: something that is not recorded. What is shorter
 * than a MOMENTS-th of the whole is none. */
static int find_gap(struct job *j)
{
	size_t every = j->worker_count / 8 + 1;
	_cleanup_free_ struct moment *moments = calloc(MOMENTS + 1, sizeof(*moments));
	double a_ns = MOMENTS / ((double)(j->end_ns - j->begin_ns) + 1);
	int64_t last = j->begin_ns;

	if (!moments)
		return -ENOMEM;
	for (size_t i = 0; i <= MOMENTS; i++)
		moments[i] = (struct moment){INT64_MAX, INT64_MIN};
	/* A few workers tell: a barrier holds all of them. */
	for (size_t w = 0; w < j->worker_count; w += every) {
		for (size_t i = j->first[w]; i < j->first[w + 1]; i++) {
			note_moment(j, moments, a_ns, j->items[i].enter_ns);
			note_moment(j, moments, a_ns, j->items[i].leave_ns);
		}
	}
	for (size_t i = 0; i <= MOMENTS; i++) {
		if (moments[i].first_ns == INT64_MAX)
			continue;
		if (moments[i].first_ns > last)
			j->gap_ns = MAX(j->gap_ns, (uint64_t)(moments[i].first_ns - last));
		last = moments[i].last_ns;
	}
	return 0;
}

int blame_path(struct job *j)
{
	_cleanup_free_ size_t *cursor = calloc(j->worker_count + 1, sizeof(*cursor));
	_cleanup_free_ struct job_seen *seen = calloc(j->comm_count + 1, sizeof(*seen));
	_cleanup_(aside_done) struct aside aside = {0};
	size_t cells = j->worker_count * j->step_count + 1, n = 0, more;

	if (find_aside(j, &aside, &more) < 0)
		return -ENOMEM;
	if (more == SIZE_MAX) {
		memset(aside.most, 0, (size_t)j->group_count * sizeof(*aside.most));
		more = 0;
	}
	j->pauses = calloc(2 * j->item_count + more + 1, sizeof(*j->pauses));
	j->pause_first = calloc(j->worker_count + 2, sizeof(*j->pause_first));
	j->own = calloc(cells, sizeof(*j->own));
	j->path = calloc(cells, sizeof(*j->path));
	j->transfer = calloc(j->match_count + 1, sizeof(*j->transfer));
	j->held_ns = calloc(j->worker_count + 1, sizeof(*j->held_ns));
	if (!j->held_ns || !j->transfer || !cursor || !seen || !j->pauses || !j->pause_first ||
		!j->own || !j->path)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		n += list_pauses(j, w, n, seen, &aside);
		j->pause_first[w + 1] = cursor[w] = n;
		add_own(j, w);
	}
	j->visits = calloc(n + 1, sizeof(*j->visits));
	if (!j->visits)
		return -ENOMEM;
	walk(j, cursor);
	return find_gap(j);
}
