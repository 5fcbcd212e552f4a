/* SPDX-License-Identifier: Apache-2.0 */
/* test_hangs.c - ranks that do not come are named, those that come end it. */
#include "calls_fixture.h"
#include "blame/comm_join.h"
#include "cluster/detect/calls_core.h"

static size_t hangs_of(const struct calls *c, struct hang_view *ret)
{
	struct hang_view h;
	size_t cursor = 0, n = 0;

	while (calls_hang_next(c, &cursor, &h))
		if (n++ == 0)
			*ret = h;
	return n;
}

static void begin(struct job *j, struct calls **ret, int ranks)
{
	*ret = calls_made();
	job_init(j, ranks, 2);
	job_skew(j, 20 * MS);
	for (int i = 0; i < 20; i++)
		job_step(j, 100 * MS, -1, 0);
	job_push(j, *ret);
	calls_tick(*ret, j->now_ns);
}

/* All but those in @missing (bits) come to the next collective and are told as being inside. */
static void wait_inside(struct job *j, struct calls *c, unsigned missing)
{
	j->now_ns += 100 * MS;
	for (int i = 0; i < j->ranks; i++)
		if (!(missing >> i & 1))
			job_add(j, job_node(j, i), job_call(j, i, j->now_ns, 0));
	job_push(j, c);
}

static void test_one_missing(void **state)
{
	struct worker_view w;
	struct hang_view h;
	struct calls *c;
	struct job j;
	int64_t since;

	begin(&j, &c, 8);
	wait_inside(&j, c, 1 << 5);
	since = j.now_ns;
	calls_tick(c, since + 2 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	calls_tick(c, since + 4 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	assert_int_equal(h.seq, 20);
	assert_int_equal(h.op, NCCL_ALL_REDUCE);
	assert_int_equal(h.nranks, 8);
	assert_int_equal(h.waiting, 7);
	assert_int_equal(h.missing, 1);
	assert_int_equal(h.missing_rank[0], 5);
	assert_true(worker_of_rank(c, 5, &w));
	assert_int_equal(h.first_missing[0], w.worker);
	assert_true(llabs(h.since_ns - since) < 5 * MS);
	/* longer than any window */
	calls_tick(c, since + 1000 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	assert_true(worker_of_rank(c, 5, &w));
	/* it comes: the hang is over, even before anybody has left */
	j.now_ns = since + 1000 * SECOND;
	job_add(&j, job_node(&j, 5), job_call(&j, 5, j.now_ns, 0));
	job_push(&j, c);
	calls_tick(c, j.now_ns + SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	/* and when all have left it is a collective like others, with a long lag */
	for (int i = 0; i < 8; i++)
		job_add(&j, job_node(&j, i),
			job_call(&j, i, i == 5 ? j.now_ns : since, j.now_ns + MS));
	assert_int_equal(job_push(&j, c).taken, 8);
	calls_tick(c, j.now_ns + SECOND);
	assert_true(worker_of_rank(c, 5, &w));
	assert_true(w.lag.max > 990 * (uint64_t)SECOND);
	job_done(&j);
	calls_free(c);
}

/* In a job of long steps, who is half a step late is no hang. */
static void test_long_steps(void **state)
{
	struct hang_view h;
	struct calls *c;
	struct job j;
	int64_t since;

	begin(&j, &c, 8);
	calls_set_step(c, 20 * SECOND);
	wait_inside(&j, c, 1 << 5);
	since = j.now_ns;
	calls_tick(c, since + 10 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	calls_tick(c, since + 31 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	job_done(&j);
	calls_free(c);
}

/* Nor, while it is not known how long steps are, who is as late as the job is old. */
static void test_first_steps(void **state)
{
	struct hang_view h;
	struct calls *c;
	struct job j;
	int64_t since;

	begin(&j, &c, 8);
	calls_set_patience(c, 15 * SECOND);
	wait_inside(&j, c, 1 << 5);
	since = j.now_ns;
	calls_tick(c, since + 14 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	calls_tick(c, since + 16 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	job_done(&j);
	calls_free(c);
}

/* A rank that no agent has ever told of is named by its number alone. */
static void test_never_seen(void **state)
{
	struct calls *c = calls_made();
	struct hang_view h;
	struct job j;

	job_init(&j, 16, 2);
	wait_inside(&j, c, 0xfff0);
	calls_tick(c, j.now_ns + 4 * SECOND);
	assert_int_equal(
		hangs_of(c, &h), 0); /* ranks that have not met yet may still load and connect */
	calls_tick(c, j.now_ns + 31 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	assert_int_equal(h.waiting, 4);
	assert_int_equal(h.missing, 12);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(h.first_missing[i], UINT32_MAX);
		assert_int_equal(h.missing_rank[i], 4 + i);
	}
	job_done(&j);
	calls_free(c);
}

/* Calls that were brought together by when they ended: one that goes on elsewhere has come to another that looks the same,
 * and who was never seen in them may be in another part of the same communicator. One that is silent is missing. */
static void test_made_up(void **state)
{
	struct push_call other;
	struct hang_view h;
	struct calls *c;
	struct job j;
	int64_t since;

	c = calls_made();
	job_init(&j, 8, 2);
	j.seq = COMM_JOIN_MADE_UP;
	for (int i = 0; i < 20; i++)
		job_step(&j, 100 * MS, -1, 0);
	job_push(&j, c);
	calls_tick(c, j.now_ns);
	wait_inside(&j, c, 1 << 5);
	since = j.now_ns;
	calls_tick(c, since + 4 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	assert_int_equal(h.missing_rank[0], 5);
	j.now_ns = since + 4 * SECOND;
	other = job_call(&j, 5, j.now_ns, j.now_ns + MS);
	other.comm++;
	job_add(&j, job_node(&j, 5), other);
	job_push(&j, c);
	calls_tick(c, since + 5 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	job_done(&j);
	calls_free(c);

	for (int made_up = 0; made_up < 2; made_up++) {
		c = calls_made();
		job_init(&j, 8, 2);
		j.seq = made_up ? COMM_JOIN_MADE_UP : 0;
		for (int i = 0; i < 20; i++) {
			wait_inside(&j, c, 1 << 5);
			j.seq++;
		}
		calls_tick(c, j.now_ns + 40 * SECOND);
		assert_int_equal(hangs_of(c, &h) > 0, !made_up);
		job_done(&j);
		calls_free(c);
	}
}

/* A rank that was in none of the last ones that the others have left was brought together with ranks of another communicator:
 * it is not known to be missing. By numbers of NCCL's it is. */
static void test_joined_wrongly(void **state)
{
	for (int made_up = 0; made_up < 2; made_up++) {
		struct calls *c = calls_made();
		struct hang_view h;
		struct job j;

		job_init(&j, 8, 2);
		j.seq = made_up ? COMM_JOIN_MADE_UP : 0;
		for (int i = 0; i < 20; i++)
			job_step(&j, 100 * MS, -1, 0);
		for (int i = 0; i < 3; i++) {
			j.now_ns += 100 * MS;
			for (int rank = 0; rank < 8; rank++)
				if (rank != 5)
					job_add(&j, job_node(&j, rank),
						job_call(&j, rank, j.now_ns, j.now_ns + MS));
			j.seq++;
		}
		wait_inside(&j, c, 1 << 5);
		calls_tick(c, j.now_ns + 4 * SECOND);
		assert_int_equal(hangs_of(c, &h) > 0, !made_up);
		job_done(&j);
		calls_free(c);
	}
}

/* A rank that is inside a call of a communicator that is not known may be inside this one; once it has left it is missing. */
static void test_inside_an_unknown_call(void **state)
{
	struct push_call unknown;
	struct hang_view h;
	struct calls *c;
	struct job j;

	begin(&j, &c, 8);
	wait_inside(&j, c, 1 << 5);
	unknown = job_call(&j, 5, j.now_ns, 0);
	unknown.comm = 0;
	unknown.seq = -((UINT64_C(1) << 40) | 7);
	job_add(&j, job_node(&j, 5), unknown);
	job_push(&j, c);
	calls_tick(c, j.now_ns + 4 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	unknown.leave_ns = unknown.enter_ns + SECOND;
	job_add(&j, job_node(&j, 5), unknown);
	job_push(&j, c);
	calls_tick(c, j.now_ns + 4 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	assert_int_equal(h.missing_rank[0], 5);
	job_done(&j);
	calls_free(c);
}

/* Likewise inside one that has no place, because it contradicts those of the others. */
static void test_inside_a_refused_call(void **state)
{
	for (int refused = 0; refused < 2; refused++) {
		struct calls *c;
		struct hang_view h;
		struct job j;

		begin(&j, &c, 8);
		for (int rank = 0; rank < 4; rank++) {
			struct push_call other = job_call(&j, rank, j.now_ns, j.now_ns + MS);

			other.comm++;
			other.nranks = 4;
			job_add(&j, job_node(&j, rank), other);
		}
		wait_inside(&j, c, 1 << 5);
		if (refused) {
			struct push_call other = job_call(&j, 5, j.now_ns, 0);

			other.comm++;
			job_add(&j, job_node(&j, 5), other);
			assert_int_equal(job_push(&j, c).refused, 1);
		}
		calls_tick(c, j.now_ns + 4 * SECOND);
		assert_int_equal(hangs_of(c, &h), !refused);
		job_done(&j);
		calls_free(c);
	}
}

/* The complete form may overtake the open one. */
static void test_overtaken(void **state)
{
	struct calls *c = calls_made();
	struct calls_taken n;
	struct hang_view h;
	struct job j;

	job_init(&j, 4, 2);
	for (int i = 0; i < 3; i++)
		job_add(&j, job_node(&j, i), job_call(&j, i, BEGIN_NS, BEGIN_NS + MS));
	for (int i = 0; i < 3; i++)
		job_add(&j, job_node(&j, i), job_call(&j, i, BEGIN_NS, 0));
	n = job_push(&j, c);
	assert_int_equal(n.taken, 3);
	assert_int_equal(n.duplicate, 3);
	calls_tick(c, j.now_ns + 10 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	job_done(&j);
	calls_free(c);
}

/* A call that an agent lost: the rank has been seen later on, so nobody waits for it. */
static void test_lost_call(void **state)
{
	struct hang_view h;
	struct calls *c;
	struct job j;

	begin(&j, &c, 4);
	wait_inside(&j, c, 1 << 2);
	calls_tick(c, j.now_ns + 4 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1); /* positive control */
	j.seq++;
	job_step(&j, 100 * MS, -1, 0);
	job_push(&j, c);
	calls_tick(c, j.now_ns + 5 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	job_done(&j);
	calls_free(c);
}

/* Rank 0 waits for 1 in one communicator, 1 for 2 in another, after @rounds in which they all met. */
static void wait_in_chain(struct job *j, struct calls *c, int rounds)
{
	struct push_call call;

	job_init(j, 3, 1);
	for (int round = 0; round <= rounds; round++)
		for (int pair = 0; pair < 2; pair++)
			for (int i = 0; i < 2; i++) {
				int rank = pair + i;

				call = job_call(j, rank, BEGIN_NS + pair * MS,
					round < rounds ? BEGIN_NS + 2 * MS : 0);
				call.comm += (uint64_t)pair;
				call.rank = i;
				call.nranks = 2;
				call.seq = (uint64_t)round;
				if (round < rounds || i == 0)
					job_add(j, job_node(j, rank), call);
			}
	job_push(j, c);
}

/* Who waits for one that waits itself is told later. */
static void test_chain(void **state)
{
	struct calls *c = calls_made();
	struct hang_view h;
	struct job j;

	wait_in_chain(&j, c, 16);
	calls_tick(c, BEGIN_NS + 10 * SECOND);
	assert_int_equal(hangs_of(c, &h), 2);
	assert_int_equal(h.comm, COMM + 1);
	assert_int_equal(h.missing_rank[0], 1);
	job_done(&j);
	calls_free(c);
}

/* In its first steps a rank loads code and makes connections, however often it has met others already. */
static void test_first_calls_of_a_rank(void **state)
{
	struct calls *c = calls_made();
	struct hang_view h;
	struct job j;

	wait_in_chain(&j, c, 3);
	calls_tick(c, BEGIN_NS + 10 * SECOND);
	assert_int_equal(hangs_of(c, &h), 0);
	calls_tick(c, BEGIN_NS + 40 * SECOND);
	assert_int_equal(hangs_of(c, &h), 2);
	job_done(&j);
	calls_free(c);
}

/* A receive without its send. */
static void test_receive(void **state)
{
	struct calls *c = calls_made();
	struct push_call call;
	struct hang_view h;
	struct job j;

	job_init(&j, 4, 1);
	call = job_call(&j, 3, BEGIN_NS, 0);
	call.op = NCCL_RECV;
	call.peer = 2;
	job_add(&j, 3, call);
	job_push(&j, c);
	calls_tick(c, BEGIN_NS + 31 * SECOND);
	assert_int_equal(hangs_of(c, &h), 1);
	assert_int_equal(h.op, NCCL_RECV);
	assert_int_equal(h.waiting, 1);
	assert_int_equal(h.missing, 1);
	assert_int_equal(h.missing_rank[0], 2);
	job_done(&j);
	calls_free(c);
}

/* After an hour it is forgotten, and nobody who waited in it is named instead. */
static void test_given_up_as_a_whole(void **state)
{
	struct push_call other;
	struct hang_view h;
	struct calls *c;
	struct job j;
	int64_t since;

	begin(&j, &c, 4);
	wait_inside(&j, c, 1 << 2);
	since = j.now_ns;
	other = job_call(&j, 3, since + 20 * SECOND, 0); /* waits for those who wait */
	other.comm += 1;
	j.now_ns += 21 * SECOND;
	job_add(&j, job_node(&j, 3), other);
	job_push(&j, c);
	for (int i = 1; i < 1790; i++)
		calls_tick(c, since + 2 * i * SECOND);
	assert_true(hangs_of(c, &h) > 0);
	assert_int_equal(h.missing_rank[0], 2);
	for (int i = 1790; i < 2000; i++) {
		calls_tick(c, since + 2 * i * SECOND);
		if (hangs_of(c, &h) > 0)
			assert_int_equal(h.missing_rank[0], 2);
	}
	assert_int_equal(hangs_of(c, &h), 0);
	job_done(&j);
	calls_free(c);
}

/* A rank that goes on alone leaves collectives behind that nobody waits in: they are looked at once, and not with every
 * tick. The rank that is missing may come to one of them all the same. */
static void test_left_behind(void **state)
{
	enum { ALONE = 5000 };
	struct calls_taken taken;
	struct hang_view h;
	struct calls *c;
	struct job j;
	int64_t first;

	begin(&j, &c, 8);
	first = j.now_ns;
	for (int i = 0; i < ALONE; i++) {
		j.now_ns += MS;
		job_add(&j, job_node(&j, 3), job_call(&j, 3, j.now_ns, j.now_ns + MS / 2));
		j.seq++;
	}
	taken = job_push(&j, c);
	assert_int_equal(taken.taken, ALONE);
	calls_tick(c, first + 6 * SECOND);
	assert_int_equal(c->hangs.looked, ALONE);
	calls_tick(c, first + 7 * SECOND);
	assert_int_equal(c->hangs.looked, 0);
	/* all others come to the last of them, and to the next but for one */
	j.seq--;
	for (int i = 0; i < 8; i++)
		if (i != 3)
			job_add(&j, job_node(&j, i), job_call(&j, i, j.now_ns, j.now_ns + MS));
	assert_int_equal(job_push(&j, c).taken, 7);
	j.seq++;
	wait_inside(&j, c, 1 << 6);
	calls_tick(c, j.now_ns + 4 * SECOND);
	assert_int_equal(c->hangs.looked, 1);
	assert_int_equal(hangs_of(c, &h), 1);
	assert_int_equal(h.missing_rank[0], 6);
	job_done(&j);
	calls_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_missing),
		cmocka_unit_test(test_long_steps),
		cmocka_unit_test(test_first_steps),
		cmocka_unit_test(test_never_seen),
		cmocka_unit_test(test_made_up),
		cmocka_unit_test(test_joined_wrongly),
		cmocka_unit_test(test_inside_an_unknown_call),
		cmocka_unit_test(test_inside_a_refused_call),
		cmocka_unit_test(test_overtaken),
		cmocka_unit_test(test_lost_call),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_first_calls_of_a_rank),
		cmocka_unit_test(test_receive),
		cmocka_unit_test(test_given_up_as_a_whole),
		cmocka_unit_test(test_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
