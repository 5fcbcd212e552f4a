/* SPDX-License-Identifier: Apache-2.0 */
/* lags.h - who came last to a collective, by how much, and who waited: of collectives that are
 * complete, with the clocks of their nodes brought together. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct calls;
struct collective;

struct lag_node { /* of the collective in hand */
	uint64_t round;
	int32_t rank; /* its lowest */
	bool holds;   /* its clock was not set since */
	bool is_left;
	int64_t left_ns; /* its first rank to leave, its clock; aligned: the cluster's */
	/* its ranks that do not say how long they waited */
	uint32_t silent;
	int64_t first_enter_ns, last_enter_ns, first_leave_ns, last_leave_ns;
	int64_t shift_ns;  /* to be added to its times besides the offset */
	uint64_t error_ns; /* of its clock, and how far its leaving was from that of others */
};

struct lag_record {             /* the longest lag lately */
	uint64_t longest_ns[2]; /* in this epoch, in the one before */
	int64_t epoch;
};

struct lags {
	/* room for what is in hand */
	struct lag_node *nodes; /* by node */
	size_t node_room;
	uint32_t *touched;
	size_t touched_count, touched_room;
	int64_t *arrivals; /* by slot, cluster's clock; INT64_MIN: not there */
	uint64_t *sorted;
	size_t arrival_room, sorted_room;
	uint64_t round;
	bool is_comparable; /* no clock was set since, or its end tells by how much */
	int64_t solved_ns;  /* clocks */
	/* calls_is_late() */
	uint64_t epoch; /* seconds of the cluster's clock */
	uint64_t all_late_by_ns[2];
	int64_t late_until_ns;
	int64_t slow_until_ns; /* calls_is_slow() */
	struct lag_record collectives, messages;
	int64_t sudden_ns; /* when one was far longer */
	uint64_t settled;  /* communications that are complete, in all */
};

void lags_free(struct lags *l);

/* lags_align - arrivals of @x into lags.arrivals. Where a node left far from when all others did, its
 * clock was set meanwhile, and its times are moved so that it left with them; where that cannot be told,
 * lags.is_comparable is false. -ENOMEM. */
int lags_align(const struct calls *c, const struct collective *x);
/* lags_shift - to be added to a time of @node in the collective that was aligned last. */
int64_t lags_shift(const struct calls *c, uint32_t node, int64_t at_ns);

/* lags_teach - the clocks learn from the end of @x. What finds no room there is not needed: each node has pairs
 * enough. -ENOMEM. */
int lags_teach(struct calls *c, const struct collective *x);

/* lags_fold - the clocks learn from all that are ready, then these are counted. In the order of their
 * times, whatever order they came in. -ENOMEM. */
int lags_fold(struct calls *c);
