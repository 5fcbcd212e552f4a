/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>

#include "record/discover/discover.h"
#include "tree.h"

static int setup(void **state)
{
	*state = malloc(TREE_MAX);
	tree_init(*state);
	return 0;
}

static int teardown(void **state)
{
	tree_done(*state);
	free(*state);
	return 0;
}

static void put_process(const char *root, int pid, const char *comm, unsigned start, unsigned vsize,
	const char *maps)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	snprintf(text, sizeof(text), "%d (%s) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 1 0 %u %u 42\n",
		pid, comm, start, vsize);
	tree_write(root, path, text);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	tree_write(root, path, "Name:\tx\nUid:\t1000\t1000\n");
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	tree_write(root, path, maps);
}

#define CUDART "7f0000000000-7f0000010000 r-xp 0 08:01 5 /opt/libcudart.so.12\n"
#define NCCL   "7f1000000000-7f1000010000 r-xp 0 08:01 6 /opt/libnccl.so.2\n"
#define PLAIN  "7f1000000000-7f1000010000 r-xp 0 08:01 7 /usr/lib/libc.so.6\n"

static void finds_and_follows(void **state)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *r;

	put_process(*state, 33, "train", 100, 5000, CUDART);
	put_process(*state, 43, "bash", 100, 5000, PLAIN);
	put_process(*state, 53, "kthread", 1, 0, "");
	tree_write(*state, "/proc/uptime", "1 1\n");
	assert_int_equal(discover_scanner_new(*state, &s), 0);
	assert_int_equal(discover_scan(s, &r), 0);
	assert_int_equal(r->seen, 3);
	assert_int_equal(r->maps_read, 2);
	assert_int_equal(r->count, 1);
	assert_int_equal(r->processes[0].pid, 33);
	assert_int_equal(r->processes[0].uid, 1000);
	assert_int_equal(r->processes[0].start_ticks, 100);
	assert_string_equal(r->processes[0].comm, "train");
	assert_int_equal(r->processes[0].library_count, 1);
	assert_int_equal(r->processes[0].libraries[0].inode, 5);

	/* unchanged processes are not read again (these two: not before the fifth scan) */
	put_process(*state, 43, "bash", 100, 5000, NCCL);
	assert_int_equal(discover_scan(s, &r), 0);
	assert_int_equal(r->maps_read, 0);
	assert_int_equal(r->count, 1);

	/* a late dlopen changes the size */
	put_process(*state, 43, "bash", 100, 6000, PLAIN CUDART NCCL);
	assert_int_equal(discover_scan(s, &r), 0);
	assert_int_equal(r->maps_read, 1);
	assert_int_equal(r->count, 2);
	assert_int_equal(r->processes[1].pid, 43);
	assert_int_equal(r->processes[1].library_count, 2);
}

static void reused_pids_and_ended_processes(void **state)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *r;
	char path[512];

	put_process(*state, 30, "train", 100, 5000, CUDART);
	put_process(*state, 31, "train", 100, 5000, CUDART);
	assert_int_equal(discover_scanner_new(*state, &s), 0);
	assert_int_equal(discover_scan(s, &r), 0);
	assert_int_equal(r->count, 2);
	put_process(*state, 30, "train", 200, 5000, PLAIN);
	snprintf(path, sizeof(path), "%s/proc/31", (char *)*state);
	tree_done(path);
	assert_int_equal(discover_scan(s, &r), 0);
	assert_int_equal(r->seen, 1);
	assert_int_equal(r->count, 0);
	/* exec keeps the start time; the name tells */
	put_process(*state, 30, "other", 200, 5000, CUDART);
	assert_int_equal(discover_scan(s, &r), 0);
	assert_int_equal(r->count, 1);
	assert_int_equal(r->processes[0].start_ticks, 200);
}

static void hidden_changes_are_seen_in_the_end(void **state)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *r;
	int scans = 0;

	put_process(*state, 30, "train", 100, 5000, PLAIN);
	assert_int_equal(discover_scanner_new(*state, &s), 0);
	assert_int_equal(discover_scan(s, &r), 0);
	put_process(*state, 30, "train", 100, 5000, CUDART);
	do
		assert_int_equal(discover_scan(s, &r), 0);
	while (r->count == 0 && ++scans < 100);
	assert_int_equal(r->count, 1);
	assert_in_range(scans, 0, 16);
}

static void many_processes_stay_sorted(void **state)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *r;

	for (int pid = 1; pid <= 600; pid++)
		put_process(*state, pid, "train", 100, 5000, pid % 2 ? CUDART : PLAIN);
	assert_int_equal(discover_scanner_new(*state, &s), 0);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(discover_scan(s, &r), 0);
		assert_int_equal(r->count, 300);
		for (size_t i = 0; i < r->count; i++)
			assert_int_equal(r->processes[i].pid, 2 * i + 1);
	}
	assert_true(r->maps_read < 600 / 8);
}

static void no_proc_is_an_error(void **state)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *r = NULL;

	assert_int_equal(discover_scanner_new(*state, &s), 0);
	assert_int_equal(discover_scan(s, &r), -ENOENT);
	assert_null(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_and_follows, setup, teardown),
		cmocka_unit_test_setup_teardown(reused_pids_and_ended_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			hidden_changes_are_seen_in_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(many_processes_stay_sorted, setup, teardown),
		cmocka_unit_test_setup_teardown(no_proc_is_an_error, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
