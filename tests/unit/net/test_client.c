/* SPDX-License-Identifier: Apache-2.0 */
/* The client against servers on its own loop: calls that succeed, connections that are kept, time
 * that runs out, callers that change their mind. What hostile servers do is in
 * test_client_hostile.c. */
#include "client_fixture.h"

#include <errno.h>
#include <sys/resource.h>

#include "net/client/client_private.h"

struct rig {
	struct loop *loop;
	struct http_client *client;
	struct stub stub;
};

static struct rig rig_new(stub_fn *fn, const char *text, const struct http_client_settings *s)
{
	struct rig r = {};
	struct errinfo e;

	assert_int_equal(loop_new(&r.loop), 0);
	assert_int_equal(
		http_client_new(r.loop, s ? s : &(struct http_client_settings){}, &r.client, &e),
		0);
	r.stub.fn = fn;
	r.stub.text = text;
	return r;
}

static void rig_start(struct rig *r)
{
	stub_start(&r->stub, r->loop, r->stub.fn, r->stub.text);
}

/* The stub's connections end when they see the client's end. */
static void rig_free(struct rig *r)
{
	if (r->client)
		http_client_free(r->client);
	while (r->stub.open)
		event_base_loop(loop_base(r->loop), EVLOOP_ONCE);
	if (r->stub.listener)
		stub_stop(&r->stub);
	loop_free(r->loop);
}

static void say_text(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, c->stub->text);
}

#define OK_TEXT "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"

static void test_get(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct outcome o;
	uint64_t before = mono_now().ns;

	(void)state;
	rig_start(&r);
	o = ask_place(r.loop, r.client, &r.stub.endpoint);
	assert_int_equal(o.err, 0);
	assert_int_equal(o.status, 200);
	assert_string_equal(o.body, "hello");
	assert_int_equal(o.body_len, 5);
	assert_true(before < o.sent_ns && o.sent_ns < o.first_ns && o.first_ns < o.told_ns);
	assert_ptr_equal(strstr(r.stub.last, "GET /x HTTP/1.1\r\n"), r.stub.last);
	assert_non_null(strstr(r.stub.last, "\r\nHost: 127.0.0.1:"));
	assert_null(strstr(r.stub.last, "Content-Length"));
	assert_null(strstr(r.stub.last, "Authorization"));
	rig_free(&r);
}

static void echo(struct stub_conn *c, const char *head)
{
	struct evbuffer *in = bufferevent_get_input(c->bev);
	char body[256] = "", text[400];

	(void)head;
	evbuffer_remove(in, body, sizeof(body) - 1);
	snprintf(text, sizeof(text),
		"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n%s\r\n0\r\n\r\n",
		strlen(body), body);
	stub_say(c, text);
}

static void test_post(void **state)
{
	struct rig r = rig_new(echo, NULL, NULL);
	struct http_field fields[] = {{"X-One", "1"}, {"x-two", "zwei"}};
	struct http_ask a;
	struct outcome o;

	(void)state;
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	a.method = "POST";
	a.body = "{\"a\":1}";
	a.body_len = 7;
	a.fields = fields;
	a.field_count = 2;
	o = ask(r.loop, r.client, &a);
	assert_int_equal(o.status, 201);
	assert_string_equal(o.body, "{\"a\":1}");
	assert_non_null(strstr(r.stub.last, "Content-Length: 7\r\n"));
	assert_non_null(strstr(r.stub.last, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(r.stub.last, "\r\nx-one: 1\r\nx-two: zwei\r\n"));
	a.body_len = 0;
	o = ask(r.loop, r.client, &a);
	assert_int_equal(o.status, 201);
	assert_non_null(strstr(r.stub.last, "Content-Length: 0\r\n"));
	rig_free(&r);
}

/* What cannot be sent is refused before anything is. */
static void test_refused(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct http_field bad[] = {{"x", "a\r\nInjected: yes"}, {"x y", "v"}, {"", "v"},
		{"Host", "other"}, {"content-length", "3"}, {"Transfer-Encoding", "chunked"}};
	struct http_field good = {"x", "fine"};
	struct http_client *other = NULL;
	struct http_ask a;

	(void)state;
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		a.fields = &bad[i];
		a.field_count = 1;
		assert_int_equal(http_ask(r.client, &a, outcome_note, NULL, NULL), -EINVAL);
	}
	a.fields = &good;
	assert_int_equal(ask(r.loop, r.client, &a).status, 200);
	a.path = "/a b";
	assert_int_equal(http_ask(r.client, &a, outcome_note, NULL, NULL), -EINVAL);
	a.path = "relative";
	assert_int_equal(http_ask(r.client, &a, outcome_note, NULL, NULL), -EINVAL);
	a.path = "/x\r\nHost: other";
	assert_int_equal(http_ask(r.client, &a, outcome_note, NULL, NULL), -EINVAL);
	a.path = "/x";
	a.method = "GET /y HTTP/1.1\r\n";
	assert_int_equal(http_ask(r.client, &a, outcome_note, NULL, NULL), -EINVAL);
	a.method = "POST";
	a.body_len = HTTP_CLIENT_REQUEST_MAX + 1ul;
	assert_int_equal(http_ask(r.client, &a, outcome_note, NULL, NULL), -EMSGSIZE);
	assert_int_equal(
		http_client_new(r.loop, &(struct http_client_settings){.bearer = "to\r\nken"},
			&other, NULL),
		-EINVAL);
	assert_null(other);
	assert_int_equal(r.stub.requests, 1);
	rig_free(&r);
}

static void test_head(void **state)
{
	struct rig r = rig_new(say_text, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", NULL);
	struct http_ask a;

	(void)state;
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	a.method = "HEAD";
	assert_int_equal(ask(r.loop, r.client, &a).body_len, 0);
	assert_int_equal(ask(r.loop, r.client, &a).status, 200);
	assert_int_equal(r.stub.connections, 1);
	rig_free(&r);
}

static void test_kept(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct http_ask a;

	(void)state;
	rig_start(&r);
	for (int i = 0; i < 7; i++)
		assert_int_equal(ask_place(r.loop, r.client, &r.stub.endpoint).status, 200);
	assert_int_equal(r.stub.connections, 1);
	assert_int_equal(r.stub.requests, 7);
	a = ask_get(&r.stub.endpoint);
	a.alone = true;
	assert_int_equal(ask(r.loop, r.client, &a).status, 200);
	assert_non_null(strstr(r.stub.last, "Connection: close"));
	assert_int_equal(r.stub.connections, 2);
	assert_int_equal(ask_place(r.loop, r.client, &r.stub.endpoint).status, 200);
	assert_int_equal(r.stub.connections, 2);
	rig_free(&r);
}

static void say_once_then_close(struct stub_conn *c, const char *head)
{
	(void)head;
	if (c->requests == 1)
		stub_say(c, OK_TEXT);
	else if (c->stub->data)
		stub_reset(c);
	else
		stub_conn_close(c);
}

/* A server may close a kept connection while a request is on its way to it. */
static void test_kept_closed(void **state)
{
	(void)state;
	for (int by_reset = 0; by_reset < 2; by_reset++) {
		struct rig r = rig_new(say_once_then_close, NULL, NULL);
		struct http_ask a;
		struct outcome o;

		r.stub.data = by_reset ? &r : NULL;
		rig_start(&r);
		assert_int_equal(ask_place(r.loop, r.client, &r.stub.endpoint).status, 200);
		assert_int_equal(ask_place(r.loop, r.client, &r.stub.endpoint).status, 200);
		assert_int_equal(r.stub.connections, 2);
		assert_int_equal(r.stub.requests, 3);
		/* A POST may have been carried out: that is the caller's to decide. */
		a = ask_get(&r.stub.endpoint);
		a.method = "POST";
		o = ask(r.loop, r.client, &a);
		assert_int_equal(o.err, -ECONNRESET);
		assert_non_null(strstr(o.text, "without a reply"));
		assert_int_equal(r.stub.connections, 2);
		rig_free(&r);
	}
}

static void say_and_close(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, OK_TEXT);
	stub_close_after(c);
}

/* A connection that was closed before the next call is not tried, even for POST. */
static void test_closed_meanwhile(void **state)
{
	struct rig r = rig_new(say_and_close, NULL, NULL);
	struct http_ask a;

	(void)state;
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	a.method = "POST";
	for (int i = 0; i < 5; i++) {
		assert_int_equal(ask(r.loop, r.client, &a).status, 200);
		while (r.stub.open)
			event_base_loop(loop_base(r.loop), EVLOOP_ONCE);
	}
	assert_int_equal(r.stub.connections, 5);
	assert_int_equal(r.stub.requests, 5);
	rig_free(&r);
}

static void close_always(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_conn_close(c);
}

/* Only a kept connection is replaced, and only once. */
static void test_no_endless_retry(void **state)
{
	struct rig r = rig_new(close_always, NULL, NULL);
	struct outcome o;

	(void)state;
	rig_start(&r);
	o = ask_place(r.loop, r.client, &r.stub.endpoint);
	assert_int_equal(o.err, -ECONNRESET);
	assert_non_null(strstr(o.text, "expects TLS"));
	assert_int_equal(r.stub.connections, 1);
	rig_free(&r);
}

static void say_nothing(struct stub_conn *c, const char *head)
{
	(void)c, (void)head;
}

static void test_deadline(void **state)
{
	struct rig r = rig_new(say_nothing, NULL, NULL);
	struct http_ask a;
	struct outcome o;
	uint64_t begin_ns;

	(void)state;
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	a.timeout_ns = 50 * NS_PER_MS;
	begin_ns = mono_now().ns;
	o = ask(r.loop, r.client, &a);
	assert_int_equal(o.err, -ETIMEDOUT);
	assert_true(o.told_ns - begin_ns >= 49 * NS_PER_MS);
	assert_non_null(strstr(o.text, "did not reply within 50ms"));
	assert_int_equal(r.client->conn_count, 0);
	rig_free(&r);
}

static void test_refused_connection(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct outcome o;

	(void)state;
	rig_start(&r);
	stub_stop(&r.stub);
	o = ask_place(r.loop, r.client, &r.stub.endpoint);
	assert_int_equal(o.err, -ECONNREFUSED);
	assert_non_null(strstr(o.text, "127.0.0.1:"));
	assert_non_null(strstr(o.text, "nothing is listening"));
	rig_free(&r);
}

/* localhost is 127.0.0.1 and ::1, whatever /etc/hosts says: the one that listens is found. */
static void test_localhost(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct http_endpoint p;

	(void)state;
	rig_start(&r);
	p = r.stub.endpoint;
	snprintf(p.host, sizeof(p.host), "LocalHost");
	assert_int_equal(ask_place(r.loop, r.client, &p).status, 200);
	assert_non_null(strstr(r.stub.last, "\r\nHost: LocalHost:"));
	rig_free(&r);
}

/* The second address of a name is tried when the first refuses. */
static void test_next_address(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct http_endpoint p;

	(void)state;
	rig_start(&r);
	p = r.stub.endpoint;
	snprintf(p.host, sizeof(p.host), "localhost");
	stub_stop(&r.stub);
	a.sin6_port = htons(p.port);
	r.stub.listener = evconnlistener_new_bind(loop_base(r.loop), stub_accept, &r.stub,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 8, (struct sockaddr *)&a, sizeof(a));
	if (!r.stub.listener) {
		print_message("# skip: there is no IPv6 here\n");
		rig_free(&r);
		skip();
	}
	assert_int_equal(ask_place(r.loop, r.client, &p).status, 200);
	snprintf(p.host, sizeof(p.host), "::1");
	assert_int_equal(ask_place(r.loop, r.client, &p).status, 200);
	assert_non_null(strstr(r.stub.last, "\r\nHost: [::1]:"));
	rig_free(&r);
}

static void test_no_such_host(void **state)
{
	struct rig r = rig_new(NULL, NULL, NULL);
	struct http_endpoint p = {.host = "no-such-host.invalid", .port = 1};
	struct http_ask a = ask_get(&p);
	struct outcome o;

	(void)state;
	a.timeout_ns = 300 * NS_PER_MS;
	o = ask(r.loop, r.client, &a);
	/* Without a name server, or with a slow one, nobody can say that it does not exist. */
	assert_true(o.err == -ENOENT || o.err == -ETIMEDOUT || o.err == -EHOSTUNREACH);
	assert_non_null(strstr(o.text, "no-such-host.invalid"));
	rig_free(&r);
}

static void test_cancel(void **state)
{
	struct rig r = rig_new(say_nothing, NULL, NULL);
	struct http_call *calls[3];
	struct http_endpoint nowhere = {.host = "no-such-host.invalid", .port = 1};
	struct outcome o = {};
	struct http_ask a;

	(void)state;
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	assert_int_equal(http_ask(r.client, &a, outcome_note, &o, &calls[0]), 0);
	while (!r.stub.requests)
		event_base_loop(loop_base(r.loop), EVLOOP_ONCE);
	assert_int_equal(http_ask(r.client, &a, outcome_note, &o, &calls[1]), 0);
	a.endpoint = &nowhere;
	assert_int_equal(http_ask(r.client, &a, outcome_note, &o, &calls[2]), 0);
	for (int i = 0; i < 3; i++)
		http_call_cancel(calls[i]);
	assert_int_equal(r.client->call_count, 0);
	assert_int_equal(r.client->conn_count, 0);
	while (r.stub.open)
		event_base_loop(loop_base(r.loop), EVLOOP_ONCE);
	assert_int_equal(o.told, 0);
	r.stub.fn = say_text;
	r.stub.text = OK_TEXT;
	assert_int_equal(ask_place(r.loop, r.client, &r.stub.endpoint).status, 200);
	rig_free(&r);
}

static void free_client(
	void *arg, const struct http_response *resp, int err, const struct errinfo *e)
{
	struct rig *r = arg;

	(void)resp, (void)err, (void)e;
	http_client_free(r->client);
	r->client = NULL;
	loop_stop(r->loop);
}

static void test_free_within(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct outcome o = {};
	struct http_ask a;

	(void)state;
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	assert_int_equal(http_ask(r.client, &a, free_client, &r, NULL), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(http_ask(r.client, &a, outcome_note, &o, NULL), 0);
	assert_int_equal(loop_run(r.loop), 0);
	assert_null(r.client);
	rig_free(&r);
}

static void test_bearer(void **state)
{
	struct http_client_settings s = {.bearer = "secret-token"};
	struct rig r = rig_new(say_text, OK_TEXT, &s);
	struct http_field own = {"Authorization", "Basic eDp5"};
	struct http_endpoint far = {.host = "192.0.2.1", .port = 80}; /* is never routed */
	struct http_ask a;
	struct outcome o;

	(void)state;
	rig_start(&r);
	assert_int_equal(ask_place(r.loop, r.client, &r.stub.endpoint).status, 200);
	assert_non_null(strstr(r.stub.last, "\r\nAuthorization: Bearer secret-token\r\n"));
	a = ask_get(&r.stub.endpoint);
	a.fields = &own;
	a.field_count = 1;
	assert_int_equal(ask(r.loop, r.client, &a).status, 200);
	assert_non_null(strstr(r.stub.last, "\r\nauthorization: Basic eDp5\r\n"));
	assert_null(strstr(r.stub.last, "Bearer"));
	o = ask_place(r.loop, r.client, &far);
	assert_int_equal(o.err, -EPERM);
	assert_non_null(strstr(o.text, "https://192.0.2.1:80"));
	rig_free(&r);

	/* The control: the settings allow it. */
	s.plain_ok = true;
	r = rig_new(say_text, OK_TEXT, &s);
	a = ask_get(&far);
	a.timeout_ns = 20 * NS_PER_MS;
	assert_true(ask(r.loop, r.client, &a).err != -EPERM);
	rig_free(&r);
}

/* A field of the caller's that is a secret is treated as the bearer is. */
static void test_authorization_in_the_clear(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct http_field own = {"authorization", "Basic eDp5"};
	struct http_endpoint far = {.host = "192.0.2.1", .port = 80};
	struct http_ask a = ask_get(&far);

	(void)state;
	a.timeout_ns = 20 * NS_PER_MS;
	assert_true(ask(r.loop, r.client, &a).err != -EPERM);
	a.fields = &own;
	a.field_count = 1;
	assert_int_equal(ask(r.loop, r.client, &a).err, -EPERM);
	rig_free(&r);
}

/* ---- many ---- */

#define MANY 300

static void test_many_places(void **state)
{
	struct rig r = rig_new(NULL, NULL, NULL);
	struct stub *stubs = calloc(MANY, sizeof(*stubs));
	struct outcome *o = calloc(MANY, sizeof(*o));
	int left = MANY;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		struct http_ask a;

		stub_start(&stubs[i], r.loop, say_text, OK_TEXT);
		a = ask_get(&stubs[i].endpoint);
		a.timeout_ns = 60 * NS_PER_S;
		o[i] = (struct outcome){.loop = r.loop, .left = &left};
		assert_int_equal(http_ask(r.client, &a, outcome_note, &o[i], NULL), 0);
	}
	assert_int_equal(loop_run(r.loop), 0);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(o[i].told, 1);
		assert_int_equal(o[i].status, 200);
		assert_int_equal(stubs[i].connections, 1);
	}
	http_client_free(TAKE(r.client));
	for (int i = 0; i < MANY; i++) {
		while (stubs[i].open)
			event_base_loop(loop_base(r.loop), EVLOOP_ONCE);
		stub_stop(&stubs[i]);
	}
	free(stubs);
	free(o);
	rig_free(&r);
}

/* More calls than connections: the rest waits. More calls than that: they are refused. */
static void test_ceilings(void **state)
{
	struct rig r = rig_new(say_text, OK_TEXT, NULL);
	struct outcome *o = calloc(HTTP_CLIENT_CALLS, sizeof(*o));
	struct rlimit files = {};
	int left = HTTP_CLIENT_CALLS;
	struct http_ask a;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 2 * HTTP_CLIENT_CONNECTIONS + 64) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	rig_start(&r);
	a = ask_get(&r.stub.endpoint);
	a.timeout_ns = 60 * NS_PER_S;
	for (int i = 0; i < HTTP_CLIENT_CALLS; i++) {
		o[i] = (struct outcome){.loop = r.loop, .left = &left};
		assert_int_equal(http_ask(r.client, &a, outcome_note, &o[i], NULL), 0);
		assert_true(r.client->conn_count <= HTTP_CLIENT_CONNECTIONS);
	}
	assert_int_equal(http_ask(r.client, &a, outcome_note, NULL, NULL), -ENOBUFS);
	assert_int_equal(r.client->conn_count, HTTP_CLIENT_CONNECTIONS);
	assert_int_equal(loop_run(r.loop), 0);
	for (int i = 0; i < HTTP_CLIENT_CALLS; i++)
		assert_int_equal(o[i].status, 200);
	assert_true(r.stub.connections <= HTTP_CLIENT_CONNECTIONS + CLIENT_IDLE_ENDPOINT);
	assert_true(r.client->conn_count <= CLIENT_IDLE_ENDPOINT);
	assert_int_equal(r.client->call_count, 0);
	free(o);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get),
		cmocka_unit_test(test_post),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_kept_closed),
		cmocka_unit_test(test_closed_meanwhile),
		cmocka_unit_test(test_no_endless_retry),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_refused_connection),
		cmocka_unit_test(test_localhost),
		cmocka_unit_test(test_next_address),
		cmocka_unit_test(test_no_such_host),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_free_within),
		cmocka_unit_test(test_bearer),
		cmocka_unit_test(test_authorization_in_the_clear),
		cmocka_unit_test(test_many_places),
		cmocka_unit_test(test_ceilings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
