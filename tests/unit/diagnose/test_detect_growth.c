/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_growth.c - GPU memory that grows by the driver's readings, and what only looks like it.
 *
 * A job is built second by second: what it allocates, what it launches, and the reading after it. */
#include "diagnose/findings/detector.h"
#include "verdict.h"

#define SECONDS_MAX 64
#define TOTAL       (141 * GIB)
#define S_US        INT64_C(1000000)

struct job {
	struct scene s;
	struct gpu_sample readings[SECONDS_MAX];
	size_t reading_count;
	uint64_t used, pointer;
	uint32_t pid;
	int64_t gpu;
	int second;
	unsigned launches; /* a second */
};

static void job_done(struct job *j)
{
	scene_done(&j->s);
}

#define JOB                                                                                        \
	_cleanup_(job_done) struct job j = {                                                       \
		.s.seed = 1, .used = GIB, .pointer = 0x1000, .pid = VICTIM, .launches = 2000}

static void allocate(struct job *j, int n, uint64_t bytes)
{
	for (int i = 0; i < n; i++) {
		struct event *e = scene_add(&j->s, SOURCE_CUDA, CUDA_MALLOC, j->pid, j->pid,
			j->second * S_US + 1000 + i * 40000, 100);

		e->arg0 = bytes;
		e->arg1 = j->pointer += 0x100;
		e->stack_hash = 42;
	}
	j->used += (uint64_t)n * bytes;
}

/* Gives back the last @n pieces of @bytes. */
static void release(struct job *j, int n, uint64_t bytes)
{
	for (int i = 0; i < n; i++) {
		struct event *e = scene_add(&j->s, SOURCE_CUDA, CUDA_FREE, j->pid, j->pid,
			j->second * S_US + 1000 + i * 40000, 100);

		e->arg0 = j->pointer;
		j->pointer -= 0x100;
	}
	j->used -= (uint64_t)n * bytes;
}

/* The rest of a second: steps of 50 ms that launch, and a reading. */
static void work(struct job *j)
{
	struct gpu_sample *g = &j->readings[j->reading_count++];

	if (j->launches)
		scene_add(&j->s, SOURCE_CUDA, CUDA_LAUNCH, j->pid, j->pid, j->second * S_US, 10)
			->weight = j->launches;
	for (int i = 0; i < 20; i++)
		scene_add(&j->s, SOURCE_CUDA, CUDA_STREAM_SYNC, j->pid, j->pid,
			j->second * S_US + i * 50000 + 40000, 5000);
	gpu_sample_init(g);
	g->time.ns = SCENE_T0_NS + (j->second * S_US + 990000) * 1000;
	g->index = j->gpu;
	g->mem_used_bytes = (int64_t)j->used;
	g->mem_free_bytes = (int64_t)(TOTAL - j->used);
	g->mem_total_bytes = (int64_t)TOTAL;
	j->second++;
}

static void stand_still(struct job *j, int seconds)
{
	for (int i = 0; i < seconds; i++)
		work(j);
}

static void grow(struct job *j, int seconds, int n, uint64_t bytes)
{
	for (int i = 0; i < seconds; i++) {
		allocate(j, n, bytes);
		work(j);
	}
}

static void warm_up(struct job *j)
{
	allocate(j, 20, 600 * MIB);
	work(j);
}

static struct recording recording_of(const struct job *j)
{
	struct recording rec = scene_recording(&j->s);

	rec.gpus = j->readings;
	rec.gpu_count = j->reading_count;
	return rec;
}

struct found {
	struct op_table ops;
	struct device_allocs allocs;
	struct incident items[4];
	struct incident_list list;
};

static void found_done(struct found *f)
{
	baseline_done(&f->ops);
	device_allocs_done(&f->allocs);
}

#define FOUND _cleanup_(found_done) struct found

/* What this detector says, whatever others do. */
static void find(const struct job *j, struct found *f)
{
	struct recording rec = recording_of(j);
	struct detector_input input = {
		.rec = &rec, .ops = &f->ops, .allocs = &f->allocs, .completeness = -1};

	f->list = (struct incident_list){.items = f->items, .max = ARRAY_SIZE(f->items)};
	assert_int_equal(baseline_run(&rec, &f->ops), 0);
	assert_int_equal(device_allocs_run(&rec, &f->allocs), 0);
	assert_int_equal(detect_growth(&input, &f->list), 0);
}

static void expect_none(const struct job *j)
{
	FOUND f = {0};

	find(j, &f);
	assert_int_equal(f.list.count, 0);
}

static struct incident expect_leak(const struct job *j)
{
	FOUND f = {0};

	find(j, &f);
	assert_int_equal(f.list.count, 1);
	assert_int_equal(f.items[0].problem, PROBLEM_MEMORY_LEAK);
	return f.items[0];
}

/* Of the verdict on the whole: one leak, said once. */
static void expect_verdict(const struct job *j)
{
	struct recording rec = recording_of(j);
	VERDICTS v = verdicts_of(&rec);

	assert_non_null(verdict(&v, PROBLEM_MEMORY_LEAK));
}

/* A framework's pool: large warm-up, then few large pieces, too few to go by allocations alone. */
static void test_few_large_pieces(void **state)
{
	JOB;
	warm_up(&j);
	stand_still(&j, 5);
	grow(&j, 5, 3, 256 * MIB);
	struct incident i = expect_leak(&j);

	assert_int_equal(i.severity, SEVERITY_HIGH);
	assert_int_equal(i.pid, VICTIM);
	assert_int_equal(i.count, 15);
	assert_has(i.summary, "grows by 768 MiB/s");
	assert_has(i.summary, "full in 2m");
	assert_has(i.root_cause, "256 MiB at a time");
	assert_has(i.explanation, "after being stable");
	assert_int_equal(i.stacks[0].hash, 42);
	assert_int_equal(i.evidence_count, 15);
	assert_true(i.confidence > 0.6);
	expect_verdict(&j);
}

static void test_many_pieces_and_their_steps(void **state)
{
	JOB;
	warm_up(&j);
	stand_still(&j, 12);
	grow(&j, 11, 20, 128 * MIB);
	scene_aggregate(&j.s);
	for (size_t i = 0; i < j.s.aggregate_count; i++)
		if (j.s.aggregates[i].op == CUDA_LAUNCH)
			sketch_add(&j.s.aggregates[i].sketch, 10000, 5 * j.launches);
	struct incident i = expect_leak(&j);

	assert_int_equal(i.severity, SEVERITY_HIGH);
	assert_has(i.summary, "2.5 GiB/s, 12"); /* 20 steps a second: 128 MiB each */
	assert_has(i.summary, "MiB a step");
	expect_verdict(&j);
}

static void test_from_the_first_reading(void **state)
{
	JOB;
	grow(&j, 12, 3, 256 * MIB);
	expect_leak(&j);
	expect_verdict(&j); /* allocations alone say it, too */
}

static void test_slow_growth_is_medium(void **state)
{
	JOB;
	j.used = 20 * GIB;
	stand_still(&j, 5);
	grow(&j, 50, 1, 24 * MIB); /* 121 GiB are free: 86 minutes */
	assert_int_equal(expect_leak(&j).severity, SEVERITY_MEDIUM);
}

static void test_until_it_ran_out(void **state)
{
	JOB;
	j.used = 135 * GIB;
	stand_still(&j, 5);
	grow(&j, 6, 4, 256 * MIB);
	for (int i = 0; i < 10; i++) {
		struct event *e = scene_call(&j.s, CUDA_MALLOC, j.second * S_US, 100);

		e->arg0 = GIB;
		e->ret = 2;
		work(&j);
	}
	struct incident i = expect_leak(&j);

	assert_int_equal(i.severity, SEVERITY_HIGH);
	assert_has(i.summary, "it ran out of memory");
}

/* Its memory is gone with it: what counts is what it did until its last call. */
static void test_until_the_process_ended(void **state)
{
	JOB;
	stand_still(&j, 5);
	grow(&j, 6, 3, 256 * MIB);
	j.used = GIB;
	j.pid = HOG;
	stand_still(&j, 10);
	assert_int_equal(expect_leak(&j).pid, VICTIM);
}

static void test_warm_up(void **state)
{
	JOB;
	grow(&j, 7, 10, 128 * MIB);
	expect_none(&j); /* it may go on, and may not: this is the beginning */
	stand_still(&j, 5);
	expect_none(&j);
}

static void test_pool_that_approaches_its_level(void **state)
{
	JOB;
	stand_still(&j, 5);
	for (int n = 10; n > 0; n--)
		grow(&j, 1, n, 256 * MIB);
	expect_none(&j);
}

static void test_growth_that_stopped(void **state)
{
	JOB;
	stand_still(&j, 5);
	grow(&j, 12, 3, 256 * MIB);
	expect_leak(&j);
	stand_still(&j, 2);
	expect_none(&j);
}

static void test_pool_that_doubles(void **state)
{
	JOB;
	stand_still(&j, 5);
	for (int i = 0; i < 7; i++)
		grow(&j, 1, 3, (16 * MIB) << i);
	expect_none(&j);
}

static void test_growth_that_is_small(void **state)
{
	JOB;
	stand_still(&j, 5);
	grow(&j, 15, 1, 64 * MIB);
	expect_none(&j);
	grow(&j, 2, 1, 64 * MIB);
	expect_leak(&j);
}

static void test_one_jump(void **state)
{
	for (int later = 0; later < 12; later++) {
		JOB;
		warm_up(&j);
		stand_still(&j, 6);
		grow(&j, 1, 20, 512 * MIB); /* a larger batch */
		stand_still(&j, later);
		expect_none(&j);
	}
}

static void test_jumps_of_an_evaluation(void **state)
{
	JOB;
	stand_still(&j, 6);
	for (int i = 0; i < 3; i++) {
		grow(&j, 1, 4, 512 * MIB);
		stand_still(&j, 5);
	}
	expect_none(&j);
}

static void test_sawtooth(void **state)
{
	JOB;
	for (int i = 0; i < 4; i++) {
		grow(&j, 12, 2, 256 * MIB);
		if (i < 3)
			release(&j, 24, 256 * MIB);
	}
	expect_none(&j);
}

static void test_churn(void **state)
{
	JOB;
	warm_up(&j);
	for (int i = 0; i < 12; i++) {
		allocate(&j, 4, 256 * MIB);
		if (i % 2)
			release(&j, 8, 256 * MIB);
		work(&j);
	}
	expect_none(&j);
}

/* Another process allocates and frees beside the one that leaks. */
static void test_two_processes(void **state)
{
	JOB;
	stand_still(&j, 5);
	for (int i = 0; i < 8; i++) {
		j.pid = HOG;
		allocate(&j, 2, 64 * MIB);
		j.second++;
		release(&j, 2, 64 * MIB);
		j.second--;
		work(&j);
		j.second--;
		j.reading_count--;
		j.pid = VICTIM;
		grow(&j, 1, 3, 256 * MIB);
	}
	assert_int_equal(expect_leak(&j).pid, VICTIM);
}

/* Of a process that is not traced nothing can be said. */
static void test_growth_of_somebody_else(void **state)
{
	JOB;
	stand_still(&j, 5);
	for (int i = 0; i < 8; i++) {
		j.used += 512 * MIB;
		grow(&j, 1, 1, 256 * MIB);
	}
	expect_none(&j);
}

static void test_weights_that_are_loaded(void **state)
{
	JOB;
	stand_still(&j, 5);
	j.launches = 20;
	grow(&j, 8, 20, 64 * MIB);
	expect_none(&j);
}

static void test_graphs_that_are_captured(void **state)
{
	JOB;
	stand_still(&j, 5);
	for (int i = 0; i < 8; i++) {
		scene_add(
			&j.s, SOURCE_GRAPH, GRAPH_INSTANTIATE, VICTIM, VICTIM, j.second * S_US, 50);
		grow(&j, 1, 3, 256 * MIB);
	}
	expect_none(&j);
}

/* With CUDA_VISIBLE_DEVICES the process's device 0 is any GPU. */
static void test_gpu_with_another_number(void **state)
{
	JOB;
	j.gpu = 3;
	stand_still(&j, 5);
	grow(&j, 8, 3, 256 * MIB);
	assert_has(expect_leak(&j).explanation, "GPU 3");
}

static void test_readings_that_are_missing(void **state)
{
	JOB;
	stand_still(&j, 5);
	grow(&j, 12, 3, 256 * MIB);
	expect_leak(&j);
	j.readings[8].mem_used_bytes = GPU_UNKNOWN;
	j.readings[11].mem_used_bytes = GPU_UNKNOWN;
	for (size_t i = 0; i < j.reading_count; i++)
		j.readings[i].mem_free_bytes = GPU_UNKNOWN;
	struct incident i = expect_leak(&j);

	assert_int_equal(i.severity, SEVERITY_HIGH);
	assert_has(i.explanation, "Free memory is not recorded");
	j.reading_count = 8; /* three of the growth, then no more: how it went on is not known */
	expect_none(&j);
	j.reading_count = 0;
	expect_none(&j);
}

/* What happened in a hole is not known: neither is whether memory stood still before its end. */
static void test_hole_in_the_readings(void **state)
{
	JOB;
	stand_still(&j, 5);
	grow(&j, 22, 2, 256 * MIB);
	for (size_t i = 7; i < 20; i++)
		j.readings[i].mem_used_bytes = GPU_UNKNOWN;
	expect_none(&j);
	grow(&j, 6, 2, 256 * MIB);
	expect_leak(&j);
}

static void test_hostile(void **state)
{
	static const int64_t odd[] = {INT64_MIN, -1, 0, 1, INT64_MAX};
	struct gpu_sample g[ARRAY_SIZE(odd) * ARRAY_SIZE(odd)];
	size_t n = 0;
	JOB;

	grow(&j, 2, 20, 64 * MIB);
	scene_hostile(&j.s, SOURCE_CUDA, CUDA_MALLOC);
	scene_hostile(&j.s, SOURCE_GRAPH, GRAPH_INSTANTIATE);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		for (size_t k = 0; k < ARRAY_SIZE(odd); k++) {
			gpu_sample_init(&g[n]);
			g[n].time.ns = odd[i];
			g[n].index = odd[k];
			g[n].mem_used_bytes = odd[k];
			g[n++].mem_total_bytes = odd[4 - k];
		}
	memcpy(j.readings, g, sizeof(g));
	j.reading_count = n;
	expect_none(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_large_pieces),
		cmocka_unit_test(test_many_pieces_and_their_steps),
		cmocka_unit_test(test_from_the_first_reading),
		cmocka_unit_test(test_slow_growth_is_medium),
		cmocka_unit_test(test_until_it_ran_out),
		cmocka_unit_test(test_until_the_process_ended),
		cmocka_unit_test(test_warm_up),
		cmocka_unit_test(test_pool_that_approaches_its_level),
		cmocka_unit_test(test_growth_that_stopped),
		cmocka_unit_test(test_pool_that_doubles),
		cmocka_unit_test(test_growth_that_is_small),
		cmocka_unit_test(test_one_jump),
		cmocka_unit_test(test_jumps_of_an_evaluation),
		cmocka_unit_test(test_sawtooth),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_two_processes),
		cmocka_unit_test(test_growth_of_somebody_else),
		cmocka_unit_test(test_weights_that_are_loaded),
		cmocka_unit_test(test_graphs_that_are_captured),
		cmocka_unit_test(test_gpu_with_another_number),
		cmocka_unit_test(test_readings_that_are_missing),
		cmocka_unit_test(test_hole_in_the_readings),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
