/* SPDX-License-Identifier: Apache-2.0 */
/* test_diff.c - two times compared: operations by buckets, steps by bars, stacks by their texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "answer/diff/diff.h"
#include "answer/encode/report.h"
#include "steps_fixture.h"

#define WIDTH  (5 * (int64_t)NS_PER_S)
#define US     1000.0
#define LAUNCH 3 /* cudaLaunchKernel */

static void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

/* @count calls of @ns in each of @buckets buckets, give and take a little. */
static void add_op(struct diff_side *s, int buckets, double count, double ns)
{
	struct nodedb_range span = {0, buckets * WIDTH};

	for (int i = 0; i < buckets; i++) {
		double mean = ns * (1 + 0.01 * (i % 3 - 1));

		assert_int_equal(diff_samples_add(s, &(struct diff_calls){.source = SOURCE_CUDA,
							     .op = LAUNCH,
							     .bucket = i * WIDTH,
							     .calls = count,
							     .ns = count * mean,
							     .squares = count * mean * mean}),
			0);
	}
	assert_int_equal(diff_samples_finish(s, WIDTH, &span), 0);
	s->ops.rows = calloc(1, sizeof(*s->ops.rows));
	assert_non_null(s->ops.rows);
	s->ops.rows[0] = (struct op_stat){.source = SOURCE_CUDA,
		.op = LAUNCH,
		.calls = (uint64_t)(count * buckets),
		.sum_ns = (uint64_t)(count * buckets * ns),
		.avg_ns = ns,
		.p50_ns = (uint64_t)ns,
		.p99_ns = (uint64_t)ns};
	s->ops.count = 1;
	s->ops_ns = (uint64_t)span.last_ns;
	s->time = (struct diff_time){1, 1 + span.last_ns, s->ops.rows[0].calls, 0};
}

static void done(struct diff_side sides[2], struct diff_answer *a)
{
	diff_answer_done(a);
	diff_side_done(&sides[0]);
	diff_side_done(&sides[1]);
}

static void operations(void **state)
{
	static const struct {
		int buckets;
		double count, ns;
		enum compare_verdict dur, calls;
		const char *summary;
	} rows[] = {
		{6, 5000, 10 * US, COMPARE_NOISE, COMPARE_NOISE, "No difference beyond noise."},
		{6, 5000, 15 * US, COMPARE_MORE, COMPARE_NOISE,
			"A call of cudaLaunchKernel takes 15µs in B instead of 10µs on average (+50 %)."},
		{6, 5000, 5 * US, COMPARE_LESS, COMPARE_NOISE, "(-50 %)."},
		{6, 5000, 10.2 * US, COMPARE_NOISE, COMPARE_NOISE, "No difference beyond noise."},
		{6, 9000, 10 * US, COMPARE_NOISE, COMPARE_MORE,
			"B calls cudaLaunchKernel 1800 times a second instead of 1000 (+8.0 ms a second)."},
		/* Too short for buckets: by calls, of which a little more says nothing */
		{1, 5000, 15 * US, COMPARE_MORE, COMPARE_UNKNOWN, "(+50 %)."},
		{1, 5000, 12 * US, COMPARE_NOISE, COMPARE_UNKNOWN, "No difference beyond noise."},
		{1, 5, 15 * US, COMPARE_UNKNOWN, COMPARE_UNKNOWN, "No difference beyond noise."},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct diff_side sides[2] = {0};
		struct diff_answer a = {0};

		add_op(&sides[0], 6, 5000, 10 * US);
		add_op(&sides[1], rows[i].buckets, rows[i].count, rows[i].ns);
		assert_int_equal(diff_compare(sides, &a), 0);
		assert_int_equal(a.op_count, 1);
		assert_int_equal(a.ops[0].dur, rows[i].dur);
		assert_int_equal(a.ops[0].calls, rows[i].calls);
		assert_contains(a.summary, rows[i].summary);
		assert_int_equal(a.different, strncmp(a.summary, "No ", 3) != 0);
		done(sides, &a);
	}
}

/* What only one side has is there, with none on the other. */
static void one_sided(void **state)
{
	struct diff_side sides[2] = {0};
	struct diff_answer a = {0};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	add_op(&sides[0], 6, 5000, 10 * US);
	sides[1].ops_ns = sides[0].ops_ns;
	sides[1].time = sides[0].time;
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.op_count, 1);
	assert_int_equal(a.ops[0].of[0].calls, 30000);
	assert_int_equal(a.ops[0].of[1].calls, 0);
	assert_true(a.ops[0].lost_ns_s < 0);
	assert_string_equal(a.summary, "Cannot compare: B has no GPU calls.");
	diff_text(&b, &a, 10, false);
	assert_contains(buf_str(&b), "only in A");
	done(sides, &a);
}

/* ---- steps ---- */

static void set_steps(struct diff_side *s, struct step_report *r, const char *place)
{
	assert_int_equal(steps_fill_report(r), 0);
	s->steps.rows = calloc(2, sizeof(*s->steps.rows));
	s->accounts = calloc(2, sizeof(*s->accounts));
	assert_true(s->steps.rows && s->accounts);
	for (size_t i = 0; i < 2; i++) {
		s->steps.rows[i].account = &r->items[i];
		s->accounts[i] = (struct diff_account){.account = &r->items[i], .rank = -1};
	}
	s->steps.count = 2;
	s->ops_ns = NS_PER_S;
	snprintf(s->accounts[0].places[0], DIFF_PLACE, "%s", place);
}

/* Every step takes 50 ms longer, at the place of the first entry. */
static void lengthen(struct step_account *a)
{
	uint64_t more = 50 * STEPS_MS;

	a->ordinary_step_ns += more;
	a->slow_step_ns += more;
	a->ordinary_ns[ACCOUNT_HOST] += more;
	a->slow_ns[ACCOUNT_HOST] += more;
	a->entries[0].ordinary_ns += more;
	a->entries[0].slow_ns += more;
	for (size_t i = 0; i < a->bar_count; i++) {
		a->bars[i].dur_ns += more * a->bars[i].steps;
		a->bars[i].ns[ACCOUNT_HOST] += more * a->bars[i].steps;
	}
	a->pid += 1000;
}

static void steps(void **state)
{
	struct diff_side sides[2] = {0};
	struct step_report reports[2] = {0};
	struct diff_answer a = {0};
	double sum[2] = {0};

	set_steps(&sides[0], &reports[0], "collate() at train.py:88");
	set_steps(&sides[1], &reports[1], "collate() at train.py:88");
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_string_equal(a.summary, "No difference beyond noise.");
	assert_int_equal(a.jobs[0].step.verdict, COMPARE_NOISE);
	diff_answer_done(&a);

	lengthen(&reports[1].items[0]);
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.jobs[0].pid[1], STEPS_PID + 1000); /* found by its name */
	assert_int_equal(a.jobs[0].step.verdict, COMPARE_MORE);
	assert_int_equal(a.jobs[0].lines[0].line, ACCOUNT_HOST);
	assert_string_equal(a.jobs[0].lines[0].place, "collate() at train.py:88");
	for (int i = 0; i < a.jobs[0].line_count; i++)
		for (int k = 0; k < 2; k++)
			sum[k] += a.jobs[0].lines[i].ns[k];
	assert_true(sum[0] > 0 && sum[0] == a.jobs[0].step.ns[0] && sum[1] == a.jobs[0].step.ns[1]);
	assert_contains(a.summary, "B's steps take 158 ms instead of 108 ms (+46 %): +50.0 ms host "
				   "code in collate() at train.py:88.");
	for (int i = 0; i < 2; i++)
		step_report_done(&reports[i]);
	done(sides, &a);
}

/* A is 50 ms a step longer than B, and an incident of it said so: of every step, or of some. */
static void promises(void **state)
{
	static const struct {
		uint64_t count, fixed_ms, least_ms, most_ms;
		enum diff_outcome outcome;
	} rows[] = {
		{501, 108, 100, 112, DIFF_KEPT}, {501, 120, 120, 120, DIFF_KEPT}, /* near enough */
		{501, 20, 10, 40, DIFF_PART}, {501, 140, 138, 142, DIFF_MORE},
		{50, 20, 20, 158, DIFF_MORE}, /* a tenth of the steps */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct incident inc = {.pid = STEPS_PID + 1000,
			.severity = SEVERITY_HIGH,
			.count = rows[i].count,
			.unit_ns = 158 * STEPS_MS,
			.fixed_ns = rows[i].fixed_ms * STEPS_MS,
			.fixed_least_ns = rows[i].least_ms * STEPS_MS,
			.fixed_most_ns = rows[i].most_ms * STEPS_MS,
			.summary = "Host code in collate"};
		struct diff_side sides[2] = {0};
		struct step_report reports[2] = {0};
		struct diff_answer a = {0};
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

		set_steps(&sides[1], &reports[1], "");
		set_steps(&sides[0], &reports[0], "");
		lengthen(&reports[0].items[0]);
		sides[0].incidents = &inc;
		sides[0].incident_count = 1;
		assert_int_equal(diff_compare(sides, &a), 0);
		assert_int_equal(a.promise_count, 1);
		if (a.promises[0].outcome != rows[i].outcome)
			fail_msg("row %zu: %d", i, (int)a.promises[0].outcome);
		diff_text(&b, &a, 10, false);
		assert_contains(
			buf_str(&b), "Host code in collate. Predicted without it: steps 158 → ");
		inc.severity = SEVERITY_LOW; /* nobody was told to mend it */
		diff_answer_done(&a);
		assert_int_equal(diff_compare(sides, &a), 0);
		assert_int_equal(a.promise_count, 0);
		sides[0].incidents = NULL;
		for (int k = 0; k < 2; k++)
			step_report_done(&reports[k]);
		done(sides, &a);
	}
}

/* B is as slow as A. */
static void a_promise_that_was_not_kept(void **state)
{
	struct incident inc = {.pid = STEPS_PID,
		.severity = SEVERITY_HIGH,
		.count = 501,
		.unit_ns = 108 * STEPS_MS,
		.fixed_ns = 50 * STEPS_MS};
	struct diff_side sides[2] = {0};
	struct step_report reports[2] = {0};
	struct diff_answer a = {0};

	set_steps(&sides[0], &reports[0], "");
	set_steps(&sides[1], &reports[1], "");
	sides[0].incidents = &inc;
	sides[0].incident_count = 1;
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.promise_count, 1);
	assert_int_equal(a.promises[0].outcome, DIFF_NOTHING);
	sides[0].incidents = NULL;
	for (int k = 0; k < 2; k++)
		step_report_done(&reports[k]);
	done(sides, &a);
}

/* A rank is a rank on any machine: it goes before names and order. */
static void ranks(void **state)
{
	struct diff_side sides[2] = {0};
	struct step_report reports[2] = {0};
	struct diff_answer a = {0};

	set_steps(&sides[0], &reports[0], "");
	set_steps(&sides[1], &reports[1], "");
	sides[0].accounts[0].rank = sides[1].accounts[1].rank = 0;
	sides[0].accounts[1].rank = sides[1].accounts[0].rank = 1;
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.job_count, 2);
	assert_int_equal(a.jobs[0].pid[0], STEPS_PID);
	assert_int_equal(a.jobs[0].pid[1], STEPS_PID + 1);
	diff_answer_done(&a);
	sides[1].accounts[0].rank = sides[1].accounts[1].rank = 7; /* another rank is nobody's */
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.job_count, 0);
	for (int i = 0; i < 2; i++)
		step_report_done(&reports[i]);
	done(sides, &a);
}

/* ---- stacks ---- */

static void add_walk(
	struct diff_side *s, uint64_t ip, uint32_t line, double ms, double rows, const char *stop)
{
	struct stack_frame frames[] = {{.ip = ip, .symbol = "launch", .file = "libtorch.so"},
		{.py_file = "/home/u/train.py", .py_func = "forward", .py_line = line},
		{.symbol = "main", .file = "python3"}};
	struct stack stack = {
		.hash = ip, .frames = frames, .count = stop[0] ? 2 : 3, .stop = (char *)stop};
	struct diff_stack_row row = {.source = SOURCE_CUDA,
		.op = LAUNCH,
		.key = diff_stack_key(&stack, SOURCE_CUDA, LAUNCH, false),
		.loose = diff_stack_key(&stack, SOURCE_CUDA, LAUNCH, true),
		.lines = diff_stack_lines(&stack, SOURCE_CUDA, LAUNCH),
		.ns = ms * (double)NS_PER_MS,
		.rows = rows,
		.stack = stack_copy(&stack, NULL)};

	assert_non_null(row.stack);
	s->stacks = reallocarray(s->stacks, s->stack_count + 1, sizeof(row));
	assert_non_null(s->stacks);
	s->stacks[s->stack_count++] = row;
	s->ops_ns = NS_PER_S;
	s->time = (struct diff_time){1, 1 + (int64_t)NS_PER_S, 0, 0};
}

static void add_stack(struct diff_side *s, uint64_t ip, uint32_t line, double ms, double rows)
{
	add_walk(s, ip, line, ms, rows, "");
}

/* Walks of one run that ended early are no stacks that the other run lacks. */
static void cut_stacks(void **state)
{
	static const char why[] = "no unwind table of the file yet: libtorch.so";
	struct diff_side sides[2] = {0};
	struct diff_answer a = {0};

	add_stack(&sides[0], 0x1000, 41, 300, 1000);
	add_walk(&sides[1], 0x9000, 41, 200, 1000, why);
	add_stack(&sides[1], 0x9000, 41, 100, 1000);
	add_walk(&sides[1], 0x9200, 50, 70, 1000, why); /* control: none is whole, it stays */
	diff_stacks_join(&sides[0]);
	diff_stacks_join(&sides[1]);
	assert_int_equal(sides[1].stack_count, 2);
	for (size_t i = 0; i < 2; i++) /* the whole stack is the one that is shown */
		assert_true((sides[1].stacks[i].stack->stop[0] == 0) ==
			    (sides[1].stacks[i].stack->frames[1].py_line == 41));
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.stack_count, 1);
	assert_string_equal(a.stacks[0].place, "forward() at train.py:50");
	done(sides, &a);
}

static void stacks(void **state)
{
	struct diff_side sides[2] = {0};
	struct diff_answer a = {0};

	add_stack(&sides[0], 0x1000, 41, 50, 1000);
	add_stack(&sides[0], 0x2000, 41, 50, 1000); /* the same text elsewhere */
	add_stack(&sides[0], 0x3000, 60, 10, 1000);
	add_stack(&sides[1], 0x9000, 41, 300, 1000);
	add_stack(&sides[1], 0x9100, 62, 90, 1000); /* line 60, which moved */
	diff_stacks_join(&sides[0]);
	diff_stacks_join(&sides[1]);
	assert_int_equal(sides[0].stack_count, 2);
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.stack_count, 2);
	assert_string_equal(a.stacks[0].place, "forward() at train.py:41");
	assert_true(a.stacks[0].ns_s[0] == 100e6 && a.stacks[0].ns_s[1] == 300e6);
	assert_false(a.stacks[0].moved);
	assert_string_equal(a.stacks[1].place, "forward() at train.py:62");
	assert_true(a.stacks[1].moved && a.stacks[1].ns_s[0] == 10e6);
	done(sides, &a);
}

/* Of more stacks than are kept the largest stay, in order; what a few rows say is noise. */
static void most_grown(void **state)
{
	struct diff_side sides[2] = {0};
	struct diff_answer a = {0};

	for (uint32_t i = 1; i <= 3 * DIFF_STACKS; i++)
		add_stack(&sides[1], i, i, 10 * (i * 7 % 31), 1000);
	add_stack(&sides[1], 99, 99, 5000, 2);
	sides[0].ops_ns = NS_PER_S;
	sides[0].time = sides[1].time;
	diff_stacks_join(&sides[1]);
	assert_int_equal(diff_compare(sides, &a), 0);
	assert_int_equal(a.stack_count, DIFF_STACKS);
	for (int i = 0; i < DIFF_STACKS; i++)
		assert_true(a.stacks[i].ns_s[1] == 10e6 * (30 - i));
	done(sides, &a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations),
		cmocka_unit_test(one_sided),
		cmocka_unit_test(steps),
		cmocka_unit_test(promises),
		cmocka_unit_test(a_promise_that_was_not_kept),
		cmocka_unit_test(ranks),
		cmocka_unit_test(stacks),
		cmocka_unit_test(cut_stacks),
		cmocka_unit_test(most_grown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
