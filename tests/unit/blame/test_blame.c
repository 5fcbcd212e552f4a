/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame.c - who makes a made-up job wait is found, and nobody else is blamed.
 *
 * Random jobs: BLAME_JOBS=1200 in the environment for the long form. A verdict is right if the first
 * named is a faulty worker (or the stage, or uneven load) and no innocent has 3 % of the time. A false
 * alarm is a healthy job, or one whose fault costs less than 1 % of its time, for which anybody is named with
 * 3 % of it or more. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "blame/blame.h"
#include "blame/call_rhythm.h"
#include "cluster/simulate/job.h"
#include "wire/ids.h"

#define MS    1000000
#define ALARM 0.03

static bool is_faulty(const struct job_spec *s, uint32_t worker)
{
	for (uint32_t i = 0; i < s->faulty_count; i++)
		if (s->faulty[i] == worker)
			return true;
	return false;
}

static void run(const struct job_spec *s, struct job_trace *t, struct blame *b)
{
	assert_int_equal(job_run(s, t), 0);
	assert_int_equal(blame_find(t->workers, t->worker_count, t->calls, t->call_count, b), 0);
}

static struct job_spec plain(uint32_t data)
{
	return (struct job_spec){.seed = 3,
		.data = data,
		.tensor = 1,
		.pipeline = 1,
		.microbatches = 1,
		.buckets = 3,
		.steps = 150,
		.step_ns = 500 * MS,
		.jitter = 0.005};
}

static void end(struct job_trace *t, struct blame *b)
{
	job_trace_done(t);
	blame_done(b);
}

/* Rank 5 of 8 comes 290 ms late in every 14th step. */
static void test_every_14th_step(void **state)
{
	struct job_spec s = plain(8);
	struct job_trace t;
	struct blame b;

	s.fault = JOB_LATE;
	s.period = 14;
	s.late_ns = 290 * MS;
	s.faulty[0] = 5;
	s.faulty_count = 1;
	run(&s, &t, &b);
	assert_int_equal(b.kind, BLAME_WORKERS);
	assert_int_equal(b.suspect_count, 1);
	assert_int_equal(b.suspects[0].worker, 5);
	assert_int_equal(b.suspects[0].period, 14);
	assert_in_range(b.suspects[0].lag_ns, 285 * MS, 295 * MS);
	assert_in_range(b.suspects[0].late, 10, 11);
	assert_int_equal(b.suspects[0].op, NCCL_ALL_REDUCE);
	end(&t, &b);
}

/* Rank 41 of 64 is 80 ms behind, always. */
static void test_always_behind(void **state)
{
	struct job_spec s = plain(64);
	struct job_trace t;
	struct blame b;

	s.jitter = 0.001;
	s.fault = JOB_LATE;
	s.period = 1;
	s.late_ns = 80 * MS;
	s.faulty[0] = 41;
	s.faulty_count = 1;
	run(&s, &t, &b);
	assert_int_equal(b.suspect_count, 1);
	assert_int_equal(b.suspects[0].worker, 41);
	assert_int_equal(b.suspects[0].period, 1);
	assert_in_range(b.suspects[0].lag_ns, 79 * MS, 81 * MS);
	end(&t, &b);
}

/* One straggler makes 8 ranks four times as slow: three quarters of the time are lost. */
static void test_four_times_slower(void **state)
{
	struct job_spec s = plain(8);
	struct job_trace t;
	struct blame b;

	s.fault = JOB_SLOW;
	s.amount = 3;
	s.faulty_count = 1;
	run(&s, &t, &b);
	assert_int_equal(b.suspects[0].worker, 0);
	assert_true(b.suspects[0].share > 0.70 && b.suspects[0].share < 0.78);
	assert_true(b.lost_ns <= b.span_ns);
	end(&t, &b);
}

/* A pipeline of equal stages: fill and drain are nobody's fault, with either schedule. */
static void test_drain_is_nobodys(void **state)
{
	for (int fill = 0; fill < 2; fill++) {
		struct job_spec s = plain(2);
		struct job_trace t;
		struct blame b;

		s.pipeline = 4;
		s.microbatches = 4;
		s.jitter = 0.01;
		s.fill_first = fill;
		run(&s, &t, &b);
		assert_int_equal(b.kind, BLAME_NONE);
		assert_int_equal(b.stages, 4);
		for (uint32_t w = 0; w < t.worker_count; w++)
			assert_int_equal(b.stage_of[w], w / 2);
		end(&t, &b);
	}
}

/* The slow last stage is named, not those at the other end that wait for it: as one that has become slow, or as one that
 * always was, which is how work is divided. */
static void test_slow_stage(void **state)
{
	for (uint32_t from = 0; from <= 100; from += 100) {
		struct job_spec s = plain(2);
		struct job_trace t;
		struct blame b;

		s.pipeline = 4;
		s.microbatches = 8;
		s.clips = true;
		s.fault = JOB_STAGE;
		s.stage = 3;
		s.amount = 0.5;
		s.from_step = from;
		run(&s, &t, &b);
		assert_int_equal(b.kind, BLAME_STAGE);
		assert_int_equal(b.suspect_count, 1);
		assert_int_equal(b.suspects[0].stage, 3);
		assert_int_equal(b.suspects[0].by_design, from == 0);
		end(&t, &b);
	}
}

/* Beside a stage that has more to do than the others, from the beginning, a slow worker is who is named. */
static void test_slow_beside_uneven_stages(void **state)
{
	struct job_spec s = plain(4);
	struct job_trace t;
	struct blame b;

	s.pipeline = 3;
	s.microbatches = 6;
	s.clips = true;
	s.last_extra = 0.6;
	s.fault = JOB_SLOW;
	s.amount = 0.2;
	s.faulty[0] = 9; /* of the last stage */
	s.faulty_count = 1;
	run(&s, &t, &b);
	assert_int_equal(b.kind, BLAME_WORKERS);
	assert_int_equal(b.suspect_count, 1);
	assert_int_equal(b.suspects[0].worker, 9);
	end(&t, &b);
}

/* A slow worker of the second stage: its victims come last to their collectives, and are cleared. */
static void test_victims_are_cleared(void **state)
{
	struct job_spec s = plain(4);
	struct job_trace t;
	struct blame b;
	bool cleared = false;

	s.pipeline = 4;
	s.microbatches = 8;
	s.fault = JOB_SLOW;
	s.amount = 0.8;
	s.faulty[0] = 6; /* stage 1, replica 2 */
	s.faulty_count = 1;
	run(&s, &t, &b);
	assert_int_equal(b.suspect_count, 1);
	assert_int_equal(b.suspects[0].worker, 6);
	assert_int_equal(b.suspects[0].stage, 1);
	assert_int_equal(b.suspects[0].replica, 2);
	for (size_t i = 0; i < b.cleared_count; i++) {
		assert_int_not_equal(b.cleared[i], 6);
		cleared |= b.cleared[i] == 2; /* the same replica, one stage before */
	}
	assert_true(cleared);
	end(&t, &b);
}

/* One rank a stage: there are no peers, and one that becomes slower is told by its own past; one that was always slower is a
 * slow stage. */
static void test_alone_in_its_stage(void **state)
{
	for (uint32_t from = 0; from <= 100; from += 100) {
		struct job_spec s = plain(1);
		struct job_trace t;
		struct blame b;

		s.pipeline = 4;
		s.microbatches = 8;
		s.clips = true; /* all ranks meet once a step */
		s.fault = JOB_SLOW;
		s.amount = 1;
		s.from_step = from;
		s.faulty[0] = 2;
		s.faulty_count = 1;
		run(&s, &t, &b);
		assert_int_equal(b.kind, from ? BLAME_WORKERS : BLAME_STAGE);
		assert_int_equal(b.suspect_count, 1);
		assert_int_equal(b.suspects[0].worker, 2);
		end(&t, &b);
	}
}

/* Stages that do nothing but send, met in the middle of a step: how long a step is comes from the order of calls, and
 * which stage is the first from ranks. One that becomes slower is named; one that has most to do all along and a little
 * more at times is how work is divided. */
static void test_messages_alone(void **state)
{
	for (int became = 0; became < 2; became++) {
		struct job_spec s = plain(1);
		struct job_trace t;
		struct blame b;
		size_t kept = 0;

		s.pipeline = 4;
		s.microbatches = 8;
		s.last_extra = became ? 0 : 1;
		s.fault = JOB_STAGE;
		s.stage = became ? 2 : 3;
		s.amount = became ? 1 : 0.15;
		s.from_step = 75;
		assert_int_equal(job_run(&s, &t), 0);
		for (size_t i = 0; i < t.call_count; i++) {
			const struct push_call *c = &t.calls[i].c;

			if ((c->op == NCCL_SEND || c->op == NCCL_RECV) &&
				c->enter_ns > t.calls[0].c.enter_ns + 1300 * (int64_t)MS)
				t.calls[kept++] = t.calls[i];
		}
		assert_int_equal(call_rhythm_set(t.workers, t.worker_count, t.calls, kept), 0);
		assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, kept, &b), 0);
		assert_in_range(b.steps, 130, 150);
		assert_int_equal(b.stages, 4);
		for (uint32_t w = 0; w < t.worker_count; w++)
			assert_int_equal(b.stage_of[w], w);
		assert_int_equal(b.kind, BLAME_STAGE);
		assert_int_equal(b.suspects[0].stage, s.stage);
		assert_int_equal(b.suspects[0].by_design, !became);
		end(&t, &b);
	}
}

static void test_load_that_moves(void **state)
{
	struct job_spec s = plain(16);
	struct job_trace t;
	struct blame b;

	s.fault = JOB_MOVING;
	s.amount = 0.25;
	run(&s, &t, &b);
	assert_int_equal(b.kind, BLAME_UNEVEN);
	assert_int_equal(b.suspect_count, 0);
	assert_true(b.spread_step > 3 * b.spread_lasting);
	end(&t, &b);
}

/* One that is a bit slower than its peers in all steps, and far later in a few at the end: what it costs is that of all steps,
 * and it has been so for as long. */
static void test_slower_and_late(void **state)
{
	struct job_spec s = plain(8);
	struct job_trace t;
	struct blame b;

	s.jitter = 0.03;
	s.fault = JOB_SLOW;
	s.faulty[0] = 3;
	s.faulty_count = 1;
	s.amount = 0.08;
	assert_int_equal(job_run(&s, &t), 0);
	for (size_t i = 0; i < t.call_count;
		i++) { /* from the 140th step on everything is late, by it */
		struct blame_call *c = &t.calls[i];
		int64_t more = (int64_t)(c->c.seq / s.buckets) - 139;

		more = 80 * MS * MIN(MAX(more, 0), 4);
		c->c.leave_ns += more;
		if (c->worker == 3)
			c->c.enter_ns += more;
		else if (c->c.seq % s.buckets == 0)
			c->c.wait_ns += more ? 80 * MS : 0;
		if (c->worker != 3)
			c->c.enter_ns = c->c.leave_ns - (int64_t)c->c.wait_ns;
	}
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, t.call_count, &b), 0);
	assert_true(b.suspect_count > 0);
	assert_int_equal(b.suspects[0].worker, 3);
	print_message("# late in %u of %u steps, for %.0f of %.0f s\n", b.suspects[0].late,
		b.suspects[0].seen, (double)(b.end_ns - b.suspects[0].since_ns) / 1e9,
		(double)b.span_ns / 1e9);
	assert_true((uint64_t)(b.end_ns - b.suspects[0].since_ns) > b.span_ns * 3 / 4);
	end(&t, &b);
}

/* The common clock goes a bit faster than the workers' own: each call seems to begin a hair before the end of the one before
 * it. Buckets that follow each other are waits of their own all the same. */
static void test_calls_that_touch(void **state)
{
	struct job_spec s = plain(7);
	struct job_trace t;
	struct blame plain_clock, faster;

	s.buckets = 5;
	s.ends_ns = 10 * MS;
	s.fault = JOB_MOVING;
	s.amount = 0.3;
	run(&s, &t, &plain_clock);
	for (size_t i = 0; i < t.call_count; i++) {
		t.calls[i].c.leave_ns += 2000;
		t.calls[i].c.wait_ns += 2000;
	}
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, t.call_count, &faster), 0);
	print_message("# moving load costs %.3f and %.3f\n", plain_clock.uneven_share,
		faster.uneven_share);
	assert_true(plain_clock.uneven_share > 0.1);
	assert_true(faster.uneven_share > 0.9 * plain_clock.uneven_share);
	blame_done(&plain_clock);
	end(&t, &faster);
}

/* Calls may come in any order, and twice; one rank may be missing. */
static void test_disorder(void **state)
{
	struct job_spec s = plain(8);
	struct job_trace t;
	struct blame b, c;
	_cleanup_free_ struct blame_call *calls = NULL;
	size_t n = 0;

	s.pipeline = 2;
	s.microbatches = 4;
	s.fault = JOB_SLOW;
	s.amount = 0.5;
	s.faulty[0] = 3;
	s.faulty_count = 1;
	run(&s, &t, &b);
	calls = calloc(2 * t.call_count, sizeof(*calls));
	for (size_t i = t.call_count; i-- > 0;) {
		if (t.calls[i].worker == 6)
			continue;
		calls[n++] = t.calls[i];
		if (i % 7 == 0)
			calls[n++] = t.calls[i];
	}
	assert_int_equal(blame_find(t.workers, t.worker_count, calls, n, &c), 0);
	assert_int_equal(c.suspects[0].worker, 3);
	assert_true(c.unmatched > 0 && b.unmatched == 0);
	assert_true(c.confidence < b.confidence);
	assert_true(c.suspects[0].share > b.suspects[0].share - 0.05);
	blame_done(&c);
	end(&t, &b);
}

static void test_too_little(void **state)
{
	struct job_spec s = plain(4);
	struct job_trace t;
	struct blame b;

	s.steps = 2;
	run(&s, &t, &b);
	assert_int_equal(b.kind, BLAME_NONE);
	assert_true(b.confidence == 0);
	end(&t, &b);
	assert_int_equal(blame_find(NULL, 0, NULL, 0, &b), 0);
	assert_int_equal(b.kind, BLAME_NONE);
	blame_done(&b);
	assert_int_equal(blame_find(NULL, BLAME_WORKERS_MAX + 1, NULL, 0, &b), -E2BIG);
}

/* Times and ranks that make no sense do no harm. */
static void test_nonsense(void **state)
{
	struct job_spec s = plain(4);
	struct job_trace t;
	struct blame b, c;

	run(&s, &t, &b);
	for (size_t i = 0; i < t.call_count; i += 5) {
		struct push_call *p = &t.calls[i].c;

		p->enter_ns = i % 2 ? INT64_MAX : INT64_MIN;
		p->leave_ns = i % 3 ? INT64_MIN : INT64_MAX;
		p->seq = i % 7 ? UINT64_MAX - i : p->seq;
		p->peer = INT32_MIN;
		p->rank = INT32_MAX;
		p->op = i % 4 ? NCCL_RECV : UINT16_MAX;
	}
	t.calls[1].worker = UINT32_MAX;
	t.workers[2].offset_ns = INT64_MAX;
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, t.call_count, &c), 0);
	assert_true(c.lost_ns <= c.span_ns);
	assert_true(c.unmatched > 0);
	blame_done(&c);
	end(&t, &b);
}

/* What the fault costs: the same job without it. */
static double cost_of(const struct job_spec *s, const struct job_trace *t)
{
	struct job_spec healthy = *s;
	struct job_trace h;
	double cost;

	healthy.fault = JOB_NONE;
	assert_int_equal(job_run(&healthy, &h), 0);
	cost = 1 - (double)h.span_ns / (double)t->span_ns;
	job_trace_done(&h);
	return cost;
}

static bool is_right(const struct job_spec *s, const struct blame *b)
{
	const struct blame_suspect *first = &b->suspects[0];

	switch (s->fault) {
	case JOB_NONE: return b->suspect_count == 0 || first->share < ALARM;
	case JOB_STAGE: return b->kind == BLAME_STAGE && first->stage == s->stage;
	case JOB_MOVING: return b->kind == BLAME_UNEVEN;
	default: break;
	}
	if (b->kind != BLAME_WORKERS || !is_faulty(s, first->worker))
		return false;
	for (size_t i = 1; i < b->suspect_count; i++)
		if (!is_faulty(s, b->suspects[i].worker) && b->suspects[i].share >= ALARM)
			return false;
	return true;
}

struct row {
	const char *name;
	unsigned right, total;
};

static const char *shape_of(const struct job_spec *s)
{
	return s->experts                         ? "experts"
	       : s->async                         ? "data, host ahead"
	       : s->pipeline > 1 && s->tensor > 1 ? "data, tensor, pipeline"
	       : s->pipeline > 1                  ? "data, pipeline"
	       : s->tensor > 1                    ? "data, tensor"
						  : "data";
}

static void count(struct row *rows, size_t n, const char *name, bool right)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].name && strcmp(rows[i].name, name) != 0)
			continue;
		rows[i].name = name;
		rows[i].right += right;
		rows[i].total++;
		return;
	}
}

static void print_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n && rows[i].name; i++)
		printf("# %-24s %u of %u\n", rows[i].name, rows[i].right, rows[i].total);
}

static void test_random_jobs(void **state)
{
	static const enum job_fault faults[] = {
		JOB_NONE, JOB_SLOW, JOB_LATE, JOB_DRIFT, JOB_STAGE, JOB_MOVING};
	const char *asked = getenv("BLAME_JOBS");
	size_t jobs = asked ? strtoul(asked, NULL, 10) : 80; /* more: make check-full */
	struct row shapes[8] = {0}, kinds[8] = {0};
	unsigned right = 0, faulty = 0, alarms = 0;
	double healthy_s = 0;

	for (size_t i = 0; i < jobs; i++) {
		struct job_spec s = job_spec_random(i + 1, faults[i % ARRAY_SIZE(faults)]);
		struct job_trace t;
		struct blame b;
		bool ok;

		run(&s, &t, &b);
		if (s.fault != JOB_NONE && cost_of(&s, &t) < 0.01)
			s.fault = JOB_NONE; /* it costs nothing: nobody has to be named */
		ok = is_right(&s, &b);
		assert_true(b.lost_ns <= b.span_ns);
		if (s.fault == JOB_NONE) {
			healthy_s += (double)t.span_ns / 1e9;
			alarms += !ok;
		} else {
			right += ok;
			faulty++;
			count(shapes, ARRAY_SIZE(shapes), shape_of(&s), ok);
		}
		count(kinds, ARRAY_SIZE(kinds), job_fault_id(s.fault), ok);
		if (!ok)
			printf("# wrong: seed %zu, %s, %s\n", i + 1, job_fault_id(s.fault),
				shape_of(&s));
		end(&t, &b);
	}
	print_rows(shapes, ARRAY_SIZE(shapes));
	print_rows(kinds, ARRAY_SIZE(kinds));
	printf("# first named right: %u of %u; false alarms: %u in %.2f days of healthy jobs\n",
		right, faulty, alarms, healthy_s / 86400);
	assert_true(faulty - right <= (faulty + 99) / 100); /* one in a hundred, one of fewer */
	assert_true(alarms <= healthy_s / 86400);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_14th_step),
		cmocka_unit_test(test_always_behind),
		cmocka_unit_test(test_four_times_slower),
		cmocka_unit_test(test_drain_is_nobodys),
		cmocka_unit_test(test_slow_stage),
		cmocka_unit_test(test_slow_beside_uneven_stages),
		cmocka_unit_test(test_victims_are_cleared),
		cmocka_unit_test(test_alone_in_its_stage),
		cmocka_unit_test(test_messages_alone),
		cmocka_unit_test(test_load_that_moves),
		cmocka_unit_test(test_slower_and_late),
		cmocka_unit_test(test_calls_that_touch),
		cmocka_unit_test(test_disorder),
		cmocka_unit_test(test_too_little),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_random_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
