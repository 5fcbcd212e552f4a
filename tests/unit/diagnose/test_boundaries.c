/* SPDX-License-Identifier: Apache-2.0 */
/* test_boundaries.c - units of work of every kind of program that uses a GPU, from ledgers as each of them
 * leaves one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/units/boundaries.h"
#include "ledger_fixture.h"

#define SCENE _cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s))

struct found {
	struct timeline timeline;
	struct step_table waits;
	struct step_spans spans;
};

static void found_done(struct found *f)
{
	boundaries_done(&f->spans);
	steps_done(&f->waits);
	timeline_done(&f->timeline);
}

#define FOUND _cleanup_(found_done) struct found f = {0}

static void find(struct ledger_scene *s, struct recording *rec, struct found *f)
{
	*rec = ledger_recording(s);
	assert_int_equal(timeline_make(rec, &f->timeline), 0);
	assert_int_equal(steps_find(rec, &f->waits), 0);
	assert_int_equal(boundaries_find(&f->timeline, &f->waits, JOB, &f->spans), 0);
	for (size_t i = 1; i < f->spans.count; i++)
		assert_true(f->spans.items[i].start_ns >= f->spans.items[i - 1].end_ns);
}

static struct ledger_thread trainer(struct ledger_scene *s)
{
	return thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
}

static void mark_at(struct ledger_thread *t, enum wire_mark m, uint64_t stack)
{
	mark(t, m)->stack_hash = stack;
}

static void forward(struct ledger_thread *t, uint64_t ns)
{
	spend(t, LEDGER_RUN, ns / 2);
	spend(t, LEDGER_LAUNCH, ns - ns / 2);
}

static void backward(struct ledger_thread *t)
{
	forward(t, MS(4));
	mark(t, MARK_BACKWARD);
	forward(t, MS(4));
}

static uint64_t length(const struct step_spans *s, size_t i)
{
	return (uint64_t)(s->items[i].end_ns - s->items[i].start_ns);
}

static void check_all(const struct step_spans *s, enum step_origin origin, size_t n, uint64_t ns)
{
	assert_int_equal(s->origin, origin);
	assert_int_equal(s->count, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(length(s, i), ns);
}

static void test_three_steps_are_enough(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 4; i++) {
		backward(&t);
		mark(&t, MARK_OPTIMIZER);
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_OPTIMIZER, 3, MS(8));
	assert_true(f.spans.confidence > 0.5 && f.spans.confidence < 0.8);
}

/* One step of ZeRO is one of every group of parameters; a container of optimizers is one itself. */
static void test_an_optimizer_in_many_parts(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t place = line_stack(s, "/home/u/train.py", 10, NULL);

	for (int i = 0; i < 21; i++) {
		backward(&t);
		for (int k = 0; k < 4 + i % 3; k++) {
			mark_at(&t, MARK_OPTIMIZER, place);
			forward(&t, US(500));
		}
		forward(&t, US(2000 - i % 3 * 500));
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_OPTIMIZER, 20, MS(12));
	assert_int_equal(f.spans.items[3].backwards, 1);
}

/* Two optimizers, each after backward passes of its own: an iteration of a GAN is a unit. */
static void test_two_optimizers(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t d = line_stack(s, "/home/u/gan.py", 40, NULL);
	uint64_t g = line_stack(s, "/home/u/gan.py", 60, NULL);

	for (int i = 0; i < 31; i++) {
		backward(&t);
		backward(&t);
		mark_at(&t, MARK_OPTIMIZER, d);
		backward(&t);
		mark_at(&t, MARK_OPTIMIZER, i == 7 ? 0 : g);
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_OPTIMIZER, 30, MS(24));
	assert_int_equal(f.spans.items[3].backwards, 3);
}

/* Five steps of the critic to one of the generator: the round has six marks. */
static void test_a_round_of_unequal_optimizers(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t d = line_stack(s, "/home/u/gan.py", 40, NULL);
	uint64_t g = line_stack(s, "/home/u/gan.py", 60, NULL);

	for (int i = 0; i < 21; i++)
		for (int k = 0; k < 6; k++) {
			backward(&t);
			mark_at(&t, MARK_OPTIMIZER, k < 5 ? d : g);
		}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_OPTIMIZER, 20, 6 * MS(8));
}

/* An optimizer that has a step now and then does not cut those of the loop. */
static void test_an_optimizer_now_and_then(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t loop = line_stack(s, "/home/u/train.py", 40, NULL);
	uint64_t rare = line_stack(s, "/home/u/train.py", 60, NULL);

	for (int i = 0; i < 51; i++) {
		backward(&t);
		if (i % 7 == 3 || i % 11 == 5) {
			mark_at(&t, MARK_OPTIMIZER, rare);
			backward(&t);
		}
		mark_at(&t, MARK_OPTIMIZER, loop);
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.count, 50);
}

/* A second loop, at another place of the program, has units as well. */
static void test_loops_that_follow_each_other(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t first = line_stack(s, "/home/u/train.py", 40, NULL);
	uint64_t second = line_stack(s, "/home/u/tune.py", 60, NULL);

	for (int i = 0; i < 61; i++) {
		backward(&t);
		mark_at(&t, MARK_OPTIMIZER, i < 30 ? first : second);
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_OPTIMIZER, 60, MS(8));
}

static void test_gradients_that_are_summed(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 11; i++) {
		for (int k = 0; k < (i == 5 ? 2 : 4); k++) /* an epoch ends */
			backward(&t);
		mark(&t, MARK_OPTIMIZER);
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.count, 10);
	assert_int_equal(f.spans.items[0].backwards, 4);
	assert_int_equal(length(&f.spans, 0), 4 * MS(8));
	assert_int_equal(length(&f.spans, 4), 2 * MS(8));
}

/* Lightning from its start: imports, batches to try validation, then forward and backward passes inside the
 * optimizer's step; validation after every tenth. */
static void test_lightning(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	spend(&t, LEDGER_RUN, MS(20000));
	mark(&t, MARK_TICK);
	for (int i = 0; i < 12; i++) {
		mark(&t, MARK_LOADER);
		forward(&t, MS(5));
	}
	for (int i = 0; i < 31; i++) {
		mark(&t, MARK_LOADER);
		spend(&t, LEDGER_RUN, MS(1));
		mark(&t, MARK_OPTIMIZER);
		backward(&t);
		for (int k = 0; i % 10 == 9 && k < 5; k++) {
			mark(&t, MARK_LOADER);
			forward(&t, MS(5));
		}
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_OPTIMIZER);
	assert_int_equal(f.spans.count, 30);
	assert_int_equal(length(&f.spans, 0), MS(9));
	assert_int_equal(f.spans.items[0].backwards, 1);
	assert_int_equal(f.spans.items[9].loads, 6);
}

/* A scaler leaves out the optimizer's step where gradients overflow. */
static void test_steps_that_a_scaler_leaves_out(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 41; i++) {
		backward(&t);
		if (i % 10 != 3 && i % 10 != 4)
			mark(&t, MARK_OPTIMIZER);
		forward(&t, MS(2));
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_OPTIMIZER, 40, MS(10));
}

/* Where it leaves out most of them, too. */
static void test_a_scaler_that_leaves_out_most(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	const int gaps[] = {1, 4, 2, 1, 3, 1, 6, 2, 1, 5};

	for (size_t i = 0; i < ARRAY_SIZE(gaps); i++) {
		for (int k = 0; k < gaps[i]; k++) {
			forward(&t, MS(2));
			backward(&t);
		}
		mark(&t, MARK_OPTIMIZER);
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_OPTIMIZER, 25, MS(10));
}

/* What is compiled in two parts has two marks a step. */
static void test_computations_of_jax(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t grad = line_stack(s, "/home/u/jax_train.py", 40, NULL);
	uint64_t update = line_stack(s, "/home/u/jax_train.py", 41, NULL);
	uint64_t init = line_stack(s, "/home/u/jax_train.py", 20, NULL);

	for (int i = 0; i < 40; i++) { /* parameters, one by one */
		mark_at(&t, MARK_EXECUTE, init);
		spend(&t, LEDGER_RUN, US(700));
	}
	spend(&t, LEDGER_RUN, MS(300)); /* it compiles */
	for (int i = 0; i < 21; i++) {
		mark_at(&t, MARK_EXECUTE, grad);
		spend(&t, LEDGER_RUN, MS(2));
		mark_at(&t, MARK_EXECUTE, update);
		spend(&t, LEDGER_RUN, MS(8));
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_EXECUTE, 20, MS(10));
}

/* One line of the program that starts two computations: one for its arguments. */
static void test_two_computations_of_one_line(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t copy = line_stack(s, "/home/u/jax_train.py", 40, "device_put");
	uint64_t step = line_stack(s, "/home/u/jax_train.py", 40, "execute");

	for (int i = 0; i < 21; i++) {
		mark_at(&t, MARK_EXECUTE, copy);
		spend(&t, LEDGER_RUN, MS(1));
		mark_at(&t, MARK_EXECUTE, step);
		spend(&t, LEDGER_RUN, MS(9));
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_EXECUTE, 20, MS(10));
}

/* The first call after the line has been compiled anew comes another way, four times in 450: no round of a hundred
 * steps. What sets the program up left marks of which no line is known: they are no steps. */
static void test_a_computation_that_is_compiled_anew(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t fast = line_stack(s, "/home/u/jax_train.py", 40, "execute");
	uint64_t anew = line_stack(s, "/home/u/jax_train.py", 40, "compile");

	for (int i = 0; i < 40; i++) {
		mark(&t, MARK_EXECUTE);
		spend(&t, LEDGER_RUN, MS(3));
	}
	for (int i = 0; i < 451; i++) {
		mark_at(&t, MARK_EXECUTE, i % 100 == 99 ? anew : fast);
		spend(&t, LEDGER_RUN, MS(10));
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_EXECUTE, 450, MS(10));
}

/* A program that waits for the GPU by reading its results alone. */
static void test_results_that_are_read(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 41; i++) {
		spend(&t, LEDGER_RUN, MS(3));
		spend(&t, LEDGER_LAUNCH, MS(1));
		t.row.launches = 24;
		spend(&t, LEDGER_COPY, MS(16));
		mark(&t, MARK_READ);
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_WAIT, 40, MS(20));
}

/* Eleven steps of twenty computations of a line; then of two, one of which comes 19 times as often. */
static void test_few_long_rounds(void **state)
{
	for (int same = 0; same < 2; same++) {
		SCENE;
		FOUND;
		struct recording rec;
		struct ledger_thread t = trainer(s);
		uint64_t stacks[20];

		for (int k = 0; k < 20; k++)
			stacks[k] = same && k > 1 ? stacks[1]
						  : line_stack(s, "/home/u/jax_train.py", 40, "op");
		for (int i = 0; i < 11 * 20; i++) {
			mark_at(&t, MARK_EXECUTE, stacks[i % 20]);
			spend(&t, LEDGER_RUN, MS(10));
		}
		find(s, &rec, &f);
		check_all(&f.spans, STEP_BY_EXECUTE, same ? 219 : 10, MS(same ? 10 : 200));
	}
}

/* What is set up one by one has more marks than the steps, in less time. */
static void test_a_jax_step_as_a_whole(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	uint64_t init = line_stack(s, "/home/u/jax_train.py", 20, NULL);
	uint64_t step = line_stack(s, "/home/u/jax_train.py", 40, NULL);

	for (int i = 0; i < 140; i++) {
		mark_at(&t, MARK_EXECUTE, init);
		spend(&t, LEDGER_RUN, US(700));
	}
	for (int i = 0; i < 21; i++) {
		mark_at(&t, MARK_EXECUTE, step);
		spend(&t, LEDGER_RUN, MS(10));
	}
	find(s, &rec, &f);
	check_all(&f.spans, STEP_BY_EXECUTE, 20, MS(10));
}

/* Computations of 50 us: one in ten is recorded, after the first ones. */
static void test_marks_that_come_too_fast(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 3000; i++) {
		mark(&t, MARK_EXECUTE);
		spend(&t, LEDGER_RUN, i < 200 ? US(50) : US(500));
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_EXECUTE);
	assert_in_range(f.spans.count, 250, 300);
	for (size_t i = 0; i < f.spans.count; i++)
		assert_in_range(length(&f.spans, i), MS(5), US(5500));
}

/* Three steps to warm up, then a server: its time is accounted for, not the warm-up's. */
static void test_a_warm_up_is_not_all(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 4; i++) {
		backward(&t);
		mark(&t, MARK_OPTIMIZER);
	}
	for (int i = 0; i < 100; i++) {
		forward(&t, MS(30 + i % 7));
		mark(&t, MARK_TICK);
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_TIME);
}

/* A loader that another thread reads ahead with says nothing of the one that feeds the GPU. */
static void test_a_thread_that_only_loads(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	struct ledger_thread side = thread_at(s, JOB, PIN, "prefetch", LEDGER_T0);

	for (int i = 0; i < 100; i++) {
		forward(&t, MS(30 + i % 7));
		mark(&t, MARK_TICK);
		spend(&side, LEDGER_RUN, MS(20));
		mark(&side, MARK_LOADER);
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_TIME);
	assert_int_equal(f.spans.tid, MAIN);
}

/* A thread that is made at @at for one request of 20 ms. */
static void serve_one(struct ledger_scene *s, uint32_t tid, int64_t at)
{
	struct ledger_thread t = thread_at(s, JOB, tid, "handler", at);

	forward(&t, MS(15));
	spend(&t, LEDGER_GPU_WAIT, MS(5));
	mark(&t, MARK_EXIT);
}

/* A server that makes a thread for each request, of which two at a time run: units are what one more takes, each of
 * the thread that ends it, and time without requests is in none. Numbers of threads are used again. */
static void test_a_thread_for_each_request(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread accepting = trainer(s);
	int64_t at = LEDGER_T0 + (int64_t)MS(100);

	for (uint32_t i = 0; i < 20; i++) {
		serve_one(s, 1000 + i, at);
		serve_one(s, 2000 + i % 5, at + (int64_t)MS(8));
		at += (int64_t)MS(60);
	}
	spend(&accepting, LEDGER_SOCKET, (uint64_t)(at - LEDGER_T0));
	mark(&accepting, MARK_TICK);
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_REQUEST);
	assert_int_equal(f.spans.count, 40);
	for (size_t i = 0; i < f.spans.count; i++) {
		const struct step_span *p = &f.spans.items[i];

		assert_int_equal(p->end_ns - p->start_ns, i % 2 ? MS(8) : MS(20));
		assert_int_equal(p->tid, i % 2 ? 2000 + i / 2 % 5 : 1000 + i / 2);
	}
}

/* A receive of the job's that was waited for, from a port of whoever listens there (@pid: known) or has connected. */
static void received(
	struct ledger_scene *s, int64_t at, uint32_t port, uint32_t pid, uint64_t wait_ns)
{
	s->events[s->event_count++] = (struct event){.start.ns = at,
		.pid = JOB,
		.tid = MAIN,
		.source = SOURCE_NET,
		.op = NET_RECV,
		.family = 2,
		.dev = port,
		.peer_pid = pid,
		.wait_ns = wait_ns};
}

/* An event loop that asks for something in two parts, looks whether the GPU has done its work, and waits for nothing else. */
static void ask(
	struct ledger_scene *s, uint32_t port, uint32_t pid, struct recording *rec, struct found *f)
{
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 40; i++) {
		for (int part = 0; part < 2; part++) {
			stay(&t, LEDGER_POLL, MS(20), 0, WORKER, WORKER);
			received(s, t.at + (int64_t)US(50), port, pid, MS(20));
		}
		spend(&t, LEDGER_RUN, MS(1));
		spend(&t, LEDGER_LAUNCH, MS(1));
		stay(&t, LEDGER_POLL, MS(8), 0, 0, 0);
		spend(&t, LEDGER_RUN, MS(1));
	}
	mark(&t, MARK_STOP);
	find(s, rec, f);
}

static void test_replies(void **state)
{
	static const struct {
		uint32_t port, pid;
		enum step_origin origin;
	} rows[] = {
		{6379, 0, STEP_BY_REPLY},
		{45000, WORKER, STEP_BY_REPLY}, /* somebody listens there */
		{45000, 0, STEP_BY_TIME},       /* who asks has such a port */
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		SCENE;
		FOUND;
		struct recording rec;

		ask(s, rows[i].port, rows[i].pid, &rec, &f);
		assert_int_equal(f.spans.origin, rows[i].origin);
		assert_int_equal(f.spans.tid, MAIN);
		if (rows[i].origin == STEP_BY_REPLY)
			check_all(&f.spans, STEP_BY_REPLY, 39, MS(51));
	}
}

/* A program without marks: imports for 20 s, a model that is copied, then 5 s of kernels. Another thread of it waits for
 * the GPU all the time, one of a runtime queries it. */
static void test_windows_of_time(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);
	struct ledger_thread poll = thread_at(s, JOB, PIN, "pt_nccl_watchdg", LEDGER_T0);
	struct ledger_thread waits = thread_at(s, JOB, HOLDER, "waiter", LEDGER_T0);
	int64_t begin;

	spend(&t, LEDGER_RUN, MS(20000));
	mark(&t, MARK_TICK);
	for (int i = 0; i < 50; i++) {
		spend(&t, LEDGER_COPY, MS(10));
		spend(&t, LEDGER_GPU_WAIT, MS(1));
		mark(&t, MARK_WAIT);
	}
	begin = t.at;
	for (int i = 0; i < 50; i++) {
		spend(&t, LEDGER_RUN, MS(90 + i % 5));
		spend(&t, LEDGER_LAUNCH, MS(10 - i % 5));
		mark(&t, MARK_TICK);
	}
	spend(&poll, LEDGER_CALL, (uint64_t)(t.at - poll.at));
	mark(&poll, MARK_STOP);
	spend(&waits, LEDGER_GPU_WAIT, (uint64_t)(t.at - waits.at));
	mark(&waits, MARK_STOP);
	spend(&t, LEDGER_RUN, MS(9000)); /* it writes its results */
	mark(&t, MARK_EXIT);
	find(s, &rec, &f);
	assert_int_equal(f.spans.tid, MAIN);
	check_all(&f.spans, STEP_BY_TIME, 20, MS(250));
	assert_int_equal(f.spans.items[0].start_ns, begin);
	assert_true(f.spans.confidence >= 0.6 && f.spans.confidence <= 0.7);
}

static size_t windows_of(uint64_t ms, uint64_t *ret_each)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (uint64_t at = 0; at < ms; at += 10) {
		forward(&t, MS(10));
		mark(&t, MARK_TICK);
	}
	find(s, &rec, &f);
	*ret_each = f.spans.count ? length(&f.spans, 0) : 0;
	return f.spans.count;
}

/* Work for the GPU, then sleeps of 1, 2 and 4 ms, of 2 ms each or, @waits, behind a wait for it by a call. */
static enum step_origin poll_gpu(bool grows, bool waits, size_t *ret_count, uint64_t *ret_each)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 200; i++) {
		forward(&t, MS(1));
		if (waits && i % 7 == 3)
			spend(&t, LEDGER_GPU_WAIT, MS(1));
		for (int k = 0; k < 3; k++)
			stay(&t, LEDGER_SLEEP, MS(grows ? 1 << k : 2), 0, 0, 0);
	}
	find(s, &rec, &f);
	*ret_count = f.spans.count;
	*ret_each = f.spans.count ? length(&f.spans, 0) : 0;
	return f.spans.origin;
}

static void test_polls(void **state)
{
	size_t count;
	uint64_t each;

	assert_int_equal(poll_gpu(true, false, &count, &each), STEP_BY_POLL);
	assert_int_equal(count, 199);
	assert_int_equal(each, MS(8));
	assert_int_equal(poll_gpu(false, false, &count, &each), STEP_BY_TIME);
	assert_int_equal(poll_gpu(true, true, &count, &each), STEP_BY_TIME);
}

static void test_windows_suit_the_recording(void **state)
{
	uint64_t each;

	assert_int_equal(windows_of(100, &each), 0); /* too short for anything */
	assert_int_equal(windows_of(200, &each), 4);
	assert_int_equal(windows_of(2000, &each), 10);
	assert_int_equal(windows_of(10000, &each), 20);
	assert_int_equal(windows_of(100000, &each), 100);
	assert_int_equal(each, NS_PER_S);
}

/* A rank that no longer calls keeps others waiting: what it does instead is in its units. */
static void test_windows_of_a_rank_go_on(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 5; i++) {
		spend(&t, LEDGER_COLLECTIVE, MS(1));
		mark(&t, MARK_COLLECTIVE);
		forward(&t, MS(9));
	}
	stay(&t, LEDGER_SLEEP, MS(10000), 0, 0, 0);
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_TIME);
	assert_in_range(f.spans.count, 19, 20);
}

/* A row whose time is damaged lies years away: memory does not grow with them. */
static void test_windows_of_years(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 5; i++) {
		spend(&t, LEDGER_COLLECTIVE, MS(1));
		mark(&t, MARK_COLLECTIVE);
		forward(&t, MS(9));
	}
	t.at += INT64_C(10) * 365 * 86400 * (int64_t)NS_PER_S;
	t.row.start.ns = t.at;
	forward(&t, MS(9));
	mark(&t, MARK_TICK);
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_TIME);
	assert_in_range(f.spans.count, 100000, 200000);
}

/* A server: a second of work, then four in which its thread waits for the one that waits for requests, or for a
 * disk (@reads), and another process has @worker_ms to do for it in each second. */
static size_t serve(bool reads, uint64_t worker_ms)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = thread_at(s, JOB, HOLDER, "executor", LEDGER_T0);
	struct ledger_thread main = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread worker = thread_at(s, WORKER, WORKER, "tokenizer", LEDGER_T0);

	for (int i = 0; i <= 20; i++) {
		for (int k = 0; k < 10; k++) {
			forward(&t, MS(100));
			mark(&t, MARK_TICK);
		}
		stay(&t, reads ? LEDGER_DISK : LEDGER_LOCK, MS(4000), 0, JOB, reads ? 0 : MAIN);
		stay(&main, LEDGER_POLL, MS(4999), 0, 0, 0);
		spend(&main, LEDGER_RUN, MS(1));
		mark(&main, MARK_TICK);
		for (int k = 0; k < 5; k++) {
			spend(&worker, LEDGER_PIPE, MS(1000 - worker_ms));
			mark(&worker, MARK_TICK);
			spend(&worker, LEDGER_RUN, MS(worker_ms));
			mark(&worker, MARK_TICK);
		}
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.origin, STEP_BY_TIME);
	assert_int_equal(f.spans.tid, HOLDER);
	for (size_t i = 0; i < f.spans.count; i++)
		assert_int_equal(length(&f.spans, i), NS_PER_S);
	return f.spans.count;
}

/* Time without requests is nobody's; time in which anything was done for one is not. */
static void test_rests_are_no_units(void **state)
{
	assert_int_equal(serve(false, 0), 21);
	assert_int_equal(serve(true, 0), 101);
	assert_int_equal(serve(false, 700), 101);
}

static void test_no_work_no_units(void **state)
{
	SCENE;
	FOUND;
	struct recording rec;
	struct ledger_thread t = trainer(s);

	for (int i = 0; i < 100; i++) {
		spend(&t, LEDGER_RUN, MS(30));
		spend(&t, LEDGER_CALL, MS(1));
		mark(&t, MARK_TICK);
	}
	find(s, &rec, &f);
	assert_int_equal(f.spans.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_three_steps_are_enough),
		cmocka_unit_test(test_an_optimizer_in_many_parts),
		cmocka_unit_test(test_two_optimizers),
		cmocka_unit_test(test_a_round_of_unequal_optimizers),
		cmocka_unit_test(test_an_optimizer_now_and_then),
		cmocka_unit_test(test_loops_that_follow_each_other),
		cmocka_unit_test(test_gradients_that_are_summed),
		cmocka_unit_test(test_lightning),
		cmocka_unit_test(test_steps_that_a_scaler_leaves_out),
		cmocka_unit_test(test_a_scaler_that_leaves_out_most),
		cmocka_unit_test(test_computations_of_jax),
		cmocka_unit_test(test_two_computations_of_one_line),
		cmocka_unit_test(test_a_computation_that_is_compiled_anew),
		cmocka_unit_test(test_few_long_rounds),
		cmocka_unit_test(test_results_that_are_read),
		cmocka_unit_test(test_a_jax_step_as_a_whole),
		cmocka_unit_test(test_marks_that_come_too_fast),
		cmocka_unit_test(test_a_warm_up_is_not_all),
		cmocka_unit_test(test_a_thread_that_only_loads),
		cmocka_unit_test(test_a_thread_for_each_request),
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_windows_of_time),
		cmocka_unit_test(test_polls),
		cmocka_unit_test(test_windows_suit_the_recording),
		cmocka_unit_test(test_windows_of_a_rank_go_on),
		cmocka_unit_test(test_windows_of_years),
		cmocka_unit_test(test_rests_are_no_units),
		cmocka_unit_test(test_no_work_no_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
