/* SPDX-License-Identifier: Apache-2.0 */
/* test_clocked.c - pauses by a program's own timetable are told from sleeps that cost it time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/macros.h"
#include "diagnose/accounts/account.h"

#define UNITS      200
#define SLEEP_HASH 7

enum sleep_kind { SLEEP_FIXED, SLEEP_TO_DEADLINE, SLEEP_FOR_THE_REST, SLEEP_AS_ASKED, SLEEP_POLLS };

struct run {
	struct step_span units[UNITS];
	struct account_part parts[2 * UNITS];
	size_t part_end[UNITS];
	struct tally_part keys[3];
	struct process_account account;
	struct stack_frame frames[2];
	struct stack stack, *stacks[1];
	uint32_t seed;
};

static uint64_t below(struct run *r, uint64_t n)
{
	r->seed = r->seed * 1664525u + 1013904223u;
	return (r->seed >> 8) % n;
}

static void begin(struct run *r, size_t n)
{
	*r = (struct run){.seed = 5};
	r->frames[0] = (struct stack_frame){.file = "libc.so.6"}; /* stripped */
	r->frames[1] =
		(struct stack_frame){.py_file = "/srv/serve.py", .py_func = "main", .py_line = 9};
	r->stack = (struct stack){.hash = SLEEP_HASH,
		.frames = r->frames,
		.count = ARRAY_SIZE(r->frames),
		.stop = ""};
	r->stacks[0] = &r->stack;
	r->keys[0] = (struct tally_part){.line = ACCOUNT_GPU};
	r->keys[1] = (struct tally_part){
		.line = ACCOUNT_ASLEEP, .by_clock = true, .stack_hash = SLEEP_HASH};
	r->account = (struct process_account){.origin = STEP_BY_WAIT,
		.units = r->units,
		.unit_count = n,
		.parts = r->parts,
		.part_end = r->part_end,
		.part_count = 2 * n,
		.keys = r->keys,
		.key_count = 2};
}

/* Of work of 4 to 6 ms, which begins @offset after the last pause: a unit ends with the work's end. */
static void fill(struct run *r, enum sleep_kind kind)
{
	int64_t now = 0, due = 0;
	uint64_t last = 5 * NS_PER_MS;

	for (size_t i = 0; i < r->account.unit_count; i++) {
		uint64_t work = 4 * NS_PER_MS + below(r, 2 * NS_PER_MS), sleep = 15 * NS_PER_MS;
		uint64_t late = 50 * NS_PER_US + below(r, 100 * NS_PER_US), longest;

		due += 20 * NS_PER_MS;
		if (kind == SLEEP_TO_DEADLINE)
			sleep = (uint64_t)(due - now);
		else if (kind == SLEEP_FOR_THE_REST)
			sleep = 20 * NS_PER_MS - last;
		else if (kind == SLEEP_AS_ASKED || kind == SLEEP_POLLS)
			sleep = NS_PER_MS + below(r, 20 * NS_PER_MS);
		sleep += late;
		longest = kind == SLEEP_POLLS ? MIN(sleep, (uint64_t)NS_PER_MS) : sleep;
		r->units[i] = (struct step_span){
			.start_ns = now, .end_ns = now + (int64_t)(work + sleep)};
		r->parts[2 * i] = (struct account_part){.key = 0, .ns = work};
		r->parts[2 * i + 1] =
			(struct account_part){.key = 1, .ns = sleep, .stack_ns = (uint32_t)longest};
		r->part_end[i] = 2 * i + 2;
		now = r->units[i].end_ns;
		last = work;
	}
}

static bool are_pauses(struct run *r)
{
	const struct stack_list stacks = {.items = r->stacks, .count = 1};
	uint64_t left[ACCOUNT_LINES] = {0};

	assert_int_equal(account_read_stacks(&r->account, &stacks), 0);
	account_lines(&r->account, 0, left);
	assert_int_equal(left[ACCOUNT_ASLEEP] + account_pause_ns(&r->account, 0), r->parts[1].ns);
	assert_int_equal(left[ACCOUNT_GPU], r->parts[0].ns);
	return left[ACCOUNT_ASLEEP] == 0;
}

static bool sleeps_are_pauses(enum sleep_kind kind, enum step_origin origin)
{
	static struct run r;

	begin(&r, UNITS);
	r.account.origin = origin;
	fill(&r, kind);
	return are_pauses(&r);
}

static void test_by_the_clock(void **state)
{
	assert_true(sleeps_are_pauses(SLEEP_TO_DEADLINE, STEP_BY_WAIT));
	assert_true(sleeps_are_pauses(SLEEP_FOR_THE_REST, STEP_BY_WAIT));
	assert_true(sleeps_are_pauses(SLEEP_FOR_THE_REST, STEP_BY_OPTIMIZER));
}

/* As long as it happens until somebody asks: of a server; nobody asks a training for its next step. */
static void test_as_asked(void **state)
{
	assert_true(sleeps_are_pauses(SLEEP_AS_ASKED, STEP_BY_WAIT));
	assert_false(sleeps_are_pauses(SLEEP_AS_ASKED, STEP_BY_OPTIMIZER));
}

/* Always as long, or many one after the other until something is there. */
static void test_sleeps_that_cost(void **state)
{
	assert_false(sleeps_are_pauses(SLEEP_FIXED, STEP_BY_WAIT));
	assert_false(sleeps_are_pauses(SLEEP_POLLS, STEP_BY_WAIT));
}

/* One in 40 units of a training is a second longer, as its author looks at the result; in one of four it is none, nor is
 * what is as short as a unit. */
static void test_breaks_between_runs(void **state)
{
	static const struct {
		size_t every;
		uint64_t ms;
		bool is_pause;
	} runs[] = {{40, 1000, true}, {4, 1000, false}, {40, 10, false}};
	static struct run r;

	for (size_t k = 0; k < ARRAY_SIZE(runs); k++) {
		begin(&r, UNITS);
		r.account.origin = STEP_BY_OPTIMIZER;
		fill(&r, SLEEP_FIXED);
		for (size_t i = 0; i < UNITS; i++) {
			bool sleeps = i % runs[k].every == 0;

			r.parts[2 * i + 1].ns = sleeps ? runs[k].ms * NS_PER_MS : 0;
			r.parts[2 * i + 1].stack_ns = (uint32_t)r.parts[2 * i + 1].ns;
			r.units[i].start_ns = i ? r.units[i - 1].end_ns : 0;
			r.units[i].end_ns = r.units[i].start_ns +
					    (int64_t)(r.parts[2 * i].ns + r.parts[2 * i + 1].ns);
		}
		assert_int_equal(are_pauses(&r), runs[k].is_pause);
	}
}

/* Somebody waits for a rank that sleeps; few units show nothing; a stay that is no sleep is none. */
static void test_no_pause(void **state)
{
	static struct run r;

	begin(&r, UNITS);
	fill(&r, SLEEP_AS_ASKED);
	assert_true(are_pauses(&r));
	r.keys[2].line = ACCOUNT_COLLECTIVE;
	r.account.key_count = 3;
	assert_false(are_pauses(&r));
	r.account.key_count = 2;
	r.account.unit_count = 20;
	assert_false(are_pauses(&r));
	r.account.unit_count = UNITS;
	r.keys[1].by_clock = false;
	assert_false(are_pauses(&r));
}

/* Who asks is another process: it sleeps as it likes until it does, or it is asked and takes as long each time. */
static void test_of_another_process(void **state)
{
	static struct run r;

	begin(&r, UNITS);
	r.keys[1].line = ACCOUNT_NETWORK;
	r.keys[1].owner = OWNER_PROCESS;
	fill(&r, SLEEP_AS_ASKED);
	assert_int_equal(account_read_stacks(
				 &r.account, &(struct stack_list){.items = r.stacks, .count = 1}),
		0);
	assert_int_equal(account_pause_ns(&r.account, 0), r.parts[1].ns);
	fill(&r, SLEEP_TO_DEADLINE);
	assert_int_equal(account_read_stacks(
				 &r.account, &(struct stack_list){.items = r.stacks, .count = 1}),
		0);
	assert_int_equal(account_pause_ns(&r.account, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_the_clock),
		cmocka_unit_test(test_as_asked),
		cmocka_unit_test(test_sleeps_that_cost),
		cmocka_unit_test(test_breaks_between_runs),
		cmocka_unit_test(test_no_pause),
		cmocka_unit_test(test_of_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
