/* SPDX-License-Identifier: Apache-2.0 */
/* Unary calls of gRPC as the server answers them, frame by frame. */
#include "h2_fixture.h"

#include "gzip_fixture.h"
#include "net/grpc.h"

#define TOKEN "0123456789abcdef-grpc"

/* Says what it was given; a message "fail NNN" is refused with that status. */
static void route_call(void *arg, struct http_exchange *x, const struct http_request *q)
{
	http_reply_field(x, "ingero-threshold", "0.9");
	if (q->body_len > 5 && memcmp(q->body, "fail ", 5) == 0) {
		int status = atoi(q->body + 5);

		if (status == 429 || status == 503)
			http_reply_field(x, "retry-after", "7");
		http_reply_error(x, status, "%s", "a 100% \"reason\"\xc3\xa9");
	} else if (q->body_len == 4 && memcmp(q->body, "wait", 4) == 0) {
		http_on_gone(x, on_gone, arg);
		bench_note(arg, x, 0);
	} else {
		http_reply(x, 200, NULL, q->body, q->body_len);
	}
}

static const struct http_route routes[] = {
	{"POST", "/pkg.Service/Call", route_call, .grpc = true, .body_max = 1 << 20,
		.inflated_max = 4 << 20},
	{"POST", "/pkg.Service/Plain", route_call, .grpc = true, .body_max = 100},
	{"POST", "/v1/plain", .handler = route_call},
	{.method = NULL},
};

static int refusals[600];

static void count_refusal(
	void *arg, struct http_exchange *x, const struct http_request *q, int status)
{
	__atomic_add_fetch(&refusals[status], 1, __ATOMIC_SEQ_CST);
	http_reply_field(x, "ingero-path", q->path);
}

static int start(void **state)
{
	static struct bench b;
	static struct token_set *tokens;

	memset(refusals, 0, sizeof(refusals));
	bench_init(&b);
	assert_int_equal(token_set_of(TOKEN, &tokens, NULL), 0);
	b.settings.routes = routes;
	b.settings.tokens = tokens;
	b.settings.refused = count_refusal;
	bench_start(&b);
	*state = &b;
	return 0;
}

static int stop(void **state)
{
	struct bench *b = *state;

	bench_stop(b);
	token_set_free(b->settings.tokens);
	return 0;
}

struct call {
	const char *path, *type, *token, *encoding;
	const void *message;
	size_t len;
	bool compressed, unframed;
	size_t more; /* fields */
};

static void send_call(struct peer *p, int32_t stream, const struct call *c)
{
	_cleanup_buf_ struct buf head = BUF_INIT(1 << 16), body = BUF_INIT(8 << 20);
	unsigned char frame[GRPC_FRAME];

	put_request(&head, "POST", c->path ? c->path : "/pkg.Service/Call");
	put_field(&head, "content-type", c->type ? c->type : "application/grpc");
	put_field(&head, "te", "trailers");
	put_field(&head, "authorization", c->token ? c->token : "Bearer " TOKEN);
	if (c->encoding)
		put_field(&head, "grpc-encoding", c->encoding);
	for (size_t i = 0; i < c->more; i++)
		put_field(&head, "x-more", "y");
	send_frame(p, NGHTTP2_HEADERS, END_HEADERS, stream, head.data, head.len);
	grpc_frame(frame, c->len, false);
	frame[0] = c->compressed;
	if (!c->unframed)
		buf_append(&body, frame, sizeof(frame));
	buf_append(&body, c->message, c->len);
	for (size_t at = 0, n; at < body.len || at == 0; at += n) {
		n = MIN(body.len - at, (size_t)16384);
		send_frame(p, NGHTTP2_DATA, at + n == body.len ? END_STREAM : 0, stream,
			buf_str(&body) + at, n);
		if (!n)
			break;
	}
}

struct heard {
	char head[8192], trailers[8192]; /* trailers "": all in the head */
	char message[1 << 16];
	size_t len;
	bool ended; /* END_STREAM has come */
};

static const struct heard *hear_call(struct peer *p, int32_t stream)
{
	static struct heard h;

	h = (struct heard){0};
	while (!h.ended) {
		const struct frame *f = hear_frame(p);

		assert_int_not_equal(f->type, -1);
		if (f->type == NGHTTP2_HEADERS) {
			int status = status_of(p, f);

			assert_int_equal(f->stream, stream);
			if (!h.head[0])
				assert_int_equal(status, 200);
			snprintf(h.head[0] ? h.trailers : h.head, sizeof(h.head), "%s", p->fields);
		} else if (f->type == NGHTTP2_DATA && f->stream == stream) {
			memcpy(h.message + h.len, f->data, f->len);
			h.len += f->len;
		} else {
			assert_true(f->type != NGHTTP2_RST_STREAM || f->stream != stream);
			continue;
		}
		h.ended = f->flags & END_STREAM;
	}
	return &h;
}

#define assert_has(text, part)                                                                     \
	do {                                                                                       \
		if (!strstr(text, part))                                                           \
			fail_msg("no %s in:\n%s", part, text);                                     \
	} while (0)

static void call_fails(
	struct peer *p, int32_t stream, const struct call *c, int status, const char *says)
{
	const struct heard *h;
	char line[32];

	send_call(p, stream, c);
	h = hear_call(p, stream);
	snprintf(line, sizeof(line), "grpc-status: %d\n", status);
	assert_has(h->head, line);
	assert_has(h->head, says);
	assert_has(h->head, "content-type: application/grpc\n");
	assert_null(strstr(h->head, "content-length"));
	assert_string_equal(h->trailers, "");
	assert_int_equal(h->len, 0);
}

static void test_a_call(void **state)
{
	static const char *const types[] = {
		"application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"};
	struct peer p;

	meet(*state, &p);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		int32_t stream = (int32_t)i * 2 + 1;
		const struct heard *h;

		send_call(&p, stream, &(struct call){.type = types[i], .message = "hello", 5});
		h = hear_call(&p, stream);
		assert_has(h->head, "content-type: application/grpc\n");
		assert_has(h->head, "ingero-threshold: 0.9\n");
		assert_null(strstr(h->head, "grpc-status"));
		assert_null(strstr(h->head, "content-length"));
		assert_int_equal(h->len, 10);
		assert_memory_equal(h->message, "\0\0\0\0\5hello", 10);
		assert_string_equal(h->trailers, "grpc-status: 0\n");
	}
	send_call(&p, 7, &(struct call){.message = ""});
	assert_int_equal(hear_call(&p, 7)->len, GRPC_FRAME); /* an empty message is one */
	part(&p);
}

static void test_compressed_messages(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(1 << 20);
	const struct heard *h;
	struct peer p;

	meet(*state, &p);
	put_gzip(&gz, "hello ", 6, 1000);
	send_call(&p, 1,
		&(struct call){.message = gz.data, gz.len, .compressed = true, .encoding = "gzip"});
	h = hear_call(&p, 1);
	assert_int_equal(h->len, GRPC_FRAME + 6000);
	assert_memory_equal(h->message + GRPC_FRAME, "hello hello ", 12);
	/* gRPC leaves it to each message whether it is */
	send_call(&p, 3, &(struct call){.message = "plain", 5, .encoding = "gzip"});
	assert_memory_equal(hear_call(&p, 3)->message, "\0\0\0\0\5plain", 10);
	send_call(&p, 5, &(struct call){.message = "plain", 5, .encoding = "identity"});
	assert_memory_equal(hear_call(&p, 5)->message, "\0\0\0\0\5plain", 10);
	call_fails(&p, 7, &(struct call){.message = gz.data, gz.len, .compressed = true}, 3,
		"compressed message without grpc-encoding");
	call_fails(&p, 9, &(struct call){.message = "x", 1, .encoding = "snappy"}, 12,
		"grpc-accept-encoding: identity,gzip\n");
	call_fails(&p, 11,
		&(struct call){.path = "/pkg.Service/Plain", .message = "x", 1, .encoding = "gzip"},
		12, "grpc-accept-encoding: identity\n");
	call_fails(&p, 13,
		&(struct call){
			.message = gz.data, gz.len - 1, .compressed = true, .encoding = "gzip"},
		3, "in the middle of its gzip stream");
	part(&p);
}

static void test_a_bomb(void **state)
{
	_cleanup_buf_ struct buf gz = BUF_INIT(1 << 20);
	struct bench *b = *state;
	struct peer p;

	put_bomb(&gz, (size_t)336 << 20);
	meet(b, &p);
	call_fails(&p, 1,
		&(struct call){.message = gz.data, gz.len, .compressed = true, .encoding = "gzip"},
		8, "grpc-message: the body inflates to too many bytes\n");
	assert_int_equal(bench_figures(b).bombs, 1);
	assert_int_equal(bench_figures(b).bodies, 0);
	assert_int_equal(__atomic_load_n(&refusals[413], __ATOMIC_SEQ_CST), 1);
	send_call(&p, 3, &(struct call){.message = "after", 5});
	assert_int_equal(hear_call(&p, 3)->len, 10);
	part(&p);
}

static void test_refusals_before_the_handler(void **state)
{
	static char large[200];
	struct peer p;

	meet(*state, &p);
	call_fails(&p, 1, &(struct call){.token = "Bearer wrong-wrong-wrong"}, 16, "invalid token");
	call_fails(&p, 3, &(struct call){.token = "Basic x"}, 16, "www-authenticate: Bearer\n");
	call_fails(&p, 5, &(struct call){.path = "/pkg.Service/None"}, 12, "no such path");
	call_fails(&p, 7, &(struct call){.path = "/v1/plain"}, 12, "not a gRPC call");
	call_fails(&p, 9,
		&(struct call){.path = "/pkg.Service/Plain", .message = large, sizeof(large)}, 8,
		"too long");
	call_fails(&p, 11, &(struct call){.more = HTTP_FIELDS_MAX}, 8, "too many header fields");
	call_fails(&p, 13, &(struct call){.more = HTTP_FIELDS_MAX, .path = "/x"}, 8,
		"ingero-path: \n");
	call_fails(&p, 15, &(struct call){.unframed = true, .message = "abc", 3}, 3, "truncated");
	call_fails(&p, 17, &(struct call){.unframed = true}, 3, "no message");
	call_fails(&p, 19, &(struct call){.unframed = true, .message = "\2\0\0\0\0", 5}, 3,
		"not a gRPC message");
	call_fails(&p, 21, &(struct call){.unframed = true, .message = "\0\0\0\0\1ab", 7}, 3,
		"more than one message");
	call_fails(&p, 23, &(struct call){.unframed = true, .message = "\0\0\0\0\2a", 6}, 3,
		"truncated");
	call_fails(&p, 25, &(struct call){.unframed = true, .message = "\0\x7f\0\0\2a", 6}, 8,
		"the message is too long");
	send_call(&p, 27, &(struct call){.message = "after", 5});
	assert_int_equal(hear_call(&p, 27)->len, 10);
	part(&p);
}

static void test_refusals_of_the_handler(void **state)
{
	static const struct {
		const char *message;
		int status;
	} rows[] = {{"fail 400", 3}, {"fail 403", 7}, {"fail 409", 6}, {"fail 500", 13},
		{"fail 418", 2}};
	struct peer p;
	int32_t stream = 1;

	meet(*state, &p);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++, stream += 2)
		call_fails(&p, stream, &(struct call){.message = rows[i].message, 8},
			rows[i].status, "grpc-message: a 100%25 \"reason\"%C3%A9\n");
	/* Status{code 8, message, details [RetryInfo of 7 s]} */
	call_fails(&p, stream, &(struct call){.message = "fail 429", 8}, 8,
		"grpc-status-details-bin: CAgSEWEgMTAwJSAicmVhc29uIsOpGjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoCCAc=\n");
	call_fails(&p, stream + 2, &(struct call){.message = "fail 503", 8}, 14,
		"ingero-threshold: 0.9\n");
	part(&p);
}

static void test_late_replies_and_gone_callers(void **state)
{
	static const unsigned char cancel[4] = {0, 0, 0, NGHTTP2_CANCEL};
	struct bench *b = *state;
	struct peer p;

	meet(b, &p);
	send_call(&p, 1, &(struct call){.message = "wait", 4});
	bench_answer(b);
	assert_memory_equal(hear_call(&p, 1)->message, "\0\0\0\0\6waited", 11);
	send_call(&p, 3, &(struct call){.message = "wait", 4});
	bench_await(b, 0);
	send_frame(&p, NGHTTP2_RST_STREAM, 0, 3, cancel, sizeof(cancel));
	bench_await(b, 1);
	bench_answer(b); /* heard by nobody */
	send_call(&p, 5, &(struct call){.message = "after", 5});
	assert_int_equal(hear_call(&p, 5)->len, 10);
	assert_int_equal(bench_figures(b).bodies, 0);
	part(&p);
}

static void test_not_over_http1(void **state)
{
	const struct response *a = ask(*state,
		"POST /pkg.Service/Call HTTP/1.1\r\n" HOST "Authorization: Bearer " TOKEN
		"\r\nContent-Type: application/grpc\r\nContent-Length: 5\r\n\r\n\0\0\0\0\0");

	assert_int_equal(a->status, 415);
	assert_has(a->body, "use HTTP/2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_call, start, stop),
		cmocka_unit_test_setup_teardown(test_compressed_messages, start, stop),
		cmocka_unit_test_setup_teardown(test_a_bomb, start, stop),
		cmocka_unit_test_setup_teardown(test_refusals_before_the_handler, start, stop),
		cmocka_unit_test_setup_teardown(test_refusals_of_the_handler, start, stop),
		cmocka_unit_test_setup_teardown(test_late_replies_and_gone_callers, start, stop),
		cmocka_unit_test_setup_teardown(test_not_over_http1, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
