/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC calls against a server made of nghttp2, which does what the path asks for. */
#include "client_fixture.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>

#include "net/grpc.h"
#include "net/client/client_private.h"
#include "tls_fixture.h"

/* ---- the server ---- */

struct peer { /* one connection of it */
	struct stub_conn *conn;
	nghttp2_session *session;
};

struct request {
	char path[64], timeout[32], te[16], type[32], authorization[64], scheme[8];
	char body[4096];
	size_t body_len;
	const char *reply; /* frame and message */
	size_t reply_len, reply_at;
	const char *status, *message; /* in trailers; NULL: none */
};

static struct request last; /* copy of the last complete request */
static int requests_seen;
static int refuse_streams; /* how many to refuse */

static void flush(struct peer *p)
{
	const uint8_t *data;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(p->session, &data)) > 0)
		bufferevent_write(p->conn->bev, data, (size_t)n);
	assert_int_equal(n, 0);
}

#define NV(n, v)                                                                                   \
	(nghttp2_nv)                                                                               \
	{                                                                                          \
		(uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), strlen(n), strlen(v), 0      \
	}

static ssize_t give_body(nghttp2_session *s, int32_t id, uint8_t *out, size_t size, uint32_t *flags,
	nghttp2_data_source *source, void *arg)
{
	struct request *q = source->ptr;
	size_t n = MIN(size, q->reply_len - q->reply_at);

	(void)arg;
	memcpy(out, q->reply + q->reply_at, n);
	q->reply_at += n;
	if (q->reply_at == q->reply_len) {
		nghttp2_nv trailers[] = {NV("grpc-status", q->status ? q->status : ""),
			NV("grpc-message", q->message ? q->message : "")};

		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (q->status) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			nghttp2_submit_trailer(s, id, trailers, q->message ? 2 : 1);
		}
	}
	return (ssize_t)n;
}

static char big[3 << 20];

static void reply_with(nghttp2_session *s, int32_t id, struct request *q)
{
	nghttp2_nv head[] = {NV(":status", "200"), NV("content-type", "application/grpc+proto")};
	nghttp2_data_provider body = {.source.ptr = q, .read_callback = give_body};

	nghttp2_submit_response(s, id, head, 2, &body);
}

static void endless_fields(nghttp2_session *s, int32_t id)
{
	nghttp2_nv head[60] = {NV(":status", "200")};
	static char value[1000];

	memset(value, 'v', sizeof(value) - 1);
	for (int i = 1; i < 60; i++)
		head[i] = NV("x-field", value);
	nghttp2_submit_response(s, id, head, 60, NULL);
}

static void serve(struct peer *p, int32_t id, struct request *q)
{
	nghttp2_session *s = p->session;
	const char *path = q->path + strlen("/test.Service/");

	last = *q;
	requests_seen++;
	if (refuse_streams) {
		refuse_streams--;
		nghttp2_submit_rst_stream(s, 0, id, NGHTTP2_REFUSED_STREAM);
		return;
	}
	q->reply = "\0\0\0\0\5hello";
	q->reply_len = 10;
	q->status = "0";
	if (!strcmp(path, "Ok")) {
		reply_with(s, id, q);
	} else if (!strcmp(path, "Echo")) {
		q->reply = q->body;
		q->reply_len = q->body_len;
		reply_with(s, id, q);
	} else if (!strcmp(path, "Error")) {
		q->reply_len = 0;
		q->status = "5";
		q->message = "no such thing: 100%25 %C3%A4";
		reply_with(s, id, q);
	} else if (!strcmp(path, "TrailersOnly")) {
		nghttp2_nv head[] = {NV(":status", "200"), NV("content-type", "application/grpc"),
			NV("grpc-status", "16"), NV("grpc-message", "who%20are you")};

		nghttp2_submit_response(s, id, head, 4, NULL);
	} else if (!strcmp(path, "Compressed")) {
		q->reply = "\1\0\0\0\5hello";
		reply_with(s, id, q);
	} else if (!strcmp(path, "Two")) {
		q->reply = "\0\0\0\0\1a\0\0\0\0\1b";
		q->reply_len = 12;
		reply_with(s, id, q);
	} else if (!strcmp(path, "NoStatus")) {
		q->status = NULL;
		reply_with(s, id, q);
	} else if (!strcmp(path, "Big")) {
		grpc_frame((unsigned char *)big, sizeof(big) - GRPC_FRAME, false);
		q->reply = big;
		q->reply_len = sizeof(big);
		reply_with(s, id, q);
	} else if (!strcmp(path, "Http503")) {
		nghttp2_nv head[] = {NV(":status", "503"), NV("content-type", "text/html")};

		nghttp2_submit_response(s, id, head, 2, NULL);
	} else if (!strcmp(path, "NotGrpc")) {
		nghttp2_nv head[] = {NV(":status", "200"), NV("content-type", "text/html"),
			NV("grpc-status", "0")};

		nghttp2_submit_response(s, id, head, 3, NULL);
	} else if (!strcmp(path, "Reset")) {
		nghttp2_submit_rst_stream(s, 0, id, NGHTTP2_INTERNAL_ERROR);
	} else if (!strcmp(path, "Fields")) {
		endless_fields(s, id);
	} else if (!strcmp(path, "GoAway")) {
		reply_with(s, id, q);
		nghttp2_submit_goaway(s, 0, id, NGHTTP2_NO_ERROR, NULL, 0);
	} /* "Silence": nothing */
}

static int srv_begin(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	(void)arg;
	if (f->hd.type == NGHTTP2_HEADERS)
		nghttp2_session_set_stream_user_data(
			s, f->hd.stream_id, calloc(1, sizeof(struct request)));
	return 0;
}

static int srv_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t nl,
	const uint8_t *value, size_t vl, uint8_t flags, void *arg)
{
	struct request *q = nghttp2_session_get_stream_user_data(s, f->hd.stream_id);
	struct {
		const char *name;
		char *out;
		size_t size;
	} kept[] = {
		{":path", q->path, sizeof(q->path)},
		{":scheme", q->scheme, sizeof(q->scheme)},
		{"grpc-timeout", q->timeout, sizeof(q->timeout)},
		{"te", q->te, sizeof(q->te)},
		{"content-type", q->type, sizeof(q->type)},
		{"authorization", q->authorization, sizeof(q->authorization)},
	};

	(void)flags, (void)arg, (void)nl;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if (!strcmp((const char *)name, kept[i].name))
			snprintf(kept[i].out, kept[i].size, "%.*s", (int)vl, (const char *)value);
	return 0;
}

static int srv_data(
	nghttp2_session *s, uint8_t flags, int32_t id, const uint8_t *data, size_t len, void *arg)
{
	struct request *q = nghttp2_session_get_stream_user_data(s, id);

	(void)flags, (void)arg;
	if (q->body_len + len <= sizeof(q->body))
		memcpy(q->body + q->body_len, data, len);
	q->body_len += len;
	return 0;
}

static int srv_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg)
{
	if (f->hd.flags & NGHTTP2_FLAG_END_STREAM &&
		(f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS))
		serve(arg, f->hd.stream_id,
			nghttp2_session_get_stream_user_data(s, f->hd.stream_id));
	return 0;
}

static int srv_closed(nghttp2_session *s, int32_t id, uint32_t code, void *arg)
{
	(void)code, (void)arg;
	free(nghttp2_session_get_stream_user_data(s, id));
	nghttp2_session_set_stream_user_data(s, id, NULL);
	return 0;
}

static void peer_free(struct peer *p)
{
	nghttp2_session_del(p->session);
	stub_conn_close(p->conn);
	free(p);
}

static void peer_read(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len = evbuffer_get_length(in);
	struct peer *p = arg;
	ssize_t n = nghttp2_session_mem_recv(p->session, evbuffer_pullup(in, -1), len);

	assert_int_equal(n, len);
	evbuffer_drain(in, len);
	flush(p);
	if (!nghttp2_session_want_read(p->session) && !nghttp2_session_want_write(p->session))
		peer_free(p);
}

static void peer_event(struct bufferevent *bev, short what, void *arg)
{
	(void)bev;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		peer_free(arg);
}

static void peer_begin(struct stub_conn *c, const char *head)
{
	struct peer *p = calloc(1, sizeof(*p));
	nghttp2_session_callbacks *cb;

	(void)head;
	p->conn = c;
	nghttp2_session_callbacks_new(&cb);
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, srv_begin);
	nghttp2_session_callbacks_set_on_header_callback(cb, srv_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, srv_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, srv_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, srv_closed);
	nghttp2_session_server_new(&p->session, cb, p);
	nghttp2_session_callbacks_del(cb);
	nghttp2_submit_settings(p->session, 0, NULL, 0);
	bufferevent_setcb(c->bev, peer_read, NULL, peer_event, p);
	flush(p);
}

/* ---- asking ---- */

struct rig {
	struct loop *loop;
	struct http_client *client;
	struct stub stub;
};

static void rig_open(struct rig *r, const struct http_client_settings *s, stub_fn *fn)
{
	assert_int_equal(loop_new(&r->loop), 0);
	assert_int_equal(http_client_new(r->loop, s, &r->client, NULL), 0);
	r->stub.raw = true;
	stub_start(&r->stub, r->loop, fn, r->stub.text);
	requests_seen = refuse_streams = 0;
}

static void rig_close(struct rig *r)
{
	http_client_free(r->client);
	while (r->stub.open)
		event_base_loop(loop_base(r->loop), EVLOOP_ONCE);
	stub_stop(&r->stub);
	loop_free(r->loop);
}

static void note(void *arg, int status, const char *message, const void *reply, size_t len, int err,
	const struct errinfo *e)
{
	struct outcome *o = arg;

	o->told++;
	o->grpc_status = status;
	o->err = err;
	o->body_len = len;
	snprintf(o->text, sizeof(o->text), "%s", err ? e->text : message);
	memcpy(o->body, reply ? reply : "", MIN(len, sizeof(o->body) - 1));
	if (--*o->left == 0)
		loop_stop(o->loop);
}

static struct http_ask grpc_to(const struct rig *r, const char *path)
{
	return (struct http_ask){.endpoint = &r->stub.endpoint,
		.method = "POST",
		.path = path,
		.body = "question",
		.body_len = 8,
		.timeout_ns = 5 * NS_PER_S,
		.body_max = 1 << 20};
}

static struct outcome call(struct rig *r, const struct http_ask *a)
{
	int left = 1;
	struct outcome o = {.loop = r->loop, .left = &left};

	assert_int_equal(grpc_ask(r->client, a, note, &o), 0);
	assert_int_equal(o.told, 0);
	assert_int_equal(loop_run(r->loop), 0);
	assert_int_equal(o.told, 1);
	return o;
}

static struct outcome call_path(struct rig *r, const char *path)
{
	struct http_ask a = grpc_to(r, path);

	return call(r, &a);
}

static void test_ok(void **state)
{
	struct http_client_settings s = {.bearer = "token"};
	struct rig r = {};
	struct outcome o;

	(void)state;
	rig_open(&r, &s, peer_begin);
	o = call_path(&r, "/test.Service/Ok");
	assert_int_equal(o.err, 0);
	assert_int_equal(o.grpc_status, 0);
	assert_int_equal(o.body_len, 5);
	assert_memory_equal(o.body, "hello", 5);
	assert_memory_equal(last.body, "\0\0\0\0\10question", 13);
	assert_int_equal(last.body_len, 13);
	assert_string_equal(last.te, "trailers");
	assert_string_equal(last.type, "application/grpc");
	assert_string_equal(last.scheme, "http");
	assert_string_equal(last.authorization, "Bearer token");
	assert_true(strlen(last.timeout) >= 2 && strlen(last.timeout) <= 9);
	o = call_path(&r, "/test.Service/Echo");
	assert_memory_equal(o.body, "question", 8);
	assert_int_equal(r.stub.connections, 1);
	rig_close(&r);
}

static void test_statuses(void **state)
{
	struct rig r = {};
	struct outcome o;

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, peer_begin);
	o = call_path(&r, "/test.Service/Error");
	assert_int_equal(o.err, 0);
	assert_int_equal(o.grpc_status, 5);
	assert_string_equal(o.text, "no such thing: 100% \xc3\xa4");
	o = call_path(&r, "/test.Service/TrailersOnly");
	assert_int_equal(o.err, 0);
	assert_int_equal(o.grpc_status, 16);
	assert_string_equal(o.text, "who are you");
	o = call_path(&r, "/test.Service/Http503");
	assert_int_equal(o.err, 0);
	assert_int_equal(o.grpc_status, GRPC_UNAVAILABLE);
	assert_non_null(strstr(o.text, "503"));
	assert_int_equal(call_path(&r, "/test.Service/Ok").grpc_status, 0);
	assert_int_equal(r.stub.connections, 1);
	rig_close(&r);
}

static void fails(struct rig *r, const char *path, int err, const char *says)
{
	struct outcome o = call_path(r, path);

	print_message("    %s\n", o.text);
	assert_int_equal(o.err, err);
	assert_non_null(strstr(o.text, says));
	assert_non_null(strstr(o.text, "127.0.0.1:"));
}

/* Each ends its own call only: the connection goes on. */
static void test_improper(void **state)
{
	struct rig r = {};

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, peer_begin);
	fails(&r, "/test.Service/Compressed", -EPROTO, "compressed");
	fails(&r, "/test.Service/Two", -EPROTO, "more than one");
	fails(&r, "/test.Service/NoStatus", -EPROTO, "no status");
	fails(&r, "/test.Service/NotGrpc", -EPROTO, "not a gRPC reply");
	fails(&r, "/test.Service/Big", -EMSGSIZE, "too large");
	fails(&r, "/test.Service/Reset", -ECONNRESET, "INTERNAL_ERROR");
	fails(&r, "/test.Service/Fields", -EPROTO, "too long");
	assert_int_equal(call_path(&r, "/test.Service/Ok").grpc_status, 0);
	assert_int_equal(r.stub.connections, 1);
	rig_close(&r);
}

/* The control of "Big": it comes whole if that is allowed. */
static void test_large(void **state)
{
	struct rig r = {};
	struct http_ask a;
	struct outcome o;
	char *body = calloc(1, 5 << 20);

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, peer_begin);
	a = grpc_to(&r, "/test.Service/Big");
	a.body_max = sizeof(big) - GRPC_FRAME;
	a.body = body;
	a.body_len = 5 << 20;
	o = call(&r, &a);
	assert_int_equal(o.err, 0);
	assert_int_equal(o.body_len, sizeof(big) - GRPC_FRAME);
	assert_int_equal(last.body_len, (5 << 20) + GRPC_FRAME);
	a.body_max--;
	assert_int_equal(call(&r, &a).err, -EMSGSIZE);
	free(body);
	rig_close(&r);
}

static void test_deadline(void **state)
{
	struct rig r = {};
	struct http_ask a;
	struct outcome o;

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, peer_begin);
	a = grpc_to(&r, "/test.Service/Silence");
	a.timeout_ns = 50 * NS_PER_MS;
	o = call(&r, &a);
	assert_int_equal(o.err, -ETIMEDOUT);
	assert_non_null(strstr(o.text, "did not reply within 50ms"));
	/* the connection was not at fault */
	assert_int_equal(call_path(&r, "/test.Service/Ok").grpc_status, 0);
	assert_int_equal(r.stub.connections, 1);
	rig_close(&r);
}

#define MANY 40 /* more than one connection takes at once */

static void test_many(void **state)
{
	struct rig r = {};
	struct outcome o[MANY];
	int left = MANY;

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, peer_begin);
	for (int i = 0; i < MANY; i++) {
		struct http_ask a = grpc_to(&r, i % 2 ? "/test.Service/Ok" : "/test.Service/Error");

		o[i] = (struct outcome){.loop = r.loop, .left = &left};
		assert_int_equal(grpc_ask(r.client, &a, note, &o[i]), 0);
	}
	assert_int_equal(loop_run(r.loop), 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(o[i].grpc_status, i % 2 ? 0 : 5);
	assert_int_equal(r.stub.connections, 2);
	rig_close(&r);
}

static void test_refused_stream(void **state)
{
	struct rig r = {};

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, peer_begin);
	refuse_streams = 1;
	assert_int_equal(call_path(&r, "/test.Service/Ok").grpc_status, 0);
	assert_int_equal(requests_seen, 2);
	refuse_streams = 2;
	fails(&r, "/test.Service/Ok", -ECONNRESET, "REFUSED_STREAM");
	assert_int_equal(requests_seen, 4);
	rig_close(&r);
}

static void test_go_away(void **state)
{
	struct rig r = {};

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, peer_begin);
	assert_int_equal(call_path(&r, "/test.Service/GoAway").grpc_status, 0);
	assert_int_equal(call_path(&r, "/test.Service/Ok").grpc_status, 0);
	assert_int_equal(r.stub.connections, 2);
	rig_close(&r);
}

/* ---- other servers ---- */

static void say_text(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, c->stub->text);
	if (c->stub->data)
		stub_close_after(c);
}

static void test_other_servers(void **state)
{
	static const struct {
		const char *text, *says;
		int err;
		bool close;
	} cases[] = {
		{"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP/1.1", -EPROTO, false},
		{"\x15\x03\x03\x01\x02", "expects TLS", -EPROTO, false},
		{"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/2 protocol error", -EPROTO, false},
		{"", "without a reply", -ECONNRESET, true},
		/* a settings frame that is too long */
		{"\x01\x01\x01\x04", "HTTP/2 protocol error", -EPROTO, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rig r = {
			.stub.text = cases[i].text, .stub.data = cases[i].close ? &r : NULL};

		rig_open(&r, &(struct http_client_settings){}, say_text);
		if (cases[i].text[0] == 1) { /* the rest of that frame's head */
			r.stub.text = "\x01\x01\x01\x04\x01\x01\x01\x01\x01";
		}
		fails(&r, "/test.Service/Ok", cases[i].err, cases[i].says);
		rig_close(&r);
	}
}

#define NOISE_ROUNDS 300

static uint64_t noise_seed = 20261115;

static uint8_t noise(void)
{
	noise_seed ^= noise_seed << 13;
	noise_seed ^= noise_seed >> 7;
	noise_seed ^= noise_seed << 17;
	return (uint8_t)(noise_seed >> 8);
}

/* Settings, then frames of any type with anything in them, then the end. */
static void say_noise(struct stub_conn *c, const char *head)
{
	bufferevent_write(c->bev, "\0\0\0\4\0\0\0\0\0", 9);
	(void)head;
	for (int i = 0; i < 8; i++) {
		uint8_t frame[9 + 64] = {
			0, 0, noise() % 64, noise() % 10, noise(), 0, 0, 0, noise() % 4};

		for (int k = 0; k < frame[2]; k++)
			frame[9 + k] = noise();
		bufferevent_write(c->bev, frame, 9u + frame[2]);
	}
	stub_close_after(c);
}

static void test_noise(void **state)
{
	struct rig r = {};

	(void)state;
	rig_open(&r, &(struct http_client_settings){}, say_noise);
	for (int i = 0; i < NOISE_ROUNDS; i++) {
		struct outcome o = call_path(&r, "/test.Service/Ok");

		assert_true(o.err < 0 && o.err != -ETIMEDOUT);
		assert_non_null(strstr(o.text, "127.0.0.1:"));
	}
	r.stub.fn = peer_begin;
	assert_int_equal(call_path(&r, "/test.Service/Ok").grpc_status, 0);
	rig_close(&r);
}

static void test_tls(void **state)
{
	struct made_dir dir;
	struct made_cert ca, cert;
	struct tls *tls;
	struct outcome o;

	(void)state;
	made_dir_init(&dir);
	made_cert(&ca, &dir, "authority", NULL, NULL, 0, 3600);
	made_cert(&cert, &dir, "server", "IP:127.0.0.1", &ca, 0, 3600);
	assert_int_equal(
		tls_client_new(&(struct tls_client_settings){.ca = ca.cert_path}, &tls, NULL), 0);
	for (int h2 = 1; h2 >= 0; h2--) {
		struct rig r = {.stub.tls = made_server(&cert, NULL, h2 ? "\x02h2" : NULL)};

		rig_open(&r, &(struct http_client_settings){.tls = tls}, peer_begin);
		if (h2) {
			o = call_path(&r, "/test.Service/Ok");
			assert_int_equal(o.err, 0);
			assert_memory_equal(o.body, "hello", 5);
			assert_string_equal(last.scheme, "https");
		} else {
			fails(&r, "/test.Service/Ok", -EPROTO, "does not support HTTP/2");
		}
		SSL_CTX_free(r.stub.tls);
		rig_close(&r);
	}
	tls_free(tls);
	made_cert_done(&ca);
	made_cert_done(&cert);
	made_dir_done(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ok),
		cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_improper),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_refused_stream),
		cmocka_unit_test(test_go_away),
		cmocka_unit_test(test_other_servers),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
