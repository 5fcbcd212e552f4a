/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals.c - see arrivals.h. Who opened a connection and what a sleep is for are not recorded, so
 * that a server without requests and a loop that waits for its data look alike but for this:
 *
 * Whoever waits for its own threads or children is woken by them: then these are no requests.
 *
 * What somebody else sends at will has no least length: of exponential pauses (a Poisson process)
 * the tenth percentile is 15 % of the median, while an answer takes its time at least. Below 25 %
 * they are requests.
 *
 * What comes by the clock does not depend on how long the work before it took: the pauses take up
 * the difference, and the distances of their ends vary far less than they do. Where both vary
 * alike, the jitter of one arrival makes one distance longer and the next one shorter, so that two
 * neighbours lie on different sides of the median in two of three cases; in one of two if each
 * distance is a length of its own, in all of them if the loop itself alternates. From 200 pauses on
 * that can be told. */
#include "diagnose/calls/arrivals.h"

#include <errno.h>
#include <stdlib.h>

#include "diagnose/accounts/lineage.h"
#include "stat/robust.h"

#define PAUSES_MIN     12
#define LEAST_LENGTH   0.25
#define FAR_LESS       0.25
#define JITTER_PAUSES  200
#define JITTER_AT_ONCE 0.60
#define JITTER_AT_MOST 0.80

static const struct event *stay_of(
	const struct recording *rec, const struct gap_list *gaps, const struct gap *g)
{
	const struct part *longest = NULL;

	for (size_t i = g->part; i < g->part + g->parts; i++) {
		const struct part *p = &gaps->parts.items[i];

		if (p->event != SIZE_MAX && rec->events[p->event].op == HOST_SCHED_SWITCH &&
			rec->events[p->event].source == SOURCE_HOST &&
			(!longest || p->ns > longest->ns))
			longest = p;
	}
	return longest ? &rec->events[longest->event] : NULL;
}

/* Whether most of the sleeps were ended by the process itself or its children. 0, 1 or -ENOMEM. */
static int are_woken_by_own(
	const struct recording *rec, const struct gap_list *gaps, const size_t *members, size_t n)
{
	_cleanup_(lineage_done) struct lineage family = {0};
	size_t own = 0;

	if (lineage_build(rec, &family) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct gap *g = &gaps->items[members[i]];
		const struct event *stay = stay_of(rec, gaps, g);
		uint32_t waker = stay ? (uint32_t)stay->stream : 0;

		own += waker && lineage_root(&family, waker, g->span.end_ns) ==
					lineage_root(&family, g->span.pid, g->span.end_ns);
	}
	return own * 2 >= n;
}

/* The share of neighbouring distances on different sides of @median. */
static double alternation(
	const struct gap_list *gaps, const size_t *members, size_t n, uint64_t median)
{
	size_t changes = 0, compared = 0;
	int before = 0;

	for (size_t i = 1; i < n; i++) {
		uint64_t d = (uint64_t)(gaps->items[members[i]].span.end_ns -
					gaps->items[members[i - 1]].span.end_ns);
		int side = (d > median) - (d < median);

		if (side && before) {
			compared++;
			changes += side != before;
		}
		before = side;
	}
	return compared >= JITTER_PAUSES / 2 ? (double)changes / (double)compared : 0;
}

int arrivals_are_requests(
	const struct recording *rec, const struct gap_list *gaps, const size_t *members, size_t n)
{
	_cleanup_free_ uint64_t *lengths = calloc(n + 1, sizeof(*lengths));
	_cleanup_free_ uint64_t *distances = calloc(n + 1, sizeof(*distances));
	double median, side;
	int r;

	if (!lengths || !distances)
		return -ENOMEM;
	if (n < PAUSES_MIN)
		return 0;
	r = are_woken_by_own(rec, gaps, members, n);
	if (r)
		return MIN(r, 0);
	for (size_t i = 0; i < n; i++) {
		const struct span *s = &gaps->items[members[i]].span;

		lengths[i] = (uint64_t)(s->end_ns - s->start_ns);
		if (i)
			distances[i - 1] =
				(uint64_t)(s->end_ns - gaps->items[members[i - 1]].span.end_ns);
	}
	robust_sort(lengths, n);
	robust_sort(distances, n - 1);
	median = (double)robust_median(lengths, n);
	if ((double)robust_quantile(lengths, n, 0.1) < LEAST_LENGTH * median)
		return 1;
	if ((double)robust_mad(distances, n - 1) < FAR_LESS * (double)robust_mad(lengths, n))
		return 1;
	side = n >= JITTER_PAUSES ? alternation(gaps, members, n, robust_median(distances, n - 1))
				  : 0;
	return side >= JITTER_AT_ONCE && side <= JITTER_AT_MOST;
}
