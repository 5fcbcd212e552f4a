/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail in the pieces that everything else is made of: buffers, maps, JSON, protobuf,
 * HTTP/1.1, annotation lines. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "record/annotate/line.h"
#include "base/buf.h"
#include "base/idmap.h"
#include "protobuf/pb.h"
#include "fault.h"
#include "json/reader.h"
#include "json/writer.h"
#include "net/http1.h"
#include "stat/sketch.h"

/* The first failure sticks, and what was there before it stays. */
static int use_buf(void *arg)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	size_t good = 0;

	for (int i = 0; i < 300 && !b.err; i++) {
		buf_printf(&b, "%d,", i);
		buf_append(&b, "xyz", 3);
		if (!b.err)
			good = b.len;
	}
	assert_true(b.len >= good && strlen(buf_str(&b)) == b.len);
	if (b.err)
		assert_null(buf_take(&b));
	return b.err;
}

static void a_buffer(void **state)
{
	assert_true(fault_torture(use_buf, NULL) >= 3);
}

static int use_idmap(void *arg)
{
	struct idmap m = IDMAP_INIT(1000);
	uint64_t put = 0;
	int r = 0;

	for (uint64_t i = 1; i <= 200 && r == 0; i++) {
		r = idmap_put(&m, i, &m);
		put += r == 0;
	}
	assert_int_equal(m.used, put); /* what was in it is in it */
	for (uint64_t i = 1; i <= put; i++)
		assert_ptr_equal(idmap_get(&m, i), &m);
	idmap_done(&m);
	return r;
}

static void a_map(void **state)
{
	assert_true(fault_torture(use_idmap, NULL) >= 3);
}

/* A text that cannot be kept is counted, never NULL. */
static int use_intern(void *arg)
{
	struct intern p = INTERN_INIT(1 << 20);
	char text[16];
	int r;

	for (int i = 0; i < 100; i++) {
		const char *kept;

		snprintf(text, sizeof(text), "text %d", i);
		kept = intern(&p, text);
		assert_non_null(kept);
		if (!p.refused)
			assert_string_equal(kept, text);
	}
	r = p.refused ? -ENOMEM : 0;
	intern_done(&p);
	return r;
}

static void interned_texts(void **state)
{
	assert_true(fault_torture(use_intern, NULL) >= 50);
}

static int use_json(void *arg)
{
	static const char text[] = "{\"key\":[1,2.5,\"a long text that needs room of its own\"]}";
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct json_writer w = json_writer_to_buf(&b);
	enum json_read t = JSON_READ_BAD;
	struct json_reader r;
	int err;

	json_reader_init(&r, text, strlen(text), 1000);
	do
		t = json_read(&r);
	while (t != JSON_READ_BAD && t != JSON_READ_END);
	err = r.err;
	assert_int_equal(t == JSON_READ_BAD, err != 0);
	json_reader_done(&r);
	json_begin_array(&w);
	for (int i = 0; i < 100; i++)
		json_put_string(&w, "value");
	json_end_array(&w);
	return err ? err : json_finish(&w);
}

static void json_both_ways(void **state)
{
	assert_true(fault_torture(use_json, NULL) >= 3);
}

static int use_protobuf(void *arg)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	for (int i = 0; i < 50; i++) {
		size_t mark = pb_put_begin(&b, 1);

		pb_put_string(&b, 2, "name");
		pb_put_fixed64(&b, 3, 7);
		pb_put_end(&b, mark);
	}
	return b.err;
}

static void pb_put_messages(void **state)
{
	assert_true(fault_torture(use_protobuf, NULL) >= 2);
}

/* A request that cannot be kept is answered as an error of ours, not of the peer. */
static int use_http1(void *arg)
{
	static const char text[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nX-Long: "
				   "0123456789012345678901234567890123456789\r\n\r\nabc";
	size_t at = 0, used;
	enum http1_event e = HTTP1_MORE;
	struct http1 p;
	int status = 0;

	http1_init(&p, HTTP1_REQUEST);
	while (at < strlen(text) && e != HTTP1_ERROR && e != HTTP1_END) {
		e = http1_feed(&p, text + at, MIN(strlen(text) - at, (size_t)7), &used);
		at += used;
	}
	if (e == HTTP1_ERROR)
		status = p.error_status;
	http1_done(&p);
	if (status)
		assert_in_range(status, 500, 599);
	return status ? -ENOMEM : 0;
}

static void an_http_request(void **state)
{
	assert_true(fault_torture(use_http1, NULL) >= 2);
}

static int use_annotation(void *arg)
{
	static const char line[] = "{\"labels\":{\"phase\":\"train\",\"step\":1200}}";
	struct annotation *a = arg;
	struct errinfo e = {0};
	int r = annotate_line_parse(line, strlen(line), (wall_time){5}, a, &e);

	/* A good line is never told to be a bad one. */
	if (r < 0)
		assert_int_equal(r, -ENOMEM);
	return r;
}

static void an_annotation(void **state)
{
	static struct annotation a;

	assert_true(fault_torture(use_annotation, &a) >= 5);
}

static int use_sketch(void *arg)
{
	static struct sketch s, other;

	for (uint64_t i = 1; i < 100000; i *= 3)
		sketch_add(&s, i, 2);
	sketch_merge(&other, &s);
	return sketch_quantile(&other, 0.5) ? 0 : -EINVAL;
}

static void sketches_need_no_memory(void **state)
{
	assert_int_equal(fault_torture(use_sketch, NULL), 0);
}

/* The control: an allocation that is not looked at would be noticed. */
static int use_nothing(void *arg)
{
	char *p = malloc(10);

	*(bool *)arg |= p == NULL;
	free(p);
	return 0;
}

static void the_allocation_really_fails(void **state)
{
	bool was_null = false;

	assert_int_equal(fault_torture(use_nothing, &was_null), 1);
	assert_true(was_null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_allocation_really_fails),
		cmocka_unit_test(a_buffer),
		cmocka_unit_test(a_map),
		cmocka_unit_test(interned_texts),
		cmocka_unit_test(json_both_ways),
		cmocka_unit_test(pb_put_messages),
		cmocka_unit_test(an_http_request),
		cmocka_unit_test(an_annotation),
		cmocka_unit_test(sketches_need_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
