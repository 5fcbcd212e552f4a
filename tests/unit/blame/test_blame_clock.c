/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_clock.c - when collectives end, and what that says about clocks: the last call before a synchronisation that
 * blocked, and no other; nodes are set by these, whoever is late; messages where there are no collectives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "blame/blame.h"
#include "blame/ends.h"
#include "wire/ids.h"

#define MS    INT64_C(1000000)
#define STEPS 40
#define BEGIN (INT64_C(1700000000) * 1000 * MS)

static struct push_call call_at(int64_t enter_ns)
{
	return (struct push_call){.comm = 7,
		.seq = 1,
		.enter_ns = enter_ns,
		.leave_ns = enter_ns + 30000,
		.wait_ns = UINT64_MAX,
		.nranks = 3,
		.peer = -1,
		.op = NCCL_ALL_REDUCE};
}

static void test_last_before_sync(void **state)
{
	struct push_call a = call_at(BEGIN), b = call_at(BEGIN + MS), c = call_at(BEGIN + 200 * MS);
	bool is_end[3] = {true, true, true};
	struct ends e = {0};

	ends_call(&e, &a, &is_end[0]);
	ends_call(&e, &b, &is_end[1]);
	ends_sync(&e, BEGIN + 2 * MS, BEGIN + 90 * MS);
	ends_sync(&e, BEGIN + 91 * MS, BEGIN + 95 * MS); /* for something else */
	ends_call(&e, &c, &is_end[2]);
	ends_sync(&e, BEGIN + 210 * MS, BEGIN + 210 * MS + 3000); /* it had ended long ago */
	assert_false(is_end[0]);
	assert_int_equal(a.wait_ns, UINT64_MAX);
	assert_true(is_end[1]);
	assert_int_equal(b.leave_ns, BEGIN + 90 * MS);
	assert_int_equal(b.wait_ns, 88 * MS);
	assert_false(is_end[2]);
	assert_int_equal(c.wait_ns, UINT64_MAX);
}

struct made {
	struct blame_worker workers[3];
	struct blame_call calls[3 * STEPS];
	struct blame_tie ties[3];
	size_t count;
};

/* Rank 2 of three nodes comes 70 ms late to each collective; all leave together, 5 us apart. */
static void make(struct made *m, int64_t jump_ns)
{
	static const char *const nodes[] = {"a", "b", "c"};
	static const int64_t ahead[] = {0, -7 * MS, 8 * MS};

	*m = (struct made){0};
	for (uint32_t w = 0; w < 3; w++)
		m->workers[w] = (struct blame_worker){.rank = (int32_t)w,
			.node = nodes[w],
			.pid = 10 + w,
			.error_ns = UINT64_MAX};
	for (int64_t i = 0; i < STEPS; i++)
		for (uint32_t w = 0; w < 3; w++) {
			int64_t at = BEGIN + i * 160 * MS + ahead[w];
			struct push_call c = call_at(at + (w == 2 ? 70 * MS : 0));

			if (w == 1 && i >= STEPS / 2)
				at += jump_ns;
			c.enter_ns += w == 1 && i >= STEPS / 2 ? jump_ns : 0;
			c.seq = (uint64_t)i + 1;
			c.rank = (int32_t)w;
			c.leave_ns = at + 150 * MS + (int64_t)w * 5000;
			c.wait_ns = (uint64_t)(c.leave_ns - c.enter_ns - 2 * MS);
			m->calls[m->count++] = (struct blame_call){.worker = w, .c = c};
		}
}

static void test_nodes_are_set(void **state)
{
	struct made m;

	make(&m, 0);
	assert_int_equal(blame_align(m.workers, 3, m.calls, m.count, m.ties), 0);
	assert_int_equal(m.workers[0].offset_ns, 0);
	assert_true(llabs(m.workers[1].offset_ns - 7 * MS) < MS / 10);
	assert_true(llabs(m.workers[2].offset_ns + 8 * MS) < MS / 10);
	for (int w = 1; w < 3; w++) {
		assert_in_range(m.workers[w].error_ns, 1, MS / 10);
		assert_int_equal(m.ties[w].by, 0);
		assert_int_equal(m.ties[w].met, STEPS);
	}
}

/* One clock is known, that of a node that is not the first: the others are set by it, and their distance from it is known no
 * better than if it were not. */
static void test_known_clock_beside(void **state)
{
	struct made m;
	uint64_t apart[2];

	for (int known = 0; known < 2; known++) {
		make(&m, 0);
		for (size_t i = 0; i < m.count; i++)
			if (m.calls[i].worker == 0)
				m.calls[i].c.leave_ns += (int64_t)(i * 7 % 40) * MS / 10;
		if (known) {
			m.workers[2].offset_ns = -8 * MS;
			m.workers[2].error_ns = 0;
		}
		assert_int_equal(blame_align(m.workers, 3, m.calls, m.count, NULL), 0);
		apart[known] = m.workers[0].error_ns + m.workers[2].error_ns;
	}
	assert_int_equal(m.workers[2].offset_ns, -8 * MS);
	assert_true(llabs(m.workers[0].offset_ns) < 3 * MS);
	assert_in_range(apart[0], MS / 10, 3 * MS);
	assert_true(2 * apart[1] >= apart[0]);
}

/* A clock that is set meanwhile: as it is at the end. */
static void test_clock_is_set_meanwhile(void **state)
{
	struct made m;

	make(&m, 300 * MS);
	assert_int_equal(blame_align(m.workers, 3, m.calls, m.count, NULL), 0);
	assert_true(llabs(m.workers[1].offset_ns - 7 * MS + 300 * MS) < MS / 10);
}

/* Half of the ranks are not traced, waits are not known, operations differ: nothing is told, and nothing made up. */
static void test_nothing_to_tell(void **state)
{
	struct made m;

	for (int kind = 0; kind < 3; kind++) {
		make(&m, 0);
		for (size_t i = 0; i < m.count; i++) {
			struct push_call *c = &m.calls[i].c;

			if (kind == 0 && m.calls[i].worker)
				c->comm = 0;
			if (kind == 1)
				c->wait_ns = UINT64_MAX;
			if (kind == 2 && m.calls[i].worker == 1)
				c->op = NCCL_ALL_GATHER;
		}
		assert_int_equal(blame_align(m.workers, 3, m.calls, m.count, m.ties), 0);
		assert_int_equal(m.workers[1].offset_ns, 0);
		assert_int_equal(m.ties[1].by, UINT32_MAX);
		assert_int_equal(m.workers[1].error_ns, UINT64_MAX);
	}
}

/* Two that only send to each other: what both ways differ by is twice the distance. */
static void test_messages(void **state)
{
	struct blame_worker workers[2] = {{.rank = 0, .node = "a", .error_ns = UINT64_MAX},
		{.rank = 1, .node = "b", .error_ns = UINT64_MAX}};
	struct blame_call calls[4 * STEPS];
	size_t n = 0;

	for (int64_t i = 0; i < STEPS; i++)
		for (int32_t from = 0; from < 2; from++) {
			int64_t sent = BEGIN + i * 100 * MS + from * 50 * MS;

			for (int32_t w = 0; w < 2; w++) {
				struct push_call c = call_at(sent + (w ? 9 * MS : 0));

				c.op = w == from ? NCCL_SEND : NCCL_RECV;
				c.rank = w;
				c.peer = 1 - w;
				c.nranks = 2;
				c.seq = (uint64_t)i + 1;
				if (w != from) {
					c.leave_ns = c.enter_ns + 2 * MS;
					c.wait_ns = (uint64_t)(2 * MS);
				}
				calls[n++] = (struct blame_call){.worker = (uint32_t)w, .c = c};
			}
		}
	assert_int_equal(blame_align(workers, 2, calls, n, NULL), 0);
	assert_true(llabs(workers[1].offset_ns + 9 * MS) < MS / 10);
	assert_in_range(workers[1].error_ns, 2 * MS, 3 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_before_sync),
		cmocka_unit_test(test_nodes_are_set),
		cmocka_unit_test(test_known_clock_beside),
		cmocka_unit_test(test_clock_is_set_meanwhile),
		cmocka_unit_test(test_nothing_to_tell),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
