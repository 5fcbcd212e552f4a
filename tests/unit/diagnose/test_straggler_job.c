/* SPDX-License-Identifier: Apache-2.0 */
/* test_straggler_job.c - explain on recordings of jobs whose ranks wait for each other in many ways: one
 * incident for each cause, with the job's rank; victims, drains and moving load are nobody's. */
#include "ranks_fixture.h"

#include "cluster/simulate/job.h"
#include "wire/ids.h"

#define MS 1000000

static struct job_spec pipeline(void)
{
	return (struct job_spec){.seed = 5,
		.data = 4,
		.tensor = 1,
		.pipeline = 4,
		.microbatches = 8,
		.buckets = 2,
		.clips = true,
		.steps = 40,
		.step_ns = 400 * MS,
		.jitter = 0.01};
}

/* What a recording has of a made-up job: calls that return at once, and waits after them. */
static void record(struct job *j, const struct job_spec *spec, struct process_home **ret_homes)
{
	struct job_trace t;

	assert_int_equal(job_run(spec, &t), 0);
	*ret_homes = calloc(t.worker_count, sizeof(**ret_homes));
	for (uint32_t i = 0; i < t.worker_count; i++)
		(*ret_homes)[i] = (struct process_home){.pid = PID(i), .rank = (int32_t)i};
	for (size_t i = 0; i < t.call_count; i++) {
		const struct push_call *c = &t.calls[i].c;
		struct collective_row *r =
			job_call(j, (int)t.calls[i].worker, c->seq + 1, c->enter_ns / 1000, 0);

		r->dur_ns = 5000;
		r->op = c->op;
		r->c.comm_hash = c->comm;
		r->c.rank = c->rank;
		r->c.nranks = c->nranks;
		r->c.peer = c->peer;
		r->c.bytes = c->bytes;
		r->c.wait_ns = c->op == NCCL_SEND ? -1 : c->leave_ns - c->enter_ns - 5000;
	}
	job_trace_done(&t);
}

static int by_start(const void *a, const void *b)
{
	const struct collective_row *x = a, *y = b;

	return (x->start.ns > y->start.ns) - (x->start.ns < y->start.ns);
}

static struct answer ask(struct job *j, const struct job_spec *spec)
{
	_cleanup_free_ struct process_home *homes = NULL;
	struct recording rec;

	record(j, spec, &homes);
	qsort(j->rows, j->count, sizeof(*j->rows), by_start);
	rec = job_recording(j);
	rec.homes = homes;
	rec.home_count = (size_t)spec->data * spec->tensor * spec->pipeline;
	return answer_to(&rec);
}

static size_t stragglers(const struct answer *a)
{
	size_t n = 0;

	for (size_t i = 0; i < a->count; i++)
		n += a->list[i].problem == PROBLEM_STRAGGLER;
	return n;
}

static void the_slow_worker_alone_is_named(void **state)
{
	struct job_spec s = pipeline();
	const struct incident *inc;
	JOB;

	s.fault = JOB_SLOW;
	s.amount = 0.8;
	s.faulty[0] = 6; /* its communicators call it 2 */
	s.faulty_count = 1;
	ANSWER a = ask(&j, &s);
	assert_int_equal(stragglers(&a), 1);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_int_equal(inc->severity, SEVERITY_HIGH);
	assert_int_equal(inc->culprit_rank, 6);
	assert_int_equal(inc->pid, PID(6));
	assert_non_null(
		strstr(inc->summary, "rank 6 (pid 1006) of stage 1 keeps 15 ranks waiting"));
	assert_non_null(strstr(inc->explanation, "only after waiting for others"));
	assert_true(inc->evidence_count > 0);
}

/* One that has become slow; what was so from the beginning is how work is divided. */
static void the_slow_stage_is_named(void **state)
{
	for (int becomes = 0; becomes < 2; becomes++) {
		struct job_spec s = pipeline();
		const struct incident *inc;
		JOB;

		s.fault = JOB_STAGE;
		s.stage = 3;
		s.amount = 0.5;
		s.from_step = becomes ? s.steps / 2 : 0;
		ANSWER a = ask(&j, &s);
		assert_int_equal(stragglers(&a), 1);
		inc = answer_of(&a, PROBLEM_STRAGGLER);
		assert_non_null(strstr(inc->summary, "stage 3 (ranks 12, 13 and 2 more) keeps"));
		if (becomes)
			assert_true(inc->severity >= SEVERITY_MEDIUM && inc->since.ns > 0);
		else
			assert_int_equal(inc->severity, SEVERITY_LOW);
	}
}

static void a_drain_is_nobodys_fault(void **state)
{
	struct job_spec s = pipeline();
	JOB;

	ANSWER a = ask(&j, &s);
	assert_int_equal(a.count, 0);
}

static void moving_load_names_nobody(void **state)
{
	struct job_spec s = pipeline();
	const struct incident *inc;
	JOB;

	s.seed = 6; /* a few dozen steps: with some draws one rank has more of the load by chance */
	s.fault = JOB_MOVING;
	s.amount = 0.3;
	ANSWER a = ask(&j, &s);
	assert_int_equal(stragglers(&a), 1);
	inc = answer_of(&a, PROBLEM_STRAGGLER);
	assert_int_equal(inc->culprit_rank, -1);
	assert_true(inc->severity <= SEVERITY_MEDIUM);
	assert_non_null(strstr(inc->summary, "the load moves between 16 ranks"));
	assert_non_null(strstr(inc->root_cause, "no rank is to blame"));
	assert_int_equal(inc->fix_count, 1);
	assert_non_null(strstr(inc->fixes[0], "the same amount of work"));
}

/* Hosts run ahead and are in time: what one is sent makes its GPU late, and no host is called late for it. */
static void a_hot_expert_is_not_late_itself(void **state)
{
	struct job_spec s = pipeline();
	JOB;

	s.data = 6;
	s.pipeline = s.microbatches = 1;
	s.steps = 90;
	s.experts = s.async = true;
	s.host_share = 0.15;
	s.fault = JOB_EXPERT;
	s.amount = 1.0;
	s.faulty[0] = 2;
	s.faulty_count = 1;
	s.from_step = 30;
	ANSWER a = ask(&j, &s);
	for (size_t i = 0; i < a.count; i++)
		assert_null(strstr(a.list[i].root_cause, " late in "));
}

/* More pairs than incidents are kept for: the costliest is among them. */
static void the_costliest_is_kept(void **state)
{
	struct job_spec s = pipeline();
	JOB;

	s.data = 48;
	s.pipeline = 2;
	s.microbatches = 2;
	s.steps = 30;
	s.fault = JOB_LATE;
	s.period = 1;
	s.late_ns = 300 * MS;
	s.faulty[0] = 95;
	s.faulty_count = 1;
	ANSWER a = ask(&j, &s);
	assert_int_equal(stragglers(&a), 1);
	assert_int_equal(answer_of(&a, PROBLEM_STRAGGLER)->culprit_rank, 95);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slow_worker_alone_is_named),
		cmocka_unit_test(the_slow_stage_is_named),
		cmocka_unit_test(a_drain_is_nobodys_fault),
		cmocka_unit_test(moving_load_names_nobody),
		cmocka_unit_test(a_hot_expert_is_not_late_itself),
		cmocka_unit_test(the_costliest_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
