/* SPDX-License-Identifier: Apache-2.0 */
/* test_fleet.c - the articles' scenes, played to the core: who is late, for what, why and what it
 * costs; what faults of agents and networks do not change; who is not blamed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "cluster/detect/fleet_private.h"
#include "cluster/simulate/play.h"

#define START ((int64_t)1700000000 * (int64_t)NS_PER_S)
#define MS    1000000

struct scene {
	struct play_settings s;
	struct rates *rates;
	struct fleet *fleet;
	struct play *play;
	struct fleet_notice first; /* that was told */
	int64_t first_ns;
	struct fleet_episode shown; /* the first, perhaps provisional */
	int64_t shown_ns;
	size_t began, ended, changed;
};

static struct job_spec job_of(uint32_t ranks, uint64_t step_ns, uint32_t steps)
{
	return (struct job_spec){.seed = 7,
		.data = ranks,
		.tensor = 1,
		.pipeline = 1,
		.microbatches = 1,
		.layers = 1,
		.buckets = 1,
		.steps = steps,
		.step_ns = step_ns,
		.jitter = 0.002};
}

static struct simulation_settings agents_of(uint32_t gpus)
{
	return (struct simulation_settings){.seed = 11,
		.cluster = "c1",
		.gpus_per_node = gpus,
		.gpu_model = "NVIDIA H100 80GB HBM3",
		.provider = "lambda",
		.start_ns = START,
		.push_ns = 10 * NS_PER_S,
		.batch_ns = NS_PER_S / 4,
		.latency_ns = 2 * MS};
}

static void scene_begin(struct scene *s)
{
	struct fleet_settings f = fleet_defaults;

	assert_int_equal(rates_builtin(&s->rates), 0);
	f.nodes = nodes_defaults;
	f.calls = calls_defaults;
	f.rates = s->rates;
	f.seed = 3;
	assert_int_equal(fleet_new(&f, &s->fleet), 0);
	assert_int_equal(play_new(&s->s, &s->play), 0);
}

/* To the end, a tick at a time; notes when the first episode was told. */
static void scene_run(struct scene *s)
{
	struct fleet_notice n;
	size_t cursor;
	int r = 1;

	while (r > 0) {
		r = play_until(s->play, s->fleet, play_now(s->play) + PLAY_TICK_NS);
		assert_true(r >= 0);
		cursor = 0;
		if (!s->shown_ns && fleet_episode_next(s->fleet, "c1", &cursor, &s->shown)) {
			s->shown_ns = play_now(s->play);
			print_message("# %.2f s: shown: %s\n", (double)(s->shown_ns - START) / 1e9,
				s->shown.text);
		}
		while (fleet_notice(s->fleet, &n)) {
			if (!s->began && n.kind == FLEET_NOTICE_BEGAN) {
				s->first = n;
				s->first_ns = play_now(s->play);
			}
			if (n.kind == FLEET_NOTICE_BEGAN)
				print_message("# %.2f s: %s\n",
					(double)(play_now(s->play) - START) / 1e9, n.episode.text);
			s->began += n.kind == FLEET_NOTICE_BEGAN;
			s->ended += n.kind == FLEET_NOTICE_ENDED;
			s->changed += n.kind == FLEET_NOTICE_CHANGED;
		}
	}
}

static void scene_end(struct scene *s)
{
	play_free(s->play);
	fleet_free(s->fleet);
	rates_free(s->rates);
}

static struct fleet_episode worst(const struct scene *s)
{
	struct fleet_episode e = {0};
	size_t cursor = 0;

	assert_true(fleet_episode_next(s->fleet, "c1", &cursor, &e));
	return e;
}

/* "Rank 41 of 64, 80 ms behind": 12.55 USD an hour at Lambda's price of an H100. */
static void test_rank_41_of_64(void **state)
{
	static const struct push_report why = {
		.cause = "its loader reads from a disk that rsync keeps "
			 "busy (train.py:41)",
		.fix = "move rsync",
		.confidence = 0.9};
	struct scene s = {.s = {.job = job_of(64, NS_PER_S - 80 * MS, 40),
				  .agents = agents_of(8),
				  .report = &why}};
	struct fleet_episode e;

	s.s.job.fault = JOB_LATE;
	s.s.job.faulty[0] = 41;
	s.s.job.faulty_count = 1;
	s.s.job.late_ns = 80 * MS;
	s.s.job.period = 1;
	s.s.job.from_step = 5;
	scene_begin(&s);
	scene_run(&s);
	e = worst(&s);
	assert_int_equal(s.began, 1);
	assert_int_equal(e.problem, FLEET_STRAGGLER);
	assert_int_equal(e.rank, 41);
	assert_string_equal(e.node, "node-5");
	assert_true(e.lag_ns > 79 * MS && e.lag_ns < 81 * MS);
	assert_true(e.cost.priced);
	print_message("# %.2f USD/h, %s\n", e.cost.per_hour, e.text);
	assert_true(fabs(e.cost.per_hour - 20.11) <
		    1.04); /* steps vary, so not all of it is waiting for it */
	assert_non_null(strstr(e.text, "train.py:41"));
	assert_string_equal(e.fix, "move rsync");
	/* told after the third late step, which is not chance any more */
	assert_true(s.first_ns - play_first_late(s.play) < (int64_t)(5 * NS_PER_S));
	/* but shown within a second of the first, and of nobody else */
	assert_true(s.shown.provisional);
	assert_int_equal(s.shown.rank, 41);
	assert_non_null(strstr(s.shown.text, "late just now"));
	assert_true(s.shown_ns - play_first_late(s.play) <= (int64_t)NS_PER_S);
	scene_end(&s);
}

static void test_rank_5_every_14_steps(void **state)
{
	static const struct push_report why = {.cause = "its loader sleeps", .confidence = 0.9};
	struct scene s = {
		.s = {.job = job_of(8, 200 * MS, 300), .agents = agents_of(2), .report = &why}};
	struct fleet_episode e;

	s.s.job.fault = JOB_LATE;
	s.s.job.faulty[0] = 5;
	s.s.job.faulty_count = 1;
	s.s.job.late_ns = 290 * MS;
	s.s.job.period = 14;
	scene_begin(&s);
	scene_run(&s);
	e = worst(&s);
	assert_int_equal(s.began, 1);
	assert_int_equal(e.rank, 5);
	assert_int_equal(e.period, 14);
	assert_true(e.lag_ns > 285 * MS && e.lag_ns < 295 * MS);
	assert_string_equal(e.node, "node-2");
	assert_non_null(strstr(e.text, "every 14th step"));
	assert_null(strstr(s.first.episode.text, "loader"));
	assert_int_equal(s.changed, 1); /* why came after who */
	assert_non_null(strstr(e.text, "its loader sleeps"));
	scene_end(&s);
}

static void test_healthy_is_quiet(void **state)
{
	struct scene s = {.s = {.job = job_of(64, 500 * MS, 600), .agents = agents_of(8)}};

	s.s.job.jitter = 0.01;
	scene_begin(&s);
	scene_run(&s);
	assert_int_equal(s.began, 0);
	scene_end(&s);
}

/* What happens to messages does not change who is blamed. */
static void test_faults_of_the_network(void **state)
{
	const int64_t end = START + 300 * (int64_t)NS_PER_S;
	const struct simulation_fault faults[] = {
		{SIMULATION_DUPLICATES, UINT32_MAX, START, end, 0.3},
		{SIMULATION_REORDER, UINT32_MAX, START, end, 2},
		{SIMULATION_CLOCK_STEP, 1, START + 15 * (int64_t)NS_PER_S, end, 0.05},
		{SIMULATION_RESTART, 2, START + 20 * (int64_t)NS_PER_S, end, 0},
		{SIMULATION_PARTITION, 3, START + 10 * (int64_t)NS_PER_S,
			START + 14 * (int64_t)NS_PER_S, 0},
	};
	struct scene s = {.s = {.job = job_of(32, 300 * MS, 150), .agents = agents_of(8)}};

	s.s.agents.faults = faults;
	s.s.agents.fault_count = ARRAY_SIZE(faults);
	s.s.job.fault = JOB_LATE;
	s.s.job.faulty[0] = 17;
	s.s.job.faulty_count = 1;
	s.s.job.late_ns = 60 * MS;
	s.s.job.period = 1;
	scene_begin(&s);
	scene_run(&s);
	assert_true(play_counts(s.play).duplicate > 0);
	assert_int_equal(worst(&s).rank, 17);
	for (size_t cursor = 0;;) {
		struct fleet_episode e;

		if (!fleet_episode_next(s.fleet, "c1", &cursor, &e))
			break;
		if (e.problem == FLEET_STRAGGLER)
			assert_int_equal(e.rank, 17);
	}
	scene_end(&s);
}

/* One node of many that is slow from its first push on. */
static void test_slow_from_boot(void **state)
{
	const struct simulation_fault slow = {SIMULATION_SLOW, 9, START, INT64_MAX, 0.6};
	struct scene s = {.s = {.agents = agents_of(8)}};
	struct fleet_episode e;

	s.s.agents.nodes = 16;
	s.s.agents.end_ns = START + 120 * (int64_t)NS_PER_S;
	s.s.agents.faults = &slow;
	s.s.agents.fault_count = 1;
	scene_begin(&s);
	scene_run(&s);
	e = worst(&s);
	assert_int_equal(s.began, 1);
	assert_int_equal(s.ended, 0);
	assert_int_equal(e.problem, FLEET_NODE);
	assert_string_equal(e.node, "node-9");
	scene_end(&s);
}

static void test_silent_node(void **state)
{
	struct simulation_fault silence = {
		SIMULATION_SILENCE, 3, START + 60 * (int64_t)NS_PER_S, INT64_MAX, 0};
	struct scene s = {.s = {.agents = agents_of(8)}};

	s.s.agents.nodes = 8;
	s.s.agents.end_ns = START + 180 * (int64_t)NS_PER_S;
	s.s.agents.faults = &silence;
	s.s.agents.fault_count = 1;
	scene_begin(&s);
	scene_run(&s);
	assert_int_equal(s.began, 1);
	assert_int_equal(s.first.episode.problem, FLEET_SILENT);
	assert_string_equal(s.first.episode.node, "node-3");
	scene_end(&s);
}

/* A job of three nodes beside one of two: the third node says nothing any more from @silent_s on, without a goodbye. */
static void play_third_node(struct scene *s, int64_t silent_s)
{
	struct simulation_fault silence = {
		SIMULATION_SILENCE, 2, START + silent_s * (int64_t)NS_PER_S, INT64_MAX, 0};

	*s = (struct scene){.s = {.job = job_of(24, 200 * MS, 100),
				    .beside = job_of(16, 200 * MS, 600),
				    .agents = agents_of(8)}};
	s->s.beside.seed = 8;
	s->s.beside.first_pid = 500000;
	s->s.agents.faults = &silence;
	s->s.agents.fault_count = 1;
	scene_begin(s);
	scene_run(s);
}

static void add_times(void *arg, const struct simulation_message *m)
{
	uint64_t *sum = arg;

	for (size_t i = 0; m->kind == SIMULATION_CALLS && i < m->calls->count; i++)
		*sum += (uint64_t)m->calls->items[i].enter_ns;
}

static uint64_t times_of(struct play_settings s)
{
	struct scene scene = {.s = s};
	uint64_t sum = 0;

	scene.s.watch = add_times;
	scene.s.watch_arg = &sum;
	scene_begin(&scene);
	scene_run(&scene);
	scene_end(&scene);
	return sum;
}

/* Of two jobs on a node neither brings a clock of its own; the node's is the agents'. */
static void test_jobs_on_a_node_have_its_clock(void **state)
{
	struct simulation_fault ahead = {SIMULATION_CLOCK_STEP, 1, START, INT64_MAX, 0.02};
	struct play_settings s = {.job = job_of(4, 200 * MS, 5),
		.beside = job_of(4, 150 * MS, 5),
		.agents = agents_of(2)};
	uint64_t right = times_of(s);

	assert_true(right > 0);
	s.job.clock_error_ns = s.beside.clock_error_ns = 20 * MS;
	assert_true(times_of(s) == right);
	s.agents.faults = &ahead; /* positive control */
	s.agents.fault_count = 1;
	assert_true(times_of(s) > right);
}

/* A smaller job goes on where a larger one has ended: the node that it lacks is missed by nobody. */
static void test_node_whose_job_ended(void **state)
{
	struct scene s;
	struct node_view v;

	play_third_node(&s, 22);
	assert_int_equal(s.began, 0);
	assert_false(nodes_find(fleet_nodes(s.fleet), "c1", "node-2", &v));
	assert_true(nodes_find(fleet_nodes(s.fleet), "c1", "node-1", &v));
	scene_end(&s);
	play_third_node(&s, 10); /* positive control: while its job goes on */
	assert_true(s.began > 0);
	assert_true(nodes_find(fleet_nodes(s.fleet), "c1", "node-2", &v));
	assert_true(v.straggler && v.reason == NODES_SILENT_REASON);
	scene_end(&s);
}

static void test_hang(void **state)
{
	struct scene s = {.s = {.job = job_of(16, 200 * MS, 50), .agents = agents_of(8)}};

	s.s.job.fault = JOB_HANG;
	s.s.job.faulty[0] = 11;
	s.s.job.faulty_count = 1;
	s.s.job.from_step = 25;
	s.s.agents.end_ns = START + 20 * (int64_t)NS_PER_S;
	scene_begin(&s);
	scene_run(&s);
	assert_true(s.began >= 1);
	assert_int_equal(s.first.episode.problem, FLEET_HANG);
	assert_int_equal(s.first.episode.rank, 11);
	assert_true(s.first_ns - (START + 5 * (int64_t)NS_PER_S) < 6 * (int64_t)NS_PER_S);
	scene_end(&s);
}

/* Whoever can make two names the same to a plain hash (FNV-1a has both) would have another's cluster, or its incidents. */
static void test_names_made_to_be_the_same(void **state)
{
	static const char *const names[] = {"beta", "c2kfwacQOAUEYDLP0IPC=WA"};
	struct fleet_settings settings = fleet_defaults;
	struct push_report report = {.who.node = "gpu-1", .world_rank = 1, .cause = "slow"};
	struct episode *e[2];
	struct fleet *f = NULL;

	assert_true(
		hash_bytes(names[0], strlen(names[0])) == hash_bytes(names[1], strlen(names[1])));
	settings.nodes = nodes_defaults;
	settings.calls = calls_defaults;
	assert_int_equal(fleet_new(&settings, &f), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(report.who.cluster, sizeof(report.who.cluster), "%s", names[i]);
		assert_int_equal(fleet_take_report(f, &report, START), 0);
	}
	for (int i = 0; i < 2; i++) {
		struct cluster *c = cluster_find(f, names[i]);

		assert_non_null(c);
		e[i] = episode_get(
			f, c, FLEET_NODE, 42); /* and should a key be the same all the same */
		assert_string_equal(e[i]->e.cluster, names[i]);
	}
	assert_ptr_not_equal(e[0], e[1]);
	assert_null(episode_find(f, names[0], FLEET_LINK, 42));
	assert_null(episode_get(f, NULL, FLEET_NODE, 42));
	fleet_free(f);
}

/* What a rate is known for is charged once: neither the time before it, nor one that passed without a loss. */
static void test_charges(void **state)
{
	struct fleet_settings settings = fleet_defaults;
	struct cluster c = {.name = "c1"};
	struct fleet *f = NULL;
	struct episode *e;

	settings.nodes = nodes_defaults;
	settings.calls = calls_defaults;
	assert_int_equal(fleet_new(&settings, &f), 0);
	f->now_ns = START + 3600 * (int64_t)NS_PER_S;
	e = episode_get(f, &c, FLEET_STRAGGLER, 1);
	assert_non_null(e);
	e->e.since_ns = START;
	e->lost_rate = 2;
	e->paid_ns = f->now_ns - 60 * (int64_t)NS_PER_S;
	e->rated_ns = f->now_ns - 10 * (int64_t)NS_PER_S;
	episode_account(f, NS_PER_S);
	assert_true(e->e.cost.gpu_seconds == 100);
	f->now_ns += 600 * (int64_t)NS_PER_S;
	e->e.late_ns = f->now_ns; /* seen once more, but for how much is not known */
	episode_account(f, NS_PER_S);
	assert_true(e->e.cost.gpu_seconds == 100);
	e->lost_rate = 0;
	e->rated_ns = f->now_ns;
	episode_account(f, NS_PER_S);
	e->lost_rate = 2;
	episode_account(f, NS_PER_S);
	assert_true(e->e.cost.gpu_seconds == 100);
	e->rated_ns = f->now_ns += 5 * (int64_t)NS_PER_S;
	episode_account(f, NS_PER_S);
	assert_true(e->e.cost.gpu_seconds == 110);
	fleet_free(f);
}

/* One that gets slower and slower is not charged at its last rate for the time when it was hardly late. */
static void test_cost_of_a_drift(void **state)
{
	enum { RANKS = 16, STEPS = 900 };
	struct scene s = {.s = {.job = job_of(RANKS, 200 * MS, STEPS), .agents = agents_of(8)}};
	double lost = 0;

	s.s.job.fault = JOB_DRIFT;
	s.s.job.amount = 1;
	s.s.job.faulty_count = 1;
	for (int i = 0; i < STEPS; i++)
		lost += 0.2 * i / STEPS * (RANKS - 1);
	scene_begin(&s);
	scene_run(&s);
	print_message("# %.0f of %.0f GPU-seconds\n", worst(&s).cost.gpu_seconds, lost);
	assert_true(worst(&s).cost.gpu_seconds > 0.7 * lost);
	assert_true(worst(&s).cost.gpu_seconds < 1.02 * lost);
	scene_end(&s);
}

/* A model that is in no table is unpriced in the details; the sentence is silent about money. */
static void test_unpriced(void **state)
{
	struct scene s = {.s = {.job = job_of(8, 200 * MS, 60), .agents = agents_of(8)}};
	struct fleet_episode e;

	s.s.agents.gpu_model = "NVIDIA Z9000";
	s.s.agents.push_ns = NS_PER_S;
	s.s.job.fault = JOB_SLOW;
	s.s.job.amount = 0.5;
	s.s.job.faulty_count = 1;
	scene_begin(&s);
	scene_run(&s);
	e = worst(&s);
	assert_false(e.cost.priced);
	assert_true(e.cost.gpu_seconds > 0);
	assert_string_equal(e.cost.unpriced, "NVIDIA Z9000");
	assert_null(strstr(e.text, "price"));
	assert_null(strstr(e.text, "cost"));
	assert_null(strstr(e.text, "Z9000"));
	scene_end(&s);
}

/* A model that is listed has a price, wherever it runs; what it is a guess of is said. */
static void test_provider_unknown(void **state)
{
	struct scene s = {.s = {.job = job_of(8, 200 * MS, 60), .agents = agents_of(8)}};
	struct fleet_episode e;

	s.s.agents.gpu_model = "NVIDIA H200";
	s.s.agents.provider = "";
	s.s.agents.push_ns = NS_PER_S;
	s.s.job.fault = JOB_SLOW;
	s.s.job.amount = 0.5;
	s.s.job.faulty_count = 1;
	scene_begin(&s);
	scene_run(&s);
	e = worst(&s);
	assert_true(e.cost.priced && e.cost.is_middle && e.cost.is_guess);
	assert_true(e.cost.per_hour > 0 && e.cost.total > 0);
	assert_string_equal(e.cost.unpriced, "");
	assert_non_null(strstr(e.text, "that costs about $"));
	assert_non_null(strstr(e.text, "at about $7.11 per GPU hour, provider unknown"));
	assert_null(strstr(e.text, "unpriced"));
	scene_end(&s);
}

/* All eight ranks of a node are slow: that is one cause, and told once. */
static void test_whole_node(void **state)
{
	struct scene s = {.s = {.job = job_of(32, 200 * MS, 200), .agents = agents_of(8)}};
	struct fleet_episode e;

	s.s.job.fault = JOB_SLOW;
	s.s.job.amount = 0.3;
	for (uint32_t i = 0; i < 8; i++)
		s.s.job.faulty[i] = 16 + i;
	s.s.job.faulty_count = 8;
	scene_begin(&s);
	scene_run(&s);
	e = worst(&s);
	assert_int_equal(s.began, 1);
	assert_int_equal(e.problem, FLEET_STRAGGLER);
	assert_int_equal(e.ranks, 8);
	assert_int_equal(e.rank, -1);
	assert_string_equal(e.node, "node-2");
	assert_non_null(strstr(e.text, "each of the 8 ranks on node-2"));
	assert_true(e.share > 0.15);
	scene_end(&s);
}

/* What a node says of itself is an episode until it says otherwise; who was never heard of says nothing. */
static void test_own_verdict(void **state)
{
	struct scene s = {.s = {.job = {.steps = 0}, .agents = agents_of(8)}};
	struct push_straggler own = {.dominant = "compute", .score = 0.6, .threshold = 0.9};
	struct push_who who = {.cluster = "c1", .node = "stranger", .rank = -1};
	struct fleet_episode e;
	size_t cursor = 0;
	int64_t now;

	s.s.agents.nodes = 4;
	s.s.agents.push_ns = 5 * NS_PER_S;
	s.s.agents.end_ns = START + 60 * (int64_t)NS_PER_S;
	scene_begin(&s);
	scene_run(&s);
	assert_int_equal(s.began, 0);
	now = play_now(s.play);
	assert_int_equal(fleet_take_straggler(s.fleet, &who, &own, now), 0);
	assert_false(fleet_episode_next(s.fleet, "c1", &cursor, &e));
	snprintf(who.node, sizeof(who.node), "node-1");
	assert_int_equal(fleet_take_straggler(s.fleet, &who, &own, now), 0);
	e = worst(&s);
	assert_int_equal(e.problem, FLEET_NODE);
	assert_string_equal(e.node, "node-1");
	assert_non_null(strstr(e.text, "by its own report: its compute stands out"));
	own.resolved = true;
	assert_int_equal(fleet_take_straggler(s.fleet, &who, &own, now), 0);
	e = worst(&s);
	assert_int_not_equal(e.until_ns, 0);
	scene_end(&s);
}

/* A link between two stages: both ranks are on time, neither is blamed. */
static void a_slow_link_is_nobodys_fault(void **state)
{
	struct scene s = {
		.s = {.job = job_of(4, 200 * MS, 150), .agents = agents_of(8)},
	};
	const struct fleet_episode *e = &s.first.episode;

	s.s.job.pipeline = 4;
	s.s.job.microbatches = 8;
	s.s.job.fault = JOB_LINK;
	s.s.job.faulty[0] = 5;
	s.s.job.faulty_count = 1;
	s.s.job.link_ns = 50 * MS;
	scene_begin(&s);
	scene_run(&s);
	assert_int_equal(s.began, 1);
	assert_int_equal(e->problem, FLEET_LINK);
	assert_int_equal(e->from_rank, 5);
	assert_int_equal(e->to_rank, 9);
	assert_int_equal(e->rank, -1);
	assert_string_equal(e->node, "");
	assert_non_null(strstr(e->text, "the link rank 5 (node-0) -> rank 9 (node-1) is slow"));
	assert_non_null(strstr(e->text, "on peers; both ranks are on time; "));
	assert_true(e->share > 0.05);
	scene_end(&s);
}

/* A stage with more layers than the others is how work is divided; one that becomes slower is told, and as long as it lasts,
 * though its past has left the window. */
static void a_stage_is_told_if_it_becomes_slow(void **state)
{
	for (int becomes = 0; becomes < 2; becomes++) {
		struct scene s = {
			.s = {.job = job_of(2, 200 * MS, 500), .agents = agents_of(8)},
		};

		s.s.job.pipeline = 4;
		s.s.job.microbatches = 8;
		s.s.job.clips = true;
		s.s.job.fault = JOB_STAGE;
		s.s.job.stage = 1;
		s.s.job.amount = 0.8;
		s.s.job.from_step = becomes ? 100 : 0;
		scene_begin(&s);
		scene_run(&s);
		assert_int_equal(s.began, becomes);
		assert_int_equal(s.ended, 0);
		if (becomes) {
			assert_int_equal(s.first.episode.problem, FLEET_STAGE);
			assert_int_equal(s.first.episode.stage, 1);
			assert_true(s.shown_ns > START + 100 * 200 * (int64_t)MS);
		}
		scene_end(&s);
	}
}

/* All ranks of a communicator wait for the network since a while; it is told as long as it lasts, though its past
 * has left the window. */
static void a_slow_collective_is_nobodys_fault(void **state)
{
	struct scene s = {
		.s = {.job = job_of(16, 200 * MS, 700), .agents = agents_of(8)},
	};
	const struct fleet_episode *e = &s.first.episode;

	s.s.job.fault = JOB_LINK;
	s.s.job.faulty_count = 1;
	s.s.job.link_ns = 50 * MS;
	s.s.job.from_step = 150;
	scene_begin(&s);
	scene_run(&s);
	assert_int_equal(s.began, 1);
	assert_int_equal(s.ended, 0);
	assert_int_equal(e->problem, FLEET_COLLECTIVE);
	assert_int_equal(e->rank, -1);
	assert_non_null(
		strstr(e->text, "the collective itself is slow: AllReduce of communicator "));
	assert_non_null(strstr(e->text, " before; all 16 ranks are on time; "));
	scene_end(&s);
}

/* A node's clock is set by half a minute while the job runs: nobody is late for that, and who is late is named as
 * before. */
static void a_clock_that_jumps_is_nobodys_lateness(void **state)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		struct simulation_fault jump = {.kind = SIMULATION_CLOCK_STEP,
			.node = 1,
			.from_ns = START + 20 * (int64_t)NS_PER_S,
			.to_ns = INT64_MAX,
			.value = 30};
		struct scene s = {
			.s = {.job = job_of(16, 200 * MS, 250), .agents = agents_of(4)},
		};

		s.s.agents.faults = &jump;
		s.s.agents.fault_count = 1;
		if (is_late) {
			s.s.job.fault = JOB_SLOW;
			s.s.job.amount = 0.5;
			s.s.job.faulty[0] = 6; /* on that node */
			s.s.job.faulty_count = 1;
		}
		scene_begin(&s);
		scene_run(&s);
		assert_int_equal(s.began, is_late);
		if (is_late)
			assert_int_equal(s.first.episode.rank, 6);
		scene_end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rank_41_of_64),
		cmocka_unit_test(test_rank_5_every_14_steps),
		cmocka_unit_test(test_healthy_is_quiet),
		cmocka_unit_test(test_faults_of_the_network),
		cmocka_unit_test(test_slow_from_boot),
		cmocka_unit_test(test_silent_node),
		cmocka_unit_test(test_node_whose_job_ended),
		cmocka_unit_test(test_jobs_on_a_node_have_its_clock),
		cmocka_unit_test(test_whole_node),
		cmocka_unit_test(test_own_verdict),
		cmocka_unit_test(test_hang),
		cmocka_unit_test(test_charges),
		cmocka_unit_test(test_names_made_to_be_the_same),
		cmocka_unit_test(test_cost_of_a_drift),
		cmocka_unit_test(test_unpriced),
		cmocka_unit_test(test_provider_unknown),
		cmocka_unit_test(a_clock_that_jumps_is_nobodys_lateness),
		cmocka_unit_test(a_slow_link_is_nobodys_fault),
		cmocka_unit_test(a_stage_is_told_if_it_becomes_slow),
		cmocka_unit_test(a_slow_collective_is_nobodys_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
