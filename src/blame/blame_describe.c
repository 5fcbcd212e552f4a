/* SPDX-License-Identifier: Apache-2.0 */
/* blame_describe.c - what is told of one that is named: in which steps it was late, by how much, at regular
 * distances or not, for which communication, and who was late together with it. */
#include "blame/blame_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stat/periodicity.h"
#include "stat/robust.h"

#define LATE_MIN       2 /* steps: fewer are chance beside a lasting excess */
#define LARGE_SHARE    0.8
#define ALWAYS_SHARE   0.8
#define TOGETHER_SHARE 0.6 /* of the steps in which either of two is late */

/* The communication that @worker came latest to, for whoever waited. */
static void find_latest(const struct job *j, uint32_t worker, struct blame_suspect *s)
{
	const struct job_visit *best = NULL;

	for (size_t i = 0; i < j->visit_count; i++)
		if (j->visits[i].worker == worker && (!best || j->visits[i].lag_ns > best->lag_ns))
			best = &j->visits[i];
	if (best) {
		const struct push_call *c = job_call(j, j->matches[best->match].last);

		s->comm = c->comm;
		s->seq = c->seq;
		s->op = c->op;
	}
}

/* Half of its lasting excess in a step, of one that is always a bit slower; 0: most of its excess is that of late steps. */
static double lasting_half(const struct job *j, uint32_t worker)
{
	const struct job_cost *c = &j->costs[worker];
	double late = 0;

	for (size_t at = worker * j->step_count; at < (worker + 1) * j->step_count; at++)
		late += j->late[at] ? (double)j->excess[at] : 0;
	if (c->late >= LATE_MIN && 2 * late >= c->excess_ns)
		return 0;
	return MAX(c->own_ns - c->peer_ns, 1.0) / (2 * (double)MAX(c->seen, 1U));
}

/* In which steps it is late: those far beyond chance; of one that is always a bit slower, those with
 * at least half of its lasting excess. */
static bool is_late_in(const struct job *j, uint32_t worker, size_t step, double half)
{
	size_t at = worker * j->step_count + step;

	return half > 0 ? (double)j->excess[at] >= half : j->late[at];
}

/* Where a few large delays are nearly all of the lateness, the small ones are chance: only the large are
 * kept. How many. */
static size_t keep_large(uint64_t *at, uint64_t *lag, size_t n)
{
	uint64_t most = 0;
	double all = 0, large = 0;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		most = MAX(most, lag[i]);
		all += (double)lag[i];
	}
	for (size_t i = 0; i < n; i++)
		large += lag[i] >= most / 2 ? (double)lag[i] : 0;
	if (large < LARGE_SHARE * all)
		return n;
	for (size_t i = 0; i < n; i++) {
		if (lag[i] < most / 2)
			continue;
		at[kept] = at[i];
		lag[kept++] = lag[i];
	}
	return kept;
}

static int describe_steps(const struct job *j, uint32_t worker, struct blame_suspect *s)
{
	const struct job_cost *c = &j->costs[worker];
	double half = lasting_half(j, worker);
	_cleanup_free_ uint64_t *at = calloc(j->step_count + 1, sizeof(*at));
	_cleanup_free_ uint64_t *lag = calloc(j->step_count + 1, sizeof(*lag));
	struct periodicity p;
	size_t n = 0;

	if (!at || !lag)
		return -ENOMEM;
	for (size_t i = 0; i < j->step_count; i++) {
		if (!is_late_in(j, worker, i, half))
			continue;
		if (!n)
			s->since_ns = j->cuts[i];
		s->until_ns = j->cuts[i + 1];
		at[n] = i + 1;
		lag[n++] = (uint64_t)MAX(j->excess[worker * j->step_count + i], 0.0F);
	}
	n = keep_large(at, lag, n);
	s->late = (uint32_t)n;
	s->seen = c->seen;
	if ((double)n >= ALWAYS_SHARE * c->seen)
		s->period = 1;
	else if (periodicity_find(at, n, &p) && p.period < UINT32_MAX)
		s->period = (uint32_t)(p.period + 0.5);
	robust_sort(lag, n);
	s->lag_ns = (uint64_t)(c->exposed * (double)robust_median(lag, n));
	return 0;
}

static uint64_t median_of_steps(const struct job *j, const float *row, float *room)
{
	memcpy(room, row, j->step_count * sizeof(*row));
	return (uint64_t)blame_median(room, j->step_count);
}

int blame_describe(const struct job *j, uint32_t worker, double lost_ns, struct blame_suspect *s)
{
	double span_ns = (double)(j->cuts[j->step_count] - j->cuts[0]);
	_cleanup_free_ float *room = calloc(2 * j->step_count + 2, sizeof(*room));
	float *peers = room ? room + j->step_count + 1 : NULL;
	double path = 0;
	int r;

	if (!room)
		return -ENOMEM;
	*s = (struct blame_suspect){.worker = worker,
		.stage = j->stage_count > 1 ? j->stage[worker] : -1,
		.replica = j->replica[worker],
		.share = MIN(lost_ns / span_ns, 1.0),
		.lost_ns = (uint64_t)lost_ns,
		.waited_ns = (uint64_t)lost_ns * (MAX(j->worker_count, (size_t)1) - 1)};
	for (size_t i = 0; i < j->step_count; i++) {
		size_t at = worker * j->step_count + i;

		path += (double)j->path[at];
		peers[i] = j->own[at] - j->excess[at];
	}
	s->path_ns = (uint64_t)path;
	s->own_ns = median_of_steps(j, j->own + worker * j->step_count, room);
	s->peer_own_ns = (uint64_t)blame_median(peers, j->step_count);
	find_latest(j, worker, s);
	r = describe_steps(j, worker, s);
	return r;
}

bool blame_late_together(const struct job *j, uint32_t a, uint32_t b)
{
	double half_a = lasting_half(j, a), half_b = lasting_half(j, b);
	size_t both = 0, either = 0;

	if (j->group[a] != j->group[b])
		return false;
	for (size_t i = 0; i < j->step_count; i++) {
		bool x = is_late_in(j, a, i, half_a), y = is_late_in(j, b, i, half_b);

		both += x && y;
		either += x || y;
	}
	return both && (double)both >= TOGETHER_SHARE * (double)either;
}
