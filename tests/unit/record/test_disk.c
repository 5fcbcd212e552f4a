/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

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

static const struct target_library *find(const struct target_library *rows, int n, const char *path)
{
	for (int i = 0; i < n; i++)
		if (strcmp(rows[i].path, path) == 0)
			return &rows[i];
	return NULL;
}

static void copies_are_found_once(void **state)
{
	_cleanup_free_ struct target_library *rows = NULL;
	const char *root = *state;
	char link[512], cache[256];
	int n;

	tree_write(root, "/usr/local/cuda-12.4/lib64/libcudart.so.12.4.127", "a");
	snprintf(link, sizeof(link), "%s/usr/local/cuda-12.4/lib64/libcudart.so", root);
	assert_int_equal(symlink("libcudart.so.12.4.127", link), 0);
	snprintf(link, sizeof(link), "%s/usr/local/cuda", root);
	assert_int_equal(symlink("cuda-12.4", link), 0);
	tree_write(root, "/usr/lib/x86_64-linux-gnu/libcuda.so.535.1", "b");
	tree_write(root, "/usr/lib/x86_64-linux-gnu/libm.so.6", "c");
	tree_write(root, "/home/me/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
		"d");
	tree_write(
		root, "/home/me/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so", "e");
	tree_write(root,
		"/home/me/venv/lib/python3.11/site-packages/torchvision.libs/libcudart.faf08d9a.so.13",
		"g");
	tree_write(root, "/odd/place/libcudart.so.11.0", "f");
	memcpy(cache,
		"glibc-ld.so.cache1.1\0libcudart.so.11.0\0/odd/place/libcudart.so.11.0\0/gone/"
		"libcuda.so",
		84);
	tree_write_len(root, "/etc/ld.so.cache", cache, 84);
	n = discover_library_files(root, NULL, &rows);
	assert_int_equal(n, 6);
	/* of a file's names the one that is no link in the end */
	assert_non_null(find(rows, n, "/usr/local/cuda/lib64/libcudart.so.12.4.127"));
	assert_int_equal(
		find(rows, n, "/usr/lib/x86_64-linux-gnu/libcuda.so.535.1")->kind, TARGET_CUDA);
	assert_non_null(find(rows, n,
		"/home/me/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"));
	assert_non_null(find(rows, n,
		"/home/me/venv/lib/python3.11/site-packages/torchvision.libs/libcudart.faf08d9a.so.13"));
	assert_int_equal(
		find(rows, n,
			"/home/me/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so")
			->kind,
		TARGET_TORCH_CUDA);
	assert_non_null(find(rows, n, "/odd/place/libcudart.so.11.0"));
}

static void the_host_of_a_container_is_searched(void **state)
{
	_cleanup_free_ struct target_library *rows = NULL;

	tree_write(*state, "/proc/1/root/usr/lib64/libcuda.so.1", "host");
	assert_int_equal(discover_library_files(*state, NULL, &rows), 1);
	assert_string_equal(rows[0].path, "/proc/1/root/usr/lib64/libcuda.so.1");
}

static void nothing_and_too_much(void **state)
{
	_cleanup_free_ struct target_library *none = NULL, *many = NULL;
	char path[128];

	assert_int_equal(discover_library_files(*state, NULL, &none), 0);
	for (int i = 0; i < DISCOVER_FILES_MAX + 20; i++) {
		snprintf(path, sizeof(path), "/usr/lib64/libcudart.so.%d", i);
		tree_write(*state, path, "x");
	}
	assert_int_equal(discover_library_files(*state, NULL, &many), DISCOVER_FILES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(copies_are_found_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_host_of_a_container_is_searched, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_and_too_much, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
