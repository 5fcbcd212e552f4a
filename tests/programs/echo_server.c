/* SPDX-License-Identifier: Apache-2.0 */
/* echo_server.c - the HTTP server with a few routes, for tests from outside.
 *
 *	echo-server ADDRESS [key=value…]
 *
 * Keys as in server_options.h. Prints "listening on ADDRESS" and, with TLS, "fingerprint HEX"; reads
 * certificates and tokens again at SIGHUP; says "late" once it owes such a reply; ends at SIGTERM when replies
 * under way are done, with its figures. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "server_options.h"

struct program {
	struct loop *loop;
	struct http_server *server;
	struct tls *tls;
	struct token_set *tokens;
	struct http_exchange *waiting;
	struct loop_timer *timer;
};

static void echo(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	buf_printf(&b, "%s %s ?%s\n", q->method, q->path, q->query);
	for (size_t i = 0; i < q->head.count; i++)
		buf_printf(&b, "%s: %s\n", q->head.field[i].name, q->head.field[i].value);
	buf_printf(&b, "peer %s subject %s\n", q->peer, q->subject ? q->subject : "-");
	buf_append(&b, q->body, q->body_len);
	http_reply(x, 200, "text/plain", b.data, b.len);
}

static void ping(void *arg, struct http_exchange *x, const struct http_request *q)
{
	http_reply(x, 200, NULL, "{\"ok\": true}\n", 13);
}

static void sink(void *arg, struct http_exchange *x, const struct http_request *q)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "{\"bytes\": %zu}\n", q->body_len);

	http_reply(x, 200, NULL, text, (size_t)n);
}

static void big(void *arg, struct http_exchange *x, const struct http_request *q)
{
	static char body[1 << 20];

	memset(body, 'b', sizeof(body));
	http_reply(x, 200, "application/octet-stream", body, sizeof(body));
}

static void answer_late(void *arg)
{
	struct program *p = arg;

	if (p->waiting)
		http_reply(TAKE(p->waiting), 200, NULL, "{\"late\": true}\n", 15);
}

static void late(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct program *p = arg;

	answer_late(p);
	p->waiting = x;
	loop_timer_set(p->timer, 300 * NS_PER_MS);
	printf("late\n");
	fflush(stdout);
}

static const struct http_route routes[] = {
	{"GET", "/open", ping, .open = true},
	{"GET", "/ping", .handler = ping},
	{"GET", "/big", .handler = big},
	{"GET", "/late", .handler = late},
	{"GET", "/echo/", .handler = echo},
	{"POST", "/echo/", .handler = echo},
	{"POST", "/sink", sink, .body_max = 4 << 20},
	{.method = NULL},
};

static void reload(void *arg)
{
	struct program *p = arg;
	struct errinfo e = {0};

	if (p->tls && tls_reload(p->tls, &e) < 0)
		printf("kept: %s\n", e.text);
	else if (p->tokens && token_set_reload(p->tokens, &e) < 0)
		printf("kept: %s\n", e.text);
	else
		printf("reloaded\n");
	fflush(stdout);
}

static void drained(void *arg)
{
	struct program *p = arg;

	loop_stop(p->loop);
}

static void stop(void *arg)
{
	struct program *p = arg;

	http_server_drain(p->server, drained, p);
}

static int serve(struct server_options *o)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_(tls_freep) struct tls *tls = NULL;
	_cleanup_(token_set_freep) struct token_set *tokens = NULL;
	_cleanup_(loop_timer_freep) struct loop_timer *timer = NULL;
	_cleanup_(http_server_freep) struct http_server *server = NULL;
	struct errinfo e = {.text = "no memory"};
	struct http_server_stats f;
	struct program p;

	if (loop_new(&loop) < 0 || server_options_open(o, "ECHO_TOKEN", &tls, &tokens, &e) < 0 ||
		loop_timer_new(loop, answer_late, &p, &timer) < 0) {
		fprintf(stderr, "echo-server: %s\n", e.text);
		return 1;
	}
	o->server.routes = routes;
	o->server.arg = &p;
	if (http_server_new(loop, &o->server, &server, &e) < 0) {
		fprintf(stderr, "echo-server: %s\n", e.text);
		return 1;
	}
	p = (struct program){
		.loop = loop, .server = server, .tls = tls, .tokens = tokens, .timer = timer};
	loop_signal(loop, SIGHUP, reload, &p);
	loop_signal(loop, SIGTERM, stop, &p);
	printf("listening on %s\n", http_server_address(server));
	if (tls)
		printf("fingerprint %s\n", tls_fingerprint(tls));
	fflush(stdout);
	loop_run(loop);
	f = http_server_stats(server);
	printf("requests %lu rejected %lu connections %lu open %lu\n", f.requests, f.rejected,
		f.connections, f.open_connections);
	return 0;
}

int main(int argc, char **argv)
{
	struct server_options o = {.limits = HTTP_LIMITS};

	if (argc < 2 || !server_options_read(&o, argv + 2))
		return 64;
	o.server.address = argv[1];
	return serve(&o);
}
