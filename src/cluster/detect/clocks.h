/* SPDX-License-Identifier: Apache-2.0 */
/* clocks.h - how far apart the clocks of nodes are. Pure.
 *
 * Two sources. A push says when it was sent: the time it came less that is the distance plus its way,
 * so the least of many is a bound. And all ranks leave a collective that makes them wait for each
 * other within microseconds, so the difference of these times between two nodes is the distance of
 * their clocks; the median of many, with a slope, is good to some ten microseconds. Nodes that are
 * tied by such differences, directly or through others, are placed against each other by those, and
 * all together against the cluster's clock by the least bound among them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

struct clocks;
int clocks_new(uint32_t nodes_max, struct clocks **ret);
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
double clocks_drift_ppm(const struct clocks *c, uint32_t node);
uint64_t clocks_steps(
	const struct clocks *c); /* estimates that began anew, because a clock jumped */
size_t clocks_bytes(const struct clocks *c);
