/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "record/capture/group_folder.h"
#include "base/macros.h"
#include "tree.h"

#define TOP "/sys/fs/cgroup"
#define POD TOP "/kubepods/pod7"
#define OWN POD "/abc"

static char root[TREE_MAX];

static int setup(void **state)
{
	tree_init(root);
	tree_write(root, OWN "/cgroup.controllers", "cpu memory\n");
	return 0;
}

static int teardown(void **state)
{
	tree_done(root);
	return 0;
}

static struct container_sample read_own(void)
{
	struct container_sample s;
	struct group_folder folder = {.path = OWN, .top = strlen(TOP)};

	assert_int_equal(container_read(root, &folder, NULL, 42, (wall_time){1000}, &s), 0);
	assert_int_equal(s.time.ns, 1000);
	assert_int_equal(s.cgroup_id, 42);
	return s;
}

static void test_what_a_group_tells(void **state)
{
	struct container_sample s;

	tree_write(root, OWN "/cpu.max", "200000 100000\n");
	tree_write(root, OWN "/cpu.stat",
		"usage_usec 9\nuser_usec 5\nnr_periods 70\nnr_throttled 31\nthrottled_usec 8500\n");
	tree_write(root, OWN "/memory.max", "1073741824\n");
	tree_write(root, OWN "/memory.high", "805306368\n");
	tree_write(root, OWN "/memory.current", "1000000000\n");
	tree_write(root, OWN "/memory.events", "low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\n");
	tree_write(root, OWN "/memory.stat", "anon 8\nworkingset_refault_file 6\n");
	tree_write(root, OWN "/cpu.pressure",
		"some avg10=1.00 avg60=0.00 avg300=0.00 total=111\nfull avg10=0 total=9\n");
	tree_write(root, OWN "/memory.pressure", "some avg10=0.00 total=222\n");
	tree_write(root, OWN "/io.pressure", "some avg10=0.00 total=333\n");
	tree_write(root, OWN "/cpuset.cpus.effective", "0-3,8,10-11\n");
	s = read_own();
	assert_int_equal(s.quota_us, 200000);
	assert_int_equal(s.period_us, 100000);
	assert_int_equal(s.throttled_count, 31);
	assert_int_equal(s.throttled_us, 8500);
	assert_int_equal(s.memory_limit_bytes, 1073741824);
	assert_int_equal(s.memory_high_bytes, 805306368);
	assert_int_equal(s.memory_bytes, 1000000000);
	assert_int_equal(s.memory_high, 2);
	assert_int_equal(s.memory_max, 3);
	assert_int_equal(s.oom_kills, 5);
	assert_int_equal(s.psi_cpu_us, 111);
	assert_int_equal(s.psi_memory_us, 222);
	assert_int_equal(s.psi_io_us, 333);
	assert_int_equal(s.memory_refaults, 6);
	assert_int_equal(s.cpus, 7);
}

static void test_what_nothing_tells_is_unknown(void **state)
{
	struct container_sample s = read_own();

#define X(field, meaning) assert_int_equal(s.field, CONTAINER_UNKNOWN);
	CONTAINER_FIELDS(X)
#undef X
	tree_write(root, OWN "/cpu.max", "max 100000\n");
	tree_write(root, OWN "/cpu.stat", "usage_usec 9\n");
	tree_write(root, OWN "/memory.max", "max\n");
	tree_write(root, OWN "/cpuset.cpus.effective", "\n");
	tree_write(root, OWN "/cpu.pressure", "");
	s = read_own();
	assert_int_equal(s.quota_us, -1);
	assert_int_equal(s.period_us, 100000);
	assert_int_equal(s.throttled_us, -1);
	assert_int_equal(s.memory_limit_bytes, -1);
	assert_int_equal(s.cpus, -1);
	assert_int_equal(s.psi_cpu_us, -1);
}

/* The pod has the tighter quota and the lower limit: it is what holds the container back. */
static void test_limits_of_groups_above(void **state)
{
	struct container_sample s;

	tree_write(root, OWN "/cpu.max", "400000 100000\n");
	tree_write(root, OWN "/cpu.stat", "nr_throttled 1\nthrottled_usec 10\n");
	tree_write(root, POD "/cpu.max", "75000 50000\n"); /* 1.5 CPUs */
	tree_write(root, POD "/cpu.stat", "nr_throttled 2\nthrottled_usec 20\n");
	tree_write(root, TOP "/kubepods/cpu.max", "max 100000\n");
	tree_write(root, TOP "/kubepods/cpu.stat", "nr_throttled 3\nthrottled_usec 30\n");
	tree_write(root, OWN "/memory.max", "max\n");
	tree_write(root, OWN "/memory.current", "5\n");
	tree_write(root, OWN "/memory.events", "high 0\nmax 0\noom_kill 0\n");
	tree_write(root, POD "/memory.max", "900\n");
	tree_write(root, POD "/memory.current", "800\n");
	tree_write(root, POD "/memory.events", "high 0\nmax 7\noom_kill 1\n");
	tree_write(root, POD "/cpuset.cpus.effective", "0-1\n");
	s = read_own();
	assert_int_equal(s.quota_us, 75000);
	assert_int_equal(s.period_us, 50000);
	assert_int_equal(s.throttled_count, 2);
	assert_int_equal(s.throttled_us, 20);
	assert_int_equal(s.memory_limit_bytes, 900);
	assert_int_equal(s.memory_bytes, 800);
	assert_int_equal(s.memory_max, 7);
	assert_int_equal(s.oom_kills, 1);
	assert_int_equal(s.cpus, 2);
	tree_write(root, OWN "/cpu.max", "100000 100000\n"); /* control: now its own is */
	tree_write(root, OWN "/memory.max", "600\n");
	s = read_own();
	assert_int_equal(s.throttled_us, 10);
	assert_int_equal(s.quota_us, 100000);
	assert_int_equal(s.memory_bytes, 5);
}

/* Only the pod's controllers are on. */
static void test_the_innermost_that_tells(void **state)
{
	struct container_sample s;

	tree_write(root, OWN "/cpu.stat", "usage_usec 9\n");
	tree_write(root, POD "/cpu.max", "max 100000\n");
	tree_write(root, POD "/cpu.stat", "usage_usec 9\nnr_throttled 0\nthrottled_usec 0\n");
	tree_write(root, POD "/memory.current", "800\n");
	s = read_own();
	assert_int_equal(s.throttled_us, 0);
	assert_int_equal(s.quota_us, -1);
	assert_int_equal(s.memory_bytes, 800);
}

/* As in a container with a cgroup namespace of its own: the top of the mount is its group. */
static void test_the_top_of_a_mount_has_limits(void **state)
{
	struct group_folder folder = {.path = OWN, .top = strlen(OWN)};
	struct container_sample s;

	tree_write(root, OWN "/cpu.max", "50000 100000\n");
	tree_write(root, OWN "/cpu.stat", "nr_throttled 4\nthrottled_usec 40\n");
	tree_write(root, POD "/cpu.max", "10000 100000\n"); /* above the mount: nobody's here */
	assert_int_equal(container_read(root, &folder, NULL, 42, (wall_time){1}, &s), 0);
	assert_int_equal(s.quota_us, 50000);
	assert_int_equal(s.throttled_us, 40);
}

/* Of v1 there is what limits CPUs, on whichever group above. */
static void test_of_version_1(void **state)
{
	struct group_folder folder = {.path = TOP "/cpu/pod/abc", .top = strlen(TOP "/cpu")};
	struct container_sample s;

	tree_write(root, TOP "/cpu/pod/abc/cpu.cfs_quota_us", "-1\n");
	tree_write(root, TOP "/cpu/pod/abc/cpu.cfs_period_us", "100000\n");
	tree_write(root, TOP "/cpu/pod/abc/cpu.stat",
		"nr_periods 9\nnr_throttled 0\nthrottled_time 0\n");
	assert_int_equal(container_read(root, &folder, NULL, 42, (wall_time){1}, &s), 0);
	assert_int_equal(s.quota_us, -1);
	assert_int_equal(s.throttled_us, 0);
	tree_write(root, TOP "/cpu/pod/cpu.cfs_quota_us", "60000\n");
	tree_write(root, TOP "/cpu/pod/cpu.cfs_period_us", "100000\n");
	tree_write(root, TOP "/cpu/pod/cpu.stat",
		"nr_periods 9\nnr_throttled 7\nthrottled_time 123456789\n");
	assert_int_equal(container_read(root, &folder, NULL, 42, (wall_time){1}, &s), 0);
	assert_int_equal(s.quota_us, 60000);
	assert_int_equal(s.period_us, 100000);
	assert_int_equal(s.throttled_count, 7);
	assert_int_equal(s.throttled_us, 123456);
	assert_int_equal(s.memory_limit_bytes, -1);
	assert_int_equal(s.cpus, -1);
}

/* Its limit of memory is in another tree, the lowest on the way up; without one above it what is used is told alone. */
static void test_memory_of_version_1(void **state)
{
	struct group_folder memory = {.path = TOP "/memory/pod/abc", .top = strlen(TOP "/memory")};
	struct group_folder cpu = {.path = TOP "/cpu/pod/abc", .top = strlen(TOP "/cpu")};
	struct container_sample s;

	tree_write(root, TOP "/memory/pod/abc/memory.limit_in_bytes", "9223372036854771712\n");
	tree_write(root, TOP "/memory/pod/abc/memory.usage_in_bytes", "4096\n");
	assert_int_equal(container_read(root, NULL, &memory, 42, (wall_time){1}, &s), 0);
	assert_int_equal(s.memory_limit_bytes, -1);
	assert_int_equal(s.memory_bytes, 4096);
	assert_int_equal(s.quota_us, -1);
	tree_write(root, TOP "/memory/pod/memory.limit_in_bytes", "104857600\n");
	tree_write(root, TOP "/memory/pod/memory.usage_in_bytes", "104800256\n");
	tree_write(root, TOP "/memory/pod/memory.failcnt", "98043\n");
	tree_write(root, TOP "/memory/pod/memory.stat",
		"workingset_refault_file 1\ntotal_workingset_refault_file 69204\n");
	tree_write(root, TOP "/memory/pod/memory.oom_control",
		"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	tree_write(root, TOP "/cpu/pod/abc/cpu.cfs_quota_us", "60000\n");
	tree_write(root, TOP "/cpu/pod/abc/cpu.cfs_period_us", "100000\n");
	assert_int_equal(container_read(root, &cpu, &memory, 42, (wall_time){1}, &s), 0);
	assert_int_equal(s.memory_limit_bytes, 104857600);
	assert_int_equal(s.memory_bytes, 104800256);
	assert_int_equal(s.memory_max, 98043);
	assert_int_equal(s.memory_refaults, 69204);
	assert_int_equal(s.oom_kills, 3);
	assert_int_equal(s.quota_us, 60000);
}

static void test_groups_that_cannot_be_read(void **state)
{
	static const struct group_folder folders[] = {
		{.path = POD "/gone", .top = strlen(TOP)},
		{.path = POD, .top = strlen(TOP)}, /* not of v2 */
	};
	struct container_sample s = {.cpus = 77};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		assert_int_equal(
			container_read(root, &folders[i], NULL, 1, (wall_time){1}, &s), -ENOENT);
	assert_int_equal(s.cpus, 77); /* untouched */
}

static void test_nonsense(void **state)
{
	struct container_sample s;

	tree_write(root, OWN "/cpu.max", "200000\n");
	tree_write(root, OWN "/cpu.stat", "nr_throttled\nthrottled_usec x\nnr_throttled_x 5\n");
	tree_write(root, OWN "/memory.max", "99999999999999999999999\n");
	tree_write(root, OWN "/memory.current", "-5\n");
	tree_write(root, OWN "/cpuset.cpus.effective", "3-1\n");
	tree_write(root, OWN "/io.pressure", "full avg10=0.00 total=333\n");
	s = read_own();
	assert_int_equal(s.quota_us, -1);
	assert_int_equal(s.throttled_us, -1);
	assert_int_equal(s.throttled_count, -1);
	assert_int_equal(s.memory_limit_bytes, -1);
	assert_int_equal(s.memory_bytes, -1);
	assert_int_equal(s.cpus, -1);
	assert_int_equal(s.psi_io_us, -1);
}

#define RUN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(test_what_a_group_tells),
		RUN(test_what_nothing_tells_is_unknown),
		RUN(test_limits_of_groups_above),
		RUN(test_the_innermost_that_tells),
		RUN(test_the_top_of_a_mount_has_limits),
		RUN(test_of_version_1),
		RUN(test_memory_of_version_1),
		RUN(test_groups_that_cannot_be_read),
		RUN(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
