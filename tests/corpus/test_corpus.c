/* SPDX-License-Identifier: Apache-2.0 */
/* test_corpus.c - what is written is read back; a damaged file is refused; what is left out is what nobody asks
 * for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "../unit/ledger_fixture.h"
#include "reduce.h"

static int read_text(const char *text, struct corpus *ret)
{
	FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(in);
	r = corpus_read(in, ret);
	fclose(in);
	return r;
}

/* 40 units of 20 ms and, from the 20th on, 30 ms, with host code at a line. */
static void make_scene(struct ledger_scene *s)
{
	struct ledger_thread t = thread_at(s, JOB, MAIN, "python3", LEDGER_T0);
	uint64_t stack = line_stack(s, "/home/u/train.py", 10, NULL);

	for (int i = 0; i < 40; i++) {
		mark(&t, MARK_OPTIMIZER);
		sample(s, JOB, MAIN, t.at + 1, stack);
		spend(&t, LEDGER_RUN, i < 20 ? MS(15) : MS(25));
		spend(&t, LEDGER_GPU_WAIT, MS(5));
		mark(&t, MARK_WAIT);
	}
	mark(&t, MARK_OPTIMIZER);
}

static void test_accounts_come_back(void **state)
{
	_cleanup_free_ struct ledger_scene *s = calloc(1, sizeof(*s));
	_cleanup_(account_task_done) struct account_task whole = {0};
	_cleanup_(corpus_done) struct corpus c = {0}, got = {0};
	_cleanup_free_ char *text = NULL;
	struct recording rec;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const struct step_account *a, *b;

	make_scene(s);
	rec = ledger_recording(s);
	account_task_begin(&whole, &rec, false);
	assert_int_equal(whole.result, 0);
	c.base_ns = LEDGER_T0;
	assert_int_equal(reduce_account(&whole.accounts.items[0], &c), 0);
	assert_int_equal(corpus_write(&c, out), 0);
	fclose(out);
	assert_int_equal(read_text(text, &got), 1);
	assert_int_equal(corpus_open(&got), 0);
	assert_int_equal(got.accounts.report.count, 1);
	a = &whole.report.items[0];
	b = &got.accounts.report.items[0];
	assert_int_equal(b->steps, a->steps);
	assert_int_equal(b->slow_steps, 20);
	assert_int_equal(b->lost_ns, a->lost_ns);
	assert_int_equal(b->ordinary_step_ns, MS(20));
	assert_memory_equal(b->total_ns, a->total_ns, sizeof(a->total_ns));
	assert_string_equal(b->comm, a->comm);
}

static void test_rows_come_back(void **state)
{
	_cleanup_(corpus_done) struct corpus c = {.base_ns = 5000}, got = {0};
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const struct event *e;
	struct event *made;

	for (int i = 0; i < 3; i++) {
		made = corpus_add(&c, CORPUS_EVENT);
		*made = (struct event){
			.start.ns = 5000 + i * 2000, .arg0 = UINT64_MAX - 1, .ret = -i};
		snprintf(made->comm, sizeof(made->comm), "python3");
	}
	made->family = 2; /* AF_INET: an address, with bytes that are 0 */
	made->peer_addr[0] = 10;
	made->peer_addr[3] = 7;
	assert_int_equal(corpus_write(&c, out), 0);
	fclose(out);
	assert_int_equal(read_text(text, &got), 1);
	assert_int_equal(got.tables[CORPUS_EVENT].count, 3);
	e = got.tables[CORPUS_EVENT].rows;
	assert_int_equal(e[2].start.ns, 9000);
	assert_int_equal(e[1].ret, -1);
	assert_true(e[2].arg0 == UINT64_MAX - 1);
	assert_string_equal(e[0].comm, "python3");
	assert_int_equal(e[2].peer_addr[0], 10);
	assert_int_equal(e[2].peer_addr[1], 0);
	assert_int_equal(e[2].peer_addr[3], 7);
}

static void test_damaged_files(void **state)
{
#define BEGIN "ingero-corpus 1\nbase 0\ntext 1\nx\n"
	static const char *const bad[] = {"hello\n", "ingero-corpus 1\n",
		"ingero-corpus 1\nbase 0\ntext 9\nx\n",
		BEGIN "table event 2\npid = 1\nend\n",     /* too few */
		BEGIN "table event 2\npid = 1*3\nend\n",   /* too many */
		BEGIN "table event 1\ncomm = 2\nend\n",    /* no such text */
		BEGIN "table nothing 1\nend\n",            /* no such table */
		BEGIN "table event 1\nnothing = 1\nend\n", /* no such column */
		BEGIN "pid = 1\nend\n", BEGIN "table event 1\npid = 1\n",
		BEGIN "table event 1\ntable event 1\nend\n", BEGIN "table event 99999999\nend\n"};
	_cleanup_(corpus_done) struct corpus good = {0};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(corpus_done) struct corpus c = {0};

		assert_true(read_text(bad[i], &c) < 0);
	}
	assert_int_equal(read_text(BEGIN "table event 2\npid = 1*2\nend\n", &good), 1);
	assert_int_equal(corpus_open(&good), 0);
}

/* An account that asks for more units than there are. */
static void test_accounts_that_do_not_add_up(void **state)
{
	static const char *const bad[] = {BEGIN "table account 1\nunits = 9\nend\n",
		BEGIN "table account 1\nkeys = 9\nend\n",
		BEGIN "table account 1\nunits = 1\ntable unit 1\nparts = 5\nend\n",
		BEGIN
		"table account 1\nunits = 1\ntable unit 1\nparts = 1\ntable part 1\nkey = 3\nend\n",
		BEGIN "table stack 1\nframes = 4\nend\n", BEGIN "table bucket 1\nrow = 1\nend\n"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(corpus_done) struct corpus c = {0};

		assert_int_equal(read_text(bad[i], &c), 1);
		assert_int_equal(corpus_open(&c), -EBADMSG);
	}
}

/* Failed calls, allocations that are never freed and rare ops stay, however many others there are. */
static void test_what_is_kept(void **state)
{
	enum { MANY = 20000 };
	_cleanup_free_ struct event *events = calloc(MANY, sizeof(*events));
	_cleanup_free_ bool *keep = calloc(MANY, sizeof(*keep));
	size_t kept = 0, leaked = 0;

	for (uint64_t i = 0; i < MANY; i++)
		events[i] = (struct event){.start.ns = (int64_t)i * 1000,
			.pid = 1,
			.source = SOURCE_CUDA,
			.op = CUDA_LAUNCH,
			.dur_ns = 10};
	for (size_t i = 0; i < 100; i++) { /* each second one is freed */
		events[100 * i].op = CUDA_MALLOC;
		events[100 * i].arg1 = 4096 * (i + 1);
		if (i % 2) {
			events[100 * i + 1].op = CUDA_FREE;
			events[100 * i + 1].arg0 = 4096 * (i + 1);
		}
	}
	events[555].ret = 2;
	events[777].op = CUDA_DEVICE_SYNC;
	assert_int_equal(reduce_events(events, MANY, keep), 0);
	for (size_t i = 0; i < MANY; i++)
		kept += keep[i];
	for (size_t i = 0; i < 100; i += 2)
		leaked += keep[100 * i];
	assert_true(kept > REDUCE_EVENTS_MAX / 4 && kept < 2 * REDUCE_EVENTS_MAX);
	assert_int_equal(leaked, 50);
	assert_true(keep[555]);
	assert_true(keep[777]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accounts_come_back),
		cmocka_unit_test(test_rows_come_back),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_accounts_that_do_not_add_up),
		cmocka_unit_test(test_what_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
