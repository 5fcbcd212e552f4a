/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>

#include "record/capture/group_folder.h"
#include "tree.h"

#define TOP       "/sys/fs/cgroup"
#define MACHINE   "/proc/1/root" TOP
#define STRANGER  "/proc/77/root" TOP
#define V2(point) "34 24 0:28 / " point " ro,nosuid - cgroup2 cgroup2 rw\n"
#define OTHER     "24 1 0:20 / /sys rw - sysfs sysfs rw\n"
#define OVER      "51 34 0:44 / " TOP " rw - fuse.trap trap rw\n"

static char root[TREE_MAX];
static struct group_folders *folders;

static int setup(void **state)
{
	tree_init(root);
	tree_write(root, "/proc/self/mountinfo", OTHER V2(TOP));
	return group_folders_new(root, &folders);
}

static int teardown(void **state)
{
	group_folders_free(folders);
	tree_done(root);
	return 0;
}

/* Makes a group; returns its number. */
static uint64_t group(const char *path)
{
	char full[4096], file[4096];
	struct stat st;

	snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
	tree_write(root, file, "cpu memory\n");
	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(stat(full, &st), 0);
	return st.st_ino;
}

static const struct group_folder *find(uint64_t id, const char *told)
{
	const struct group_asked asked = {.id = id, .pid = 77, .path = told};

	return group_folders_find(folders, &asked);
}

static void assert_found(uint64_t id, const char *told, const char *path, const char *mount)
{
	const struct group_folder *f = find(id, told);

	assert_non_null(f);
	assert_string_equal(f->path, path);
	assert_int_equal(f->top, strlen(mount));
}

static void test_where_it_is_said_to_be(void **state)
{
	assert_found(group(TOP "/docker/abc"), "/docker/abc", TOP "/docker/abc", TOP);
}

/* The name is wrong, and leads to a group that is another one. */
static void test_by_number_and_not_by_name(void **state)
{
	group(TOP "/docker/abc");
	assert_found(group(TOP "/x/y/z"), "/docker/abc", TOP "/x/y/z", TOP);
}

static void test_the_top_of_the_own_namespace(void **state)
{
	assert_found(group(TOP), "/", TOP, TOP);
}

static void test_where_process_1_sees_it(void **state)
{
	uint64_t id;

	group(TOP);
	tree_write(root, "/proc/1/mountinfo", V2(TOP "/unified"));
	id = group(MACHINE "/unified/docker/def");
	assert_found(id, "/../def", MACHINE "/unified/docker/def", MACHINE "/unified");
}

static void test_where_the_process_itself_sees_it(void **state)
{
	uint64_t id;

	tree_write(root, "/proc/1/mountinfo", OTHER);
	tree_write(root, "/proc/77/mountinfo", V2(TOP));
	id = group(STRANGER);
	assert_found(id, "/../def", STRANGER, STRANGER);
}

/* What was mounted over it is a stranger's. */
static void test_a_covered_mount_is_not_looked_at(void **state)
{
	uint64_t id = group(STRANGER);

	tree_write(root, "/proc/77/mountinfo", V2(TOP) OVER);
	assert_null(find(id, "/../def"));
}

static void test_not_found_is_asked_again_later(void **state)
{
	uint64_t id = group("/elsewhere/abc");
	int calls = 0;

	assert_null(find(id, "/abc"));
	assert_null(find(id, "/abc"));
	tree_write(root, "/proc/1/mountinfo", V2(TOP));
	assert_null(find(id, "/abc"));
	/* The group moves to where it can be seen: a folder keeps its number. */
	{
		char from[4096], to[4096];

		group(TOP "/late");
		snprintf(from, sizeof(from), "%s/elsewhere/abc", root);
		snprintf(to, sizeof(to), "%s" TOP "/late/abc", root);
		assert_int_equal(rename(from, to), 0);
	}
	while (!find(id, "/abc") && calls < 1000)
		calls++;
	assert_in_range(calls, 2, 200);
	assert_found(id, "/abc", TOP "/late/abc", TOP);
}

static void test_many_groups(void **state)
{
	for (int i = 0; i < 600; i++) {
		char path[64];
		uint64_t id;

		snprintf(path, sizeof(path), TOP "/many/%d", i);
		id = group(path);
		assert_found(id, path + strlen(TOP), path, TOP);
	}
}

#define V1(group, point, options)                                                                  \
	"40 34 0:29 " group " " point " rw - cgroup cgroup rw," options "\n"

static const struct group_folder *find_v1(const char *told)
{
	static uint64_t id = UINT64_C(1) << 62;
	const struct group_asked asked = {.id = ++id, .pid = 77, .path = told, .controller = "cpu"};

	return group_folders_find(folders, &asked);
}

static void assert_v1(const char *told, const char *path, const char *mount)
{
	const struct group_folder *f = find_v1(told);

	assert_non_null(f);
	assert_string_equal(f->path, path);
	assert_int_equal(f->top, strlen(mount));
}

/* The hierarchy that limits CPUs has a mount of its own, alone or with their accounting. */
static void test_of_version_1(void **state)
{
	tree_write(root, TOP "/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
	tree_write(root, TOP "/cpuset/docker/abc/cpuset.cpus", "0\n");
	tree_write(root, "/proc/self/mountinfo",
		OTHER V1("/", TOP "/cpuset", "cpuset") V1("/", TOP "/cpu,cpuacct", "cpu,cpuacct")
			V2(TOP "/unified"));
	assert_v1("/docker/abc", TOP "/cpu,cpuacct/docker/abc", TOP "/cpu,cpuacct");
	assert_null(find_v1("/docker/def"));
	assert_null(find_v1("/docker/../docker/abc"));
	tree_write(root, "/proc/self/mountinfo", OTHER V1("/", TOP "/cpuset", "cpuset"));
	assert_null(find_v1("/docker/abc"));
}

/* In a container its own group is at the top of the mount. */
static void test_of_version_1_in_a_container(void **state)
{
	tree_write(root, TOP "/cpu/cpu.cfs_quota_us", "-1\n");
	tree_write(root, TOP "/cpu/job/cpu.cfs_quota_us", "50000\n");
	tree_write(root, "/proc/self/mountinfo", OTHER V1("/docker/abc", TOP "/cpu", "cpu"));
	assert_v1("/docker/abc/job", TOP "/cpu/job", TOP "/cpu");
	assert_v1("/docker/abc", TOP "/cpu", TOP "/cpu");
	assert_null(find_v1("/docker/abcd"));
	tree_write(root, MACHINE "/cpu/docker/def/cpu.cfs_quota_us", "50000\n");
	tree_write(root, "/proc/1/mountinfo", V1("/", TOP "/cpu", "cpu"));
	assert_v1("/docker/def", MACHINE "/cpu/docker/def", MACHINE "/cpu");
}

static void test_nonsense(void **state)
{
	tree_write(root, "/proc/self/mountinfo", "\n \n1 2 3\n- cgroup2 \n1 2 3 4 " TOP "\n");
	assert_null(find(group(TOP "/a"), "relative"));
	assert_null(find(1, ""));
}

#define RUN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(test_where_it_is_said_to_be),
		RUN(test_by_number_and_not_by_name),
		RUN(test_the_top_of_the_own_namespace),
		RUN(test_where_process_1_sees_it),
		RUN(test_where_the_process_itself_sees_it),
		RUN(test_a_covered_mount_is_not_looked_at),
		RUN(test_not_found_is_asked_again_later),
		RUN(test_many_groups),
		RUN(test_of_version_1),
		RUN(test_of_version_1_in_a_container),
		RUN(test_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
