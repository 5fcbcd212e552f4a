/* SPDX-License-Identifier: Apache-2.0 */
/* test_detect_leak.c - memory that only grows, and what only looks like it. */
#include "verdict.h"

static uint64_t next_pointer = 0x10000;

static uint64_t allocate(struct scene *s, int64_t at_us, uint64_t bytes)
{
	struct event *e = scene_call(s, CUDA_MALLOC, at_us, 10);

	e->arg0 = bytes;
	e->arg1 = next_pointer += 0x100;
	e->stack_hash = 42;
	return e->arg1;
}

static void release(struct scene *s, int64_t at_us, uint64_t pointer)
{
	scene_call(s, CUDA_FREE, at_us, 10)->arg0 = pointer;
}

/* 200 steps of 50 ms: a temporary buffer in each, and @kept bytes that stay. */
static void train(struct scene *s, uint64_t kept, int until)
{
	for (int i = 0; i < 200; i++) {
		uint64_t p = allocate(s, i * 50000, 32 * MIB);

		if (i < until)
			allocate(s, i * 50000 + 10000, kept);
		release(s, i * 50000 + 40000, p);
		scene_call(s, CUDA_STREAM_SYNC, i * 50000 + 41000, 1000);
	}
}

static void test_leak(void **state)
{
	SCENE;
	train(&s, MIB, 200);
	struct recording rec = scene_recording(&s);
	struct gpu_sample g;

	gpu_sample_init(&g);
	g.time.ns = SCENE_T0_NS;
	g.index = 0;
	g.mem_free_bytes = (int64_t)(200 * MIB);
	rec.gpus = &g;
	rec.gpu_count = 1;
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_MEMORY_LEAK);

	assert_non_null(i);
	assert_int_equal(i->severity, SEVERITY_HIGH);
	assert_in_range(i->count, 140, 160);
	assert_has(i->summary, "full in 1"); /* 20 MiB/s into 200 MiB: some 10 s */
	assert_has(i->root_cause, "1.0 MiB at a time");
	assert_int_equal(i->stacks[0].hash, 42);
	assert_int_equal(i->stack_ns, i->stacks[0].ns);
	assert_true(i->confidence > 0.7);
	assert_true(i->evidence_count > 0);
}

/* As fast, with room for three hours: how soon it is full counts where that is known. */
static void test_a_leak_with_much_room(void **state)
{
	SCENE;
	train(&s, MIB, 200);
	struct recording rec = scene_recording(&s);
	struct gpu_sample g;

	gpu_sample_init(&g);
	g.time.ns = SCENE_T0_NS;
	g.index = 0;
	g.mem_free_bytes = (int64_t)(200 * 1024 * MIB);
	rec.gpus = &g;
	for (rec.gpu_count = 0; rec.gpu_count <= 1; rec.gpu_count++) {
		VERDICTS v = verdicts_of(&rec);

		assert_int_equal(verdict(&v, PROBLEM_MEMORY_LEAK)->severity,
			rec.gpu_count ? SEVERITY_MEDIUM : SEVERITY_HIGH);
	}
}

static bool sql_has(const struct incident *i, unsigned op, int arg)
{
	char text[64];

	snprintf(text, sizeof(text), "(f.op = %u AND f.arg%d = a.arg1)", op, arg);
	return strstr(i->evidence_sql, text);
}

/* A row that frees is one by which the ledger frees: of the API in question, where it has the
 * address. cudaMallocManaged has the number of cuMemFree. */
static void test_query_knows_what_frees(void **state)
{
	SCENE;
	train(&s, MIB, 200);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);
	const struct incident *i = verdict(&v, PROBLEM_MEMORY_LEAK);

	assert_non_null(i);
	assert_true(sql_has(i, CUDA_FREE, 0) && sql_has(i, CUDA_FREE_ASYNC, 0));
	assert_int_equal(CUDA_MALLOC_MANAGED, DRIVER_FREE);
	assert_false(sql_has(i, CUDA_MALLOC_MANAGED, 0));
	for (size_t k = 0; k < rec.event_count; k++) {
		struct event *e = &s.events[k];

		e->source = SOURCE_DRIVER;
		if (e->op == CUDA_FREE) {
			e->op = DRIVER_MEM_UNMAP;
			e->arg1 = e->arg0;
			e->arg0 = MIB;
		} else {
			e->op = e->op == CUDA_MALLOC ? DRIVER_MEM_MAP : DRIVER_STREAM_SYNC;
		}
	}
	VERDICTS driver = verdicts_of(&rec);

	i = verdict(&driver, PROBLEM_MEMORY_LEAK);
	assert_non_null(i);
	assert_true(sql_has(i, DRIVER_FREE, 0) && sql_has(i, DRIVER_MEM_UNMAP, 1));
	assert_false(sql_has(i, CUDA_FREE, 0));
}

static void test_slow_leak_is_medium(void **state)
{
	SCENE;
	train(&s, 150 << 10, 200);
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_non_null(verdict(&v, PROBLEM_MEMORY_LEAK));
	assert_int_equal(verdict(&v, PROBLEM_MEMORY_LEAK)->severity, SEVERITY_MEDIUM);
}

static void expect_none(struct scene *s)
{
	struct recording rec = scene_recording(s);
	VERDICTS v = verdicts_of(&rec);

	assert_null(verdict(&v, PROBLEM_MEMORY_LEAK));
}

static void test_pool_that_reaches_its_level(void **state)
{
	for (int until = 20; until <= 160; until += 35) {
		SCENE;
		train(&s, 4 * MIB, until);
		expect_none(&s);
	}
}

static void test_churn_without_growth(void **state)
{
	SCENE;
	train(&s, 0, 0);
	expect_none(&s);
}

/* Growth by doubling: few large steps. */
static void test_pool_that_doubles(void **state)
{
	SCENE;
	for (int i = 0; i < 200; i++)
		scene_call(&s, CUDA_STREAM_SYNC, i * 50000, 1000);
	for (int i = 0; i < 7; i++)
		for (int k = 0; k < 4; k++)
			allocate(&s, i * 1400000 + k * 100, (16 * MIB) << i);
	expect_none(&s);
}

/* Each step frees what the one before allocated, but the frees are of memory from before. */
static void test_replacing_older_memory(void **state)
{
	SCENE;
	for (int i = 0; i < 200; i++) {
		allocate(&s, i * 50000, MIB);
		release(&s, i * 50000 + 1000, 0x5000 + (uint64_t)i);
	}
	expect_none(&s);
}

static void test_freed_at_the_end(void **state)
{
	SCENE;
	for (int i = 0; i < 200; i++)
		allocate(&s, i * 50000, MIB);
	for (size_t i = 0; i < 200; i++)
		release(&s, 10000000 + (int64_t)i * 100, s.events[i].arg1);
	expect_none(&s);
}

static void test_until_it_ran_out(void **state)
{
	SCENE;
	struct event *e;

	train(&s, MIB, 200);
	for (int i = 0; i < 400; i++) { /* full for twice as long */
		e = scene_call(&s, CUDA_MALLOC, 10000000 + i * 50000, 10);
		e->arg0 = MIB;
		e->ret = 2;
	}
	struct recording rec = scene_recording(&s);
	VERDICTS v = verdicts_of(&rec);

	assert_non_null(verdict(&v, PROBLEM_MEMORY_LEAK));
	assert_has(verdict(&v, PROBLEM_MEMORY_LEAK)->summary, "ran out of memory");
	assert_non_null(verdict(&v, PROBLEM_GPU_MEMORY));
}

static void test_lost_events_make_it_a_note(void **state)
{
	SCENE;
	struct accounting books = {0};

	train(&s, MIB, 200);
	struct recording rec = scene_recording(&s);
	books.source[SOURCE_CUDA].hits = 1000;
	books.source[SOURCE_CUDA].lost[LOSS_RING_FULL] = 300;
	rec.books = &books;
	VERDICTS v = verdicts_of(&rec);

	assert_int_equal(verdict(&v, PROBLEM_MEMORY_LEAK)->severity, SEVERITY_LOW);
}

static void test_one_event_and_hostile(void **state)
{
	SCENE;
	allocate(&s, 0, GIB);
	expect_none(&s);
	scene_hostile(&s, SOURCE_CUDA, CUDA_MALLOC);
	scene_hostile(&s, SOURCE_CUDA, CUDA_FREE);
	expect_none(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leak),
		cmocka_unit_test(test_a_leak_with_much_room),
		cmocka_unit_test(test_query_knows_what_frees),
		cmocka_unit_test(test_slow_leak_is_medium),
		cmocka_unit_test(test_pool_that_reaches_its_level),
		cmocka_unit_test(test_churn_without_growth),
		cmocka_unit_test(test_pool_that_doubles),
		cmocka_unit_test(test_replacing_older_memory),
		cmocka_unit_test(test_freed_at_the_end),
		cmocka_unit_test(test_until_it_ran_out),
		cmocka_unit_test(test_lost_events_make_it_a_note),
		cmocka_unit_test(test_one_event_and_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
