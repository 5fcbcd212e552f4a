/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_straggler.c - who is late again and again, what that costs, and when nobody is to blame. */
#include "ranks_fixture.h"

#include "diagnose/accounts/match.h"
#include "diagnose/findings/straggler_job.h"

static void one_rank_is_late_every_time(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 201; seq++)
		job_step(&j, seq, 2, 5000);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_int_equal(inc->severity, SEVERITY_HIGH);
	assert_int_equal(inc->culprit_rank, 2);
	assert_int_equal(inc->pid, PID(2));
	assert_int_equal(inc->count, 200); /* the first pays for set-up */
	assert_in_range(inc->excess_ns, 200 * 4990000ull, 200 * 5030000ull);
	assert_in_range((int)(inc->explained * 100), 80, 85); /* 5 of 6 ms waited */
	assert_true(inc->confidence > 0.9 * 0.9);
	assert_int_equal(inc->period_steps, 0); /* every one is no period */
	assert_int_equal(inc->evidence_count, INCIDENT_EVIDENCE);
	assert_non_null(strstr(inc->root_cause, "rank 2 (pid 1002) was late in 200 of 200 steps"));
	assert_non_null(strstr(inc->evidence_sql, "comm = -9223372036854773060"));
}

/* The time of an incident is that of all late steps, wherever the worst one is. */
static void it_lasts_until_the_last_late_step(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 300; seq++)
		job_step(&j, seq, seq % 10 == 0 ? 1 : -1, seq == 100 ? 9000 : 6000);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_in_range((inc->last.ns - inc->first.ns) / (int64_t)NS_PER_MS, 2890, 2930);
}

/* Ranks 2 and 3 share what delays them: the one comes @apart_us after the other. */
static void two_are_late_together(void **state)
{
	for (int64_t apart_us = 0; apart_us <= 2000; apart_us += 1000) {
		const struct incident *inc;
		struct recording rec;
		JOB;

		for (uint64_t seq = 1; seq <= 201; seq++)
			for (int r = 0; r < RANKS; r++) {
				bool is_late = r >= 2;
				bool is_last = r == 2 + (int)(seq % 2);
				int64_t own = is_late ? 4900 - (is_last ? 0 : apart_us)
						      : (int64_t)scene_random(&j.s, 40);

				job_call(&j, r, seq, (int64_t)seq * STEP_US + own,
					WAITS_US + 4900 - own);
			}
		rec = job_recording(&j);
		ANSWER a = answer_to(&rec);
		assert_int_equal(a.count, 1);
		inc = answer_of(&a, PROBLEM_STRAGGLER);
		assert_non_null(inc);
		assert_int_equal(inc->severity, SEVERITY_HIGH);
		/* They take turns in being the later one, and their means are compared. */
		assert_in_range(inc->excess_ns, 200 * 4300000ull, 200 * 4950000ull);
		assert_non_null(strstr(
			inc->summary, "ranks 2 (pid 1002) and 3 (pid 1003) keep 2 ranks waiting"));
		assert_int_equal(inc->count, 200);
	}
}

static void a_regular_one_has_its_period(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 300; seq++)
		job_step(&j, seq, seq % 10 == 0 ? 1 : -1, 8000);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_int_equal(inc->culprit_rank, 1);
	assert_int_equal(inc->period_steps, 10);
	assert_non_null(strstr(inc->summary, "every 10 steps"));
}

/* 7 or 8 % of the time: by 4 ms in all steps, which healthy ranks are, too, or by 35 ms in one of ten. */
static void what_is_little_each_time_is_worth_less(void **state)
{
	static const struct {
		uint64_t every, of;
		int64_t late_us;
		enum severity severity;
	} cases[] = {{10, 10, 4000, SEVERITY_LOW}, {1, 10, 35000, SEVERITY_MEDIUM}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct incident *inc;
		struct recording rec;
		JOB;

		for (uint64_t seq = 1; seq <= 300; seq++)
			job_step_at(&j, seq, (int64_t)seq * 5 * STEP_US,
				seq % cases[i].of < cases[i].every ? 1 : -1, cases[i].late_us);
		rec = job_recording(&j);
		ANSWER a = answer_to(&rec);
		inc = answer_of(&a, PROBLEM_STRAGGLER);
		assert_non_null(inc);
		assert_int_equal(inc->culprit_rank, 1);
		assert_int_equal(inc->severity, cases[i].severity);
	}
}

static void turns_are_nobodys_fault(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 400; seq++)
		job_step(&j, seq, (int)(seq % RANKS), 7000);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_int_equal(inc->culprit_rank, -1);
	assert_true(inc->severity <= SEVERITY_MEDIUM);
	assert_non_null(strstr(inc->root_cause, "no rank is to blame"));
}

/* Two jobs on one machine, one of which is late: each is looked at alone. */
static void another_job_is_not_mixed_in(void **state)
{
	const struct incident *inc;
	struct recording rec;
	size_t first;
	JOB;

	for (uint64_t seq = 1; seq <= 201; seq++)
		job_step(&j, seq, 2, 5000);
	first = j.count;
	for (uint64_t seq = 1; seq <= 300; seq++)
		job_step(&j, seq, -1, 0);
	for (size_t i = first; i < j.count; i++) {
		j.rows[i].c.comm_hash = COMM + 1;
		j.rows[i].pid = j.rows[i].tid = j.rows[i].pid + 100;
	}
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_int_equal(inc->pid, PID(2));
	assert_non_null(strstr(inc->summary, "keeps 3 ranks waiting"));
}

/* Nobody synchronises where it is seen: by the arrivals alone. */
static void waits_that_nobody_knows_are_supposed(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 201; seq++)
		job_step(&j, seq, 2, 5000);
	for (size_t i = 0; i < j.count; i++)
		j.rows[i].c.wait_ns = -1;
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 1);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_int_equal(inc->pid, PID(2));
}

/* Synchronisations of rank 0 follow its calls. @is_known: what waited for each call alone is, and it was none of them. */
static void check_ends(bool is_known)
{
	_cleanup_(straggler_jobs_done) struct straggler_jobs jobs;
	struct step_report accounts = {0};
	const struct straggler_job *found;
	struct recording rec;
	size_t checked = 0;
	JOB;

	for (uint64_t seq = 1; seq <= 30; seq++) {
		job_step(&j, seq, -1, 0);
		scene_add(&j.s, SOURCE_CUDA, CUDA_STREAM_SYNC, PID(0), PID(0),
			(int64_t)seq * STEP_US + 2000, 6000);
	}
	for (size_t i = 0; is_known && i < j.count; i++)
		j.rows[i].c.span_ns = (int64_t)j.rows[i].dur_ns + j.rows[i].c.wait_ns;
	rec = job_recording(&j);
	assert_int_equal(straggler_jobs_find(&rec, &accounts, &jobs), 0);
	assert_int_equal(jobs.count, 1);
	found = &jobs.items[0];
	for (size_t i = 0; i < found->call_count; i++) {
		const struct push_call *c = &found->calls[i].c;
		int64_t step = SCENE_T0_NS + (int64_t)c->seq * STEP_US * 1000;

		if (c->pid != PID(0))
			continue;
		assert_int_equal(c->leave_ns,
			is_known ? collective_left_ns(found->rows[i]) : step + 8000 * 1000);
		assert_int_equal(c->wait_ns, (is_known ? WAITS_US : 6000) * 1000);
		checked++;
	}
	assert_true(checked >= 29);
}

static void an_end_that_is_known_stays(void **state)
{
	check_ends(true);
	check_ends(false);
}

static void small_lateness_does_not_matter(void **state)
{
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 400; seq++)
		job_step(&j, seq, 3, 150);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 0);
}

static void lateness_that_nobody_waited_for_costs_nothing(void **state)
{
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 200; seq++)
		job_step(&j, seq, 2, 5000);
	for (size_t i = 0; i < j.count; i++)
		j.rows[i].c.wait_ns = 50000;
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_int_equal(a.count, 0);
}

static void several_collectives_of_a_step_cost_once(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t step = 1; step <= 100; step++)
		for (int k = 0; k < 3; k++) {
			size_t first = j.count;

			job_step(&j, step, 2, 5000);
			for (size_t i = first; i < j.count; i++) {
				j.rows[i].c.seq = step * 3 + (uint64_t)k;
				j.rows[i].start.ns += k * 50000;
			}
		}
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_in_range(inc->excess_ns, 99 * 5000000ull, 100 * 5200000ull);
}

/* Clocks an hour apart: only the waits are compared. */
static void nodes_are_compared_by_waits(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 100; seq++)
		job_step(&j, seq, 2, 5000);
	for (size_t i = 0; i < j.count; i++)
		if (j.rows[i].c.rank == 0) {
			snprintf(j.rows[i].node, sizeof(j.rows[i].node), "gpu-2");
			j.rows[i].start.ns += 3600000000000;
		}
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_int_equal(inc->culprit_rank, 2);
	assert_non_null(strstr(inc->explanation, "clocks of different nodes"));
}

static void what_kept_it_is_named(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 100; seq++) {
		int64_t at = (int64_t)seq * STEP_US;
		struct event *e;

		job_step(&j, seq, 2, 5000);
		e = scene_add(&j.s, SOURCE_HOST, HOST_SCHED_SWITCH, PID(2), PID(2), at + 100, 4000);
		e->flags = WIRE_UNINTERRUPTIBLE;
		scene_io(&j.s, IO_READ, PID(2), "rank2", at + 100, 4000, 1024);
	}
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_non_null(strcasestr(inc->summary, "disk"));
}

/* Its fix is about what it sleeps for, not about more work, and the cause has room for both parts. */
static void a_rank_that_sleeps(void **state)
{
	const struct incident *inc;
	struct recording rec;
	JOB;

	for (uint64_t seq = 1; seq <= 100; seq++) {
		int64_t at = (int64_t)seq * STEP_US;

		job_step(&j, seq, 2, 5000);
		scene_add(&j.s, SOURCE_HOST, HOST_SCHED_SWITCH, PID(2), PID(2), at + 100, 4000);
	}
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_non_null(inc);
	assert_ptr_equal(strstr(inc->summary, "Sleeping"), inc->summary);
	assert_non_null(strstr(inc->root_cause, "of its own time than its peers"));
	assert_non_null(strstr(inc->fixes[0], "Wait for what the line sleeps for"));
	for (int i = 0; i < inc->fix_count; i++)
		assert_null(strstr(inc->fixes[i], "Balance"));
}

/* Whoever waits for a late rank has slow steps, which are told as that rank's. */
static void waiting_ranks_are_not_reported_beside_it(void **state)
{
	struct recording rec;
	int64_t at = 0;
	JOB;

	for (uint64_t seq = 1; seq <= 2000; seq++) {
		bool late = seq > 1500 && seq % 5 == 0;

		at += STEP_US;
		job_step_at(&j, seq, at, late ? 2 : -1, 8000);
		for (int r = 0; r < RANKS; r++)
			scene_add(&j.s, SOURCE_CUDA, CUDA_STREAM_SYNC, PID(r), PID(r),
				at + (late && r == 2 ? 8050 : 50), late && r != 2 ? 9000 : 1000);
		at += late ? 8000 : 0;
	}
	scene_aggregate(&j.s);
	rec = job_recording(&j);
	ANSWER a = answer_to(&rec);
	assert_non_null(answer_of(&a, PROBLEM_STRAGGLER));
	for (size_t i = 0; i < a.count; i++)
		assert_true(a.list[i].problem == PROBLEM_STRAGGLER || a.list[i].pid == PID(2));
	rec.collective_count = 0; /* control: without collectives the slow steps are reported */
	ANSWER b = answer_to(&rec);
	assert_true(b.count >= RANKS - 1);
	for (size_t i = 0; i < b.count; i++)
		assert_int_not_equal(b.list[i].problem, PROBLEM_STRAGGLER);
}

static void odd_rows_do_no_harm(void **state)
{
	struct match_table t;
	struct recording rec;
	JOB;

	rec = job_recording(&j);
	ANSWER none = answer_to(&rec);
	assert_int_equal(none.count, 0);
	for (uint64_t seq = 1; seq <= 20; seq++)
		job_step(&j, seq, 2, 5000);
	j.rows[0].start.ns = INT64_MAX;
	j.rows[1].start.ns = -1;
	j.rows[2].c.wait_ns = INT64_MAX;
	j.rows[3].dur_ns = UINT64_MAX;
	j.rows[4].c.rank = -1;
	j.rows[5].c.seq = 0;
	j.rows[6].c.comm_hash = 0;
	j.rows[7].ret = 5;
	j.rows[8].op = NCCL_SEND;
	j.rows[12] = j.rows[13]; /* a rank twice */
	rec = job_recording(&j);
	assert_int_equal(match_run(&rec, &t), 0);
	assert_int_equal(t.row_count, 80 - 10);
	assert_int_equal(t.comm_count, 1);
	match_done(&t);
	ANSWER a = answer_to(&rec);
	assert_true(a.count <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_rank_is_late_every_time),
		cmocka_unit_test(it_lasts_until_the_last_late_step),
		cmocka_unit_test(two_are_late_together),
		cmocka_unit_test(a_regular_one_has_its_period),
		cmocka_unit_test(turns_are_nobodys_fault),
		cmocka_unit_test(what_is_little_each_time_is_worth_less),
		cmocka_unit_test(another_job_is_not_mixed_in),
		cmocka_unit_test(waits_that_nobody_knows_are_supposed),
		cmocka_unit_test(an_end_that_is_known_stays),
		cmocka_unit_test(small_lateness_does_not_matter),
		cmocka_unit_test(lateness_that_nobody_waited_for_costs_nothing),
		cmocka_unit_test(several_collectives_of_a_step_cost_once),
		cmocka_unit_test(nodes_are_compared_by_waits),
		cmocka_unit_test(what_kept_it_is_named),
		cmocka_unit_test(a_rank_that_sleeps),
		cmocka_unit_test(waiting_ranks_are_not_reported_beside_it),
		cmocka_unit_test(odd_rows_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
