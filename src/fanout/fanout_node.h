/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_node.h - which nodes are asked: addresses, in the order they were named. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errinfo.h"
#include "net/client/client.h"

#define FANOUT_ADDRESS_LEN 272 /* a host name of 253 bytes, brackets, a port */

struct fanout_node {
	struct http_endpoint endpoint;
	char address[FANOUT_ADDRESS_LEN]; /* "gpu-1:8080": how warnings name it */
};

struct fanout_nodes {
	struct fanout_node *items;
	size_t count;
};

/* fanout_nodes_add - adds what @list names, separated by commas: "gpu-1:8080,gpu-2". One that is
 * there already is not added again. Without a scheme @tls decides, without a port FANOUT_PORT.
 * -EINVAL with a sentence for what is no address; -E2BIG beyond FANOUT_NODES_MAX; -ENOMEM. Those
 * before the bad one have been added. */
int fanout_nodes_add(struct fanout_nodes *n, const char *list, bool tls, struct errinfo *reterr);
void fanout_nodes_done(struct fanout_nodes *n);

/* How far the nodes' clocks are apart, with error bars. Pure arithmetic.
 *
 * A node tells its wall time; it did so at some moment between the request's leaving and the
 * reply's first byte. So the offset to the midpoint is wrong by half of that round trip at most:
 * that is the error bar, and it holds whatever the network does. */

#define FANOUT_CLOCK_SAMPLES 3

struct fanout_clock_sample {
	int64_t remote_ns;       /* what the node said */
	int64_t sent_ns, got_ns; /* by this machine's wall clock */
};

struct fanout_clock { /* of one node */
	bool known;
	int64_t offset_ns; /* the node's clock minus ours */
	uint64_t error_ns; /* the true offset is within +- this */
};

/* fanout_clock_median - of @count samples (more than FANOUT_CLOCK_SAMPLES are not looked at) the
 * one with the median offset; of two the one with the shorter way. Samples that make no sense
 * (received before sent, times beyond the year 2200) do not count. */
struct fanout_clock fanout_clock_median(const struct fanout_clock_sample *samples, size_t count);

struct fanout_skew {   /* a difference that is larger than the threshold, for sure */
	size_t node;   /* whose clock; an index */
	size_t other;  /* compared with this node; SIZE_MAX: with this machine */
	int64_t by_ns; /* positive: node is ahead of other */
	uint64_t error_ns;
};

/* fanout_clock_skews - which of @count clocks differ by more than @threshold_ns after both error
 * bars are taken off. Each is compared with the node whose offset is the median, and that one with
 * this machine: one wrong clock makes one entry. Writes up to @max entries, largest first, and
 * returns how many there are. */
size_t fanout_clock_skews(const struct fanout_clock *clocks, size_t count, uint64_t threshold_ns,
	struct fanout_skew *ret, size_t max);
