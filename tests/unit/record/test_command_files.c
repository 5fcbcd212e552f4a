/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* This program is linked with two folders for its libraries (meson.build). */
#include "record/discover/discover.h"
#include "tree.h"

struct looked {
	char root[TREE_MAX];
	struct target_library *rows;
	int count;
};

static int setup(void **state)
{
	struct looked *l = calloc(1, sizeof(*l));

	tree_init(l->root);
	*state = l;
	return 0;
}

static int teardown(void **state)
{
	struct looked *l = *state;

	tree_done(l->root);
	free(l->rows);
	free(l);
	return 0;
}

static void program(const char *root, const char *path, const char *text)
{
	char full[4096];

	tree_write(root, path, text);
	snprintf(full, sizeof(full), "%s%s", root, path);
	chmod(full, 0755);
}

#define WORDS(...)                                                                                 \
	(char *const[])                                                                            \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static bool finds(struct looked *l, char *const *argv, char *const *envp, const char *path)
{
	const struct discover_command c = {.argv = argv, .envp = envp, .folder = "/data/here"};

	free(l->rows);
	l->count = discover_library_files(l->root, &c, &l->rows);
	for (int i = 0; i < l->count; i++)
		if (strcmp(l->rows[i].path, path) == 0)
			return true;
	return false;
}

#define NVIDIA  "/lib/python3.12/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12"
#define NOTHING (char *)"A=1"

static void by_the_environment(void **state)
{
	struct looked *l = *state;
	char *const python[] = {(char *)"python3", (char *)"-m", (char *)"train", NULL};
	static const struct {
		const char *variable, *library;
	} cases[] = {
		{"LD_LIBRARY_PATH=:/x:/data/cuda", "/data/cuda/libcudart.so.12"},
		{"LD_LIBRARY_PATH=libs", "/data/here/libs/libcudart.so.12"},
		{"PATH=/usr/bin:/data/env/bin", "/data/env" NVIDIA},
		{"VIRTUAL_ENV=/data/active", "/data/active" NVIDIA},
		{"CONDA_PREFIX=/data/conda", "/data/conda/lib/libcudart.so.12"},
		{"CUDA_HOME=/data/toolkit", "/data/toolkit/lib64/libcudart.so.12"},
		{"HOME=/data/home", "/data/home/.local" NVIDIA},
		{"PYTHONPATH=/data/packages",
			"/data/packages/torch/lib/libcudart-d0da41ae.so.11.0"},
		{"MY_LIBRARIES=/data/other:/data/mine", "/data/mine/libcudart.so.12"},
		{"A=1", "/data/here/.venv" NVIDIA}, /* uv run */
	};

	program(l->root, "/data/env/bin/python3", "x");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		tree_write(l->root, cases[i].library, "x");
		if (!finds(l, python, WORDS((char *)cases[i].variable), cases[i].library))
			fail_msg("%s: %s is not found", cases[i].variable, cases[i].library);
		if (i + 1 < ARRAY_SIZE(cases) && finds(l, python, WORDS(NOTHING), cases[i].library))
			fail_msg("%s is found without %s", cases[i].library, cases[i].variable);
	}
}

static void by_the_words(void **state)
{
	struct looked *l = *state;
	char link[512];

	tree_write(l->root, "/data/env" NVIDIA, "x");
	program(l->root, "/data/env/bin/torchrun", "#!/data/env/bin/python3\n");
	program(l->root, "/data/tools/report", "#! /data/env/bin/python3 -u\n");
	program(l->root, "/data/here/build/app", "x");
	tree_write(l->root, "/data/here/build/libcudart.so.12", "x");
	/* the program itself; one that another starts; a script's interpreter; a link into an environment */
	assert_true(finds(
		l, WORDS((char *)"/data/env/bin/torchrun"), WORDS(NOTHING), "/data/env" NVIDIA));
	assert_true(finds(l, WORDS((char *)"env", (char *)"/data/env/bin/torchrun"), WORDS(NOTHING),
		"/data/env" NVIDIA));
	assert_true(finds(
		l, WORDS((char *)"report"), WORDS((char *)"PATH=/data/tools"), "/data/env" NVIDIA));
	tree_write(l->root, "/data/bin/README", "x");
	snprintf(link, sizeof(link), "%s/data/bin/run", l->root);
	assert_int_equal(symlink("../env/bin/torchrun", link), 0);
	assert_true(finds(
		l, WORDS((char *)"run"), WORDS((char *)"PATH=/data/bin"), "/data/env" NVIDIA));
	/* beside a program in the working folder */
	assert_true(finds(l, WORDS((char *)"./build/app"), WORDS(NOTHING),
		"/data/here/./build/libcudart.so.12"));
	/* without them (control), and what is no program */
	assert_false(finds(l, WORDS((char *)"true"), WORDS(NOTHING), "/data/env" NVIDIA));
	assert_false(finds(l, WORDS((char *)"/data/bin/README", (char *)"--", (char *)""),
		WORDS(NOTHING), "/data/env" NVIDIA));
}

/* The folders that are written into this very program. */
static void by_what_it_is_linked_with(void **state)
{
	struct looked *l = *state;
	char command[1024], path[512];
	FILE *from = fopen("/proc/self/exe", "re"), *to;
	char piece[65536];

	program(l->root, "/data/app/run", "x");
	snprintf(path, sizeof(path), "%s/data/app/run", l->root);
	to = fopen(path, "we");
	for (size_t n; (n = fread(piece, 1, sizeof(piece), from)) > 0;)
		assert_int_equal(fwrite(piece, 1, n, to), n);
	fclose(to);
	fclose(from);
	tree_write(l->root, "/data/app/beside/libcudart.so.12", "x");
	tree_write(l->root, "/odd/place/libnccl.so.2", "x");
	snprintf(command, sizeof(command), "/data/app/run");
	assert_true(finds(l, WORDS(command), WORDS(NOTHING), "/data/app/beside/libcudart.so.12"));
	assert_true(finds(l, WORDS(command), WORDS(NOTHING), "/odd/place/libnccl.so.2"));
	assert_false(finds(l, WORDS((char *)"true"), WORDS(NOTHING), "/odd/place/libnccl.so.2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_the_environment, setup, teardown),
		cmocka_unit_test_setup_teardown(by_the_words, setup, teardown),
		cmocka_unit_test_setup_teardown(by_what_it_is_linked_with, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
