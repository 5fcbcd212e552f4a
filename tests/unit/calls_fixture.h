/* SPDX-License-Identifier: Apache-2.0 */
/* calls_fixture.h - a job whose truth is known, as the batches that the agents of its nodes push.
 *
 * All ranks come to a collective, each in its own time, and leave it TRANSFER_NS after the last has come
 * and up to 20 us later. Each node has a clock that is wrong by skew_ns and drift. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "cluster/detect/calls.h"
#include "wire/ids.h"

#define MS          INT64_C(1000000)
#define SECOND      (1000 * MS)
#define BEGIN_NS    (INT64_C(1700000000) * SECOND)
#define TRANSFER_NS (1 * MS)
#define COMM        UINT64_C(0xabcdef0123456789)
#define JOB_NODES   64

struct made_call {
	uint32_t node;
	struct push_call call;
};

struct job {
	int ranks, ranks_per_node;
	uint64_t seed;
	int64_t skew_ns[JOB_NODES]; /* its clock shows so much more */
	double drift[JOB_NODES];
	struct made_call *items;
	size_t count, room;
	int64_t now_ns; /* true time */
	uint64_t seq;
	uint64_t batches[JOB_NODES];
};

static _unused_ uint64_t job_random(struct job *j)
{
	j->seed = j->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return j->seed >> 33;
}

static _unused_ void job_init(struct job *j, int ranks, int ranks_per_node)
{
	*j = (struct job){
		.ranks = ranks, .ranks_per_node = ranks_per_node, .seed = 7, .now_ns = BEGIN_NS};
}

static _unused_ void job_skew(struct job *j, int64_t most_ns)
{
	for (int i = 0; i < JOB_NODES; i++)
		j->skew_ns[i] = (int64_t)(job_random(j) % (uint64_t)(2 * most_ns)) - most_ns;
}

static _unused_ void job_done(struct job *j)
{
	free(j->items);
}

static _unused_ uint32_t job_node(const struct job *j, int rank)
{
	return (uint32_t)(rank / j->ranks_per_node);
}

static _unused_ int64_t job_clock(const struct job *j, uint32_t node, int64_t true_ns)
{
	return true_ns + j->skew_ns[node] +
	       (int64_t)(j->drift[node] * (double)(true_ns - BEGIN_NS));
}

static _unused_ void job_add(struct job *j, uint32_t node, struct push_call call)
{
	if (j->count == j->room) {
		j->room = j->room ? j->room * 2 : 1024;
		j->items = reallocarray(j->items, j->room, sizeof(*j->items));
		assert_non_null(j->items);
	}
	j->items[j->count++] = (struct made_call){node, call};
}

/* job_call - of a rank, by its node's clock. */
static _unused_ struct push_call job_call(
	const struct job *j, int rank, int64_t enter_ns, int64_t leave_ns)
{
	uint32_t node = job_node(j, rank);
	struct push_call c = {.comm = COMM,
		.seq = j->seq,
		.bytes = 4096,
		.enter_ns = job_clock(j, node, enter_ns),
		.leave_ns = leave_ns ? job_clock(j, node, leave_ns) : 0,
		.rank = rank,
		.nranks = j->ranks,
		.peer = -1,
		.world_rank = rank,
		.pid = 1000 + (uint32_t)rank,
		.op = NCCL_ALL_REDUCE,
		.datatype = 7};

	c.wait_ns = leave_ns ? (uint64_t)(c.leave_ns - c.enter_ns) : UINT64_MAX;
	return c;
}

/* job_step - @step_ns later all ranks come to the next collective, within 50 us, @late (-1: none) later
 * by @lag_ns. */
static _unused_ void job_step(struct job *j, int64_t step_ns, int late, int64_t lag_ns)
{
	int64_t enter[4096], last = INT64_MIN;

	j->now_ns += step_ns;
	for (int i = 0; i < j->ranks; i++) {
		enter[i] = j->now_ns + (int64_t)(job_random(j) % 50000) + (i == late ? lag_ns : 0);
		last = MAX(last, enter[i]);
	}
	for (int i = 0; i < j->ranks; i++)
		job_add(j, job_node(j, i),
			job_call(j, i, enter[i],
				last + TRANSFER_NS + (int64_t)(job_random(j) % 20000)));
	j->now_ns = MAX(j->now_ns, last + TRANSFER_NS);
	j->seq++;
}

static _unused_ void job_shuffle(struct job *j)
{
	for (size_t i = j->count; i > 1; i--) {
		size_t k = job_random(j) % i;
		struct made_call t = j->items[i - 1];

		j->items[i - 1] = j->items[k];
		j->items[k] = t;
	}
}

static _unused_ struct push_calls job_batch(
	struct job *j, uint32_t node, struct push_call *items, size_t count)
{
	struct push_calls b = {.batch = ++j->batches[node],
		.sent_ns = job_clock(j, node, j->now_ns),
		.items = items,
		.count = count};

	snprintf(b.who.cluster, sizeof(b.who.cluster), "test");
	snprintf(b.who.node, sizeof(b.who.node), "node-%02u", node);
	b.who.boot = 99;
	return b;
}

/* job_push - all calls so far, in their order: neighbours of one node are one batch. Received 2 ms after
 * they were sent. */
static _unused_ struct calls_taken job_push(struct job *j, struct calls *c)
{
	struct push_call *items = calloc(j->count ? j->count : 1, sizeof(*items));
	struct calls_taken all = {0}, one;
	size_t i = 0;

	assert_non_null(items);
	while (i < j->count) {
		uint32_t node = j->items[i].node;
		struct push_calls b;
		size_t n = 0;

		while (i < j->count && j->items[i].node == node)
			items[n++] = j->items[i++].call;
		b = job_batch(j, node, items, n);
		assert_int_equal(calls_take(c, &b, j->now_ns + 2 * MS, &one), 0);
		assert_int_equal(one.taken + one.duplicate + one.refused, n);
		all.taken += one.taken;
		all.duplicate += one.duplicate;
		all.refused += one.refused;
	}
	free(items);
	j->count = 0;
	return all;
}

static _unused_ struct calls *calls_made(void)
{
	struct calls *c = NULL;

	assert_int_equal(calls_new(&calls_defaults, &c), 0);
	return c;
}

static _unused_ bool worker_of_rank(const struct calls *c, int rank, struct worker_view *ret)
{
	size_t cursor = 0;

	while (calls_worker_next(c, &cursor, ret))
		if (ret->world_rank == rank)
			return true;
	return false;
}
