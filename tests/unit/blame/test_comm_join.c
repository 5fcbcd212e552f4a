/* SPDX-License-Identifier: Apache-2.0 */
/* test_comm_join.c - made-up jobs whose tracers came at different moments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macros.h"
#include "blame/comm_join.h"
#include "wire/ids.h"

#define MS      INT64_C(1000000)
#define WORKERS 16
#define CALLS   20000

static uint64_t seed;

static int64_t random_below(int64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return n ? (int64_t)((seed >> 33) % (uint64_t)n) : 0;
}

struct world {
	struct blame_worker workers[WORKERS];
	struct blame_call *calls;
	int64_t *truth; /* which call of its communicator it is */
	int *comm_of;
	size_t count;
};

struct comm { /* as it really is, and what is known of it */
	int number;
	uint64_t name; /* 0: nobody knows */
	uint64_t tag;
	int ranks;
	uint32_t workers[8];
	int first[8];     /* the rank's tracer sees calls from this one on */
	bool numbered[8]; /* and knows their numbers */
	int calls;
	int64_t begin_ns, period_ns, uneven_ns; /* from one to the next: period + below uneven */
	int64_t jitter_ns;                      /* ends are so far apart */
	bool lacks_waits;
	int64_t pause_ns; /* after every eighth: micro-batches of a step */
	int64_t apart_ns; /* nobody is late, but entries are so far apart */
};

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->calls = calloc(CALLS, sizeof(*w->calls));
	w->truth = calloc(CALLS, sizeof(*w->truth));
	w->comm_of = calloc(CALLS, sizeof(*w->comm_of));
	assert_true(w->calls && w->truth && w->comm_of);
	for (uint32_t i = 0; i < WORKERS; i++)
		w->workers[i] = (struct blame_worker){.rank = -1, .node = "a", .pid = 100 + i};
	seed = 42;
	return w;
}

static void world_free(struct world *w)
{
	free(w->calls);
	free(w->truth);
	free(w->comm_of);
	free(w);
}

static void add(
	struct world *w, const struct comm *c, int rank, int call, const struct push_call *p)
{
	uint64_t own =
		(uint64_t)(call - c->first[rank] + 1) | (c->name ? 0 : c->tag << COMM_JOIN_TAG);
	struct blame_call b = {.worker = c->workers[rank], .c = *p};

	b.c.comm = c->name;
	b.c.seq = c->numbered[rank] ? (uint64_t)call + 1 : -own;
	b.c.rank = rank;
	b.c.nranks = c->ranks;
	b.c.enter_ns -= w->workers[b.worker].offset_ns; /* by its own clock */
	b.c.leave_ns -= w->workers[b.worker].offset_ns;
	assert_true(w->count < CALLS);
	w->truth[w->count] = call;
	w->comm_of[w->count] = c->number;
	w->calls[w->count++] = b;
}

/* Rank 1 is late for most of them; sizes go round. */
static void play(struct world *w, const struct comm *c)
{
	int64_t end = c->begin_ns;

	for (int i = 0; i < c->calls; i++) {
		end += c->period_ns + random_below(c->uneven_ns) + (i % 8 ? 0 : c->pause_ns);
		for (int r = 0; r < c->ranks; r++) {
			int64_t wait = r == 1 && !c->apart_ns
					       ? 100000
					       : c->period_ns / 2 + random_below(c->apart_ns);
			int64_t leave = end + random_below(c->jitter_ns);

			if (i < c->first[r])
				continue;
			add(w, c, r, i,
				&(struct push_call){.op = NCCL_ALL_REDUCE,
					.bytes = 1000,
					.peer = -1,
					.enter_ns = end - wait,
					.leave_ns = leave,
					.wait_ns = c->lacks_waits
							   ? UINT64_MAX
							   : (uint64_t)(leave - (end - wait))});
		}
	}
}

static struct comm ordinary(int ranks)
{
	struct comm c = {.number = 1,
		.ranks = ranks,
		.tag = 7,
		.calls = 300,
		.begin_ns = 100000 * MS,
		.period_ns = 30 * MS,
		.uneven_ns = 4 * MS,
		.jitter_ns = 30000};

	for (uint32_t r = 0; r < 8; r++)
		c.workers[r] = r;
	return c;
}

static struct comm_join join(struct world *w)
{
	struct comm_join j;
	size_t late = 0, named;

	for (size_t i = 0; i < w->count; i++)
		late += !push_call_is_numbered(&w->calls[i].c);
	assert_int_equal(comm_join_run(w->workers, w->calls, w->count, UINT64_MAX, &j), 0);
	assert_int_equal(j.joined + j.unknown, late); /* nothing is left out without a word */
	named = comm_join_apply(&j, w->calls, w->count);
	assert_int_equal(named, j.joined);
	return j;
}

/* Named calls are the same call of the same communicator if and only if their names are. */
static void assert_right(const struct world *w)
{
	for (size_t i = 0; i < w->count; i++) {
		const struct push_call *x = &w->calls[i].c;

		for (size_t k = i + 1; push_call_is_numbered(x) && k < w->count && k < i + 2000;
			k++) {
			const struct push_call *y = &w->calls[k].c;
			bool is_pair = x->peer >= 0;

			if (!push_call_is_numbered(y) || is_pair != (y->peer >= 0) ||
				(is_pair && x->rank != y->peer))
				continue;
			assert_int_equal(x->comm == y->comm && x->seq == y->seq,
				w->comm_of[i] == w->comm_of[k] && w->truth[i] == w->truth[k]);
		}
	}
}

static void assert_joined(struct world *w)
{
	struct comm_join j = join(w);

	assert_int_equal(j.unknown, 0);
	assert_true(j.joined > 0);
	assert_right(w);
	comm_join_done(&j);
	world_free(w);
}

/* As those of a pipeline whose communicators are known by name: alike, close together, and nobody waits for them. */
static void bursts_without_waits(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(2);

	c.name = 0xabc;
	c.lacks_waits = true;
	c.period_ns = 4 * MS;
	c.uneven_ns = 2 * MS;
	c.pause_ns = 40 * MS;
	c.first[1] = 3;
	play(w, &c);
	assert_joined(w);
}

static void assert_unknown(struct world *w)
{
	struct comm_join j = join(w);

	assert_int_equal(j.joined, 0);
	assert_true(j.unknown > 0);
	comm_join_done(&j);
	world_free(w);
}

static void tracers_that_come_at_any_moment(void **state)
{
	static const int firsts[] = {0, 1, 3, 79, 100, 0, 12, 55};

	for (int ranks = 2; ranks <= 8; ranks++)
		for (int named = 0; named < 2; named++) {
			struct world *w = world_new();
			struct comm c = ordinary(ranks);

			c.name = named ? 77 : 0;
			for (int r = 0; r < ranks; r++)
				c.first[r] = firsts[(r + 2) % 8];
			play(w, &c);
			assert_joined(w);
		}
}

static void those_who_know_the_numbers_keep_them(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(4);

	c.name = 77;
	c.first[0] = 100;
	c.first[3] = 30;
	c.numbered[1] = c.numbered[2] = true;
	play(w, &c);
	assert_joined(w);
}

/* Before NCCL 2.18 a rank that was met early names it by its id, one met late not at all. */
static void one_that_cannot_name_it(void **state)
{
	struct world *w = world_new();
	struct comm early = ordinary(3), late = ordinary(3);

	early.name = 77;
	early.numbered[0] = early.numbered[1] = true;
	early.first[2] = late.first[0] = late.first[1] = INT32_MAX;
	late.first[2] = 40;
	play(w, &early);
	seed = 42;
	play(w, &late);
	assert_joined(w);
}

static void ends_that_are_10_ms_apart(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(4);

	c.jitter_ns = 10 * MS;
	c.period_ns = 40 * MS;
	c.uneven_ns = 300 * MS;
	c.first[1] = 79;
	c.first[2] = 3;
	play(w, &c);
	assert_joined(w);
}

static void clocks_that_differ(void **state)
{
	static const char *const nodes[] = {"a", "b", "c", "d"};

	for (int known = 0; known < 2; known++) {
		struct world *w = world_new();
		struct comm c = ordinary(4);

		for (uint32_t i = 0; i < 4; i++) {
			w->workers[i].node = nodes[i];
			w->workers[i].error_ns = known ? 50 * MS : UINT64_MAX;
			w->workers[i].offset_ns = (int64_t)i * (known ? 20 * MS : 7777 * MS);
		}
		c.first[1] = 79;
		c.uneven_ns = 25 * MS;
		play(w, &c);
		for (uint32_t i = 0; i < 4; i++)
			w->workers[i].offset_ns = 0; /* nobody knows */
		assert_joined(w);
	}
}

/* Ranks 0 and 1 of communicators of two, in four processes; and two communicators of one process. */
static void several_communicators(void **state)
{
	struct world *w = world_new();
	struct comm a = ordinary(2), b = ordinary(2), c = ordinary(2);

	b.number = 2;
	b.workers[0] = 2;
	b.workers[1] = 3;
	b.first[0] = 17;
	b.begin_ns += 11 * MS;
	c.number = 3;
	c.tag = 8;
	c.first[1] = 5;
	c.begin_ns += 23 * MS;
	play(w, &a);
	play(w, &b);
	play(w, &c);
	assert_joined(w);
}

/* Rank 0 of the second is not traced, nor is any other of the third. */
static void ranks_that_are_not_traced(void **state)
{
	struct world *w = world_new();
	struct comm a = ordinary(3), b = ordinary(3), c = ordinary(3);
	struct comm_join j;
	size_t alone;

	b.number = 2;
	c.number = 3;
	for (uint32_t r = 0; r < 3; r++) {
		b.workers[r] = 3 + r;
		c.workers[r] = 6 + r;
	}
	b.first[0] = INT32_MAX;
	b.first[1] = 20;
	b.begin_ns += 9 * MS;
	c.first[0] = c.first[1] = INT32_MAX;
	c.begin_ns += 17 * MS;
	play(w, &a);
	play(w, &b);
	alone = w->count;
	play(w, &c);
	alone = w->count - alone;
	j = join(w);
	assert_int_equal(j.unknown, alone);
	assert_right(w);
	comm_join_done(&j);
	world_free(w);
}

static void messages(void **state)
{
	for (int named = 0; named < 2; named++) {
		struct world *w = world_new();
		struct comm c = ordinary(2);
		int64_t end = c.begin_ns;

		c.name = named ? 77 : 0;
		c.first[1] = 79;
		for (int i = 0; i < c.calls; i++) {
			end += c.period_ns + random_below(c.uneven_ns);
			for (int r = 0; r < 2; r++)
				if (i >= c.first[r])
					add(w, &c, r, i,
						&(struct push_call){.op = r ? NCCL_RECV : NCCL_SEND,
							.bytes = 4096,
							.peer = !r,
							.enter_ns = end - (r + 1) * MS,
							.leave_ns = end + r * 20000,
							.wait_ns = (uint64_t)(MS / 2)});
		}
		assert_joined(w);
	}
}

/* No host waits behind them: entries tell as much. */
static void without_waits(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(3);

	c.lacks_waits = true;
	c.first[2] = 4;
	play(w, &c);
	assert_joined(w);
}

/* Entries are hardly nearer by the right shift than by one of a step; what one is later by then is more than clocks are apart. */
static void regular_steps_without_waits(void **state)
{
	for (int ranks = 2; ranks <= 8; ranks++) {
		struct world *w = world_new();
		struct comm c = ordinary(ranks);

		for (int r = 0; r < ranks; r++) {
			w->workers[r].node = r % 2 ? "a" : "b";
			w->workers[r].error_ns = 3 * MS;
			c.first[r] = 13 * r;
		}
		c.lacks_waits = true;
		c.uneven_ns = MS;
		c.apart_ns = MS;
		play(w, &c);
		assert_joined(w);
	}
}

static void what_is_regular_under_loose_clocks_is_unknown(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(2);

	w->workers[1].node = "b";
	w->workers[0].error_ns = w->workers[1].error_ns = UINT64_MAX;
	c.uneven_ns = 0;
	c.first[1] = 10;
	play(w, &c);
	assert_unknown(w);
}

static void ends_without_a_pattern_are_unknown(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(2);

	c.jitter_ns = 400 * MS;
	c.period_ns = 5 * MS;
	play(w, &c);
	assert_unknown(w);
}

static void too_few_are_unknown(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(2);

	c.calls = COMM_JOIN_PAIRS - 1;
	play(w, &c);
	assert_unknown(w);
}

static void other_operations_are_not_joined(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(2);

	play(w, &c);
	for (size_t i = 0; i < w->count; i++)
		if (w->calls[i].c.rank)
			w->calls[i].c.bytes++;
	assert_unknown(w);
}

/* Two jobs in lockstep, to the microsecond: whose rank 1 is whose cannot be told. */
static void twins_are_unknown(void **state)
{
	struct world *w = world_new();
	struct comm a = ordinary(2), b = ordinary(2);

	b.number = 2;
	b.workers[0] = 2;
	b.workers[1] = 3;
	play(w, &a);
	seed = 42;
	play(w, &b);
	assert_unknown(w);
}

static void rows_that_make_no_sense(void **state)
{
	struct world *w = world_new();
	struct comm c = ordinary(2);

	play(w, &c);
	for (size_t i = 0; i < w->count; i++) {
		struct push_call *p = &w->calls[i].c;

		switch (i % 5) {
		case 0: p->rank = 9; break;
		case 1: p->enter_ns = -5; break;
		case 2: p->seq = 0; break;
		case 3: p->nranks = 0; break;
		case 4: p->seq = UINT64_C(1) << 63; break;
		}
	}
	assert_unknown(w);
}

static void a_stream_is_known_by_its_calls(void **state)
{
	struct comm_join_stream s = {.worker = 3,
		.comm = 77,
		.rank = 1,
		.nranks = 4,
		.peer = -1,
		.id = 77,
		.shift = 500};
	struct push_call c = {.comm = 77,
		.seq = -(uint64_t)20,
		.rank = 1,
		.nranks = 4,
		.peer = -1,
		.op = NCCL_REDUCE};

	assert_true(comm_join_is_of(&s, 3, &c));
	assert_false(comm_join_is_of(&s, 2, &c));
	assert_int_equal(comm_join_number(&c), 20);
	comm_join_name(&s, &c);
	assert_int_equal(c.seq, 520);
	assert_int_equal(c.comm, 77);
	assert_false(comm_join_is_of(&s, 3, &c)); /* it is numbered */
}

/* Six messages a step that nobody says a wait of, and that the receiver, but for the first, looks for when it has time:
 * only that both have made as many between two steps tells. Not if clocks may be further apart than these are. */
static void messages_that_are_there_before_they_are_looked_for(void **state)
{
	for (int loose = 0; loose < 2; loose++) {
		struct world *w = world_new();
		struct comm c = {
			.number = 1, .tag = 3, .ranks = 2, .workers = {0, 1}, .first = {2, 9}};
		int64_t at = 100000 * MS;

		w->workers[1].node = "b";
		w->workers[0].error_ns = w->workers[1].error_ns = (loose ? 40 : 3) * MS;
		for (int i = 0; i < 600; i++) {
			int64_t sent = at + (i % 6) * 20 * MS + random_below(5 * MS);
			int64_t there = sent + MS + (i % 6 ? random_below(70 * MS) : 0);

			for (int r = 0; r < 2; r++)
				if (i >= c.first[r])
					add(w, &c, r, i,
						&(struct push_call){.op = r ? NCCL_RECV : NCCL_SEND,
							.bytes = 1000,
							.peer = !r,
							.enter_ns = r ? there - MS : sent,
							.leave_ns = r ? there : sent + 5000,
							.wait_ns = UINT64_MAX});
			at += i % 6 == 5 ? 300 * MS : 0;
		}
		if (loose)
			assert_unknown(w);
		else
			assert_joined(w);
	}
}

/* A communicator whose ranks are all known has no place for another rank that does the same at the same time. */
static void places_that_are_taken(void **state)
{
	struct world *w = world_new();
	struct comm known = ordinary(2), c = ordinary(2);
	struct comm_join j;

	known.name = 0xabc;
	known.numbered[0] = known.numbered[1] = true;
	play(w, &known);
	c.number = 2;
	c.workers[0] = 2;
	c.workers[1] = 3;
	c.first[1] = 5;
	seed = 42;
	play(w, &c);
	j = join(w);
	for (size_t i = 0; i < j.count; i++)
		assert_true(j.streams[i].id != known.name);
	assert_int_equal(j.unknown, 0);
	assert_right(w);
	comm_join_done(&j);
	world_free(w);
}

/* After so much work what is left stays unknown, and the next call goes on with it. */
static void work_is_bounded(void **state)
{
	const struct comm c = ordinary(8);
	struct world *w = world_new();
	struct comm_join j;
	int runs = 0;

	(void)state;
	play(w, &c);
	assert_int_equal(comm_join_run(w->workers, w->calls, w->count, 1000, &j), 0);
	assert_in_range(
		j.joined, 0, 2 * (uint64_t)c.calls); /* the first pair is looked at in any case */
	comm_join_done(&j);
	for (uint64_t unknown = 1; unknown && runs < 50; runs++) {
		assert_int_equal(comm_join_run(w->workers, w->calls, w->count, 300000, &j), 0);
		comm_join_apply(&j, w->calls, w->count);
		unknown = j.unknown;
		comm_join_done(&j);
	}
	assert_in_range(runs, 2, 20);
	assert_right(w);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tracers_that_come_at_any_moment),
		cmocka_unit_test(bursts_without_waits),
		cmocka_unit_test(those_who_know_the_numbers_keep_them),
		cmocka_unit_test(one_that_cannot_name_it),
		cmocka_unit_test(ends_that_are_10_ms_apart),
		cmocka_unit_test(clocks_that_differ),
		cmocka_unit_test(several_communicators),
		cmocka_unit_test(ranks_that_are_not_traced),
		cmocka_unit_test(messages),
		cmocka_unit_test(without_waits),
		cmocka_unit_test(regular_steps_without_waits),
		cmocka_unit_test(what_is_regular_under_loose_clocks_is_unknown),
		cmocka_unit_test(ends_without_a_pattern_are_unknown),
		cmocka_unit_test(too_few_are_unknown),
		cmocka_unit_test(other_operations_are_not_joined),
		cmocka_unit_test(twins_are_unknown),
		cmocka_unit_test(rows_that_make_no_sense),
		cmocka_unit_test(a_stream_is_known_by_its_calls),
		cmocka_unit_test(messages_that_are_there_before_they_are_looked_for),
		cmocka_unit_test(places_that_are_taken),
		cmocka_unit_test(work_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
