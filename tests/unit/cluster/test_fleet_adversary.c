/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that the random simulation does not make: whoever makes them wait is named, and nobody else; where nobody
 * does, nobody. Each scene is written as what its ranks do, and played to the core through simulated agents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "cluster/detect/fleet.h"
#include "cluster/simulate/simulation.h"
#include "wire/ids.h"

#define MS        INT64_C(1000000)
#define START     ((int64_t)1700000000 * (int64_t)NS_PER_S)
#define TICK_NS   (100 * MS)
#define RANKS_MAX 32
#define TOLD_MAX  16
#define MOVE_NS   (MS * 3 / 10)

struct rank {
	uint32_t node, pid;
	int32_t world;
	int64_t at_ns;
	uint64_t chance;
	struct push_call *calls;
	size_t count, room;
};

struct scene {
	struct rank ranks[RANKS_MAX];
	size_t rank_count;
	struct simulation_fault faults[4];
	size_t fault_count;
	int64_t end_ns; /* 0: a while after the last call */
	/* what was told */
	struct fleet_episode told[TOLD_MAX];
	size_t told_count, ended;
	char shown[256]; /* provisional, of a rank that the scene does not call late; "": none */
	int32_t late;    /* that may be shown; -1: nobody */
	char said[256];  /* of that one, at last */
	int64_t last_said_ns; /* after the beginning; 0: it never was */
};

static struct rank *add_rank(struct scene *s, uint32_t node, uint32_t pid, int32_t world)
{
	struct rank *r = &s->ranks[s->rank_count++];

	assert_true(s->rank_count <= RANKS_MAX);
	*r = (struct rank){.node = node,
		.pid = pid,
		.world = world,
		.at_ns = START,
		.chance = hash_number(pid)};
	return r;
}

/* Between 0.98 and 1.02 times as long. */
static void work(struct rank *r, double ms)
{
	r->chance = hash_number(r->chance + 1);
	r->at_ns += (int64_t)(ms * (double)MS *
			      (0.98 + 0.04 * (double)(r->chance >> 11) / (double)(1ULL << 53)));
}

static void pause_for(struct rank *r, double ms)
{
	r->at_ns += (int64_t)(ms * (double)MS);
}

static void emit(struct rank *r, struct push_call c)
{
	assert_int_equal(ARRAY_RESERVE(r->calls, r->room, r->count + 1, 1 << 20), 0);
	c.pid = r->pid;
	c.world_rank = r->world;
	c.datatype = UINT16_MAX;
	c.wait_ns = c.leave_ns ? (uint64_t)(c.leave_ns - c.enter_ns) : UINT64_MAX;
	r->calls[r->count++] = c;
}

/* All of @who meet; those whose bit is set in @missing do not come, and the others stay inside. */
static void reduce(struct rank **who, int32_t n, uint64_t comm, uint64_t seq, uint32_t missing)
{
	int64_t end_ns = 0;

	for (int32_t i = 0; i < n; i++)
		end_ns = MAX(end_ns, who[i]->at_ns);
	end_ns = missing ? 0 : end_ns + MOVE_NS;
	for (int32_t i = 0; i < n; i++) {
		if (missing >> i & 1)
			continue;
		emit(who[i], (struct push_call){.comm = comm,
				     .seq = seq,
				     .bytes = 25 << 20,
				     .enter_ns = who[i]->at_ns,
				     .leave_ns = end_ns,
				     .rank = i,
				     .nranks = n,
				     .peer = -1,
				     .op = NCCL_ALL_REDUCE});
		who[i]->at_ns = MAX(who[i]->at_ns, end_ns);
	}
}

/* A message; the sender does not wait, the receiver does. */
static void message(struct rank *from, struct rank *to, int32_t n, uint64_t comm, uint64_t seq)
{
	int64_t sent_ns = from->at_ns, ready_ns = sent_ns + MOVE_NS;
	struct push_call c = {
		.comm = comm, .seq = seq, .bytes = 1 << 20, .nranks = n, .op = NCCL_SEND};

	c.rank = from->world;
	c.peer = to->world;
	c.enter_ns = sent_ns;
	c.leave_ns = from->at_ns = sent_ns + 5000;
	emit(from, c);
	c.op = NCCL_RECV;
	c.rank = to->world;
	c.peer = from->world;
	c.enter_ns = to->at_ns;
	c.leave_ns = to->at_ns = MAX(to->at_ns, ready_ns) + 5000;
	emit(to, c);
}

static int by_node(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	return x->node != y->node ? (x->node < y->node ? -1 : 1) : x->pid < y->pid ? -1 : 1;
}

static void note(struct scene *s, struct fleet *f, int64_t now_ns)
{
	struct fleet_notice n;
	struct fleet_episode e;
	size_t cursor = 0;

	while (fleet_notice(f, &n)) {
		s->ended += n.kind == FLEET_NOTICE_ENDED;
		if (n.kind != FLEET_NOTICE_BEGAN)
			continue;
		print_message("# %s\n", n.episode.text);
		assert_true(s->told_count < TOLD_MAX);
		s->told[s->told_count++] = n.episode;
	}
	while (fleet_episode_next(f, NULL, &cursor, &e)) {
		if (!e.provisional)
			continue;
		snprintf(
			e.rank == s->late ? s->said : s->shown, sizeof(s->shown), "%.250s", e.text);
		if (e.rank == s->late)
			s->last_said_ns = now_ns - START;
	}
}

/* Plays it to its end; the calls are gone then. */
static void play(struct scene *s)
{
	struct simulation_rank ranks[RANKS_MAX];
	struct simulation_settings a = {.seed = 9,
		.cluster = "c1",
		.start_ns = START,
		.latency_ns = 2000000,
		.ranks = ranks,
		.rank_count = s->rank_count,
		.faults = s->faults,
		.fault_count = s->fault_count};
	struct fleet_settings settings = fleet_defaults;
	_cleanup_(simulation_freep) struct simulation *agents = NULL;
	_cleanup_(fleet_freep) struct fleet *f = NULL;
	struct simulation_message m;
	int64_t now_ns = START, last_ns = START;
	bool more = false;

	qsort(s->ranks, s->rank_count, sizeof(*s->ranks), by_node);
	for (size_t i = 0; i < s->rank_count; i++) {
		ranks[i] = (struct simulation_rank){
			s->ranks[i].node, s->ranks[i].calls, s->ranks[i].count};
		a.nodes = MAX(a.nodes, s->ranks[i].node + 1);
		last_ns = MAX(last_ns, s->ranks[i].at_ns);
	}
	a.end_ns = MAX(s->end_ns, last_ns + 2 * (int64_t)NS_PER_S);
	settings.nodes = nodes_defaults;
	settings.calls = calls_defaults;
	assert_int_equal(fleet_new(&settings, &f), 0);
	assert_int_equal(simulation_new(&a, &agents), 0);
	more = simulation_next(agents, &m) > 0;
	while (now_ns < a.end_ns) {
		struct calls_taken taken;

		for (; more && m.at_ns<now_ns + TICK_NS; more = simulation_next(agents, &m)> 0) {
			assert_int_equal(fleet_take_calls(f, m.calls, m.at_ns, &taken), 0);
			assert_int_equal(taken.refused, 0);
		}
		now_ns += TICK_NS;
		fleet_tick(f, now_ns);
		note(s, f, now_ns);
	}
	for (size_t i = 0; i < s->rank_count; i++)
		free(s->ranks[i].calls);
}

/* One straggler, this one, and nobody else was told of or shown. */
static void expect_straggler(const struct scene *s, int32_t rank, uint32_t pid)
{
	assert_int_equal(s->told_count, 1);
	assert_int_equal(s->told[0].problem, FLEET_STRAGGLER);
	assert_int_equal(s->told[0].rank, rank);
	assert_int_equal(s->told[0].pid, pid);
	assert_string_equal(s->shown, "");
}

static void expect_nobody(const struct scene *s)
{
	assert_int_equal(s->told_count, 0);
	assert_string_equal(s->shown, "");
}

/* ---- scenes ---- */

/* Two stages of four replicas, four micro-batches a step; rank 1 is late in the third of them only. */
static void a_first_stage_that_is_late_while_gradients_accumulate(void **state)
{
	struct scene s = {.late = 1};
	struct rank *first[4], *second[4];

	for (int i = 0; i < 8; i++) {
		struct rank *r = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);

		*(i < 4 ? &first[i] : &second[i - 4]) = r;
	}
	for (uint64_t step = 0; step < 120; step++) {
		for (int i = 0; i < 4; i++)
			for (uint64_t batch = 0; batch < 4; batch++) {
				work(first[i], 20);
				if (i == 1 && batch == 2 && step >= 20)
					pause_for(first[i], 45);
				message(first[i], second[i], 8, 0x11, step * 4 + batch);
				work(second[i], 20);
			}
		for (int i = 0; i < 4; i++)
			for (uint64_t batch = 0; batch < 4; batch++) {
				work(second[i], 20);
				message(second[i], first[i], 8, 0x11, step * 4 + batch);
				work(first[i], 20);
			}
		reduce(first, 4, 0x21, step, 0);
		reduce(second, 4, 0x22, step, 0);
	}
	play(&s);
	expect_straggler(&s, 1, 1001);
}

/* A data-parallel job: its ranks compute, then reduce twice. @late: of them, from step @from on. */
static void train(struct rank **who, int32_t n, uint64_t comm, uint64_t first, uint64_t steps,
	double ms, int late, double late_ms)
{
	for (uint64_t step = first; step < first + steps; step++) {
		for (int i = 0; i < n; i++)
			work(who[i], ms);
		if (late >= 0)
			pause_for(who[late], late_ms);
		reduce(who, n, comm, 2 * step, 0);
		reduce(who, n, comm, 2 * step + 1, 0);
	}
}

/* Their ranks have the same numbers, their processes stand side by side. */
static void two_jobs_on_the_same_nodes(void **state)
{
	struct scene s = {.late = 5};
	struct rank *a[8], *b[8];

	for (int i = 0; i < 8; i++) {
		a[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
		b[i] = add_rank(&s, (uint32_t)i / 4, 2000 + (uint32_t)i, i);
	}
	train(a, 8, 0xa, 0, 150, 110, -1, 0);
	train(b, 8, 0xb, 0, 30, 140, -1, 0);
	train(b, 8, 0xb, 30, 80, 140, 5, 60);
	play(&s);
	expect_straggler(&s, 5, 2005);
	assert_int_equal(s.told[0].comm, 0xb);
	assert_null(strstr(s.told[0].text, "in every 2nd")); /* of two collectives alike */
}

/* After 20 s the job goes on with six ranks of other numbers, processes and communicators; one is late then. */
static void an_elastic_restart_with_other_ranks(void **state)
{
	struct scene s = {.late = 4};
	struct rank *before[8], *after[6];

	for (int i = 0; i < 8; i++)
		before[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	train(before, 8, 0xa, 0, 150, 130, -1, 0);
	reduce(before, 8, 0xa, 300, 1 << 6); /* one has died, the others are inside for good */
	for (int i = 0; i < 6; i++) {
		after[i] = add_rank(&s, (uint32_t)i / 4, 3000 + (uint32_t)i, 5 - i);
		after[i]->at_ns = before[0]->at_ns + 2 * (int64_t)NS_PER_S;
	}
	train(after, 6, 0xc, 0, 40, 170, -1, 0);
	train(after, 6, 0xc, 40, 80, 170, 1, 70);
	play(&s);
	for (size_t i = 0; i < s.told_count; i++) {
		if (s.told[i].problem == FLEET_HANG) {
			assert_int_equal(s.told[i].rank, 6); /* who had died */
			continue;
		}
		assert_int_equal(s.told[i].problem, FLEET_STRAGGLER);
		assert_int_equal(s.told[i].rank, 4);
		assert_int_equal(s.told[i].pid, 3001);
	}
	assert_true(s.told_count >= 1 && s.told_count <= 2);
	assert_int_equal(s.told[s.told_count - 1].problem, FLEET_STRAGGLER);
	assert_string_equal(s.shown, "");
}

/* From step 60 on halves reduce among themselves, in communicators that ncclCommSplit has made; the world meets at
 * the end of each step. Nobody is late at first, and one of the second half later. */
static void communicators_that_are_split_in_between(void **state)
{
	struct scene s = {.late = 6};
	struct rank *all[8];

	for (int i = 0; i < 8; i++)
		all[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	train(all, 8, 0xa, 0, 60, 130, -1, 0);
	for (uint64_t step = 0; step < 120; step++) {
		for (int i = 0; i < 8; i++)
			work(all[i], 130);
		if (step >= 60)
			pause_for(all[6], 60);
		reduce(all, 4, 0xe1, step, 0);
		reduce(all + 4, 4, 0xe2, step, 0);
		reduce(all, 8, 0xa, 120 + step, 0);
	}
	play(&s);
	expect_straggler(&s, 6, 1006);
	assert_non_null(strstr(s.told[0].text, "in every step"));
}

/* Two groups, and the world at the end of a step. One rank of each group stops, at numbers that differ. */
static void a_hang_of_two_that_miss_different_numbers(void **state)
{
	struct scene s = {.late = -1};
	struct rank *all[8];
	bool named[8] = {false};

	for (int i = 0; i < 8; i++)
		all[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	for (uint64_t step = 0; step < 50; step++) {
		for (uint64_t layer = 0; layer < 3; layer++) {
			for (int i = 0; i < 8; i++)
				work(all[i], 60);
			reduce(all, 4, 0xe1, 3 * step + layer, 0);
			reduce(all + 4, 4, 0xe2, 3 * step + layer, 0);
		}
		reduce(all, 8, 0xa, step, 0);
	}
	for (int i = 0; i < 8; i++)
		work(all[i], 60);
	reduce(all, 4, 0xe1, 150, 0);
	reduce(all, 4, 0xe1, 151, 1 << 2);     /* rank 2 */
	reduce(all + 4, 4, 0xe2, 150, 1 << 1); /* rank 5 */
	s.end_ns = all[0]->at_ns + 20 * (int64_t)NS_PER_S;
	play(&s);
	for (size_t i = 0; i < s.told_count; i++) {
		assert_int_equal(s.told[i].problem, FLEET_HANG);
		assert_in_range(s.told[i].rank, 0, 7);
		named[s.told[i].rank] = true;
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(named[i], i == 2 || i == 5);
}

/* Experts: in each step the tokens go to another rank, which computes longer; all exchange before and after. Once rank 0 is
 * @aside_ms away. */
static void play_experts(struct scene *s, double aside_ms)
{
	struct rank *all[8];

	for (int i = 0; i < 8; i++)
		all[i] = add_rank(s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	for (uint64_t step = 0; step < 95; step++) {
		for (uint64_t layer = 0; layer < 2; layer++) {
			uint64_t hot = hash_number(2 * step + layer) % 8;

			for (uint64_t i = 0; i < 8; i++)
				work(all[i],
					i == hot ? 75
						 : 45 + (double)(hash_number(100 * step + i) % 10));
			reduce(all, 8, 0xe, 2 * step + layer, 0);
		}
		pause_for(all[0], step == 15 ? aside_ms : 0);
		reduce(all, 8, 0xa, step, 0);
	}
	play(s);
}

/* What nobody was shown does not keep it unsaid. */
static void experts_whose_load_moves(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct scene s = {.late = -1};

		play_experts(&s, i ? 600 : 0);
		assert_int_equal(s.told_count, 1);
		assert_int_equal(s.told[0].problem, FLEET_UNEVEN);
	}
}

/* @who is away for three steps after each 30th. */
static void play_aside(struct scene *s, int who)
{
	struct rank *all[4];

	for (int i = 0; i < 4; i++)
		all[i] = add_rank(s, (uint32_t)i, 1000 + (uint32_t)i, i);
	for (uint64_t step = 0; step < 200; step++) {
		for (int i = 0; i < 4; i++) {
			work(all[i], 200);
			pause_for(all[i], i == who && step % 30 == 29 ? 600 : 0);
		}
		reduce(all, 4, 0xa, step, 0);
	}
	play(s);
}

/* Rank 0 evaluates while the others wait: nobody's fault, but worth a question once it comes again and again. Another rank has
 * no reason to. */
static void an_evaluation_on_rank_0(void **state)
{
	struct scene s = {.late = 0}, other = {.late = 2};

	play_aside(&s, 0);
	expect_nobody(&s);
	print_message("# %s\n", s.said);
	assert_non_null(strstr(s.said,
		"; rank 0 is away for whole steps: evaluation, logging or saving on rank 0?"));
	play_aside(&other, 2);
	expect_straggler(&other, 2, 1002);
}

/* Rank 0 is a little late, which is shown, and then away for whole steps: what was shown does not stand. */
static void what_was_shown_of_rank_0_is_withdrawn(void **state)
{
	for (int goes = 0; goes < 2; goes++) {
		struct scene s = {.late = 0};
		struct rank *all[4];

		for (int i = 0; i < 4; i++)
			all[i] = add_rank(&s, (uint32_t)i, 1000 + (uint32_t)i, i);
		for (uint64_t step = 0; step < 100; step++) {
			for (int i = 0; i < 4; i++)
				work(all[i], 200);
			pause_for(all[0], step == 50 ? 150 : goes && step == 55 ? 600 : 0);
			reduce(all, 4, 0xa, step, 0);
		}
		play(&s);
		assert_int_equal(s.told_count, 0);
		assert_non_null(strstr(s.said, "late just now"));
		if (goes) /* 56 steps, and a second for it to be known */
			assert_true(s.last_said_ns < (56 * 200 + 750 + 1500) * MS);
		else
			assert_true(s.last_said_ns > 16000 * MS);
	}
}

/* Two stages on two nodes, and one of the nodes has its clock set by 50 ms in between. */
static void a_clock_that_is_set_in_mid_run(void **state)
{
	struct scene s = {.late = -1, .fault_count = 1};
	struct rank *first[4], *second[4];

	s.faults[0] = (struct simulation_fault){
		SIMULATION_CLOCK_STEP, 1, START + 12 * (int64_t)NS_PER_S, INT64_MAX, 0.05};
	for (int i = 0; i < 8; i++) { /* a stage is on both nodes */
		struct rank *r = add_rank(&s, (uint32_t)i % 2, 1000 + (uint32_t)i, i);

		*(i < 4 ? &first[i] : &second[i - 4]) = r;
	}
	for (uint64_t step = 0; step < 200; step++) {
		for (int i = 0; i < 4; i++) {
			work(first[i], 60);
			message(first[i], second[i], 8, 0x11, step);
			work(second[i], 120);
			message(second[i], first[i], 8, 0x11, step);
			work(first[i], 60);
		}
		reduce(first, 4, 0x21, step, 0);
		reduce(second, 4, 0x22, step, 0);
	}
	play(&s);
	expect_nobody(&s);
}

/* A longer batch, a hotter room: all take half as long again from step 60 on, and there is nobody to blame. */
static void all_are_slow_at_once(void **state)
{
	struct scene s = {.late = -1};
	struct rank *all[8];

	for (int i = 0; i < 8; i++)
		all[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	train(all, 8, 0xa, 0, 60, 130, -1, 0);
	train(all, 8, 0xa, 60, 100, 195, -1, 0);
	play(&s);
	expect_nobody(&s);
}

/* As above, and then one of them is late indeed: the control. */
static void all_are_slow_and_one_is_slower(void **state)
{
	struct scene s = {.late = 3};
	struct rank *all[8];

	for (int i = 0; i < 8; i++)
		all[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	train(all, 8, 0xa, 0, 60, 130, -1, 0);
	train(all, 8, 0xa, 60, 100, 195, 3, 60);
	play(&s);
	expect_straggler(&s, 3, 1003);
}

/* FSDP: the collectives of all layers are alike; rank 3 is late before one of them in each step. */
static void layers_that_are_all_alike(void **state)
{
	struct scene s = {.late = 3};
	struct rank *all[8];
	uint64_t seq = 0;

	for (int i = 0; i < 8; i++)
		all[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	for (uint64_t step = 0; step < 100; step++) {
		for (int layer = 0; layer < 6; layer++) {
			for (int i = 0; i < 8; i++)
				work(all[i], 40);
			if (layer == 2 && step >= 40)
				pause_for(all[3], 60);
			reduce(all, 8, 0xf, seq++, 0);
		}
	}
	play(&s);
	expect_straggler(&s, 3, 1003);
}

/* A rank is late because its link brings it the message late: the link is told, and the rank is not. */
static void a_slow_link_makes_its_receiver_late(void **state)
{
	struct scene s = {.late = -1};
	struct rank *first[4], *second[4];

	for (int i = 0; i < 8; i++) {
		struct rank *r = add_rank(&s, (uint32_t)i % 2, 1000 + (uint32_t)i, i);

		*(i < 4 ? &first[i] : &second[i - 4]) = r;
	}
	for (uint64_t step = 0; step < 200; step++) {
		for (int i = 0; i < 4; i++) {
			size_t sent;

			work(first[i], 60);
			message(first[i], second[i], 8, 0x11, step);
			sent = second[i]->count - 1;
			if (i == 1) { /* its messages take 50 ms longer */
				pause_for(second[i], 50);
				second[i]->calls[sent].leave_ns += 50 * MS;
				second[i]->calls[sent].wait_ns += (uint64_t)(50 * MS);
			}
			work(second[i], 120);
			message(second[i], first[i], 8, 0x11, step);
			work(first[i], 60);
		}
		reduce(first, 4, 0x21, step, 0);
		reduce(second, 4, 0x22, step, 0);
	}
	play(&s);
	assert_int_equal(s.told_count, 1);
	assert_int_equal(s.told[0].problem, FLEET_LINK);
	assert_int_equal(s.told[0].from_rank, 1);
	assert_int_equal(s.told[0].to_rank, 5);
	assert_string_equal(s.shown, "");
}

/* Two ranks of different groups are late, by different amounts and at different times: both, and nobody else. */
static void two_that_are_late_for_reasons_of_their_own(void **state)
{
	struct scene s = {.late = 1};
	struct rank *all[8];
	bool named[8] = {false};

	for (int i = 0; i < 8; i++)
		all[i] = add_rank(&s, (uint32_t)i / 4, 1000 + (uint32_t)i, i);
	train(all, 8, 0xa, 0, 30, 130, -1, 0);
	for (uint64_t step = 30; step < 200; step++) {
		for (int i = 0; i < 8; i++)
			work(all[i], 130);
		if (step % 3 == 0)
			pause_for(all[1], 80);
		if (step % 4 == 1)
			pause_for(all[6], 50);
		reduce(all, 8, 0xa, 2 * step, 0);
		reduce(all, 8, 0xa, 2 * step + 1, 0);
	}
	play(&s);
	for (size_t i = 0; i < s.told_count; i++) {
		assert_int_equal(s.told[i].problem, FLEET_STRAGGLER);
		named[s.told[i].rank] = true;
	}
	for (int i = 0; i < 8; i++)
		assert_int_equal(named[i], i == 1 || i == 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_stage_that_is_late_while_gradients_accumulate),
		cmocka_unit_test(two_jobs_on_the_same_nodes),
		cmocka_unit_test(an_elastic_restart_with_other_ranks),
		cmocka_unit_test(communicators_that_are_split_in_between),
		cmocka_unit_test(a_hang_of_two_that_miss_different_numbers),
		cmocka_unit_test(experts_whose_load_moves),
		cmocka_unit_test(an_evaluation_on_rank_0),
		cmocka_unit_test(what_was_shown_of_rank_0_is_withdrawn),
		cmocka_unit_test(a_clock_that_is_set_in_mid_run),
		cmocka_unit_test(all_are_slow_at_once),
		cmocka_unit_test(all_are_slow_and_one_is_slower),
		cmocka_unit_test(layers_that_are_all_alike),
		cmocka_unit_test(a_slow_link_makes_its_receiver_late),
		cmocka_unit_test(two_that_are_late_for_reasons_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
