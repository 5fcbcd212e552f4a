/* SPDX-License-Identifier: Apache-2.0 */
/* test_account.c - the account of steps: it adds up to the nanosecond, follows who woke whom, and slow
 * steps differ from ordinary ones by what was done to them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/event.h"
#include "ledger_fixture.h"

#define SCENE _cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s))

static const struct step_account *account(struct ledger_scene *s, struct step_report *report)
{
	struct recording rec = ledger_recording(s);
	const struct step_account *a;
	uint64_t sum = 0, bars = 0, lines = 0;

	assert_int_equal(account_run(&rec, report), 0);
	if (!report->count)
		return NULL;
	a = &report->items[0];
	for (int i = 0; i < ACCOUNT_LINES; i++)
		sum += a->total_ns[i];
	for (size_t i = 0; i < a->bar_count; i++) {
		bars += a->bars[i].dur_ns;
		for (int k = 0; k < ACCOUNT_LINES; k++)
			lines += a->bars[i].ns[k];
	}
	assert_int_equal(sum, a->last.ns - a->first.ns); /* to the nanosecond */
	assert_int_equal(bars, sum);
	assert_int_equal(lines, sum);
	return a;
}

/* An ordinary step of 20 ms: 12 of Python, 5 of launches, 3 of waiting for the GPU. */
static void ordinary(struct ledger_thread *t)
{
	spend(t, LEDGER_RUN, MS(12));
	spend(t, LEDGER_LAUNCH, MS(5));
	spend(t, LEDGER_GPU_WAIT, MS(3));
	mark(t, MARK_WAIT);
}

static uint64_t grown(const struct step_account *a, enum account_line l)
{
	return a->slow_ns[l] > a->ordinary_ns[l] ? a->slow_ns[l] - a->ordinary_ns[l] : 0;
}

static void test_a_plain_run(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_non_null(a);
	assert_int_equal(a->origin, STEP_BY_OPTIMIZER);
	assert_int_equal(a->steps, 100);
	assert_int_equal(a->slow_steps, 0);
	assert_int_equal(a->lost_ns, 0);
	assert_int_equal(a->ordinary_step_ns, MS(20));
	assert_int_equal(a->ordinary_ns[ACCOUNT_HOST], MS(12));
	assert_int_equal(a->ordinary_ns[ACCOUNT_LAUNCH], MS(5));
	assert_int_equal(a->ordinary_ns[ACCOUNT_GPU], MS(3));
	assert_int_equal(a->total_ns[ACCOUNT_UNKNOWN], 0);
	assert_true(a->confidence > 0.85);
}

/* A copy that reads a result waits for the GPU, also where it goes on in the next row of the ledger, and whatever others that
 * were only queued move meanwhile. */
static void test_a_copy_that_waits_across_rows(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 50; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(5));
		s->events[s->event_count++] = (struct event){.start.ns = t.at,
			.dur_ns = MS(15),
			.pid = JOB,
			.tid = MAIN,
			.source = SOURCE_CUDA,
			.op = CUDA_MEMCPY_ASYNC,
			.arg0 = 768000,
			.arg1 = COPY_D2H};
		spend(&t, LEDGER_COPY, MS(8));
		t.row.copy_bytes = 800000000;
		mark(&t, MARK_STAY);
		spend(&t, LEDGER_COPY, MS(7));
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_non_null(a);
	assert_true(a->ordinary_ns[ACCOUNT_GPU] > MS(14));
	assert_true(a->ordinary_ns[ACCOUNT_COPY] < MS(1));
}

/* Copies that sleep, of which one in four is recorded and says what it moves. */
static uint64_t sleeping_copies(uint64_t bytes, uint64_t direction)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 48; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(5));
		if (i % 4 == 0)
			s->events[s->event_count++] = (struct event){.start.ns = t.at,
				.dur_ns = MS(11),
				.pid = JOB,
				.tid = MAIN,
				.source = SOURCE_CUDA,
				.op = CUDA_MEMCPY,
				.arg0 = bytes,
				.arg1 = direction};
		stay(&t, LEDGER_COPY, MS(10), 0, 0, 0);
		spend(&t, LEDGER_COPY, MS(1)); /* others are queued */
		t.row.copy_bytes = bytes + 50000000;
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_non_null(a);
	assert_true(a->ordinary_ns[ACCOUNT_COPY] + a->ordinary_ns[ACCOUNT_GPU] >= MS(10));
	return a->ordinary_ns[ACCOUNT_COPY];
}

/* Little data does not take long by itself; much may, over a slow link. */
static void test_copies_that_sleep(void **state)
{
	assert_true(sleeping_copies(256, COPY_H2D) < MS(2));
	assert_true(sleeping_copies(120000, COPY_H2D) < MS(3));
	assert_true(sleeping_copies(1 << 20, COPY_H2D) > MS(9));
	assert_true(sleeping_copies(120000, COPY_D2H) < MS(3));
	assert_true(sleeping_copies(1 << 20, COPY_D2H) > MS(9));
	/* times 10^9 it is 2^64 and a little */
	assert_true(sleeping_copies(UINT64_C(18446744074), COPY_D2H) > MS(9));
}

/* That launches of a thread which makes none were not probed takes nothing from what is known of the others. */
static void test_a_thread_that_does_not_launch(void **state)
{
	for (int launches = 0; launches < 2; launches++) {
		SCENE;
		_cleanup_(step_report_done) struct step_report report = {0};
		struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
		struct ledger_thread side = thread_at(s, JOB, AUTOGRAD, "side", LEDGER_T0);
		const struct step_account *a;

		for (int i = 0; i < 100; i++) {
			mark(&t, MARK_OPTIMIZER);
			ordinary(&t);
		}
		mark(&t, MARK_OPTIMIZER);
		side.row.launches_off = true;
		side.row.launches = (uint32_t)launches;
		spend(&side, LEDGER_LOCK, (uint64_t)(t.at - LEDGER_T0));
		mark(&side, MARK_TICK);
		a = account(s, &report);
		assert_true(a->ordinary_launches == (launches ? 0 : 10));
	}
}

/* Host code that grew, at its line. */
static void test_host_code_has_its_line(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t usual = line_stack(s, "/home/u/train.py", 10, NULL);
	uint64_t fault = line_stack(s, "/home/u/train.py", 71, NULL);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		sample(s, JOB, MAIN, t.at + 1, usual);
		ordinary(&t);
		if (i >= 50) {
			sample(s, JOB, MAIN, t.at + 1, fault);
			sample(s, JOB, MAIN, t.at + 2, fault);
			spend(&t, LEDGER_RUN, MS(20));
			mark(&t, MARK_TICK);
		}
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 50);
	assert_int_equal(a->lost_ns, 50 * MS(20));
	assert_int_equal(grown(a, ACCOUNT_HOST), MS(20));
	assert_int_equal(a->entries[0].line, ACCOUNT_HOST);
	assert_int_equal(a->entries[0].stack_hash, fault);
	assert_int_equal(a->entries[0].slow_ns, MS(20));
	assert_int_equal(a->entries[0].ordinary_ns, 0);
}

/* Between two samples it was where the samples were, not in the waits for the GPU, whose places are known as well. */
static void test_host_code_that_no_sample_shows(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t code = line_stack(s, "/home/u/train.py", 10, NULL);
	uint64_t wait = line_stack(s, "/home/u/train.py", 71, NULL);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		if (i % 4 == 0)
			sample(s, JOB, MAIN, t.at + 1, code);
		spend(&t, LEDGER_RUN, MS(4));
		s->events[s->event_count++] = (struct event){.start.ns = t.at,
			.dur_ns = MS(16),
			.source = SOURCE_CUDA,
			.op = CUDA_STREAM_SYNC,
			.pid = JOB,
			.tid = MAIN,
			.stack_hash = wait};
		spend(&t, LEDGER_GPU_WAIT, MS(16));
		mark(&t, MARK_WAIT);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->ordinary_ns[ACCOUNT_HOST], MS(4));
	assert_int_equal(a->ordinary_ns[ACCOUNT_GPU], MS(16));
	assert_int_equal(a->entries[0].stack_hash, wait);
	assert_int_equal(a->entries[1].stack_hash, code);
}

/* Host code that takes longer and longer is a drift, not two classes; it has its line all the same. */
static void test_a_drift_has_its_line(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t line = line_stack(s, "/home/u/train.py", 71, NULL);
	const struct step_account *a;

	for (int i = 0; i < 200; i++) {
		mark(&t, MARK_OPTIMIZER);
		sample(s, JOB, MAIN, t.at + 1, line);
		ordinary(&t);
		spend(&t, LEDGER_RUN, US(60 * i));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_true(a->is_drift);
	assert_true(a->drift_from_ns > MS(20) && a->drift_from_ns < MS(22));
	assert_true(a->drift_to_ns > MS(30) && a->drift_to_ns < MS(32));
	assert_int_equal(a->ordinary_steps, 50);
	assert_int_equal(a->slow_steps, 150);
	assert_int_equal(a->period_steps, 0);
	assert_int_equal(a->entries[0].line, ACCOUNT_HOST);
	assert_int_equal(a->entries[0].stack_hash, line);
}

/* main waits 40 ms in @symbol for another thread of its process, which computes meanwhile: on which line, and whose that is. */
static struct account_entry computed_while(const char *symbol)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "decode", LEDGER_T0);
	struct ledger_thread other = thread_at(s, JOB, PIN, "metrics", LEDGER_T0);
	uint64_t held = line_stack(s, "/home/u/metrics.py", 20, NULL);
	uint64_t wait = line_stack(s, "/home/u/train.py", 71, symbol);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		uint64_t ns = i < 50 ? 0 : MS(40);

		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (!ns)
			continue;
		spend(&other, LEDGER_RUN, (uint64_t)(t.at - other.at) + ns - US(10));
		sample(s, JOB, PIN, t.at + (int64_t)MS(1), held);
		mark(&other, MARK_TICK);
		stay(&t, LEDGER_LOCK, ns, US(10), JOB, PIN)->stack_hash = wait;
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 50);
	assert_int_equal(a->entries[0].owner, OWNER_THREAD);
	assert_int_equal(a->entries[0].stack_hash, held);
	return a->entries[0];
}

static void test_what_is_done_under_a_lock(void **state)
{
	struct account_entry e = computed_while("pthread_mutex_lock");

	assert_int_equal(e.line, ACCOUNT_LOCK);
	assert_int_equal(e.culprit_pid, JOB);
	assert_string_equal(e.culprit, "metrics");
	e = computed_while("pthread_cond_wait");
	assert_int_equal(e.line, ACCOUNT_HOST);
	assert_string_equal(e.culprit, "");
}

/* main <- pin thread <- worker, which computes: the loader's own line is named. */
static void test_a_starved_loader_is_followed(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread pin = thread_at(s, JOB, PIN, "pt_data_pin", LEDGER_T0);
	struct ledger_thread worker = thread_at(s, WORKER, WORKER, "pt_data_worker", LEDGER_T0);
	uint64_t item = line_stack(s, "/home/u/data.py", 33, NULL);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		uint64_t wait = i < 50 ? 0 : MS(40);

		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (!wait)
			continue;
		stay(&pin, LEDGER_PIPE, (uint64_t)(t.at - pin.at) + wait - US(100), 0, WORKER,
			WORKER);
		spend(&pin, LEDGER_RUN, US(100));
		spend(&worker, LEDGER_RUN, (uint64_t)(t.at - worker.at) + wait - US(100));
		sample(s, WORKER, WORKER, t.at + (int64_t)MS(1), item);
		mark(&worker, MARK_TICK);
		stay(&t, LEDGER_LOCK, wait, US(10), JOB, PIN);
	}
	mark(&t, MARK_OPTIMIZER);
	mark(&pin, MARK_STOP);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 50);
	assert_int_equal(a->entries[0].line, ACCOUNT_HOST);
	assert_int_equal(a->entries[0].owner, OWNER_LOADER);
	assert_int_equal(a->entries[0].pid, WORKER);
	assert_int_equal(a->entries[0].stack_hash, item);
	assert_in_range(a->slow_by[OWNER_LOADER][ACCOUNT_HOST], MS(39), MS(40));
	assert_in_range(a->slow_by[OWNER_THREAD][ACCOUNT_HOST], US(90), US(110));
	assert_int_equal(a->slow_by[OWNER_SELF][ACCOUNT_CPU], US(10));
	assert_int_equal(a->total_ns[ACCOUNT_LOCK], 0);
}

/* A thread of a pool waits for its next task, which another thread gives it once a process has answered that: where the
 * program waits is in the second. */
static void test_the_first_place_on_the_way(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread loop = thread_at(s, JOB, PIN, "python3", LEDGER_T0);
	struct ledger_thread names = thread_at(s, WORKER, WORKER, "python3", LEDGER_T0);
	uint64_t pool = line_stack(s, "/usr/lib/python3.11/concurrent/futures/thread.py", 81, NULL);
	uint64_t here = line_stack(s, "/home/u/serve.py", 30, "recv");
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		uint64_t wait = i < 50 ? 0 : MS(40);

		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (!wait)
			continue;
		stay(&loop, LEDGER_SOCKET, (uint64_t)(t.at - loop.at) + wait - US(100), 0, WORKER,
			WORKER)
			->stack_hash = here;
		spend(&loop, LEDGER_RUN, US(100));
		spend(&names, LEDGER_RUN, (uint64_t)(t.at - names.at) + wait - US(100));
		mark(&names, MARK_TICK);
		stay(&t, LEDGER_LOCK, wait, 0, JOB, PIN)->stack_hash = pool;
	}
	mark(&t, MARK_OPTIMIZER);
	mark(&loop, MARK_STOP);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 50);
	assert_int_equal(a->entries[0].line, ACCOUNT_HOST);
	assert_int_equal(a->entries[0].owner, OWNER_PROCESS);
	assert_int_equal(a->entries[0].wait_hash, here);
}

/* A program that is started in each step of the second half, and waited for: many that came and went are one,
 * and no data loader. */
static void test_processes_that_come_and_go(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t here = line_stack(s, "/home/u/train.py", 17, "waitpid");
	const struct step_account *a;

	for (uint32_t i = 0; i < 100; i++) {
		struct ledger_thread tool =
			thread_at(s, WORKER + i, WORKER + i, "nvidia-smi", t.at + (int64_t)MS(20));

		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i < 50)
			continue;
		spend(&tool, LEDGER_RUN, MS(30));
		mark(&tool, MARK_EXIT);
		stay(&t, LEDGER_CHILD, MS(30), 0, WORKER + i, WORKER + i)->stack_hash = here;
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 50);
	assert_int_equal(a->entries[0].line, ACCOUNT_HOST);
	assert_int_equal(a->entries[0].owner, OWNER_PROCESS);
	assert_int_equal(a->entries[0].pid, 0);
	assert_string_equal(a->entries[0].comm, "nvidia-smi");
	assert_int_equal(a->entries[0].wait_hash, here);
	assert_int_equal(a->entries[0].slow_ns, MS(30));
}

static void forked(struct ledger_scene *s, uint32_t child, int64_t at)
{
	s->events[s->event_count++] = (struct event){.start.ns = at,
		.pid = JOB,
		.tid = MAIN,
		.source = SOURCE_HOST,
		.op = HOST_PROCESS_FORK,
		.peer_pid = child};
}

/* Workers that are made anew every tenth step: their first batch is sent by a thread that they make only then. Who
 * waits for it has waited for the worker, and for the main thread before there was one. The old ones are waited for
 * until they are gone, which is later than their last row. */
static void test_workers_that_are_made_anew(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread pin = thread_at(s, JOB, PIN, "pt_data_pin", LEDGER_T0);
	uint64_t load = line_stack(s, "/home/u/data.py", 40, NULL);
	const struct step_account *a;

	for (uint32_t i = 0; i < 100; i++) {
		uint32_t pid = WORKER + 2 * i;
		struct ledger_thread worker, feeder, old;

		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i % 10 != 9)
			continue;
		old = thread_at(s, 5000 + i, 5000 + i, "pt_data_worker", LEDGER_T0);
		spend(&old, LEDGER_POLL, (uint64_t)(t.at - old.at));
		mark(&old, MARK_EXIT);
		stay(&t, LEDGER_CHILD, MS(5), 0, 5000 + i, 5000 + i);
		stay(&pin, LEDGER_LOCK, (uint64_t)(t.at - pin.at), 0, JOB, MAIN);
		spend(&t, LEDGER_RUN, MS(3));
		mark(&t, MARK_TICK);
		forked(s, pid, t.at);
		worker = thread_at(s, pid, pid, "pt_data_worker", t.at);
		spend(&worker, LEDGER_RUN, MS(50));
		sample(s, pid, pid, t.at + (int64_t)MS(1), load);
		mark(&worker, MARK_TICK);
		feeder = thread_at(s, pid, pid + 1, "pt_data_worker", worker.at);
		spend(&feeder, LEDGER_RUN, MS(1));
		mark(&feeder, MARK_TICK);
		stay(&pin, LEDGER_POLL, (uint64_t)(feeder.at - pin.at), 0, pid, pid + 1);
		stay(&t, LEDGER_LOCK, (uint64_t)(pin.at - t.at), 0, JOB, PIN);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 10);
	assert_int_equal(a->total_ns[ACCOUNT_UNKNOWN], 0);
	assert_int_equal(a->entries[0].line, ACCOUNT_HOST);
	assert_int_equal(a->entries[0].owner, OWNER_LOADER);
	assert_int_equal(a->entries[0].pid, 0); /* one after the other */
	assert_int_equal(a->entries[0].stack_hash, load);
	assert_in_range(a->entries[0].slow_ns, MS(50), MS(56));
	assert_int_equal(a->slow_by[OWNER_LOADER][ACCOUNT_HOST], MS(56));
}

/* The thread of a pool, which feeds the GPU, waits for the event loop, and that asks a service in every step of the second half:
 * the line that asks is what to look at, not the pool's. */
static void test_who_asks_another_process(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "gpu_0", LEDGER_T0);
	struct ledger_thread loop = thread_at(s, JOB, AUTOGRAD, "python3", LEDGER_T0);
	struct ledger_thread service = thread_at(s, WORKER, WORKER, "resolver", LEDGER_T0);
	uint64_t pool = line_stack(s, "/usr/lib/python3.11/concurrent/futures/thread.py", 81, NULL);
	uint64_t asks = line_stack(s, "/home/u/serve.py", 30, "recv");
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i < 50)
			continue;
		spend(&loop, LEDGER_RUN, (uint64_t)(t.at - loop.at));
		stay(&loop, LEDGER_SOCKET, MS(30), 0, WORKER, WORKER)->stack_hash = asks;
		spend(&service, LEDGER_RUN, (uint64_t)(loop.at - service.at));
		mark(&service, MARK_TICK);
		stay(&t, LEDGER_LOCK, MS(30), 0, JOB, AUTOGRAD)->stack_hash = pool;
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->entries[0].owner, OWNER_PROCESS);
	assert_int_equal(a->entries[0].pid, WORKER);
	assert_int_equal(a->entries[0].wait_hash, asks);
}

/* Of a process that is not followed it is known that it was waited for, and where. */
static void test_a_process_that_is_not_followed(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t here = line_stack(s, "/home/u/train.py", 27, "flock");
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i >= 50)
			stay(&t, LEDGER_LOCK, MS(30), 0, WORKER, WORKER)->stack_hash = here;
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->entries[0].line, ACCOUNT_LOCK);
	assert_int_equal(a->entries[0].owner, OWNER_PROCESS);
	assert_int_equal(a->entries[0].pid, WORKER);
	assert_int_equal(a->entries[0].wait_hash, here);
	assert_int_equal(a->slow_by[OWNER_PROCESS][ACCOUNT_LOCK], MS(30));
}

/* Stopped in a wait for the GPU, and let go by a process. */
static void test_a_stop_is_not_the_gpu(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		if (i >= 50) {
			spend(&t, LEDGER_GPU_WAIT, MS(1));
			stay(&t, LEDGER_STOPPED, MS(60), 0, WORKER, WORKER);
		}
		ordinary(&t);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->slow_ns[ACCOUNT_STOPPED], MS(60));
	assert_int_equal(a->slow_ns[ACCOUNT_GPU], MS(4));
	assert_int_equal(a->entries[0].line, ACCOUNT_STOPPED);
	assert_int_equal(a->entries[0].owner, OWNER_SELF);
	assert_int_equal(a->entries[0].culprit_pid, WORKER);
}

/* Timers wake the waiter every 5 ms; the holder is who woke it at last. */
static void test_the_interpreter_lock_has_a_holder(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t gil = line_stack(s, "/home/u/train.py", 20, "take_gil");
	uint64_t hog = line_stack(s, "/home/u/hog.py", 5, NULL);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		for (int k = 0; i >= 60 && k < 3; k++) {
			sample(s, JOB, HOLDER, t.at + (int64_t)MS(1), hog);
			stay(&t, LEDGER_LOCK, MS(5), 0, JOB, k == 2 ? HOLDER : 0)->stack_hash = gil;
			spend(&t, LEDGER_RUN, k < 2 ? US(20) : 0);
		}
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 40);
	assert_int_equal(a->slow_ns[ACCOUNT_GIL], MS(15));
	assert_int_equal(a->entries[0].line, ACCOUNT_GIL);
	assert_string_equal(a->entries[0].culprit, "t103");
	assert_int_equal(a->entries[0].stack_hash, hog);
}

/* 10 ms of each slow step are stays too short for rows; the sums of a second name who ended @named_ms of 10. */
static const struct step_account *short_waits(
	struct ledger_scene *s, uint64_t named_ms, uint64_t stack, struct step_report *report)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t in_sum = 0;
	int64_t since = 0;

	for (int i = 0; i < 200; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i < 60)
			continue;
		since = since ? since : t.at;
		spend(&t, LEDGER_LOCK, MS(10));
		in_sum += MS(named_ms);
		mark(&t, MARK_TICK);
		if (t.at - since < (int64_t)NS_PER_S && i < 199)
			continue;
		short_stays(s, MAIN, t.at, (uint64_t)(t.at - since), LEDGER_LOCK, in_sum, HOLDER,
			stack);
		since = t.at;
		in_sum = 0;
	}
	mark(&t, MARK_OPTIMIZER);
	return account(s, report);
}

static void test_short_stays_have_a_culprit(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	const struct step_account *a = short_waits(s, 10, 0, &report);

	assert_int_equal(a->slow_steps, 140);
	assert_int_equal(grown(a, ACCOUNT_LOCK), MS(10));
	assert_string_equal(a->entries[0].culprit, "t103");
	assert_int_equal(a->entries[0].slow_ns, MS(10));
}

/* What the sums do not cover is nobody's. */
static void test_short_stays_in_part(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	const struct step_account *a = short_waits(s, 6, 0, &report);

	assert_int_equal(grown(a, ACCOUNT_LOCK), MS(10));
	assert_string_equal(a->entries[0].culprit, "t103");
	assert_in_range(a->entries[0].slow_ns, US(5900), US(6100));
	assert_string_equal(a->entries[1].culprit, "");
	assert_in_range(a->entries[1].slow_ns, US(3900), US(4100));
}

static void test_short_stays_for_the_interpreter_lock(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	uint64_t gil = line_stack(s, "/home/u/train.py", 20, "take_gil");
	uint64_t hog = line_stack(s, "/home/u/log.py", 5, NULL);
	const struct step_account *a;

	for (int i = 0; i < 500; i++)
		sample(s, JOB, HOLDER, LEDGER_T0 + i * (int64_t)MS(10), hog);
	a = short_waits(s, 10, gil, &report);
	assert_int_equal(grown(a, ACCOUNT_GIL), MS(10));
	assert_int_equal(a->entries[0].line, ACCOUNT_GIL);
	assert_string_equal(a->entries[0].culprit, "t103");
	assert_int_equal(a->entries[0].stack_hash, hog);
}

/* A time limit ended them, as it does where the interpreter's lock is asked for again and again. Who holds it is seen on
 * a CPU meanwhile. */
static void test_short_stays_that_a_time_limit_ended(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0}, again = {0};
	uint64_t gil = line_stack(s, "/home/u/train.py", 20, "take_gil");
	uint64_t hog = line_stack(s, "/home/u/log.py", 5, NULL);
	struct ledger_thread holder = thread_at(s, JOB, HOLDER, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 500; i++)
		sample(s, JOB, HOLDER, LEDGER_T0 + i * (int64_t)MS(10), hog);
	spend(&holder, LEDGER_RUN, MS(5000));
	mark(&holder, MARK_TICK);
	short_waits(s, 10, gil, &again);
	for (size_t i = 0; i < s->event_count; i++) {
		struct event *e = &s->events[i];

		if (e->op != HOST_SHORT_STAYS)
			continue;
		e->stream = e->peer_pid = 0;
		e->peer_comm[0] = 0;
	}
	a = account(s, &report);
	assert_int_equal(grown(a, ACCOUNT_GIL), MS(10));
	assert_int_equal(a->entries[0].stack_hash, hog);
}

/* main <- pin thread <- the worker's thread that passes files on, which waits for the worker's own Python: in
 * stays of which only each third has a row (@gil is their stack), or not even that (@sums). */
static const struct step_account *busy_worker(
	struct ledger_scene *s, uint64_t gil, bool sums, struct step_report *report)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread pin = thread_at(s, JOB, PIN, "pt_data_pin", LEDGER_T0);
	struct ledger_thread passer = thread_at(s, WORKER, WORKER + 1, "pt_data_worker", LEDGER_T0);
	struct ledger_thread worker = thread_at(s, WORKER, WORKER, "pt_data_worker", LEDGER_T0);
	uint64_t item = line_stack(s, "/home/u/data.py", 33, NULL);

	for (int i = 0; i < 100; i++) {
		uint64_t wait = i < 50 ? 0 : MS(45);

		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (!wait)
			continue;
		stay(&pin, LEDGER_SOCKET, (uint64_t)(t.at - pin.at) + wait, 0, WORKER, WORKER + 1);
		spend(&worker, LEDGER_RUN, (uint64_t)(t.at - worker.at) + wait);
		for (int k = 0; k < 4; k++)
			sample(s, WORKER, WORKER, t.at + k * (int64_t)MS(10), item);
		mark(&worker, MARK_TICK);
		spend(&passer, LEDGER_LOCK, (uint64_t)(t.at - passer.at));
		mark(&passer, MARK_TICK);
		for (int k = 0; k < 10; k++) {
			spend(&passer, LEDGER_LOCK, MS(3));
			if (sums)
				spend(&passer, LEDGER_LOCK, US(1500));
			else
				stay(&passer, LEDGER_LOCK, US(1500), 0, WORKER, WORKER)
					->stack_hash = gil;
		}
		if (sums) {
			struct event *e;

			short_stays(s, WORKER + 1, passer.at, wait, LEDGER_LOCK, wait, WORKER, gil);
			e = &s->events[s->event_count - 1];
			e->pid = e->peer_pid = WORKER;
			mark(&passer, MARK_TICK);
		}
		stay(&t, LEDGER_LOCK, wait, 0, JOB, PIN);
	}
	mark(&t, MARK_OPTIMIZER);
	return account(s, report);
}

static void check_busy_worker(const struct step_account *a)
{
	assert_int_equal(a->slow_steps, 50);
	assert_int_equal(a->entries[0].line, ACCOUNT_HOST);
	assert_int_equal(a->entries[0].owner, OWNER_LOADER);
	assert_string_equal(a->entries[0].comm, "pt_data_worker");
	assert_int_equal(a->slow_by[OWNER_LOADER][ACCOUNT_HOST], MS(45));
	assert_int_equal(a->total_ns[ACCOUNT_LOCK], 0);
	assert_int_equal(a->total_ns[ACCOUNT_GIL], 0);
}

static void test_a_worker_that_waits_for_itself(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};

	check_busy_worker(busy_worker(s, 0, false, &report));
}

static void test_a_worker_that_waits_for_its_own_python(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	uint64_t gil = line_stack(s, "/usr/lib/python3/socket.py", 20, "take_gil");

	check_busy_worker(busy_worker(s, gil, false, &report));
}

static void test_a_worker_whose_short_waits_are_summed(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	uint64_t gil = line_stack(s, "/usr/lib/python3/socket.py", 20, "take_gil");

	check_busy_worker(busy_worker(s, gil, true, &report));
}

/* The sums cover six of ten milliseconds, all for the interpreter's lock: so is the rest. */
static void test_short_stays_for_the_interpreter_lock_in_part(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	uint64_t gil = line_stack(s, "/home/u/train.py", 20, "take_gil");
	const struct step_account *a = short_waits(s, 6, gil, &report);

	assert_int_equal(grown(a, ACCOUNT_GIL), MS(10));
	assert_int_equal(grown(a, ACCOUNT_LOCK), 0);
}

/* Each slow step has a stay of @stay_ns without a stack; what else its waker kept the thread waiting for, in
 * short stays, is known by @stack. */
static const struct step_account *long_waits(
	struct ledger_scene *s, uint64_t stay_ns, uint64_t stack, struct step_report *report)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	int64_t since = 0;

	for (int i = 0; i < 120; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i < 60)
			continue;
		since = since ? since : t.at;
		stay(&t, LEDGER_LOCK, stay_ns, 0, JOB, HOLDER);
		if (t.at - since < (int64_t)NS_PER_S && i < 119)
			continue;
		short_stays(
			s, MAIN, t.at, (uint64_t)(t.at - since), LEDGER_LOCK, MS(2), HOLDER, stack);
		since = t.at;
	}
	mark(&t, MARK_OPTIMIZER);
	return account(s, report);
}

static void test_a_stay_without_a_stack_is_as_its_wakers_others(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	uint64_t gil = line_stack(s, "/home/u/train.py", 20, "take_gil");
	const struct step_account *a = long_waits(s, MS(5), gil, &report);

	assert_int_equal(grown(a, ACCOUNT_GIL), MS(5));
	assert_string_equal(a->entries[0].culprit, "t103");
}

static void test_a_stay_without_a_stack_is_no_interpreter_lock(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report too_long = {0}, other = {0};
	uint64_t gil = line_stack(s, "/home/u/train.py", 20, "take_gil");
	_cleanup_free_ struct ledger_scene *s2 = calloc(1, sizeof(*s2));
	uint64_t queue = line_stack(s2, "/home/u/train.py", 20, "pthread_cond_wait");

	assert_int_equal(grown(long_waits(s, MS(8), gil, &too_long), ACCOUNT_GIL), 0);
	assert_int_equal(grown(long_waits(s2, MS(5), queue, &other), ACCOUNT_GIL), 0);
}

static void test_rivals_for_the_cpu_are_named(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i < 30)
			continue;
		rival(s, MAIN, t.at, MS(6), 900, "hog");
		spend(&t, LEDGER_CPU_WAIT, MS(6));
		rival(s, MAIN, t.at, MS(4), 901, "backup");
		spend(&t, LEDGER_CPU_WAIT, MS(4));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->slow_steps, 70);
	assert_int_equal(grown(a, ACCOUNT_CPU), MS(10));
	assert_string_equal(a->entries[0].culprit, "hog");
	assert_int_equal(a->entries[0].slow_ns, MS(6));
	assert_string_equal(a->entries[1].culprit, "backup");
	assert_int_equal(a->entries[1].slow_ns, MS(4));
}

/* A thread of @pid has the CPU in slow steps; another one of that process is sampled more often. */
static const struct step_account *rival_of(
	struct ledger_scene *s, uint32_t pid, uint64_t ran, struct step_report *report)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread rival_thread = thread_at(s, pid, HOLDER, "prefetch", LEDGER_T0);
	struct ledger_thread other = thread_at(s, pid, PIN, "pt_data_pin", LEDGER_T0);
	uint64_t elsewhere = line_stack(s, "/home/u/pin.py", 9, NULL);

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		if (i < 30)
			continue;
		rival(s, MAIN, t.at, MS(10), pid, "prefetch");
		sample(s, pid, HOLDER, t.at + (int64_t)MS(3), ran);
		for (int k = 0; k < 3; k++)
			sample(s, pid, PIN, t.at + (int64_t)MS(k + 1), elsewhere);
		spend(&t, LEDGER_CPU_WAIT, MS(10));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	spend(&rival_thread, LEDGER_RUN, (uint64_t)(t.at - rival_thread.at));
	mark(&rival_thread, MARK_STOP);
	spend(&other, LEDGER_RUN, (uint64_t)(t.at - other.at));
	mark(&other, MARK_STOP);
	return account(s, report);
}

static void check_rival(uint32_t pid)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	uint64_t decode = line_stack(s, "/home/u/decode.py", 44, NULL);
	const struct step_account *a = rival_of(s, pid, decode, &report);

	assert_int_equal(a->slow_steps, 70);
	assert_int_equal(a->entries[0].line, ACCOUNT_CPU);
	assert_string_equal(a->entries[0].culprit, "prefetch");
	assert_int_equal(a->entries[0].culprit_pid, pid);
	assert_int_equal(a->entries[0].stack_hash, decode);
	assert_int_equal(a->entries[0].slow_ns, MS(10));
}

/* A rival whose thread is followed has a line, where it was sampled. */
static void test_a_followed_rival_has_its_line(void **state)
{
	check_rival(JOB);
	check_rival(WORKER);
}

/* A step in which the loader's batches are many and no backward pass is: an evaluation. */
static void test_an_evaluation_is_no_slow_step(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 120; i++) {
		mark(&t, MARK_OPTIMIZER);
		for (int k = 0; i % 30 == 29 && k < 20; k++) {
			spend(&t, LEDGER_RUN, MS(6));
			mark(&t, MARK_LOADER);
		}
		spend(&t, LEDGER_RUN, US(10));
		mark(&t, MARK_LOADER);
		spend(&t, LEDGER_RUN, MS(1));
		mark(&t, MARK_BACKWARD);
		ordinary(&t);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->other_steps, 4);
	assert_int_equal(a->slow_steps, 0);
}

/* The GPU is waited for in every fourth step: that one is not slow. */
static void test_a_wait_in_every_fourth_step(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 160; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(6));
		spend(&t, LEDGER_LAUNCH, MS(4));
		if (i % 4 == 3) {
			spend(&t, LEDGER_GPU_WAIT, MS(40));
			mark(&t, MARK_WAIT);
		}
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->group, 4);
	assert_int_equal(a->slow_steps, 0);
	assert_int_equal(a->ordinary_step_ns, MS(20));
}

/* One bell of lengths, however wide, has no slow steps. */
static void test_noise_is_not_slow(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t seed = 1;

	for (int i = 0; i < 400; i++) {
		uint64_t sum = 0;

		for (int k = 0; k < 8; k++) {
			seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			sum += (seed >> 33) % 4000;
		}
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(2) + US(sum));
		mark(&t, MARK_TICK);
	}
	mark(&t, MARK_OPTIMIZER);
	assert_int_equal(account(s, &report)->slow_steps, 0);
}

/* Every second stretch of ten steps takes a quarter longer; @known: the tracer probed launches in it. */
static void play_stretches(struct ledger_scene *s, bool known)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < 200; i++) {
		bool longer = i / 10 % 2;

		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, (longer ? MS(25) : MS(20)) + US(i % 7 * 100));
		t.row.launches_off = known && !longer;
	}
	mark(&t, MARK_OPTIMIZER);
}

static void test_what_the_tracer_costs_is_not_slow(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};

	play_stretches(s, true);
	assert_int_equal(account(s, &report)->slow_steps, 0);
}

static void test_what_it_does_not_cost_is(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};

	play_stretches(s, false);
	assert_int_equal(account(s, &report)->slow_steps, 100);
}

/* Woken from a wait for the GPU, then 10 ms without a CPU, then @more_ns of waiting for the GPU. */
static void play_late_wakeups(struct ledger_scene *s, uint64_t more_ns)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_RUN, MS(5));
		spend(&t, LEDGER_GPU_WAIT, MS(5));
		if (i >= 50) {
			spend(&t, LEDGER_CPU_WAIT_GPU, MS(10));
			t.row.stay_line = LEDGER_GPU_WAIT;
			t.row.stay_ns = MS(15);
			t.row.stay_wait_ns = MS(10);
			t.row.waker = WAKER_INTERRUPT;
			mark(&t, MARK_STAY);
		}
		spend(&t, LEDGER_GPU_WAIT, more_ns);
		mark(&t, MARK_WAIT);
	}
	mark(&t, MARK_OPTIMIZER);
}

static void test_a_late_return_is_the_cpus(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	const struct step_account *a;

	play_late_wakeups(s, US(10));
	a = account(s, &report);
	assert_int_equal(grown(a, ACCOUNT_CPU), MS(10));
	assert_int_equal(grown(a, ACCOUNT_GPU), 0);
}

static void test_a_gpu_that_is_not_done_is_waited_for(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	const struct step_account *a;

	play_late_wakeups(s, MS(2));
	a = account(s, &report);
	assert_int_equal(grown(a, ACCOUNT_CPU), 0);
	assert_int_equal(grown(a, ACCOUNT_GPU), MS(10));
}

/* What no row covers is not known, and nothing else. */
static void test_lost_rows_are_unknown(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 100; i++) {
		mark(&t, MARK_OPTIMIZER);
		ordinary(&t);
		spend(&t, LEDGER_RUN, MS(5));
		mark(&t, MARK_TICK);
		s->count--; /* it did not arrive */
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->ordinary_ns[ACCOUNT_UNKNOWN], MS(5));
	assert_int_equal(a->ordinary_ns[ACCOUNT_HOST], MS(12));
	assert_true(a->unknown_reason[0]);
}

/* Two threads that wait for each other, and a chain as deep as they come, end. */
static void test_circles_end(void **state)
{
	SCENE;
	_cleanup_(step_report_done) struct step_report report = {0};
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	struct ledger_thread u = thread_at(s, JOB, AUTOGRAD, "pt_autograd_0", LEDGER_T0);
	const struct step_account *a;

	for (int i = 0; i < 50; i++) {
		mark(&t, MARK_OPTIMIZER);
		spend(&t, LEDGER_LAUNCH, MS(1));
		stay(&t, LEDGER_LOCK, MS(9), 0, JOB, AUTOGRAD);
		stay(&u, LEDGER_LOCK, MS(10), 0, JOB, MAIN);
	}
	mark(&t, MARK_OPTIMIZER);
	a = account(s, &report);
	assert_int_equal(a->ordinary_ns[ACCOUNT_LOCK], MS(9));
}

/* Who is told that the GPU is done and has no CPU waits for that, also where the wait's end has no row of its own; who then
 * waits on for the GPU has lost nothing. */
static void test_no_cpu_at_the_end_of_a_gpu_wait(void **state)
{
	for (int goes_on = 0; goes_on < 2; goes_on++) {
		SCENE;
		_cleanup_(step_report_done) struct step_report report = {0};
		struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
		const struct step_account *a;

		for (int i = 0; i < 50; i++) {
			mark(&t, MARK_OPTIMIZER);
			spend(&t, LEDGER_LAUNCH, MS(1));
			spend(&t, LEDGER_GPU_WAIT, MS(3));
			spend(&t, LEDGER_CPU_WAIT_GPU, MS(2));
			t.row.stay_line = LEDGER_GPU_WAIT;
			t.row.stay_ns = MS(5);
			t.row.stay_wait_ns = MS(2);
			mark(&t, MARK_STAY);
			if (goes_on)
				spend(&t, LEDGER_GPU_WAIT, MS(1));
			else
				t.row.waits = 1;
			spend(&t, LEDGER_RUN, MS(1));
		}
		mark(&t, MARK_OPTIMIZER);
		a = account(s, &report);
		assert_int_equal(a->ordinary_ns[ACCOUNT_CPU], goes_on ? 0 : MS(2));
		assert_int_equal(a->ordinary_ns[ACCOUNT_GPU], goes_on ? MS(6) : MS(3));
	}
}

/* A wait on a lock until a time of its own choice is a sleep, whatever the C library's function is called (most are
 * stripped); what does not end it is not asked. A stay of which nobody knows what it is may be a wait for anything. */
static void test_a_wait_with_a_time_limit_is_a_sleep(void **state)
{
	static const struct {
		enum wire_ledger_line line;
		bool by_timer, is_asleep, by_clock;
	} rows[] = {
		{LEDGER_SLEEP, true, true, true},
		{LEDGER_LOCK, true, true, true},
		{LEDGER_LOCK, false, false, false},
		{LEDGER_BLOCKED, true, true, false},
	};

	for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
		SCENE;
		_cleanup_(step_report_done) struct step_report report = {0};
		struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
		uint64_t here = line_stack(s, "/home/u/serve.py", 20, NULL);
		const struct step_account *a;

		for (int i = 0; i < 50; i++) {
			struct ledger_row *r;

			mark(&t, MARK_OPTIMIZER);
			spend(&t, LEDGER_LAUNCH, MS(1));
			r = stay(&t, rows[k].line, MS(9), 0, 0, 0);
			r->stack_hash = here;
			r->waker = rows[k].by_timer ? WAKER_TIMER : WAKER_NOBODY;
		}
		mark(&t, MARK_OPTIMIZER);
		a = account(s, &report);
		assert_int_equal(
			a->ordinary_ns[rows[k].is_asleep ? ACCOUNT_ASLEEP : ACCOUNT_LOCK], MS(9));
		assert_int_equal(a->entries[0].by_clock, rows[k].by_clock);
	}
}

/* The longer a copy takes, the shorter the wait after it: then it is hidden. If they are one call, it is only told as
 * one or the other. */
static void test_a_copy_that_waits_hides_nothing(void **state)
{
	for (int is_one_call = 0; is_one_call < 2; is_one_call++) {
		SCENE;
		_cleanup_(step_report_done) struct step_report report = {0};
		struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
		const struct step_account *a;
		double hidden;

		for (uint64_t i = 0; i < 100; i++) {
			uint64_t copied = MS(6) + i * 7919 % 13 * US(300);

			mark(&t, MARK_OPTIMIZER);
			spend(&t, LEDGER_LAUNCH, MS(1));
			spend(&t, LEDGER_COPY, copied);
			spend(&t, LEDGER_GPU_WAIT, MS(12) - copied);
			t.row.copy_bytes = 64u << 20;
			t.row.waits = is_one_call ? 0 : 1;
			mark(&t, is_one_call ? MARK_READ : MARK_WAIT);
		}
		mark(&t, MARK_OPTIMIZER);
		a = account(s, &report);
		assert_non_null(a);
		hidden = a->hidden_by[OWNER_SELF][ACCOUNT_COPY];
		assert_true(is_one_call ? hidden == 0 : hidden > 0.9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_plain_run),
		cmocka_unit_test(test_a_copy_that_waits_hides_nothing),
		cmocka_unit_test(test_a_copy_that_waits_across_rows),
		cmocka_unit_test(test_copies_that_sleep),
		cmocka_unit_test(test_a_thread_that_does_not_launch),
		cmocka_unit_test(test_host_code_has_its_line),
		cmocka_unit_test(test_host_code_that_no_sample_shows),
		cmocka_unit_test(test_a_drift_has_its_line),
		cmocka_unit_test(test_what_is_done_under_a_lock),
		cmocka_unit_test(test_a_starved_loader_is_followed),
		cmocka_unit_test(test_the_first_place_on_the_way),
		cmocka_unit_test(test_processes_that_come_and_go),
		cmocka_unit_test(test_workers_that_are_made_anew),
		cmocka_unit_test(test_who_asks_another_process),
		cmocka_unit_test(test_a_process_that_is_not_followed),
		cmocka_unit_test(test_a_stop_is_not_the_gpu),
		cmocka_unit_test(test_the_interpreter_lock_has_a_holder),
		cmocka_unit_test(test_short_stays_have_a_culprit),
		cmocka_unit_test(test_short_stays_in_part),
		cmocka_unit_test(test_short_stays_for_the_interpreter_lock),
		cmocka_unit_test(test_short_stays_that_a_time_limit_ended),
		cmocka_unit_test(test_short_stays_for_the_interpreter_lock_in_part),
		cmocka_unit_test(test_a_stay_without_a_stack_is_as_its_wakers_others),
		cmocka_unit_test(test_a_stay_without_a_stack_is_no_interpreter_lock),
		cmocka_unit_test(test_a_worker_that_waits_for_itself),
		cmocka_unit_test(test_a_worker_that_waits_for_its_own_python),
		cmocka_unit_test(test_a_worker_whose_short_waits_are_summed),
		cmocka_unit_test(test_rivals_for_the_cpu_are_named),
		cmocka_unit_test(test_a_followed_rival_has_its_line),
		cmocka_unit_test(test_an_evaluation_is_no_slow_step),
		cmocka_unit_test(test_a_wait_in_every_fourth_step),
		cmocka_unit_test(test_noise_is_not_slow),
		cmocka_unit_test(test_no_cpu_at_the_end_of_a_gpu_wait),
		cmocka_unit_test(test_a_wait_with_a_time_limit_is_a_sleep),
		cmocka_unit_test(test_what_the_tracer_costs_is_not_slow),
		cmocka_unit_test(test_what_it_does_not_cost_is),
		cmocka_unit_test(test_a_late_return_is_the_cpus),
		cmocka_unit_test(test_a_gpu_that_is_not_done_is_waited_for),
		cmocka_unit_test(test_lost_rows_are_unknown),
		cmocka_unit_test(test_circles_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
