/* SPDX-License-Identifier: Apache-2.0 */
/* test_whole.c - what every unit loses: time at one place is one cause, and launching is one where nothing else keeps the
 * GPU waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "diagnose/chains/delay.h"
#include "diagnose/chains/delay_weight.h"
#include "diagnose/chains/whole.h"
#include "base/macros.h"

#define MS NS_PER_MS

enum { FSYNC = 1, COPY, FORWARD, POLL, OUTPUT, MUTEX, CONDITION, DECODE, STACKS = DECODE };

static const struct stack_frame fsync_frames[] = {{.symbol = "fsync", .file = "libc.so.6"},
	{.py_file = "/home/u/job.py", .py_func = "note", .py_line = 49}};
static const struct stack_frame copy_frames[] = {
	{.symbol = "at::native::copy_", .file = "libtorch_cpu.so"},
	{.py_file = "/home/u/job.py", .py_func = "gather", .py_line = 41}};
static const struct stack_frame forward_frames[] = {
	{.py_file = "/usr/lib/python3/dist-packages/torch/nn/modules/module.py",
		.py_func = "_call_impl",
		.py_line = 7},
	{.py_file = "/home/u/job.py", .py_func = "forward", .py_line = 27}};
static const struct stack_frame poll_frames[] = {{.symbol = "poll", .file = "libc.so.6"},
	{.py_file = "/home/u/job.py", .py_func = "digest", .py_line = 23}};
static const struct stack_frame output_frames[] = {
	{.symbol = "__GI___libc_write", .file = "write.c", .line = 26},
	{.symbol = "log_line", .file = "log.cpp", .line = 26}};
static const struct stack_frame mutex_frames[] = {
	{.symbol = "futex_wait", .file = "futex-internal.h", .line = 146},
	{.symbol = "__GI___lll_lock_wait", .file = "lowlevellock.c", .line = 49},
	{.symbol = "pthread_mutex_lock", .file = "pthread_mutex_lock.c", .line = 93},
	{.symbol = "std::mutex::lock()", .file = "std_mutex.h", .line = 100},
	{.symbol = "Pool::take()", .file = "pool.cpp", .line = 36}};
static const struct stack_frame condition_frames[] = {
	{.symbol = "futex_wait", .file = "futex-internal.h", .line = 146},
	{.symbol = "pthread_cond_wait", .file = "pthread_cond_wait.c", .line = 618},
	{.symbol = "Pool::take()", .file = "pool.cpp", .line = 38}};
static const struct stack_frame decode_frames[] = {
	{.symbol = "Decoder::bits()", .file = "decoder.cpp", .line = 7},
	{.symbol = "Pool::produce()", .file = "pool.cpp", .line = 27}};
static struct stack stacks[] = {{FSYNC, fsync_frames, 2, ""}, {COPY, copy_frames, 2, ""},
	{FORWARD, forward_frames, 2, ""}, {POLL, poll_frames, 2, ""},
	{OUTPUT, output_frames, 2, ""}, {MUTEX, mutex_frames, 5, ""},
	{CONDITION, condition_frames, 3, ""}, {DECODE, decode_frames, 2, ""}};
static struct stack *items[] = {&stacks[0], &stacks[1], &stacks[2], &stacks[3], &stacks[4],
	&stacks[5], &stacks[6], &stacks[7]};
static const struct stack_list list = {items, STACKS};

static struct gpu_sample readings[8];
static struct recording rec = {.stacks = &list, .gpus = readings, .gpu_count = 8};

/* 100 units of 100 ms; the GPU is busy for @busy percent of them. */
static struct step_account job(int64_t busy)
{
	for (size_t i = 0; i < ARRAY_SIZE(readings); i++)
		readings[i] = (struct gpu_sample){
			.time.ns = (int64_t)(i + 1) * (int64_t)NS_PER_S, .util_gpu_pct = busy};
	return (struct step_account){.pid = 7,
		.steps = 100,
		.ordinary_steps = 100,
		.ordinary_step_ns = 100 * MS,
		.confidence = 1,
		.last.ns = (int64_t)(10 * (uint64_t)NS_PER_S)};
}

static void put(struct step_account *a, enum account_owner owner, enum account_line line,
	uint64_t stack, uint64_t ms)
{
	a->entries[a->entry_count++] = (struct account_entry){.owner = owner,
		.line = line,
		.pid = owner == OWNER_SELF ? 7 : 0,
		.stack_hash = owner == OWNER_SELF ? stack : 0,
		.wait_hash = owner == OWNER_SELF ? 0 : stack,
		.comm = "sha256sum",
		.slow_ns = ms * MS};
	a->ordinary_by[owner][line] += ms * MS;
	a->ordinary_ns[line] += ms * MS;
	a->total_ns[line] += 100 * ms * MS;
}

/* The delay of @kind, in ms of a unit; *ret_waste: whether it is told. */
static uint64_t delay_ms(const struct step_account *a, enum delay_kind kind, bool *ret_waste)
{
	struct step_account whole;
	struct delay_list l;
	uint64_t sum = 0;

	step_account_whole(&rec, a, &whole);
	for (int i = 0; i < ACCOUNT_LINES; i++)
		sum += whole.ordinary_ns[i];
	assert_int_equal(sum, a->ordinary_step_ns); /* moved, not made */
	delays_find(&rec, &whole, &l);
	*ret_waste = false;
	for (int i = 0; i < l.count; i++)
		if (l.items[i].kind == kind) {
			*ret_waste = delay_is_waste(&rec, &whole, &l.items[i]);
			return l.items[i].slow_ns / MS;
		}
	return 0;
}

/* Neither the disk nor the code has enough, both together do. */
static void test_one_place_is_one_cause(void **state)
{
	struct step_account a = job(50);
	bool waste;

	put(&a, OWNER_SELF, ACCOUNT_DISK, FSYNC, 12);
	put(&a, OWNER_SELF, ACCOUNT_HOST, FSYNC, 6);
	put(&a, OWNER_SELF, ACCOUNT_HOST, FORWARD, 32);
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 50);
	assert_int_equal(delay_ms(&a, DELAY_BY_DISK, &waste), 18);
	assert_true(waste);
	a.entries[1].stack_hash = 0; /* elsewhere */
	assert_int_equal(delay_ms(&a, DELAY_BY_DISK, &waste), 12);
	assert_false(waste);
}

/* Two hundred keys in each unit, one by one: most of it is the calls that send and receive. Who is asked itself does it for
 * others. */
static void test_one_request_after_another(void **state)
{
	static struct aggregate moved[] = {{.pid = 7, .source = SOURCE_NET, .op = NET_SEND},
		{.pid = 7, .source = SOURCE_NET, .op = NET_RECV}};
	static struct event received = {.source = SOURCE_NET,
		.op = NET_RECV,
		.pid = 7,
		.family = 2,
		.dev = 6379,
		.wait_ns = 2 * MS};
	struct step_account a = job(50);
	bool waste;

	rec.aggregates = moved;
	rec.aggregate_count = ARRAY_SIZE(moved);
	rec.events = &received;
	rec.event_count = 1;
	moved[0].sketch.count = moved[1].sketch.count = 100 * 200;
	put(&a, OWNER_SELF, ACCOUNT_NETWORK, POLL, 12);
	a.entries[0].culprit_pid = 9;
	put(&a, OWNER_SELF, ACCOUNT_HOST, POLL, 20);
	put(&a, OWNER_SELF, ACCOUNT_HOST, FORWARD, 18);
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 50);
	assert_float_equal(answers_of(&rec, &a), 200, 1e-9);
	assert_int_equal(delay_ms(&a, DELAY_BY_NETWORK, &waste), 32);
	assert_true(waste);
	received.dev = 45000;
	assert_int_equal(delay_ms(&a, DELAY_BY_HOST, &waste), 50); /* its code, as at any place */
	received.dev = 6379;
	moved[1].sketch.count = 100 * 2;
	assert_int_equal(delay_ms(&a, DELAY_BY_HOST, &waste), 50);
	rec.aggregate_count = rec.event_count = 0;
}

/* Hundreds of waits in a step, and the GPU idles for 35 % of it: so much they cost. */
static void test_many_small_waits(void **state)
{
	static const struct {
		double waits;
		int64_t busy;
		uint64_t copies, told;
	} cases[] = {{800, 65, 9, 35}, {4, 65, 9, 0}, {800, 95, 9, 0}, {800, 65, 20, 0}};
	bool waste;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct step_account a = job(cases[i].busy);

		a.ordinary_waits = cases[i].waits;
		put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 40);
		put(&a, OWNER_SELF, ACCOUNT_COPY, FORWARD, cases[i].copies);
		put(&a, OWNER_SELF, ACCOUNT_LAUNCH, FORWARD, 60 - cases[i].copies);
		assert_int_equal(delay_ms(&a, DELAY_BY_SYNC, &waste), cases[i].told);
		assert_int_equal(waste, cases[i].told > 0);
	}
}

/* A result is read for each launch, 80 times in a step: while the code between runs the GPU has nothing to do, whether or not
 * anybody reads how busy it is. */
static void test_a_result_for_each_launch(void **state)
{
	static const struct {
		double launches;
		uint64_t copies, gpu, told;
		uint32_t kind;
		int64_t busy; /* 0: not read */
	} cases[] = {
		{80, 80, 78, 22, COPY_D2H, 0},
		{80, 80, 78, 0, COPY_H2D, 0},   /* that waits for nothing */
		{2000, 80, 78, 0, COPY_D2H, 0}, /* 25 launches for each: an ordinary small model */
		{0, 80, 78, 0, COPY_D2H, 0},    /* not counted */
		{10, 80, 78, 0, COPY_D2H, 0},   /* not all of them */
		{40, 40, 78, 0, COPY_D2H, 0},   /* each for 2.5 ms */
		{80, 80, 90, 0, COPY_D2H, 0},   /* GPU-bound */
		{80, 80, 78, 20, COPY_D2H, 80},
		{80, 80, 78, 0, COPY_D2H, 99}, /* another thread gives it work */
	};
	bool waste;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct step_account a = job(cases[i].busy);
		struct ledger_row row = {.pid = 7,
			.tid = 7,
			.start.ns = 1,
			.copies = (uint32_t)(100 * cases[i].copies)};
		struct event copy = {.pid = 7,
			.tid = 7,
			.source = SOURCE_CUDA,
			.op = CUDA_MEMCPY,
			.arg1 = cases[i].kind};

		rec.ledger = &row;
		rec.events = &copy;
		rec.ledger_count = rec.event_count = 1;
		rec.gpu_count = cases[i].busy ? ARRAY_SIZE(readings) : 0;
		a.tid = 7;
		a.ordinary_launches = cases[i].launches;
		put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, cases[i].gpu);
		put(&a, OWNER_SELF, ACCOUNT_HOST, FORWARD, 100 - cases[i].gpu);
		assert_int_equal(delay_ms(&a, DELAY_BY_SYNC, &waste), cases[i].told);
		assert_int_equal(waste, cases[i].told > 0);
	}
	rec.ledger_count = rec.event_count = 0;
	rec.gpu_count = ARRAY_SIZE(readings);
}

static void test_many_small_copies(void **state)
{
	struct step_account a = job(50);
	bool waste;

	put(&a, OWNER_SELF, ACCOUNT_COPY, COPY, 13);
	put(&a, OWNER_SELF, ACCOUNT_HOST, COPY, 8);
	put(&a, OWNER_SELF, ACCOUNT_GPU, COPY, 79);
	assert_int_equal(delay_ms(&a, DELAY_BY_COPY, &waste), 21);
	assert_true(waste);
	a = job(50); /* more of it hands work to the GPU than copies: that is its own */
	put(&a, OWNER_SELF, ACCOUNT_HOST, COPY, 14);
	put(&a, OWNER_SELF, ACCOUNT_COPY, COPY, 7);
	put(&a, OWNER_SELF, ACCOUNT_GPU, COPY, 79);
	assert_int_equal(delay_ms(&a, DELAY_BY_COPY, &waste), 7);
}

/* A process that is started for it, and what the thread does and waits for meanwhile. */
static void test_a_process_and_its_wait(void **state)
{
	struct step_account a = job(20);
	bool waste;

	a.origin = STEP_BY_OPTIMIZER;
	put(&a, OWNER_PROCESS, ACCOUNT_HOST, POLL, 12);
	put(&a, OWNER_SELF, ACCOUNT_NETWORK, POLL, 8);
	put(&a, OWNER_SELF, ACCOUNT_ASLEEP, POLL, 5);
	put(&a, OWNER_SELF, ACCOUNT_HOST, POLL, 5);
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 70);
	assert_int_equal(delay_ms(&a, DELAY_BY_PROCESS, &waste), 30);
	assert_true(waste);
	a.entries[0].pid = 7; /* a worker that lasts is how the program is built */
	assert_int_equal(delay_ms(&a, DELAY_BY_PROCESS, &waste), 30);
	assert_false(waste);
	a = job(20);
	a.origin = STEP_BY_OPTIMIZER;
	put(&a, OWNER_PROCESS, ACCOUNT_HOST, POLL, 55);
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 45);
	a.entries[0].pid = 7;
	assert_int_equal(delay_ms(&a, DELAY_BY_PROCESS, &waste), 55);
	assert_true(waste);
}

/* A log that is not read fast enough: what the reader does and that it does not read are one cause, and a log need not be
 * waited for, as the work of a worker has to. */
static void test_a_full_pipe(void **state)
{
	struct step_account a = job(20);
	bool waste;

	a.origin = STEP_BY_WAIT;
	put(&a, OWNER_PROCESS, ACCOUNT_HOST, OUTPUT, 14);
	a.entries[0].pid = 9;
	put(&a, OWNER_SELF, ACCOUNT_LOCK, OUTPUT, 10);
	a.entries[1].culprit_pid = 9;
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 76);
	assert_int_equal(delay_ms(&a, DELAY_BY_PROCESS, &waste), 24);
	assert_true(waste);
	a.entries[1].culprit_pid = 7; /* a thread of its own */
	assert_int_equal(delay_ms(&a, DELAY_BY_PROCESS, &waste), 14);
	a.entries[1].culprit_pid = 9;
	a.entries[0].wait_hash = a.entries[1].stack_hash = POLL; /* waits for an answer */
	assert_int_equal(delay_ms(&a, DELAY_BY_PROCESS, &waste), 14);
	assert_false(waste);
}

/* What the decoder does while it holds the lock is on the lock's line; while its result is waited for it is work. */
static void test_a_thread_that_holds_a_lock(void **state)
{
	struct step_account a = job(20);
	bool waste;

	a.origin = STEP_BY_WAIT;
	put(&a, OWNER_THREAD, ACCOUNT_LOCK, MUTEX, 25);
	a.entries[0].stack_hash = DECODE;
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 75);
	assert_int_equal(delay_ms(&a, DELAY_BY_LOCK, &waste), 25);
	assert_true(waste);
	a = job(20);
	a.origin = STEP_BY_WAIT;
	put(&a, OWNER_THREAD, ACCOUNT_HOST, CONDITION, 25);
	a.entries[0].stack_hash = DECODE;
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 75);
	assert_int_equal(delay_ms(&a, DELAY_BY_LOCK, &waste), 0);
	assert_int_equal(delay_ms(&a, DELAY_BY_HOST, &waste), 25);
	assert_false(waste);
}

/* What a thread does with its input is its work. */
static void test_input_is_no_code(void **state)
{
	struct step_account a = job(20);
	bool waste;

	a.origin = STEP_BY_OPTIMIZER;
	put(&a, OWNER_SELF, ACCOUNT_NETWORK, POLL, 11);
	put(&a, OWNER_SELF, ACCOUNT_HOST, POLL, 8);
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 81);
	assert_int_equal(delay_ms(&a, DELAY_BY_NETWORK, &waste), 11);
	assert_false(waste);
}

static struct step_account launching(int64_t busy, double launches, double waits)
{
	struct step_account a = job(busy);

	a.ordinary_launches = launches;
	a.ordinary_waits = waits;
	put(&a, OWNER_SELF, ACCOUNT_HOST, FORWARD, 70);
	put(&a, OWNER_SELF, ACCOUNT_LAUNCH, FORWARD, 20);
	put(&a, OWNER_SELF, ACCOUNT_GPU, FORWARD, 10);
	return a;
}

static void test_launch_after_launch(void **state)
{
	struct step_account a = launching(40, 6000, 0);
	bool waste;

	assert_int_equal(delay_ms(&a, DELAY_BY_LAUNCH, &waste), 90);
	assert_true(waste);
	a = launching(40, 1500, 0); /* a usual model, too small for its GPU */
	assert_int_equal(delay_ms(&a, DELAY_BY_LAUNCH, &waste), 20);
	assert_false(waste);
	a = launching(40, 6000, 12); /* tokens that are waited for one by one */
	assert_int_equal(delay_ms(&a, DELAY_BY_LAUNCH, &waste), 20);
	assert_false(waste);
	a = launching(90, 6000, 0); /* the GPU keeps busy all the same */
	assert_int_equal(delay_ms(&a, DELAY_BY_LAUNCH, &waste), 20);
	assert_false(waste);
}

/* Launches that were not probed are counted with the process's calls. */
static void test_launches_by_the_counters(void **state)
{
	struct aggregate sums[] = {
		{.pid = 7, .source = SOURCE_CUDA, .op = CUDA_LAUNCH, .sketch.count = 500000},
		{.pid = 7, .source = SOURCE_HOST, .op = HOST_SCHED_SWITCH, .sketch.count = 9000000},
		{.pid = 8, .source = SOURCE_CUDA, .op = CUDA_LAUNCH, .sketch.count = 9000000},
		{.pid = 7,
			.source = SOURCE_DRIVER,
			.op = DRIVER_LAUNCH,
			.flags = WIRE_NESTED,
			.sketch.count = 9000000}};
	struct step_account a = launching(40, 0, 0), whole;

	rec.aggregates = sums;
	rec.aggregate_count = ARRAY_SIZE(sums);
	step_account_whole(&rec, &a, &whole);
	rec.aggregate_count = 0;
	assert_true(whole.ordinary_launches == 5000);
}

static void test_operations_one_by_one(void **state)
{
	struct step_account a = launching(5, 500, 0);
	bool waste;

	a.executes = 200;
	assert_int_equal(delay_ms(&a, DELAY_BY_LAUNCH, &waste), 90);
	assert_true(waste);
	a.executes = 3;
	assert_int_equal(delay_ms(&a, DELAY_BY_LAUNCH, &waste), 20);
	assert_false(waste);
}

/* Of five calls that free one waits for the GPU: what the others and the allocations take is their own. Where each waits, or
 * the GPU idles, nothing is told apart. */
static void test_allocating_beside_a_busy_gpu(void **state)
{
	struct step_account a = job(97);
	struct aggregate rows[2] = {
		{.pid = 7, .source = SOURCE_CUDA, .op = CUDA_FREE, .bucket.ns = 1},
		{.pid = 7, .source = SOURCE_CUDA, .op = CUDA_MALLOC, .bucket.ns = 1}};
	struct recording of = rec;

	of.aggregates = rows;
	of.aggregate_count = 2;
	for (int i = 0; i < 100; i++) {
		sketch_add(&rows[0].sketch, i % 5 ? 100 * NS_PER_US : 2100 * NS_PER_US, 1);
		sketch_add(&rows[1].sketch, 100 * NS_PER_US, 1);
	}
	assert_float_equal(allocating_own_share(&of, &a), 1 / 3.0, 0.02); /* 10 + 10 of 60 ms */
	a = job(50);
	assert_float_equal(allocating_own_share(&of, &a), 1, 1e-9);
	a = job(97);
	for (int i = 0; i < 400; i++)
		sketch_add(&rows[0].sketch, 2100 * NS_PER_US, 1);
	assert_true(allocating_own_share(&of, &a) < 0.02);
}

/* What the host loses is none of the job's where the GPU has work all the time; who else uses it, and kernels that wait for other
 * ranks, make it look so. */
static void test_a_gpu_that_is_never_idle(void **state)
{
	struct step_account a = job(100);

	assert_true(gpu_is_never_idle(&rec, &a, 0.2));
	readings[3].processes = 2;
	assert_false(gpu_is_never_idle(&rec, &a, 0.2));
	readings[3].processes = 1;
	a.total_ns[ACCOUNT_COLLECTIVE] = 1;
	assert_false(gpu_is_never_idle(&rec, &a, 0.2));
	a = job(90);
	assert_false(gpu_is_never_idle(&rec, &a, 0.2));
	a = job(100);
	a.last.ns = (int64_t)NS_PER_S; /* one reading says nothing */
	assert_false(gpu_is_never_idle(&rec, &a, 0.2));
}

/* Of several GPUs it is the job's that counts, where that is known; else the busiest: that others idle is no sign of the job. */
static void test_other_gpus_idle(void **state)
{
	struct step_account a = job(96);

	for (size_t i = 0; i < ARRAY_SIZE(readings); i += 2) {
		readings[i].index = 1;
		readings[i].util_gpu_pct = 4;
	}
	assert_float_equal(gpu_idle_share(&rec, &a), 0.04, 1e-9);
	assert_false(gpu_is_never_idle(&rec, &a, 0.5)); /* it may be another's that is busy */
	readings[1].process_1 = a.pid;
	assert_true(gpu_is_never_idle(&rec, &a, 0.5));
	readings[1].process_1 = 0;
	readings[0].process_1 = a.pid;
	assert_float_equal(gpu_idle_share(&rec, &a), 0.96, 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_small_waits),
		cmocka_unit_test(test_a_result_for_each_launch),
		cmocka_unit_test(test_allocating_beside_a_busy_gpu),
		cmocka_unit_test(test_a_gpu_that_is_never_idle),
		cmocka_unit_test(test_other_gpus_idle),
		cmocka_unit_test(test_one_place_is_one_cause),
		cmocka_unit_test(test_one_request_after_another),
		cmocka_unit_test(test_many_small_copies),
		cmocka_unit_test(test_a_process_and_its_wait),
		cmocka_unit_test(test_a_full_pipe),
		cmocka_unit_test(test_a_thread_that_holds_a_lock),
		cmocka_unit_test(test_input_is_no_code),
		cmocka_unit_test(test_launch_after_launch),
		cmocka_unit_test(test_launches_by_the_counters),
		cmocka_unit_test(test_operations_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
