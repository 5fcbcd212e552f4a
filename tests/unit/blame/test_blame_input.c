/* SPDX-License-Identifier: Apache-2.0 */
/* test_blame_input.c - what recordings and pushes are like when things go wrong around them: half of the ranks are not
 * traced, a node's tracer was started again, ranks were renumbered, communicators come and go, two jobs have the same ranks.
 * Who is late is named in all of them; nobody in a healthy job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "base/macros.h"
#include "blame/comm_join.h"
#include "blame/blame.h"
#include "cluster/simulate/job.h"
#include "wire/ids.h"

#define MS    1000000
#define RANKS 8
#define LATE  5

static struct job_spec plain(bool is_faulty, uint64_t seed)
{
	struct job_spec s = {.seed = seed,
		.data = RANKS,
		.tensor = 1,
		.pipeline = 1,
		.microbatches = 1,
		.buckets = 3,
		.steps = 90,
		.step_ns = 300 * MS,
		.jitter = 0.02};

	if (is_faulty) {
		s.fault = JOB_SLOW;
		s.amount = 0.5;
		s.faulty[0] = LATE;
		s.faulty_count = 1;
	}
	return s;
}

typedef void changes(struct job_trace *t);

static size_t look(changes *change, bool is_faulty, int32_t *ret_rank)
{
	struct job_spec s = plain(is_faulty, 11);
	struct job_trace t;
	struct blame b;
	size_t n;

	assert_int_equal(job_run(&s, &t), 0);
	change(&t);
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, t.call_count, &b), 0);
	n = b.suspect_count;
	*ret_rank = n ? t.workers[b.suspects[0].worker].rank : -1;
	job_trace_done(&t);
	blame_done(&b);
	return n;
}

static void assert_found(changes *change)
{
	int32_t rank;

	assert_int_equal(look(change, true, &rank), 1);
	assert_int_equal(rank, LATE);
	assert_int_equal(look(change, false, &rank), 0);
}

static void drop(struct job_trace *t, bool (*is_gone)(const struct blame_call *c))
{
	size_t n = 0;

	for (size_t i = 0; i < t->call_count; i++)
		if (!is_gone(&t->calls[i]))
			t->calls[n++] = t->calls[i];
	t->call_count = n;
}

static bool is_untraced(const struct blame_call *c)
{
	return c->worker % 2 == 0;
}

/* Nobody has heard of the others. */
static void untrace_half(struct job_trace *t)
{
	drop(t, is_untraced);
	for (size_t i = 0; i < t->call_count; i++)
		t->calls[i].worker /= 2;
	for (uint32_t w = 1; w < RANKS; w += 2)
		t->workers[w / 2] = t->workers[w];
	t->worker_count = RANKS / 2;
}

static void test_half_untraced(void **state)
{
	assert_found(untrace_half);
}

static double sureness_of_half(bool is_made_up)
{
	struct job_spec s = plain(true, 11);
	struct job_trace t;
	struct blame b;
	double sure;

	assert_int_equal(job_run(&s, &t), 0);
	untrace_half(&t);
	for (size_t i = 0; is_made_up && i < t.call_count; i++)
		t.calls[i].c.seq += COMM_JOIN_MADE_UP;
	assert_int_equal(blame_find(t.workers, t.worker_count, t.calls, t.call_count, &b), 0);
	sure = b.confidence;
	job_trace_done(&t);
	blame_done(&b);
	return sure;
}

/* Where calls were brought together by when they ended, ranks that are missing may have been brought together elsewhere. */
static void test_half_joined(void **state)
{
	assert_true(sureness_of_half(false) > 0.4);
	assert_true(sureness_of_half(true) < 0.6 * sureness_of_half(false));
}

static bool is_between_tracers(const struct blame_call *c)
{
	return c->worker >= 4 && c->c.enter_ns > INT64_C(9000) * MS &&
	       c->c.enter_ns < INT64_C(12000) * MS;
}

static void restart_tracer(struct job_trace *t)
{
	drop(t, is_between_tracers);
}

static void test_tracer_restarted(void **state)
{
	assert_found(restart_tracer);
}

/* From the middle on there is another communicator, in which ranks have other numbers. */
static void renumber(struct job_trace *t)
{
	for (size_t i = 0; i < t->call_count; i++) {
		struct push_call *c = &t->calls[i].c;

		if (c->enter_ns < (int64_t)t->span_ns / 2)
			continue;
		c->rank = (c->rank + 3) % RANKS;
		c->comm = ~c->comm;
	}
}

static void test_ranks_renumbered(void **state)
{
	assert_found(renumber);
}

/* A communicator for every 16 collectives. */
static void split(struct job_trace *t)
{
	for (size_t i = 0; i < t->call_count; i++)
		t->calls[i].c.comm += t->calls[i].c.seq / 16;
}

static void test_communicators_come_and_go(void **state)
{
	assert_found(split);
}

/* Two jobs of the same ranks side by side, of which one has a late rank. */
static void test_two_jobs(void **state)
{
	struct job_spec s = plain(true, 11), other = plain(false, 12);
	struct blame_worker workers[2 * RANKS];
	struct job_trace a, b;
	struct blame_call *calls;
	struct blame found;

	assert_int_equal(job_run(&s, &a), 0);
	assert_int_equal(job_run(&other, &b), 0);
	calls = calloc(a.call_count + b.call_count, sizeof(*calls));
	assert_non_null(calls);
	for (uint32_t w = 0; w < RANKS; w++) {
		workers[w] = a.workers[w];
		workers[RANKS + w] = b.workers[w];
	}
	for (size_t i = 0; i < a.call_count; i++)
		calls[i] = a.calls[i];
	for (size_t i = 0; i < b.call_count; i++) {
		struct blame_call *c = &calls[a.call_count + i];

		*c = b.calls[i];
		c->worker += RANKS;
		c->c.comm = ~c->c.comm;
	}
	assert_int_equal(
		blame_find(workers, 2 * RANKS, calls, a.call_count + b.call_count, &found), 0);
	assert_true(found.suspect_count > 0);
	for (size_t i = 0; i < found.suspect_count; i++)
		assert_int_equal(found.suspects[i].worker, LATE);
	blame_done(&found);
	free(calls);
	job_trace_done(&a);
	job_trace_done(&b);
}

/* Who is with whom: collectives by number, a Send with its Recv by order where the numbers are the ranks' own, also those
 * that nobody else made. */
static void test_who_meets_whom(void **state)
{
	const struct blame_worker workers[3] = {{.rank = 0}, {.rank = 1}, {.rank = 2}};
	const struct blame_call calls[] = {{.worker = 0,
						   .c = {.comm = 5,
							   .seq = 9,
							   .rank = 0,
							   .nranks = 3,
							   .enter_ns = 10,
							   .op = NCCL_ALL_REDUCE}},
		{.worker = 2,
			.c = {.comm = 5,
				.seq = 9,
				.rank = 2,
				.nranks = 3,
				.enter_ns = 30,
				.op = NCCL_ALL_REDUCE}},
		{.worker = 1,
			.c = {.comm = 5,
				.seq = 9,
				.rank = 1,
				.nranks = 3,
				.enter_ns = 20,
				.op = NCCL_ALL_REDUCE}},
		{.worker = 1,
			.c = {.comm = 5,
				.seq = 7,
				.rank = 1,
				.nranks = 3,
				.enter_ns = 5,
				.op = NCCL_ALL_REDUCE}},
		{.worker = 0,
			.c = {.comm = 6,
				.seq = -UINT64_C(1),
				.rank = 0,
				.nranks = 2,
				.peer = 1,
				.enter_ns = 40,
				.leave_ns = 41,
				.op = NCCL_SEND}},
		{.worker = 1,
			.c = {.comm = 6,
				.seq = -UINT64_C(4),
				.rank = 1,
				.nranks = 2,
				.peer = 0,
				.enter_ns = 35,
				.leave_ns = 50,
				.op = NCCL_RECV}},
		{.worker = 9, .c = {.comm = 5, .seq = 9, .op = NCCL_ALL_REDUCE}}, /* of nobody */
		{.worker = 2, .c = {.comm = 0, .seq = 9, .op = NCCL_ALL_REDUCE}}};
	struct blame_meetings m;

	assert_int_equal(blame_meet(workers, 3, calls, ARRAY_SIZE(calls), &m), 0);
	assert_int_equal(m.count, 3);
	assert_int_equal(m.first[1] - m.first[0], 1); /* number 7 */
	assert_int_equal(m.calls[m.first[0]], 3);
	assert_int_equal(m.first[2] - m.first[1], 3);
	for (uint32_t i = 0; i < 3; i++) /* by worker */
		assert_int_equal(calls[m.calls[m.first[1] + i]].worker, i);
	assert_int_equal(m.first[3] - m.first[2], 2);
	assert_int_equal(m.calls[m.first[2]] + m.calls[m.first[2] + 1], 4 + 5);
	blame_meetings_done(&m);
	assert_int_equal(blame_meet(workers, 0, calls, ARRAY_SIZE(calls), &m), 0);
	assert_int_equal(m.count, 0);
	blame_meetings_done(&m);
}

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What looking takes at two ranks that meet, beside @alone communicators in which one of them is alone, with numbers far
 * apart. */
static double look_beside(size_t alone)
{
	enum { MET = 200, EACH = 4 };
	const struct blame_worker workers[2] = {{.rank = 0, .node = "a"}, {.rank = 1, .node = "b"}};
	size_t n = 0;
	struct blame_call *calls = calloc(2 * MET + EACH * alone, sizeof(*calls));
	struct blame b;
	double took;

	assert_non_null(calls);
	for (size_t i = 0; i < 2 * MET + EACH * alone; i++) {
		bool meets = i < 2 * MET;
		size_t k = i - 2 * MET;
		int64_t at = meets ? (int64_t)(i / 2) * 10 * MS : (int64_t)(k % 2000) * MS;

		calls[n++] = (struct blame_call){.worker = meets ? i % 2 : 0,
			.c = {.comm = meets ? 7 : 1000 + k / EACH,
				.seq = meets ? i / 2 : k % EACH * 16000,
				.bytes = 4096,
				.enter_ns = at,
				.leave_ns = at + MS / 2,
				.wait_ns = MS / 4,
				.rank = meets ? (int32_t)(i % 2) : 0,
				.nranks = meets ? 2 : 8,
				.peer = -1,
				.op = NCCL_ALL_REDUCE}};
	}
	took = cpu_s();
	assert_int_equal(blame_find(workers, 2, calls, n, &b), 0);
	took = cpu_s() - took;
	blame_done(&b);
	free(calls);
	return took;
}

/* Anybody may send many communicators that nobody else is in: eight times as many are eight times the work, not 64 times. */
static void test_many_alone(void **state)
{
	double few = look_beside(4000), many = look_beside(32000);

	print_message("# %.3f and %.3f s of CPU\n", few, many);
	assert_true(many < 32 * few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_half_untraced),
		cmocka_unit_test(test_half_joined),
		cmocka_unit_test(test_tracer_restarted),
		cmocka_unit_test(test_ranks_renumbered),
		cmocka_unit_test(test_communicators_come_and_go),
		cmocka_unit_test(test_two_jobs),
		cmocka_unit_test(test_who_meets_whom),
		cmocka_unit_test(test_many_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
