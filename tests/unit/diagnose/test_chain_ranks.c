/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_ranks.c - a rank that waits for ranks of another node, of which there is no recording, says so. */
#include "chain_fixture.h"

struct ranks {
	struct chain_scene *s;
	struct collective_row rows[2 * CHAIN_STEPS];
};

/* In each step @pid waits behind an all-reduce of four ranks, in slow ones for 50 ms longer. */
static void add_rank(struct ranks *r, uint32_t pid, int rank, uint64_t longer_ms)
{
	for (int i = 0; i < CHAIN_STEPS; i++)
		r->rows[r->s->rec.collective_count++] = (struct collective_row){
			.start.ns = chain_at(i),
			.dur_ns = NS_PER_MS,
			.pid = pid,
			.op = NCCL_ALL_REDUCE,
			.c = {.comm_hash = 0xabc,
				.seq = (uint64_t)i + 1,
				.rank = rank,
				.nranks = 4,
				.wait_ns = (int64_t)((10 + (i < CHAIN_SLOW ? 0 : longer_ms)) *
						     NS_PER_MS)}};
}

static struct ranks *ranks_new(enum delay_kind kind, bool slow)
{
	struct ranks *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->s = chain_scene_new(kind, slow);
	r->s->rec.collectives = r->rows;
	add_rank(r, CHAIN_JOB, 0, 50);
	return r;
}

static void ranks_free(struct ranks *r)
{
	free(r->s);
	free(r);
}

static void test_ranks_of_another_node(void **state)
{
	struct ranks *r = ranks_new(DELAY_BY_GPU, true);

	assert_int_equal(chain_end(r->s)->resource, RESOURCE_RANKS);
	assert_string_equal(r->s->delay.end.who, "ncclAllReduce");
	assert_string_equal(r->s->delay.end.detail,
		"communicator 0000000000000abc, 1 of whose 4 ranks is recorded here");
	assert_true(r->s->delay.end.share > 0.9);
	add_rank(r, CHAIN_JOB + 1, 1, 50);
	assert_int_equal(chain_end(r->s)->resource, RESOURCE_RANKS);
	assert_non_null(strstr(r->s->delay.end.detail, "2 of whose 4 ranks are recorded here"));
	ranks_free(r);
}

/* One that is here comes later than this one: it is to be named, not those elsewhere. */
static void test_a_rank_that_is_here(void **state)
{
	struct ranks *r = ranks_new(DELAY_BY_GPU, true);

	add_rank(r, CHAIN_JOB + 1, 1, 0);
	assert_int_equal(chain_end(r->s)->resource, RESOURCE_NONE);
	ranks_free(r);
}

static void test_all_are_here(void **state)
{
	struct ranks *r = ranks_new(DELAY_BY_GPU, true);

	for (size_t i = 0; i < r->s->rec.collective_count; i++)
		r->rows[i].c.nranks = 1;
	assert_int_equal(chain_end(r->s)->resource, RESOURCE_NONE);
	ranks_free(r);
}

/* It waits as long as ever there: its GPU takes longer before. */
static void test_no_longer_than_before(void **state)
{
	struct ranks *r = ranks_new(DELAY_BY_GPU, true);

	for (size_t i = 0; i < r->s->rec.collective_count; i++)
		r->rows[i].c.wait_ns = 10 * (int64_t)NS_PER_MS;
	assert_int_equal(chain_end(r->s)->resource, RESOURCE_NONE);
	ranks_free(r);
}

/* What its own GPU has more to do is the reason. */
static void test_more_work(void **state)
{
	struct ranks *r = ranks_new(DELAY_BY_GPU, true);

	r->s->account.ordinary_launches = 100;
	r->s->account.slow_launches = 200;
	assert_int_equal(chain_end(r->s)->resource, RESOURCE_NONE);
	ranks_free(r);
}

static void test_none_is_slow(void **state)
{
	struct ranks *r = ranks_new(DELAY_BY_GPU, false);

	assert_int_equal(chain_end(r->s)->resource, RESOURCE_NONE);
	ranks_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks_of_another_node),
		cmocka_unit_test(test_a_rank_that_is_here),
		cmocka_unit_test(test_all_are_here),
		cmocka_unit_test(test_no_longer_than_before),
		cmocka_unit_test(test_more_work),
		cmocka_unit_test(test_none_is_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
