/* SPDX-License-Identifier: Apache-2.0 */
/* test_calls.c - batches: those that come twice, calls that cannot be, ceilings, and the end of the
 * window. */
#include "calls_fixture.h"

#include <errno.h>

#define HOURS_NS (3700 * SECOND)

static struct calls *calls_with(struct calls_settings s)
{
	struct calls *c = NULL;

	assert_int_equal(calls_new(&s, &c), 0);
	return c;
}

static size_t workers_of(const struct calls *c)
{
	struct worker_view w;
	size_t cursor = 0, n = 0;

	while (calls_worker_next(c, &cursor, &w))
		n++;
	return n;
}

static size_t comms_of(const struct calls *c, struct comm_view *ret)
{
	struct comm_view v;
	size_t cursor = 0, n = 0;

	while (calls_comm_next(c, &cursor, &v)) {
		*ret = v;
		n++;
	}
	return n;
}

/* A batch that comes again counts once, one of another boot is another. */
static void test_batch_twice(void **state)
{
	struct calls *c = calls_made();
	struct push_call item;
	struct calls_taken n;
	struct push_calls b;
	struct job j;

	job_init(&j, 2, 1);
	item = job_call(&j, 0, BEGIN_NS, BEGIN_NS + MS);
	b = job_batch(&j, 0, &item, 1);
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.taken, 1);
	item.seq++; /* what is in it does not matter */
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.duplicate, 1);
	b.who.boot++;
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.taken, 1);
	b.batch = UINT64_MAX; /* a number out of line spoils nothing: the next ones are taken */
	item.seq++;
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.taken, 1);
	b.batch = 3;
	item.seq++;
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.taken, 1);
	b.who.boot = 0; /* an agent that does not tell it: call by call */
	for (int i = 0; i < 2; i++) {
		item.seq = 100;
		assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
		assert_int_equal(n.taken, i == 0);
		assert_int_equal(n.duplicate, i == 1);
	}
	calls_free(c);
}

#define HOSTILE(X)                                                                                 \
	X(comm = 0)                                                                                \
	X(seq = UINT64_C(1) << 63)                                                                 \
	X(nranks = INT32_MAX)                                                                      \
	X(nranks = 0)                                                                              \
	X(nranks = -1)                                                                             \
	X(rank = 8)                                                                                \
	X(rank = -1)                                                                               \
	X(rank = INT32_MIN)                                                                        \
	X(world_rank = -2)                                                                         \
	X(op = 0)                                                                                  \
	X(op = NCCL_GROUP_END)                                                                     \
	X(op = UINT16_MAX)                                                                         \
	X(enter_ns = -1)                                                                           \
	X(enter_ns = INT64_MIN)                                                                    \
	X(enter_ns = BEGIN_NS + 3600 * SECOND)                                                     \
	X(leave_ns = INT64_MAX)                                                                    \
	X(leave_ns = 1)                                                                            \
	X(leave_ns = -1)                                                                           \
	X(wait_ns = UINT64_MAX - 1)

static void test_hostile_calls(void **state)
{
	struct calls *c = calls_made();
	struct push_call good, bad;
	struct comm_view v;
	struct calls_taken n;
	struct push_calls b;
	uint64_t refused = 0;
	struct job j;

	job_init(&j, 8, 8);
	good = job_call(&j, 3, BEGIN_NS, BEGIN_NS + MS);
#define X(change)                                                                                  \
	bad = good;                                                                                \
	bad.change;                                                                                \
	b = job_batch(&j, 0, &bad, 1);                                                             \
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);                                      \
	assert_int_equal(n.refused, 1);                                                            \
	refused++;
	HOSTILE(X)
#undef X
	bad = good;
	bad.op = NCCL_SEND;
	bad.peer = 8;
	b = job_batch(&j, 0, &bad, 1);
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.refused, 1);
	assert_int_equal(calls_stats(c).refused, refused + 1);
	assert_int_equal(workers_of(c), 0);
	assert_int_equal(comms_of(c, &v), 0);
	b = job_batch(&j, 0, &good, 1); /* positive control */
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.taken, 1);
	b.who.node[0] = '\0';
	b.batch++;
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.refused, 1);
	calls_free(c);
}

/* One that claims to be a rank of a job, with numbers out of line, does it no harm. */
static void test_stranger(void **state)
{
	struct calls *c = calls_made();
	struct push_call lie;
	struct worker_view w;
	struct comm_view v;
	struct calls_taken n;
	struct push_calls b;
	struct job j;

	job_init(&j, 4, 2);
	lie = job_call(&j, 3, BEGIN_NS, BEGIN_NS + MS);
	lie.seq = UINT64_MAX - 1;
	lie.nranks = 1000;
	lie.rank = 999;
	b = job_batch(&j, 9, &lie, 1);
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.taken, 1);
	for (int i = 0; i < 100; i++)
		job_step(&j, 10 * MS, 2, 5 * MS);
	n = job_push(&j, c);
	assert_int_equal(n.taken, 400);
	lie = job_call(&j, 1, BEGIN_NS, BEGIN_NS + MS); /* a rank that is another's */
	b = job_batch(&j, 9, &lie, 1);
	assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
	assert_int_equal(n.refused, 1);
	calls_tick(c, j.now_ns);
	assert_int_equal(comms_of(c, &v), 1);
	assert_int_equal(v.matched, 100);
	assert_int_equal(v.nranks, 4);
	assert_int_equal(v.last_seq, 99);
	assert_true(worker_of_rank(c, 2, &w));
	assert_int_equal(w.last_count, 100);
	job_done(&j);
	calls_free(c);
}

static void test_ceilings(void **state)
{
	struct calls_settings s = calls_defaults;
	struct calls *c;
	struct comm_view v;
	struct calls_taken n;
	struct job j;

	s.comms_max = 4;
	s.workers_max = 8;
	s.calls_max = 400;
	c = calls_with(s);
	job_init(&j, 8, 8);
	for (int i = 0; i < 6; i++) { /* communicators */
		struct push_call one = job_call(&j, 0, BEGIN_NS, BEGIN_NS + MS);

		one.comm += (uint64_t)i;
		job_add(&j, 0, one);
	}
	n = job_push(&j, c);
	assert_int_equal(n.taken, 4);
	assert_int_equal(n.refused, 2);
	assert_int_equal(comms_of(c, &v), 4);
	for (int i = 1; i < 12; i++) { /* processes */
		struct push_call one = job_call(&j, i % 8, BEGIN_NS, BEGIN_NS + MS);

		one.pid = 1000 + (uint32_t)i;
		one.seq = (uint64_t)i / 8;
		job_add(&j, 0, one);
	}
	n = job_push(&j, c);
	assert_int_equal(n.taken, 7);
	assert_int_equal(workers_of(c), 8);
	for (int i = 0; i < 1000; i++) /* calls */
		job_step(&j, MS, -1, 0);
	n = job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_int_equal(n.taken + n.duplicate, 8000);
	assert_true(calls_stats(c).evicted > 7500);
	assert_true(calls_stats(c).evicted <= 8010);
	assert_true(calls_stats(c).bytes < 1 << 20);
	job_done(&j);
	calls_free(c);
}

/* Nodes that are too many are refused, whole batches of them. */
static void test_too_many_nodes(void **state)
{
	struct calls_settings s = calls_defaults;
	struct calls_taken n;
	struct calls *c;
	struct job j;

	s.workers_max = 4;
	c = calls_with(s);
	job_init(&j, 4, 1);
	for (uint32_t node = 0; node < 6; node++) {
		struct push_call one = job_call(&j, 0, BEGIN_NS, BEGIN_NS + MS);
		struct push_calls b = job_batch(&j, node, &one, 1);

		one.seq = node;
		one.comm = node + 1;
		assert_int_equal(calls_take(c, &b, BEGIN_NS, &n), 0);
		assert_int_equal(n.taken, node < 4);
		assert_int_equal(n.refused, node >= 4);
	}
	calls_free(c);
}

/* What misses a rank at the window's end is counted; what comes after it is too late. */
static void test_window_ends(void **state)
{
	struct calls *c = calls_made();
	struct push_call late;
	struct calls_taken n;
	struct push_calls b;
	struct comm_view v;
	struct job j;

	job_init(&j, 4, 4);
	for (int i = 0; i < 10; i++)
		job_step(&j, MS, -1, 0);
	late = j.items[--j.count].call; /* rank 3 in the last one */
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_int_equal(comms_of(c, &v), 1);
	assert_int_equal(v.matched, 9);
	assert_int_equal(v.open, 1);
	calls_tick(c, j.now_ns + 59 * SECOND);
	assert_int_equal(calls_stats(c).unmatched, 0);
	calls_tick(c, j.now_ns + 61 * SECOND);
	assert_int_equal(calls_stats(c).unmatched, 3);
	assert_int_equal(calls_stats(c).evicted, 0);
	b = job_batch(&j, 0, &late, 1);
	late.seq = 8; /* was complete */
	assert_int_equal(calls_take(c, &b, j.now_ns + 61 * SECOND, &n), 0);
	assert_int_equal(n.refused, 1);
	calls_tick(c, j.now_ns + 2000 * SECOND);
	assert_int_equal(comms_of(c, &v), 0);
	assert_int_equal(workers_of(c), 0);
	job_done(&j);
	calls_free(c);
}

/* Of a communicator that goes on, what is older than the window stays; blame does not look so far back. */
static void test_beyond_the_window(void **state)
{
	struct calls *c = calls_made();
	struct collective_view v;
	struct blame_worker *workers = NULL;
	size_t cursor = 0, kept = 0, count;
	struct blame b;
	struct job j;

	job_init(&j, 4, 4);
	for (int i = 0; i < 10; i++) {
		job_step(&j, 30 * SECOND, -1, 0);
		job_push(&j, c);
		calls_tick(c, j.now_ns);
	}
	while (calls_collective_next(c, &cursor, &v))
		kept++;
	assert_int_equal(kept, 10);
	assert_int_equal(calls_blame(c, &workers, &count, &b), 0);
	assert_in_range(b.calls, 4, 12); /* of the last minute */
	blame_done(&b);
	free(workers);
	calls_tick(c, j.now_ns + 61 * SECOND); /* it has ended */
	cursor = 0;
	assert_false(calls_collective_next(c, &cursor, &v));
	job_done(&j);
	calls_free(c);
}

/* Sends and receives are no collectives, but are kept. */
static void test_pairs(void **state)
{
	struct calls *c = calls_made();
	struct collective_view v;
	struct push_call call;
	struct calls_taken n;
	struct comm_view m;
	size_t cursor = 0;
	struct job j;

	job_init(&j, 4, 1);
	for (int i = 0; i < 10; i++) {
		j.seq = (uint64_t)i;
		for (int side = 0; side < 2; side++) {
			call = job_call(&j, side, BEGIN_NS + i * MS, BEGIN_NS + i * MS + 1000);
			call.op = side ? NCCL_RECV : NCCL_SEND;
			call.peer = !side;
			job_add(&j, job_node(&j, side), call);
			job_add(&j, job_node(&j, side), call);
		}
	}
	n = job_push(&j, c);
	assert_int_equal(n.taken, 20);
	assert_int_equal(n.duplicate, 20);
	calls_tick(c, j.now_ns);
	assert_int_equal(comms_of(c, &m), 0);
	assert_false(calls_collective_next(c, &cursor, &v));
	calls_tick(c, j.now_ns + 100 * SECOND);
	assert_int_equal(calls_stats(c).unmatched, 0); /* each had its partner */
	job_done(&j);
	calls_free(c);
}

/* Whatever comes, within small ceilings: the counts add up, and a sound job beside it is matched. */
static void test_anything(void **state)
{
	struct calls_settings s = calls_defaults;
	struct calls_taken sum = {0}, n;
	struct calls *c;
	uint64_t sent = 0;
	struct job j;

	s.comms_max = 16;
	s.workers_max = 64;
	s.calls_max = 3000;
	s.window_ns = 2 * SECOND;
	c = calls_with(s);
	job_init(&j, 8, 2);
	for (int i = 0; i < 60000; i++) {
		struct push_call x = job_call(&j, (int)(job_random(&j) % 8), j.now_ns, 0);

		x.comm = 1 + job_random(&j) % 20;
		x.seq = job_random(&j) % 9 ? (uint64_t)i / 100 + job_random(&j) % 5
					   : UINT64_MAX - 1 - job_random(&j) % 9;
		x.nranks = (int32_t)(job_random(&j) % 40 ? 8 : job_random(&j) % 70);
		x.rank = (int32_t)(job_random(&j) % 10);
		x.op = (uint16_t)(job_random(&j) % 3 ? NCCL_ALL_REDUCE : job_random(&j) % 24);
		x.peer = (int32_t)(job_random(&j) % 9);
		x.pid = (uint32_t)(x.rank + (job_random(&j) % 50 == 0));
		if (job_random(&j) % 3) {
			x.leave_ns = x.enter_ns + (int64_t)(job_random(&j) % 1000000);
			x.wait_ns = job_random(&j) % 2 ? UINT64_MAX
						       : (uint64_t)(x.leave_ns - x.enter_ns);
		}
		job_add(&j, (uint32_t)x.pid / 2, x);
		sent++;
		if (i % 37 == 0) {
			n = job_push(&j, c);
			sum.taken += n.taken;
			sum.duplicate += n.duplicate;
			sum.refused += n.refused;
			j.now_ns += 20 * MS;
			calls_tick(c, j.now_ns);
			assert_true(calls_stats(c).kept <= s.calls_max);
		}
	}
	n = job_push(&j, c);
	assert_int_equal(
		sum.taken + sum.duplicate + sum.refused + n.taken + n.duplicate + n.refused, sent);
	assert_true(sum.taken > 10000 && sum.duplicate > 100 && sum.refused > 1000);
	calls_tick(c, j.now_ns + HOURS_NS);
	calls_tick(c, j.now_ns + 2 * HOURS_NS);
	assert_int_equal(workers_of(c), 0);
	assert_int_equal(calls_stats(c).kept, 0);
	job_done(&j);
	calls_free(c);
}

/* Half of the ranks have no agent: who is late of the others is found all the same. */
static void test_ranks_without_agent(void **state)
{
	struct calls *c = calls_made();
	struct worker_view w;
	struct comm_view v;
	struct job j;
	size_t kept = 0;

	job_init(&j, 8, 2);
	for (int i = 0; i < 200; i++)
		job_step(&j, 100 * MS, 1, 30 * MS);
	for (size_t i = 0; i < j.count; i++)
		if (j.items[i].node < 2)
			j.items[kept++] = j.items[i];
	j.count = kept;
	job_push(&j, c);
	calls_tick(c, j.now_ns + 5 * SECOND);
	assert_false(calls_is_late(c));
	calls_tick(c, j.now_ns + 11 * SECOND);
	assert_true(calls_is_late(c));
	assert_true(worker_of_rank(c, 1, &w));
	assert_int_equal(w.last_count, 200);
	assert_int_equal(comms_of(c, &v), 1);
	assert_int_equal(v.matched, 0);
	assert_int_equal(v.ranks, 4);
	calls_tick(c, j.now_ns + 12 * SECOND); /* once */
	assert_true(worker_of_rank(c, 1, &w));
	assert_int_equal(w.last_count, 200);
	job_done(&j);
	calls_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_batch_twice),
		cmocka_unit_test(test_hostile_calls),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_too_many_nodes),
		cmocka_unit_test(test_window_ends),
		cmocka_unit_test(test_beyond_the_window),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_anything),
		cmocka_unit_test(test_ranks_without_agent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
