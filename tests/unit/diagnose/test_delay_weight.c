/* SPDX-License-Identifier: Apache-2.0 */
/* test_delay_weight.c - how bad a delay is: a program that pauses on purpose or has nothing to do is not
 * ill, one that waits for its own children or to get rid of its output is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "identity.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/compose/diagnose.h"
#include "ledger_fixture.h"
#include "model/problem.h"

#define SCENE _cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s))
#define STEPS 160

/* What is said of @s: the worst there is, -1 for nothing; its texts hold @text. */
static int worst(struct ledger_scene *s, const char *text)
{
	struct recording rec = ledger_recording(s);
	_cleanup_free_ struct incident *list = NULL;
	size_t count = 0;

	assert_int_equal(diagnose_run(&rec, &list, &count), 0);
	identity_check(&rec, list, count);
	if (!count)
		return -1;
	if (!strstr(list[0].summary, text) && !strstr(list[0].root_cause, text))
		fail_msg("\"%s\" is neither in \"%s\" nor in \"%s\"", text, list[0].summary,
			list[0].root_cause);
	if (strstr(list[0].root_cause, "waited for") &&
		strlen(strstr(list[0].root_cause, "waited for")) == strlen("waited for"))
		fail_msg("\"%s\" does not say where", list[0].root_cause);
	return (int)list[0].severity;
}

/* 20 ms that end with @end: an optimizer's step, or a graph of a program that does not train. */
static void ordinary(struct ledger_thread *t, enum wire_mark end)
{
	spend(t, LEDGER_RUN, MS(12));
	spend(t, LEDGER_LAUNCH, MS(5));
	spend(t, LEDGER_GPU_WAIT, MS(3));
	mark(t, end);
}

/* It sleeps for @ms once in @every steps from @from on. */
static void sleeping(struct ledger_scene *s, uint64_t ms, int every, int from)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/train.py", 25, "clock_nanosleep");

	for (int i = 0; i < STEPS; i++) {
		if (i >= from && i % every == every - 1)
			stay(&t, LEDGER_SLEEP, MS(ms), 0, 0, 0)->stack_hash = stack;
		ordinary(&t, MARK_OPTIMIZER);
	}
}

/* Whoever gives the GPU work and sleeps for twice as long each time until it is done sleeps on when it is. */
static void test_polls_that_wait_too_long(void **state)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "infer", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/infer.py", 42, "clock_nanosleep");

	for (int i = 0; i < STEPS; i++) {
		spend(&t, LEDGER_RUN, MS(1) / 2);
		spend(&t, LEDGER_LAUNCH, MS(1) / 2);
		for (int k = 0; k < 3; k++) {
			struct ledger_row *r = stay(&t, LEDGER_SLEEP, MS(1 << k), 0, 0, 0);

			r->waker = WAKER_TIMER;
			r->stack_hash = i % 5 ? 0 : stack;
		}
	}
	assert_true(
		worst(s, "Sleeping in work (infer.py:42) while polling the GPU: 2.0 of 8.0 ms") >=
		(int)SEVERITY_MEDIUM);
}

/* SQLite sleeps when another connection has the lock. */
static void test_a_locked_database(void **state)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/train.py", 30, "sqlite3InvokeBusyHandler");
	uint64_t other = line_stack(s, "/home/u/board.py", 17, "sqlite3VdbeExec");

	for (int i = 0; i < STEPS; i++) {
		for (int k = 0; k < 6 && i % 5 == 4; k++) {
			struct ledger_row *r = stay(&t, LEDGER_SLEEP, MS(5 * k + 1), 0, 0, 0);

			r->waker = WAKER_TIMER;
			r->stack_hash = stack;
		}
		ordinary(&t, MARK_OPTIMIZER);
	}
	assert_true(worst(s, "Waiting for a lock of SQLite's database in work (train.py:30)") >=
		    (int)SEVERITY_MEDIUM);
	worst(s, "whose that is is not recorded");
	sample(s, WORKER, WORKER, LEDGER_T0 + (int64_t)MS(100), other);
	worst(s, "the only other process seen to use SQLite is");
	sample(s, WORKER + 1, WORKER + 1, LEDGER_T0 + (int64_t)MS(200), other);
	worst(s, "whose that is is not recorded");
}

/* Every few steps, without a rule, one is longer: on the host, and on the GPU by @gpu_ms. */
static void mixture(struct ledger_scene *s, uint64_t gpu_ms)
{
	static const int gaps[] = {9, 12, 7, 15, 8, 11};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/serve.py", 25, NULL);
	int next = 3;

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, MARK_TICK);
		if (i == next) {
			next += gaps[(size_t)i % ARRAY_SIZE(gaps)];
			sample(s, JOB, MAIN, t.at + 1, stack);
			spend(&t, LEDGER_RUN, MS(15));
			spend(&t, LEDGER_GPU_WAIT, MS(gpu_ms));
		}
		mark(&t, MARK_OPTIMIZER);
	}
}

static void test_host_and_gpu_together_are_the_work(void **state)
{
	SCENE;

	mixture(s, 14);
	assert_true(worst(s, "") <= (int)SEVERITY_LOW);
}

static void test_the_host_alone_is_not(void **state)
{
	SCENE;

	mixture(s, 0);
	assert_int_equal(worst(s, "serve.py:25"), SEVERITY_MEDIUM);
}

/* Steps in which the GPU is waited for along a wave of 8 to 48 ms, five times; or it is one of these two. */
static void waves(struct ledger_scene *s, bool gradual, enum wire_mark end)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < STEPS; i++) {
		int part = i % 32 < 16 ? i % 32 : 31 - i % 32; /* 0 to 15 and back */

		if (!gradual)
			part = part < 8 ? 0 : 15;
		spend(&t, LEDGER_RUN, MS(2));
		spend(&t, LEDGER_GPU_WAIT, MS(8) + MS(40) / 15 * (uint64_t)part);
		t.row.launches = t.row.waits = 1;
		mark(&t, end);
	}
}

static void test_work_that_comes_and_goes(void **state)
{
	SCENE;

	waves(s, true, MARK_OPTIMIZER);
	assert_true(worst(s, "") <= (int)SEVERITY_LOW);
}

static void test_a_state_that_comes_and_goes(void **state)
{
	SCENE;

	waves(s, false, MARK_OPTIMIZER);
	assert_int_equal(worst(s, "Cause unknown: the GPU takes longer"), SEVERITY_MEDIUM);
}

static void test_models_in_turn(void **state)
{
	SCENE;

	waves(s, false, MARK_GRAPH);
	assert_true(worst(s, "") <= (int)SEVERITY_LOW);
}

static void calls_framework(struct ledger_scene *s, uint64_t stack)
{
	s->frames[stack - 1][s->made[stack - 1].count++] = s->frames[stack - 1][0];
	s->frames[stack - 1][0] =
		(struct stack_frame){.py_file = "/venv/torch/nn/modules/module.py",
			.py_func = "_call_impl",
			.py_line = 1};
}

/* Episodes of 10 to 120 moves (@apart: some 12 or some 110), each of which runs for a while and waits for the GPU; or they run at once, and then
 * wait as often as ever. */
static void episodes(struct ledger_scene *s, bool moves, uint64_t gpu_us, bool apart)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/agent.py", 34, NULL);
	uint32_t seed = 9;

	calls_framework(s, stack); /* as all host code of the loop does */
	for (int i = 0; i < STEPS; i++) {
		uint64_t count = 10 + (seed >> 8) % 111;

		if (apart)
			count = (seed >> 8) % 3 ? 10 + (seed >> 12) % 5 : 100 + (seed >> 12) % 21;

		seed = seed * 1664525u + 1013904223u;
		sample(s, JOB, MAIN, t.at + 1, stack);
		spend(&t, LEDGER_RUN, US(200) * count);
		spend(&t, LEDGER_LAUNCH, US(3) * count);
		spend(&t, LEDGER_GPU_WAIT, US(gpu_us) * count);
		t.row.waits = moves ? (uint32_t)count : 60;
		mark(&t, MARK_OPTIMIZER);
	}
}

static void test_more_of_the_same_is_the_work(void **state)
{
	SCENE;

	episodes(s, true, 5, false);
	assert_true(worst(s, "") <= (int)SEVERITY_LOW);
}

static void test_longer_without_more_work_is_not(void **state)
{
	SCENE;

	episodes(s, false, 5, true);
	assert_int_equal(worst(s, "agent.py:34"), SEVERITY_HIGH);
}

static void test_host_and_gpu_of_all_lengths_are_the_work(void **state)
{
	SCENE;

	episodes(s, false, 150, false);
	assert_true(worst(s, "") <= (int)SEVERITY_LOW);
}

static void test_a_pause_on_purpose(void **state)
{
	SCENE;

	sleeping(s, 1500, 40, 0);
	assert_int_equal(worst(s, ""), -1);
}

/* Of what recurs within a run of steps it is not known that it is meant. */
static void test_a_sleep_every_few_steps_is_no_pause(void **state)
{
	SCENE;

	sleeping(s, 1500, 10, 0);
	assert_int_equal(worst(s, "train.py:25"), SEVERITY_HIGH);
}

static void test_a_short_sleep_is_no_pause(void **state)
{
	SCENE;

	sleeping(s, 300, 40, 0);
	assert_int_equal(worst(s, "train.py:25"), SEVERITY_MEDIUM);
}

/* Every so many steps 300 ms of host code, below @library. */
static void rebuilding(struct ledger_scene *s, const char *library, int every)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/trial.py", 10, NULL);
	struct stack_frame *frames = s->frames[stack - 1];

	frames[s->made[stack - 1].count++] = frames[0];
	frames[0] = (struct stack_frame){
		.ip = 1, .py_file = library, .py_func = "Linear.__init__", .py_line = 112};
	for (int i = 0; i < STEPS; i++) {
		for (int k = 0; i % every == every - 1 && k < 30; k++) {
			sample(s, JOB, MAIN, t.at + 1, stack);
			spend(&t, LEDGER_RUN, MS(10));
			mark(&t, MARK_TICK);
		}
		ordinary(&t, MARK_OPTIMIZER);
	}
}

static void test_a_model_built_between_runs(void **state)
{
	SCENE;

	rebuilding(s, "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 40);
	assert_int_equal(worst(s, ""), -1);
}

static void test_other_code_between_runs(void **state)
{
	SCENE;

	rebuilding(s, "/usr/lib/python3/dist-packages/torch/nn/functional.py", 40);
	assert_int_equal(worst(s, "trial.py:10"), SEVERITY_MEDIUM);
}

static void test_a_model_built_every_few_steps(void **state)
{
	SCENE;

	rebuilding(s, "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 4);
	assert_int_equal(worst(s, "trial.py:10"), SEVERITY_HIGH);
}

/* The GPU is waited for once in 16 steps; in @slow such groups one step has 300 ms of host code. */
static int groups(int slow)
{
	SCENE;
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/train.py", 25, NULL);

	for (int i = 0; i < 40 * 16; i++) {
		for (int k = 0; i % 64 == 40 && i < slow * 64 && k < 30; k++) {
			sample(s, JOB, MAIN, t.at + 1, stack);
			spend(&t, LEDGER_RUN, MS(10));
			mark(&t, MARK_TICK);
		}
		spend(&t, LEDGER_RUN, MS(2));
		if (i % 16 == 15)
			spend(&t, LEDGER_GPU_WAIT, MS(80));
		mark(&t, MARK_WAIT);
		mark(&t, MARK_OPTIMIZER);
	}
	return worst(s, "train.py:25");
}

/* Sixteen steps that are taken together were slow once, not sixteen times. */
static void test_steps_taken_together_are_seen_once(void **state)
{
	assert_int_equal(groups(1), SEVERITY_LOW);
	assert_int_equal(groups(10), SEVERITY_MEDIUM);
}

static void test_sleep_in_every_step(void **state)
{
	SCENE;

	sleeping(s, 15, 1, STEPS / 2);
	assert_int_equal(worst(s, "train.py:25"), SEVERITY_HIGH);
}

/* Graphs; from half of them on, or now and then, the next waits in @native for process @pid, which sleeps
 * meanwhile: followed or not. */
static void waiting(struct ledger_scene *s, const char *native, bool followed, bool rarely)
{
	static const int gaps[] = {9, 4, 7, 15, 5, 11};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread other = thread_at(s, WORKER, WORKER, "shipper", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/serve.py", 29, native);
	int next = rarely ? 3 : STEPS / 2;

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, MARK_GRAPH);
		if (i < next)
			continue;
		next += rarely ? gaps[(size_t)i % ARRAY_SIZE(gaps)] : 1;
		if (followed) {
			stay(&other, LEDGER_SLEEP, (uint64_t)(t.at - other.at) + MS(15), 0, 0, 0);
			spend(&other, LEDGER_RUN, US(1));
		}
		stay(&t, LEDGER_PIPE, MS(15), 0, WORKER, WORKER)->stack_hash = stack;
	}
	if (followed)
		mark(&other, MARK_STOP);
}

static void test_output_that_nobody_takes(void **state)
{
	SCENE;

	waiting(s, "write", true, false);
	assert_int_equal(worst(s, "shipper (pid 200)"), SEVERITY_HIGH);
}

static void test_input_of_a_child(void **state)
{
	SCENE;

	waiting(s, "read", true, false);
	assert_int_equal(worst(s, "serve.py:29"), SEVERITY_HIGH);
}

static void test_input_of_a_stranger(void **state)
{
	SCENE;

	waiting(s, "read", false, false);
	assert_int_equal(worst(s, "t200 (pid 200)"), SEVERITY_HIGH);
}

static void test_requests_that_come_now_and_then(void **state)
{
	SCENE;

	waiting(s, "read", false, true);
	assert_int_equal(worst(s, ""), -1);
}

/* A process behind a socket that waits itself may be a client: until it asks there is nothing to do. One that works, or is
 * behind a pipe, or does not read what it is sent is none. */
static void test_clients_of_its_own(void **state)
{
	SCENE;
	struct step_account a = {.origin = STEP_BY_WAIT, .entry_count = 1};
	struct account_entry *lead = &a.entries[0];
	const struct delay d = {.kind = DELAY_BY_PROCESS, .lead = lead};
	uint64_t here = line_stack(s, "/home/u/serve.py", 14, "recv");
	uint64_t output = line_stack(s, "/home/u/serve.py", 29, "__GI___send");
	struct recording rec = ledger_recording(s);

	*lead = (struct account_entry){.line = ACCOUNT_NETWORK,
		.owner = OWNER_PROCESS,
		.pid = WORKER,
		.stack_hash = here,
		.wait_hash = here};
	assert_true(delay_is_idle(&rec, &a, &d));
	lead->wait_hash = output;
	assert_false(delay_is_idle(&rec, &a, &d));
	lead->wait_hash = here;
	lead->line = ACCOUNT_ASLEEP;
	assert_false(delay_is_idle(&rec, &a, &d));
	lead->line = ACCOUNT_HOST;
	assert_false(delay_is_idle(&rec, &a, &d));
}

/* A loop that does not train sleeps in the second half of its steps: it has something to do all the time, unless its steps
 * are as long as somebody makes them wait. */
static void test_a_loop_that_sleeps_from_then_on(void **state)
{
	struct step_mark marks[60] = {0};
	struct account_bar bars[10] = {0};
	struct account_entry lead = {.line = ACCOUNT_ASLEEP, .by_clock = true};
	struct step_account a = {.origin = STEP_BY_WAIT,
		.steps = ARRAY_SIZE(marks),
		.ordinary_step_ns = MS(40),
		.slow_step_ns = MS(90),
		.bars = bars,
		.bar_count = ARRAY_SIZE(bars),
		.marks = marks,
		.mark_count = ARRAY_SIZE(marks)};
	const struct delay d = {.kind = DELAY_BY_ASLEEP, .lead = &lead};
	const struct recording rec = {0};

	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		bars[i] = (struct account_bar){.steps = 6, .slow_steps = i < 5 ? 0 : 6};
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		marks[i] = (struct step_mark){.dur_ns = MS(i < 30 ? 40 : 90), .is_slow = i >= 30};
	assert_false(delay_is_idle(&rec, &a, &d));
	a.slow_step_ns = 0; /* both kinds taken together: their mean is the usual length */
	a.ordinary_step_ns = MS(60);
	assert_false(delay_is_idle(&rec, &a, &d));
	a.slow_step_ns = MS(90);
	a.ordinary_step_ns = MS(40);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		marks[i].dur_ns = MS(i % 3 ? 40 : 400);
	assert_true(delay_is_idle(&rec, &a, &d));
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		marks[i].dur_ns = MS(40);
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		bars[i].slow_steps = i % 2;
	assert_true(delay_is_idle(&rec, &a, &d)); /* now and then */
	a.total_ns[ACCOUNT_COLLECTIVE] = MS(1);   /* and keeps other ranks waiting */
	assert_false(delay_is_idle(&rec, &a, &d));
}

/* Its own threads have the CPUs now and then, all along: that is how it is built, and not so if another program has them, or
 * since a moment. */
static void test_threads_of_its_own(void **state)
{
	struct account_bar bars[10] = {0};
	struct account_entry lead = {.line = ACCOUNT_CPU};
	struct step_account a = {
		.pid = 7, .steps = 1000, .bars = bars, .bar_count = ARRAY_SIZE(bars)};
	struct delay d = {.kind = DELAY_BY_CPU,
		.lead = &lead,
		.end = {.resource = RESOURCE_CPU_OWN, .pid = 7}};

	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		bars[i] = (struct account_bar){.steps = 100, .slow_steps = 20};
	assert_true(delay_is_routine(&a, &d));
	d.end.resource = RESOURCE_CPU_PROGRAM;
	assert_false(delay_is_routine(&a, &d));
	d.end.resource = RESOURCE_CPU_OWN;
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		bars[i].slow_steps = i < 5 ? 0 : 100;
	assert_false(delay_is_routine(&a, &d));
}

/* Steps of two networks: those of the first wait for autograd's thread in a fifth of their time, those of
 * the second for the GPU, @gpu_ms, which has the work of all. */
static void two_networks(struct ledger_scene *s, uint64_t gpu_ms)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/train.py", 40, "pthread_cond_wait");
	struct ledger_row *waited;

	for (int i = 0; i < 5 * STEPS; i++) {
		mark(&t, MARK_BACKWARD);
		spend(&t, LEDGER_RUN, MS(4));
		waited = stay(&t, LEDGER_LOCK, MS(1), 0, 0, 0);
		waited->stack_hash = stack;
		waited->waker = WAKER_NOBODY;
		if (i % 5 == 4) {
			mark(&t, MARK_BACKWARD);
			spend(&t, LEDGER_GPU_WAIT, MS(gpu_ms));
			mark(&t, MARK_WAIT);
		}
		mark(&t, MARK_OPTIMIZER);
	}
}

static void test_what_the_host_does_meanwhile_is_no_waste(void **state)
{
	SCENE;

	two_networks(s, 30);
	assert_int_equal(worst(s, ""), -1);
}

static void test_waste_of_all_steps_is(void **state)
{
	SCENE;

	two_networks(s, 1);
	assert_int_equal(worst(s, "nother thread"), SEVERITY_MEDIUM);
}

/* What a framework waits for in its own code is how it works. */
static void test_a_framework_waits_for_its_own_threads(void **state)
{
	SCENE;

	two_networks(s, 1);
	s->frames[0][2] = s->frames[0][1];
	s->frames[0][1] =
		(struct stack_frame){.py_file = "/usr/lib/python3/torch/autograd/graph.py",
			.py_func = "_engine_run_backward",
			.py_line = 1};
	s->made[0].count = 3;
	assert_int_equal(worst(s, ""), -1);
}

/* Steps of a loop: @host_ms of the program's own code, @torch_ms of the framework's, then the GPU for @gpu_ms. */
static void own_code(struct ledger_scene *s, uint64_t host_ms, uint64_t torch_ms, uint64_t gpu_ms)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t own = line_stack(s, "/home/u/train.py", 31, NULL);
	uint64_t drives = line_stack(s, "/home/u/train.py", 77, NULL);

	calls_framework(s, drives);
	for (int i = 0; i < STEPS; i++) {
		sample(s, JOB, MAIN, t.at + 1, own);
		spend(&t, LEDGER_RUN, MS(host_ms));
		mark(&t, MARK_TICK);
		sample(s, JOB, MAIN, t.at + 1, drives);
		spend(&t, LEDGER_RUN, MS(torch_ms));
		mark(&t, MARK_TICK);
		spend(&t, LEDGER_GPU_WAIT, MS(gpu_ms));
		mark(&t, MARK_WAIT);
		mark(&t, MARK_OPTIMIZER);
	}
}

/* 45 % of a step: the GPU has nothing to do meanwhile, or as much as the host: then it may be how the program is built. */
static void test_host_code_where_the_gpu_is_never_waited_for(void **state)
{
	SCENE;

	own_code(s, 45, 54, 1);
	assert_int_equal(worst(s, "Host code in work (train.py:"), SEVERITY_HIGH);
}

static void test_host_code_beside_a_busy_gpu(void **state)
{
	SCENE;

	own_code(s, 45, 5, 50);
	assert_int_equal(worst(s, "Host code in work (train.py:"), SEVERITY_LOW);
}

/* Every program has some. */
static void test_some_host_code(void **state)
{
	SCENE;

	own_code(s, 25, 5, 70);
	assert_int_equal(worst(s, ""), -1);
}

/* Where the launching thread runs ahead of the GPU, as after each pause, few units wait for it, or it is waited for once
 * in a while all the time; where nearly all do not wait and some come to, the GPU takes longer. */
static void test_units_that_run_ahead(void **state)
{
	SCENE;
	struct recording rec = ledger_recording(s);
	struct gpu_change gpu = {.reason = GPU_BY_NOTHING};
	struct account_bar bars[10];
	struct step_account a = {.origin = STEP_BY_OPTIMIZER,
		.steps = 100,
		.ordinary_steps = 20,
		.slow_steps = 80,
		.ordinary_step_ns = MS(2),
		.slow_step_ns = MS(16),
		.ordinary_waits = 1,
		.lost_ns = 80 * MS(14),
		.slow_ns[ACCOUNT_GPU] = MS(14),
		.bars = bars,
		.bar_count = ARRAY_SIZE(bars)};
	struct delay d = {.kind = DELAY_BY_GPU, .slow_ns = MS(14), .share = 1};

	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		bars[i] = (struct account_bar){.steps = 10, .slow_steps = i < 2 ? 0 : 10};
	assert_true(delay_is_harmless(&rec, &a, &gpu, &d));
	a.ordinary_ns[ACCOUNT_GPU] = MS(1);
	assert_false(delay_is_harmless(&rec, &a, &gpu, &d));
	a.ordinary_ns[ACCOUNT_GPU] = 0;
	a.ordinary_steps = 80;
	a.slow_steps = 20;
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		bars[i].slow_steps = 2;
	assert_true(delay_is_harmless(&rec, &a, &gpu, &d));
	for (size_t i = 0; i < ARRAY_SIZE(bars); i++)
		bars[i].slow_steps = i < 8 ? 0 : 10;
	assert_false(delay_is_harmless(&rec, &a, &gpu, &d));
}

/* A server's requests: @first_ms in one function and @second_ms in another, then the GPU for 1 ms. */
static void requests(struct ledger_scene *s, uint64_t first_ms, uint64_t second_ms)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t one = line_stack(s, "/home/u/serve.py", 31, NULL);
	uint64_t two = line_stack(s, "/home/u/serve.py", 77, NULL);

	s->frames[two - 1][0].py_func = "answer";
	for (int i = 0; i < STEPS; i++) {
		spend(&t, LEDGER_SOCKET, MS(1));
		sample(s, JOB, MAIN, t.at + 1, one);
		spend(&t, LEDGER_RUN, MS(first_ms));
		mark(&t, MARK_TICK);
		sample(s, JOB, MAIN, t.at + 1, two);
		spend(&t, LEDGER_RUN, MS(second_ms));
		mark(&t, MARK_TICK);
		spend(&t, LEDGER_GPU_WAIT, MS(1));
		mark(&t, MARK_GRAPH);
	}
}

static void test_a_server_has_work_of_its_own(void **state)
{
	SCENE;

	requests(s, 5, 5);
	assert_int_equal(worst(s, ""), -1);
}

static void test_a_server_that_does_nothing_else(void **state)
{
	SCENE;

	requests(s, 40, 1);
	assert_true(worst(s, "serve.py:31") >= SEVERITY_MEDIUM);
}

/* What a library does for a server is told from half of its time on, if it is never idle. One that always has something to
 * do is known by its event loop. */
static void test_a_server_whose_requests_wait(void **state)
{
	for (int idle_ms = 0; idle_ms <= 30; idle_ms += 30) {
		SCENE;
		uint64_t at = line_stack(s, "/home/u/serve.py", 31, NULL);
		struct step_account a = {.origin = STEP_BY_WAIT,
			.entry_count = 1,
			.entries = {{.line = ACCOUNT_HOST, .stack_hash = at, .slow_ns = MS(60)}},
			.ordinary_step_ns = MS(100),
			.ordinary_ns[ACCOUNT_HOST] = MS(60),
			.ordinary_ns[ACCOUNT_GPU] = MS((uint64_t)(40 - idle_ms)),
			.ordinary_ns[ACCOUNT_NETWORK] = MS((uint64_t)idle_ms)};
		struct delay d = {.kind = DELAY_BY_HOST,
			.lead = &a.entries[0],
			.share = 0.6,
			.end = {.resource = RESOURCE_WORK, .stack_hash = at, .share = 1}};
		struct stack_frame *frames = s->frames[at - 1];
		struct recording rec;

		frames[1] = (struct stack_frame){
			.py_file = "/usr/lib/python3.12/asyncio/base_events.py",
			.py_func = "_run_once"};
		s->made[at - 1].count = 2;
		rec = ledger_recording(s);
		assert_int_equal(delay_is_waste(&rec, &a, &d), idle_ms == 0);
		d.share = 0.3; /* of a job's step it would be told */
		assert_false(delay_is_waste(&rec, &a, &d));
		frames[1].py_file = "/home/u/main.py";
		assert_int_equal(delay_is_waste(&rec, &a, &d), idle_ms == 0);
	}
}

/* A process that works for the program for 40 % of each step is how it is built; an acknowledgement that comes late, or a lock
 * that it holds, is nobody's work. */
static void test_what_keeps_who_works_for_it(void **state)
{
	struct step_account a = {.origin = STEP_BY_WAIT,
		.is_clocked = true,
		.entry_count = 1,
		.entries = {{.line = ACCOUNT_NETWORK, .owner = OWNER_PROCESS, .pid = WORKER}},
		.ordinary_step_ns = MS(44)};
	struct delay d = {.kind = DELAY_BY_PROCESS, .lead = &a.entries[0], .share = 0.4};
	const struct recording rec = {0};

	d.end.resource = RESOURCE_PROCESS;
	assert_false(delay_is_waste(&rec, &a, &d));
	d.end.resource = RESOURCE_DELAYED_ACK;
	assert_true(delay_is_waste(&rec, &a, &d));
	d.end.resource = RESOURCE_FILE_LOCK;
	assert_true(delay_is_waste(&rec, &a, &d));
	d.share = 0.1;
	assert_false(delay_is_waste(&rec, &a, &d));
}

/* A loop naps after its work, or what it calls does before it has what it is asked for. */
static void test_naps_of_a_loop(void **state)
{
	SCENE;
	uint64_t loop = line_stack(s, "/home/u/serve.py", 10, "clock_nanosleep");
	uint64_t callee = line_stack(s, "/home/u/serve.py", 20, "clock_nanosleep");
	uint64_t work = line_stack(s, "/home/u/serve.py", 9, "cudaStreamSynchronize");
	struct step_account a = {.origin = STEP_BY_WAIT, .entry_count = 2, .steps = STEPS};
	struct delay d = {.kind = DELAY_BY_ASLEEP, .lead = &a.entries[0]};
	struct recording rec;

	for (size_t k = 0; k < s->made[callee - 1].count; k++)
		if (s->frames[callee - 1][k].py_func)
			s->frames[callee - 1][k].py_func = "fetch";
	rec = ledger_recording(s);
	a.entries[0] = (struct account_entry){
		.line = ACCOUNT_ASLEEP, .by_clock = true, .stack_hash = loop};
	a.entries[1] = (struct account_entry){.line = ACCOUNT_GPU, .stack_hash = work};
	assert_true(delay_is_pause(&rec, &a, &d));
	a.entries[0].stack_hash = callee;
	assert_false(delay_is_pause(&rec, &a, &d));
	a.entries[0].stack_hash = loop;
	a.origin = STEP_BY_OPTIMIZER; /* nobody trains more slowly on purpose */
	assert_false(delay_is_pause(&rec, &a, &d));
}

/* One line is nearly all of the host's code, and takes twice as long: as the rest does now and then, or while CPUs are
 * waited for; or every so many steps, little by little, or it alone. */
static void test_a_slower_cpu_is_no_line(void **state)
{
	const struct recording rec = {0};
	const struct gpu_change gpu = {.reason = GPU_BY_NOTHING};
	struct step_account a = {.origin = STEP_BY_WAIT,
		.steps = STEPS,
		.ordinary_steps = STEPS / 2,
		.slow_steps = STEPS / 2,
		.ordinary_step_ns = MS(15),
		.slow_step_ns = MS(19),
		.is_varied = true,
		.entry_count = 1};
	struct delay d = {.kind = DELAY_BY_HOST, .lead = &a.entries[0]};

	a.ordinary_ns[ACCOUNT_HOST] = MS(4);
	a.slow_ns[ACCOUNT_HOST] = MS(8);
	a.entries[0] = (struct account_entry){
		.line = ACCOUNT_HOST, .stack_hash = 1, .ordinary_ns = MS(3), .slow_ns = MS(6)};
	assert_true(delay_is_harmless(&rec, &a, &gpu, &d));
	a.is_varied = false;
	assert_true(delay_is_harmless(&rec, &a, &gpu, &d));
	a.period_steps = 2;
	assert_false(delay_is_harmless(&rec, &a, &gpu, &d));
	a.slow_ns[ACCOUNT_CPU] = MS(1);
	assert_true(delay_is_harmless(&rec, &a, &gpu, &d));
	a.is_drift = true;
	assert_false(delay_is_harmless(&rec, &a, &gpu, &d));
	a.is_drift = false;
	a.entries[0].ordinary_ns = MS(2);
	assert_false(delay_is_harmless(&rec, &a, &gpu, &d));
}

/* What is called the cost of tracing is told as such: by who had the CPU for longest. */
static void test_the_tracer_by_its_program(void **state)
{
	struct account_entry e = {.line = ACCOUNT_CPU, .culprit = "cc1"};
	struct delay d = {.kind = DELAY_BY_CPU, .lead = &e, .end = {.who = "ingero"}};

	assert_true(delay_is_of_tracer(&d));
	snprintf(d.end.who, sizeof(d.end.who), "cc1");
	snprintf(e.culprit, sizeof(e.culprit), "ingero");
	assert_false(delay_is_of_tracer(&d));
	d.end.who[0] = 0;
	assert_true(delay_is_of_tracer(&d));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_polls_that_wait_too_long),
		cmocka_unit_test(test_a_locked_database),
		cmocka_unit_test(test_host_and_gpu_together_are_the_work),
		cmocka_unit_test(test_the_host_alone_is_not),
		cmocka_unit_test(test_work_that_comes_and_goes),
		cmocka_unit_test(test_a_state_that_comes_and_goes),
		cmocka_unit_test(test_models_in_turn),
		cmocka_unit_test(test_more_of_the_same_is_the_work),
		cmocka_unit_test(test_longer_without_more_work_is_not),
		cmocka_unit_test(test_host_and_gpu_of_all_lengths_are_the_work),
		cmocka_unit_test(test_a_pause_on_purpose),
		cmocka_unit_test(test_a_sleep_every_few_steps_is_no_pause),
		cmocka_unit_test(test_a_short_sleep_is_no_pause),
		cmocka_unit_test(test_a_model_built_between_runs),
		cmocka_unit_test(test_other_code_between_runs),
		cmocka_unit_test(test_a_model_built_every_few_steps),
		cmocka_unit_test(test_steps_taken_together_are_seen_once),
		cmocka_unit_test(test_sleep_in_every_step),
		cmocka_unit_test(test_output_that_nobody_takes),
		cmocka_unit_test(test_input_of_a_child),
		cmocka_unit_test(test_input_of_a_stranger),
		cmocka_unit_test(test_requests_that_come_now_and_then),
		cmocka_unit_test(test_clients_of_its_own),
		cmocka_unit_test(test_a_loop_that_sleeps_from_then_on),
		cmocka_unit_test(test_threads_of_its_own),
		cmocka_unit_test(test_what_the_host_does_meanwhile_is_no_waste),
		cmocka_unit_test(test_host_code_where_the_gpu_is_never_waited_for),
		cmocka_unit_test(test_host_code_beside_a_busy_gpu),
		cmocka_unit_test(test_some_host_code),
		cmocka_unit_test(test_waste_of_all_steps_is),
		cmocka_unit_test(test_a_framework_waits_for_its_own_threads),
		cmocka_unit_test(test_a_server_has_work_of_its_own),
		cmocka_unit_test(test_units_that_run_ahead),
		cmocka_unit_test(test_a_server_that_does_nothing_else),
		cmocka_unit_test(test_a_server_whose_requests_wait),
		cmocka_unit_test(test_what_keeps_who_works_for_it),
		cmocka_unit_test(test_naps_of_a_loop),
		cmocka_unit_test(test_a_slower_cpu_is_no_line),
		cmocka_unit_test(test_the_tracer_by_its_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
