/* SPDX-License-Identifier: Apache-2.0 */
/* Which files stay open, and which go when there are too many or they are too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "record/symbol/answer.h"

static struct image_cache image_cache;

static int empty_shelf(void **state)
{
	image_cache = IMAGE_CACHE_INIT;
	return 0;
}

static int clear_shelf(void **state)
{
	image_cache_done(&image_cache);
	assert_int_equal(image_cache.count, 0);
	return 0;
}

static const struct image_cache_item *get_own(uint32_t file)
{
	int fds[PROTOCOL_FILES_MAX] = {open("/proc/self/exe", O_RDONLY | O_CLOEXEC), -1};
	const struct image_cache_item *item = NULL;
	struct errinfo e;

	assert_true(fds[0] >= 0);
	assert_int_equal(image_cache_get(&image_cache, file, PROTOCOL_ELF, fds, &item, &e), 0);
	fd_closep(&fds[0]); /* still ours if the file was there */
	assert_int_equal(item->file, file);
	return item;
}

static bool is_there(uint32_t file)
{
	for (size_t i = 0; i < image_cache.count; i++)
		if (image_cache.items[i].file == file)
			return true;
	return false;
}

static void test_a_file_is_opened_once(void **state)
{
	const struct image_cache_item *item = get_own(1);
	const struct names *names = item->names;

	assert_non_null(item->image);
	assert_non_null(names);
	assert_true(item->mapped_bytes > 1000);
	assert_ptr_equal(get_own(1)->names, names);
	assert_int_equal(image_cache.count, 1);
	image_cache_forget(&image_cache, 2);
	assert_int_equal(image_cache.count, 1);
	image_cache_forget(&image_cache, 1);
	assert_int_equal(image_cache.count, 0);
}

static void test_the_oldest_makes_room(void **state)
{
	for (uint32_t i = 1; i <= IMAGE_CACHE_ITEMS_MAX; i++)
		get_own(i);
	assert_int_equal(image_cache.count, IMAGE_CACHE_ITEMS_MAX);
	get_own(1); /* now 2 is the oldest */
	get_own(1000);
	assert_int_equal(image_cache.count, IMAGE_CACHE_ITEMS_MAX);
	assert_true(is_there(1));
	assert_false(is_there(2));
	assert_true(is_there(3));
	assert_true(is_there(1000));
}

static void test_mapped_bytes_have_a_ceiling(void **state)
{
	uint64_t one = get_own(1)->mapped_bytes;

	image_cache.mapped_max = 2 * one;
	get_own(2);
	assert_int_equal(image_cache.count, 2);
	get_own(3);
	assert_int_equal(image_cache.count, 2);
	assert_false(is_there(1));
	image_cache.mapped_max = 1;
	image_cache_tidy(&image_cache); /* the last one used stays */
	assert_int_equal(image_cache.count, 1);
	assert_true(is_there(3));
	get_own(4); /* larger than the ceiling, and yet read */
	assert_int_equal(image_cache.count, 1);
	assert_true(is_there(4));
}

static void test_tables_have_a_ceiling(void **state)
{
	get_own(1);
	get_own(2);
	image_cache_tidy(&image_cache);
	assert_int_equal(image_cache.count, 2);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("# skip: a sanitizer's allocator does not tell how much it gave\n");
	skip();
#endif
	image_cache.heap_max = 1;
	image_cache_tidy(&image_cache);
	assert_int_equal(image_cache.count, 1);
	assert_true(is_there(2));
}

static void test_what_cannot_be_read(void **state)
{
	int fds[PROTOCOL_FILES_MAX] = {memfd_create("text", MFD_CLOEXEC), -1};
	const struct image_cache_item *item = NULL;
	struct errinfo e = {0};
	int fd = fds[0];

	assert_int_equal(write(fd, "text", 4), 4);
	assert_int_equal(image_cache_get(&image_cache, 1, PROTOCOL_ELF, fds, &item, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "not a 64-bit ELF"));
	assert_null(item);
	assert_int_equal(image_cache.count, 0);
	assert_int_equal(fds[0], -1);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed */
}

static void test_a_perfmap(void **state)
{
	int fds[PROTOCOL_FILES_MAX] = {memfd_create("map", MFD_CLOEXEC), -1};
	const struct image_cache_item *item = NULL;
	struct errinfo e;

	assert_int_equal(write(fds[0], "10 10 f\n", 8), 8);
	assert_int_equal(image_cache_get(&image_cache, 1, PROTOCOL_PERFMAP, fds, &item, &e), 0);
	assert_non_null(item->perfmap);
	assert_null(item->image);
	assert_string_equal(perfmap_at(item->perfmap, 0x18, &(uint64_t){0}), "f");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, empty_shelf, clear_shelf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_file_is_opened_once),
		TEST(test_the_oldest_makes_room),
		TEST(test_mapped_bytes_have_a_ceiling),
		TEST(test_tables_have_a_ceiling),
		TEST(test_what_cannot_be_read),
		TEST(test_a_perfmap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
