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

/* Blame knows it by what it is sent alone: its host is on time, and the GPU is told of. One that is late is told as that. */
static void check_report(struct made *m)
{
	static struct collective_row row;
	static const struct collective_row *rows[RANKS * STEPS];
	static struct incident items[4];
	const struct detector_input in = {.rec = &m->rec, .accounts = &m->report};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i] = &row;
	m->job.rows = rows;
	m->job.blame.kind = BLAME_WORKERS;
	m->job.blame.suspect_count = 1;
	for (int on_time = 0; on_time < 2; on_time++) {
		struct incident_list out = {.items = items, .max = ARRAY_SIZE(items)};

		m->job.blame.suspects[0] = (struct blame_suspect){
			.worker = 2, .share = 0.2, .received = 3, .on_time = on_time};
		assert_int_equal(straggler_load_report(&in, &m->job, &out), 0);
		assert_int_equal(out.count, on_time);
	}
	assert_non_null(strstr(items[0].summary,
		"More GPU work on rank 2 (pid 12) than on the 3 others, which wait for its GPU: 3.0 MiB received"));
}

/* In slow steps most is sent to rank 2, as tokens to a favoured expert; if all are sent as much as before it is nobody. */
static void test_rank_that_is_sent_most(void **state)
{
	static struct made m;
	struct blame_call calls[RANKS * STEPS];

	for (int is_hot = 0; is_hot < 2; is_hot++) {
		make(&m);
		memset(calls, 0, sizeof(calls));
		for (uint32_t r = 0; r < RANKS; r++)
			for (uint32_t k = 0; k < STEPS; k++) {
				uint64_t bytes = !is_hot || k < STEPS / 2 ? 1 << 20
						 : r == 2                 ? 3 << 20
									  : 1 << 18;

				calls[r * STEPS + k] = (struct blame_call){.worker = r,
					.c = {.comm = 1,
						.op = NCCL_RECV,
						.bytes = bytes,
						.nranks = RANKS,
						.enter_ns = m.accounts[r].marks[k].start.ns + MS}};
			}
		m.job.calls = calls;
		m.job.call_count = RANKS * STEPS;
		find(&m);
		assert_int_equal(m.work.late, is_hot ? 2 : UINT32_MAX);
		if (is_hot)
			assert_int_equal((int)m.work.received, 3 << 20);
	}
	check_report(&m);
}

/* Kernels: all run the first two; rank 2 alone a third one, which is new. Launches are a sample. */
static void test_kernels_that_one_runs(void **state)
{
	static struct made m;
	struct kernel_use kernels[2 * RANKS + 2];
	size_t n = 0;

	make(&m);
	for (uint32_t r = 0; r < RANKS; r++)
		m.accounts[r].slow_first.ns = STEPS / 2 * 100 * MS;
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint64_t k = 0; k < 2; k++)
			kernels[n++] = (struct kernel_use){.pid = 10 + r,
				.function = k,
				.first.ns = k && r == 1 ? 40 * 100 * MS : MS, /* seen late */
				.launches = 1000 - r * 150,
				.name = k ? "gemm_a" : "norm"};
	m.rec.kernels = kernels;
	m.rec.kernel_count = n;
	find(&m);
	assert_null(m.work.kernel);
	kernels[n++] = (struct kernel_use){.pid = 12,
		.function = 9,
		.first.ns = STEPS / 2 * 100 * MS + 5 * MS,
		.launches = 90,
		.name = "gemm_long"};
	m.rec.kernel_count = n;
	find(&m);
	assert_int_equal(m.work.late, 2);
	assert_string_equal(m.work.kernel, "gemm_long");
	kernels[n] = kernels[n - 1]; /* another has it too: the job's own doing */
	kernels[n++].pid = 13;
	m.rec.kernel_count = n;
	find(&m);
	assert_null(m.work.kernel);
	assert_int_equal(m.work.late, UINT32_MAX);
}

/* One AllReduce a step of all; from the half on two ranks make two more in a communicator of theirs. */
static void test_collectives_that_came(void **state)
{
	static struct made m;
	static struct blame_call calls[STEPS * (RANKS + 4)];
	size_t n = 0, plain;

	make(&m);
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t k = pass ? STEPS / 2 : 0; k < STEPS; k++)
			for (uint32_t r = 0; r < (pass ? 4 : RANKS); r++)
				calls[n++] = (struct blame_call){.worker = pass ? 1 + r % 2 : r,
					.c = {.comm = pass ? 0xbeef : 0xabc,
						.op = NCCL_ALL_REDUCE,
						.bytes = pass ? 1 << 24 : 1 << 20,
						.nranks = pass ? 2 : RANKS,
						.enter_ns = m.marks[0][k].start.ns + 10 * MS}};
		if (!pass)
			plain = n;
	}
	m.job.calls = calls;
	m.job.call_count = plain;
	find(&m);
	assert_int_equal(m.work.extra.comm, 0);
	m.job.call_count = n;
	find(&m);
	assert_int_equal(m.work.extra.comm, 0xbeef);
	assert_int_equal(m.work.extra.worker, 1);
	assert_int_equal(m.work.extra.workers, 2);
	assert_true(m.work.extra.calls > 1.9 && m.work.extra.calls < 2.1);
	assert_int_equal(m.work.extra.bytes, 1 << 24);
}

/* All wait 50 ms longer with the same work: their memory is less busy, or busier than before. */
static void test_gpus_that_wait(void **state)
{
	static struct made m;
	struct gpu_sample gpus[16];

	make(&m);
	memset(gpus, 0, sizeof(gpus));
	for (uint32_t r = 0; r < RANKS; r++) {
		m.accounts[r].slow_first.ns = STEPS / 2 * 100 * MS;
		m.accounts[r].slow_last.ns = STEPS * 125 * MS;
	}
	for (int i = 0; i < 16; i++) {
		gpus[i].time.ns = i * 450 * MS;
		gpus[i].util_mem_pct = gpus[i].time.ns < STEPS / 2 * 100 * MS ? 30 : 18;
		gpus[i].power_mw = 10000 * gpus[i].util_mem_pct;
	}
	find(&m);
	assert_false(m.work.is_idle); /* not known */
	m.rec.gpus = gpus;
	m.rec.gpu_count = 16;
	find(&m);
	assert_true(m.work.is_idle);
	for (int i = 0; i < 16; i++)
		gpus[i].power_mw = 350000;
	find(&m);
	assert_false(m.work.is_idle); /* one of them works, without much memory */
	for (int i = 0; i < 16; i++)
		gpus[i].power_mw = 10000 * gpus[i].util_mem_pct;
	m.job.calls = &(struct blame_call){.worker = 0, .c = {.comm = 1, .nranks = RANKS + 1}};
	m.job.call_count = 1; /* one more rank, which is not traced */
	find(&m);
	assert_false(m.work.is_idle);
	m.job.call_count = 0;
	m.accounts[1].slow_ns[ACCOUNT_GPU] =
		90 * (uint64_t)MS; /* its host is late: it waits less */
	find(&m);
	assert_false(m.work.is_idle);
	make(&m);
	for (uint32_t r = 0; r < RANKS; r++) {
		m.accounts[r].slow_first.ns = STEPS / 2 * 100 * MS;
		m.accounts[r].slow_last.ns = STEPS * 125 * MS;
	}
	m.rec.gpus = gpus;
	m.rec.gpu_count = 16;
	for (int i = 0; i < 16; i++)
		gpus[i].util_mem_pct = 48 - gpus[i].util_mem_pct;
	find(&m);
	assert_false(m.work.is_idle); /* somebody works on it */
}

/* The threads of rank 1 get no CPU any more, though its host comes in time. */
static void test_threads_without_a_cpu(void **state)
{
	static struct made m;

	for (int all = 0; all < 2; all++) {
		make(&m);
		for (uint32_t r = 0; r < RANKS; r++) {
			m.accounts[r].slow_first.ns = STEPS / 2 * 100 * MS;
			m.accounts[r].slow_last.ns = STEPS * 125 * MS;
			for (uint32_t k = STEPS / 2; k < STEPS; k++)
				m.ledger[r * STEPS + k].ns[LEDGER_CPU_WAIT] =
					(r == 1 || all ? 90 : 5) * (uint64_t)MS;
		}
		find(&m);
		assert_int_equal(m.work.late, all ? UINT32_MAX : 1);
		if (all) /* no rank is worse off than the others */
			assert_true(m.work.starved == 0);
		else
			assert_true(m.work.starved > 0.5 && m.work.starved < 0.7);
	}
}

/* Who goes on first after all have been silent. */
static void test_first_after_a_stall(void **state)
{
	static struct made m;
	static struct rank_jobs jobs;
	struct collective_row rows[2 * RANKS];
	struct step_account *a = &m.accounts[0];

	make(&m);
	memset(rows, 0, sizeof(rows));
	jobs = (struct rank_jobs){0};
	for (uint32_t r = 0; r < RANKS; r++) {
		jobs.members[jobs.count].pid = 10 + r;
		jobs.members[jobs.count++].job = 1;
		rows[r].pid = 10 + r;
		rows[r].start.ns = 5100 * MS + r * MS;
		rows[RANKS + r].pid = 10 + (r + 2) % RANKS;
		rows[RANKS + r].start.ns = 8000 * MS + r * MS;
	}
	m.rec.collectives = rows;
	m.rec.collective_count = 2 * RANKS;
	assert_false(rank_story_is_stall(a)); /* many steps are slow */
	a->slow_steps = 1;
	a->slow_step_ns = 3000 * (uint64_t)MS;
	a->ordinary_step_ns = 100 * (uint64_t)MS;
	a->slow_first.ns = 5000 * MS;
	a->slow_last.ns = 8050 * MS;
	assert_true(rank_story_is_stall(a));
	assert_int_equal(rank_story_first(&m.rec, &jobs, a), 12);
	for (size_t i = RANKS; i < 2 * RANKS; i++)
		rows[i].start.ns -= 2000 * MS; /* they went on communicating */
	assert_int_equal(rank_story_first(&m.rec, &jobs, a), 0);
	rows[RANKS].pid = 99; /* of another job */
	rows[RANKS].start.ns = 7000 * MS;
	assert_int_equal(rank_story_first(&m.rec, &jobs, a), 0);
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
	assert_int_equal(story.severity, SEVERITY_MEDIUM); /* by what the job lost */
	assert_int_equal(story.since.ns, 5);
}

/* Of 70 ms in each step that are the rank's own the job stood still for 10. */
static void test_story_gains_what_was_lost(void **state)
{
	struct incident story = {.problem = PROBLEM_STRAGGLER, .count = 4, .excess_ns = 40 * MS};
	const struct incident own = {.unit_ns = 100 * MS,
		.fixed_ns = 30 * MS,
		.fixed_least_ns = 20 * MS,
		.fixed_most_ns = 95 * MS};

	rank_story_join(&story, &own);
	assert_int_equal(story.unit_ns, 100 * MS);
	assert_int_equal(story.fixed_ns, 90 * MS);
	assert_int_equal(story.fixed_least_ns, 90 * MS);
	assert_int_equal(story.fixed_most_ns, 95 * MS);
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
	struct process_home homes[] = {{.pid = 7, .comm = "nvidia-cuda-mps"}};
	struct recording rec = {.homes = homes, .home_count = 1};
	struct gpu_sample g = {.processes = 4};

	assert_int_equal(rank_jobs_processes(&rec, &g, 4), 1);
	assert_int_equal(rank_jobs_processes(&rec, &g, 1), 4);
	g.processes = 5; /* and the server by which they share it */
	assert_int_equal(rank_jobs_processes(&rec, &g, 4), 1);
	g.processes = 7;
	assert_int_equal(rank_jobs_processes(&rec, &g, 4), 3);
	g.processes = 2; /* a job without ranks, and a server that an earlier one has left */
	assert_int_equal(rank_jobs_processes(&rec, &g, 1), 2);
	g.process_1 = 7;
	assert_int_equal(rank_jobs_processes(&rec, &g, 1), 1);
	g.processes = -1;
	assert_int_equal(rank_jobs_processes(&rec, &g, 4), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gpu_with_more_work),
		cmocka_unit_test(test_rank_that_is_sent_most),
		cmocka_unit_test(test_kernels_that_one_runs),
		cmocka_unit_test(test_collectives_that_came),
		cmocka_unit_test(test_gpus_that_wait),
		cmocka_unit_test(test_threads_without_a_cpu),
		cmocka_unit_test(test_first_after_a_stall),
		cmocka_unit_test(test_moving_load),
		cmocka_unit_test(test_slow_together),
		cmocka_unit_test(test_victims),
		cmocka_unit_test(test_story_has_the_cause),
		cmocka_unit_test(test_story_gains_what_was_lost),
		cmocka_unit_test(test_story_is_whole),
		cmocka_unit_test(test_strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
