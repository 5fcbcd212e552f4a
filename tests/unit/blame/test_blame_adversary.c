/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_adversary.c - jobs that are easily misjudged, each beside a healthy one that looks like it:
 * who is at fault is named, and nobody else. */
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
#include "cluster/simulate/job.h"
#include "wire/ids.h"

#define MS 1000000

static struct job_spec job_of(uint32_t data, uint32_t tensor, uint32_t stages)
{
	return (struct job_spec){.seed = 11,
		.data = data,
		.tensor = tensor,
		.pipeline = stages,
		.microbatches = stages > 1 ? 2 * stages : 1,
		.layers = 4,
		.buckets = 3,
		.clips = true,
		.steps = 90,
		.step_ns = 300 * MS,
		.jitter = 0.02,
		.lasting = 0.004,
		.first_extra = 0.03,
		.last_extra = 0.05};
}

/* The job is run, changed, and looked at. */
static struct blame look(
	const struct job_spec *s, void (*change)(struct job_trace *t, const struct job_spec *s))
{
	struct job_trace t;
	struct blame b;

	assert_int_equal(job_run(s, &t), 0);
	if (change)
		change(&t, s);
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, t.call_count, &b), 0);
	for (size_t i = 0; i < b.suspect_count; i++)
		print_message("# kind %d: rank %u stage %d, %.1f %%, late %u of %u, every %u\n",
			b.kind, b.suspects[i].worker, b.suspects[i].stage,
			100 * b.suspects[i].share, b.suspects[i].late, b.suspects[i].seen,
			b.suspects[i].period);
	job_trace_done(&t);
	return b;
}

static bool is_faulty(const struct job_spec *s, uint32_t worker)
{
	for (uint32_t i = 0; i < s->faulty_count; i++)
		if (s->faulty[i] == worker)
			return true;
	return false;
}

/* All who are at fault are named, and nobody else. */
static void assert_named(const struct job_spec *s, struct blame b)
{
	assert_int_equal(b.kind, BLAME_WORKERS);
	assert_int_equal(b.suspect_count, s->faulty_count);
	for (size_t i = 0; i < b.suspect_count; i++)
		assert_true(is_faulty(s, b.suspects[i].worker));
	assert_true(b.lost_ns <= b.span_ns);
	blame_done(&b);
}

static void assert_quiet(struct blame b)
{
	assert_int_equal(b.suspect_count, 0);
	assert_false(b.has_sudden);
	blame_done(&b);
}

/* Rank 0 writes a checkpoint every 20 steps: its fault, with the period. All of them do: nobody's. */
static void test_checkpoint_of_one(void **state)
{
	struct job_spec s = job_of(16, 1, 1);
	struct blame b;

	s.fault = JOB_LATE;
	s.period = 20;
	s.late_ns = 900 * MS;
	s.faulty_count = 1;
	s.steps = 160;
	b = look(&s, NULL);
	assert_int_equal(b.suspects[0].period, 20);
	assert_named(&s, b);
}

static void test_checkpoint_of_all(void **state)
{
	struct job_spec s = job_of(8, 1, 1);

	s.fault = JOB_LATE;
	s.period = 20;
	s.late_ns = 900 * MS;
	s.faulty_count = 8;
	for (uint32_t i = 0; i < 8; i++)
		s.faulty[i] = i;
	assert_quiet(look(&s, NULL));
}

/* Gradients are reduced once in eight micro-batches; the calls of layers come in between. */
static void test_gradient_accumulation(void **state)
{
	struct job_spec s = job_of(4, 4, 1);

	s.microbatches = 8;
	assert_quiet(look(&s, NULL));
	s.fault = JOB_SLOW;
	s.amount = 0.3;
	s.faulty[0] = 9;
	s.faulty_count = 1;
	assert_named(&s, look(&s, NULL));
}

/* The first and last stage compute a little longer in any case. */
static void test_uneven_stages(void **state)
{
	struct job_spec s = job_of(4, 1, 4);

	s.last_extra = 0.09;
	assert_quiet(look(&s, NULL));
	s.fault = JOB_SLOW;
	s.amount = 0.4;
	s.faulty[0] = 6;
	s.faulty_count = 1;
	assert_named(&s, look(&s, NULL));
}

/* Experts get uneven numbers of tokens, others in every step; or one rank is slow beside that. */
static void test_experts_that_move(void **state)
{
	struct job_spec s = job_of(8, 1, 1);
	struct blame b;

	s.experts = true;
	s.fault = JOB_MOVING;
	s.amount = 0.3;
	b = look(&s, NULL);
	assert_int_equal(b.kind, BLAME_UNEVEN);
	assert_quiet(b);
	s.fault = JOB_SLOW;
	s.amount = 0.3;
	s.faulty[0] = 3;
	s.faulty_count = 1;
	assert_named(&s, look(&s, NULL));
}

static void test_two_stragglers(void **state)
{
	struct job_spec s = job_of(32, 1, 1);

	s.fault = JOB_SLOW;
	s.amount = 0.25;
	s.faulty[0] = 5;
	s.faulty[1] = 30;
	s.faulty_count = 2;
	assert_named(&s, look(&s, NULL));
}

/* All ranks of one node of four are slow: all eight are named, nobody of the other nodes. */
static void test_slow_node(void **state)
{
	struct job_spec s = job_of(32, 1, 1);

	s.fault = JOB_SLOW;
	s.amount = 0.3;
	for (uint32_t i = 0; i < 8; i++)
		s.faulty[i] = 8 + i;
	s.faulty_count = 8;
	assert_named(&s, look(&s, NULL));
}

/* A rank that is late in its tensor group makes its whole group late for the gradients. */
static void test_late_in_one_group(void **state)
{
	struct job_spec s = job_of(4, 8, 1);

	s.fault = JOB_SLOW;
	s.amount = 0.2;
	s.faulty[0] = 13;
	s.faulty_count = 1;
	assert_named(&s, look(&s, NULL));
	s.fault = JOB_NONE;
	s.faulty_count = 0;
	assert_quiet(look(&s, NULL));
}

/* ---- what recordings do ---- */

static void drop_early(struct job_trace *t, const struct job_spec *s)
{
	size_t n = 0;

	for (size_t i = 0; i < t->call_count; i++)
		if (t->calls[i].worker != 2 || t->calls[i].c.enter_ns > (int64_t)t->span_ns / 3)
			t->calls[n++] = t->calls[i];
	t->call_count = n;
}

/* The agent of rank 2 began later: what it did before is not known, and not its fault. */
static void test_joins_late(void **state)
{
	struct job_spec s = job_of(8, 1, 1);

	assert_quiet(look(&s, drop_early));
	s.fault = JOB_SLOW;
	s.amount = 0.4;
	s.faulty[0] = 6;
	s.faulty_count = 1;
	assert_named(&s, look(&s, drop_early));
}

static void lose_some(struct job_trace *t, const struct job_spec *s)
{
	uint64_t state = 5;
	size_t n = 0;

	for (size_t i = 0; i < t->call_count; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407U;
		if (state >> 60) /* one of sixteen is lost */
			t->calls[n++] = t->calls[i];
	}
	t->call_count = n;
}

static void test_lost_calls(void **state)
{
	struct job_spec s = job_of(8, 2, 1);

	assert_quiet(look(&s, lose_some));
	s.fault = JOB_SLOW;
	s.amount = 0.5;
	s.faulty[0] = 7;
	s.faulty_count = 1;
	assert_named(&s, look(&s, lose_some));
}

static void skew(struct job_trace *t, const struct job_spec *s)
{
	for (size_t i = 0; i < t->call_count; i++) {
		int64_t ahead = (int64_t)(t->calls[i].worker / 8) * 3 * 1000 * MS;

		t->calls[i].c.enter_ns += ahead;
		t->calls[i].c.leave_ns += ahead;
	}
	for (size_t w = 0; w < t->worker_count; w++)
		t->workers[w].error_ns = UINT64_MAX;
}

/* The clocks of the nodes are seconds apart, and nobody knows. */
static void test_clocks_apart(void **state)
{
	struct job_spec s = job_of(24, 1, 1);

	assert_quiet(look(&s, skew));
	s.fault = JOB_SLOW;
	s.amount = 0.3;
	s.faulty[0] = 20;
	s.faulty_count = 1;
	assert_named(&s, look(&s, skew));
}

static void set_clock(struct job_trace *t, const struct job_spec *s)
{
	for (size_t i = 0; i < t->call_count; i++) {
		if (t->calls[i].worker != 4 || t->calls[i].c.enter_ns < (int64_t)t->span_ns / 2)
			continue;
		t->calls[i].c.enter_ns += 60 * MS;
		t->calls[i].c.leave_ns += 60 * MS;
	}
}

/* One clock is set in the middle. */
static void test_clock_is_set(void **state)
{
	struct job_spec s = job_of(8, 1, 1);

	assert_quiet(look(&s, set_clock));
	s.fault = JOB_SLOW;
	s.amount = 0.4;
	s.faulty[0] = 1;
	s.faulty_count = 1;
	assert_named(&s, look(&s, set_clock));
}

/* A step that is longer for everybody, now and then: evaluation. */
static void test_evaluation(void **state)
{
	struct job_spec s = job_of(8, 1, 1);

	s.evaluate_every = 20;
	assert_quiet(look(&s, NULL));
	s.fault = JOB_LATE;
	s.late_ns = 150 * MS;
	s.period = 7;
	s.faulty[0] = 5;
	s.faulty_count = 1;
	assert_named(&s, look(&s, NULL));
}

/* A pipeline of two stages whose tensor collectives come twice in a step: which stage is the first is still
 * told by the collectives at the end of steps. */
static void test_direction_of_two_stages(void **state)
{
	struct job_spec s = job_of(2, 2, 2);
	struct blame b;

	s.microbatches = 2;
	s.clips = false;
	b = look(&s, NULL);
	assert_int_equal(b.stages, 2);
	for (uint32_t w = 0; w < 8; w++)
		assert_int_equal(b.stage_of[w], w / 4);
	assert_quiet(b);
}

/* A job that has just begun has hardly ended a step: nothing is said of the pieces of it. */
static void test_young_job(void **state)
{
	struct job_spec s = job_of(4, 4, 1);
	struct blame b;

	s.microbatches = 4;
	s.steps = 3;
	s.fault = JOB_SLOW;
	s.amount = 0.5;
	s.faulty_count = 1;
	b = look(&s, NULL);
	assert_int_equal(b.steps, 0);
	assert_quiet(b);
	s.steps = 12;
	assert_named(&s, look(&s, NULL));
}

/* It has happened once, in the last step, by far more than chance. */
static void test_sudden(void **state)
{
	struct job_spec s = job_of(16, 1, 1);
	struct blame b;

	s.steps = 40;
	s.jitter = 0.005;
	s.fault = JOB_LATE;
	s.late_ns = 150 * MS;
	s.period = 1;
	s.from_step = 39;
	s.faulty[0] = 9;
	s.faulty_count = 1;
	b = look(&s, NULL);
	assert_true(b.has_sudden);
	assert_int_equal(b.sudden.worker, 9);
	assert_in_range(b.sudden.lag_ns, 140 * MS, 160 * MS);
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
	s.from_step = 20; /* and for so long that it is no news */
	assert_named(&s, look(&s, NULL));
}

/* The load moves by half of a step: the slowest of the last step is nobody's news. */
static void test_pauses_in_turn(void **state)
{
	struct job_spec s = job_of(8, 1, 1);
	struct blame b;

	s.fault = JOB_MOVING;
	s.amount = 0.5;
	b = look(&s, NULL);
	assert_false(b.has_sudden);
	assert_int_equal(b.suspect_count, 0);
	assert_true(b.uneven_share >= 0.1);
	blame_done(&b);
	s.step_ns = 4 * MS; /* so far apart are ranks by their hosts and sockets alone */
	b = look(&s, NULL);
	assert_int_equal(b.uneven_ns, 0);
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
}

/* In fifty computations one takes up to twice as long: of many ranks some one is late by far again and again, by chance. Of
 * 300 such jobs somebody was named in these. */
static void test_of_many_some_one_is_late(void **state)
{
	static const struct {
		uint64_t seed;
		uint32_t ranks, steps;
		double tail;
	} jobs[] = {{82, 30, 40, 0.02}, {125, 30, 40, 0.02}, {108, 48, 90, 0.01}};

	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		struct job_spec s = job_of(jobs[i].ranks, 1, 1);
		struct blame b;

		s.seed = jobs[i].seed;
		s.steps = jobs[i].steps;
		s.tail = jobs[i].tail;
		s.first_extra = s.last_extra = 0;
		s.traits = 1U << JOB_TRAIT_SNAPSHOT;
		s.aside_every = 20;
		s.aside = 2;
		b = look(&s, NULL);
		assert_int_equal(b.suspect_count, 0);
		blame_done(&b);
		s.fault = JOB_LATE; /* positive control */
		s.late_ns = 150 * MS;
		s.period = 3;
		s.faulty[0] = 9;
		s.faulty_count = 1;
		assert_named(&s, look(&s, NULL));
	}
}

/* What load that moves is said to cost is what steps would be shorter by without it, also where few replicas share it: the
 * heaviest of three is ahead of the middle by far in some steps and by little in others. */
static void test_moving_costs_what_it_costs(void **state)
{
	struct job_spec s = job_of(3, 4, 1);
	struct job_trace with = {0}, without = {0};
	struct blame b;
	double cost;

	s.fault = JOB_MOVING;
	s.amount = 0.29;
	assert_int_equal(job_run(&s, &with), 0);
	b = look(&s, NULL);
	s.fault = JOB_NONE;
	assert_int_equal(job_run(&s, &without), 0);
	cost = 1 - (double)without.span_ns / (double)with.span_ns;
	print_message("# costs %.3f, said %.3f\n", cost, b.uneven_share);
	assert_true(b.uneven_share >= 0.8 * cost && b.uneven_share <= 1.2 * cost);
	job_trace_done(&with);
	job_trace_done(&without);
	blame_done(&b);
}

/* Nothing ties the nodes' clocks, which may be off by 5 ms each: those of one node are one clock all the same. */
static const char *const eight_nodes[] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static void put_on_nodes(struct job_trace *t, const struct job_spec *s)
{
	for (size_t i = 0; i < t->worker_count; i++) {
		t->workers[i].node = eight_nodes[i / s->tensor];
		t->workers[i].error_ns = 5 * MS;
	}
}

static void put_across_nodes(struct job_trace *t, const struct job_spec *s)
{
	for (size_t i = 0; i < t->worker_count; i++) {
		t->workers[i].node = eight_nodes[i % s->tensor];
		t->workers[i].error_ns = 5 * MS;
	}
}

static void test_one_node_is_one_clock(void **state)
{
	struct job_spec s = job_of(4, 8, 1);
	struct blame b;

	s.waits_unknown = true;
	s.microbatches = 3;
	s.fault = JOB_SLOW;
	s.amount = 0.16;
	s.faulty[0] = 20;
	s.faulty_count = 1;
	assert_named(&s, look(&s, put_on_nodes));
	b = look(&s, put_across_nodes); /* control: each wait is shorter than clocks are known */
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
}

/* The load begins to move late in what is kept: what it costs is of the time since then. For a few steps hosts are apart anyway. */
static void test_load_begins_to_move(void **state)
{
	struct job_spec s = job_of(8, 1, 1);
	struct blame b;

	s.steps = 160;
	s.fault = JOB_MOVING;
	s.amount = 0.3;
	s.from_step = 90;
	b = look(&s, NULL);
	assert_true(b.uneven_share < 0.1);
	assert_true(b.uneven_begun >= 0.1 && b.uneven_begun < 0.3);
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
	for (int control = 0; control < 2; control++) {
		s.fault = control ? JOB_NONE : JOB_MOVING;
		s.amount = 0.2;
		s.from_step = 135;
		b = look(&s, NULL);
		assert_true(b.uneven_begun == 0);
		blame_done(&b);
	}
}

/* Three of eight, each as slow as the others, or late in the same steps. */
static void test_three_of_eight(void **state)
{
	static const uint32_t who[] = {1, 4, 6};

	for (int late = 0; late < 2; late++) {
		struct job_spec s = job_of(8, 1, 1);

		s.fault = late ? JOB_LATE : JOB_SLOW;
		s.amount = 0.4;
		s.late_ns = 150 * MS;
		s.period = 3;
		memcpy(s.faulty, who, sizeof(who));
		s.faulty_count = 3;
		assert_named(&s, look(&s, NULL));
	}
}

/* Two experts get hardly any tokens: the others are as they are. */
static void test_empty_experts(void **state)
{
	struct job_spec s = job_of(8, 1, 1);

	s.experts = true;
	s.fault = JOB_SLOW;
	s.amount = -0.8;
	s.faulty[0] = 2;
	s.faulty[1] = 5;
	s.faulty_count = 2;
	assert_quiet(look(&s, NULL));
}

/* Two runs of a job, one after the other, in one trace: other communicators, perhaps fewer ranks; the second's
 * processes are the first's, but for the ranks from @restarted on. */
static struct blame look_at_both(
	const struct job_spec *first, const struct job_spec *second, uint32_t restarted)
{
	struct job_trace a, b;
	struct blame found;
	struct blame_worker *workers;
	struct blame_call *calls;
	size_t n;

	assert_int_equal(job_run(first, &a), 0);
	assert_int_equal(job_run(second, &b), 0);
	n = a.worker_count + b.worker_count;
	workers = calloc(n, sizeof(*workers));
	calls = calloc(a.call_count + b.call_count, sizeof(*calls));
	assert_non_null(workers);
	assert_non_null(calls);
	memcpy(workers, a.workers, a.worker_count * sizeof(*workers));
	memcpy(workers + a.worker_count, b.workers, b.worker_count * sizeof(*workers));
	memcpy(calls, a.calls, a.call_count * sizeof(*calls));
	for (size_t i = 0; i < b.call_count; i++) {
		struct blame_call *c = &calls[a.call_count + i];

		*c = b.calls[i];
		c->c.enter_ns += (int64_t)a.span_ns + 5000 * (int64_t)MS;
		c->c.leave_ns += (int64_t)a.span_ns + 5000 * (int64_t)MS;
		if (c->worker >= restarted)
			c->worker += (uint32_t)a.worker_count;
	}
	assert_int_equal(blame_find(workers, n, calls, a.call_count + b.call_count, &found), 0);
	for (size_t i = 0; i < found.suspect_count; i++)
		print_message("# kind %d: rank %u, %.1f %%, late %u of %u\n", found.kind,
			found.suspects[i].worker, 100 * found.suspects[i].share,
			found.suspects[i].late, found.suspects[i].seen);
	free(workers);
	free(calls);
	job_trace_done(&a);
	job_trace_done(&b);
	return found;
}

/* The world becomes smaller, or a rank is another process from then on: nobody is at fault; who is slow after it
 * is named. */
static void test_elastic(void **state)
{
	struct job_spec first = job_of(8, 1, 1), second = job_of(6, 1, 1);

	second.seed = 99;
	assert_quiet(look_at_both(&first, &second, UINT32_MAX));
	second.data = 8;
	assert_quiet(look_at_both(&first, &second, 7));
	second.data = 3; /* most are gone */
	assert_quiet(look_at_both(&first, &second, UINT32_MAX));
	second.data = 6;
	second.fault = JOB_SLOW;
	second.amount = 0.6;
	second.faulty[0] = 4;
	second.faulty_count = 1;
	assert_named(&second, look_at_both(&first, &second, UINT32_MAX));
}

static void slow_down_rank_0(struct job_trace *t, const struct job_spec *s)
{
	int64_t writes_until = (int64_t)s->step_ns * 8;

	/* it is 3 % of a step late while it writes, for 8 steps of 500 */
	for (size_t i = 0; i < t->call_count; i++)
		if (t->calls[i].worker == 0 && t->calls[i].c.enter_ns < writes_until)
			t->calls[i].c.enter_ns += (int64_t)s->step_ns * 3 / 100;
}

/* Rank 0 alone writes a checkpoint beside its steps: what that costs is not worth a word. */
static void test_checkpoint_beside(void **state)
{
	struct job_spec s = job_of(8, 2, 1);

	s.steps = 500;
	s.step_ns = 100 * MS;
	assert_quiet(look(&s, slow_down_rank_0));
}

/* Hosts run ahead, so that calls are in time: only what is sent tells whose GPU has more to do. */
static void test_hot_expert(void **state)
{
	struct job_spec s = job_of(6, 1, 1);
	struct blame b;

	s.experts = s.async = true;
	s.host_share = 0.15;
	s.routing = 0.08;
	b = look(&s, NULL);
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
	s.fault = JOB_EXPERT;
	s.amount = 1.0;
	s.faulty[0] = 2;
	s.faulty_count = 1;
	s.from_step = 30;
	b = look(&s, NULL);
	assert_true(b.suspect_count && b.suspects[0].received > 1.5 && b.suspects[0].on_time);
	assert_named(&s, b);
	s.traits = 1U << JOB_TRAIT_ALONE; /* beside rank 0, which is away every 30th step */
	s.aside_every = 30;
	s.aside = 6;
	b = look(&s, NULL);
	assert_int_equal(b.suspect_count, 2);
	for (size_t i = 0; i < b.suspect_count; i++)
		assert_int_equal(b.suspects[i].worker, b.suspects[i].on_time ? 2 : 0);
	blame_done(&b);
}

/* Of the calls of the first two ranks those with others have no communicator that anybody else is known to have. */
static void forget_others(struct job_trace *t, const struct job_spec *s)
{
	size_t n = 0;

	for (size_t i = 0; i < t->call_count; i++) {
		struct blame_call c = t->calls[i];

		if (c.worker > 1)
			continue;
		if (c.c.nranks > 2)
			c.c.comm = 1 + c.worker + 2 * i;
		t->calls[n++] = c;
	}
	t->call_count = n;
}

/* Most of what they wait is for somebody who is not known: few calls, and what is said of the others is not sure. */
static void test_waits_for_unknown(void **state)
{
	struct job_spec s = job_of(8, 2, 1);
	struct blame b;

	s.microbatches = 6; /* many calls of the two with each other */
	s.clips = false;
	s.fault = JOB_SLOW;
	s.amount = 0.8;
	s.faulty[0] = 5;
	s.faulty_count = 1;
	b = look(&s, NULL);
	assert_true(b.confidence > 0.8);
	blame_done(&b);
	b = look(&s, forget_others);
	assert_true(b.unmatched * 10 < b.calls);
	assert_true(b.steps > 20);
	print_message("# confidence %.2f\n", b.confidence);
	assert_true(b.confidence < 0.5);
	blame_done(&b);
}

#define TURN_STEP 30 /* from about here on it is another job */

/* From then on a worker's Recvs are so many times as large, and all takes longer. */
static void turn(
	struct job_trace *t, const struct job_spec *s, uint32_t worker, double sent, double longer)
{
	int64_t at = (int64_t)(t->span_ns / s->steps * TURN_STEP);

	for (size_t i = 0; i < t->call_count; i++) {
		struct push_call *c = &t->calls[i].c;

		if (c->enter_ns >= at && t->calls[i].worker == worker && c->op == NCCL_RECV)
			c->bytes = (uint64_t)((double)c->bytes * sent);
		if (c->enter_ns >= at)
			c->enter_ns = at + (int64_t)(longer * (double)(c->enter_ns - at));
		if (c->leave_ns >= at)
			c->leave_ns = at + (int64_t)(longer * (double)(c->leave_ns - at));
	}
}

static void send_more(struct job_trace *t, const struct job_spec *s)
{
	turn(t, s, 2, 2, 1.4);
}

static void send_a_little_more(struct job_trace *t, const struct job_spec *s)
{
	turn(t, s, 2, 1.25, 2);
}

static void send_the_other_less(struct job_trace *t, const struct job_spec *s)
{
	turn(t, s, 1, 0.5, 1.4);
}

static void send_for_the_first_time(struct job_trace *t, const struct job_spec *s)
{
	int64_t at = (int64_t)(t->span_ns / s->steps * TURN_STEP);

	for (size_t i = 0; i < t->call_count; i++)
		if (t->calls[i].worker == 2 && t->calls[i].c.op == NCCL_RECV &&
			t->calls[i].c.enter_ns < at)
			t->calls[i].c.bytes = 0;
	turn(t, s, 2, 1, 1.4);
}

/* Steps are longer, but not for what the rank is sent: it grows by far less, it does not grow while its only peer is sent
 * less, or it was nothing before. */
static void test_sent_more_for_nothing(void **state)
{
	struct job_spec s = job_of(6, 1, 1);
	struct blame b;

	s.experts = s.async = true;
	s.host_share = 0.15;
	b = look(&s, send_more); /* the control */
	assert_true(b.suspect_count == 1 && b.suspects[0].worker == 2 && b.suspects[0].on_time);
	assert_true(b.suspects[0].received > 1.9 && b.suspects[0].received < 2.1);
	blame_done(&b);
	assert_quiet(look(&s, send_a_little_more));
	assert_quiet(look(&s, send_for_the_first_time));
	s.data = 2;
	assert_quiet(look(&s, send_the_other_less));
}

/* Another finding stands: a slow stage, and load that moves. */
static void test_sent_more_beside(void **state)
{
	struct job_spec stage = job_of(4, 1, 4), moves = job_of(8, 1, 1);
	struct blame b;

	stage.fault = JOB_STAGE;
	stage.stage = 2;
	stage.amount = 0.5;
	stage.from_step = TURN_STEP;
	b = look(&stage, send_more);
	assert_int_equal(b.kind, BLAME_STAGE);
	blame_done(&b);
	moves.experts = true;
	moves.fault = JOB_MOVING;
	moves.amount = 0.5;
	b = look(&moves, send_more);
	assert_int_equal(b.kind, BLAME_UNEVEN);
	assert_int_equal(b.suspect_count, 0);
	blame_done(&b);
}

/* In the last step all are busy with something else, each in its own time; or one alone is. */
static void test_snapshot(void **state)
{
	struct job_spec s = job_of(4, 1, 1);
	struct blame b;

	s.aside_every = s.steps - 1;
	s.aside = 2;
	s.traits = 1U << JOB_TRAIT_SNAPSHOT;
	b = look(&s, NULL);
	assert_false(b.has_sudden);
	blame_done(&b);
	s.traits = 1U << JOB_TRAIT_ALONE;
	b = look(&s, NULL);
	assert_true(b.has_sudden && b.sudden.worker == 0);
	blame_done(&b);
}

/* What one step does not tell from chance, several in a row do. */
static void test_late_in_a_row(void **state)
{
	struct job_spec s = job_of(8, 1, 1);
	struct blame b;

	s.fault = JOB_SLOW;
	s.amount = 0.2;
	s.jitter = 0.03;
	s.faulty[0] = 5;
	s.faulty_count = 1;
	s.from_step = s.steps - 1;
	b = look(&s, NULL);
	assert_false(b.has_sudden);
	blame_done(&b);
	s.from_step = s.steps - 5;
	b = look(&s, NULL);
	assert_true(b.has_sudden && b.sudden.worker == 5);
	blame_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checkpoint_of_one),
		cmocka_unit_test(test_checkpoint_of_all),
		cmocka_unit_test(test_gradient_accumulation),
		cmocka_unit_test(test_uneven_stages),
		cmocka_unit_test(test_experts_that_move),
		cmocka_unit_test(test_two_stragglers),
		cmocka_unit_test(test_slow_node),
		cmocka_unit_test(test_late_in_one_group),
		cmocka_unit_test(test_joins_late),
		cmocka_unit_test(test_lost_calls),
		cmocka_unit_test(test_clocks_apart),
		cmocka_unit_test(test_clock_is_set),
		cmocka_unit_test(test_evaluation),
		cmocka_unit_test(test_direction_of_two_stages),
		cmocka_unit_test(test_young_job),
		cmocka_unit_test(test_sudden),
		cmocka_unit_test(test_pauses_in_turn),
		cmocka_unit_test(test_load_begins_to_move),
		cmocka_unit_test(test_of_many_some_one_is_late),
		cmocka_unit_test(test_moving_costs_what_it_costs),
		cmocka_unit_test(test_one_node_is_one_clock),
		cmocka_unit_test(test_three_of_eight),
		cmocka_unit_test(test_empty_experts),
		cmocka_unit_test(test_elastic),
		cmocka_unit_test(test_checkpoint_beside),
		cmocka_unit_test(test_hot_expert),
		cmocka_unit_test(test_waits_for_unknown),
		cmocka_unit_test(test_sent_more_for_nothing),
		cmocka_unit_test(test_sent_more_beside),
		cmocka_unit_test(test_snapshot),
		cmocka_unit_test(test_late_in_a_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
