/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a client trusts: calls to servers that show one certificate or another. */
#include "client_fixture.h"

#include <ctype.h>
#include <errno.h>

#include "base/file.h"
#include "net/pki/tls.h"
#include "tls_fixture.h"

#define DAY 86400L

static struct scene {
	struct made_dir dir;
	struct made_cert ca, other_ca, good, named, expired, future, self, client, stranger, aging;
} scene;

static int scene_make(void **state)
{
	struct scene *s = &scene;

	(void)state;
	made_dir_init(&s->dir);
	made_cert(&s->ca, &s->dir, "authority", NULL, NULL, 0, DAY);
	made_cert(&s->other_ca, &s->dir, "other-authority", NULL, NULL, 0, DAY);
	made_cert(&s->good, &s->dir, "good", "DNS:localhost,IP:127.0.0.1", &s->ca, 0, DAY);
	made_cert(&s->named, &s->dir, "named", "DNS:gpu1.example", &s->ca, 0, DAY);
	made_cert(&s->expired, &s->dir, "expired", "IP:127.0.0.1", &s->ca, -2 * DAY, -DAY);
	made_cert(&s->future, &s->dir, "future", "IP:127.0.0.1", &s->ca, DAY, 2 * DAY);
	made_cert(&s->self, &s->dir, "self", "IP:127.0.0.1", NULL, 0, DAY);
	made_cert(&s->client, &s->dir, "client", "DNS:client", &s->ca, 0, DAY);
	made_cert(&s->stranger, &s->dir, "stranger", "DNS:client", &s->other_ca, 0, DAY);
	made_cert(&s->aging, &s->dir, "aging", "DNS:client", &s->ca, -100 * DAY, 9 * DAY + 60);
	return 0;
}

static int scene_done(void **state)
{
	struct made_cert *all = &scene.ca;

	(void)state;
	for (size_t i = 0; i < 10; i++)
		made_cert_done(&all[i]);
	made_dir_done(&scene.dir);
	return 0;
}

static void say_hello(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
}

/* Asks a server that shows @shown, twice, as a client with @s. */
static struct outcome ask_server(const struct made_cert *shown, const struct made_cert *client_ca,
	const struct tls_client_settings *s, const char *host)
{
	struct http_client *client;
	struct stub stub = {.tls = made_server(shown, client_ca, NULL)};
	struct outcome o;
	struct errinfo e;
	struct loop *l;
	struct tls *tls;

	assert_int_equal(tls_client_new(s, &tls, &e), 0);
	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(
		http_client_new(l, &(struct http_client_settings){.tls = tls, .bearer = "secret"},
			&client, &e),
		0);
	stub_start(&stub, l, say_hello, NULL);
	snprintf(stub.endpoint.host, sizeof(stub.endpoint.host), "%s", host);
	o = ask_place(l, client, &stub.endpoint);
	if (!o.err) {
		o = ask_place(l, client, &stub.endpoint);
		assert_int_equal(stub.connections, 1);
		assert_int_equal(stub.requests, 2);
		assert_true(o.sent_ns < o.first_ns && o.first_ns < o.told_ns);
	} else {
		char endpoint[300];

		assert_int_equal(stub.requests, 0); /* nothing was told to a stranger */
		snprintf(endpoint, sizeof(endpoint), "%s:%u", host, stub.endpoint.port);
		assert_non_null(strstr(o.text, endpoint));
		print_message("    %s\n", o.text);
	}
	http_client_free(client);
	while (stub.open)
		event_base_loop(loop_base(l), EVLOOP_ONCE);
	stub_stop(&stub);
	loop_free(l);
	tls_free(tls);
	SSL_CTX_free(stub.tls);
	return o;
}

static void expect_refused(struct outcome o, const char *says)
{
	assert_int_equal(o.err, -EKEYREJECTED);
	assert_non_null(strstr(o.text, says));
}

static void test_authority(void **state)
{
	struct tls_client_settings s = {.ca = scene.ca.cert_path};
	struct tls_client_settings other = {.ca = scene.other_ca.cert_path}, system = {};

	(void)state;
	assert_int_equal(ask_server(&scene.good, NULL, &s, "127.0.0.1").status, 200);
	assert_int_equal(ask_server(&scene.good, NULL, &s, "localhost").status, 200);
	expect_refused(ask_server(&scene.good, NULL, &other, "127.0.0.1"), "--ca-cert");
	expect_refused(ask_server(&scene.good, NULL, &system, "127.0.0.1"), "--ca-cert");
	expect_refused(ask_server(&scene.self, NULL, &s, "127.0.0.1"), "--ca-cert");
}

static void test_name(void **state)
{
	struct tls_client_settings s = {.ca = scene.ca.cert_path};

	(void)state;
	expect_refused(ask_server(&scene.named, NULL, &s, "127.0.0.1"), "another name");
	expect_refused(ask_server(&scene.named, NULL, &s, "localhost"), "another name");
	expect_refused(
		ask_server(&scene.self, NULL,
			&(struct tls_client_settings){.ca = scene.self.cert_path}, "localhost"),
		"another name");
}

static void test_dates(void **state)
{
	struct tls_client_settings s = {.ca = scene.ca.cert_path};

	(void)state;
	expect_refused(ask_server(&scene.expired, NULL, &s, "127.0.0.1"), "expired");
	expect_refused(ask_server(&scene.future, NULL, &s, "127.0.0.1"), "not valid yet");
}

/* A server's own certificate as the authority: itself and nobody else is trusted. */
static void test_own_certificate(void **state)
{
	struct tls_client_settings self = {.ca = scene.self.cert_path};
	struct tls_client_settings leaf = {.ca = scene.good.cert_path};

	(void)state;
	assert_int_equal(ask_server(&scene.self, NULL, &self, "127.0.0.1").status, 200);
	assert_int_equal(ask_server(&scene.good, NULL, &leaf, "127.0.0.1").status, 200);
	expect_refused(ask_server(&scene.good, NULL, &self, "127.0.0.1"), "--ca-cert");
}

static void test_fingerprint(void **state)
{
	const char *from = scene.self.fingerprint, *old = scene.expired.fingerprint;
	struct tls_client_settings s = {.pins = &from, .pin_count = 1};
	struct tls_client_settings expired = {.pins = &old, .pin_count = 1};
	char upper[96] = "";
	const char *shown = upper;

	(void)state;
	assert_int_equal(ask_server(&scene.self, NULL, &s, "127.0.0.1").status, 200);
	/* neither name nor dates matter */
	assert_int_equal(ask_server(&scene.self, NULL, &s, "localhost").status, 200);
	assert_int_equal(ask_server(&scene.expired, NULL, &expired, "localhost").status, 200);
	expect_refused(ask_server(&scene.good, NULL, &s, "127.0.0.1"), "fingerprint");
	for (int i = 0; i < 32; i++)
		snprintf(upper + 3 * i, sizeof(upper) - 3 * (size_t)i, "%c%c%s",
			toupper(from[2 * i]), toupper(from[2 * i + 1]), i < 31 ? ":" : "");
	s.pins = &shown;
	assert_int_equal(ask_server(&scene.self, NULL, &s, "127.0.0.1").status, 200);
}

/* A stranger is refused, unless it is the first use; then its line is in the file. */
static void test_first_use(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	char path[96], line[200];
	struct tls_client_settings s = {.known = path};

	(void)state;
	snprintf(path, sizeof(path), "%s/known", scene.dir.path);
	snprintf(scene.dir.files[scene.dir.count++], 128, "%s", path);
	expect_refused(ask_server(&scene.self, NULL, &s, "127.0.0.1"), scene.self.fingerprint);
	assert_int_equal(access(path, F_OK), -1);
	s.first_use = true;
	assert_int_equal(ask_server(&scene.self, NULL, &s, "localhost").status, 200); /* any name */
	assert_int_equal(file_read(path, 4096, &b), 0);
	snprintf(line, sizeof(line), " %s\n", scene.self.fingerprint);
	assert_true(!strncmp(buf_str(&b), "localhost:", 10) && strstr(buf_str(&b), line));
	assert_int_equal(strlen(strchr(buf_str(&b), '\n')), 1); /* one line of two connections */
	expect_refused(ask_server(&scene.expired, NULL, &s, "127.0.0.1"), "expired");
	/* Whom an authority vouches for need not be remembered. */
	s.ca = scene.ca.cert_path;
	assert_int_equal(ask_server(&scene.good, NULL, &s, "127.0.0.1").status, 200);
	buf_clear(&b);
	assert_int_equal(file_read(path, 4096, &b), 0);
	assert_null(strstr(buf_str(&b), scene.good.fingerprint));
	/* A fingerprint of the user's wins. */
	s.pins = (const char *[]){scene.good.fingerprint};
	s.pin_count = 1;
	expect_refused(ask_server(&scene.self, NULL, &s, "127.0.0.1"), "given fingerprint");
}

static void expect_age(const struct made_cert *shown, const char *says)
{
	const struct tls_client_settings s = {
		.ca = scene.ca.cert_path, .cert = shown->cert_path, .key = shown->key_path};
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct tls *t = NULL;

	assert_int_equal(tls_client_new(&s, &t, NULL), 0);
	tls_expiry(t, &b);
	tls_free(t);
	print_message("    %s", buf_str(&b));
	assert_true(says ? strstr(buf_str(&b), says) != NULL : b.len == 0);
}

static void test_age(void **state)
{
	(void)state;
	expect_age(&scene.client, NULL);
	expect_age(&scene.aging, "aging.pem expires in 9 days (");
	expect_age(&scene.expired, "expired.pem has expired (");
}

static void test_client_certificate(void **state)
{
	struct tls_client_settings s = {.ca = scene.ca.cert_path};

	(void)state;
	expect_refused(ask_server(&scene.good, &scene.ca, &s, "127.0.0.1"), "--client-cert");
	s.cert = scene.client.cert_path;
	s.key = scene.client.key_path;
	assert_int_equal(ask_server(&scene.good, &scene.ca, &s, "127.0.0.1").status, 200);
	s.cert = scene.stranger.cert_path;
	s.key = scene.stranger.key_path;
	expect_refused(ask_server(&scene.good, &scene.ca, &s, "127.0.0.1"), "rejects the client");
}

static void refused_settings(const struct tls_client_settings *s, const char *says)
{
	struct errinfo e = {};
	struct tls *t = NULL;

	assert_true(tls_client_new(s, &t, &e) < 0);
	print_message("    %s\n", e.text);
	assert_null(t);
	assert_non_null(strstr(e.text, says));
}

static void test_settings(void **state)
{
	struct tls_client_settings s = {.cert = scene.client.cert_path};
	char missing[128], longer[80];
	const char *pin = "abc";

	(void)state;
	refused_settings(&s, "must be given together");
	s.key = scene.good.key_path;
	refused_settings(&s, "not the key");
	s.key = scene.client.cert_path;
	refused_settings(&s, "cannot read the client key");
	s.key = scene.client.key_path;
	assert_int_equal(chmod(s.key, 0640), 0);
	refused_settings(&s, s.key);
	assert_int_equal(chmod(s.key, 0600), 0);
	snprintf(missing, sizeof(missing), "%s/missing", scene.dir.path);
	refused_settings(&(struct tls_client_settings){.ca = missing}, missing);
	refused_settings(&(struct tls_client_settings){.ca = missing}, "No such file or directory");
	refused_settings(
		&(struct tls_client_settings){.ca = scene.client.key_path}, "CA certificates");
	s = (struct tls_client_settings){.pins = &pin, .pin_count = 1};
	refused_settings(&s, "64 hexadecimal");
	pin = "";
	refused_settings(&s, "64 hexadecimal");
	snprintf(longer, sizeof(longer), "%s00", scene.self.fingerprint);
	pin = longer;
	refused_settings(&s, "64 hexadecimal");
}

/* A server without TLS, one that closes at once, one with TLS 1.2 at most; and TLS asked in the
 * clear. */
static void say_http(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
	stub_close_after(c);
}

static void close_at_once(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_conn_close(c);
}

static struct outcome ask_odd(struct stub *stub, bool tls)
{
	struct http_client *client;
	struct outcome o;
	struct loop *l;

	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(http_client_new(l, &(struct http_client_settings){}, &client, NULL), 0);
	stub_start(stub, l, stub->fn, NULL);
	stub->endpoint.tls = tls;
	o = ask_place(l, client, &stub->endpoint);
	print_message("    %s\n", o.text);
	http_client_free(client);
	while (stub->open)
		event_base_loop(loop_base(l), EVLOOP_ONCE);
	stub_stop(stub);
	loop_free(l);
	return o;
}

static void test_one_sided(void **state)
{
	struct stub plain = {.raw = true, .fn = say_http},
		    closes = {.raw = true, .fn = close_at_once};
	struct stub old = {.fn = say_hello, .tls = made_server(&scene.good, NULL, NULL)};
	struct stub tls = {.fn = say_hello, .tls = old.tls};
	struct outcome o;

	(void)state;
	o = ask_odd(&plain, true);
	assert_int_equal(o.err, -EPROTO);
	assert_non_null(strstr(o.text, "does not use TLS: write http:// before its address"));
	o = ask_odd(&closes, true);
	assert_int_equal(o.err, -EPROTO);
	assert_non_null(strstr(o.text, "http://"));
	o = ask_odd(&tls, false);
	assert_true(o.err < 0);
	assert_non_null(strstr(o.text, "expects TLS"));
	SSL_CTX_set_max_proto_version(old.tls, TLS1_2_VERSION);
	o = ask_odd(&old, true);
	assert_int_equal(o.err, -EPROTO);
	assert_non_null(strstr(o.text, "TLS 1.3"));
	SSL_CTX_free(old.tls);
}

/* A reply without a length ends with the connection; over TLS only if that was said. */
static void say_until_end(struct stub_conn *c, const char *head)
{
	(void)head;
	stub_say(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it");
	stub_close_after(c);
}

static void test_cut_short(void **state)
{
	struct tls_client_settings s = {.ca = scene.ca.cert_path};
	struct stub stub = {.tls = made_server(&scene.good, NULL, NULL)};
	struct http_client *client;
	struct outcome o;
	struct loop *l;
	struct tls *tls;

	(void)state;
	assert_int_equal(tls_client_new(&s, &tls, NULL), 0);
	assert_int_equal(loop_new(&l), 0);
	assert_int_equal(
		http_client_new(l, &(struct http_client_settings){.tls = tls}, &client, NULL), 0);
	stub_start(&stub, l, say_until_end, NULL);
	/* bufferevent_openssl closes without close_notify: what a cut connection looks like */
	o = ask_place(l, client, &stub.endpoint);
	print_message("    %s\n", o.text);
	assert_int_equal(o.err, -ECONNRESET);
	http_client_free(client);
	stub_stop(&stub);
	loop_free(l);
	tls_free(tls);
	SSL_CTX_free(stub.tls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_authority),
		cmocka_unit_test(test_name),
		cmocka_unit_test(test_dates),
		cmocka_unit_test(test_own_certificate),
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_first_use),
		cmocka_unit_test(test_age),
		cmocka_unit_test(test_client_certificate),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_one_sided),
		cmocka_unit_test(test_cut_short),
	};

	return cmocka_run_group_tests(tests, scene_make, scene_done);
}
