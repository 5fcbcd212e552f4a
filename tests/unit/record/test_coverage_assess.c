/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <limits.h>

#include "record/attach/coverage.h"
#include "record/discover/discover.h"
#include "tree.h"

static char root[TREE_MAX];
static struct coverage *coverage; /* without probes: files are looked at only */
static struct target_library libraries[4];
static struct target_process process;
static struct process_layers layers;

/* A process whose file system is the real one, seen through a tree of our own. */
static int setup(void **state)
{
	char path[512];

	tree_init(root);
	tree_write(root, "/proc/77/comm", "train\n");
	snprintf(path, sizeof(path), "%s/proc/77/root", root);
	assert_int_equal(symlink("/", path), 0);
	snprintf(path, sizeof(path), "%s/proc/77/exe", root);
	assert_int_equal(symlink("/proc/self/exe", path), 0);
	process = (struct target_process){.pid = 77, .comm = "train", .libraries = libraries};
	assert_int_equal(coverage_new(NULL, &coverage), 0);
	return 0;
}

static int teardown(void **state)
{
	coverage_free(coverage);
	tree_done(root);
	return 0;
}

static struct target_library *add(enum target_library_kind kind, const char *file)
{
	struct target_library *l = &libraries[process.library_count++];
	char real[PATH_MAX] = "";
	struct stat st = {0};

	*l = (struct target_library){.kind = kind, .map_start = 0x1000, .map_end = 0x2000};
	if (realpath(file, real) && stat(real, &st) == 0) {
		l->dev = st.st_dev;
		l->inode = st.st_ino;
	}
	snprintf(l->path, sizeof(l->path), "%s", l->inode ? real : file);
	return l;
}

static void set_exe(const char *file)
{
	char path[512], real[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/77/exe", root);
	unlink(path);
	assert_non_null(realpath(file, real));
	assert_int_equal(symlink(real, path), 0);
}

static const struct layer_row *judge(enum layer l)
{
	coverage_assess(coverage, root, &process);
	coverage_assess_process(coverage, root, &process, &layers);
	return &layers.rows[l];
}

static void shared_libraries_are_covered(void **state)
{
	const char *first;

	add(TARGET_CUDART, CUDART);
	add(TARGET_CUDA, CUDA);
	assert_int_equal(judge(LAYER_RUNTIME)->state, LAYER_COVERED);
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "libcudart.so.12, "));
	assert_true(layers.rows[LAYER_RUNTIME].since.ns > 0);
	assert_int_equal(layers.rows[LAYER_DRIVER].state, LAYER_COVERED);
	assert_int_equal(layers.rows[LAYER_NCCL].state, LAYER_ABSENT);
	assert_false(layer_has_gap(&layers));
	assert_int_equal(coverage_probed(coverage, &first), 2);
	assert_non_null(strstr(first, "libcudart"));
	assert_int_equal(coverage_probes(coverage, TARGET_EXECUTABLE), 0);
}

static void a_static_runtime_is_found_by_its_symbols(void **state)
{
	add(TARGET_CUDA, CUDA);
	set_exe(STATIC_RUNTIME);
	assert_int_equal(judge(LAYER_RUNTIME)->state, LAYER_COVERED);
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "static in "));
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "4 functions"));
	assert_int_equal(coverage_probes(coverage, TARGET_EXECUTABLE), 4);
}

static void a_program_with_a_shared_runtime_is_not_looked_at(void **state)
{
	struct target_library exe;
	int fd;

	add(TARGET_CUDART, CUDART);
	add(TARGET_CUDA, CUDA);
	set_exe(STATIC_RUNTIME);
	judge(LAYER_RUNTIME);
	fd = discover_executable_open(root, 77, &exe);
	assert_true(fd >= 0);
	close(fd);
	assert_false(coverage_has(coverage, &exe));
	assert_null(strstr(layers.rows[LAYER_RUNTIME].detail, "static"));
}

static void no_runtime_anywhere_is_a_gap(void **state)
{
	const char *first;

	add(TARGET_CUDA, CUDA);
	set_exe("/proc/self/exe");
	assert_int_equal(judge(LAYER_RUNTIME)->state, LAYER_UNCOVERED);
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "only driver calls are traced"));
	assert_null(strstr(layers.rows[LAYER_RUNTIME].detail, "libtorch"));
	assert_int_equal(layers.rows[LAYER_DRIVER].state, LAYER_COVERED);
	assert_int_equal(coverage_probed(coverage, &first), 1); /* the program is not one of them */
	add(TARGET_TORCH_CUDA, "/x/libtorch_cuda.so");
	assert_non_null(strstr(judge(LAYER_RUNTIME)->detail, "libtorch_cuda"));
}

static void a_file_that_cannot_be_used_says_why(void **state)
{
	struct target_library *l = add(TARGET_CUDART, "/nonexistent/libcudart.so.12");

	add(TARGET_CUDA, CUDA);
	l->inode = 5;
	assert_int_equal(judge(LAYER_RUNTIME)->state, LAYER_FAILED);
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "cannot open"));
	*l = *add(TARGET_CUDART, "/proc/self/exe"); /* a file, but not this library */
	process.library_count--;
	assert_int_equal(judge(LAYER_RUNTIME)->state, LAYER_FAILED);
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "no functions of"));
	assert_true(layer_has_gap(&layers));
}

static void the_worst_of_two_copies_decides(void **state)
{
	add(TARGET_CUDART, CUDART);
	add(TARGET_CUDART, "/nonexistent/libcudart.so.11")->inode = 5;
	assert_int_equal(judge(LAYER_RUNTIME)->state, LAYER_FAILED);
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "libcudart.so.11"));
}

static void a_deleted_file_is_covered_through_map_files(void **state)
{
	struct target_library *l = add(TARGET_CUDART, CUDART);
	char path[512], real[PATH_MAX];

	snprintf(l->path, sizeof(l->path), "/gone/libcudart.so.12");
	l->deleted = true;
	assert_non_null(realpath(CUDART, real));
	tree_write(root, "/proc/77/map_files/x", "");
	snprintf(path, sizeof(path), "%s/proc/77/map_files/1000-2000", root);
	assert_int_equal(symlink(real, path), 0);
	assert_int_equal(judge(LAYER_RUNTIME)->state, LAYER_COVERED);
	assert_non_null(strstr(layers.rows[LAYER_RUNTIME].detail, "map_files"));
}

static void what_is_not_probed_is_a_gap(void **state)
{
	add(TARGET_NCCL, "/x/libnccl.so.2");
	if (coverage_knows(TARGET_NCCL))
		assert_int_equal(judge(LAYER_NCCL)->state, LAYER_FAILED); /* no such file */
	else
		assert_int_equal(judge(LAYER_NCCL)->state, LAYER_UNCOVERED);
	assert_int_equal(layers.rows[LAYER_RUNTIME].state, LAYER_ABSENT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shared_libraries_are_covered),
		TEST(a_static_runtime_is_found_by_its_symbols),
		TEST(a_program_with_a_shared_runtime_is_not_looked_at),
		TEST(no_runtime_anywhere_is_a_gap),
		TEST(a_file_that_cannot_be_used_says_why),
		TEST(the_worst_of_two_copies_decides),
		TEST(a_deleted_file_is_covered_through_map_files),
		TEST(what_is_not_probed_is_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
