/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_lock.c - a lock leads to the thread that holds it and to what that thread runs. */
#include "chain_fixture.h"

static void test_the_holder(void **state)
{
	static const struct stack_frame frames[] = {
		{.symbol = "memcpy", .file = "libc.so.6"},
		{.py_file = "/usr/lib/python3/site-packages/numpy/core.py",
			.py_func = "sort",
			.py_line = 3},
		{.py_file = "/home/u/train.py", .py_func = "log_stats", .py_line = 42},
	};
	struct chain_scene *s = chain_scene_new(DELAY_BY_GIL, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_GIL, OWNER_SELF), *other;

	e->slow_ns = 40 * NS_PER_MS;
	e->culprit_pid = CHAIN_JOB;
	e->stack_hash = chain_stack(s, frames, ARRAY_SIZE(frames));
	snprintf(e->culprit, sizeof(e->culprit), "logger");
	other = chain_entry(s, ACCOUNT_GIL, OWNER_SELF);
	other->slow_ns = 10 * NS_PER_MS;
	assert_int_equal(chain_end(s)->resource, RESOURCE_LOCK);
	assert_string_equal(s->delay.end.who, "thread logger");
	assert_string_equal(s->delay.end.detail, "train.py:42 (log_stats)");
	assert_float_equal(s->delay.end.share, 0.8, 0.01);
	free(s);
}

static void test_nobody_is_known(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_LOCK, true);

	chain_entry(s, ACCOUNT_LOCK, OWNER_SELF);
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	snprintf(s->account.entries[0].culprit, COMM_LEN, "rcu_preempt"); /* it woke it, no more */
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

/* Who lets go of it is not seen: what is waited for is. */
static void test_a_file(void **state)
{
	static const struct stack_frame frames[] = {
		{.symbol = "flock", .file = "libc.so.6"},
		{.py_file = "/home/u/train.py", .py_func = "record", .py_line = 53},
	};
	struct chain_scene *s = chain_scene_new(DELAY_BY_LOCK, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_LOCK, OWNER_SELF);

	e->slow_ns = 90 * NS_PER_MS;
	e->stack_hash = chain_stack(s, frames, ARRAY_SIZE(frames));
	assert_int_equal(chain_end(s)->resource, RESOURCE_FILE_LOCK);
	assert_float_equal(s->delay.end.share, 1, 0.01);
	free(s);
}

/* It is seen who lets go of it. */
static void test_a_file_that_another_process_locks(void **state)
{
	static const struct stack_frame frames[] = {
		{.symbol = "flock", .file = "libc.so.6"},
		{.py_file = "/home/u/train.py", .py_func = "lookup", .py_line = 29},
	};
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);

	chain_home(s, CHAIN_JOB, "python3", "train.py");
	chain_home(s, 2000, "python3", "train.py");
	s->ledger[s->rec.ledger_count++] =
		(struct ledger_row){.pid = 2000, .tid = 2000, .comm = "compactor"};
	e->pid = 2000;
	snprintf(e->comm, sizeof(e->comm), "compactor");
	e->slow_ns = 50 * NS_PER_MS;
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	e->wait_hash = chain_stack(s, frames, ARRAY_SIZE(frames));
	assert_int_equal(chain_end(s)->resource, RESOURCE_FILE_LOCK);
	assert_string_equal(s->delay.end.who, "compactor");
	assert_int_equal(s->delay.end.pid, 2000);
	free(s);
}

/* It writes more than the other end reads. */
static void test_a_full_pipe(void **state)
{
	static const struct stack_frame frames[] = {
		{.symbol = "__GI___libc_write", .file = "write.c"},
		{.py_file = "/home/u/train.py", .py_func = "main", .py_line = 41},
	};
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_ASLEEP, OWNER_PROCESS);

	e->pid = 2000;
	snprintf(e->comm, sizeof(e->comm), "shipper");
	e->slow_ns = 50 * NS_PER_MS;
	e->wait_hash = chain_stack(s, frames, ARRAY_SIZE(frames));
	assert_int_equal(chain_end(s)->resource, RESOURCE_READER);
	e->line = ACCOUNT_STOPPED;
	assert_int_not_equal(chain_end(s)->resource, RESOURCE_READER);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_holder),
		cmocka_unit_test(test_nobody_is_known),
		cmocka_unit_test(test_a_file),
		cmocka_unit_test(test_a_file_that_another_process_locks),
		cmocka_unit_test(test_a_full_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
