// SPDX-License-Identifier: Apache-2.0
/* bench_client.c - how long a fleet takes to be asked: one GET to each of 300 servers on ports of
 * one other process, with TLS and certificates on both sides, from one thread. Both sides share
 * this machine's cores, so half of what is measured are the servers' handshakes. Needs no root.
 *
 *   bench_client */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "net/client/client.h"
#include "net/server/server.h"
#include "tls_fixture.h"
#include "workload.h"

#define NODES    300
#define BUDGET_S 1.0
#define ROUNDS   5
#define REPLY    "{\"rows\":[]}"

struct files {
	struct made_dir dir;
	struct made_cert ca, server, client;
};

/* ---- the servers ---- */

static void answer(void *arg, struct http_exchange *x, const struct http_request *q)
{
	(void)arg, (void)q;
	http_reply(x, 200, NULL, REPLY, strlen(REPLY));
}

static void ignore(void *arg)
{
	(void)arg;
}

/* Prints a port a line into @out, and answers until it is killed. */
static _noreturn_ void serve(const struct files *f, bool with_tls, FILE *out)
{
	const struct http_route routes[] = {
		{.method = "GET", .path = "/x", .handler = answer, .open = true}, {}};
	struct tls_server_settings ts = {.cert = f->server.cert_path,
		.key = f->server.key_path,
		.client_ca = f->ca.cert_path};
	struct http_server_settings s = {.address = "127.0.0.1:0", .routes = routes};
	struct http_server *server;
	struct errinfo e = {};
	struct loop *loop;
	int r = loop_new(&loop);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (r == 0 && with_tls)
		r = tls_server_new(&ts, &s.tls, &e);
	for (int i = 0; i < NODES && r == 0; i++) {
		r = http_server_new(loop, &s, &server, &e);
		if (r == 0)
			fprintf(out, "%s\n", http_server_address(server));
	}
	if (r < 0)
		workload_die(e.text, r);
	fclose(out);
	loop_signal(loop, SIGINT, ignore, NULL);
	loop_run(loop);
	_exit(0);
}

static pid_t start_servers(const struct files *f, bool with_tls, struct http_endpoint *places)
{
	int pipe_fds[2];
	char line[64];
	FILE *in;
	pid_t pid;

	if (pipe(pipe_fds) < 0)
		workload_die("pipe", errno);
	pid = fork();
	if (pid == 0) {
		close(pipe_fds[0]);
		serve(f, with_tls, fdopen(pipe_fds[1], "w"));
	}
	close(pipe_fds[1]);
	in = fdopen(pipe_fds[0], "r");
	for (int i = 0; i < NODES; i++) {
		struct errinfo e;

		if (!fgets(line, sizeof(line), in))
			workload_die("the servers did not start", EIO);
		line[strcspn(line, "\n")] = 0;
		if (http_endpoint_parse(line, with_tls, 0, &places[i], &e) < 0)
			workload_die(e.text, EINVAL);
	}
	fclose(in);
	return pid;
}

/* ---- what it is compared with ---- */

static SSL_CTX *bare_client(const struct files *f)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), f->ca.cert);
	SSL_CTX_use_certificate(ctx, f->client.cert);
	SSL_CTX_use_PrivateKey(ctx, f->client.key);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return ctx;
}

/* As many handshakes as there are nodes, both sides in this thread and without sockets: seconds. */
static double bare_handshakes(const struct files *f)
{
	SSL_CTX *client_ctx = bare_client(f), *server_ctx = made_server(&f->server, &f->ca, NULL);
	uint64_t begin_ns = mono_now().ns;

	for (int i = 0; i < NODES; i++) {
		SSL *client = SSL_new(client_ctx), *server = SSL_new(server_ctx);
		BIO *a = NULL, *b = NULL;

		BIO_new_bio_pair(&a, 0, &b, 0);
		SSL_set_bio(client, a, a);
		SSL_set_bio(server, b, b);
		SSL_set_connect_state(client);
		SSL_set_accept_state(server);
		while (!SSL_is_init_finished(client) || !SSL_is_init_finished(server)) {
			SSL_do_handshake(client);
			SSL_do_handshake(server);
		}
		SSL_free(client);
		SSL_free(server);
	}
	SSL_CTX_free(client_ctx);
	SSL_CTX_free(server_ctx);
	return (double)(mono_now().ns - begin_ns) / 1e9;
}

/* ---- the client ---- */

struct round {
	struct loop *loop;
	int left, failed;
	double round_trip_ms[NODES];
	int told;
};

static void note(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	struct round *round = arg;

	if (err || r->status != 200) {
		if (!round->failed++)
			fprintf(stderr, "%s\n", err ? e->text : "another status");
	} else {
		round->round_trip_ms[round->told++] = (double)(r->first_ns - r->sent_ns) / 1e6;
	}
	if (--round->left == 0)
		loop_stop(round->loop);
}

/* Asks the first @count; seconds. */
static double ask_all(
	struct http_client *c, struct round *round, const struct http_endpoint *places, int count)
{
	uint64_t begin_ns = mono_now().ns;

	round->left = count;
	round->told = 0;
	for (int i = 0; i < count; i++) {
		struct http_ask a = {.endpoint = &places[i],
			.method = "GET",
			.path = "/x",
			.timeout_ns = 30 * NS_PER_S,
			.body_max = 1 << 20};
		int r = http_ask(c, &a, note, round, NULL);

		if (r < 0)
			workload_die("asking", r);
	}
	loop_run(round->loop);
	if (round->failed)
		workload_die("some servers did not answer", EIO);
	return (double)(mono_now().ns - begin_ns) / 1e9;
}

static void measure(const char *name, const struct files *f, bool with_tls, double budget_s)
{
	struct tls_client_settings ts = {
		.ca = f->ca.cert_path, .cert = f->client.cert_path, .key = f->client.key_path};
	struct http_client_settings s = {};
	static struct http_endpoint places[NODES];
	pid_t servers = start_servers(f, with_tls, places);
	double first[ROUNDS], again[ROUNDS], ratio[ROUNDS], trip_first = 0, trip_again = 0;
	struct round round = {};
	struct errinfo e = {};
	int r = loop_new(&round.loop);

	if (r == 0 && with_tls)
		r = tls_client_new(&ts, &s.tls, &e);
	for (int i = 0; i < ROUNDS; i++) {
		struct http_client *c;

		if (r == 0)
			r = http_client_new(round.loop, &s, &c, &e);
		if (r < 0)
			workload_die(e.text, r);
		first[i] = ask_all(c, &round, places, NODES);
		ratio[i] = first[i] / (with_tls ? bare_handshakes(f) : first[0]);
		trip_first = workload_median(round.round_trip_ms, NODES);
		again[i] = ask_all(c, &round, places, NODES);
		trip_again = workload_median(round.round_trip_ms, NODES);
		http_client_free(c);
	}
	printf("client_%s_%d_s %.3f, median of %d (budget %.1f)\n", name, NODES,
		workload_median(first, ROUNDS), ROUNDS, budget_s);
	if (with_tls)
		printf("client_%s_ratio %.2f of the bare handshakes of both sides in one thread\n",
			name, workload_median(ratio, ROUNDS));
	printf("client_%s_%d_kept_s %.3f on connections that were kept\n", name, NODES,
		workload_median(again, ROUNDS));
	printf("client_%s_round_trip_ms %.2f, %.2f on kept ones: median of what a call reports\n",
		name, trip_first, trip_again);
	kill(servers, SIGKILL);
	waitpid(servers, NULL, 0);
	if (s.tls)
		tls_free(s.tls);
	loop_free(round.loop);
}

int main(void)
{
	struct files f;

	made_dir_init(&f.dir);
	made_cert(&f.ca, &f.dir, "authority", NULL, NULL, 0, 3600);
	made_cert(&f.server, &f.dir, "server", "IP:127.0.0.1", &f.ca, 0, 3600);
	made_cert(&f.client, &f.dir, "client", "DNS:client", &f.ca, 0, 3600);
	measure("mtls", &f, true, BUDGET_S);
	measure("plain", &f, false, BUDGET_S);
	made_cert_done(&f.ca);
	made_cert_done(&f.server);
	made_cert_done(&f.client);
	made_dir_done(&f.dir);
	return 0;
}
