/* SPDX-License-Identifier: Apache-2.0 */
/* test_truths.c - recordings written by hand whose truth is known: what must be named, with which
 * share, how severely, and what must not be said. */
#include <math.h>

#include "../unit/verdict.h"
#include "published.h"

#define SECOND 1000000 /* in microseconds, as all times of a scene */

/* Within 5 % of the truth. */
static void assert_share(double is, double truth)
{
	if (is < truth - 0.05 || is > truth + 0.05)
		fail_msg("%.3f is not about %.3f", is, truth);
}

static void assert_silent(const struct verdicts *v)
{
	for (size_t i = 0; i < v->count; i++)
		print_message("%s %s\n", severity_name(v->list[i].severity), v->list[i].summary);
	assert_int_equal(v->count, 0);
}

/* Nobody is told of MEDIUM or worse: there is nothing to wake anybody for. */
static void assert_quiet(const struct verdicts *v)
{
	for (size_t i = 0; i < v->count; i++)
		if (v->list[i].severity > SEVERITY_LOW)
			fail_msg("%s %s", severity_name(v->list[i].severity), v->list[i].summary);
}

static double share_of(const struct incident *inc, const char *culprit)
{
	uint64_t ns = 0;

	for (int i = 0; i < inc->cause_count; i++)
		if (!strcmp(inc->causes[i].culprit, culprit))
			ns += inc->causes[i].ns;
	return inc->excess_ns ? (double)ns / (double)inc->excess_ns : 0;
}

/* Steps whose waits of 5 ms become 45: preempted for 40 ms, then @spins_us more of spinning. */
static void preempted_waits(struct scene *s, int64_t spins_us)
{
	int64_t at = 0;

	for (int i = 0; i < 300; i++)
		scene_step(s, &at, 45000, 5000);
	for (int i = 0; i < 300; i++) {
		int64_t begin = scene_step(s, &at, 45000, 40100 + spins_us);

		scene_stay(s, VICTIM, begin + 100, 40000, 40000, WIRE_PREEMPTED, HOG, "rival");
	}
	scene_aggregate(s);
}

/* The GPU took as long: what is said is that it did, and nobody is blamed. */
static void a_stay_in_mid_wait_costs_nothing(void **state)
{
	SCENE;

	preempted_waits(&s, 5000);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_CPU_CONTENTION));
	for (size_t i = 0; i < v.count; i++) {
		assert_true(share_of(&v.list[i], "rival") == 0);
		assert_null(strstr(v.list[i].summary, "rival"));
	}
}

/* The control: the wait returns as soon as its thread has the CPU again. */
static void the_last_stay_of_a_wait_costs(void **state)
{
	SCENE;

	preempted_waits(&s, 20);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_CPU_CONTENTION);

	assert_non_null(inc);
	assert_int_equal(inc->severity, SEVERITY_HIGH);
	assert_share(share_of(inc, "rival"), 1);
}

/* Steps of 10 ms; from second @from of 60 on each takes 20 ms more, in which a launch is preempted. */
static void contended_launches(struct scene *s, int from)
{
	for (int64_t at = 0; at < 60LL * SECOND;) {
		bool hit = at >= (int64_t)from * SECOND;

		scene_call(s, CUDA_LAUNCH, at, hit ? 20010 : 10);
		if (hit)
			scene_stay(s, VICTIM, at + 5, 20000, 20000, WIRE_PREEMPTED, HOG, "rival");
		scene_step(s, &at, hit ? 26000 : 6000, 4000);
	}
	scene_aggregate(s);
}

static void contention_from_the_first_to_the_last_second(void **state)
{
	SCENE;

	contended_launches(&s, 0);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_CPU_CONTENTION);

	assert_non_null(inc);
	assert_int_equal(inc->severity, SEVERITY_HIGH);
	assert_share((double)inc->excess_ns / 60e9, 2.0 / 3);
	assert_share(share_of(inc, "rival"), 1);
	assert_int_equal(inc->causes[0].culprit_pid, HOG);
}

static void contention_for_most_of_the_recording(void **state)
{
	SCENE;

	contended_launches(&s, 10);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_CPU_CONTENTION);

	assert_non_null(inc);
	assert_int_equal(inc->severity, SEVERITY_HIGH);
	assert_share(share_of(inc, "rival"), 1);
	assert_share((double)inc->excess_ns / 60e9, 2.0 / 3 * 5 / 6);
	assert_ptr_equal(inc, &v.list[0]);
}

/* Ten rivals in turn, one for each stay: many processes, not nobody. */
static void a_crowd_in_the_run_queue(void **state)
{
	SCENE;
	const struct incident *inc;
	int64_t at = 0;

	scene_steps(&s, &at, 400);
	for (uint32_t i = 0; i < 400; i++) {
		char name[COMM_LEN];

		snprintf(name, sizeof(name), "rival-%u", i % 10);
		scene_hogged(&s, &at, 1, HOG + i % 10, name);
	}
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	inc = verdict(&v, PROBLEM_CPU_CONTENTION);
	assert_non_null(inc);
	assert_int_equal(v.count, 1);
	assert_share((double)inc->excess_ns / (400 * 19e6), 1);
}

/* 60 s of waits for a GPU that is always busy: of 8 ms, from second 20 to 40 of @slow_us; with
 * readings of its clock. */
static struct recording busy_gpu(struct scene *s, struct gpu_sample g[60], int64_t slow_us,
	int64_t slow_mhz, int64_t reasons)
{
	struct recording rec;
	int64_t dur;

	for (int64_t at = 0; at < 60LL * SECOND; at += dur + 500) {
		bool is_slow = at >= 20LL * SECOND && at < 40LL * SECOND;

		dur = (is_slow ? slow_us : 8000) + (int64_t)scene_random(s, 200);
		scene_call(s, CUDA_LAUNCH, at, 10);
		scene_call(s, CUDA_STREAM_SYNC, at + 400, dur);
	}
	scene_aggregate(s);
	for (int i = 0; i < 60; i++) {
		bool is_slow = i >= 20 && i < 40;

		gpu_sample_init(&g[i]);
		g[i].time.ns = SCENE_T0_NS + i * (int64_t)NS_PER_S;
		g[i].index = 0;
		g[i].util_gpu_pct = 100;
		g[i].throttle_reasons = is_slow ? reasons : 0;
		g[i].sm_clock_mhz = is_slow ? slow_mhz : 1755;
	}
	rec = scene_recording(s);
	rec.gpus = g;
	rec.gpu_count = 60;
	return rec;
}

static void a_lowered_clock_without_a_reason(void **state)
{
	SCENE;
	struct gpu_sample g[60];
	struct recording rec = busy_gpu(&s, g, 20000, 700, 0);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_THROTTLE);

	assert_non_null(inc);
	assert_true(inc->severity >= SEVERITY_MEDIUM);
	assert_true(strstr(inc->summary, "700") || strstr(inc->root_cause, "700"));
	assert_share((double)inc->excess_ns / 20e9, 0.6);
	assert_share(inc->explained, 1);
}

/* A power cap that costs 3 % of the clock, and a batch that takes 4.5 times as long. */
static void a_larger_batch_is_no_throttling(void **state)
{
	SCENE;
	struct gpu_sample g[60];
	struct recording rec = busy_gpu(&s, g, 36000, 1700, 4);
	VERDICTS v = verdicts_of(&rec);

	/* nor worth a note: a busy GPU is at its power limit most of the time */
	assert_null(verdict(&v, PROBLEM_THROTTLE));
}

static void a_clock_far_below_the_usual_is_noted(void **state)
{
	SCENE;
	struct gpu_sample g[60];
	struct recording rec = busy_gpu(&s, g, 5000, 1400, 4);
	VERDICTS v = verdicts_of(&rec);

	assert_non_null(verdict(&v, PROBLEM_THROTTLE));
}

/* Waits that take twice as long at half the clock, and again as long for another reason. */
static void throttling_explains_no_more_than_the_clocks(void **state)
{
	SCENE;
	struct gpu_sample g[60];
	struct recording rec = busy_gpu(&s, g, 24000, 878, 64);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_THROTTLE);

	assert_non_null(inc);
	assert_share((double)inc->excess_ns / 20e9, 0.66);
	assert_true(inc->explained <= 1);
}

/* A server: 600 requests, each a copy and a wait of about 5 ms, after pauses that @pause_us gives;
 * @by_net: in a receive on a socket, else asleep elsewhere (epoll). */
static void server(struct scene *s, int64_t (*pause_us)(struct scene *, int, int64_t), bool by_net)
{
	int64_t at = 0;

	for (int i = 0; i < 600; i++) {
		int64_t pause = pause_us(s, i, at), work = 3000 + (int64_t)scene_random(s, 4000);
		int64_t begin = at + pause;

		scene_call(s, CUDA_MEMCPY, begin, 100)->flags = pause >= 1000 ? WIRE_AFTER_GAP : 0;
		scene_call(s, CUDA_STREAM_SYNC, begin + 200, work);
		scene_stay(s, VICTIM, at + 20, pause - 40, 15, 0, 0, "");
		if (by_net)
			scene_add(s, SOURCE_NET, NET_RECV, VICTIM, VICTIM, at + 10, pause - 20)
				->wait_ns = (uint64_t)(pause - 30) * 1000;
		at = begin + 200 + work;
	}
	scene_aggregate(s);
}

/* Exponential, with a mean of 50 ms. */
static int64_t poisson(struct scene *s, int i, int64_t at_us)
{
	double u = ((double)scene_random(s, 1000000) + 1) / 1000001;

	return 200 + (int64_t)(-50000 * log(u));
}

/* One every 50 ms, whatever the last one took. */
static int64_t fixed_rate(struct scene *s, int i, int64_t at_us)
{
	return MAX((int64_t)i * 50000 - at_us, INT64_C(200)) + (int64_t)scene_random(s, 300);
}

/* The control: what is asked for is ready after 45 ms or a little more. */
static int64_t answered(struct scene *s, int i, int64_t at_us)
{
	return 45000 + (int64_t)scene_random(s, 3000);
}

static void idle_servers_are_healthy(void **state)
{
	int64_t (*const rates[])(struct scene *, int, int64_t) = {poisson, fixed_rate};

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		for (int by_net = 0; by_net < 2; by_net++) {
			SCENE;

			server(&s, rates[i], by_net);
			struct recording rec = scene_recording(&s);
			VERDICTS v = verdicts_of(&rec);

			assert_silent(&v);
		}
}

static void waits_for_answers_are_told(void **state)
{
	for (int by_net = 0; by_net < 2; by_net++) {
		SCENE;

		server(&s, answered, by_net);
		struct recording rec = scene_recording(&s);
		VERDICTS v = verdicts_of(&rec);

		assert_int_equal(v.count, 1);
		assert_true(v.list[0].problem == PROBLEM_STARVATION ||
			    (by_net && v.list[0].problem == PROBLEM_AGENT_COST));
		assert_true(v.list[0].severity >= SEVERITY_MEDIUM);
	}
}

/* 40 functions, each launched 50 times in turns: the first launch of each is slow, or the 21st of
 * @slow_repeats of them. */
static void launches_by_function(struct scene *s, bool is_first_slow, int slow_repeats)
{
	for (int i = 0; i < 2000; i++) {
		int function = i % 40, at = i / 40;
		bool is_slow = is_first_slow && at == 0;

		if (function < slow_repeats && at == 20)
			is_slow = true;
		scene_call(s, CUDA_LAUNCH, i * 20000, is_slow ? 19000 : 16)->arg0 =
			0x1000 + (uint64_t)function;
	}
}

static void first_launches_load_their_code(void **state)
{
	for (int with_aggregates = 0; with_aggregates < 2; with_aggregates++) {
		SCENE;

		launches_by_function(&s, true, 0);
		if (with_aggregates)
			scene_aggregate(&s);
		struct recording rec = scene_recording(&s);
		VERDICTS v = verdicts_of(&rec);
		const struct incident *inc = verdict(&v, PROBLEM_COLD_START);

		assert_int_equal(v.count, 1); /* not slow launches besides */
		assert_non_null(inc);
		assert_int_equal(inc->severity, SEVERITY_LOW);
		assert_has(inc->summary, "Lazy loading: the first launches of 40 functions");
		assert_share((double)inc->excess_ns / (40 * 19e6), 1);
		assert_has(inc->fixes[1], "CUDA_MODULE_LOADING=EAGER");
	}
}

/* As many launches are slow, but not because they are the first. */
static void repeated_launches_load_nothing(void **state)
{
	SCENE;

	launches_by_function(&s, false, 40);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_COLD_START));
}

/* The published recordings: @functions are loaded for @ms, and nothing else is slow. */
static void published_loads(const char *name, uint64_t functions, double ms)
{
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	char path[512];
	struct errinfo err = {0};

	if (!published_path(path, sizeof(path), name))
		skip();
	assert_int_equal(nodedb_read(path, NULL, &c, &err), 0);
	struct recording rec = {.events = c.events, .event_count = c.event_count};
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_COLD_START);

	assert_int_equal(v.count, 1);
	assert_non_null(inc);
	assert_has(inc->summary, "Lazy loading");
	assert_int_equal(inc->count, functions);
	assert_share((double)inc->excess_ns / (ms * 1e6), 1);
}

static void the_published_empty_cache(void **state)
{
	published_loads("pytorch-173382-empty-cache.db", 29, 345.8);
}

static void the_published_vllm(void **state)
{
	published_loads("vllm-37343-logprobs-amplification.db", 9, 142);
}

/* Rivals of one name in two containers, each of them in half of the slow calls. */
static void one_name_in_two_containers(void **state)
{
	static const struct process_home homes[] = {
		{.pid = VICTIM, .container_id = "aaaaaaaaaaaa"},
		{.pid = HOG, .container_id = "bbbbbbbbbbbb"},
		{.pid = HOG + 1, .container_id = "cccccccccccc"},
	};
	SCENE;

	int64_t at_us = 0;

	scene_steps(&s, &at_us, 400);
	for (uint32_t i = 0; i < 400; i++)
		scene_hogged(&s, &at_us, 1, HOG + i % 2, "burner");
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);

	rec.homes = homes;
	rec.home_count = ARRAY_SIZE(homes);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_NOISY_NEIGHBOUR);

	assert_non_null(inc);
	assert_share((double)inc->excess_ns / (400 * 19e6), 1);
	assert_true(inc->causes[0].culprit_pid == HOG || inc->causes[0].culprit_pid == HOG + 1);
	assert_has(inc->summary, "burner");

	rec.home_count = 0; /* the control: where nothing is known of containers they are one */
	VERDICTS one = verdicts_of(&rec);
	assert_share(share_of(verdict(&one, PROBLEM_CPU_CONTENTION), "burner"), 1);
}

/* Who has most in flight on the device is named; the other is no culprit of all of it. */
static void the_larger_of_two_disk_hogs(void **state)
{
	SCENE;
	int64_t at = 0;

	scene_steps(&s, &at, 400);
	for (int i = 0; i < 400; i++) {
		int64_t from = at + 500;

		scene_step(&s, &at, 79000, 1000);
		scene_stay(&s, VICTIM, from, 30000, 100, WIRE_UNINTERRUPTIBLE, 0, "swapper");
		scene_io(&s, IO_READ, VICTIM, "python3", from - 10, 29900, 16);
		scene_io(&s, IO_WRITE, 7001, "writer", from - 500, 32000, 6500);
		scene_io(&s, IO_WRITE, 7002, "indexer", from - 500, 32000, 3500);
	}
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	assert_int_equal(v.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_share((double)v.list->excess_ns / (400 * 30e6), 1);
	assert_int_equal(v.list->causes[0].culprit_pid, 7001);
}

/* Eight threads wait at once, each for a second longer than usual, eight times. */
static void threads_that_wait_at_once_lose_the_time_once(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 60; i++) {
		bool is_slow = i >= 40 && i < 48;

		for (uint32_t t = 0; t < 8; t++) {
			scene_add(&s, SOURCE_CUDA, CUDA_STREAM_SYNC, VICTIM, VICTIM + t, at,
				is_slow ? 999000 : 1000);
			if (is_slow)
				scene_stay(&s, VICTIM + t, at + 500, 998400, 998400, WIRE_PREEMPTED,
					HOG, "rival");
		}
		at += SECOND + (is_slow ? 998000 : 0);
	}
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_CPU_CONTENTION);

	assert_non_null(inc);
	assert_share((double)inc->excess_ns / 8e9, 1);
	assert_share(share_of(inc, "rival"), 1);
	assert_int_equal(inc->count, 8);
}

/* 2.5 times slower for 20 of 60 s, and nothing recorded says why. */
static void a_slower_gpu_without_a_cause(void **state)
{
	SCENE;
	struct gpu_sample g[60];
	struct recording rec = busy_gpu(&s, g, 20000, 1755, 0);

	rec.gpu_count = 0;
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_GOODPUT);

	assert_non_null(inc);
	assert_int_equal(v.count, 1);
	assert_share((double)inc->excess_ns / 12e9, 1);
	assert_int_equal(inc->causes[0].culprit_pid, 0);
}

/* The most severe first, and of those what costs most: a hog in every tenth step, and a disk in every fourth. */
static void order_follows_severity_and_the_time_lost(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 1000; i++) {
		bool by_cpu = i >= 500 && i % 10 == 0, by_disk = i >= 500 && i % 4 == 1;
		int64_t from = at;

		scene_step(&s, &at, 19000 + (by_cpu ? 15000 : 0) + (by_disk ? 15000 : 0), 1000);
		if (by_cpu)
			scene_stay(
				&s, VICTIM, from + 10, 15000, 15000, WIRE_PREEMPTED, HOG, "rival");
		if (by_disk)
			scene_stay(&s, VICTIM, from + 16000, 15000, 0, WIRE_UNINTERRUPTIBLE, 0,
				"swapper");
	}
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_true(v.count >= 2);
	for (size_t i = 0; i + 1 < v.count; i++)
		assert_true(v.list[i].severity > v.list[i + 1].severity ||
			    (v.list[i].severity == v.list[i + 1].severity &&
				    v.list[i].excess_ns >= v.list[i + 1].excess_ns));
	assert_int_equal(v.list[0].causes[0].cause, CAUSE_BLOCK_IO);
}

/* Steps that wait for a network file system: in D state, without requests of the process. */
static void blocked_on_a_network_file_system(void **state)
{
	SCENE;
	int64_t at = 0;

	scene_steps(&s, &at, 400);
	for (int i = 0; i < 400; i++) {
		int64_t from = at + 500;

		scene_step(&s, &at, 79000, 1000);
		scene_stay(&s, VICTIM, from, 30000, 0, WIRE_UNINTERRUPTIBLE, 0, "swapper");
	}
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(v.count, 1);
	assert_int_equal(v.list->severity, SEVERITY_HIGH);
	assert_int_equal(v.list->causes[0].cause, CAUSE_BLOCK_IO);
	assert_int_equal(v.list->causes[0].culprit_pid, 0);
	assert_share((double)v.list->excess_ns / (400 * 30e6), 1);
}

static void kernel_threads_are_not_reniced(void **state)
{
	static const struct {
		const char *name;
		bool is_kernel;
	} rivals[] = {{"kworker/3:1H", true}, {"ksoftirqd/0", true}, {"rival", false}};

	for (size_t i = 0; i < ARRAY_SIZE(rivals); i++) {
		SCENE;
		bool is_reniced = false;

		contended_launches(&s, 30);
		for (size_t k = 0; k < s.event_count; k++)
			snprintf(s.events[k].peer_comm, COMM_LEN, "%s", rivals[i].name);
		struct recording rec = scene_recording(&s);
		VERDICTS v = verdicts_of(&rec);
		const struct incident *inc = verdict(&v, PROBLEM_CPU_CONTENTION);

		assert_non_null(inc);
		assert_has(inc->summary, rivals[i].name);
		for (int k = 0; k < inc->fix_count; k++)
			is_reniced |= strstr(inc->fixes[k], "renice") != NULL;
		assert_false(is_reniced && rivals[i].is_kernel);
	}
}

static void sum_bytes(struct scene *s)
{
	for (size_t i = 0; i < s->aggregate_count; i++)
		if (s->aggregates[i].op == CUDA_MEMCPY || s->aggregates[i].op == CUDA_MEMCPY_ASYNC)
			s->aggregates[i].sum_arg0 = s->aggregates[i].sketch.count * 32 * MIB;
}

/* Copies of 32 MiB, one every 20 ms, that take @dur_us of it. */
static void copies(struct scene *s, uint16_t op, int64_t dur_us)
{
	for (int i = 0; i < 3000; i++) {
		struct event *e =
			scene_call(s, op, i * 20000, dur_us + (int64_t)scene_random(s, 99));

		e->arg0 = 32 * MIB;
		e->arg1 = 1;
		scene_call(s, CUDA_STREAM_SYNC, i * 20000 + dur_us + 200, 1000);
	}
	scene_aggregate(s);
	sum_bytes(s);
}

static void asynchronous_copies_from_unpinned_memory(void **state)
{
	SCENE;

	copies(&s, CUDA_MEMCPY_ASYNC, 16000);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_PCIE);

	assert_non_null(inc);
	assert_true(inc->severity >= SEVERITY_MEDIUM);
	assert_share((double)inc->excess_ns / 60e9, 0.8);
}

/* 18 % of the time, and twenty small copies beside each: no bucket shows it, but its rows do. */
static void large_copies_among_small_ones(void **state)
{
	SCENE;

	for (int i = 0; i < 600; i++) {
		struct event *e = scene_call(&s, CUDA_MEMCPY_ASYNC, i * 100000, 18000);

		e->arg0 = 256 * MIB;
		e->arg1 = 1;
		for (int k = 0; k < 20; k++)
			scene_call(&s, CUDA_MEMCPY_ASYNC, i * 100000 + 20000 + k * 100, 10)->arg1 =
				1;
		scene_call(&s, CUDA_STREAM_SYNC, i * 100000 + 90000, 1000);
	}
	scene_aggregate(&s);
	for (size_t i = 0; i < s.aggregate_count; i++)
		s.aggregates[i].sum_arg0 =
			s.aggregates[i].op == CUDA_MEMCPY_ASYNC ? 50 * 256 * MIB : 0;
	for (size_t i = 0; i < s.aggregate_count; i++)
		s.aggregates[i].sum_arg0 /=
			21; /* as if they were smaller still: none is large on average */
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *inc = verdict(&v, PROBLEM_PCIE);

	assert_non_null(inc);
	assert_share((double)inc->excess_ns / 60e9, 0.18);
	assert_int_equal(v.count, 1); /* the same, told once */
}

/* The control: the same copies, queued. */
static void asynchronous_copies_that_are_queued(void **state)
{
	SCENE;

	copies(&s, CUDA_MEMCPY_ASYNC, 20);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_PCIE));
}

/* A million calls, all there, do not make up for switches of which half are lost. */
static void lost_switches_make_less_sure(void **state)
{
	struct accounting books = {0};
	SCENE;

	scene_hog(&s);
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);

	books.source[SOURCE_CUDA] = (struct account){.hits = 1000000, .stored = 1000000};
	books.source[SOURCE_HOST] = (struct account){.hits = 1000, .stored = 1000};
	rec.books = &books;
	VERDICTS whole = verdicts_of(&rec);
	books.source[SOURCE_HOST].stored = 500;
	books.source[SOURCE_HOST].lost[LOSS_RING_FULL] = 500;
	VERDICTS half = verdicts_of(&rec);

	assert_int_equal(whole.count, 1);
	assert_int_equal(half.count, 1);
	assert_share(half.list->confidence / whole.list->confidence, 0.5);
}

/* A healthy loop, with pauses of @pause_us before every copy, in which the wall clock jumps by 300 s
 * half-way, forwards or back. */
static void stepped_clock(struct scene *s, int64_t pause_us, int64_t by_s)
{
	int64_t at = 0;

	for (int i = 0; i < 4000; i++) {
		int64_t jump = i >= 2000 ? by_s * SECOND : 0;

		scene_call(s, CUDA_MEMCPY, at + jump + pause_us, 100)->flags =
			pause_us >= 1000 ? WIRE_AFTER_GAP : 0;
		scene_call(s, CUDA_LAUNCH, at + jump + pause_us + 110, 10);
		scene_stay(s, VICTIM, at + jump + pause_us + 200, 4000, 20, 0, 0, "swapper");
		scene_call(s, CUDA_STREAM_SYNC, at + jump + pause_us + 150,
			5000 + (int64_t)scene_random(s, 100));
		at += pause_us + 5300;
	}
	scene_aggregate(s);
}

static void a_stepped_clock_is_no_incident(void **state)
{
	for (int64_t by_s = -300; by_s <= 300; by_s += 300)
		for (int64_t back_s = 0; back_s < 2; back_s++) {
			SCENE;

			stepped_clock(&s, 300, back_s ? by_s / 30 : by_s);
			struct recording rec = scene_recording(&s);
			VERDICTS v = verdicts_of(&rec);

			assert_quiet(&v);
			for (size_t i = 0; i < v.count; i++) /* the jump is no time of anybody's */
				assert_true(v.list[i].excess_ns < 5 * NS_PER_S);
		}
}

/* A step of @launches kernels, one micro-batch; @us of it in the wait that closes it. */
static void work_step(struct scene *s, int64_t *at, int launches, int64_t us)
{
	for (int k = 0; k < launches; k++)
		scene_call(s, CUDA_LAUNCH, *at + k * 20, 10);
	us += (int64_t)scene_random(s, 200);
	scene_call(s, CUDA_STREAM_SYNC, *at + launches * 20 + 100, us);
	*at += launches * 20 + 100 + us;
}

/* From step 400 to 600 the job evaluates: fewer kernels, shorter steps; then it trains on. */
static void an_evaluation_is_healthy(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 1000; i++)
		if (i >= 400 && i < 600)
			work_step(&s, &at, 40, 8000);
		else
			work_step(&s, &at, 120, 25000);
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_quiet(&v);
}

/* It waits only after every fourth micro-batch from step 500 on: four times the work in a step. */
static void gradient_accumulation_is_healthy(void **state)
{
	SCENE;
	int64_t at = 0;

	for (int i = 0; i < 800; i++)
		work_step(&s, &at, i < 500 ? 60 : 240, i < 500 ? 20000 : 80000);
	scene_aggregate(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_quiet(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stay_in_mid_wait_costs_nothing),
		cmocka_unit_test(the_last_stay_of_a_wait_costs),
		cmocka_unit_test(contention_from_the_first_to_the_last_second),
		cmocka_unit_test(contention_for_most_of_the_recording),
		cmocka_unit_test(a_crowd_in_the_run_queue),
		cmocka_unit_test(a_lowered_clock_without_a_reason),
		cmocka_unit_test(a_larger_batch_is_no_throttling),
		cmocka_unit_test(a_clock_far_below_the_usual_is_noted),
		cmocka_unit_test(throttling_explains_no_more_than_the_clocks),
		cmocka_unit_test(idle_servers_are_healthy),
		cmocka_unit_test(waits_for_answers_are_told),
		cmocka_unit_test(first_launches_load_their_code),
		cmocka_unit_test(repeated_launches_load_nothing),
		cmocka_unit_test(the_published_empty_cache),
		cmocka_unit_test(the_published_vllm),
		cmocka_unit_test(one_name_in_two_containers),
		cmocka_unit_test(the_larger_of_two_disk_hogs),
		cmocka_unit_test(threads_that_wait_at_once_lose_the_time_once),
		cmocka_unit_test(a_slower_gpu_without_a_cause),
		cmocka_unit_test(order_follows_severity_and_the_time_lost),
		cmocka_unit_test(blocked_on_a_network_file_system),
		cmocka_unit_test(kernel_threads_are_not_reniced),
		cmocka_unit_test(asynchronous_copies_from_unpinned_memory),
		cmocka_unit_test(large_copies_among_small_ones),
		cmocka_unit_test(asynchronous_copies_that_are_queued),
		cmocka_unit_test(lost_switches_make_less_sure),
		cmocka_unit_test(a_stepped_clock_is_no_incident),
		cmocka_unit_test(an_evaluation_is_healthy),
		cmocka_unit_test(gradient_accumulation_is_healthy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
