/* SPDX-License-Identifier: Apache-2.0 */
/* test_python_thread.c - the lists of interpreters and threads: which thread is found, where the
 * lists are searched for, and that rings and strangers in them end a walk. Made-up memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "record/python/python_private.h"
#include "python_fake.h"

static struct fake f;

static int find(uint32_t tid, uint64_t *ret_thread)
{
	uint64_t frame = 0;
	int r = python_thread_find(&f.memory, &f.p, tid, ret_thread, &frame);

	assert_true(r < 0 || frame != 0);
	return r;
}

/* three_threads - of the first interpreter: 100, 101, 102, each in a frame of its own. */
static void three_threads(unsigned minor)
{
	const struct stack_python p = fake_row(minor);

	fake_init(&f, &p);
	for (unsigned i = 0; i < 3; i++)
		fake_thread_put(&f, i, fake_interpreter(0), i < 2 ? fake_thread(i + 1) : 0, 100 + i,
			fake_frame(i));
}

static void test_found_by_the_kernels_id(void **state)
{
	for (unsigned minor = 9; minor <= 12; minor++) {
		uint64_t thread = 0;

		three_threads(minor);
		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(find(100 + i, &thread), 0);
			assert_int_equal(thread, fake_thread(i));
		}
		thread = 77;
		assert_int_equal(find(103, &thread), -ENOENT);
		assert_int_equal(thread, 77);
	}
}

static void test_without_an_id_none_is_found(void **state)
{
	uint64_t thread;

	three_threads(9);
	f.p.pthread_tid = PYTHON_NONE;
	assert_int_equal(find(100, &thread), -ENOENT);
}

static void test_an_ended_threads_record_is_passed_over(void **state)
{
	uint64_t thread;

	three_threads(9);
	fake_u64(&f, fake_thread(0) + f.p.thread_id, 0x7f0000000000);
	assert_int_equal(find(100, &thread), -ENOENT);
	assert_int_equal(find(102, &thread), 0);
}

static void test_the_first_interpreter_with_a_frame(void **state)
{
	uint64_t thread;

	three_threads(11);
	fake_u64(&f, fake_interpreter(0) + f.p.interpreter_next, fake_interpreter(1));
	fake_u64(&f, fake_interpreter(1) + f.p.interpreter_threads, fake_thread(5));
	fake_thread_put(&f, 5, fake_interpreter(1), 0, 101, fake_frame(5));
	assert_int_equal(find(101, &thread), 0);
	assert_int_equal(thread, fake_thread(1));
	fake_thread_put(&f, 1, fake_interpreter(0), fake_thread(2), 101, 0);
	assert_int_equal(find(101, &thread), 0);
	assert_int_equal(thread, fake_thread(5));
	fake_thread_put(&f, 5, fake_interpreter(1), 0, 101, 0);
	assert_int_equal(find(101, &thread), -ENOENT);
}

static void test_a_cframe_may_be_missing(void **state)
{
	uint64_t thread;

	three_threads(11);
	fake_u64(&f, fake_thread(0) + f.p.thread_frame, 0);
	assert_int_equal(find(100, &thread), -ENOENT);
}

static void test_rings_end(void **state)
{
	uint64_t thread;

	three_threads(11);
	fake_u64(&f, fake_thread(2) + f.p.thread_next, fake_thread(0));
	assert_int_equal(find(101, &thread), 0); /* it is met before */
	assert_int_equal(find(103, &thread), -ELOOP);
	three_threads(11);
	fake_u64(&f, fake_interpreter(0) + f.p.interpreter_next, fake_interpreter(0));
	assert_int_equal(find(103, &thread), -ELOOP);
}

static void test_strangers_and_faults(void **state)
{
	uint64_t thread;

	three_threads(11);
	fake_u64(&f, fake_thread(1) + f.p.thread_interpreter, fake_interpreter(1));
	assert_int_equal(find(102, &thread), -EBADMSG);
	three_threads(11);
	fake_u64(&f, fake_thread(1) + f.p.thread_next, 0x700000000000);
	assert_int_equal(find(102, &thread), -EFAULT);
	three_threads(11);
	fake_u64(&f, FAKE_RUNTIME + f.p.runtime_interpreters, 0x700000000000);
	assert_int_equal(find(102, &thread), -EFAULT);
	fake_u64(&f, FAKE_RUNTIME + f.p.runtime_interpreters, 0);
	assert_int_equal(find(102, &thread), -ENOENT);
}

static void test_the_list_is_searched_for(void **state)
{
	const uint32_t at[] = {8, 504, 512, 8000, 16376};
	uint32_t offset;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		three_threads(11);
		fake_u64(&f, fake_interpreter(0) + f.p.interpreter_threads, 0);
		/* a single thread that has it, and things that look like threads from afar */
		fake_u64(&f, fake_interpreter(0) + 4000, fake_thread(2));
		fake_u64(&f, fake_interpreter(0) + 4008, fake_thread(6));
		fake_u64(&f, fake_interpreter(0) + 4016, 0x700000000000);
		fake_u64(&f, fake_interpreter(0) + 4024, UINT64_MAX);
		fake_u64(&f, fake_interpreter(0) + at[i], fake_thread(0));
		assert_int_equal(python_thread_search(&f.memory, &f.p, 102, &offset), 0);
		assert_int_equal(offset, at[i]);
		assert_int_equal(python_thread_search(&f.memory, &f.p, 103, &offset), -ENOENT);
	}
}

/* Nothing tells a pointer to an only thread from the list: the first is taken, and said to be a guess.
 */
static void test_places_that_tie(void **state)
{
	uint32_t offset;

	three_threads(11);
	fake_u64(&f, fake_interpreter(0) + f.p.interpreter_threads, 0);
	fake_u64(&f, fake_interpreter(0) + 504, fake_thread(1));
	fake_u64(&f, fake_interpreter(0) + 4000, fake_thread(1));
	assert_int_equal(python_thread_search(&f.memory, &f.p, 102, &offset), 1);
	assert_int_equal(offset, 504);
	fake_u64(&f, fake_interpreter(0) + 4000, fake_thread(0));
	assert_int_equal(python_thread_search(&f.memory, &f.p, 102, &offset), 0);
	assert_int_equal(offset, 4000);
}

static void test_the_search_stops_at_the_end_of_memory(void **state)
{
	uint32_t offset;

	three_threads(11);
	fake_u64(&f, FAKE_RUNTIME + f.p.runtime_interpreters, FAKE_END - 640);
	assert_int_equal(python_thread_search(&f.memory, &f.p, 102, &offset), -ENOENT);
}

static void test_the_c_librarys_id_is_searched_for(void **state)
{
	const uint32_t at[] = {0x10, 0x2d0, 0x8fc};
	uint32_t offset = 0;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		three_threads(9);
		f.p.pthread_tid = PYTHON_NONE;
		for (unsigned j = 0; j < 3; j++)
			fake_put(&f, FAKE_PTHREAD + j * 0x1000 + 0xd0, 0, 4);
		assert_int_equal(python_pthread_search(&f.memory, &f.p, 101, &offset), -ENOENT);
		fake_put(&f, FAKE_PTHREAD + 0x1000 + at[i], 101, 4);
		assert_int_equal(python_pthread_search(&f.memory, &f.p, 101, &offset), 0);
		assert_int_equal(offset, at[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found_by_the_kernels_id),
		cmocka_unit_test(test_without_an_id_none_is_found),
		cmocka_unit_test(test_an_ended_threads_record_is_passed_over),
		cmocka_unit_test(test_the_first_interpreter_with_a_frame),
		cmocka_unit_test(test_a_cframe_may_be_missing),
		cmocka_unit_test(test_rings_end),
		cmocka_unit_test(test_strangers_and_faults),
		cmocka_unit_test(test_the_list_is_searched_for),
		cmocka_unit_test(test_places_that_tie),
		cmocka_unit_test(test_the_search_stops_at_the_end_of_memory),
		cmocka_unit_test(test_the_c_librarys_id_is_searched_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
