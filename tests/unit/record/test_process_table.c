/* SPDX-License-Identifier: Apache-2.0 */
/* test_process_table.c - each stage hears of each process once, in order, whatever becomes of its
 * pid; records that come late find the process that made them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "record/trace/process_table.h"
#include "tree.h"

static char root[TREE_MAX];
static struct process_table *t;
static char heard[512]; /* one word for each thing told */
static int slots_held;

static void say(const char *stage, const char *what, const struct process_entry *p)
{
	size_t n = strlen(heard);

	snprintf(heard + n, sizeof(heard) - n, "%s%s:%s:%u/%llu", n ? " " : "", stage, what, p->pid,
		(unsigned long long)p->start_ticks);
}

static void hear_enter(void *arg, struct process_entry *p, uint32_t parent, wall_time at)
{
	say(arg, parent ? "fork" : "enter", p);
	if (((const char *)arg)[0] != 'a')
		return;
	assert_null(p->slots[PROCESS_ROSTER]);
	p->slots[PROCESS_ROSTER] = p; /* anything that is there */
	slots_held++;
}

static void hear_exec(void *arg, struct process_entry *p, wall_time at)
{
	say(arg, "exec", p);
}

static void hear_exit(void *arg, struct process_entry *p)
{
	assert_true(p->ended);
	say(arg, "exit", p);
}

static void hear_drop(void *arg, struct process_entry *p)
{
	slots_held -= TAKE(p->slots[PROCESS_ROSTER]) != NULL;
}

static const struct process_stage quick = {hear_enter, hear_exec, hear_exit, hear_drop, false};
static const struct process_stage slow = {hear_enter, hear_exec, hear_exit, NULL, true};
static const struct process_stage deaf = {0};

static int setup(void **state)
{
	tree_init(root);
	heard[0] = 0;
	slots_held = 0;
	assert_int_equal(process_table_new(root, &t), 0);
	process_table_add(t, &quick, "a");
	process_table_add(t, &deaf, NULL);
	process_table_add(t, &slow, "b");
	return 0;
}

static int teardown(void **state)
{
	process_table_free(t);
	assert_int_equal(slots_held, 0);
	tree_done(root);
	return 0;
}

/* What was told since the last call. */
static void assert_heard(const char *words)
{
	assert_string_equal(heard, words);
	heard[0] = 0;
}

static void lives(uint32_t pid, unsigned start)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	snprintf(text, sizeof(text),
		"%u (train) S 1 1 1 0 -1 0 1 0 0 0 3 4 0 0 20 0 1 0 %u 4096 42\n", pid, start);
	tree_write(root, path, text);
}

static void dies(uint32_t pid)
{
	char path[TREE_MAX + 64];

	snprintf(path, sizeof(path), "%s/proc/%u/stat", root, pid);
	assert_int_equal(unlink(path), 0);
}

static wall_time at(int64_t ns)
{
	return (wall_time){ns};
}

static void a_life_is_told_once_and_in_order(void **state)
{
	lives(7, 100);
	process_table_found(t, 7, 100, at(10));
	assert_heard("a:enter:7/100 b:enter:7/100");
	process_table_found(t, 7, 100, at(11));
	process_table_enter(t, 7, at(12));
	process_table_complete(t, 7, at(12));
	assert_heard("");
	lives(8, 101);
	process_table_fork(t, 7, 8, at(20));
	assert_heard("a:fork:8/101 b:fork:8/101");
	process_table_exec(t, 8, at(30));
	assert_heard("a:exec:8/101 b:exec:8/101");
	assert_int_equal(process_table_alive(t), 2);
	process_table_exit(t, 8, at(40));
	assert_heard("a:exit:8/101 b:exit:8/101");
	process_table_exit(t, 8, at(40));
	assert_heard("");
	assert_int_equal(process_table_alive(t), 1);
	assert_true(process_table_has(t, 7, 0));
	assert_true(process_table_has(t, 7, 100));
	assert_false(process_table_has(t, 7, 101));
	assert_false(process_table_has(t, 8, 0));
	assert_non_null(process_table_get(t, 8)); /* for its late records */
	process_table_tick(t);
	assert_non_null(process_table_get(t, 8));
	process_table_tick(t);
	assert_null(process_table_get(t, 8));
	assert_int_equal(slots_held, 1);
}

static void slow_stages_hear_when_there_is_time(void **state)
{
	lives(7, 100);
	process_table_enter(t, 7, at(10));
	assert_heard("a:enter:7/100");
	process_table_complete(t, 7, at(10));
	assert_heard("b:enter:7/100");
	lives(8, 101);
	process_table_enter(t, 8, at(10)); /* its fork is told after its first call */
	process_table_fork(t, 7, 8, at(9));
	assert_heard("a:enter:8/101 b:fork:8/101");
	lives(9, 102);
	process_table_enter(t, 9, at(10));
	process_table_exit(t, 9, at(11));
	process_table_complete(t, 9, at(10));
	assert_heard("a:enter:9/102 a:exit:9/102 b:exit:9/102");
}

static void records_of_the_dead_do_not_bring_them_back(void **state)
{
	lives(7, 100);
	process_table_found(t, 7, 100, at(10));
	dies(7);
	process_table_exit(t, 7, at(50));
	heard[0] = 0;
	process_table_found(t, 7, 100, at(20));
	process_table_exec(t, 7, at(30));
	process_table_fork(t, 1, 7, at(5));
	assert_int_equal(process_table_called(t, 7, at(40))->start_ticks, 100);
	assert_heard("");
	assert_int_equal(process_table_alive(t), 0);
}

static void a_reused_pid_is_another_process(void **state)
{
	struct process_entry *first, *second;

	lives(7, 100);
	first = process_table_found(t, 7, 0, at(10));
	process_table_exit(t, 7, at(20));
	heard[0] = 0;
	lives(7, 200);
	second = process_table_fork(t, 1, 7, at(30));
	assert_heard("a:fork:7/200 b:fork:7/200");
	assert_ptr_not_equal(first, second);
	assert_ptr_equal(process_table_at(t, 7, at(15)), first);
	assert_ptr_equal(process_table_called(t, 7, at(15)), first);
	assert_ptr_equal(process_table_at(t, 7, at(30)), second);
	process_table_tick(t);
	process_table_tick(t); /* the end of the first does not end the second */
	assert_true(process_table_has(t, 7, 200));
	assert_ptr_equal(process_table_at(t, 7, at(15)), second); /* the first is forgotten */
	assert_int_equal(slots_held, 1);
}

/* The end of the first was lost, or comes after the second's begin. */
static void an_untold_end_is_told_before_the_next_begin(void **state)
{
	lives(7, 100);
	process_table_found(t, 7, 0, at(10));
	heard[0] = 0;
	lives(7, 200);
	process_table_found(t, 7, 0, at(30));
	assert_heard("a:exit:7/100 b:exit:7/100 a:enter:7/200 b:enter:7/200");
	process_table_exit(t, 7, at(20));
	assert_heard("");
	assert_true(process_table_has(t, 7, 200));
	lives(7, 300); /* and a third, before anything is forgotten */
	process_table_exec(t, 7, at(40));
	assert_heard("a:exit:7/200 b:exit:7/200 a:enter:7/300 b:enter:7/300");
	assert_int_equal(slots_held, 2); /* of the first nothing comes any more */
	assert_int_equal(process_table_alive(t), 1);
}

static void a_child_that_is_gone_already_has_a_life(void **state)
{
	process_table_fork(t, 1, 7, at(10));
	assert_heard("a:fork:7/0 b:fork:7/0");
	process_table_exit(t, 7, at(11));
	assert_heard("a:exit:7/0 b:exit:7/0");
	process_table_fork(t, 1, 7, at(12)); /* begun after that end, so it is another */
	assert_heard("a:fork:7/0 b:fork:7/0");
}

static void of_unknown_processes_calls_and_ends_are_heard(void **state)
{
	struct process_entry *p;

	process_table_exit(t, 9, at(10));
	assert_heard("a:exit:9/0 b:exit:9/0");
	assert_null(process_table_get(t, 9));
	assert_null(process_table_at(t, 9, at(10)));
	p = process_table_called(t, 9, at(9)); /* nobody is there any more */
	assert_true(p->ended);
	assert_heard("a:enter:9/0 a:exit:9/0 b:exit:9/0");
	lives(10, 100);
	p = process_table_called(t, 10, at(9));
	assert_false(p->ended);
	assert_heard("a:enter:10/100");
	assert_int_equal(process_table_alive(t), 1);
}

static void many_come_and_go(void **state)
{
	struct process_entry *p = NULL;
	size_t n = 0;

	for (uint32_t pid = 1; pid <= PROCESS_TABLE_MAX; pid++)
		assert_non_null(process_table_enter(t, pid, at(10)));
	assert_null(process_table_enter(t, PROCESS_TABLE_MAX + 1, at(10))); /* the ceiling */
	while ((p = process_table_next(t, p)))
		n++;
	assert_int_equal(n, PROCESS_TABLE_MAX);
	for (uint32_t pid = 1; pid <= PROCESS_TABLE_MAX; pid++)
		process_table_exit(t, pid, at(20));
	process_table_tick(t);
	process_table_tick(t);
	assert_null(process_table_next(t, NULL));
	assert_int_equal(slots_held, 0);
	assert_non_null(process_table_enter(t, PROCESS_TABLE_MAX + 1, at(30)));
}

#define RUN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RUN(a_life_is_told_once_and_in_order),
		RUN(slow_stages_hear_when_there_is_time),
		RUN(records_of_the_dead_do_not_bring_them_back),
		RUN(a_reused_pid_is_another_process),
		RUN(an_untold_end_is_told_before_the_next_begin),
		RUN(a_child_that_is_gone_already_has_a_life),
		RUN(of_unknown_processes_calls_and_ends_are_heard),
		RUN(many_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
