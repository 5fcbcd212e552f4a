/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while collectives are matched: a batch that could not be taken is sent again, and
 * then everything is there, once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cluster/detect/calls.h"
#include "fault.h"
#include "wire/ids.h"

#define RANKS    12
#define SEQS     20
#define BEGIN_NS INT64_C(1700000000000000000)

static int push(struct calls *c, int rank)
{
	struct push_call items[2 * SEQS];
	struct push_calls b = {.batch = 1, .sent_ns = BEGIN_NS, .items = items};
	struct calls_taken n;

	for (int i = 0; i < SEQS; i++) {
		struct push_call call = {.comm = 7,
			.seq = (uint64_t)i,
			.enter_ns = BEGIN_NS + i * 1000000 + (rank == 3) * 300000,
			.leave_ns = BEGIN_NS + i * 1000000 + 400000,
			.rank = rank,
			.nranks = RANKS,
			.peer = -1,
			.world_rank = rank,
			.pid = 100 + (uint32_t)rank,
			.op = NCCL_ALL_REDUCE};

		call.wait_ns = (uint64_t)(call.leave_ns - call.enter_ns);
		items[b.count++] = call;
		call.op = rank % 2 ? NCCL_RECV : NCCL_SEND;
		call.peer = rank ^ 1;
		items[b.count++] = call;
	}
	snprintf(b.who.node, sizeof(b.who.node), "node-%d", rank / 2);
	b.who.boot = 1 + (uint64_t)rank;
	return calls_take(c, &b, BEGIN_NS + 1000000000, &n);
}

static int match(void *arg)
{
	struct calls *c = NULL;
	struct comm_view v;
	size_t cursor = 0;
	int r = calls_new(&calls_defaults, &c), failed = 0;

	if (r < 0)
		return r;
	for (int rank = 0; rank < RANKS; rank++) {
		r = push(c, rank);
		if (r < 0) {
			failed = r;
			assert_int_equal(r, -ENOMEM);
			assert_int_equal(push(c, rank), 0);
		}
	}
	calls_tick(c, BEGIN_NS + 2000000000);
	fault_suspend();
	assert_true(calls_comm_next(c, &cursor, &v));
	assert_int_equal(v.matched, SEQS);
	assert_int_equal(v.ranks, RANKS);
	fault_resume();
	calls_free(c);
	return failed;
}

static void matching(void **state)
{
	assert_true(fault_torture(match, NULL) >= 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matching),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
