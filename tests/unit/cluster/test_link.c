/* SPDX-License-Identifier: Apache-2.0 */
/* What blame says of links and collectives, as episodes: when one is told, which are one, and when it is over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/detect/fleet_private.h"

#define MS    UINT64_C(1000000)
#define START INT64_C(1700000000000000000)

struct rig {
	struct fleet *f;
	struct cluster c;
	struct suspect_job job;
	struct blame b;
	struct blame_worker workers[4];
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct fleet_settings s = fleet_defaults;

	assert_non_null(r);
	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	assert_int_equal(fleet_new(&s, &r->f), 0);
	r->f->now_ns = START;
	assert_int_equal(calls_new(&calls_defaults, &r->c.calls), 0);
	snprintf(r->c.name, sizeof(r->c.name), "c1");
	for (int i = 0; i < 4; i++)
		r->workers[i] = (struct blame_worker){
			.rank = i, .node = i < 2 ? "a" : "b", .pid = 100 + (uint32_t)i};
	r->job = (struct suspect_job){.comm = 7, .born_ns = START, .is_steady = true};
	r->b = (struct blame){
		.steps = 30, .span_ns = 10 * NS_PER_S, .step_ns = NS_PER_S / 3, .confidence = 0.9};
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	calls_free(r->c.calls);
	fleet_free(r->f);
	free(r);
	return 0;
}

/* A link of which each message takes @took_ms instead of 1. */
static struct blame_transfer link_of(uint32_t from, uint32_t to, uint64_t took_ms)
{
	return (struct blame_transfer){.comm = 7,
		.bytes = 1 << 20,
		.op = 5,
		.from = from,
		.to = to,
		.ranks = 2,
		.count = 60,
		.took_ns = took_ms * MS,
		.usual_ns = MS,
		.is_slow = took_ms > 1,
		.path_ns = 60 * took_ms * MS,
		.share = 0.06,
		.since_ns = START - 5 * (int64_t)NS_PER_S};
}

/* A look @after_ns later that finds these. */
static void look(struct rig *r, uint64_t after_ns, const struct blame_transfer *t, size_t count)
{
	r->f->now_ns += (int64_t)after_ns;
	link_end(r->f, &r->c);
	memcpy(r->b.transfers, t, count * sizeof(*t));
	r->b.transfer_count = count;
	link_look(r->f, &r->c, &r->job, &r->b, r->workers, 4);
}

/* Notices of a kind; the last of them in @ret. */
static size_t notices(struct rig *r, enum fleet_notice_kind kind, struct fleet_episode *ret)
{
	struct fleet_notice n;
	size_t count = 0;

	while (fleet_notice(r->f, &n)) {
		count += n.kind == kind;
		*ret = n.episode;
	}
	return count;
}

static void test_told_when_it_is_found_again(void **state)
{
	struct rig *r = *state;
	const struct blame_transfer t = link_of(1, 2, 11);
	struct fleet_episode e = {0};

	look(r, 0, &t, 1);
	look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 0); /* it may be chance */
	look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 1);
	assert_int_equal(e.problem, FLEET_LINK);
	assert_int_equal(e.from_rank, 1);
	assert_int_equal(e.to_rank, 2);
	assert_string_equal(e.from_node, "a");
	assert_string_equal(e.to_node, "b");
	assert_int_equal(e.took_ns, 11 * MS);
	assert_int_equal(e.usual_ns, MS);
	assert_int_equal(e.rank, -1); /* nobody is blamed */
	look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 0); /* once */
}

static void test_too_few_steps(void **state)
{
	struct rig *r = *state;
	const struct blame_transfer t = link_of(1, 2, 11);

	r->b.steps = 19;
	for (int i = 0; i < 10; i++)
		look(r, NS_PER_S, &t, 1);
	assert_int_equal(r->f->live_count, 0);
	r->b.steps = 20; /* the control */
	look(r, NS_PER_S, &t, 1);
	assert_int_equal(r->f->live_count, 1);
}

/* In the first steps of a job, parts of them look like steps. */
static void test_first_steps(void **state)
{
	struct rig *r = *state;
	const struct blame_transfer t = link_of(1, 2, 11);
	struct fleet_episode e = {0};

	r->job.is_steady = false;
	for (int i = 0; i < 10; i++)
		look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 0);
	r->job.is_steady = true; /* the control */
	look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 1);
}

static void test_ends_when_it_is_not_found(void **state)
{
	struct rig *r = *state;
	const struct blame_transfer slow = link_of(1, 2, 11), well = link_of(1, 2, 1);
	struct fleet_episode e = {0};

	for (int i = 0; i < 4; i++)
		look(r, NS_PER_S, &slow, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 1);
	for (int i = 0; i < 14; i++)
		look(r, NS_PER_S, &well, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_ENDED, &e), 0);
	look(r, 2 * NS_PER_S, &well, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_ENDED, &e), 1);
	assert_int_equal(e.from_rank, 1);
}

static void test_long_steps_last_longer(void **state)
{
	struct rig *r = *state;
	const struct blame_transfer slow = link_of(1, 2, 11), well = link_of(1, 2, 1);
	struct fleet_episode e = {0};

	calls_set_step(r->c.calls, 20 * NS_PER_S);
	for (int i = 0; i < 4; i++)
		look(r, NS_PER_S, &slow, 1);
	look(r, 200 * NS_PER_S, &well, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_ENDED, &e), 0);
	look(r, 60 * NS_PER_S, &well, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_ENDED, &e), 1);
}

/* The two directions of a link, and another size on the same one. */
static void test_which_are_one(void **state)
{
	struct rig *r = *state;
	struct blame_transfer t[] = {link_of(1, 2, 11), link_of(2, 1, 12), link_of(1, 2, 5)};
	struct fleet_episode e;
	size_t cursor = 0, count = 0;

	t[2].bytes = 4096;
	for (int i = 0; i < 4; i++)
		look(r, NS_PER_S, t, ARRAY_SIZE(t));
	while (fleet_episode_next(r->f, "c1", &cursor, &e)) {
		count++;
		assert_int_equal(e.took_ns, e.from_rank == 1 ? 11 * MS : 12 * MS);
	}
	assert_int_equal(count, 2);
}

static void test_collective(void **state)
{
	struct rig *r = *state;
	struct blame_transfer t = link_of(UINT32_MAX, UINT32_MAX, 20);
	struct fleet_episode e = {0};

	t.ranks = 4;
	for (int i = 0; i < 4; i++)
		look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 1);
	assert_int_equal(e.problem, FLEET_COLLECTIVE);
	assert_int_equal(e.from_rank, -1);
	assert_non_null(strstr(e.text, "all 4 ranks are on time"));
}

/* The past by which it is known leaves the window: it lasts as long as it takes longer than it did then. */
static void test_past_is_remembered(void **state)
{
	struct rig *r = *state;
	struct blame_transfer t = link_of(1, 2, 20), other = link_of(2, 3, 20);
	struct fleet_episode e = {0};

	t.by_past = other.by_past = true;
	for (int i = 0; i < 4; i++)
		look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_BEGAN, &e), 1);
	look(r, NS_PER_S, &other, 1); /* where all have become slower there is one cause */
	assert_int_equal(r->f->live_count, 1);
	t.is_slow = false; /* as slow as it was in the last minute */
	t.usual_ns = t.took_ns;
	for (int i = 0; i < 40; i++)
		look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_ENDED, &e), 0);
	t.took_ns = MS; /* as before: it is over */
	t.path_ns = 60 * MS;
	for (int i = 0; i < 20; i++)
		look(r, NS_PER_S, &t, 1);
	assert_int_equal(notices(r, FLEET_NOTICE_ENDED, &e), 1);
}

#define LINK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LINK_TEST(test_told_when_it_is_found_again),
		LINK_TEST(test_too_few_steps),
		LINK_TEST(test_first_steps),
		LINK_TEST(test_ends_when_it_is_not_found),
		LINK_TEST(test_long_steps_last_longer),
		LINK_TEST(test_which_are_one),
		LINK_TEST(test_collective),
		LINK_TEST(test_past_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
