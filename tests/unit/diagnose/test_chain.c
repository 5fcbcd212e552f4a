/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain.c - what a process is called, and delays that lead nowhere. */
#include "chain_fixture.h"

static void test_words(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, false);
	char buf[PROCESS_WORDS_MAX];

	chain_home(s, 100, "python3", "train.py");
	chain_home(s, 200, "xz", "");
	assert_string_equal(process_words(&s->rec, 100, "pt_autograd_0", buf), "train.py");
	assert_string_equal(process_words(&s->rec, 200, "thread", buf), "xz");
	assert_string_equal(process_words(&s->rec, 300, "dd", buf), "dd");
	assert_string_equal(process_words(&s->rec, 300, NULL, buf), "");
	assert_string_equal(process_words(&s->rec, 0, "ingero-store", buf), "ingero");
	free(s);
}

/* What a process calls itself says more than its script, which may be the job's as well. */
static void test_own_names(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, false);
	char buf[PROCESS_WORDS_MAX];

	chain_home(s, 100, "log-shipper", "train.py");
	chain_home(s, 200, "preprocess_imag", "preprocess_images.sh"); /* cut */
	chain_home(s, 300, "MainThread", "watch.mjs");
	chain_home(s, 400, "python3", "train.py");
	assert_string_equal(process_words(&s->rec, 100, "", buf), "log-shipper");
	assert_string_equal(process_words(&s->rec, 200, "", buf), "preprocess_images.sh");
	assert_string_equal(process_words(&s->rec, 300, "", buf), "watch.mjs");
	assert_string_equal(process_words_last(&s->rec, 400, "", buf), "train.py");
	s->ledger[0] = (struct ledger_row){.pid = 400, .tid = 400, .comm = "python3"};
	s->ledger[1] = (struct ledger_row){.pid = 400, .tid = 400, .comm = "compactor"};
	s->ledger[2] = (struct ledger_row){.pid = 400, .tid = 401, .comm = "helper"};
	s->rec.ledger_count = 3; /* it took its name later on */
	assert_string_equal(process_words(&s->rec, 400, "", buf), "train.py");
	assert_string_equal(process_words_last(&s->rec, 400, "", buf), "compactor");
	free(s);
}

static void test_a_delay_without_a_chain(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, true);

	s->delay.end = (struct resource_use){.resource = RESOURCE_LOCK, .who = "old"};
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	assert_string_equal(s->delay.end.who, "");
	s->delay.kind = DELAY_BY_LOADER; /* and no lead is kept */
	s->delay.lead = NULL;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* A third of the samples take stacks: the account may have another stack for all of the code. */
static void test_a_detour(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, false);
	uint64_t plain = chain_stack(
		s, &(struct stack_frame){.py_file = "/home/u/train.py", .py_func = "main"}, 1);
	uint64_t taking = chain_stack(s,
		&(struct stack_frame){
			.py_file = "/usr/lib/python3.12/traceback.py", .py_func = "extract"},
		1);
	uint64_t calling =
		chain_stack(s, &(struct stack_frame){.symbol = "kXlaFfiPythonGpuCallback"}, 1);

	chain_entry(s, ACCOUNT_HOST, OWNER_SELF)->stack_hash = plain;
	for (int i = 0; i < 90; i++)
		chain_event(s, chain_at(i), SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)->stack_hash =
			i % 3 ? plain : taking;
	assert_int_equal(chain_end(s)->resource, RESOURCE_TRACEBACK);
	assert_float_equal(s->delay.end.share, 1 / 3.0, 0.01);
	assert_int_equal(s->delay.end.stack_hash, taking);
	for (size_t i = 0; i < s->rec.event_count; i += 3)
		s->events[i].stack_hash = calling;
	assert_int_equal(chain_end(s)->resource, RESOURCE_CALLBACK);
	for (size_t i = 9; i < s->rec.event_count; i++)
		s->events[i].stack_hash = plain; /* now and then */
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* Half of the samples are of a library's: it is named, at the line with most of it, unless the GPU is busy meanwhile. */
static void test_a_librarys_work(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, false);
	const struct stack_frame user = {
		.py_file = "/home/u/train.py", .py_func = "lookup", .py_line = 7};
	const struct stack_frame asking[] = {
		{.symbol = "sqlite3VdbeExec", .file = "libsqlite3.so.0"}, user};
	const struct stack_frame asked[] = {
		user, {.py_file = "/usr/lib/python3.12/sqlite3/dbapi2.py", .py_func = "call"}};
	uint64_t query = chain_stack(s, asking, 2), own = chain_stack(s, asked, 2);

	chain_entry(s, ACCOUNT_HOST, OWNER_SELF)->stack_hash = own;
	for (int i = 0; i < 90; i++)
		chain_event(s, chain_at(i), SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)->stack_hash =
			i % 3 ? query : own;
	assert_int_equal(chain_end(s)->resource, RESOURCE_WORK);
	assert_string_equal(s->delay.end.who, "SQLite queries");
	assert_float_equal(s->delay.end.share, 2 / 3.0, 0.01);
	assert_int_equal(s->delay.end.stack_hash, query);
	/* Before the first of them a kernel was launched, and nobody has waited for it. */
	s->events[0].source = SOURCE_CUDA;
	s->events[0].op = CUDA_LAUNCH;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	s->events[1].source = SOURCE_CUDA;
	s->events[1].op = CUDA_STREAM_SYNC;
	assert_int_equal(chain_end(s)->resource, RESOURCE_WORK);
	/* Other code of the program has more. */
	for (size_t i = 2; i < s->rec.event_count; i++)
		s->events[i].stack_hash = i % 3 ? own : query;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	/* It has more, but in the first half alone: a set-up. */
	for (size_t i = 2; i < s->rec.event_count; i++)
		s->events[i].stack_hash = i < 50 ? query : own;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	s->events[s->rec.event_count - 1].stack_hash = query;
	for (size_t i = 60; i < 70; i++)
		s->events[i].stack_hash = query;
	assert_int_equal(chain_end(s)->resource, RESOURCE_WORK);
	free(s);
}

/* Another thread compresses at the place that the units wait for: its samples count, not what it does elsewhere. */
static void test_work_of_a_thread_that_is_waited_for(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, true);
	const struct stack_frame user = {
		.py_file = "/home/u/export.py", .py_func = "archive", .py_line = 7};
	const struct stack_frame packing[] = {{.symbol = "deflate", .file = "libz.so.1"}, user};
	const struct stack_frame elsewhere[] = {{.symbol = "deflate", .file = "libz.so.1"},
		{.py_file = "/home/u/export.py", .py_func = "idle", .py_line = 30}};
	uint64_t pack = chain_stack(s, packing, 2), other = chain_stack(s, elsewhere, 2);
	uint64_t plain = chain_stack(s, &user, 1);
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_THREAD);

	e->stack_hash = plain;
	s->account.slow_ns[ACCOUNT_HOST] = 5 * NS_PER_MS;
	for (int i = CHAIN_SLOW; i < CHAIN_STEPS; i++) {
		struct event *row =
			chain_event(s, chain_at(i), SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB);

		row->tid = CHAIN_JOB + 1;
		row->stack_hash = i % 5 ? pack : plain;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_WORK);
	assert_string_equal(s->delay.end.who, "Compression");
	assert_int_equal(s->delay.end.stack_hash, pack);
	e->owner = OWNER_SELF;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	e->owner = OWNER_THREAD;
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].stack_hash = other;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* What slow steps have more of counts, not what all have. */
static void test_work_that_is_new(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, true);
	const struct stack_frame json = {
		.py_file = "/usr/lib/python3.12/json/decoder.py", .py_func = "decode"};
	const struct stack_frame regex = {.symbol = "sre_ucs1_match", .file = "_sre.c"};
	uint64_t always = chain_stack(s, &json, 1), since = chain_stack(s, &regex, 1);

	s->account.ordinary_ns[ACCOUNT_HOST] = 10 * NS_PER_MS;
	s->account.slow_ns[ACCOUNT_HOST] = 15 * NS_PER_MS;
	for (int i = 0; i < 100; i++) {
		chain_event(s, chain_at(i), SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)->stack_hash =
			always;
		if (i >= CHAIN_SLOW && i % 2)
			chain_event(s, chain_at(i) + 1, SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)
				->stack_hash = since;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_WORK);
	assert_string_equal(s->delay.end.who, "Regular expressions");
	assert_float_equal(s->delay.end.share, 1, 0.05);
	/* Twice as many samples in ordinary steps are of the same time. */
	for (int i = 0; i < CHAIN_SLOW; i++)
		chain_event(s, chain_at(i) + 2, SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)
			->stack_hash = always;
	assert_int_equal(chain_end(s)->resource, RESOURCE_WORK);
	/* There is more of all of it: no work has become more. */
	for (size_t i = 0; i < s->rec.event_count; i++)
		s->events[i].stack_hash = i % 50 ? always : since;
	assert_int_equal(chain_end(s)->resource, RESOURCE_WORK);
	assert_string_equal(s->delay.end.who, "JSON");
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_a_delay_without_a_chain),
		cmocka_unit_test(test_a_detour),
		cmocka_unit_test(test_work_of_a_thread_that_is_waited_for),
		cmocka_unit_test(test_a_librarys_work),
		cmocka_unit_test(test_work_that_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
