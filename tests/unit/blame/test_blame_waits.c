/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_waits.c - what of a job's calls are steps, and what of its waits are waits: calls that are all alike, waits
 * that nobody tells, Recvs that were posted ahead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "blame/blame_job.h"

#define RANKS 4
#define STEPS 120
#define MS    INT64_C(1000000)

struct made {
	struct blame_worker workers[RANKS];
	struct blame_call calls[RANKS * STEPS * 4]; /* SHARDS in half as many steps are as many */
	size_t count;
	struct blame b;
};

/* Steps of @buckets calls of one size, 2 ms apart, after 40 ms of computing; rank 2 takes 60 ms longer in every
 * @period-th step. All leave when the last has come. */
static void make(
	struct made *m, unsigned buckets, unsigned period, bool is_silent, uint64_t step_ns)
{
	int64_t at = 1000 * MS;
	uint64_t seq = 0;

	memset(m, 0, sizeof(*m));
	for (int r = 0; r < RANKS; r++)
		m->workers[r] = (struct blame_worker){
			.rank = r, .node = "n", .pid = 100 + (uint32_t)r, .step_ns = step_ns};
	for (unsigned s = 0; s < STEPS; s++) {
		int64_t late = s % period == 0 ? 60 * MS : 0, last = at + 40 * MS + late;

		for (unsigned k = 0; k < buckets; k++, seq++, last += 2 * MS)
			for (int r = 0; r < RANKS; r++) {
				int64_t enter = last - (r == 2 ? 0 : late) + r * 20000;
				int64_t leave = is_silent ? enter + 20000 : last + MS;

				m->calls[m->count++] = (struct blame_call){.worker = (uint32_t)r,
					.c = {.comm = 7,
						.seq = seq,
						.bytes = 1 << 20,
						.enter_ns = enter,
						.leave_ns = leave,
						.wait_ns = is_silent ? UINT64_MAX
								     : (uint64_t)(leave - enter),
						.rank = r,
						.nranks = RANKS,
						.peer = -1,
						.op = NCCL_ALL_REDUCE}};
			}
		at = last;
	}
	assert_int_equal(blame_find(m->workers, RANKS, m->calls, m->count, &m->b), 0);
}

static void assert_rank_2(const struct made *m, uint32_t period)
{
	assert_int_equal(m->b.kind, BLAME_WORKERS);
	assert_int_equal(m->b.suspect_count, 1);
	assert_int_equal(m->workers[m->b.suspects[0].worker].rank, 2);
	assert_int_equal(m->b.suspects[0].period, period);
	assert_in_range(m->b.suspects[0].lag_ns, 55 * MS, 65 * MS);
}

static void test_buckets_of_one_size(void **state)
{
	struct made *m = malloc(sizeof(*m));

	assert_non_null(m);
	for (int silent = 0; silent < 2; silent++) {
		make(m, 3, 1, silent, 0);
		assert_in_range(m->b.steps, STEPS - 4, STEPS);
		assert_rank_2(m, 1);
		blame_done(&m->b);
	}
	free(m);
}

/* One who is late every third step makes no round of three steps. */
static void test_lateness_is_no_round(void **state)
{
	struct made *m = malloc(sizeof(*m));

	assert_non_null(m);
	for (int silent = 0; silent < 2; silent++) {
		make(m, 1, 3, silent, 0);
		assert_in_range(m->b.steps, STEPS - 4, STEPS);
		assert_rank_2(m, 3);
		blame_done(&m->b);
	}
	free(m);
}

/* The engine knows how long a step is, where nothing else tells: two calls, equally far apart. */
static void test_length_is_told(void **state)
{
	struct made *m = malloc(sizeof(*m));

	assert_non_null(m);
	make(m, 1, 200, false, 84 * MS);
	assert_in_range(m->b.steps, STEPS / 2 - 3, STEPS / 2 + 1);
	blame_done(&m->b);
	make(m, 1, 200, false, 42 * MS);
	assert_in_range(m->b.steps, STEPS - 4, STEPS);
	blame_done(&m->b);
	free(m);
}

#define SHARDS 8

/* A step of SHARDS collectives that nobody waits in, 6 ms apart, and one wait for the GPU at its end: in each step rank 2
 * comes @behind_ns after the others to all of them. */
static void make_sharded(struct made *m, int64_t behind_ns)
{
	int64_t at = 1000 * MS;
	uint64_t seq = 0;

	memset(m, 0, sizeof(*m));
	for (int r = 0; r < RANKS; r++)
		m->workers[r] = (struct blame_worker){.rank = r, .node = "n", .pid = 1};
	for (unsigned s = 0; s < STEPS / 2; s++, at += SHARDS * 6 * MS + 20 * MS + behind_ns)
		for (unsigned k = 0; k < SHARDS; k++, seq++)
			for (int r = 0; r < RANKS; r++) {
				int64_t enter = at + k * 6 * MS + r * 20000 + (r == 2) * behind_ns;

				m->calls[m->count++] = (struct blame_call){.worker = (uint32_t)r,
					.c = {.comm = 7,
						.seq = seq,
						.bytes = 1000 + k,
						.enter_ns = enter,
						.leave_ns = enter + 20000,
						.wait_ns = UINT64_MAX,
						.rank = r,
						.nranks = RANKS,
						.peer = -1,
						.op = NCCL_ALL_GATHER}};
			}
	assert_int_equal(blame_find(m->workers, RANKS, m->calls, m->count, &m->b), 0);
}

/* A host that is behind at all collectives of a step is waited for once. */
static void test_behind_is_late_once(void **state)
{
	struct made *m = malloc(sizeof(*m));

	assert_non_null(m);
	make_sharded(m, 4 * MS);
	assert_in_range(m->b.steps, STEPS / 2 - 3, STEPS / 2);
	for (size_t i = 0; i < m->b.suspect_count; i++)
		assert_true(m->b.suspects[i].share < 0.08);
	blame_done(&m->b);
	make_sharded(m, 40 * MS);
	assert_int_equal(m->b.kind, BLAME_WORKERS);
	assert_int_equal(m->workers[m->b.suspects[0].worker].rank, 2);
	assert_in_range(m->b.suspects[0].lag_ns, 32 * MS, 45 * MS);
	blame_done(&m->b);
	free(m);
}

#define RECVS 20

/* A worker posts Recvs ahead, computes, and sends: @ahead of them are still pending then. */
static void assert_exposed(unsigned ahead, bool is_told, bool is_exposed)
{
	struct blame_call calls[2 * RECVS];
	struct job_item items[2 * RECVS];
	size_t first[] = {0, 2 * RECVS};
	uint64_t error[] = {0};
	struct job j = {.calls = calls,
		.call_count = 2 * RECVS,
		.items = items,
		.item_count = 2 * RECVS,
		.first = first,
		.error_ns = error,
		.worker_count = 1};

	for (uint32_t i = 0; i < RECVS; i++) {
		int64_t at = (int64_t)i * 100 * MS;
		int64_t there = at + (i < ahead ? 60 : 40) * MS;

		calls[2 * i] = (struct blame_call){
			.c = {.op = NCCL_RECV,
				.peer = 1,
				.enter_ns = at,
				.leave_ns = there,
				.wait_ns =
					(uint64_t)(is_told && i < ahead ? 10 * MS : there - at)}};
		calls[2 * i + 1] = (struct blame_call){.c = {.op = NCCL_SEND,
							       .peer = 2,
							       .enter_ns = at + 50 * MS,
							       .leave_ns = at + 51 * MS}};
		items[2 * i] = (struct job_item){.enter_ns = at,
			.start_ns = i < ahead ? at + 50 * MS : at,
			.leave_ns = there,
			.call = 2 * i,
			.match = JOB_NONE,
			.op = NCCL_RECV};
		items[2 * i + 1] = (struct job_item){.enter_ns = at + 50 * MS,
			.start_ns = at + 50 * MS,
			.leave_ns = at + 51 * MS,
			.call = 2 * i + 1,
			.match = JOB_NONE,
			.op = NCCL_SEND};
	}
	blame_waits(&j);
	for (uint32_t i = 0; i < RECVS; i++) {
		int64_t waits = items[2 * i].leave_ns - items[2 * i].start_ns;

		assert_int_equal(waits, i < ahead ? 10 * MS : is_exposed ? 40 * MS : 0);
	}
	assert_int_equal(j.is_guessed, !is_exposed); /* then stages are not compared */
}

static void test_posted_ahead(void **state)
{
	assert_exposed(8, false, false);
	assert_exposed(0, false, true);
	assert_exposed(2, false, true); /* times may be wrong */
	assert_exposed(8, true, true);
}

/* Two collectives a step, the second entered as soon as the first is left, rank 2 late in every seventh step; a rank's clock
 * is set anew by up to @apart_ns for each of them, as ends of collectives are apart. */
static void make_shifted(struct made *m, int64_t apart_ns)
{
	int64_t at = 1000 * MS;

	memset(m, 0, sizeof(*m));
	for (int r = 0; r < RANKS; r++)
		m->workers[r] = (struct blame_worker){.rank = r, .node = "n", .pid = 1};
	for (unsigned s = 0; s < STEPS; at += 43 * MS + (s % 7 == 0) * 60 * MS, s++)
		for (int i = 0; i < 2 * RANKS; i++) {
			int r = i % RANKS, k = i / RANKS;
			int64_t end = at + 41 * MS + (s % 7 == 0) * 60 * MS + k * MS;
			int64_t enter =
				k ? end - MS
				  : at + 40 * MS + r * 20000 + (r == 2) * (s % 7 == 0) * 60 * MS;

			m->calls[m->count++] = (struct blame_call){.worker = (uint32_t)r,
				.c = {.comm = 7,
					.seq = 2 * s + (unsigned)k,
					.bytes = 1000,
					.enter_ns = enter,
					.leave_ns = end,
					.wait_ns = (uint64_t)(end - enter),
					.rank = r,
					.nranks = RANKS,
					.peer = -1,
					.op = NCCL_ALL_REDUCE},
				.shift_ns = (r + k) % 2 ? apart_ns : 0};
		}
	assert_int_equal(blame_find(m->workers, RANKS, m->calls, m->count, &m->b), 0);
}

/* A call that the clock's correction puts before the end of the one before was not made beside it: who waited in that one is
 * not late. */
static void test_shifts_are_no_calls_beside(void **state)
{
	struct made *m = malloc(sizeof(*m));

	assert_non_null(m);
	for (int apart = 0; apart < 2; apart++) {
		make_shifted(m, apart * MS);
		assert_rank_2(m, 7);
		blame_done(&m->b);
	}
	free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buckets_of_one_size),
		cmocka_unit_test(test_lateness_is_no_round),
		cmocka_unit_test(test_length_is_told),
		cmocka_unit_test(test_behind_is_late_once),
		cmocka_unit_test(test_posted_ahead),
		cmocka_unit_test(test_shifts_are_no_calls_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
