/* SPDX-License-Identifier: Apache-2.0 */
/* test_rank_story.c - one fault of several ranks is one incident: who waits for whom, whose GPU has more to do, whether
 * load moves, and which processes on a GPU are strangers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "diagnose/compose/rank_story.h"
#include "diagnose/findings/straggler_load.h"

#define RANKS 4
#define STEPS 60
#define MS    INT64_C(1000000)

struct made {
	struct step_mark marks[RANKS][STEPS];
	struct step_account accounts[RANKS];
	struct step_report report;
	struct blame_worker workers[RANKS];
	struct straggler_job job;
	struct ledger_row ledger[RANKS * STEPS];
	struct recording rec;
	struct straggler_work work;
};

/* Steps of 100 ms, from the half on 150: each rank launches 150 kernels and copies 1 MB. */
static void make(struct made *m)
{
	memset(m, 0, sizeof(*m));
	for (uint32_t r = 0; r < RANKS; r++) {
		struct step_account *a = &m->accounts[r];

		m->workers[r] =
			(struct blame_worker){.rank = (int32_t)r, .node = "n", .pid = 10 + r};
		*a = (struct step_account){.pid = 10 + r,
			.origin = STEP_BY_OPTIMIZER,
			.marks = m->marks[r],
			.mark_count = STEPS,
			.steps = STEPS,
			.ordinary_steps = STEPS / 2,
			.slow_steps = STEPS / 2,
			.lost_ns = STEPS / 2 * 50 * (uint64_t)MS,
			.last.ns = STEPS * 125 * MS};
		a->slow_ns[ACCOUNT_GPU] = 120 * (uint64_t)MS;
		a->ordinary_ns[ACCOUNT_GPU] = 70 * (uint64_t)MS;
		for (uint32_t k = 0; k < STEPS; k++) {
			bool slow = k >= STEPS / 2;
			int64_t at =
				k < STEPS / 2 ? k * 100 * MS : k * 150 * MS - STEPS / 2 * 50 * MS;

			m->marks[r][k] = (struct step_mark){.start.ns = at,
				.dur_ns = (slow ? 150 : 100) * (uint64_t)MS,
				.copy_bytes = 1000000,
				.is_slow = slow};
			m->ledger[r * STEPS + k] = (struct ledger_row){.start.ns = at + MS,
				.dur_ns = (uint64_t)MS,
				.pid = 10 + r,
				.launches = 150};
		}
	}
	m->report = (struct step_report){m->accounts, RANKS};
	m->job = (struct straggler_job){
		.workers = m->workers, .worker_count = RANKS, .blame = {.stages = 1}};
	m->rec = (struct recording){.ledger = m->ledger, .ledger_count = RANKS * STEPS};
}

static void find(struct made *m)
{
	assert_int_equal(straggler_work_find(&m->rec, &m->report, &m->job, &m->work), 0);
}

static void test_gpu_with_more_work(void **state)
{
	static struct made m;

	make(&m);
	find(&m);
	assert_int_equal(m.work.late, UINT32_MAX); /* all alike */
	for (uint32_t k = STEPS / 2; k < STEPS; k++)
		m.ledger[3 * STEPS + k].launches =
			k % 3 ? 156 : 4; /* counting begins within steps */
	find(&m);
	assert_int_equal(m.work.late, 3);
	assert_int_equal((int)m.work.launches, 156);
	assert_int_equal((int)m.work.usual, 150);
	assert_in_range(m.work.lost_ns, STEPS / 2 * 49 * MS, STEPS / 2 * 51 * MS);
	for (uint32_t k = STEPS / 2; k < STEPS; k++)
		m.ledger[2 * STEPS + k].launches = 155; /* two of them: the job's own doing */
	find(&m);
	assert_int_equal(m.work.late, UINT32_MAX);
}

/* Inputs of all sizes, another rank has the largest in every step; @lag: the GPU works on it in the next one. */
static void move(struct made *m, uint32_t lag, bool is_one)
{
	int64_t at = 0;

	make(m);
	for (uint32_t k = 0; k < STEPS; k++) {
		uint32_t top = is_one ? 1 : k * 7 % RANKS;
		uint64_t most = 1000000 + k * 37 % 11 * 100000,
			 was = k < lag ? 0 : (k - lag) * 37 % 11;

		for (uint32_t r = 0; r < RANKS; r++) {
			m->marks[r][k].copy_bytes = r == top ? most : 900000;
			m->marks[r][k].start.ns = at;
			m->marks[r][k].dur_ns = 100 * (uint64_t)MS + was * 10 * (uint64_t)MS;
		}
		at += (int64_t)m->marks[0][k].dur_ns;
	}
	find(m);
}

static void test_moving_load(void **state)
{
	static struct made m;

	for (uint32_t lag = 0; lag < 2; lag++) {
		move(&m, lag, false);
		assert_true(m.work.moves);
		assert_true(m.work.moved_share > 0.2 && m.work.moved_share < 0.6);
		move(&m, lag, true); /* always the same rank: its own load */
		assert_false(m.work.moves);
	}
}

static void test_slow_together(void **state)
{
	static struct made m;

	make(&m);
	assert_true(rank_story_together(&m.accounts[0], &m.accounts[1]));
	for (uint32_t k = 0; k < STEPS; k++)
		m.marks[1][k].is_slow = k < STEPS / 2;
	assert_false(rank_story_together(&m.accounts[0], &m.accounts[1]));
}

static void test_victims(void **state)
{
	const struct collective_row rows[] = {{.pid = 1, .c = {.comm_hash = 7, .nranks = 2}},
		{.pid = 2, .c = {.comm_hash = 7, .nranks = 2}}};
	const struct recording rec = {.collectives = rows, .collective_count = 2};
	struct incident story = {.problem = PROBLEM_STRAGGLER,
		.pid = 1,
		.culprit_rank = 0,
		.severity = SEVERITY_LOW,
		.excess_ns = 900};
	struct time_finding f = {.delay.kind = DELAY_BY_GPU, .lost_ns = 1000};
	struct rank_jobs jobs;

	rank_jobs_find(&rec, &jobs);
	assert_true(rank_story_tells(&jobs, &story, 2, &f));
	assert_false(rank_story_tells(&jobs, &story, 3, &f)); /* no rank of it */
	f.lost_ns = 10000; /* far more than the job stood still */
	assert_false(rank_story_tells(&jobs, &story, 2, &f));
	f = (struct time_finding){.delay.kind = DELAY_BY_HOST, .lost_ns = 1000};
	assert_false(rank_story_tells(&jobs, &story, 2, &f)); /* its own doing */
}

static void test_story_has_the_cause(void **state)
{
	struct incident story = {.problem = PROBLEM_STRAGGLER, .severity = SEVERITY_MEDIUM};
	struct incident own = {.severity = SEVERITY_HIGH, .fix_count = 1, .since.ns = 5};

	snprintf(story.summary, sizeof(story.summary), "rank 2 keeps 3 ranks waiting");
	snprintf(own.summary, sizeof(own.summary), "Host code in f (a.py:1): steps take 2 s");
	snprintf(own.root_cause, sizeof(own.root_cause), "The GPU waits");
	snprintf(story.root_cause, sizeof(story.root_cause),
		"rank 2 was late in 3 steps: its thread ran");
	snprintf(own.place, sizeof(own.place), "a.py:1 (f)");
	snprintf(own.fixes[0], sizeof(own.fixes[0]), "do it ahead");
	rank_story_join(&story, &own);
	assert_string_equal(story.summary, "Host code in f (a.py:1): rank 2 keeps 3 ranks waiting");
	assert_string_equal(
		story.root_cause, "The GPU waits; rank 2 was late in 3 steps: its thread ran");
	assert_string_equal(story.place, "a.py:1 (f)");
	assert_string_equal(story.fixes[0], "do it ahead");
	assert_int_equal(story.severity, SEVERITY_HIGH);
	assert_int_equal(story.since.ns, 5);
}

/* What does not fit is left out whole. */
static void test_story_is_whole(void **state)
{
	struct incident story = {.problem = PROBLEM_STRAGGLER}, own = {0};

	memset(own.root_cause, 'x', 200);
	snprintf(story.root_cause, sizeof(story.root_cause),
		"rank 2 was late in 3 steps: its thread waited for a disk");
	rank_story_join(&story, &own);
	assert_string_equal(story.root_cause + 200, "; rank 2 was late in 3 steps");
}

static void test_strangers(void **state)
{
	struct gpu_sample g = {.processes = 4};

	assert_int_equal(rank_jobs_processes(&g, 4), 1);
	assert_int_equal(rank_jobs_processes(&g, 1), 4);
	g.processes = 5; /* and the server by which they share it */
	assert_int_equal(rank_jobs_processes(&g, 4), 1);
	g.processes = 7;
	assert_int_equal(rank_jobs_processes(&g, 4), 3);
	g.processes = -1;
	assert_int_equal(rank_jobs_processes(&g, 4), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpu_with_more_work),
		cmocka_unit_test(test_moving_load),
		cmocka_unit_test(test_slow_together),
		cmocka_unit_test(test_victims),
		cmocka_unit_test(test_story_has_the_cause),
		cmocka_unit_test(test_story_is_whole),
		cmocka_unit_test(test_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
