/* SPDX-License-Identifier: Apache-2.0 */
/* test_time_finding.c - what is said about lost time: the problem, its cause and place, how bad, and
 * nothing where nothing is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "identity.h"
#include "diagnose/compose/diagnose.h"
#include "ledger_fixture.h"
#include "model/problem.h"

#define SCENE _cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s))
#define STEPS 120

struct answer {
	struct incident *list;
	size_t count;
};

static void answer_done(struct answer *a)
{
	free(a->list);
}
#define ANSWER _cleanup_(answer_done) struct answer a

static struct answer explain(struct recording rec)
{
	struct answer a = {0};

	assert_int_equal(diagnose_run(&rec, &a.list, &a.count), 0);
	for (size_t i = 0; getenv("INGERO_SHOW") && i < a.count; i++)
		print_message("%s %s: %s\n", severity_name(a.list[i].severity),
			problem_row(a.list[i].problem)->id, a.list[i].summary);
	identity_check(&rec, a.list, a.count);
	return a;
}

/* The one incident there is, of @problem and @severity; its texts hold @text. */
static const struct incident *only(
	const struct answer *a, enum problem problem, enum severity severity, const char *text)
{
	assert_int_equal(a->count, 1);
	assert_int_equal(a->list[0].problem, problem);
	assert_int_equal(a->list[0].severity, severity);
	if (!strstr(a->list[0].summary, text) && !strstr(a->list[0].root_cause, text))
		fail_msg("\"%s\" is neither in \"%s\" nor in \"%s\"", text, a->list[0].summary,
			a->list[0].root_cause);
	return &a->list[0];
}

/* 20 ms: 4 of Python at its usual line, 5 of launches, 11 of waiting for the GPU. */
static void ordinary(struct ledger_thread *t, uint64_t stack)
{
	mark(t, MARK_OPTIMIZER);
	sample(t->s, JOB, MAIN, t->at + 1, stack);
	spend(t, LEDGER_RUN, MS(4));
	spend(t, LEDGER_LAUNCH, MS(5));
	spend(t, LEDGER_GPU_WAIT, MS(11));
	mark(t, MARK_WAIT);
}

static struct ledger_thread job(struct ledger_scene *s, uint64_t *ret_stack)
{
	*ret_stack = line_stack(s, "/home/u/train.py", 10, NULL);
	return thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
}

static void test_nothing_is_wrong(void **state)
{
	SCENE;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++)
		ordinary(&t, usual);
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	assert_int_equal(a.count, 0);
}

static void test_new_host_code(void **state)
{
	SCENE;
	const struct incident *inc;
	uint64_t usual, fault;
	struct ledger_thread t = job(s, &usual);

	fault = line_stack(s, "/home/u/train.py", 71, NULL);
	s->frames[fault - 1][s->made[fault - 1].count++] = /* how this process began */
		(struct stack_frame){.py_file = "/usr/lib/python3.12/multiprocessing/popen_fork.py",
			.py_func = "Popen._launch"};
	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i < STEPS / 2)
			continue;
		sample(s, JOB, MAIN, t.at + 1, fault);
		spend(&t, LEDGER_RUN, MS(10));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	inc = only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH, "train.py:71");
	assert_non_null(strstr(inc->fixes[0], "out of the thread that feeds the GPU"));
	assert_int_equal(inc->excess_ns, STEPS / 2 * MS(10));
	assert_int_equal(inc->stacks[0].hash, fault);
	assert_true(inc->since.ns > 0);
}

/* The same beside a GPU that is never idle: steps take turns in being late, and none of it is lost. */
static void test_host_code_that_the_gpu_hides(void **state)
{
	SCENE;
	struct recording rec;
	uint64_t usual, late;
	struct ledger_thread t = job(s, &usual);

	late = line_stack(s, "/home/u/train.py", 71, NULL);
	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i % 6)
			continue;
		sample(s, JOB, MAIN, t.at + 1, late);
		spend(&t, LEDGER_RUN, MS(60)); /* a third of all time */
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	rec = ledger_recording(s);
	for (int busy = 0; busy <= 100; busy += 50) {
		struct gpu_sample gpus[10];

		for (int i = 0; i < 10; i++) {
			gpu_sample_init(&gpus[i]);
			gpus[i].time.ns = LEDGER_T0 + (t.at - LEDGER_T0) / 11 * (i + 1);
			gpus[i].util_gpu_pct = busy;
		}
		rec.gpus = gpus;
		rec.gpu_count = 10;
		ANSWER = explain(rec);
		only(&a, PROBLEM_GOODPUT, busy == 100 ? SEVERITY_LOW : SEVERITY_HIGH,
			"train.py:71");
	}
}

/* Half a minute of a fault is 0.8 % of what 25 minutes of steps take, and an answer with its times; half a second is
 * none. */
static void test_a_fault_that_is_over(void **state)
{
	for (int with = 0; with < 2; with++) {
		SCENE;
		uint64_t usual, fault;
		struct ledger_thread t = job(s, &usual);
		int64_t begin = 0, end = 0;

		fault = line_stack(s, "/home/u/train.py", 71, NULL);
		for (int i = 0; i < 1500; i++) {
			mark(&t, MARK_OPTIMIZER);
			sample(s, JOB, MAIN, t.at + 1, usual);
			spend(&t, LEDGER_RUN, MS(200));
			spend(&t, LEDGER_GPU_WAIT, MS(800));
			mark(&t, MARK_WAIT);
			if (i < 700 || i >= 720)
				continue;
			begin = begin ? begin : t.at;
			sample(s, JOB, MAIN, t.at + 1, fault);
			spend(&t, LEDGER_RUN, with ? MS(600) : MS(20));
			end = t.at;
		}
		mark(&t, MARK_OPTIMIZER);
		ANSWER = explain(ledger_recording(s));
		if (!with) {
			assert_int_equal(a.count, 0);
			continue;
		}
		only(&a, PROBLEM_GOODPUT, SEVERITY_MEDIUM, "train.py:71");
		assert_in_range(a.list[0].first.ns, begin - 2 * (int64_t)NS_PER_S, begin);
		assert_in_range(a.list[0].last.ns, end - 2 * (int64_t)NS_PER_S, end);
	}
}

/* Whoever stops it is named, not the innocent line that it was stopped at. */
static void test_stopped_by_another(void **state)
{
	SCENE;
	const struct incident *inc;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i >= STEPS / 2)
			stay(&t, LEDGER_STOPPED, MS(17), 0, 900, 901)->stack_hash = usual;
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	inc = only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH, "stopped by t901 (pid 900)");
	assert_null(strstr(inc->summary, "train.py:"));
	assert_int_equal(inc->stack_count, 0);
}

/* A third longer at every line: the CPU is slower, no line is. */
static void test_evenly_slower(void **state)
{
	SCENE;
	uint64_t lines[4];
	struct ledger_thread t = job(s, &lines[0]);

	for (uint32_t i = 1; i < 4; i++)
		lines[i] = line_stack(s, "/home/u/train.py", 10 + i, NULL);
	for (int i = 0; i < STEPS; i++) {
		uint64_t each = i < STEPS / 2 ? MS(4) : US(7200);

		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_GPU_WAIT, MS(40));
		mark(&t, MARK_WAIT);
		for (int k = 0; k < 4; k++) {
			sample(s, JOB, MAIN, t.at + 1, lines[k]);
			spend(&t, LEDGER_RUN, each);
			mark(&t, MARK_TICK);
		}
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_GOODPUT, SEVERITY_LOW, "Host code");
}

static void test_a_wait_for_the_disk_every_20_steps(void **state)
{
	SCENE;
	const struct incident *inc;
	uint64_t usual, save;
	struct ledger_thread t = job(s, &usual);

	save = line_stack(s, "/usr/lib/python3/dist-packages/torch/serialization.py", 900, NULL);
	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i % 20 == 10)
			stay(&t, LEDGER_DISK, MS(200), 0, 0, 0)->stack_hash = save;
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	inc = only(&a, PROBLEM_CHECKPOINT, SEVERITY_HIGH, "every 20th step");
	assert_int_equal(inc->period_steps, 20);
}

/* Every @every-th step from @from on takes @ms longer because it saves. */
static enum severity severity_of_saving(int from, int every, uint64_t ms)
{
	SCENE;
	uint64_t usual, save;
	struct ledger_thread t = job(s, &usual);

	save = line_stack(s, "/usr/lib/python3/dist-packages/torch/serialization.py", 900, NULL);
	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i >= from && i % every == every / 2)
			stay(&t, LEDGER_DISK, MS(ms), 0, 0, 0)->stack_hash = save;
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	assert_int_equal(a.count, 1);
	assert_int_equal(a.list[0].problem, PROBLEM_CHECKPOINT);
	return a.list[0].severity;
}

/* What a program does at its own rhythm from the beginning on is how it was written: 7 % of its time are no complaint, a
 * fifth is. What has come meanwhile is a difference. */
static void test_a_routine_of_its_own(void **state)
{
	assert_int_equal(severity_of_saving(0, 20, 30), SEVERITY_LOW);
	assert_int_equal(severity_of_saving(STEPS / 2, 10, 30), SEVERITY_MEDIUM);
	assert_int_equal(severity_of_saving(0, 20, 100), SEVERITY_MEDIUM);
}

/* An epoch ends when the loader is asked once more than it has batches: the step in which the next begins,
 * workers and all, is a step like others, and slow. */
static void test_short_epochs(void **state)
{
	SCENE;
	const struct incident *inc;
	uint64_t usual, fork;
	struct ledger_thread t = job(s, &usual);

	fork = line_stack(s, "/home/u/train.py", 30, NULL);
	s->frames[fork - 1][s->made[fork - 1].count++] = s->frames[fork - 1][0];
	s->frames[fork - 1][0] =
		(struct stack_frame){.py_file = "/usr/lib/python3.12/multiprocessing/popen_fork.py",
			.py_func = "Popen._launch"};
	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		for (int k = 0; k <= (i >= STEPS / 2 && i % 6 == 0); k++) {
			if (k)
				sample(s, JOB, MAIN, t.at + 1, fork);
			spend(&t, LEDGER_RUN, k ? MS(60) : US(10));
			mark(&t, MARK_LOADER);
		}
		spend(&t, LEDGER_RUN, US(10));
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	inc = only(&a, PROBLEM_GOODPUT, SEVERITY_MEDIUM, "train.py:30");
	assert_int_equal(inc->period_steps, 6);
	assert_in_range(inc->unit_ns - inc->fixed_ns, MS(55), MS(65)); /* what a fix is worth */
	assert_non_null(strstr(inc->fixes[0], "persistent_workers"));
}

static void cuda_call(struct ledger_thread *t, uint32_t op, uint64_t ns)
{
	t->s->events[t->s->event_count++] = (struct event){.source = SOURCE_CUDA,
		.op = (uint16_t)op,
		.pid = JOB,
		.tid = MAIN,
		.start.ns = t->at,
		.dur_ns = ns,
		.flags = op == CUDA_MEMCPY_ASYNC ? WIRE_AFTER_GAP : 0,
		.weight = 1};
}

/* Steps that are known by their waits alone. That the GPU idles while host code runs is true; the account
 * knows since when, and at which line. */
static void test_host_code_between_waits(void **state)
{
	SCENE;
	struct aggregate waits = {.bucket.ns = LEDGER_T0,
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.pid = JOB,
		.stored = STEPS,
		.sketch.count = STEPS};
	struct recording rec;
	uint64_t usual, fault;
	struct ledger_thread t = job(s, &usual);

	fault = line_stack(s, "/home/u/embed.py", 23, NULL);
	for (int i = 0; i < STEPS; i++) {
		uint64_t ms = i < STEPS / 2 ? 2 : 50;

		rival(s, MAIN, t.at, US(1), 900, "other"); /* stays are seen: none is long */
		sample(s, JOB, MAIN, t.at + 1, i < STEPS / 2 ? usual : fault);
		spend(&t, LEDGER_RUN, MS(ms));
		cuda_call(&t, CUDA_MEMCPY_ASYNC, US(20));
		spend(&t, LEDGER_COPY, US(20));
		cuda_call(&t, CUDA_STREAM_SYNC, MS(16));
		spend(&t, LEDGER_GPU_WAIT, MS(16));
		mark(&t, MARK_WAIT);
	}
	rec = ledger_recording(s);
	rec.aggregates = &waits;
	rec.aggregate_count = 1;
	ANSWER = explain(rec);
	only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH, "embed.py:23");
}

/* The GPU idles while host code runs, until launching takes longer than that did: what changed is told, not what no
 * longer is. */
static void test_what_changed_is_told(void **state)
{
	SCENE;
	struct aggregate waits = {.bucket.ns = LEDGER_T0,
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.pid = JOB,
		.stored = STEPS,
		.sketch.count = STEPS};
	struct recording rec;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		bool slow = i >= STEPS / 2;

		rival(s, MAIN, t.at, US(1), 900, "other"); /* stays are seen: none is long */
		sample(s, JOB, MAIN, t.at + 1, usual);
		spend(&t, LEDGER_RUN, slow ? US(100) : MS(29));
		cuda_call(&t, CUDA_MEMCPY_ASYNC, US(20));
		spend(&t, LEDGER_COPY, US(20));
		spend(&t, LEDGER_LAUNCH, slow ? MS(60) : US(50));
		cuda_call(&t, CUDA_STREAM_SYNC, MS(3));
		spend(&t, LEDGER_GPU_WAIT, MS(3));
		mark(&t, MARK_WAIT);
	}
	rec = ledger_recording(s);
	rec.aggregates = &waits;
	rec.aggregate_count = 1;
	ANSWER = explain(rec);
	only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH, "Launching kernels");
}

/* A wait after each tensor of a model that is copied to the GPU; then steps, which are not slow because they take
 * longer than that. */
static void test_uploads_are_no_steps(void **state)
{
	SCENE;
	struct aggregate waits = {.bucket.ns = LEDGER_T0,
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.pid = JOB,
		.stored = 2 * STEPS,
		.sketch.count = 2 * STEPS};
	struct recording rec;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < 2 * STEPS; i++) {
		bool is_upload = i < STEPS;

		rival(s, MAIN, t.at, US(1), 900, "other"); /* stays are seen: none is long */
		sample(s, JOB, MAIN, t.at + 1, usual);
		spend(&t, LEDGER_RUN, US(is_upload ? 300 : 900));
		if (!is_upload) {
			cuda_call(&t, CUDA_LAUNCH, MS(4));
			spend(&t, LEDGER_LAUNCH, MS(4));
		}
		cuda_call(&t, CUDA_MEMCPY_ASYNC, US(200));
		spend(&t, LEDGER_COPY, US(200));
		cuda_call(&t, CUDA_STREAM_SYNC, is_upload ? US(10) : MS(2));
		spend(&t, LEDGER_GPU_WAIT, is_upload ? US(10) : MS(2));
		mark(&t, MARK_WAIT);
	}
	rec = ledger_recording(s);
	rec.aggregates = &waits;
	rec.aggregate_count = 1;
	ANSWER = explain(rec);
	for (size_t i = 0; i < a.count; i++)
		assert_int_equal(a.list[i].severity, SEVERITY_LOW);
}

static void gpu_reading(struct ledger_scene *s, int64_t at, int64_t clock, int64_t util)
{
	struct gpu_sample *g = &s->gpus[s->gpu_count++];

	gpu_sample_init(g);
	g->time.ns = at;
	g->sm_clock_mhz = clock;
	g->util_gpu_pct = util;
	g->processes = 1;
}

/* The GPU is waited for twice as long; @clock and @bytes say why, or do not. */
static void slow_gpu_by(
	struct ledger_scene *s, int64_t clock, uint64_t bytes, uint64_t wait_ms, uint64_t slow_ms)
{
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		bool slow = i >= STEPS / 2;

		ordinary(&t, usual);
		t.row.copy_bytes = slow ? bytes : 1000000;
		spend(&t, LEDGER_GPU_WAIT, slow ? MS(slow_ms) : MS(wait_ms));
		mark(&t, MARK_WAIT);
		if (i % 10 == 5)
			gpu_reading(s, t.at, slow ? clock : 1980, 80);
	}
	mark(&t, MARK_OPTIMIZER);
}

static void slow_gpu(struct ledger_scene *s, int64_t clock, uint64_t bytes)
{
	slow_gpu_by(s, clock, bytes, 17, 40);
}

static void test_a_lower_clock(void **state)
{
	SCENE;

	slow_gpu(s, 345, 1000000);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_THROTTLE, SEVERITY_HIGH, "345 MHz instead of 1980");
}

static void test_more_work_is_no_fault(void **state)
{
	SCENE;

	slow_gpu(s, 1980, 2000000);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_GOODPUT, SEVERITY_LOW, "More GPU work");
}

/* A GPU at its power limit lowers its clock when it has more to do: by far less than the steps grow. */
static void test_more_work_at_the_power_limit(void **state)
{
	SCENE;

	slow_gpu(s, 1800, 2000000);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_GOODPUT, SEVERITY_LOW, "More GPU work");
}

static void test_a_lower_clock_that_explains_it(void **state)
{
	SCENE;

	slow_gpu(s, 345, 2000000);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_THROTTLE, SEVERITY_HIGH, "345 MHz instead of 1980");
}

static void test_a_slower_gpu_without_a_reason_is_said(void **state)
{
	SCENE;

	slow_gpu(s, 1980, 1000000);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_GOODPUT, SEVERITY_MEDIUM, "Cause unknown: the GPU takes longer");
}

static const struct kernel_use kernels[] = {
	{.pid = JOB,
		.function = 1,
		.first.ns = LEDGER_T0 + (int64_t)MS(1),
		.launches = 7000,
		.name = "void gemm<__nv_bfloat16>()"},
	{.pid = JOB,
		.function = 2,
		.first.ns = LEDGER_T0 + STEPS / 2 * (int64_t)MS(37) + (int64_t)MS(100),
		.launches = 2500,
		.name = "cutlass_80_simt_sgemm_128x256"},
};

/* Each step launches @kernel, by a row of its own. */
static void launch_rows(struct ledger_scene *s, uint64_t kernel, int64_t from, int64_t to)
{
	for (int64_t at = from; at < to; at += MS(20))
		s->events[s->event_count++] = (struct event){.start.ns = at,
			.pid = JOB,
			.tid = MAIN,
			.source = SOURCE_CUDA,
			.op = CUDA_LAUNCH,
			.arg0 = kernel,
			.flags = WIRE_SAMPLE,
			.weight = 1,
			.dur_ns = US(5)};
}

/* From half-way on, when steps take 60 ms instead of 37, @later is launched instead of the first kernel. */
static struct recording other_kernels(
	struct ledger_scene *s, int64_t clock, uint64_t bytes, uint64_t later)
{
	int64_t half = LEDGER_T0 + STEPS / 2 * (int64_t)MS(37);
	struct recording rec;

	slow_gpu(s, clock, bytes);
	launch_rows(s, 1, LEDGER_T0 + MS(1), half);
	launch_rows(s, later, half + MS(1), half + STEPS / 2 * (int64_t)MS(60));
	rec = ledger_recording(s);
	rec.kernels = kernels;
	rec.kernel_count = later; /* those that are launched at all */
	return rec;
}

static void test_other_kernels_are_the_reason(void **state)
{
	SCENE;
	const struct incident *inc;

	ANSWER = explain(other_kernels(s, 1980, 1000000, 2));
	inc = only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH,
		"The precision has changed: cutlass_80_simt_sgemm_128x256");
	assert_non_null(strstr(inc->explanation,
		"First launched when it became slow: cutlass_80_simt_sgemm_128x256"));
	assert_non_null(strstr(inc->fixes[0], "torch.autocast"));
	assert_non_null(strstr(inc->evidence_sql, "JOIN kernels"));
}

/* A GPU that reckons otherwise also uses another power. */
static void test_other_kernels_at_a_somewhat_lower_clock(void **state)
{
	SCENE;

	ANSWER = explain(other_kernels(s, 1800, 1000000, 2));
	only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH, "GPU kernels in fp32 instead of bf16");
}

static void test_the_same_kernels_are_no_reason(void **state)
{
	SCENE;

	ANSWER = explain(other_kernels(s, 1980, 1000000, 1));
	only(&a, PROBLEM_GOODPUT, SEVERITY_MEDIUM, "Cause unknown: the GPU takes longer");
}

/* More work picks other kernels, and so may a clock that is lower: what explains it is said. */
static void test_other_kernels_are_no_news_where_more_is_known(void **state)
{
	SCENE;
	_cleanup_free_ struct ledger_scene *other = calloc(1, sizeof(*other));

	{
		ANSWER = explain(other_kernels(s, 1980, 2000000, 2));
		only(&a, PROBLEM_GOODPUT, SEVERITY_LOW, "More GPU work");
	}
	{
		ANSWER = explain(other_kernels(other, 345, 1000000, 2));
		only(&a, PROBLEM_THROTTLE, SEVERITY_HIGH, "345 MHz instead of 1980");
	}
}

/* Slow steps wait for a lock that @holder has while it waits for the GPU. */
static struct answer held_by(struct ledger_scene *s, const char *holder)
{
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);
	struct ledger_thread other = thread_at(s, JOB, HOLDER, holder, LEDGER_T0);

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i < STEPS / 2)
			continue;
		stay(&t, LEDGER_LOCK, MS(20), 0, JOB, HOLDER);
		spend(&other, LEDGER_SLEEP, (uint64_t)(t.at - other.at) - MS(20));
		mark(&other, MARK_TICK);
		spend(&other, LEDGER_GPU_WAIT, MS(20));
		mark(&other, MARK_WAIT);
	}
	mark(&t, MARK_OPTIMIZER);
	return explain(ledger_recording(s));
}

static void test_a_thread_that_waits_for_the_gpu(void **state)
{
	SCENE;
	ANSWER = held_by(s, "stats");

	only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH, "Thread stats blocks the steps");
}

static void test_autograd_waits_in_its_place(void **state)
{
	SCENE;
	ANSWER = held_by(s, "pt_autograd_0");

	only(&a, PROBLEM_GOODPUT, SEVERITY_MEDIUM, "Waiting for the GPU");
	assert_null(strstr(a.list[0].root_cause, "wait for thread"));
}

/* Fills on the default stream that came with the slow steps, @late after them. */
static struct answer fills_since(struct ledger_scene *s, uint64_t late)
{
	struct aggregate all = {.bucket.ns = LEDGER_T0 + (int64_t)(10 * NS_PER_S),
		.pid = JOB,
		.source = SOURCE_CUDA,
		.op = CUDA_MEMSET_ASYNC};
	int64_t since = LEDGER_T0 + (int64_t)(STEPS / 2 * MS(120) +
					      late); /* more than a bucket of ordinary steps */
	struct recording rec;
	uint64_t clear;

	slow_gpu_by(s, 1980, 1000000, 100, 240);
	clear = line_stack(s, "/home/u/debug.py", 77, NULL);
	for (int i = 0; i < 40; i++)
		s->events[s->event_count++] = (struct event){.start.ns = since + i * (int64_t)MS(1),
			.dur_ns = US(5),
			.pid = JOB,
			.tid = MAIN,
			.source = SOURCE_CUDA,
			.op = CUDA_MEMSET_ASYNC,
			.weight = 1,
			.stack_hash = clear,
			.comm = "python3"};
	for (int i = 0; i < STEPS / 2 * 18; i++)
		sketch_add(&all.sketch, US(5), 1);
	rec = ledger_recording(s);
	rec.aggregates = &all;
	rec.aggregate_count = 1;
	return explain(rec);
}

static void test_calls_that_came_with_slow_steps(void **state)
{
	SCENE;
	ANSWER = fills_since(s, MS(5));

	only(&a, PROBLEM_GOODPUT, SEVERITY_HIGH,
		"cudaMemsetAsync, about 18 per step, in work (debug.py:77)");
}

static void test_calls_that_came_before(void **state)
{
	SCENE;
	ANSWER = fills_since(s, -MS(500));

	only(&a, PROBLEM_GOODPUT, SEVERITY_MEDIUM, "Cause unknown: the GPU takes longer");
}

/* Every step copies 256 MB and waits for it. While steps are slow, which they are if @others, so many processes copy as
 * well; the driver counts @counted on the GPU. */
static struct answer copies_beside(
	struct ledger_scene *s, enum wire_mark by, uint32_t others, int64_t counted)
{
	struct aggregate all = {.bucket.ns = LEDGER_T0,
		.pid = JOB,
		.source = SOURCE_CUDA,
		.op = CUDA_MEMCPY_ASYNC,
		.stored = STEPS,
		.sum_arg0 = STEPS * UINT64_C(256000000)};
	struct recording rec;
	uint64_t usual, upload;
	struct ledger_thread t = job(s, &usual);

	upload = line_stack(s, "/home/u/score.py", 46, NULL);
	for (int i = 0; i < STEPS; i++) {
		bool slow = i >= STEPS / 2;
		int64_t from;

		mark(&t, by);
		from = t.at;
		sample(s, JOB, MAIN, t.at + 1, usual);
		spend(&t, LEDGER_RUN, MS(1));
		spend(&t, LEDGER_GPU_WAIT, MS(20));
		mark(&t, MARK_TICK);
		s->events[s->event_count++] = (struct event){.start.ns = t.at,
			.dur_ns = slow ? MS(20) : MS(5),
			.pid = JOB,
			.tid = MAIN,
			.source = SOURCE_CUDA,
			.op = CUDA_MEMCPY_ASYNC,
			.arg0 = 256000000,
			.arg1 = 1,
			.weight = 1,
			.comm = "python3"};
		t.row.copy_bytes = 256000000;
		t.row.copies = 1;
		t.row.stack_hash = upload;
		spend(&t, LEDGER_COPY, slow ? MS(20) : MS(5));
		mark(&t, MARK_WAIT);
		for (uint32_t k = 0; slow && k < others; k++) {
			struct ledger_thread o =
				thread_at(s, WORKER + k, WORKER + k, "neighbour", from);

			o.row.copy_bytes = 300000000;
			o.row.copies = 4;
			spend(&o, LEDGER_GPU_WAIT, (uint64_t)(t.at - from));
			mark(&o, MARK_WAIT);
		}
		if (i % 5)
			continue;
		gpu_reading(s, t.at, 1980, 80);
		s->gpus[s->gpu_count - 1].processes = counted;
	}
	mark(&t, by);
	for (int i = 0; i < STEPS; i++)
		sketch_add(&all.sketch, i < STEPS / 2 ? MS(5) : MS(20), 1);
	rec = ledger_recording(s);
	rec.aggregates = &all;
	rec.aggregate_count = 1;
	return explain(rec);
}

static const struct incident *of_job(const struct answer *a)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i].pid == JOB)
			return &a->list[i];
	return NULL;
}

/* Also where the steps are less sure and all that is said of the copies is how much time they take. */
static void test_copies_beside_those_of_others(void **state)
{
	for (int way = 0; way < 2; way++) {
		SCENE;
		ANSWER = copies_beside(s, way ? MARK_GRAPH : MARK_OPTIMIZER, 3, 4);
		const struct incident *inc = of_job(&a);

		assert_non_null(inc);
		assert_int_equal(inc->problem, PROBLEM_GPU_SHARING);
		assert_int_equal(inc->severity, SEVERITY_HIGH);
		assert_non_null(strstr(inc->summary, "GPU shared with 3 × neighbour"));
		assert_int_equal(inc->cause_count, 3);
		assert_int_equal(inc->causes[2].culprit_pid, WORKER + 2);
		for (int i = 0; i < inc->fix_count; i++)
			assert_null(strstr(inc->fixes[i], "pin"));
		for (size_t i = 0; i < a.count; i++)
			assert_null(strstr(a.list[i].summary, "no call was slower"));
	}
}

/* Alone, and beside a process that the driver sees on another GPU. */
static void test_copies_that_others_do_not_hold_up(void **state)
{
	for (uint32_t others = 0; others < 2; others++) {
		SCENE;
		ANSWER = copies_beside(s, MARK_OPTIMIZER, others, 1);
		const struct incident *inc = of_job(&a);

		assert_non_null(inc);
		assert_int_equal(inc->problem, PROBLEM_PCIE);
		assert_null(strstr(inc->root_cause, "neighbour"));
	}
}

static void test_waste_in_every_step(void **state)
{
	SCENE;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		rival(s, MAIN, t.at, MS(15), 900, "hog");
		spend(&t, LEDGER_CPU_WAIT, MS(15));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_CPU_CONTENTION, SEVERITY_HIGH, "hog");
}

/* A hog has the CPU for 2 to 6 ms of each step, after the launches: where the GPU, which is waited for next, works for 18 ms
 * from there, nothing is lost; where it begins only then, all is. */
static void test_what_only_shortens_the_wait(void **state)
{
	for (int hides = 0; hides < 2; hides++) {
		SCENE;
		uint64_t usual;
		struct ledger_thread t = job(s, &usual);

		for (int i = 0; i < STEPS; i++) {
			uint64_t wait = MS(2 + i * 7 % 5);

			mark(&t, MARK_OPTIMIZER);
			sample(s, JOB, MAIN, t.at + 1, usual);
			spend(&t, LEDGER_RUN, MS(1));
			spend(&t, LEDGER_LAUNCH, MS(1));
			rival(s, MAIN, t.at, wait, 900, "hog");
			spend(&t, LEDGER_CPU_WAIT, wait);
			spend(&t, LEDGER_GPU_WAIT, hides ? MS(18) - wait : MS(14));
			mark(&t, MARK_WAIT);
		}
		mark(&t, MARK_OPTIMIZER);
		ANSWER = explain(ledger_recording(s));
		if (hides)
			assert_int_equal(a.count, 0);
		else
			only(&a, PROBLEM_CPU_CONTENTION, SEVERITY_MEDIUM, "hog");
	}
}

/* Every thread of the control group is stopped when its quota is used up. */
static void test_a_cpu_quota(void **state)
{
	SCENE;
	struct container_sample groups[8];
	struct recording rec;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i < STEPS / 2)
			continue;
		spend(&t, LEDGER_CPU_WAIT, MS(15));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	for (int i = 0; i < 8; i++)
		groups[i] = (struct container_sample){.time.ns = LEDGER_T0 + i * (int64_t)MS(450),
			.cgroup_id = 7,
			.throttled_us = i < 3 ? 0 : (i - 2) * 200000,
			.quota_us = 60000,
			.period_us = 100000};
	rec = ledger_recording(s);
	rec.containers = groups;
	rec.container_count = 8;
	ANSWER = explain(rec);
	only(&a, PROBLEM_CPU_CONTENTION, SEVERITY_HIGH,
		"CPU limit of its control group (60 % of a CPU)");
}

/* The last steps are stopped for longer, but all are stopped: what the limit costs is not what the longer ones have more. */
static void test_a_cpu_quota_of_all_steps(void **state)
{
	SCENE;
	struct container_sample groups[8];
	struct recording rec;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		spend(&t, LEDGER_CPU_WAIT, i < STEPS * 3 / 4 ? MS(9) : MS(27));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	for (int i = 0; i < 8; i++)
		groups[i] = (struct container_sample){.time.ns = LEDGER_T0 + i * (int64_t)MS(450),
			.cgroup_id = 7,
			.throttled_us = i * 200000,
			.quota_us = 60000,
			.period_us = 100000};
	rec = ledger_recording(s);
	rec.containers = groups;
	rec.container_count = 8;
	ANSWER = explain(rec);
	only(&a, PROBLEM_CPU_CONTENTION, SEVERITY_HIGH,
		"CPU limit of its control group (60 % of a CPU): 14 of 34 ms of every step");
}

static const struct incident *of(const struct answer *a, enum problem problem)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i].problem == problem)
			return &a->list[i];
	return NULL;
}

/* Both grow at the same time: the larger first, and together they are what was lost. */
static void test_two_causes_in_the_same_steps(void **state)
{
	SCENE;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		if (i < STEPS / 2)
			continue;
		rival(s, MAIN, t.at, MS(15), 900, "hog");
		spend(&t, LEDGER_CPU_WAIT, MS(15));
		stay(&t, LEDGER_DISK, MS(9), 0, 0, 0);
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	assert_int_equal(a.count, 2);
	assert_int_equal(a.list[0].problem, PROBLEM_CPU_CONTENTION);
	assert_int_equal(a.list[1].problem, PROBLEM_GOODPUT);
	assert_non_null(strstr(a.list[1].summary, "disk"));
	assert_in_range(a.list[0].excess_ns + a.list[1].excess_ns, STEPS / 2 * MS(24) - US(1),
		STEPS / 2 * MS(24));
}

/* A fifth of a large loss is a loss of its own, of a small one it is not worth a word. */
static void test_a_smaller_cause_beside_a_large_one(void **state)
{
	for (int is_large = 0; is_large < 2; is_large++) {
		SCENE;
		uint64_t usual;
		struct ledger_thread t = job(s, &usual);

		for (int i = 0; i < STEPS; i++) {
			ordinary(&t, usual);
			if (i < STEPS / 2)
				continue;
			rival(s, MAIN, t.at, is_large ? MS(40) : MS(4), 900, "hog");
			spend(&t, LEDGER_CPU_WAIT, is_large ? MS(40) : MS(4));
			stay(&t, LEDGER_DISK, is_large ? MS(10) : MS(1), 0, 0, 0);
		}
		mark(&t, MARK_OPTIMIZER);
		ANSWER = explain(ledger_recording(s));
		assert_int_equal(a.count, is_large ? 2 : 1);
		assert_int_equal(a.list[0].problem, PROBLEM_CPU_CONTENTION);
	}
}

/* The disk takes a third of every step, and a hog comes. */
static void test_waste_beside_slow_steps(void **state)
{
	SCENE;
	const struct incident *disk;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		ordinary(&t, usual);
		stay(&t, LEDGER_DISK, MS(12), 0, 0, 0);
		if (i < STEPS / 2)
			continue;
		rival(s, MAIN, t.at, MS(15), 900, "hog");
		spend(&t, LEDGER_CPU_WAIT, MS(15));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	assert_int_equal(a.count, 2);
	assert_non_null(of(&a, PROBLEM_CPU_CONTENTION));
	disk = of(&a, PROBLEM_GOODPUT);
	assert_non_null(disk);
	assert_true(disk->severity >= SEVERITY_MEDIUM);
	assert_int_equal(disk->period_steps, 0);
	assert_int_equal(disk->since.ns, 0);
}

/* A third of every step asleep is told whether or not a hog comes as well, and the hog beside it. */
static void test_what_every_step_has_is_told_beside_slow_steps(void **state)
{
	for (int has_hog = 0; has_hog < 2; has_hog++) {
		SCENE;
		const struct incident *asleep, *hog;
		uint64_t usual;
		struct ledger_thread t = job(s, &usual);

		for (int i = 0; i < STEPS; i++) {
			ordinary(&t, usual);
			stay(&t, LEDGER_SLEEP, MS(12), 0, 0, 0);
			if (i < STEPS / 2 || !has_hog)
				continue;
			rival(s, MAIN, t.at, MS(15), 900, "hog");
			spend(&t, LEDGER_CPU_WAIT, MS(15));
			mark(&t, MARK_TICK);
		}
		mark(&t, MARK_OPTIMIZER);
		ANSWER = explain(ledger_recording(s));
		asleep = of(&a, PROBLEM_STARVATION);
		hog = of(&a, PROBLEM_CPU_CONTENTION);
		assert_int_equal(a.count, 1 + has_hog);
		assert_non_null(asleep);
		assert_int_equal(asleep->severity, SEVERITY_HIGH);
		assert_int_equal(hog != NULL, has_hog);
		if (hog)
			assert_int_equal(hog->causes[0].culprit_pid, 900);
	}
}

/* Nine tenths of every step are copies; that some take a little longer is the lesser news. */
static void test_the_absolute_outranks_the_difference(void **state)
{
	SCENE;
	const struct incident *inc;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		mark(&t, MARK_OPTIMIZER);
		sample(s, JOB, MAIN, t.at + 1, usual);
		spend(&t, LEDGER_RUN, MS(2));
		t.row.copy_bytes = 100000000;
		spend(&t, LEDGER_COPY, i % 6 == 5 ? MS(24) : MS(18));
		mark(&t, MARK_WAIT);
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	inc = only(&a, PROBLEM_PCIE, SEVERITY_HIGH, "Copies to and from the GPU");
	assert_int_equal(inc->slow_p50_ns, inc->baseline_ns);
	assert_true(inc->excess_ns > 90 * MS(18));
}

/* A hog that is there all the time and gets worse is one hog. */
static void test_the_same_cause_in_all_and_more_in_some(void **state)
{
	SCENE;
	uint64_t usual;
	struct ledger_thread t = job(s, &usual);

	for (int i = 0; i < STEPS; i++) {
		uint64_t wait = i < STEPS / 2 ? MS(10) : MS(30);

		ordinary(&t, usual);
		rival(s, MAIN, t.at, wait, 900, "hog");
		spend(&t, LEDGER_CPU_WAIT, wait);
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	ANSWER = explain(ledger_recording(s));
	only(&a, PROBLEM_CPU_CONTENTION, SEVERITY_HIGH, "hog");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_wrong),
		cmocka_unit_test(test_new_host_code),
		cmocka_unit_test(test_host_code_that_the_gpu_hides),
		cmocka_unit_test(test_a_fault_that_is_over),
		cmocka_unit_test(test_stopped_by_another),
		cmocka_unit_test(test_evenly_slower),
		cmocka_unit_test(test_a_wait_for_the_disk_every_20_steps),
		cmocka_unit_test(test_a_routine_of_its_own),
		cmocka_unit_test(test_short_epochs),
		cmocka_unit_test(test_host_code_between_waits),
		cmocka_unit_test(test_what_changed_is_told),
		cmocka_unit_test(test_uploads_are_no_steps),
		cmocka_unit_test(test_a_lower_clock),
		cmocka_unit_test(test_more_work_is_no_fault),
		cmocka_unit_test(test_more_work_at_the_power_limit),
		cmocka_unit_test(test_a_lower_clock_that_explains_it),
		cmocka_unit_test(test_a_slower_gpu_without_a_reason_is_said),
		cmocka_unit_test(test_other_kernels_are_the_reason),
		cmocka_unit_test(test_other_kernels_at_a_somewhat_lower_clock),
		cmocka_unit_test(test_the_same_kernels_are_no_reason),
		cmocka_unit_test(test_other_kernels_are_no_news_where_more_is_known),
		cmocka_unit_test(test_a_thread_that_waits_for_the_gpu),
		cmocka_unit_test(test_autograd_waits_in_its_place),
		cmocka_unit_test(test_calls_that_came_with_slow_steps),
		cmocka_unit_test(test_calls_that_came_before),
		cmocka_unit_test(test_copies_beside_those_of_others),
		cmocka_unit_test(test_copies_that_others_do_not_hold_up),
		cmocka_unit_test(test_waste_in_every_step),
		cmocka_unit_test(test_what_only_shortens_the_wait),
		cmocka_unit_test(test_a_cpu_quota),
		cmocka_unit_test(test_a_cpu_quota_of_all_steps),
		cmocka_unit_test(test_two_causes_in_the_same_steps),
		cmocka_unit_test(test_a_smaller_cause_beside_a_large_one),
		cmocka_unit_test(test_waste_beside_slow_steps),
		cmocka_unit_test(test_what_every_step_has_is_told_beside_slow_steps),
		cmocka_unit_test(test_the_absolute_outranks_the_difference),
		cmocka_unit_test(test_the_same_cause_in_all_and_more_in_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
