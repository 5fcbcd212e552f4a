/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_memory.c - why an allocation failed: full, in pieces, or not known. */
#include "verdict.h"

static struct event *allocate(
	struct scene *s, uint32_t pid, int64_t at_us, uint64_t pointer, uint64_t bytes)
{
	struct event *e = scene_add(s, SOURCE_CUDA, CUDA_MALLOC, pid, pid, at_us, 10);

	e->arg0 = bytes;
	e->arg1 = pointer;
	return e;
}

static void release(struct scene *s, int64_t at_us, uint64_t pointer)
{
	scene_call(s, CUDA_FREE, at_us, 10)->arg0 = pointer;
}

static struct gpu_sample reading(int64_t at_us, uint64_t free_bytes)
{
	struct gpu_sample g;

	gpu_sample_init(&g);
	g.time.ns = SCENE_T0_NS + at_us * 1000;
	g.index = 0;
	g.mem_total_bytes = (int64_t)(16 * GIB);
	g.mem_free_bytes = (int64_t)free_bytes;
	g.mem_used_bytes = (int64_t)(16 * GIB - free_bytes);
	return g;
}

/* Full, then every other piece freed: a request that had fitted before fails. */
static void fragmented(struct scene *s)
{
	for (int i = 0; i < 64; i++)
		allocate(s, VICTIM, i * 100, 0x1000 + (uint64_t)i, 64 * MIB);
	for (int i = 1; i < 64; i += 2)
		release(s, 10000 + i * 100, 0x1000 + (uint64_t)i);
	allocate(s, VICTIM, 20000, 0, 128 * MIB)->ret = 2;
	s->events[s->event_count - 1].stack_hash = 77;
}

static void test_fragmented_by_its_own_peak(void **state)
{
	SCENE;
	fragmented(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_GPU_MEMORY);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_CRITICAL);
	assert_has(i->root_cause, "fragmentation");
	assert_has(i->root_cause, "at least 2.0 GiB");
	assert_has(i->summary, "128 MiB");
	assert_true(i->confidence > 0.75); /* 0.85, of a recording that does not say what it lost */
	assert_int_equal(i->stacks[0].hash, 77);
	assert_int_equal(i->evidence[0], s.event_count);
}

/* The same failure, but another traced process took what was freed. */
static void test_taken_by_another(void **state)
{
	SCENE;
	fragmented(&s);
	allocate(&s, HOG, 15000, 0x5000, 4 * GIB);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_GPU_MEMORY);

	assert_non_null(i);
	assert_null(strstr(i->root_cause, "fragmentation"));
	assert_has(i->root_cause, "not recorded");
	assert_has(i->explanation, "other traced processes 4.0 GiB");
	assert_true(i->confidence < 0.7);
}

static void test_readings_decide(void **state)
{
	SCENE;
	allocate(&s, VICTIM, 500000, 0, GIB)->ret = 2;
	struct recording rec = scene_recording(&s);
	struct gpu_sample full[] = {reading(0, 100 * MIB), reading(1000000, 90 * MIB)};
	struct gpu_sample pieces[] = {reading(0, 4 * GIB), reading(1000000, 4 * GIB)};
	struct gpu_sample unsure[] = {reading(0, 4 * GIB), reading(1000000, 90 * MIB)};
	struct {
		struct gpu_sample *samples;
		const char *says;
	} cases[] = {{full, "is full: 1.0 GiB requested, 100 MiB free"},
		{pieces, "although 4.0 GiB was free"}, {unsure, "not recorded"}};

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		rec.gpus = cases[k].samples;
		rec.gpu_count = 2;
		VERDICTS v = verdicts_of(&rec);

		assert_non_null(verdict(&v, PROBLEM_GPU_MEMORY));
		assert_has(verdict(&v, PROBLEM_GPU_MEMORY)->root_cause, cases[k].says);
	}
}

/* A framework frees its cache and asks again. */
static void retries(struct scene *s)
{
	for (int i = 0; i < 5; i++) {
		allocate(s, VICTIM, i * 1000000, 0, 64 * MIB)->ret = 2;
		allocate(s, VICTIM, i * 1000000 + 1000, 0x1000 + (uint64_t)i, 64 * MIB);
	}
}

static void test_recovered_by_a_retry(void **state)
{
	SCENE;
	retries(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_GPU_MEMORY);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_MEDIUM);
	assert_int_equal(i->count, 5);
	assert_has(i->summary, "5 recovered by a retry");
	assert_null(verdict(&v, PROBLEM_KV_CACHE));
}

static void serve(struct scene *s)
{
	for (int i = 0; i < 20; i++)
		scene_add(s, SOURCE_NET, NET_RECV, VICTIM, VICTIM, i * 200000, 100);
}

static void test_retries_of_a_server(void **state)
{
	SCENE;
	retries(&s);
	serve(&s);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_KV_CACHE);

	assert_non_null(i);
	assert_null(verdict(&v, PROBLEM_GPU_MEMORY));
	assert_has(i->root_cause, "probable");
	assert_true(i->confidence <= 0.5);
}

static void churn(struct scene *s)
{
	for (int i = 0; i < 100; i++) {
		allocate(s, VICTIM, i * 50000, 0x1000, MIB);
		release(s, i * 50000 + 20000, 0x1000);
	}
}

static void test_churn(void **state)
{
	SCENE;
	struct gpu_sample full[6], roomy[6];

	churn(&s);
	struct recording rec = scene_recording(&s);
	for (int i = 0; i < 6; i++) {
		full[i] = reading(i * 1000000 - 1, 100 * MIB);
		roomy[i] = reading(i * 1000000 - 1, 8 * GIB);
	}
	rec.gpus = full;
	rec.gpu_count = 6;
	VERDICTS alone = verdicts_of(&rec);
	assert_null(verdict(&alone, PROBLEM_KV_CACHE)); /* it serves nobody */
	serve(&s);
	rec = scene_recording(&s);
	rec.gpus = roomy;
	rec.gpu_count = 6;
	VERDICTS calm = verdicts_of(&rec);
	assert_null(verdict(&calm, PROBLEM_KV_CACHE));
	rec.gpus = full;
	VERDICTS v = verdicts_of(&rec);
	assert_non_null(verdict(&v, PROBLEM_KV_CACHE));
	assert_int_equal(verdict(&v, PROBLEM_KV_CACHE)->severity, SEVERITY_MEDIUM);
}

static void test_hostile(void **state)
{
	SCENE;
	scene_hostile(&s, SOURCE_CUDA, CUDA_MALLOC);
	scene_hostile(&s, SOURCE_DRIVER, DRIVER_MEM_MAP);
	struct recording rec = scene_recording(&s);
	struct gpu_sample bad = reading(0, 0);

	bad.time.ns = INT64_MIN;
	rec.gpus = &bad;
	rec.gpu_count = 1;
	VERDICTS v = verdicts_of(&rec);
	assert_null(verdict(&v, PROBLEM_GPU_MEMORY));
	for (size_t i = 0; i < s.event_count; i++)
		s.events[i].ret = 2;
	VERDICTS failing = verdicts_of(&rec); /* a sane time and huge requests */
	assert_non_null(verdict(&failing, PROBLEM_GPU_MEMORY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fragmented_by_its_own_peak),
		cmocka_unit_test(test_taken_by_another),
		cmocka_unit_test(test_readings_decide),
		cmocka_unit_test(test_recovered_by_a_retry),
		cmocka_unit_test(test_retries_of_a_server),
		cmocka_unit_test(test_churn),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
