/* SPDX-License-Identifier: Apache-2.0 */
/* test_device_allocs.c - allocations and frees matched by address. */
#include "verdict.h"

#include "diagnose/findings/device_allocs.h"

static struct event *allocate(struct scene *s, int64_t at_us, uint64_t pointer, uint64_t bytes)
{
	struct event *e = scene_call(s, CUDA_MALLOC, at_us, 10);

	e->arg0 = bytes;
	e->arg1 = pointer;
	return e;
}

static struct event *release(struct scene *s, int64_t at_us, uint64_t pointer)
{
	struct event *e = scene_call(s, CUDA_FREE, at_us, 10);

	e->arg0 = pointer;
	return e;
}

static void test_balance(void **state)
{
	SCENE;
	_cleanup_(device_allocs_done) struct device_allocs l = {0};
	struct recording rec;

	allocate(&s, 0, 0x1000, 100);
	allocate(&s, 100, 0x2000, 50);
	release(&s, 200, 0x1000);
	allocate(&s, 300, 0x1000, 7); /* the address again */
	release(&s, 400, 0x9000);     /* from before */
	rec = scene_recording(&s);
	assert_int_equal(device_allocs_run(&rec, &l), 0);
	assert_int_equal(l.count, 5);
	assert_int_equal(l.entries[1].balance, 150);
	assert_int_equal(l.entries[2].balance, 50);
	assert_int_equal(l.entries[4].balance, 57);
	assert_true(l.entries[0].freed && !l.entries[1].freed && !l.entries[3].freed);
	assert_true(l.entries[4].unknown && !l.entries[2].unknown);
	assert_int_equal(device_allocs_balance(&l, VICTIM, SCENE_T0_NS + 150000), 150);
	assert_int_equal(device_allocs_balance(&l, HOG, SCENE_T0_NS + 150000), 0);
	assert_int_equal(device_allocs_balance(&l, VICTIM, 0), 0);
}

/* A free on one thread and the next owner's allocation on another overlap in time. */
static void test_address_handed_over(void **state)
{
	SCENE;
	_cleanup_(device_allocs_done) struct device_allocs l = {0};
	struct recording rec;

	allocate(&s, 0, 0x1000, 100);
	allocate(&s, 45, 0x1000, 30); /* begins before the free, returns after it began */
	release(&s, 50, 0x1000);
	rec = scene_recording(&s);
	assert_int_equal(device_allocs_run(&rec, &l), 0);
	assert_int_equal(l.entries[2].balance, 30);
	assert_true(l.entries[0].freed && !l.entries[2].freed);
}

/* Published files do not mark driver calls inside runtime calls: one allocation, seen twice. */
static void test_seen_in_both_layers(void **state)
{
	SCENE;
	_cleanup_(device_allocs_done) struct device_allocs l = {0};
	struct recording rec;
	struct event *e;

	allocate(&s, 0, 0x1000, 100);
	e = scene_add(&s, SOURCE_DRIVER, DRIVER_MALLOC, VICTIM, VICTIM, 2, 5);
	e->arg0 = 100;
	e->arg1 = 0x1000;
	e = scene_add(&s, SOURCE_DRIVER, DRIVER_MALLOC, VICTIM, VICTIM, 3, 5);
	e->arg0 = 100;
	e->arg1 = 0x1000;
	e->flags = WIRE_NESTED;
	rec = scene_recording(&s);
	assert_int_equal(device_allocs_run(&rec, &l), 0);
	assert_int_equal(l.count, 2);
	assert_int_equal(l.entries[1].balance, 100);
}

static void test_failures_and_nonsense(void **state)
{
	SCENE;
	_cleanup_(device_allocs_done) struct device_allocs l = {0};
	struct recording rec;

	allocate(&s, 0, 0, 100)->ret = 2;
	allocate(&s, 10, 0x1000, 100)->ret = 1;
	release(&s, 20, 0x1000)->ret = 1;
	release(&s, 30, 0);
	allocate(&s, 40, 0x1000, UINT64_MAX);
	scene_call(&s, CUDA_LAUNCH, 50, 10)->ret = 2;
	scene_call(&s, CUDA_HOST_ALLOC, 60, 10)->ret = 2;
	scene_hostile(&s, SOURCE_CUDA, CUDA_MALLOC);
	rec = scene_recording(&s);
	assert_int_equal(device_allocs_run(&rec, &l), 0);
	for (size_t i = 0; i < l.count; i++)
		if (l.entries[i].pid == VICTIM)
			assert_int_equal(l.entries[i].kind, DEVICE_ALLOCS_FAIL);
	assert_int_equal(device_allocs_end(&l, 0), 2);
	assert_int_equal(l.entries[0].bytes, 100);
	assert_int_equal(l.entries[1].bytes, 0);
}

static void test_usable(void **state)
{
	SCENE;
	_cleanup_(device_allocs_done) struct device_allocs l = {0};
	struct recording rec;

	for (int i = 0; i < 6; i++)
		allocate(&s, i * 10, 0x7ffe0000,
			100); /* the address of the variable, not its value */
	for (int i = 0; i < 6; i++)
		release(&s, 100 + i * 10, 0x1000 + (uint64_t)i);
	rec = scene_recording(&s);
	assert_int_equal(device_allocs_run(&rec, &l), 0);
	assert_false(device_allocs_is_usable(&l, 0, l.count));
	assert_true(device_allocs_is_usable(&l, 0, 6));
}

static void test_empty(void **state)
{
	_cleanup_(device_allocs_done) struct device_allocs l = {0};
	struct recording rec = {0};

	assert_int_equal(device_allocs_run(&rec, &l), 0);
	assert_int_equal(l.count, 0);
	assert_int_equal(device_allocs_balance(&l, 1, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_address_handed_over),
		cmocka_unit_test(test_seen_in_both_layers),
		cmocka_unit_test(test_failures_and_nonsense),
		cmocka_unit_test(test_usable),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
