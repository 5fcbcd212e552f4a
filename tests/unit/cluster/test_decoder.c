/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder: what a thread hands over is what decoding at once hands over, on the loop's thread, with the same
 * count; refusals, requests that are none, and a decoder that goes meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>

#include "cluster/ingest/decoder.h"

#define BATCHES 40
#define CALLS   100

struct told { /* of all batches and reports */
	size_t batches, reports;
	uint64_t sum; /* in which their order counts */
};

struct rig {
	struct loop *loop;
	struct decoder *decoder;
	pthread_t thread;
	struct buf logs;
	struct told told;
	size_t refuse_from; /* batches are refused from this one on; 0: none */
	size_t stop_after;  /* the loop stops after so many batches; 0: no */
	int done, result;
	struct push_taken taken;
	struct errinfo err;
};

/* Batches and, after every tenth, a report: requests one after the other are one with all that they hold. */
static void put_logs(struct buf *b)
{
	struct push_call items[CALLS];
	struct push_calls c = {.items = items, .count = CALLS, .who = {.rank = 3, .boot = 77}};
	struct push_report report = {.pid = 5, .world_rank = 3, .sent_ns = 9};

	snprintf(c.who.cluster, sizeof(c.who.cluster), "c1");
	snprintf(c.who.node, sizeof(c.who.node), "n1");
	report.who = c.who;
	for (uint64_t i = 0; i < BATCHES; i++) {
		for (uint64_t k = 0; k < CALLS; k++)
			items[k] = (struct push_call){.comm = 1 + i,
				.seq = k * k * (i + 1),
				.enter_ns = (int64_t)(1000000 * k),
				.leave_ns = (int64_t)(1000000 * k + 5000),
				.wait_ns = 17 * k,
				.rank = 3,
				.nranks = 8,
				.peer = -1,
				.op = 1};
		c.batch = i + 1;
		c.sent_ns = (int64_t)i + 1;
		push_calls_protobuf(b, &c);
		if (i % 10 == 9)
			push_report_write(b, &report, false);
	}
	assert_int_equal(b->err, 0);
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	assert_int_equal(loop_new(&r->loop), 0);
	assert_int_equal(decoder_new(r->loop, &r->decoder), 0);
	r->thread = pthread_self();
	r->logs = (struct buf)BUF_INIT(8 << 20);
	put_logs(&r->logs);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	if (r->decoder)
		decoder_free(r->decoder);
	loop_free(r->loop);
	buf_done(&r->logs);
	free(r);
	return 0;
}

static int take_calls(void *arg, const struct push_calls *c)
{
	struct rig *r = arg;

	assert_true(pthread_equal(pthread_self(), r->thread));
	r->told.batches++;
	for (size_t i = 0; i < c->count; i++)
		r->told.sum = r->told.sum * 31 + c->items[i].seq + (uint64_t)c->items[i].leave_ns;
	if (r->told.batches == r->stop_after)
		loop_stop(r->loop);
	return r->refuse_from && r->told.batches >= r->refuse_from ? -ENOSPC : 0;
}

static int take_report(void *arg, const struct push_report *report)
{
	struct rig *r = arg;

	assert_true(pthread_equal(pthread_self(), r->thread));
	r->told.reports++;
	r->told.sum = r->told.sum * 31 + report->pid;
	return 0;
}

static void on_done(void *arg, int result, const struct push_taken *taken, const struct errinfo *e)
{
	struct rig *r = arg;

	r->done++;
	r->result = result;
	r->taken = *taken;
	r->err = *e;
	loop_stop(r->loop);
}

static struct decoder_request request_of(const struct rig *r)
{
	return (struct decoder_request){
		.signal = OTLP_LOGS, .data = r->logs.data, .len = r->logs.len, .asker = 4};
}

static struct push_handler handler_of(struct rig *r)
{
	return (struct push_handler){.arg = r, .calls = take_calls, .report = take_report};
}

/* Decodes at once, and by the thread: the same. @ret is what was told. */
static void decode_both(struct rig *r, struct told *ret, int result)
{
	const struct decoder_request q = request_of(r);
	const struct push_handler h = handler_of(r);
	struct push_taken at_once = {0};
	struct errinfo e = {0};

	assert_int_equal(decoder_decode(&q, &h, &at_once, &e), result);
	*ret = r->told;
	r->told = (struct told){0};
	assert_int_equal(decoder_push(r->decoder, &q, &h, on_done, r), 0);
	assert_int_equal(r->told.batches, 0); /* not before the loop has its turn */
	loop_run(r->loop);
	assert_int_equal(r->done, 1);
	assert_int_equal(r->result, result);
	assert_memory_equal(&r->told, ret, sizeof(*ret));
	assert_string_equal(r->err.text, e.text);
	if (result < 0)
		return;
	assert_int_equal(r->taken.taken, at_once.taken);
	assert_int_equal(r->taken.rejected, at_once.rejected);
	assert_string_equal(r->taken.why, at_once.why);
}

static void test_the_same_as_at_once(void **state)
{
	struct rig *r = *state;
	struct told told;

	decode_both(r, &told, 0);
	assert_int_equal(told.batches, BATCHES);
	assert_int_equal(told.reports, BATCHES / 10);
	assert_int_equal(r->taken.taken, BATCHES + BATCHES / 10);
	assert_int_equal(r->taken.rejected, 0);
}

/* What the handler says on the loop decides how the thread counts. */
static void test_refusals_are_counted(void **state)
{
	struct rig *r = *state;
	const struct decoder_request q = request_of(r);
	const struct push_handler h = handler_of(r);

	r->refuse_from = BATCHES - 4;
	assert_int_equal(decoder_push(r->decoder, &q, &h, on_done, r), 0);
	loop_run(r->loop);
	assert_int_equal(r->result, 0);
	assert_int_equal(r->taken.rejected, 5);
	assert_int_equal(r->taken.taken, BATCHES + BATCHES / 10 - 5);
	assert_true(r->taken.why[0]);
}

static void test_no_request(void **state)
{
	struct rig *r = *state;
	struct told told;

	buf_append(&r->logs, "\x0a\xff\xff\xff\x7f", 5); /* longer than what follows */
	decode_both(r, &told, -EBADMSG);
}

static void test_traces_are_nobodys(void **state)
{
	struct rig *r = *state;
	struct decoder_request q = request_of(r);
	const struct push_handler h = handler_of(r);

	q.signal = OTLP_TRACES;
	assert_int_equal(decoder_push(r->decoder, &q, &h, on_done, r), 0);
	loop_run(r->loop);
	assert_int_equal(r->result, 0);
	assert_int_equal(r->told.batches + r->taken.taken, 0);
}

/* It goes while half of it has been handed over: nobody is told of the rest, and its end is told once. */
static void test_free_in_between(void **state)
{
	struct rig *r = *state;
	const struct decoder_request q = request_of(r);
	const struct push_handler h = handler_of(r);

	r->stop_after = BATCHES / 2;
	assert_int_equal(decoder_push(r->decoder, &q, &h, on_done, r), 0);
	loop_run(r->loop);
	assert_int_equal(r->done, 0);
	decoder_free(r->decoder);
	r->decoder = NULL;
	loop_run(r->loop);
	assert_int_equal(r->done, 1);
	assert_int_equal(r->result, -ECANCELED);
	assert_int_equal(r->told.batches, BATCHES / 2);
}

#define DECODER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DECODER_TEST(test_the_same_as_at_once),
		DECODER_TEST(test_refusals_are_counted),
		DECODER_TEST(test_no_request),
		DECODER_TEST(test_traces_are_nobodys),
		DECODER_TEST(test_free_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
