/* SPDX-License-Identifier: Apache-2.0 */
/* clocks.h - how far apart the clocks of nodes are: the one solver, of the cluster as calls come in, of explain, and of
 * merge. Pure.
 *
 * Three sources. A push says when it was sent: the time it came less that is the distance plus its way,
 * so the least of many is a bound. And all ranks leave a collective that makes them wait for each
 * other within microseconds, so the difference of these times between two nodes is the distance of
 * their clocks; the median of many, with a slope, is good to some ten microseconds. Where two
 * only send to each other, their quickest messages both ways bound it. Nodes that are
 * tied by such differences, directly or through others, are placed against each other by those, and
 * all together against the cluster's clock by the least bound among them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct clocks;
/* clocks_new - differences within @point_ns are one point of the line through the last CLOCK_POINTS of them. -ENOMEM. */
int clocks_new(uint32_t nodes_max, int64_t point_ns, struct clocks **ret);
void clocks_free(struct clocks *c);
DEFINE_CLEANUP(struct clocks *, clocks_free)

/* clocks_add - node @node, below nodes_max, begins. Of nodes that are tied the one with the lowest @key
 * is what the others are compared with. -ENOMEM. */
int clocks_add(struct clocks *c, uint32_t node, uint64_t key);
void clocks_forget(struct clocks *c, uint32_t node);

void clocks_pushed(struct clocks *c, uint32_t node, int64_t sent_ns, int64_t received_ns);

/* clocks_left - two nodes left a collective at the same moment, by their clocks. -ENOMEM; -ENOBUFS:
 * there are pairs enough. */
int clocks_left(struct clocks *c, uint32_t hub, int64_t hub_ns, uint32_t node, int64_t node_ns);

/* clocks_sent - a message that @to waited for came to it, each by its own clock. Likewise. */
int clocks_sent(struct clocks *c, uint32_t from, int64_t sent_ns, uint32_t to, int64_t received_ns);

/* clocks_is_end - is @leave_ns of a rank that entered a collective when that ended, and not when the rank had time to
 * look? @wait_ns: it waited so long before; UINT64_MAX: not known. */
bool clocks_is_end(int64_t enter_ns, int64_t leave_ns, uint64_t wait_ns);

/* clocks_solve - what was told so far comes into effect. */
void clocks_solve(struct clocks *c);

/* clocks_offset - to be added to @at_ns, a time of @node, for the cluster's clock. */
int64_t clocks_offset(const struct clocks *c, uint32_t node, int64_t at_ns);
/* clocks_holds - whether the clock that clocks_offset() is of is the one that showed @at_ns, in a message
 * that came at @received_ns: false: a clock was set since. */
bool clocks_holds(const struct clocks *c, uint32_t node, int64_t at_ns, int64_t received_ns);
/* clocks_error - against nodes that it is tied to; of others against the cluster's clock. UINT64_MAX:
 * nothing is known. */
uint64_t clocks_error(const struct clocks *c, uint32_t node);
/* clocks_spread - how far apart the ends of collectives are that it meets others in, as learnt. */
uint64_t clocks_spread(const struct clocks *c, uint32_t node);
/* clocks_root - the node that it is compared with, through others or directly; itself: with nobody else. */
uint32_t clocks_root(const struct clocks *c, uint32_t node);
/* clocks_met - collectives that the weakest pair on the way from its root was told of. */
uint64_t clocks_met(const struct clocks *c, uint32_t node);
double clocks_drift_ppm(const struct clocks *c, uint32_t node);
uint64_t clocks_steps(
	const struct clocks *c); /* estimates that began anew, because a clock jumped */
size_t clocks_bytes(const struct clocks *c);
