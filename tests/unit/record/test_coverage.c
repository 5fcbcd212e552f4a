/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "record/attach/coverage.h"
#include "record/discover/discover.h"
#include "tree.h"

#define PLACES (geteuid() ? 128u : 256u) /* WIRE_LIBRARY_MAX, of which a user but root has half */

static char root[TREE_MAX];
static struct coverage *coverage; /* without probes: files are looked at only */

static int setup(void **state)
{
	tree_init(root);
	tree_write(root, "/file", "not a library, which takes a place all the same");
	return coverage_new(NULL, &coverage);
}

static int teardown(void **state)
{
	coverage_free(coverage);
	tree_done(root);
	return 0;
}

/* Files are told apart by their numbers alone; what is behind them is one and the same. */
static struct target_library file(uint64_t inode)
{
	return (struct target_library){
		.kind = TARGET_CUDART, .dev = 1, .inode = inode, .path = "/x/libcudart.so.12"};
}

static int add(uint64_t inode)
{
	struct target_library l = file(inode);
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/file", root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return coverage_add(coverage, &l, fd, NULL);
}

static bool has(uint64_t inode)
{
	struct target_library l = file(inode);

	return coverage_has(coverage, &l);
}

/* One look at all processes, which map the files from @first to @last. */
static void scan(uint64_t first, uint64_t last)
{
	coverage_scan_begin(coverage);
	for (uint64_t i = first; i <= last; i++) {
		struct target_library l = file(i);

		coverage_mapped(coverage, &l);
	}
	coverage_scan_end(coverage);
}

static void the_functions_of_a_real_file_are_found(void **state)
{
	struct target_library l = {.kind = TARGET_CUDART};
	const struct coverage_file *f;
	int fd;

	snprintf(l.path, sizeof(l.path), "%s", CUDART);
	fd = discover_file_open(CUDART, &l);
	assert_true(fd >= 0);
	assert_int_equal(coverage_add(coverage, &l, fd, NULL), 1);
	f = coverage_find(coverage, &l);
	assert_non_null(f);
	assert_true(f->probes > 10);
	assert_true(f->since.ns > 0);
	assert_string_equal(f->why, "");
	fd = discover_file_open(CUDART, &l);
	assert_int_equal(coverage_add(coverage, &l, fd, NULL), 0); /* known */
}

static const struct coverage_file *settled(const struct target_library *l)
{
	const struct coverage_file *f = coverage_find(coverage, l);

	assert_non_null(f);
	assert_true(f->is_coming);
	while (f->is_coming) {
		usleep(1000);
		coverage_settle(coverage);
	}
	return f;
}

/* Beside the caller the same comes of it, a moment later. */
static void files_are_probed_beside(void **state)
{
	struct target_library l = {.kind = TARGET_CUDART}, bad = file(7);
	const struct coverage_file *f;

	snprintf(l.path, sizeof(l.path), "%s", CUDART);
	coverage_beside(coverage);
	assert_int_equal(coverage_add(coverage, &l, discover_file_open(CUDART, &l), NULL), 1);
	f = settled(&l);
	assert_true(f->probes > 10);
	assert_true(f->since.ns > 0);
	assert_int_equal(add(7), 1);
	f = settled(&bad);
	assert_int_equal(f->error, -EBADMSG);
	assert_string_not_equal(f->why, "");
	assert_int_equal(f->probes, 0);
	assert_false(coverage_settle(coverage)); /* nothing is new */
}

static void files_that_are_all_mapped_stay(void **state)
{
	scan(0, 0);
	for (uint64_t i = 1; i <= PLACES; i++)
		assert_int_equal(add(i), -EBADMSG);
	assert_int_equal(add(PLACES + 1), -ENOBUFS);
	scan(1, PLACES);
	assert_int_equal(add(PLACES + 1), -ENOBUFS);
	for (uint64_t i = 1; i <= PLACES; i++)
		assert_true(has(i));
}

static void any_number_of_files_that_nobody_maps_leaves_room(void **state)
{
	for (uint64_t i = 1; i <= 5 * PLACES; i++) {
		if (i % 7 == 0)
			scan(0, 0);
		assert_true(add(i) != -ENOBUFS);
		assert_true(has(i));
	}
}

static void what_was_not_mapped_for_longest_goes_first(void **state)
{
	for (uint64_t i = 1; i <= PLACES; i++)
		add(i);
	scan(1, 200);
	scan(1, 100);
	add(1000);
	assert_true(has(1000));
	for (uint64_t i = 1; i <= 200; i++)
		assert_true(has(i));
	for (uint64_t i = 2000; i < 2055; i++) /* 55 others are left that are as old */
		assert_true(add(i) != -ENOBUFS);
	for (uint64_t i = 1; i <= 100; i++)
		assert_true(has(i));
}

static void files_known_from_disk_go_last(void **state)
{
	struct target_library kept = file(1);

	add(1);
	coverage_keep(coverage, &kept);
	for (uint64_t i = 2; i <= PLACES; i++)
		add(i);
	scan(0, 0);
	for (uint64_t i = 1000; i < 1000 + PLACES - 20; i++)
		assert_true(add(i) != -ENOBUFS);
	assert_true(has(1));
}

/* While processes are being looked at, those not reached yet are not taken for gone. */
static void a_scan_under_way_frees_nothing_of_the_last(void **state)
{
	for (uint64_t i = 1; i <= PLACES; i++)
		add(i);
	scan(1, PLACES);
	coverage_scan_begin(coverage);
	assert_int_equal(add(PLACES + 1), -ENOBUFS);
	coverage_scan_end(coverage);
	assert_int_equal(add(PLACES + 1), -EBADMSG); /* nobody mapped anything in it */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_functions_of_a_real_file_are_found),
		TEST(files_are_probed_beside),
		TEST(files_that_are_all_mapped_stay),
		TEST(any_number_of_files_that_nobody_maps_leaves_room),
		TEST(what_was_not_mapped_for_longest_goes_first),
		TEST(files_known_from_disk_go_last),
		TEST(a_scan_under_way_frees_nothing_of_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
