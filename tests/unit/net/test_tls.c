/* SPDX-License-Identifier: Apache-2.0 */
/* A server's TLS, from outside: what it shows, what it demands, what a reload changes. The client's
 * half is in the tests of the client. */
#include "cert_fixture.h"
#include "server_fixture.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

static char dir[64], state_dir[96];
static struct made ca, server, server2, expired, client, stranger_ca, stranger;

static int make_folder(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test-tls-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(state_dir, sizeof(state_dir), "%s/state", dir);
	unsetenv("INGERO_TLS_ALLOW_LOOSE_KEY_PERMS");
	made_new(&ca, dir, "ca", NULL, NULL, -3600, 86400);
	made_new(&server, dir, "server", &ca, "serverAuth", -3600, 86400);
	made_new(&server2, dir, "server2", &ca, "serverAuth", -3600, 86400);
	made_new(&expired, dir, "expired", &ca, "serverAuth", -7200, -3600);
	made_new(&client, dir, "agent 7", &ca, "clientAuth", -3600, 86400);
	made_new(&stranger_ca, dir, "stranger-ca", NULL, NULL, -3600, 86400);
	made_new(&stranger, dir, "stranger", &stranger_ca, "clientAuth", -3600, 86400);
	return 0;
}

static int remove_folder(void **state)
{
	static const char *const kept[] = {"cert.pem", "key.pem"};

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", state_dir, kept[i]);
		unlink(path);
	}
	rmdir(state_dir);
	made_done(&ca);
	made_done(&server);
	made_done(&server2);
	made_done(&expired);
	made_done(&client);
	made_done(&stranger_ca);
	made_done(&stranger);
	return rmdir(dir);
}

/* ---- a client ---- */

struct caller {
	const char *ca, *cert, *key;
	int version;      /* 0: TLS 1.3 */
	const char *alpn; /* as on the wire; NULL: none */
};

struct called {
	int status;        /* 0: no answer */
	char subject[256]; /* of the server's certificate */
	char body[256];
	bool trusted;
};

static SSL_CTX *caller_ctx(const struct caller *c)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	assert_non_null(ctx);
	if (c->version) {
		SSL_CTX_set_min_proto_version(ctx, c->version);
		SSL_CTX_set_max_proto_version(ctx, c->version);
	}
	if (c->ca)
		assert_int_equal(SSL_CTX_load_verify_file(ctx, c->ca), 1);
	if (c->cert) {
		assert_int_equal(SSL_CTX_use_certificate_chain_file(ctx, c->cert), 1);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(ctx, c->key, SSL_FILETYPE_PEM), 1);
	}
	if (c->alpn)
		SSL_CTX_set_alpn_protos(
			ctx, (const unsigned char *)c->alpn, (unsigned)strlen(c->alpn));
	return ctx;
}

static void converse(SSL *ssl, struct called *ret)
{
	static const char request[] = "GET /echo HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n";
	char text[4096] = "";
	size_t len = 0;
	int n;

	if (SSL_connect(ssl) != 1)
		return;
	X509_NAME_oneline(X509_get_subject_name(SSL_get0_peer_certificate(ssl)), ret->subject,
		sizeof(ret->subject));
	ret->trusted = SSL_get_verify_result(ssl) == X509_V_OK;
	SSL_write(ssl, request, sizeof(request) - 1);
	while ((n = SSL_read(ssl, text + len, (int)(sizeof(text) - 1 - len))) > 0)
		len += (size_t)n;
	text[len] = 0;
	if (sscanf(text, "HTTP/1.1 %d", &ret->status) == 1 && strstr(text, "\r\n\r\n"))
		snprintf(ret->body, sizeof(ret->body), "%.200s", strstr(text, "\r\n\r\n") + 4);
}

static struct called call(const struct bench *b, const struct caller *c)
{
	struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	struct called ret = {0};
	SSL_CTX *ctx = caller_ctx(c);
	SSL *ssl = SSL_new(ctx);
	int fd = dial(b);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	SSL_set_fd(ssl, fd);
	SSL_set1_host(ssl, "localhost");
	converse(ssl, &ret);
	ERR_clear_error();
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	return ret;
}

static void start(struct bench *b, const struct tls_server_settings *s)
{
	struct errinfo e = {0};

	bench_init(b);
	if (tls_server_new(s, &b->settings.tls, &e) < 0)
		fail_msg("%s", e.text);
	bench_start(b);
}

static void stop(struct bench *b)
{
	bench_stop(b);
	tls_free(b->settings.tls);
}

/* ---- tests ---- */

static void test_self_signed(void **state)
{
	struct tls_server_settings s = {.state_dir = state_dir};
	struct caller c = {0};
	struct called got;
	struct tls *again;
	struct bench b;

	start(&b, &s);
	assert_true(tls_is_self_signed(b.settings.tls));
	assert_int_equal(strlen(tls_fingerprint(b.settings.tls)), TLS_FINGERPRINT_LEN - 1);
	c.ca = tls_cert_path(b.settings.tls);
	got = call(&b, &c);
	assert_int_equal(got.status, 200);
	assert_true(got.trusted);
	assert_non_null(strstr(got.subject, "O=ingero"));
	/* the same one after a restart */
	assert_int_equal(tls_server_new(&s, &again, NULL), 0);
	assert_string_equal(tls_fingerprint(again), tls_fingerprint(b.settings.tls));
	tls_free(again);
	stop(&b);
}

static void test_versions(void **state)
{
	struct tls_server_settings s = {.cert = server.cert_path, .key = server.key_path};
	struct caller c = {.ca = ca.cert_path};
	struct bench b;

	start(&b, &s);
	assert_false(tls_is_self_signed(b.settings.tls));
	assert_int_equal(call(&b, &c).status, 200);
	c.version = TLS1_2_VERSION;
	assert_int_equal(call(&b, &c).status, 0);
	c.version = TLS1_3_VERSION;
	assert_int_equal(call(&b, &c).status, 200);
	c.alpn = "\x08http/1.1";
	assert_int_equal(call(&b, &c).status, 200);
	c.alpn = "\x04spdy";
	assert_int_equal(call(&b, &c).status, 0);
	stop(&b);
}

static void test_client_certificates(void **state)
{
	struct tls_server_settings s = {
		.cert = server.cert_path, .key = server.key_path, .client_ca = ca.cert_path};
	struct caller c = {.ca = ca.cert_path};
	struct called got;
	struct bench b;

	start(&b, &s);
	assert_int_equal(call(&b, &c).status, 0);
	c.cert = stranger.cert_path;
	c.key = stranger.key_path;
	assert_int_equal(call(&b, &c).status, 0);
	c.cert = server2.cert_path; /* of the authority, but a server's */
	c.key = server2.key_path;
	assert_int_equal(call(&b, &c).status, 0);
	c.cert = client.cert_path;
	c.key = client.key_path;
	got = call(&b, &c);
	assert_int_equal(got.status, 200);
	assert_string_equal(got.body, "GET /echo? - CN=agent 7|"); /* the handler sees who it is */
	assert_int_equal(bench_figures(&b).requests, 1);
	stop(&b);
}

/* Client certificates are enough to be let out of loopback. */
static void test_exposure(void **state)
{
	struct tls_server_settings s = {
		.cert = server.cert_path, .key = server.key_path, .client_ca = ca.cert_path};
	struct http_server *h = NULL;
	struct errinfo e = {0};
	struct bench b;

	bench_init(&b);
	b.settings.address = ":0";
	assert_int_equal(tls_server_new(&s, &b.settings.tls, &e), 0);
	assert_int_equal(http_server_new(b.loop, &b.settings, &h, &e), 0);
	http_server_free(h);
	tls_free(b.settings.tls);
	s.client_ca = NULL;
	assert_int_equal(tls_server_new(&s, &b.settings.tls, &e), 0);
	assert_int_equal(http_server_new(b.loop, &b.settings, &h, &e), -EPERM);
	tls_free(b.settings.tls);
	loop_free(b.loop);
}

static void copy_file(const char *from, const char *to)
{
	_cleanup_buf_ struct buf content = BUF_INIT(1 << 16);

	assert_int_equal(file_read(from, 1 << 16, &content), 0);
	assert_int_equal(file_write_atomic(to, content.data, content.len, 0600), 0);
}

struct reload {
	struct bench *b;
	int r;
	struct errinfo e;
	bool done;
};

static void reload_now(void *arg)
{
	struct reload *l = arg;

	l->r = tls_reload(l->b->settings.tls, &l->e);
	pthread_mutex_lock(&l->b->lock);
	l->done = true;
	pthread_cond_broadcast(&l->b->changed);
	pthread_mutex_unlock(&l->b->lock);
}

static int reload(struct bench *b, struct errinfo *e)
{
	struct reload l = {.b = b};

	assert_int_equal(loop_call(b->loop, reload_now, &l), 0);
	pthread_mutex_lock(&b->lock);
	while (!l.done)
		pthread_cond_wait(&b->changed, &b->lock);
	pthread_mutex_unlock(&b->lock);
	*e = l.e;
	return l.r;
}

static void test_reload(void **state)
{
	struct made live;
	struct tls_server_settings s = {.cert = live.cert_path, .key = live.key_path};
	struct caller c = {.ca = ca.cert_path};
	struct errinfo e;
	struct bench b;

	made_new(&live, dir, "live", &ca, "serverAuth", -3600, 86400);
	start(&b, &s);
	assert_string_equal(call(&b, &c).subject, "/CN=live");
	assert_true(tls_has_name(b.settings.tls, "LocalHost"));
	assert_true(tls_has_name(b.settings.tls, "127.0.0.1"));
	assert_false(tls_has_name(b.settings.tls, "live")); /* a subject is no name */
	assert_false(tls_has_name(b.settings.tls, "127.0.0.2"));
	assert_false(tls_has_name(b.settings.tls, ""));
	assert_false(tls_has_name(b.settings.tls, "."));
	copy_file(server2.cert_path, live.cert_path);
	assert_string_equal(call(&b, &c).subject, "/CN=live"); /* not before it is asked for */
	/* all or nothing: the key does not fit yet */
	assert_int_equal(reload(&b, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is not the key of"));
	assert_string_equal(call(&b, &c).subject, "/CN=live");
	copy_file(server2.key_path, live.key_path);
	assert_int_equal(reload(&b, &e), 0);
	assert_string_equal(call(&b, &c).subject, "/CN=server2");
	assert_int_equal(unlink(live.cert_path), 0);
	assert_int_equal(reload(&b, &e), -ENOENT);
	assert_string_equal(call(&b, &c).subject, "/CN=server2");
	assert_int_equal(mkfifo(live.cert_path, 0600), 0); /* nobody writes to it */
	assert_int_equal(reload(&b, &e), -EINVAL);
	assert_non_null(strstr(e.text, "it is not a regular file"));
	assert_string_equal(call(&b, &c).subject, "/CN=server2");
	stop(&b);
	made_done(&live);
}

static void test_bad_settings(void **state)
{
	struct made loose;
	const struct {
		struct tls_server_settings s;
		int r;
		const char *said;
	} rows[] = {
		{{.cert = server.cert_path}, -EINVAL, "must be given together"},
		{{.key = server.key_path}, -EINVAL, "must be given together"},
		{{.cert = server.cert_path, .key = server2.key_path}, -EINVAL, "is not the key of"},
		{{.cert = "/none", .key = server.key_path}, -ENOENT, "cannot read the certificate"},
		{{.cert = "/dev/zero", .key = server.key_path}, -EINVAL, "not a regular file"},
		{{.cert = server.cert_path, .key = server.key_path, .client_ca = "/dev/zero"},
			-EINVAL, "not a regular file"},
		{{.cert = server.cert_path, .key = "/none"}, -ENOENT, "cannot read the key file"},
		{{.cert = server.key_path, .key = server.key_path}, -EINVAL,
			"cannot read the certificate"},
		{{.cert = server.cert_path, .key = server.cert_path}, -EPERM, "chmod 600"},
		{{.cert = loose.cert_path, .key = loose.key_path}, -EPERM, "chmod 600"},
		{{.cert = expired.cert_path, .key = expired.key_path}, -EKEYEXPIRED, "expired"},
		{{.cert = server.cert_path, .key = server.key_path, .client_ca = "/none"}, -ENOENT,
			"CA for client certificates"},
		{{.cert = server.cert_path, .key = server.key_path, .client_ca = server.key_path},
			-EINVAL, "CA for client certificates"},
		{{0}, -EINVAL, "no folder"},
	};

	made_new(&loose, dir, "loose", &ca, "serverAuth", -3600, 86400);
	assert_int_equal(chmod(loose.key_path, 0640), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tls *t = NULL;
		struct errinfo e = {0};
		int r = tls_server_new(&rows[i].s, &t, &e);

		if (r != rows[i].r || !strstr(e.text, rows[i].said))
			print_error("%zu: %d %s\n", i, r, e.text);
		assert_int_equal(r, rows[i].r);
		assert_non_null(strstr(e.text, rows[i].said));
		assert_null(t);
	}
	made_done(&loose);
}

/* A peer that does not shake hands is not waited for. */
static void test_handshakes_have_their_time(void **state)
{
	struct tls_server_settings s = {.cert = server.cert_path, .key = server.key_path};
	struct caller c = {.ca = ca.cert_path};
	struct bench b;
	int fd;

	bench_init(&b);
	assert_int_equal(tls_server_new(&s, &b.settings.tls, NULL), 0);
	b.limits.handshake_ns = 300 * NS_PER_MS;
	bench_start(&b);
	fd = dial(&b);
	assert_true(hears_end(fd));
	close(fd);
	assert_int_equal(call(&b, &c).status, 200);
	stop(&b);
}

/* Who writes http:// is told, whatever the method and however the bytes come; nothing of it reaches a handler. */
static void test_plain_requests_are_told(void **state)
{
	static const char *const requests[] = {"GET /echo HTTP/1.1\r\n" HOST "\r\n", "G",
		"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\nhalf a body",
		"OPTIONS * HTTP/1.0\r\n\r\n", "DELETE it"};
	static const char *const others[] = {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"get / HTTP/1.1\r\n\r\n", "\x80\x2e\x01", "hello", "\r\n\r\n"};
	struct tls_server_settings s = {.cert = server.cert_path, .key = server.key_path};
	struct caller c = {.ca = ca.cert_path};
	uint64_t rejected = 0;
	struct bench b;
	int fd;

	start(&b, &s);
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		struct response *a;

		fd = dial(&b);
		say(fd, requests[i]);
		a = hear(fd);
		assert_int_equal(a->status, 400);
		assert_false(a->keep_alive);
		assert_non_null(strstr(a->body, "this port speaks HTTPS: write https://"));
		assert_non_null(strstr(a->head, "upgrade: TLS/1.3"));
		assert_true(hears_end(fd));
		close(fd);
		assert_int_equal(bench_figures(&b).rejected, ++rejected);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		char said[64];
		size_t n;

		fd = dial(&b);
		say(fd, others[i]);
		shutdown(fd, SHUT_WR);
		n = hear_some(fd, said, sizeof(said));
		assert_true(n < 4 || memcmp(said, "HTTP", 4) != 0);
		close(fd);
	}
	assert_int_equal(bench_figures(&b).requests, 0);
	assert_int_equal(bench_figures(&b).rejected, rejected);
	assert_int_equal(call(&b, &c).status, 200); /* control: the same over TLS */
	stop(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self_signed),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_client_certificates),
		cmocka_unit_test(test_exposure),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_bad_settings),
		cmocka_unit_test(test_handshakes_have_their_time),
		cmocka_unit_test(test_plain_requests_are_told),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
