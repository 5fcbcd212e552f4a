/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_fixture.h - a cluster of made-up nodes with seeds, for the tests of nodes.c. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cluster/detect/nodes.h"

#define SECOND   1000000000LL
#define INTERVAL (10 * SECOND)

static inline double random_uniform(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return ((double)(*seed >> 11) + 0.5) / 9007199254740992.0;
}

static inline double random_normal(uint64_t *seed)
{
	double r = sqrt(-2 * log(random_uniform(seed)));

	return r * cos(6.283185307179586 * random_uniform(seed));
}

static inline struct push_health healthy(const char *node)
{
	struct push_health h = {.who = {.cluster = "c", .rank = -1, .boot = 1},
		.state = PUSH_ACTIVE,
		.score = 0.95,
		.throughput = 1,
		.compute = 0.9,
		.memory = 0.9,
		.cpu = 0.9,
		.workload = "training",
		.gpu_model = "NVIDIA H100 80GB HBM3",
		.gpu_count = 8,
		.signals = {1000, 1, 0.9, 1.98e9, 0.8}};

	snprintf(h.who.node, sizeof(h.who.node), "%s", node);
	return h;
}

static inline struct push_health healthy_number(unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "node-%05u", i);
	return healthy(name);
}

static inline enum nodes_refusal take(struct nodes *n, struct push_health h, int64_t now_ns)
{
	struct threshold t;

	h.sent_ns = now_ns;
	return nodes_take(n, &h, 0, now_ns, &t);
}
