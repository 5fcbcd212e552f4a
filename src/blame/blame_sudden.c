/* SPDX-License-Identifier: Apache-2.0 */
/* blame_sudden.c - who is far too late right now: one step is enough if it is far beyond all chance.
 *
 * A worker whose own time in one of the last steps exceeds its peers' by SIGMAS of their ordinary
 * distances and a good part of a step, and most of that excess lies on the path: the job did wait for it. If it was late in
 * the steps before as well, chance averages out: of n of them the mean takes SIGMAS / sqrt(n).
 * It must have taken longer than in its other steps: of the newest step not all may be known yet of the
 * peers, and then it is they who seem to have taken less.
 * Where its peers take longer as well in that step, all of them do something else just then, as a snapshot, each in its own time.
 * Where its peers had such steps too, load moves or all of them pause now and then, and nobody is told
 * apart by one step. */
#include "blame/blame_job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RECENT       2 /* steps, or those of RECENT_NS if these are more */
#define RECENT_NS    INT64_C(4000000000)
#define SIGMAS       15
#define STEP_SHARE   0.05 /* of a step: the excess at least */
#define PATH_SHARE   0.5  /* of the excess, on the path */
#define LONGER_SHARE 0.7  /* of the excess, by which its step took longer than its others */
#define CELLS_LEAST  24   /* steps of peers that the ordinary distance is known from */
#define PEERS_HALF   0.5  /* of the excess: a peer with that had such a step, too */
#define PEERS_SHARE  0.005

/* Steps of all peers of @worker, and how many of them have at least @excess. */
static size_t count_peers(const struct job *j, uint32_t worker, double excess, size_t *ret_cells)
{
	size_t n = 0;

	*ret_cells = 0;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		if (w == worker || j->group[w] != j->group[worker])
			continue;
		*ret_cells += j->step_count;
		for (size_t s = 0; s < j->step_count; s++)
			n += (double)j->excess[w * j->step_count + s] >= excess;
	}
	return n;
}

/* What @worker, and what its peers take longer in @step than in their median step. */
static void find_longer(const struct job *j, uint32_t worker, size_t step, float *room,
	double *ret_own, double *ret_peers)
{
	const float *own = j->own + worker * j->step_count;
	const float *excess = j->excess + worker * j->step_count;

	memcpy(room, own, j->step_count * sizeof(*room));
	*ret_own = (double)(own[step] - blame_median(room, j->step_count));
	for (size_t s = 0; s < j->step_count; s++)
		room[s] = own[s] - excess[s];
	*ret_peers = (double)(own[step] - excess[step] - blame_median(room, j->step_count));
}

/* The excess of @worker in @step and the late ones before it, as far beyond chance as one step's: sum / sqrt(n). */
static double excess_in_row(const struct job *j, uint32_t worker, size_t step)
{
	size_t first = worker * j->step_count, at = first + step;
	double sum = 0, n = 0;

	for (; at + 1 > first && j->late[at]; at--) {
		sum += (double)j->excess[at];
		n++;
	}
	return n > 0 ? sum / sqrt(n) : 0;
}

static bool is_sudden(const struct job *j, uint32_t worker, size_t step, float *room)
{
	size_t at = worker * j->step_count + step, cells, alike;
	double excess = (double)j->excess[at], longer, peers;

	if (!j->late[at] ||
		excess_in_row(j, worker, step) < SIGMAS * (double)j->sigma[j->group[worker]] ||
		excess < STEP_SHARE * (double)j->step_ns ||
		(double)j->path[at] < PATH_SHARE * excess)
		return false;
	find_longer(j, worker, step, room, &longer, &peers);
	if (longer < LONGER_SHARE * excess || peers > PEERS_HALF * excess)
		return false;
	alike = count_peers(j, worker, PEERS_HALF * excess, &cells);
	return cells >= CELLS_LEAST && (double)alike <= PEERS_SHARE * (double)cells;
}

int blame_sudden(const struct job *j, uint32_t *ret_worker, size_t *ret_step)
{
	_cleanup_free_ float *room = calloc(j->step_count + 1, sizeof(*room));
	size_t first = j->step_count;
	double most = 0;

	if (!room)
		return -ENOMEM;
	while (first && (j->step_count - first < RECENT ||
				j->cuts[first] >= j->cuts[j->step_count] - RECENT_NS))
		first--;
	for (size_t s = first; s < j->step_count; s++) {
		for (uint32_t w = 0; w < j->worker_count; w++) {
			double excess = (double)j->excess[w * j->step_count + s];

			if (excess <= most || !is_sudden(j, w, s, room))
				continue;
			most = excess;
			*ret_worker = w;
			*ret_step = s;
		}
	}
	return most > 0;
}
