/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain_peer.c - who is at the other end of a pipe or a socket. */
#include "chain_fixture.h"

static void transfer(
	struct chain_scene *s, int step, const char *peer, uint32_t port, uint64_t wait_ms)
{
	struct event *e = chain_event(s, chain_at(step), SOURCE_NET, NET_RECV, CHAIN_JOB);

	event_peer_set(e, peer);
	e->dev = port;
	e->arg1 = 100000;
	e->wait_ns = e->dur_ns = wait_ms * NS_PER_MS;
}

static void test_a_remote_address(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	chain_entry(s, ACCOUNT_NETWORK, OWNER_SELF);
	for (int i = 0; i < 40; i++) {
		transfer(s, i, "10.9.9.9:1", 1, 90); /* in ordinary steps */
	}
	for (int i = 0; i < 40; i++) {
		transfer(s, CHAIN_SLOW + i, "10.0.0.7:80", 80, 2);
		transfer(s, CHAIN_SLOW + i, "10.1.2.3:443", 443, 40);
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_ADDRESS);
	assert_string_equal(s->delay.end.who, "10.1.2.3:443");
	assert_string_equal(s->delay.end.detail, "4.0 MB in that time");
	assert_int_equal(s->delay.end.pid, 0);
	free(s);
}

static void test_this_machine(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 40; i++)
		transfer(s, CHAIN_SLOW + i, "[::1]:6379", 6379, 40);
	assert_int_equal(chain_end(s)->resource, RESOURCE_ADDRESS);
	assert_string_equal(s->delay.end.detail, "this machine, 4.0 MB in that time");
	chain_home(s, 700, "redis-server", "");
	s->events[3].peer_pid = 700; /* found once */
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	assert_string_equal(s->delay.end.who, "redis-server");
	assert_int_equal(s->delay.end.pid, 700);
	assert_string_equal(s->delay.end.detail, "[::1]:6379, 4.0 MB in that time");
	free(s);
}

/* Who ended the waits is known: a local socket is no network. */
static void test_a_local_process(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	chain_home(s, 700, "python3", "features.py");
	for (int i = 0; i < 50; i++) {
		struct ledger_row *r = &s->ledger[s->rec.ledger_count++];

		*r = (struct ledger_row){.start.ns = chain_at(CHAIN_SLOW + i),
			.dur_ns = 48 * NS_PER_MS,
			.stay_ns = 45 * NS_PER_MS,
			.pid = CHAIN_JOB,
			.tid = CHAIN_JOB,
			.mark = MARK_STAY,
			.stay_line = LEDGER_SOCKET,
			.waker = WAKER_TASK,
			.waker_pid = 700,
			.waker_tid = 701,
			.waker_comm = "python3"};
		transfer(s, CHAIN_SLOW + i, "127.0.0.1:8000", 8000, 45);
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	assert_string_equal(s->delay.end.who, "features.py");
	assert_int_equal(s->delay.end.pid, 700);
	free(s);
}

static struct ledger_row *stay(
	struct chain_scene *s, int step, uint32_t pid, enum wire_ledger_line line, uint64_t ms)
{
	struct ledger_row *r = &s->ledger[s->rec.ledger_count++];

	*r = (struct ledger_row){.start.ns = chain_at(step),
		.dur_ns = (ms + 1) * NS_PER_MS,
		.stay_ns = ms * NS_PER_MS,
		.pid = pid,
		.tid = pid,
		.mark = MARK_STAY,
		.stay_line = (uint8_t)line,
		.waker = WAKER_INTERRUPT};
	return r;
}

static void test_a_timer(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);

	for (int i = 0; i < 50; i++)
		stay(s, CHAIN_SLOW + i, CHAIN_JOB, LEDGER_POLL, 45)->tid = 101;
	assert_int_equal(chain_end(s)->resource, RESOURCE_TIMER);
	for (int i = 0; i < 40; i++) /* it may be a remote peer */
		transfer(s, CHAIN_SLOW + i, "10.1.2.3:443", 443, 40);
	assert_int_equal(chain_end(s)->resource, RESOURCE_ADDRESS);
	free(s);
}

/* A line that asks somebody gets no answer within the time that it allows; an event loop's line may only sleep. */
static void test_a_time_limit(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_NETWORK, true);
	const struct stack_frame asks = {.py_file = "/home/u/embed.py", .py_func = "address"};
	const struct stack_frame loop[] = {
		{.py_file = "/usr/lib/python3.12/asyncio/base_events.py", .py_func = "_run_once"},
		{.py_file = "/home/u/embed.py", .py_func = "main"}};
	struct account_entry *e = chain_entry(s, ACCOUNT_NETWORK, OWNER_SELF);

	for (int i = 0; i < 50; i++)
		stay(s, CHAIN_SLOW + i, CHAIN_JOB, LEDGER_POLL, 45);
	e->stack_hash = chain_stack(s, &asks, 1);
	assert_int_equal(chain_end(s)->resource, RESOURCE_TIMEOUT);
	assert_string_equal(s->delay.end.detail, "50 waits of 45 ms on average");
	e->stack_hash = chain_stack(s, loop, 2);
	assert_int_equal(chain_end(s)->resource, RESOURCE_TIMER);
	free(s);
}

static void test_pickling(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);

	e->pid = 700;
	chain_home(s, 700, "python3", "train.py");
	e->stack_hash = chain_stack(s,
		&(struct stack_frame){
			.py_file = "/usr/lib/python3.12/multiprocessing/connection.py",
			.py_func = "_recv"},
		1);
	assert_int_equal(chain_end(s)->resource, RESOURCE_PICKLE);
	assert_int_equal(s->delay.end.pid, 700);
	e->line = ACCOUNT_LOCK; /* who waits for its next task does not unpack it */
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	e->line = ACCOUNT_HOST;
	e->stack_hash = chain_stack(
		s, &(struct stack_frame){.py_file = "/home/u/train.py", .py_func = "simulate"}, 1);
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	free(s);
}

/* A process that begins imports what packs: it packs nothing yet. */
static void test_a_process_that_begins(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	const struct stack_frame frames[] = {
		{.py_file = "/usr/lib/python3.12/multiprocessing/reduction.py",
			.py_func = "<module>"},
		{.py_file = "<frozen importlib._bootstrap>", .py_func = "_load_unlocked"}};
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);

	e->pid = 700;
	chain_home(s, 700, "python3", "train.py");
	e->stack_hash = chain_stack(s, frames, 2);
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	free(s);
}

/* What the waiting thread runs now and then says nothing of what it waits for. */
static void test_work_beside_a_wait(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	const struct stack_frame packs[] = {{.symbol = "_pickle_loads", .file = "_pickle.c"},
		{.py_file = "/home/u/train.py", .py_func = "main"}};
	uint64_t hash = chain_stack(s, packs, 2);
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);

	e->pid = 700;
	chain_home(s, 700, "python3", "render.py");
	s->account.slow_ns[ACCOUNT_HOST] = 5 * NS_PER_MS;
	for (int i = CHAIN_SLOW; i < CHAIN_STEPS; i++)
		chain_event(s, chain_at(i), SOURCE_HOST, HOST_CPU_SAMPLE, CHAIN_JOB)->stack_hash =
			hash;
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	assert_string_equal(s->delay.end.who, "render.py");
	free(s);
}

static void test_another_process(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);

	e->pid = 700;
	chain_home(s, 700, "python3", "producer.py");
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	assert_string_equal(s->delay.end.who, "producer.py");
	assert_float_equal(s->delay.end.share, 1, 0.01);
	free(s);
}

/* The call in which the job waits tells whether it asks for anything: who holds a lock, or does not read from a pipe, is not
 * asked. */
static void test_what_the_job_waits_in(void **state)
{
	static const struct {
		const char *symbol;
		enum resource resource;
	} calls[] = {{"__GI___flock", RESOURCE_FILE_LOCK}, {"fcntl64", RESOURCE_FILE_LOCK},
		{"__GI___libc_write", RESOURCE_PIPE_FULL}, {"__libc_read", RESOURCE_PROCESS},
		{"__libc_recv", RESOURCE_PROCESS}, {"__futex_wait", RESOURCE_PROCESS}};
	static const struct stack_frame doing = {
		.py_file = "/home/u/train.py", .py_func = "compact", .py_line = 17};

	for (size_t k = 0; k < ARRAY_SIZE(calls); k++) {
		struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
		struct account_entry *e = chain_entry(s, ACCOUNT_DISK, OWNER_PROCESS);
		const struct stack_frame frame = {.symbol = calls[k].symbol};
		uint64_t in = chain_stack(s, &frame, 1);
		bool is_told = calls[k].resource != RESOURCE_PROCESS;

		e->pid = 700;
		e->stack_hash = chain_stack(s, &doing, 1);
		chain_home(s, 700, "compactor", "train.py");
		e->wait_hash = in;
		assert_int_equal(chain_end(s)->resource, calls[k].resource);
		assert_string_equal(s->delay.end.who, "compactor");
		assert_int_equal(s->delay.end.pid, 700);
		assert_string_equal(s->delay.end.detail,
			is_told ? "meanwhile it is at train.py:17 (compact)" : "");
		e->wait_hash = 0; /* it is not known what for */
		assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
		free(s);
	}
}

/* Of two of one name that are waited for, one has nearly all of it. */
static void test_who_of_several_is_waited_for(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);

	for (uint32_t k = 0; k < 2; k++) {
		struct account_entry *e = chain_entry(s, ACCOUNT_NETWORK, OWNER_PROCESS);

		e->pid = 700 + k;
		e->slow_ns = (k ? 6 : 44) * NS_PER_MS;
		chain_home(s, e->pid, "python3", "serve.py");
	}
	assert_string_equal(chain_end(s)->who, "serve.py");
	assert_int_equal(s->delay.end.count, 1);
	assert_int_equal(s->delay.end.pid, 700);
	s->account.entries[1].slow_ns = 20 * NS_PER_MS;
	assert_int_equal(chain_end(s)->count, 2);
	assert_int_equal(s->delay.end.pid, 0);
	free(s);
}

/* A process that is waited for stands still: who stopped it is to be named. */
static void test_who_stopped_another(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_STOPPED, OWNER_PROCESS);

	e->pid = 700;
	e->culprit_pid = 900;
	snprintf(e->culprit, sizeof(e->culprit), "python3");
	chain_home(s, 700, "python3", "worker.py");
	chain_home(s, 900, "python3", "throttle.py");
	assert_int_equal(chain_end(s)->resource, RESOURCE_STOPPER);
	assert_string_equal(s->delay.end.who, "throttle.py");
	assert_int_equal(s->delay.end.pid, 900);
	assert_string_equal(s->delay.end.on, "worker.py");
	assert_int_equal(s->delay.end.on_pid, 700);
	e->culprit_pid = 0; /* nobody saw who it is */
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	assert_string_equal(s->delay.end.who, "worker.py");
	free(s);
}

static void test_who_stopped_it(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_STOPPED, true);
	struct account_entry *e = chain_entry(s, ACCOUNT_STOPPED, OWNER_SELF);

	e->culprit_pid = 44;
	snprintf(e->culprit, sizeof(e->culprit), "gdb");
	assert_int_equal(chain_end(s)->resource, RESOURCE_STOPPER);
	assert_string_equal(s->delay.end.who, "gdb");
	assert_string_equal(s->delay.end.on, "");
	free(s);
}

/* Three processes make what the job waits for, and each waits at a lock until the one before lets go of it: at the program's own
 * line, or in a library's queue, where who has nothing to do waits as well. */
static void test_processes_that_take_turns(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_PROCESS, false);
	const struct stack_frame lock = {
		.py_file = "/usr/lib/python3.12/multiprocessing/synchronize.py",
		.py_func = "SemLock.__enter__"};
	const struct stack_frame user = {
		.py_file = "/home/u/producers.py", .py_func = "make_batch", .py_line = 43};
	const struct stack_frame queue = {
		.py_file = "/usr/lib/python3.12/multiprocessing/queues.py", .py_func = "get"};
	const struct stack_frame own[] = {lock, user}, idle[] = {lock, queue, user};
	uint64_t at = chain_stack(s, own, 2), waiting = chain_stack(s, idle, 3);

	for (uint32_t k = 0; k < 3; k++) {
		struct account_entry *e = chain_entry(s, ACCOUNT_HOST, OWNER_PROCESS);

		e->pid = 201 + k;
		chain_home(s, e->pid, "python3", "make.py");
		for (int i = 0; i < CHAIN_STEPS; i++)
			s->ledger[s->rec.ledger_count++ % ARRAY_SIZE(s->ledger)] =
				(struct ledger_row){.start.ns = chain_at(i),
					.dur_ns = (uint64_t)CHAIN_STEP,
					.pid = e->pid,
					.tid = e->pid,
					.mark = MARK_STAY,
					.stay_line = LEDGER_LOCK,
					.stay_ns = (uint64_t)CHAIN_STEP * 9 / 10,
					.waker = WAKER_TASK,
					.waker_pid = 201 + (k + 1) % 3,
					.stack_hash = at};
	}
	s->rec.ledger_count = ARRAY_SIZE(s->ledger);
	assert_int_equal(chain_end(s)->resource, RESOURCE_LOCK);
	assert_string_equal(s->delay.end.who, "make.py");
	assert_int_equal(s->delay.end.count, 3);
	assert_int_equal(s->delay.end.stack_hash, at);
	for (size_t i = 0; i < s->rec.ledger_count; i++)
		s->ledger[i].waker_pid = CHAIN_JOB; /* it gives them their work */
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	for (size_t i = 0; i < s->rec.ledger_count; i++) {
		s->ledger[i].waker_pid = s->ledger[i].pid == 201 ? 202 : 201;
		s->ledger[i].stack_hash = waiting;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	for (size_t i = 0; i < s->rec.ledger_count; i++) {
		s->ledger[i].stay_ns /= 3; /* now and then */
		s->ledger[i].stack_hash = at;
	}
	assert_int_equal(chain_end(s)->resource, RESOURCE_PROCESS);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes_that_take_turns),
		cmocka_unit_test(test_a_remote_address),
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_a_local_process),
		cmocka_unit_test(test_a_time_limit),
		cmocka_unit_test(test_a_process_that_begins),
		cmocka_unit_test(test_work_beside_a_wait),
		cmocka_unit_test(test_a_timer),
		cmocka_unit_test(test_pickling),
		cmocka_unit_test(test_another_process),
		cmocka_unit_test(test_what_the_job_waits_in),
		cmocka_unit_test(test_who_of_several_is_waited_for),
		cmocka_unit_test(test_who_stopped_another),
		cmocka_unit_test(test_who_stopped_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
