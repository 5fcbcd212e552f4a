/* SPDX-License-Identifier: Apache-2.0 */
/* What hostile or broken servers do to a client: each ends its own call, with a sentence that names
 * it, within the call's time; the next call to an honest server succeeds. */
#include "client_fixture.h"

#include <errno.h>

#include "net/client/client_private.h"

#define BODY_MAX 65536

struct rig {
	struct loop *loop;
	struct http_client *client;
	struct stub stub, honest;
};

static void say_hello(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

static void rig_open(struct rig *r, stub_fn *fn)
{
	assert_int_equal(loop_new(&r->loop), 0);
	assert_int_equal(
		http_client_new(r->loop, &(struct http_client_settings){.bearer = "secret"},
			&r->client, NULL),
		0);
	stub_start(&r->stub, r->loop, fn, r->stub.text);
	stub_start(&r->honest, r->loop, say_hello, NULL);
}

static void rig_close(struct rig *r)
{
	/* the control: the client is well, and has nothing left of the call */
	assert_int_equal(r->client->call_count, 0);
	assert_int_equal(ask_place(r->loop, r->client, &r->honest.endpoint).status, 200);
	http_client_free(r->client);
	while (r->stub.open || r->honest.open)
		event_base_loop(loop_base(r->loop), EVLOOP_ONCE);
	stub_stop(&r->stub);
	stub_stop(&r->honest);
	loop_free(r->loop);
}

static struct outcome ask_rig(struct rig *r, uint64_t timeout_ns)
{
	struct http_ask a = ask_get(&r->stub.endpoint);

	a.timeout_ns = timeout_ns;
	a.body_max = BODY_MAX;
	return ask(r->loop, r->client, &a);
}

/* ---- fixed texts ---- */

static void say_text(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, c->stub->text);
}

static void say_text_and_close(struct stub_conn *c, const char *head)
{
	say_text(c, head);
	stub_close_after(c);
}

static const struct {
	const char *name, *text;
	int err;
	const char *says;
	bool close;
} texts[] = {
	{"garbage", "\x01\x02\x03\xff\xfe garbage\r\n\r\n", -EPROTO, "invalid HTTP reply", false},
	{"another protocol", "SSH-2.0-OpenSSH_9.2\r\n", -EPROTO, "invalid HTTP reply", false},
	{"no version", "200 OK\r\n\r\n", -EPROTO, "version", false},
	{"another version", "HTTP/2.0 200 OK\r\n\r\n", -EPROTO, "version", false},
	{"status of letters", "HTTP/1.1 abc OK\r\n\r\n", -EPROTO, "status line", false},
	{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", -EPROTO, "status line", false},
	{"negative status", "HTTP/1.1 -20 OK\r\n\r\n", -EPROTO, "status line", false},
	{"status below 100", "HTTP/1.1 000 OK\r\n\r\n", -EPROTO, "status line", false},
	{"terminal codes in the status line", "HTTP/1.1 200 \x1b[2J\r\n\r\n", -EPROTO,
		"status line", false},
	{"empty first line", "\r\n\r\n", -EPROTO, "empty", false},
	{"length and chunked",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: "
		"chunked\r\n\r\n3\r\nabc",
		-EPROTO, "both Content-Length", false},
	{"two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
		-EPROTO, "duplicate", false},
	{"negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", -EPROTO,
		"not a number", false},
	{"length with a sign", "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", -EPROTO,
		"not a number", false},
	{"length past 64 bits",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n", -EMSGSIZE,
		"65536", false},
	{"length over the ceiling", "HTTP/1.1 200 OK\r\nContent-Length: 65537\r\n\r\n", -EMSGSIZE,
		"65536", false},
	{"chunk that is no number", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		-EPROTO, "chunk", false},
	{"chunk over the ceiling",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n", -EMSGSIZE,
		"65536", false},
	{"chunk past 64 bits",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
		-EPROTO, "chunk", false},
	{"chunk without its end",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n", -EPROTO,
		"chunk", false},
	{"unknown encoding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", -EPROTO,
		"chunked", false},
	{"bare newlines", "HTTP/1.1 200 OK\nContent-Length: 0\n\n", -EPROTO, "CRLF", false},
	{"control character in a field", "HTTP/1.1 200 OK\r\nX: a\x1b[2J\r\n\r\n", -EPROTO,
		"control character", false},
	{"folded field", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", -EPROTO, "obsolete", false},
	{"field without a name", "HTTP/1.1 200 OK\r\n: a\r\n\r\n", -EPROTO, "name", false},
	{"another protocol unasked", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", -EPROTO,
		"unexpected change of protocol", false},
	{"TLS's alert", "\x15\x03\x03\x02\x02\x28", -EPROTOTYPE, "expects TLS", false},
	{"HTTP that asks for TLS",
		"HTTP/1.1 400 Bad Request\r\nUpgrade: TLS/1.3, HTTP/1.1\r\nContent-Length: 2\r\n\r\nno",
		-EPROTOTYPE, "expects TLS: use https://", false},
	{"nothing, and the end", "", -ECONNRESET, "without a reply", true},
	{"the end within the head", "HTTP/1.1 200 OK\r\nContent-", -ECONNRESET,
		"in the middle of its reply", true},
	{"the end within the body", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		-ECONNRESET, "in the middle of its reply", true},
	{"the end within a chunk",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhello", -ECONNRESET,
		"in the middle of its reply", true},
	{"the end before the last chunk",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", -ECONNRESET,
		"in the middle of its reply", true},
	{"only an announcement", "HTTP/1.1 100 Continue\r\n\r\n", -ECONNRESET,
		"in the middle of its reply", true},
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct rig r = {.stub.text = texts[i].text};
		char endpoint[64];
		struct outcome o;

		rig_open(&r, texts[i].close ? say_text_and_close : say_text);
		o = ask_rig(&r, 5 * NS_PER_S);
		print_message("    %s: %s\n", texts[i].name, o.text);
		assert_int_equal(o.err, texts[i].err);
		assert_non_null(strstr(o.text, texts[i].says));
		snprintf(endpoint, sizeof(endpoint), "127.0.0.1:%u", r.stub.endpoint.port);
		assert_non_null(strstr(o.text, endpoint));
		assert_null(strpbrk(o.text, "\x1b\r\n"));
		assert_int_equal(r.stub.connections, 1);
		rig_close(&r);
	}
}

/* The controls: what resembles those and is proper. */
static void test_proper(void **state)
{
	static const struct {
		const char *text, *body;
		int status;
		bool close;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, false},
		{"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "", 200, false},
		{"HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end", 200, true},
		{"HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", 200, true},
		{"HTTP/1.1 204 No Content\r\n\r\n", "", 204, false},
		{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
		 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
			"ok", 200, false},
		{"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops", "oops", 500, false},
		{"HTTP/1.1 400 Bad Request\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nno", "no",
			400, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: "
		 "1\r\n\r\n",
			"abc", 200, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig r = {.stub.text = cases[i].text};
		struct outcome o;

		rig_open(&r, cases[i].close ? say_text_and_close : say_text);
		o = ask_rig(&r, 5 * NS_PER_S);
		assert_int_equal(o.err, 0);
		assert_int_equal(o.status, cases[i].status);
		assert_string_equal(o.body, cases[i].body);
		rig_close(&r);
	}
}

/* A redirect is told and never followed: the token goes to no other place. */
static void test_redirect(void **state)
{
	struct rig r = {};
	char text[200];
	struct outcome o;

	(void)state;
	rig_open(&r, say_text);
	snprintf(text, sizeof(text),
		"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/steal\r\nRetry-After: "
		"7\r\nContent-Length: 0\r\n\r\n",
		r.honest.endpoint.port);
	r.stub.text = text;
	o = ask_rig(&r, 5 * NS_PER_S);
	assert_int_equal(o.err, 0);
	assert_int_equal(o.status, 302);
	assert_non_null(strstr(o.location, "/steal"));
	assert_string_equal(o.retry_after, "7");
	assert_int_equal(r.honest.requests, 0);
	rig_close(&r);
}

/* ---- noise ---- */

#define NOISE_ROUNDS 400

static uint64_t noise(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A proper reply with some bytes changed, left out or doubled; then the end. */
static void say_noise(struct stub_conn *c, const char *head)
{
	static const char *const bases[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nX: y\r\n\r\nhello world",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 404 No\r\nConnection: close\r\n\r\nno",
	};
	uint64_t *seed = c->stub->data;
	const char *base = bases[noise(seed) % ARRAY_SIZE(bases)];

	(void)head;
	for (size_t i = 0; base[i]; i++) {
		char byte = base[i];

		switch (noise(seed) % 60) {
		case 0: byte = (char)noise(seed); break;
		case 1: continue;
		case 2: bufferevent_write(c->bev, &byte, 1); break;
		default: break;
		}
		bufferevent_write(c->bev, &byte, 1);
	}
	stub_close_after(c);
}

static void test_noise(void **state)
{
	uint64_t seed = 20261115;
	struct rig r = {.stub.data = &seed};
	int replies = 0;

	(void)state;
	rig_open(&r, say_noise);
	for (int i = 0; i < NOISE_ROUNDS; i++) {
		struct outcome o = ask_rig(&r, 20 * NS_PER_S);

		assert_true(o.err == 0 ? o.status >= 200 && o.status < 1000 : o.err < 0);
		assert_true(o.err != -ETIMEDOUT);
		replies += !o.err;
	}
	/* both happen, so the noise is neither too loud nor too soft */
	assert_in_range(replies, 1, NOISE_ROUNDS - 1);
	rig_close(&r);
}

/* ---- without end ---- */

static void keep_saying(struct bufferevent *bev, void *arg)
{
	struct stub_conn *c = arg;

	c->rounds++;
	for (int i = 0; i < 16; i++)
		bufferevent_write(bev, c->stub->data, strlen(c->stub->data));
}

static void say_for_ever(struct stub_conn *c, const char *head)
{
	say_text(c, head);
	bufferevent_setcb(c->bev, NULL, keep_saying, stub_event, c);
	keep_saying(c->bev, c);
}

static void test_endless(void **state)
{
	static char kilobyte[1025];
	struct {
		const char *name, *text;
		char *more;
		int err;
		const char *says;
	} cases[] = {
		{"status line", "HTTP/1.1 200 ", kilobyte, -EPROTO, "too long"},
		{"field", "HTTP/1.1 200 OK\r\nX: ", kilobyte, -EPROTO, "too long"},
		{"fields", "HTTP/1.1 200 OK\r\n", (char[]){"X: y\r\n"}, -EPROTO,
			"too many header fields"},
		{"announcements", "", (char[]){"HTTP/1.1 100 Continue\r\n\r\n"}, -EPROTO,
			"too many interim replies"},
		{"body", "HTTP/1.1 200 OK\r\n\r\n", kilobyte, -EMSGSIZE, "65536"},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
			(char[]){"5\r\nhello\r\n"}, -EMSGSIZE, "65536"},
		{"chunk's line", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
			kilobyte, -EPROTO, "chunk"},
		{"trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
			(char[]){"X: y\r\n"}, -EPROTO, "too long"},
	};

	(void)state;
	memset(kilobyte, 'x', sizeof(kilobyte) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig r = {.stub.text = cases[i].text, .stub.data = cases[i].more};
		struct outcome o;

		rig_open(&r, say_for_ever);
		o = ask_rig(&r, 20 * NS_PER_S);
		print_message("    endless %s: %s\n", cases[i].name, o.text);
		assert_int_equal(o.err, cases[i].err);
		assert_non_null(strstr(o.text, cases[i].says));
		rig_close(&r);
	}
}

/* ---- slow ---- */

static void drip(int fd, short what, void *arg)
{
	struct stub_conn *c = arg;
	const char *more = c->stub->data;

	(void)fd, (void)what;
	bufferevent_write(c->bev, more + (size_t)c->rounds % strlen(more), 1);
	c->rounds++;
	event_add(c->timer, &(struct timeval){.tv_usec = 2000});
}

static void say_slowly(struct stub_conn *c, const char *head)
{
	say_text(c, head);
	c->timer = evtimer_new(loop_base(c->stub->loop), drip, c);
	event_add(c->timer, &(struct timeval){.tv_usec = 2000});
}

/* Each byte comes soon after the last, and yet the call ends in its time. */
static void test_slow(void **state)
{
	static const char *const cases[][2] = {
		{"", "HTTP/1.1 200 OK\r\nX-Very-Long-Field-Name-That-Never-Ends: "
		     "yyyyyyyyyyyyyyyyyy"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n", "z"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nz\r\n"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig r = {
			.stub.text = cases[i][0], .stub.data = (void *)(uintptr_t)cases[i][1]};
		uint64_t begin_ns;
		struct outcome o;

		rig_open(&r, say_slowly);
		begin_ns = mono_now().ns;
		o = ask_rig(&r, 100 * NS_PER_MS);
		assert_int_equal(o.err, -ETIMEDOUT);
		assert_true(o.told_ns - begin_ns >= 99 * NS_PER_MS);
		assert_non_null(strstr(o.text, "did not finish its reply within 100ms"));
		rig_close(&r);
	}
}

/* Accepts connections and never reads: a large request does not hold the call longer. */
static void test_never_reads(void **state)
{
	struct rig r = {};
	size_t len = 32u << 20;
	char *body = calloc(1, len);
	struct http_ask a;
	struct outcome o;

	(void)state;
	rig_open(&r, say_hello);
	r.stub.raw = true;
	r.stub.fn = say_text;
	r.stub.text = "";
	a = ask_get(&r.stub.endpoint);
	a.method = "POST";
	a.body = body;
	a.body_len = len;
	a.timeout_ns = 100 * NS_PER_MS;
	o = ask(r.loop, r.client, &a);
	assert_int_equal(o.err, -ETIMEDOUT);
	free(body);
	rig_close(&r);
}

/* ---- replies that nobody asked for ---- */

/* A second reply in the same bytes must not answer the next call. */
static void test_reply_too_many(void **state)
{
	struct rig r = {.stub.text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
				     "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"};

	(void)state;
	rig_open(&r, say_text);
	for (int i = 1; i < 4; i++) {
		assert_string_equal(ask_rig(&r, 5 * NS_PER_S).body, "hello");
		assert_int_equal(r.stub.connections, i);
	}
	rig_close(&r);
}

static void say_forged(int fd, short what, void *arg)
{
	struct stub_conn *c = arg;

	(void)fd, (void)what;
	stub_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
}

static void say_hello_then_forged(struct stub_conn *c, const char *head)
{
	say_hello(c, head);
	c->timer = evtimer_new(loop_base(c->stub->loop), say_forged, c);
	event_add(c->timer, &(struct timeval){.tv_usec = 1000});
}

/* Nor one that comes a little later, while the connection waits for the next call. */
static void test_reply_meanwhile(void **state)
{
	struct rig r = {};

	(void)state;
	rig_open(&r, say_hello_then_forged);
	assert_string_equal(ask_rig(&r, 5 * NS_PER_S).body, "hello");
	while (r.client->conn_count)
		event_base_loop(loop_base(r.loop), EVLOOP_ONCE);
	assert_string_equal(ask_rig(&r, 5 * NS_PER_S).body, "hello");
	assert_int_equal(r.stub.connections, 2);
	rig_close(&r);
}

static void reset_at_once(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_reset(c);
}

static void reset_later(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
	stub_reset(c);
}

static void test_reset(void **state)
{
	struct rig r = {};
	struct outcome o;

	(void)state;
	rig_open(&r, reset_at_once);
	o = ask_rig(&r, 5 * NS_PER_S);
	assert_int_equal(o.err, -ECONNRESET);
	r.stub.raw = true; /* at once after it was accepted */
	assert_int_equal(ask_rig(&r, 5 * NS_PER_S).err, -ECONNRESET);
	r.stub.raw = false;
	r.stub.fn = reset_later;
	assert_int_equal(ask_rig(&r, 5 * NS_PER_S).err, -ECONNRESET);
	rig_close(&r);
}

/* A server that answers before it has read all may close: its answer counts. */
static void answer_early(struct stub_conn *c, const char *head)
{
	(void)head;
	bufferevent_disable(c->bev, EV_READ);
	stub_say(c, "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno!");
	stub_close_after(c);
}

static void test_early_answer(void **state)
{
	struct rig r = {};
	size_t len = 32u << 20;
	char *body = calloc(1, len);
	struct http_ask a;
	struct outcome o;

	(void)state;
	rig_open(&r, answer_early);
	a = ask_get(&r.stub.endpoint);
	a.method = "POST";
	a.body = body;
	a.body_len = len;
	o = ask(r.loop, r.client, &a);
	assert_int_equal(o.err, 0);
	assert_int_equal(o.status, 413);
	assert_int_equal(r.client->conn_count, 0);
	free(body);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_proper),
		cmocka_unit_test(test_redirect),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_endless),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_never_reads),
		cmocka_unit_test(test_reply_too_many),
		cmocka_unit_test(test_reply_meanwhile),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_early_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
