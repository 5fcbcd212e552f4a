/* SPDX-License-Identifier: Apache-2.0 */
/* test_steps.c - how an account of steps is shown: lines, text, JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <time.h>

#include "answer/encode/report_json.h"
#include "answer/encode/report.h"
#include "answer/encode/say.h"
#include "steps_fixture.h"

struct made {
	struct step_report report;
	struct stack *items[1];
	struct stack_list stacks;
	struct steps_row rows[2];
	struct steps_answer a;
};

static void make(struct made *m)
{
	*m = (struct made){.items = {&steps_stack}};
	assert_int_equal(steps_fill_report(&m->report), 0);
	m->stacks = (struct stack_list){m->items, 1};
	for (int i = 0; i < 2; i++)
		m->rows[i] = (struct steps_row){&m->report.items[i], "gpu-1", &m->stacks, true};
	m->a = (struct steps_answer){.rows = m->rows, .count = 2, .reason = ""};
}

static void made_done(struct made *m)
{
	step_report_done(&m->report);
}

static int use_utc(void **state)
{
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* Every line that has time is there, and together they are a step and its difference. */
static void lines_add_up(void **state)
{
	_cleanup_(made_done) struct made m;
	struct steps_line lines[ACCOUNT_LINES], whole;
	uint64_t ordinary = 0, slow = 0;
	int64_t difference = 0;
	double share = 0;
	int n;

	make(&m);
	n = steps_lines(&m.report.items[0], lines);
	whole = steps_whole(&m.report.items[0]);
	assert_int_equal(n, 5);
	assert_int_equal(lines[0].line, ACCOUNT_HOST); /* what grew most first */
	for (int i = 0; i < n; i++) {
		ordinary += lines[i].ordinary_ns;
		slow += lines[i].slow_ns;
		difference += lines[i].difference_ns;
		share += lines[i].share;
		assert_true(!i || lines[i].difference_ns <= lines[i - 1].difference_ns);
	}
	assert_int_equal(ordinary, whole.ordinary_ns);
	assert_int_equal(slow, whole.slow_ns);
	assert_int_equal(difference, whole.difference_ns);
	assert_true(share > 0.999 && share < 1.001 && whole.share == 1);
}

/* Without slow steps, or with nothing to compare them with, the account of all steps is shown. */
static void without_comparison(void **state)
{
	_cleanup_(made_done) struct made m;
	struct steps_line lines[ACCOUNT_LINES];
	struct step_account *a;

	make(&m);
	a = &m.report.items[1];
	assert_false(steps_comparable(a));
	assert_int_equal(steps_lines(a, lines), 3);
	assert_int_equal(lines[0].line, ACCOUNT_GPU);
	assert_int_equal(lines[0].mean_ns, 15 * STEPS_MS);
	assert_true(lines[0].share == 0.75);
	assert_true(steps_entry(a, &a->entries[0]).share == 0.75);
	a->slow_steps = a->steps;
	a->ordinary_steps = 0;
	assert_false(steps_comparable(a));
	assert_int_equal(steps_lines(a, lines), 3);
	*a = (struct step_account){0}; /* nor is anything divided by nothing */
	assert_int_equal(steps_lines(a, lines), 0);
	assert_true(steps_whole(a).share == 0);
}

static void place(void **state)
{
	_cleanup_(made_done) struct made m;
	struct steps_place p;

	make(&m);
	p = steps_place(&m.stacks, &m.report.items[0].entries[0]);
	assert_ptr_equal(p.user, &steps_frames[2]);
	assert_ptr_equal(p.within, &steps_frames[1]);
	steps_stack.count = 2; /* the library alone */
	p = steps_place(&m.stacks, &m.report.items[0].entries[0]);
	steps_stack.count = 4;
	assert_ptr_equal(p.user, &steps_frames[1]);
	assert_null(p.within);
	p = steps_place(&m.stacks, &m.report.items[0].entries[1]);
	assert_null(p.user);
}

static void assert_fits(const char *text, size_t columns)
{
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");

		if (len > columns)
			fail_msg("longer than %zu: %.*s", columns, (int)len, line);
		line += len + (line[len] == '\n');
	}
}

static void text(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(made_done) struct made m;

	make(&m);
	steps_text(&b, &m.a, 0, false);
	assert_int_equal(b.err, 0);
	assert_contains(b.data, "STEPS - 2 processes\n");
	assert_contains(b.data,
		"\npython3 (PID 4821): 512 steps, 31 slow: lost 4.2s of 55s (7.6 %)\n"
		"  Step boundary: optimizer.step (95 %)\n"
		"  Time: from 2026-03-21 13:24:50 to 13:25:50 UTC\n"
		"  Steps: 470 ordinary (100ms), 31 slow (236ms), 11 with other work (not "
		"compared)\n"
		"  Slow: one in 16 steps, from 2026-03-21 13:25:10 to 13:25:40 "
		"UTC\n\n");
	assert_contains(b.data,
		"  ms per step                            ordinary      slow  difference    "
		"share\n"
		"  host code                                  10.0     137.0      +127.0     93 %\n"
		"  waiting for a CPU                           0.0       7.0        +7.0    5.1 %\n");
	assert_contains(b.data,
		"  step                                      100.0     236.0      +136.0    100 %\n"
		"  Of the difference: +7.0 ms in other threads of the process, +129.0 ms in data "
		"loader workers\n"
		"  Unknown: 3 rows of the ledger were lost\n");
	assert_contains(b.data,
		"  What grew:\n"
		"    +129.0 ms  host code, in data loader worker pt_data_worker (PID 4850)\n"
		"               collate() at train.py:88, in stack() at functional.py:20\n"
		"      +7.0 ms  waiting for a CPU, in thread pt_autograd_0; on the CPU: stress-ng "
		"(PID 99)\n");
	assert_contains(b.data, "(PID 4822): 200 steps of 20ms, none slow\n");
	assert_contains(b.data, "  waiting for the GPU                       15.00     75 %\n");
	assert_null(strchr(b.data, '\033')); /* of a process's name, too */
	assert_null(strstr(b.data, "gpu-1"));
	assert_fits(b.data, 100);
	buf_clear(&b);
	steps_text(&b, &m.a, 80, false);
	assert_fits(b.data, 80);
	snprintf(m.rows[1].node, sizeof(m.rows[1].node), "gpu-2");
	buf_clear(&b);
	steps_text(&b, &m.a, 0, true);
	assert_contains(b.data, "\033[1mgpu-1: python3 (PID 4821)");
}

static void changed_work(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(made_done) struct made m;

	make(&m);
	steps_text(&b, &m.a, 0, false);
	assert_null(strstr(b.data, "Work:"));
	m.report.items[0].slow_launches = 1280;
	m.report.items[0].slow_bytes = 3 << 20;
	buf_clear(&b);
	steps_text(&b, &m.a, 0, false);
	assert_contains(b.data, "  Work: slow steps launch 1280 kernels, ordinary ones 640; slow "
				"steps copy 3.0 MiB,");
}

/* A line that would be zeros as it is printed is left out, whatever its share of an ordinary step. */
static void no_zeros(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(made_done) struct made m;
	struct step_account *a;

	make(&m);
	a = &m.report.items[0];
	a->total_ns[ACCOUNT_DISK] = 512 * STEPS_MS;
	a->ordinary_ns[ACCOUNT_DISK] = a->slow_ns[ACCOUNT_DISK] = STEPS_MS;
	steps_text(&b, &m.a, 0, false);
	assert_contains(b.data, "\n  disk  ");
	a->ordinary_ns[ACCOUNT_DISK] = a->slow_ns[ACCOUNT_DISK] = STEPS_MS / 25;
	buf_clear(&b);
	steps_text(&b, &m.a, 0, false);
	assert_null(strstr(b.data, "\n  disk  "));
}

/* A thread that waits for another one of its process does not wait for itself. */
static void own_culprit(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(made_done) struct made m;
	struct account_entry *e;

	make(&m);
	e = &m.report.items[0].entries[1];
	e->line = ACCOUNT_GIL;
	e->culprit_pid = e->pid;
	snprintf(e->culprit, sizeof(e->culprit), "spinner");
	steps_text(&b, &m.a, 0, false);
	assert_contains(b.data, "spinner of the same process");
	assert_null(strstr(b.data, "spinner (PID"));
}

static void short_text(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(made_done) struct made m;

	make(&m);
	steps_text_short(&b, &m.rows[0], 2);
	assert_string_equal(b.data,
		"  python3 (PID 4821): 512 steps, 31 slow: lost 4.2s of 55s (7.6 %)\n"
		"      +127.0 ms per step (93 %)  host code\n"
		"        +7.0 ms per step (5.1 %)  waiting for a CPU\n");
}

static void none(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct steps_answer a = {.reason = "nothing was recorded in this time"};
	struct json_writer w;

	steps_text(&b, &a, 0, false);
	assert_string_equal(b.data, "No steps found\n  nothing was recorded in this time\n");
	buf_clear(&b);
	w = json_writer_to_buf(&b);
	json_begin_object(&w);
	steps_put(&w, &a, SIZE_MAX, STEPS_FULL);
	json_end_object(&w);
	assert_int_equal(json_finish(&w), 0);
	assert_string_equal(b.data,
		"{\"accounts\":[],\"truncated\":false,\"reason\":\"nothing was recorded in this "
		"time\"}\n");
}

static json_t *encode(const struct steps_answer *a, size_t limit, enum steps_detail detail)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct json_writer w = json_writer_to_buf(&b);
	json_t *tree;

	json_begin_object(&w);
	steps_put(&w, a, limit, detail);
	json_end_object(&w);
	assert_int_equal(json_finish(&w), 0);
	tree = json_loads(buf_str(&b), 0, NULL);
	assert_non_null(tree);
	return tree;
}

static json_int_t number(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static const char *string(const json_t *o, const char *key)
{
	assert_true(json_is_string(json_object_get(o, key)));
	return json_string_value(json_object_get(o, key));
}

static void drift(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	_cleanup_(made_done) struct made m;
	json_t *tree, *account;

	make(&m);
	m.report.items[0].is_drift = true;
	m.report.items[0].drift_from_ns = 100 * STEPS_MS;
	m.report.items[0].drift_to_ns = 160 * STEPS_MS;
	steps_text(&b, &m.a, 0, false);
	assert_contains(b.data, "  Slow: gradually, from 100ms to 160ms, from 2026-03-21");
	tree = encode(&m.a, SIZE_MAX, STEPS_FULL);
	account = json_array_get(json_object_get(tree, "accounts"), 0);
	assert_int_equal(number(account, "drift_from_ns"), 100 * STEPS_MS);
	assert_int_equal(number(account, "drift_to_ns"), 160 * STEPS_MS);
	account = json_array_get(json_object_get(tree, "accounts"), 1);
	assert_null(json_object_get(account, "drift_to_ns"));
	json_decref(tree);
}

static void json(void **state)
{
	_cleanup_(made_done) struct made m;
	json_t *tree, *account, *line, *entry, *bar;
	json_int_t sum = 0;
	const char *key;
	size_t i;

	make(&m);
	tree = encode(&m.a, SIZE_MAX, STEPS_FULL);
	assert_int_equal(json_array_size(json_object_get(tree, "accounts")), 2);
	account = json_array_get(json_object_get(tree, "accounts"), 0);
	assert_string_equal(string(account, "node"), "gpu-1");
	assert_string_equal(string(account, "origin"), "optimizer");
	assert_int_equal(number(account, "slow_steps"), 31);
	assert_int_equal(number(account, "lost_ns"), 31 * 136 * STEPS_MS);
	json_array_foreach (json_object_get(account, "lines"), i, line)
		sum += number(line, "difference_ns");
	assert_int_equal(sum, 136 * STEPS_MS);
	entry = json_array_get(json_object_get(account, "owners"), 2);
	assert_string_equal(string(entry, "title"), "data loader workers");
	assert_int_equal(number(entry, "difference_ns"), 129 * STEPS_MS);
	entry = json_array_get(json_object_get(account, "entries"), 0);
	assert_string_equal(string(entry, "owner"), "loader");
	assert_string_equal(string(entry, "stack_hash"), "-1");
	assert_int_equal(number(json_object_get(entry, "where"), "py_line"), 88);
	assert_int_equal(number(json_object_get(entry, "within"), "py_line"), 20);
	entry = json_array_get(json_object_get(account, "entries"), 1);
	assert_true(json_is_null(json_object_get(entry, "where")));
	assert_true(json_is_null(json_object_get(entry, "stack_hash")));
	assert_int_equal(json_array_size(json_object_get(account, "bars")), STEPS_BARS);
	bar = json_array_get(json_object_get(account, "bars"), 4);
	sum = 0;
	json_object_foreach (json_object_get(bar, "ns"), key, line)
		sum += json_integer_value(line);
	assert_int_equal(sum, number(bar, "dur_ns"));
	json_decref(tree);

	m.report.items[0].entry_count =
		STEPS_ENTRIES_FEW + 1; /* with stacks as without, all of them */
	tree = encode(&m.a, 1, STEPS_STACKS);
	account = json_array_get(json_object_get(tree, "accounts"), 0);
	assert_int_equal(
		json_array_size(json_object_get(account, "entries")), STEPS_ENTRIES_FEW + 1);
	entry = json_array_get(json_object_get(account, "entries"), 0);
	assert_int_equal(json_array_size(json_object_get(entry, "frames")), 4);
	json_decref(tree);

	tree = encode(&m.a, 1, STEPS_FEW);
	assert_int_equal(json_array_size(json_object_get(tree, "accounts")), 1);
	assert_true(json_is_true(json_object_get(tree, "truncated")));
	account = json_array_get(json_object_get(tree, "accounts"), 0);
	assert_null(json_object_get(account, "bars"));
	json_decref(tree);
}

/* Equal windows of time are no steps of the program. */
static void said_units(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 12);
	_cleanup_(made_done) struct made m;

	make(&m);
	m.report.items[1].origin = STEP_BY_TIME;
	say_steps(&b, &m.a);
	assert_contains(buf_str(&b), "(PID 4821): 512 steps, ");
	assert_contains(buf_str(&b), " windows of time, ");
}

/* "No problems found in 512 steps" of another process is no all-clear for the one that was asked for. */
static void only_asked(void **state)
{
	const uint32_t second = STEPS_PID + 1, stranger = 1;
	struct explanation e = {0};

	assert_int_equal(steps_fill_report(&e.accounts), 0);
	e.accounts.items[1].pid = second;
	explanation_keep(&e, &(struct scope){0}); /* control: nobody in particular, all stay */
	assert_int_equal(e.scope.accounts.count, 2);
	explanation_keep(&e, &(struct scope){.pids = &second, .pid_count = 1});
	assert_int_equal(e.scope.accounts.count, 1);
	assert_int_equal(e.scope.accounts.items[0].pid, second);
	explanation_keep(&e, &(struct scope){.pids = &stranger, .pid_count = 1});
	assert_int_equal(e.scope.accounts.count, 0);
	explanation_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_add_up),
		cmocka_unit_test(without_comparison),
		cmocka_unit_test(place),
		cmocka_unit_test(text),
		cmocka_unit_test(changed_work),
		cmocka_unit_test(no_zeros),
		cmocka_unit_test(own_culprit),
		cmocka_unit_test(short_text),
		cmocka_unit_test(none),
		cmocka_unit_test(drift),
		cmocka_unit_test(json),
		cmocka_unit_test(said_units),
		cmocka_unit_test(only_asked),
	};

	return cmocka_run_group_tests(tests, use_utc, NULL);
}
