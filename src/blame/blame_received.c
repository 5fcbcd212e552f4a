/* SPDX-License-Identifier: Apache-2.0 */
/* blame_received.c - which rank the others send more to than before, as the tokens of an expert that most are routed to. Its GPU
 * has that much more to do, which is not to be seen in when its host calls: all end together, and later than before.
 *
 * Known by the bytes of its Recvs, against those of its peers and by themselves, from the step on from which they are
 * JOB_STAGE_RATIO times as many as before, and the steps likewise longer, by no more than such a GPU's work grows: else it is
 * something else. One that was always sent more is how work is divided. */
#include "blame/blame_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What each worker is sent in each step. */
static void sum_received(const struct job *j, float *ret)
{
	size_t s = 0;

	for (size_t i = 0; i < j->item_count; i++) {
		const struct job_item *t = &j->items[i];

		if (t->op != NCCL_RECV || t->enter_ns < j->cuts[0])
			continue;
		s = s < j->step_count && t->enter_ns >= j->cuts[s] ? s : 0;
		while (s < j->step_count && t->enter_ns >= j->cuts[s + 1])
			s++;
		if (s < j->step_count)
			ret[t->worker * j->step_count + s] +=
				(float)job_call(j, (uint32_t)i)->bytes;
	}
}

/* By group and step: the median of what its members are sent. */
static void find_medians(const struct job *j, const float *received, float *room, float *ret)
{
	for (uint32_t g = 0; g < j->group_count; g++)
		for (size_t s = 0; s < j->step_count; s++) {
			size_t n = 0;

			for (uint32_t w = 0; w < j->worker_count; w++)
				if (j->group[w] == g)
					room[n++] = received[w * j->step_count + s];
			ret[g * j->step_count + s] = blame_median(room, n);
		}
}

static float median_of(const float *values, size_t n, float *room)
{
	memcpy(room, values, n * sizeof(*values));
	return blame_median(room, n);
}

static bool has_received(const struct job *j)
{
	for (size_t i = 0; i < j->item_count; i++)
		if (j->items[i].op == NCCL_RECV)
			return j->is_steady;
	return false;
}

/* How many times as high the values are from @since on; 0: they were nothing before. */
static double growth_of(const float *values, size_t since, size_t n, float *room)
{
	double before = (double)median_of(values, since, room);

	return before > 0 ? (double)median_of(values + since, n - since, room) / before : 0;
}

int blame_received(const struct job *j, uint32_t *ret_worker, struct blame_suspect *ret)
{
	size_t n = j->step_count;
	_cleanup_free_ float *received = calloc(j->worker_count * n + 1, sizeof(*received));
	_cleanup_free_ float *room = calloc(MAX(j->worker_count, n) + 1, sizeof(*room));
	_cleanup_free_ float *series = calloc(2 * n + 1, sizeof(*series));
	_cleanup_free_ float *medians = calloc(j->group_count * n + 1, sizeof(*medians));
	float *steps = series + n;

	*ret = (struct blame_suspect){0};
	if (!received || !room || !series || !medians)
		return -ENOMEM;
	if (!has_received(j))
		return 0;
	sum_received(j, received);
	find_medians(j, received, room, medians);
	for (size_t s = 0; s < n; s++)
		steps[s] = (float)(j->cuts[s + 1] - j->cuts[s]);
	for (uint32_t w = 0; w < j->worker_count; w++) {
		uint32_t since;
		float before, longer;
		double more;

		for (size_t s = 0; s < n; s++) {
			float peers = medians[j->group[w] * n + s];

			series[s] = peers > 0 ? received[w * n + s] / peers : 1;
		}
		since = blame_since(series, n, room);
		if (!since)
			continue;
		before = median_of(steps, since, room);
		longer = median_of(steps + since, n - since, room) - before;
		/* where the peers are sent less it stands out, too */
		more = MIN(growth_of(series, since, n, room),
			growth_of(received + w * n, since, n, room));
		if (more < JOB_STAGE_RATIO || more <= ret->received ||
			longer < (float)(JOB_STAGE_RATIO - 1) * before ||
			(double)longer > JOB_STAGE_RATIO * (more - 1) * (double)before)
			continue;
		*ret_worker = w;
		*ret = (struct blame_suspect){.received = more,
			.lost_ns = (uint64_t)((double)longer * (double)(n - since)),
			.late = (uint32_t)(n - since),
			.seen = (uint32_t)(n - since),
			.lag_ns = (uint64_t)longer,
			.period = 1,
			.since_ns = j->cuts[since]};
	}
	return ret->received > 0;
}
