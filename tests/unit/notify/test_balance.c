/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "notify/remediate/remediate.h"
#include "wire/ids.h"

#define ALLOCS_MAX 4
static struct balance b;

static int setup(void **state)
{
	balance_init(&b, ALLOCS_MAX);
	return 0;
}

static int teardown(void **state)
{
	balance_done(&b);
	return 0;
}

static struct event call(uint16_t op, uint64_t arg0, uint64_t arg1, int64_t at_ms)
{
	return (struct event){.source = SOURCE_CUDA,
		.op = op,
		.pid = 5,
		.comm = "serve",
		.arg0 = arg0,
		.arg1 = arg1,
		.device = 1,
		.start = {at_ms * (int64_t)NS_PER_MS}};
}

static void allocate(uint64_t bytes, uint64_t pointer, int64_t at_ms)
{
	struct event e = call(CUDA_MALLOC, bytes, pointer, at_ms);

	balance_take(&b, &e);
}

static void release(uint64_t pointer)
{
	struct event e = call(CUDA_FREE, pointer, 0, 0);

	balance_take(&b, &e);
}

static uint64_t bytes(void)
{
	const struct balance_process *p = idmap_get(&b.processes, 5);

	return p ? p->bytes : 0;
}

static void test_what_is_allocated_and_not_freed(void **state)
{
	struct balance_process *p;
	size_t cursor = 0;

	allocate(100, 0x1000, 1);
	allocate(30, 0x2000, 2);
	release(0x1000);
	release(0x9000); /* nobody knows it */
	assert_int_equal(bytes(), 30);
	p = balance_next(&b, &cursor);
	assert_non_null(p);
	assert_int_equal(p->last_bytes, 30);
	assert_int_equal(p->device, 1);
	assert_string_equal(p->comm, "serve");
	assert_null(balance_next(&b, &cursor));
	cursor = 0;
	assert_null(balance_next(&b, &cursor)); /* nothing new */
	allocate(7, 0x2000, 3);                 /* the free in between was not seen */
	assert_int_equal(bytes(), 7);
	cursor = 0;
	assert_non_null(balance_next(&b, &cursor));
}

static void test_what_is_no_memory_of_the_device(void **state)
{
	struct event e = call(CUDA_MALLOC, 100, 0x1000, 1);

	e.flags = WIRE_NESTED; /* the driver's call inside the runtime's */
	balance_take(&b, &e);
	e.flags = 0;
	e.ret = 2; /* it failed */
	balance_take(&b, &e);
	e = call(CUDA_HOST_ALLOC, 100, 0x1000, 1);
	balance_take(&b, &e);
	e = call(CUDA_MALLOC, 100, 0, 1); /* its pointer is not known */
	balance_take(&b, &e);
	assert_int_equal(bytes(), 0);
	allocate(100, 0x1000, 1); /* control */
	assert_int_equal(bytes(), 100);
	e = (struct event){.source = SOURCE_HOST, .op = HOST_PROCESS_EXIT, .pid = 5};
	balance_take(&b, &e);
	assert_int_equal(b.processes.used, 0);
}

static void test_the_oldest_go_first(void **state)
{
	uint64_t ages[8];

	for (uint64_t i = 0; i < 6; i++)
		allocate(10, 0x1000 + i, (int64_t)(10 * i));
	assert_int_equal(bytes(), 40);
	assert_int_equal(balance_ages(&b, 5, (wall_time){100 * (int64_t)NS_PER_MS}, ages, 8), 4);
	assert_int_equal(ages[0], 80);
	assert_int_equal(ages[3], 50);
	assert_int_equal(balance_ages(&b, 5, (wall_time){100 * (int64_t)NS_PER_MS}, ages, 2), 2);
	assert_int_equal(ages[0], 80);
	assert_int_equal(ages[1], 70);
	assert_int_equal(balance_ages(&b, 6, (wall_time){0}, ages, 8), 0);
	assert_int_equal(balance_ages(&b, 5, (wall_time){0}, ages, 0), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_allocated_and_not_freed),
		TEST(test_what_is_no_memory_of_the_device),
		TEST(test_the_oldest_go_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
