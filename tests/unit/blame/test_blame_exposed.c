/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_exposed.c - only what makes the job's steps longer is blame: one long stall is, lag that nobody's step is
 * longer by is not, nor is the start of a job, nor pauses of all in their turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/macros.h"
#include "blame/blame.h"
#include "wire/ids.h"

#define MS       INT64_C(1000000)
#define RANKS    5
#define STEPS    120
#define TRANSFER MS

struct made {
	struct blame_worker workers[RANKS];
	struct blame_call calls[RANKS * STEPS];
	size_t count;
	uint64_t seed;
	struct blame b;
};

static int64_t chance(struct made *m, int64_t most)
{
	m->seed = m->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int64_t)((m->seed >> 33) % (uint64_t)most);
}

/* What each rank computes in a step, and how long the step is at least: its GPU's work. */
typedef int64_t own_fn(struct made *m, int rank, int step);

static void play(struct made *m, own_fn *own, int64_t gpu_ns)
{
	int64_t begin = INT64_C(1700000000) * 1000 * MS;

	*m = (struct made){.seed = 11};
	for (int r = 0; r < RANKS; r++)
		m->workers[r] =
			(struct blame_worker){.rank = r, .node = "n", .pid = 100 + (uint32_t)r};
	for (int s = 0; s < STEPS; s++) {
		int64_t enter[RANKS], last = begin + gpu_ns;

		for (int r = 0; r < RANKS; r++) {
			enter[r] = begin + own(m, r, s) + chance(m, MS / 5);
			last = MAX(last, enter[r]);
		}
		begin = last + TRANSFER;
		for (int r = 0; r < RANKS; r++)
			m->calls[m->count++] = (struct blame_call){.worker = (uint32_t)r,
				.c = {.comm = 77,
					.seq = (uint64_t)s + 1,
					.bytes = 1 << 20,
					.enter_ns = enter[r],
					.leave_ns = begin,
					.wait_ns = (uint64_t)(begin - enter[r]),
					.rank = r,
					.nranks = RANKS,
					.peer = -1,
					.op = NCCL_ALL_REDUCE}};
	}
	assert_int_equal(blame_find(m->workers, RANKS, m->calls, m->count, &m->b), 0);
}

static int64_t stalls_once(struct made *m, int rank, int step)
{
	return 20 * MS + (rank == 3 && step == 70 ? 900 * MS : 0);
}

static int64_t pauses_once(struct made *m, int rank, int step)
{
	return 20 * MS + (rank == 3 && step == 70 ? 100 * MS : 0);
}

static int64_t starts_slowly(struct made *m, int rank, int step)
{
	return 20 * MS + (rank == 3 && step == 1 ? 900 * MS : 0);
}

static void test_one_stall_is_enough(void **state)
{
	static struct made m;

	play(&m, stalls_once, 0);
	assert_int_equal(m.b.kind, BLAME_WORKERS);
	assert_int_equal(m.b.suspect_count, 1);
	assert_int_equal(m.b.suspects[0].worker, 3);
	assert_int_equal(m.b.suspects[0].late, 1);
	assert_in_range(m.b.suspects[0].lost_ns, 890 * MS, 910 * MS);
	assert_true(m.b.suspects[0].confidence > 0.8); /* the silence is explained */
	blame_done(&m.b);
	play(&m, pauses_once, 0); /* a few steps' time, once */
	assert_int_equal(m.b.suspect_count, 0);
	blame_done(&m.b);
	play(&m, starts_slowly, 0); /* code is loaded, connections are made */
	assert_int_equal(m.b.suspect_count, 0);
	blame_done(&m.b);
}

/* Rank 1 computes 8 to 14 ms more than the others, who need 20. */
static int64_t lags(struct made *m, int rank, int step)
{
	return 20 * MS + (rank == 1 ? 8 * MS + chance(m, 6 * MS) : 0);
}

static int64_t lags_always_alike(struct made *m, int rank, int step)
{
	return 20 * MS + (rank == 1 ? 11 * MS : 0);
}

static void test_hidden_lag_is_no_blame(void **state)
{
	static struct made m;

	play(&m, lags, 60 * MS); /* while the GPUs work */
	assert_int_equal(m.b.suspect_count, 0);
	blame_done(&m.b);
	play(&m, lags, 0); /* nothing hides it */
	assert_int_equal(m.b.suspect_count, 1);
	assert_int_equal(m.b.suspects[0].worker, 1);
	assert_true(m.b.suspects[0].share > 0.25 && m.b.suspects[0].share < 0.42);
	blame_done(&m.b);
	play(&m, lags_always_alike, 0); /* that it is always the same does not clear it */
	assert_int_equal(m.b.suspect_count, 1);
	assert_int_equal(m.b.suspects[0].worker, 1);
	blame_done(&m.b);
}

/* All call at the beginning of a step, compute while their GPUs work for 60 ms, and wait then; rank 1 computes for @longest. */
static void play_ahead(struct made *m, int64_t longest)
{
	int64_t begins[RANKS];

	*m = (struct made){.seed = 11};
	for (int r = 0; r < RANKS; r++) {
		m->workers[r] =
			(struct blame_worker){.rank = r, .node = "n", .pid = 100 + (uint32_t)r};
		begins[r] = INT64_C(1700000000) * 1000 * MS;
	}
	for (int s = 0; s < STEPS; s++) {
		int64_t end = 0;

		for (int r = 0; r < RANKS; r++)
			end = MAX(end, begins[r] + 60 * MS);
		for (int r = 0; r < RANKS; r++) {
			int64_t own = begins[r] + (r == 1 ? longest : 20 * MS) + chance(m, MS / 5);
			int64_t leave = MAX(end, own + MS / 50);

			m->calls[m->count++] = (struct blame_call){.worker = (uint32_t)r,
				.c = {.comm = 77,
					.seq = (uint64_t)s + 1,
					.bytes = 1 << 20,
					.enter_ns = begins[r],
					.leave_ns = leave,
					.wait_ns = (uint64_t)(leave - own),
					.rank = r,
					.nranks = RANKS,
					.peer = -1,
					.op = NCCL_ALL_REDUCE}};
			begins[r] = leave + MS;
		}
	}
	assert_int_equal(blame_find(m->workers, RANKS, m->calls, m->count, &m->b), 0);
}

/* What is beyond the GPUs' own work is lost, no more. */
static void test_the_gpus_work_is_nobodys_lag(void **state)
{
	static struct made m;

	play_ahead(&m, 50 * MS);
	assert_int_equal(m.b.suspect_count, 0);
	blame_done(&m.b);
	play_ahead(&m, 75 * MS);
	assert_int_equal(m.b.suspect_count, 1);
	assert_int_equal(m.b.suspects[0].worker, 1);
	assert_in_range(m.b.suspects[0].lag_ns, 12 * MS, 18 * MS);
	assert_true(m.b.suspects[0].share > 0.15 && m.b.suspects[0].share < 0.25);
	blame_done(&m.b);
}

/* Each rank pauses for 60 ms in one step of fifteen, another one each time. */
static int64_t pauses_in_turn(struct made *m, int rank, int step)
{
	return 20 * MS + (step % 3 == 0 && step / 3 % RANKS == rank ? 60 * MS : 0);
}

/* In every step another one has up to twice the work. */
static int64_t moves(struct made *m, int rank, int step)
{
	return 20 * MS + ((step * 7 + rank) % RANKS == 0 ? 12 * MS + chance(m, 8 * MS) : 0);
}

/* One after the other has 5 ms more; now and then one of them waits for a CPU for long. */
static int64_t takes_turns(struct made *m, int rank, int step)
{
	return 1 * MS + (step % RANKS == rank ? 5 * MS : 0) +
	       (chance(m, 100) < 2 ? chance(m, 140 * MS) : chance(m, MS));
}

static void test_load_that_goes_round(void **state)
{
	static struct made m;

	play(&m, takes_turns, 0);
	assert_int_equal(m.b.kind, BLAME_UNEVEN);
	assert_int_equal(m.b.suspect_count, 0);
	blame_done(&m.b);
}

/* In the last third ranks are apart by what they were not before, or were to a good part. */
static int64_t begins(struct made *m, int rank, int step)
{
	return 100 * MS + chance(m, (step < 2 * STEPS / 3 ? 4 : 45) * MS);
}

static int64_t grows(struct made *m, int rank, int step)
{
	return 100 * MS + chance(m, (step < 2 * STEPS / 3 ? 25 : 45) * MS);
}

/* It is known by what the job was before; less clear than that, it would have to cost the time of some steps first. */
static void test_load_that_begins_to_move(void **state)
{
	static struct made m;

	play(&m, begins, 0);
	assert_true(m.b.uneven_begun > 0.1);
	assert_int_equal(m.b.suspect_count, 0);
	blame_done(&m.b);
	play(&m, grows, 0);
	assert_true(m.b.uneven_begun == 0);
	blame_done(&m.b);
}

static void test_load_moves_in_most_steps(void **state)
{
	static struct made m;

	play(&m, pauses_in_turn, 0);
	assert_int_equal(m.b.uneven_ns, 0);
	blame_done(&m.b);
	play(&m, moves, 0);
	assert_int_equal(m.b.kind, BLAME_UNEVEN);
	assert_true(m.b.uneven_share > 0.3);
	assert_int_equal(m.b.suspect_count, 0);
	blame_done(&m.b);
}

/* All but rank 4 wait 80 ms for each other in a communicator of theirs in every step of the second half. Rank 4, whose waits
 * for its GPU are not known, is not late for that; if it comes later than they are through, it is. */
static void test_those_without_the_others(void **state)
{
	static struct made m;
	static struct blame_call calls[2 * RANKS * STEPS];

	for (int late = 0; late < 2; late++) {
		size_t n = 0;
		int64_t shift = 0;

		play(&m, lags_always_alike, 0);
		blame_done(&m.b);
		for (size_t i = 0; i < m.count; i++) {
			struct blame_call c = m.calls[i];
			int64_t own = c.worker == 1 ? 11 * MS : 0;
			bool has_side = i / RANKS >= STEPS / 2;

			if (i % RANKS == 0 && has_side)
				shift += (late ? 140 : 80) * MS;
			c.c.enter_ns += shift - own;
			c.c.leave_ns += shift;
			c.c.wait_ns = (uint64_t)(c.c.leave_ns - c.c.enter_ns);
			if (has_side && late && c.worker != 4) {
				c.c.enter_ns -= 60 * MS;
				c.c.wait_ns += 60 * (uint64_t)MS;
			}
			calls[n++] = c;
			if (!has_side || c.worker == 4)
				continue;
			calls[n] = c;
			calls[n].c.comm = 78;
			calls[n].c.seq = c.c.seq - STEPS / 2;
			calls[n].c.nranks = RANKS - 1;
			calls[n].c.leave_ns = c.c.enter_ns - MS;
			calls[n].c.enter_ns = calls[n].c.leave_ns - 80 * MS;
			calls[n].c.wait_ns = 80 * (uint64_t)MS;
			n++;
		}
		assert_int_equal(blame_find(m.workers, RANKS, calls, n, &m.b), 0);
		assert_int_equal(m.b.suspect_count, late);
		if (late)
			assert_int_equal(m.b.suspects[0].worker, 4);
		blame_done(&m.b);
	}
}

/* Half of the ranks are not traced, and those that are have other numbers; a communicator of two ends half-way. */
static void test_half_of_them(void **state)
{
	static struct made m;
	size_t kept = 0;

	play(&m, stalls_once, 0);
	blame_done(&m.b);
	for (size_t i = 0; i < m.count; i++) {
		struct blame_call c = m.calls[i];

		if (c.worker % 2 == 0)
			continue;
		if (c.c.seq < STEPS / 3)
			c.c.comm = 78;
		c.c.rank = RANKS - 1 - c.c.rank;
		m.calls[kept++] = c;
	}
	assert_int_equal(blame_find(m.workers, RANKS, m.calls, kept, &m.b), 0);
	assert_int_equal(m.b.suspect_count, 1);
	assert_int_equal(m.b.suspects[0].worker, 3);
	assert_true(m.b.suspects[0].confidence < 0.5);
	blame_done(&m.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_stall_is_enough),
		cmocka_unit_test(test_hidden_lag_is_no_blame),
		cmocka_unit_test(test_the_gpus_work_is_nobodys_lag),
		cmocka_unit_test(test_load_moves_in_most_steps),
		cmocka_unit_test(test_load_that_begins_to_move),
		cmocka_unit_test(test_load_that_goes_round),
		cmocka_unit_test(test_those_without_the_others),
		cmocka_unit_test(test_half_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
