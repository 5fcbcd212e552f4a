/* SPDX-License-Identifier: Apache-2.0 */
/* test_place.c - the place of a loss: the deepest function of the program's own that covers most of it, never a
 * library's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/macros.h"
#include "diagnose/rows/place.h"

#define PY(file_, func, line)                                                                      \
	{                                                                                          \
		.py_file = file_, .py_func = func, .py_line = line                                 \
	}
#define TRAIN     "/home/u/train.py"
#define TORCH     "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py"
#define THREADING "/usr/lib/python3.12/threading.py"

/* estimate_loss() has three callees of its own, none of which has most of the time. */
static const struct stack_frame batch[] = {{.symbol = "memcpy", .file = "libc.so.6"},
	PY(TRAIN, "get_batch", 31), PY(TRAIN, "estimate_loss", 52), PY(TRAIN, "<module>", 90)};
static const struct stack_frame forward[] = {PY(TORCH, "_call_impl", 1747), PY(TRAIN, "model", 12),
	PY(TRAIN, "estimate_loss", 53), PY(TRAIN, "<module>", 90)};
static const struct stack_frame item[] = {{.symbol = "cudaMemcpyAsync", .file = "libcudart.so.12"},
	PY(TRAIN, "estimate_loss", 54), PY(TRAIN, "<module>", 90)};
static const struct stack_frame other[] = {PY(TRAIN, "step", 71), PY(TRAIN, "<module>", 92)};
static const struct stack_frame thread[] = {PY(THREADING, "wait", 355),
	PY("/venv/lib/python3.12/site-packages/torch/utils/data/_utils/pin_memory.py", "_loop", 30),
	PY(THREADING, "_bootstrap", 1002)};
static const struct stack_frame again[] = {
	PY(TRAIN, "walk", 5), PY(TRAIN, "walk", 6), PY(TRAIN, "walk", 6), PY(TRAIN, "<module>", 9)};
static const struct stack_frame native[] = {
	{.symbol = "clock_nanosleep", .file = "clock_nanosleep.c", .line = 48},
	{.symbol = "__GI___libc_read", .file = "read.c", .line = 26},
	{.symbol = "cudaStreamSynchronize", .file = "sync.c", .line = 18},
	{.symbol = "Trainer::step(int)", .file = "bench"}, {.symbol = "main", .file = "bench"}};

/* copy() is called from two lines of another file, and only calls CUDA; read() is called from another file, too. */
#define GPU "/home/u/gpu.py"
static const struct stack_frame copied[] = {{.symbol = "cudaMemcpy", .file = "libcudart.so.12"},
	PY(GPU, "copy", 30), PY(TRAIN, "submit", 33), PY(TRAIN, "<module>", 92)};
static const struct stack_frame waited[] = {
	{.symbol = "cudaStreamSynchronize", .file = "libcudart.so.12"}, PY(GPU, "wait", 40),
	PY(TRAIN, "collect", 38), PY(TRAIN, "<module>", 93)};
static const struct stack_frame copied_too[] = {{.symbol = "cudaMemcpy", .file = "libcudart.so.12"},
	PY(GPU, "copy", 30), PY(TRAIN, "collect", 39), PY(TRAIN, "<module>", 93)};
static const struct stack_frame decoded[] = {
	PY("/home/u/data.py", "read", 5), PY(TRAIN, "submit", 32), PY(TRAIN, "<module>", 92)};

static struct stack stacks[] = {{1, batch, ARRAY_SIZE(batch), ""},
	{2, forward, ARRAY_SIZE(forward), ""}, {3, item, ARRAY_SIZE(item), ""},
	{4, other, ARRAY_SIZE(other), ""}, {5, thread, ARRAY_SIZE(thread), ""},
	{6, again, ARRAY_SIZE(again), ""}, {7, native, ARRAY_SIZE(native), ""},
	{8, copied, ARRAY_SIZE(copied), ""}, {9, waited, ARRAY_SIZE(waited), ""},
	{10, copied_too, ARRAY_SIZE(copied_too), ""}, {11, decoded, ARRAY_SIZE(decoded), ""}};
static struct stack *items[] = {&stacks[0], &stacks[1], &stacks[2], &stacks[3], &stacks[4],
	&stacks[5], &stacks[6], &stacks[7], &stacks[8], &stacks[9], &stacks[10]};
static const struct stack_list all = {items, ARRAY_SIZE(items)};

static void assert_place(const struct place_weight *w, size_t n, const char *want)
{
	struct code_place p = {0};
	char text[160] = "";

	if (place_cover(&all, w, n, &p))
		place_format(&p, text, sizeof(text));
	assert_string_equal(text, want);
}
#define ASSERT_PLACE(want, ...)                                                                    \
	do {                                                                                       \
		const struct place_weight w[] = {__VA_ARGS__};                                     \
		assert_place(w, ARRAY_SIZE(w), want);                                              \
	} while (0)

static void the_caller_that_covers_it(void **state)
{
	ASSERT_PLACE("train.py:53 (estimate_loss)", {1, 24}, {2, 40}, {3, 30}, {4, 6});
	ASSERT_PLACE("train.py:12 (model)", {1, 10}, {2, 80}, {3, 10});
	ASSERT_PLACE("train.py:90", {2, 50}, {4, 50}); /* nothing but the module has both */
}

static void lines_of_one_function_count_together(void **state)
{
	struct code_place p;
	const struct place_weight w[] = {{1, 20}, {2, 30}, {3, 50}};

	assert_true(place_cover(&all, w, 3, &p));
	assert_string_equal(p.func, "estimate_loss");
	assert_int_equal(p.line, 54);
	assert_int_equal(p.hash, 3);
	assert_true(p.share > 0.999);
}

static void a_library_is_no_place(void **state)
{
	ASSERT_PLACE("", {5, 100});
	ASSERT_PLACE("train.py:71 (step)", {4, 100}, {5, 60});
	ASSERT_PLACE("", {4, 50}, {5, 100}); /* most of it is not at the program's line */
	ASSERT_PLACE("", {99, 100});         /* unknown stack */
	ASSERT_PLACE("", {4, 0});
}

/* Helpers that hand data to CUDA are not why: the line that calls them is, where one has most of it. What does work
 * of its own in another file is. */
static void a_helper_is_no_place(void **state)
{
	struct code_place p;
	char text[160];
	const struct place_weight most[] = {{8, 90}, {10, 10}};

	ASSERT_PLACE("train.py:33 (submit)", {8, 90}, {10, 10});
	ASSERT_PLACE("train.py:38 (collect)", {9, 100});
	ASSERT_PLACE("gpu.py:30 (copy)", {8, 50}, {10, 50});
	ASSERT_PLACE("data.py:5 (read)", {11, 100});
	assert_true(place_cover(&all, most, 2, &p));
	assert_string_equal(
		place_at(&p, text, sizeof(text)), "in submit (train.py:33) via copy (gpu.py:30)");
	assert_int_not_equal(place_key(&stacks[7]), place_key(&stacks[9]));
}

static void sleeps_of_loops(void **state)
{
	static const struct stack_frame pause[] = {{.symbol = "sem_clockwait", .file = "libc.so.6"},
		PY(THREADING, "wait", 320), PY(TRAIN, "submit", 34), PY(TRAIN, "<module>", 92)};
	static const struct stack_frame retry[] = {
		{.symbol = "clock_nanosleep", .file = "libc.so.6"}, PY(TRAIN, "fetch", 8),
		PY(TRAIN, "submit", 34), PY(TRAIN, "<module>", 92)};
	const struct stack of_loop = {20, pause, ARRAY_SIZE(pause), ""};
	const struct stack of_callee = {21, retry, ARRAY_SIZE(retry), ""};

	assert_true(place_calls(&stacks[7], &of_loop));
	assert_false(place_calls(&stacks[7], &of_callee));
	assert_true(place_is_outermost(&of_loop));
	assert_false(place_is_outermost(&of_callee));
}

/* Threads of a library do not hide where the program's own time went. */
static void libraries_do_not_count(void **state)
{
	struct code_place p;
	const struct place_weight w[] = {{4, 100}, {5, 60}};

	assert_true(place_cover(&all, w, 2, &p));
	assert_true(p.share > 0.99);
}

static void calls_that_block(void **state)
{
	static const struct {
		const char *symbol;
		enum account_line line;
		bool blocks;
	} calls[] = {{"fsync", ACCOUNT_DISK, true}, {"__libc_write", ACCOUNT_DISK, true},
		{"__GI___libc_write", ACCOUNT_LOCK, true}, {"__GI___poll", ACCOUNT_NETWORK, true},
		{"__poll", ACCOUNT_NETWORK, true}, {"__vfork", ACCOUNT_ASLEEP, true},
		{"wait4", ACCOUNT_LOCK, true}, {"fsync", ACCOUNT_NETWORK, false},
		{"poll", ACCOUNT_DISK, false}, {"malloc", ACCOUNT_DISK, false}};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const struct stack_frame f = {.symbol = calls[i].symbol, .file = "libc.so.6"};
		const struct stack s = {1, &f, 1, ""};

		assert_int_equal(place_blocks(&s) >> calls[i].line & 1, calls[i].blocks);
	}
	assert_int_equal(place_blocks(&(struct stack){.hash = 1}), 0);
}

/* With debug symbols functions of the C library have names of their own. */
static void calls_by_any_name(void **state)
{
	static const char *const outputs[] = {
		"write", "__write", "__libc_write", "__GI___libc_write"};
	static const char *const locks[] = {
		"flock", "__GI___flock", "lockf64", "__fcntl64_nocancel"};

	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
		const struct stack_frame output = {.symbol = outputs[i]},
					 lock = {.symbol = locks[i]};

		assert_true(place_is_output(&(struct stack){1, &output, 1, ""}));
		assert_false(place_is_file_lock(&(struct stack){1, &output, 1, ""}));
		assert_true(place_is_file_lock(&(struct stack){1, &lock, 1, ""}));
		assert_false(place_is_output(&(struct stack){1, &lock, 1, ""}));
	}
}

/* SQLite's own sleep, and not that of the program's code which it calls, or which calls it. */
static void whose_database_it_is(void **state)
{
	static const struct stack_frame
		locked[] = {{.symbol = "clock_nanosleep", .file = "clock_nanosleep.c", .line = 48},
			{.file = "libsqlite3.so.0.8.6"},
			{.py_file = "/home/u/train.py", .py_func = "log", .py_line = 30}},
		linked[] = {{.symbol = "usleep"},
			{.symbol = "sqlite3InvokeBusyHandler", .file = "sqlite3.c", .line = 7},
			{.symbol = "write_row", .file = "app.c", .line = 9}},
		called[] = {{.symbol = "clock_nanosleep"},
			{.py_file = "/home/u/train.py", .py_func = "busy", .py_line = 3},
			{.symbol = "sqlite3VdbeExec", .file = "libsqlite3.so.0"}},
		own[] = {{.symbol = "usleep"},
			{.symbol = "wait_for_rows", .file = "app.c", .line = 9},
			{.symbol = "sqlite3_exec", .file = "libsqlite3.so.0"}};

	assert_string_equal(place_database(&(struct stack){1, locked, 3, ""}), "SQLite");
	assert_string_equal(place_database(&(struct stack){1, linked, 3, ""}), "SQLite");
	assert_null(place_database(&(struct stack){1, called, 3, ""}));
	assert_null(place_database(&(struct stack){1, own, 3, ""}));
}

/* Mutexes, and neither conditions nor what is not the program's own. */
static void whose_lock_it_is(void **state)
{
	static const struct stack_frame
		mutex[] = {{.symbol = "__GI___lll_lock_wait"}, {.symbol = "___pthread_mutex_lock"}},
		condition[] = {{.symbol = "futex_wait"}, {.symbol = "pthread_cond_wait"}},
		unlocked[] = {{.symbol = "std::mutex::lock()", .file = "std_mutex.h", .line = 100},
			{.symbol = "wait<Pool::take()>",
				.file = "/opt/py3.12/include/c++/condition_variable",
				.line = 102},
			{.symbol = "Pool::take()", .file = "pool.cpp", .line = 36}};

	assert_true(place_is_mutex(&(struct stack){1, mutex, 2, ""}));
	assert_false(place_is_mutex(&(struct stack){1, condition, 2, ""}));
	assert_true(place_is_own(&(struct stack){1, unlocked, 3, ""}));
	assert_false(place_is_own(&(struct stack){1, unlocked, 2, ""}));
}

static void recursion_counts_once(void **state)
{
	struct code_place p;

	assert_true(place_cover(&all, &(struct place_weight){6, 10}, 1, &p));
	assert_string_equal(p.func, "walk");
	assert_int_equal(p.line, 5);
	assert_true(p.share <= 1);
}

static void a_program_without_python(void **state)
{
	ASSERT_PLACE("bench (Trainer::step(int))", {7, 10});
}

static void the_script_is_the_outermost_file(void **state)
{
	assert_string_equal(place_script(&stacks[1]), "train.py");
	assert_null(place_script(&stacks[4]));
}

#define POPEN   "/usr/lib/python3.12/multiprocessing/popen_fork.py"
#define PROCESS "/usr/lib/python3.12/multiprocessing/process.py"

/* A forked process has the frames of who forked it below its own: it does not start processes for all its life. */
static void test_starting_a_process(void **state)
{
	static const struct stack_frame hook[] = {PY("/usr/lib/python3.12/random.py", "seed", 9),
		PY(POPEN, "Popen._launch", 66), PY(PROCESS, "BaseProcess.start", 121),
		PY(TRAIN, "main", 86)};
	static const struct stack_frame pool[] = {
		PY("/usr/lib/python3.12/multiprocessing/connection.py", "Connection._recv", 395),
		PY(PROCESS, "BaseProcess._bootstrap", 314), PY(POPEN, "Popen._launch", 71),
		PY(PROCESS, "BaseProcess.start", 121), PY(TRAIN, "main", 86)};
	const struct stack starts = {1, hook, ARRAY_SIZE(hook), ""};
	const struct stack works = {2, pool, ARRAY_SIZE(pool), ""};

	assert_true(place_is_start(&starts));
	assert_false(place_is_start(&works));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_starting_a_process),
		cmocka_unit_test(the_caller_that_covers_it),
		cmocka_unit_test(lines_of_one_function_count_together),
		cmocka_unit_test(a_library_is_no_place),
		cmocka_unit_test(a_helper_is_no_place),
		cmocka_unit_test(sleeps_of_loops),
		cmocka_unit_test(libraries_do_not_count),
		cmocka_unit_test(calls_that_block),
		cmocka_unit_test(calls_by_any_name),
		cmocka_unit_test(whose_database_it_is),
		cmocka_unit_test(whose_lock_it_is),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(a_program_without_python),
		cmocka_unit_test(the_script_is_the_outermost_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
