/* SPDX-License-Identifier: Apache-2.0 */
/* test_joins.c - ranks whose agents came late, in the cluster: their calls are brought together as they come. */
#include "calls_fixture.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_ranks_are_matched),
		cmocka_unit_test(one_among_those_who_were_there),
		cmocka_unit_test(a_tracer_that_begins_anew),
		cmocka_unit_test(a_rank_without_partners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
