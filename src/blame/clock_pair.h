/* SPDX-License-Identifier: Apache-2.0 */
/* clock_pair.h - the distance of two clocks over time, from moments that both have seen. Pure.
 *
 * Differences of about a second (point_ns) become a point, their median; the line through the last 32 points
 * (Theil and Sen) is the estimate. Four differences in a row or more that agree with each other and not with
 * the line, for a point_ns at least, mean that a clock was set: the estimate begins anew. For a moment the ends of
 * collectives may be as far apart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SAMPLES 64
#define CLOCK_POINTS  32
#define CLOCK_ODD     4
#define CLOCK_APART   16

struct clock_moment {
	int64_t at_ns,
		apart_ns; /* the first clock's time; what to add to the second for the first */
};
struct clock_point {
	struct clock_moment m;
	uint64_t mad_ns;
	uint32_t samples;
};

struct clock_pair {
	uint32_t hub, node;
	int64_t point_ns;
	struct clock_moment samples[CLOCK_SAMPLES], odd[CLOCK_ODD];
	uint32_t sample_count, odd_count;
	int64_t odd_received_ns;  /* when the first of these came: the keeper's */
	uint64_t told;            /* when it learned last: likewise */
	struct clock_moment set;  /* the first one after a clock was set */
	uint32_t stride, skipped; /* every so manyth is kept; since the last one that was */
	int64_t last_apart_ns;    /* of the difference before */
	uint64_t apart
		[CLOCK_APART]; /* by how much one differed from the one before: the ends of collectives are no moment */
	uint32_t told_count;
	struct clock_point points[CLOCK_POINTS];
	uint32_t point_count, point_next;
	/* the quickest message from the hub to the node, and back; INT64_MAX: none */
	int64_t there_ns, back_ns;
	int64_t message_ns; /* the newest, by the hub's clock */
	uint64_t met;       /* collectives */
	/* the line */
	bool is_fitted, is_stale; /* there is one; something was added since */
	struct clock_moment line; /* its newest end */
	double slope;
	uint64_t error_ns;
};

#define CLOCK_PAIR_INIT(a, b, point)                                                               \
	((struct clock_pair){.hub = (a),                                                           \
		.node = (b),                                                                       \
		.point_ns = (point),                                                               \
		.there_ns = INT64_MAX,                                                             \
		.back_ns = INT64_MAX})

/* clock_pair_spread - how far apart the ends of a collective are for these two, as learnt; what is usual before. */
uint64_t clock_pair_spread(const struct clock_pair *p);
/* clock_pair_add - true: a clock was set. */
bool clock_pair_add(struct clock_pair *p, struct clock_moment m);
void clock_pair_fit(struct clock_pair *p);
/* clock_pair_sent - a message that was sent and received, each by its own clock. */
void clock_pair_sent(struct clock_pair *p, bool from_hub, int64_t sent_ns, int64_t received_ns);
