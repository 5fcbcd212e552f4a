/* SPDX-License-Identifier: Apache-2.0 */
/* test_mismatches.c - ranks that disagree are told, the fewer as those who err; what may differ is not. */
#include "blame/comm_join.h"
#include "calls_fixture.h"

#define RANKS 4

struct change { /* what rank 2 says instead */
	uint16_t op, datatype;
	uint64_t bytes;
};

static void step(struct job *j, struct calls *c, uint16_t op, struct change change, int first)
{
	for (int i = 0; i < RANKS; i++) {
		int rank = (i + first) % RANKS;
		struct push_call call = job_call(j, rank, j->now_ns, j->now_ns + MS);

		call.op = op;
		if (rank == 2 && change.op)
			call.op = change.op;
		if (rank == 2 && change.bytes)
			call.bytes = change.bytes;
		if (rank == 2 && change.datatype)
			call.datatype = change.datatype;
		job_add(j, job_node(j, rank), call);
	}
	j->seq++;
	job_push(j, c);
	calls_tick(c, j->now_ns);
}

/* Whoever comes first. */
static void test_each(void **state)
{
	static const struct {
		struct change change;
		enum calls_mismatch what;
		uint64_t value, other;
	} rows[] = {
		{{.op = NCCL_ALL_GATHER}, CALLS_MISMATCH_OP, NCCL_ALL_GATHER, NCCL_ALL_REDUCE},
		{{.bytes = 8192}, CALLS_MISMATCH_BYTES, 8192, 4096},
		{{.datatype = 9}, CALLS_MISMATCH_TYPE, 9, 7},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int first = 0; first < RANKS; first++) {
			struct calls *c = calls_made();
			struct mismatch_view v;
			struct worker_view w;
			size_t cursor = 0;
			struct job j;

			job_init(&j, RANKS, 1);
			step(&j, c, NCCL_ALL_REDUCE, (struct change){0}, first);
			assert_false(calls_mismatch_next(c, &cursor, &v));
			step(&j, c, NCCL_ALL_REDUCE, rows[i].change, first);
			assert_true(calls_mismatch_next(c, &cursor, &v));
			assert_int_equal(v.what, rows[i].what);
			assert_int_equal(v.comm, COMM);
			assert_int_equal(v.seq, 1);
			assert_int_equal(v.value, rows[i].value);
			assert_int_equal(v.other_value, rows[i].other);
			assert_true(worker_of_rank(c, 2, &w));
			assert_int_equal(v.worker, w.worker);
			assert_int_not_equal(v.other, w.worker);
			assert_true(llabs(v.at_ns - j.now_ns) < 10 * MS);
			assert_false(calls_mismatch_next(c, &cursor, &v));
			job_done(&j);
			calls_free(c);
		}
}

static void test_nranks(void **state)
{
	struct calls *c = calls_made();
	struct mismatch_view v;
	struct worker_view w;
	size_t cursor = 0;
	struct job j;

	job_init(&j, RANKS, 1);
	step(&j, c, NCCL_ALL_REDUCE, (struct change){0}, 0);
	for (int i = 0; i < RANKS; i++) {
		struct push_call call = job_call(&j, i, j.now_ns, j.now_ns + MS);

		call.nranks = i == 1 ? 5 : RANKS;
		job_add(&j, job_node(&j, i), call);
	}
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	assert_true(calls_mismatch_next(c, &cursor, &v));
	assert_int_equal(v.what, CALLS_MISMATCH_NRANKS);
	assert_true(worker_of_rank(c, 1, &w));
	assert_int_equal(v.worker, w.worker);
	assert_int_equal(v.value, 5);
	assert_int_equal(v.other_value, RANKS);
	job_done(&j);
	calls_free(c);
}

/* Ranks of these may each bring another amount; a type that is not known is no other; both names of the
 * broadcast are one. */
static void test_may_differ(void **state)
{
	static const uint16_t ops[] = {NCCL_GATHER, NCCL_SCATTER, NCCL_ALL_TO_ALL};
	struct calls *c = calls_made();
	struct mismatch_view v;
	size_t cursor = 0;
	struct job j;

	job_init(&j, RANKS, 1);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		step(&j, c, ops[i], (struct change){.bytes = 1}, 0);
	step(&j, c, NCCL_ALL_REDUCE, (struct change){.datatype = UINT16_MAX}, 0);
	step(&j, c, NCCL_BCAST, (struct change){.op = NCCL_BROADCAST}, 0);
	assert_false(calls_mismatch_next(c, &cursor, &v));
	step(&j, c, NCCL_BROADCAST, (struct change){.bytes = 1}, 0); /* positive control */
	assert_true(calls_mismatch_next(c, &cursor, &v));
	job_done(&j);
	calls_free(c);
}

/* More than are kept: the newest are told, of these the oldest first: others follow from it. */
static void test_many(void **state)
{
	struct calls *c = calls_made();
	struct mismatch_view v;
	uint64_t expected = 1000 - 256;
	size_t cursor = 0, n = 0;
	struct job j;

	job_init(&j, RANKS, 1);
	for (int i = 0; i < 1000; i++)
		step(&j, c, NCCL_ALL_REDUCE, (struct change){.bytes = 1}, 0);
	while (calls_mismatch_next(c, &cursor, &v)) {
		assert_int_equal(v.seq, expected++);
		n++;
	}
	assert_int_equal(n, 256);
	job_done(&j);
	calls_free(c);
}

/* What was brought together by when calls ended may be two collectives. */
static void test_made_up(void **state)
{
	for (int made_up = 0; made_up < 2; made_up++) {
		struct calls *c = calls_made();
		struct mismatch_view v;
		size_t cursor = 0;
		struct job j;

		job_init(&j, RANKS, 1);
		j.seq = made_up ? COMM_JOIN_MADE_UP : 1;
		step(&j, c, NCCL_ALL_REDUCE, (struct change){.op = NCCL_ALL_GATHER}, 0);
		assert_int_equal(calls_mismatch_next(c, &cursor, &v), !made_up);
		job_done(&j);
		calls_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_nranks),
		cmocka_unit_test(test_may_differ),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_made_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
