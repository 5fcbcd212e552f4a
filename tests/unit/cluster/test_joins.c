/* SPDX-License-Identifier: Apache-2.0 */
/* test_joins.c - ranks whose agents came late, in the cluster: their calls are brought together as they come. */
#include "calls_fixture.h"

#include <time.h>

#include "base/clock.h"
#include "base/hash.h"

#define STEPS 200

struct late {
	int first[8];  /* the rank's tracer comes with this step, */
	int again[8];  /* and another one with this; 0: none */
	bool early[8]; /* it was there before the job */
	bool is_named;
};

/* As the tracer of its rank knows the call of step @step; false: it was not there. */
static bool see(const struct late *l, int step, struct push_call *c)
{
	int first = l->again[c->rank] && step >= l->again[c->rank] ? l->again[c->rank]
								   : l->first[c->rank];

	if (l->early[c->rank])
		return true;
	if (step < first)
		return false;
	c->comm = l->is_named ? COMM : 0;
	c->seq = -(uint64_t)(step - first + 1);
	return true;
}

/* Steps of 100 ms, more or less; rank 2 comes 30 ms late. Pushed every 5 steps. */
static struct calls *play(const struct late *l, int ranks)
{
	struct calls *c = calls_made();
	struct calls_taken n;
	struct job j;

	job_init(&j, ranks, 1);
	job_skew(&j, 5 * MS);
	j.seq = 1;
	for (int i = 0; i < STEPS; i++) {
		size_t begin = j.count, kept = begin;

		job_step(&j, (80 + (int64_t)(job_random(&j) % 40)) * MS, 2, 30 * MS);
		for (size_t k = begin; k < j.count; k++)
			if (see(l, i, &j.items[k].call))
				j.items[kept++] = j.items[k];
		j.count = kept;
		if (i % 5)
			continue;
		n = job_push(&j, c);
		assert_int_equal(n.refused, 0);
		calls_tick(c, j.now_ns + 2 * MS);
	}
	job_push(&j, c);
	calls_tick(c, j.now_ns + 2 * SECOND);
	job_done(&j);
	return c;
}

static size_t matched(const struct calls *c)
{
	struct comm_view v;
	size_t cursor = 0, n = 0;

	while (calls_comm_next(c, &cursor, &v))
		n += v.matched;
	return n;
}

static void late_ranks_are_matched(void **state)
{
	for (int named = 0; named < 2; named++) {
		const struct late l = {.first = {0, 3, 79, 12}, .is_named = named};
		struct calls *c = play(&l, 4);
		struct worker_view w;

		assert_int_equal(calls_stats(c).held, 0);
		assert_int_equal(calls_stats(c).given_up, 0);
		assert_true(matched(c) == STEPS - 79);
		assert_true(worker_of_rank(c, 2, &w));
		assert_true(w.last_count >= STEPS - 79);
		calls_free(c);
	}
}

static void one_among_those_who_were_there(void **state)
{
	const struct late l = {
		.first = {0, 0, 0, 50}, .early = {true, true, true}, .is_named = true};
	struct calls *c = play(&l, 4);

	assert_int_equal(calls_stats(c).held, 0);
	assert_int_equal(matched(c), STEPS - 50);
	calls_free(c);
}

static void a_tracer_that_begins_anew(void **state)
{
	const struct late l = {.again = {0, 90}, .is_named = true};
	struct calls *c = play(&l, 4);

	assert_int_equal(calls_stats(c).held, 0);
	assert_int_equal(matched(c), STEPS);
	calls_free(c);
}

/* What cannot be brought together is kept in sight, given up in time, and never refused or forgotten silently. */
static void a_rank_without_partners(void **state)
{
	const struct late l = {.first = {0, STEPS, STEPS, STEPS}};
	struct calls *c = play(&l, 4);

	assert_int_equal(matched(c), 0);
	assert_int_equal(calls_stats(c).held + calls_stats(c).given_up, STEPS);
	calls_free(c);
}

static uint64_t thread_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Who makes up ranks that nobody can bring together keeps the service from nobody for long: each pair of streams takes
 * some ten milliseconds, and there are thousands. */
static void streams_of_nobody_take_a_moment(void **state)
{
	enum { NODES = 60, CALLS = 1000 };
	static struct push_call items[CALLS];
	struct calls *c = calls_made();
	int64_t now_ns = 1700000000 * SECOND;
	struct calls_taken n;
	uint64_t begin_ns;

	(void)state;
	for (uint32_t i = 0; i < NODES; i++) {
		struct push_calls b = {
			.who = {.boot = 1, .rank = -1}, .batch = 1, .items = items, .count = CALLS};
		int64_t at_ns = now_ns - 20 * SECOND;

		snprintf(b.who.cluster, sizeof(b.who.cluster), "c");
		snprintf(b.who.node, sizeof(b.who.node), "n%u", i);
		for (uint32_t k = 0; k < CALLS; k++) {
			at_ns += (int64_t)(hash_number(i * CALLS + k) % (uint64_t)(6 * MS));
			items[k] = (struct push_call){.seq = -(uint64_t)(k + 1),
				.op = NCCL_ALL_REDUCE,
				.nranks = NODES,
				.rank = (int32_t)i,
				.world_rank = -1,
				.peer = -1,
				.pid = 7,
				.bytes = 4096,
				.enter_ns = at_ns,
				.leave_ns = at_ns + MS / 2,
				.wait_ns = MS / 2};
		}
		assert_int_equal(calls_take(c, &b, now_ns, &n), 0);
		assert_int_equal(n.taken, CALLS);
	}
	begin_ns = thread_ns();
	calls_tick(c, now_ns + 2 * SECOND);
	assert_in_range(thread_ns() - begin_ns, 0, 5 * NS_PER_S);
	assert_in_range(calls_stats(c).held, NODES * CALLS * 3 / 4, NODES * CALLS);
	calls_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_ranks_are_matched),
		cmocka_unit_test(one_among_those_who_were_there),
		cmocka_unit_test(a_tracer_that_begins_anew),
		cmocka_unit_test(a_rank_without_partners),
		cmocka_unit_test(streams_of_nobody_take_a_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
