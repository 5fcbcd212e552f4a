/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_nodes.c - many nodes in one process, for bench/fanout.py: our own HTTP server on as many
 * ports of 127.0.0.1, answering SQL with two rows and the time with the time, until its standard
 * input ends.
 *
 *   fanout_nodes COUNT CERTIFICATE KEY CLIENT_AUTHORITY */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/server/server.h"

static void on_query(void *arg, struct http_exchange *x, const struct http_request *q)
{
	static const char rows[] =
		"{\"columns\":[\"source\",\"cnt\",\"avg_us\"],\"rows\":[[4,11009,5.2],"
		"[3,847,18400.0]],\"truncated\":false}";

	(void)arg, (void)q;
	http_reply(x, 200, NULL, rows, strlen(rows));
}

static void on_time(void *arg, struct http_exchange *x, const struct http_request *q)
{
	char body[64];

	(void)arg, (void)q;
	snprintf(body, sizeof(body), "{\"timestamp_ns\":%lld}", (long long)wall_now().ns);
	http_reply(x, 200, NULL, body, strlen(body));
}

static void stop(void *arg)
{
	loop_stop(arg);
}

int main(int argc, char **argv)
{
	const struct http_route routes[] = {
		{.method = "POST", .path = "/api/v1/query", .handler = on_query, .open = true},
		{.method = "GET", .path = "/api/v1/time", .handler = on_time, .open = true}, {0}};
	struct http_server_settings s = {.address = "127.0.0.1:0", .routes = routes};
	struct tls_server_settings ts = {0};
	struct http_server *server;
	struct errinfo e = {0};
	struct loop *loop;
	int count, r;

	if (argc != 5)
		return 64;
	count = atoi(argv[1]);
	ts = (struct tls_server_settings){.cert = argv[2], .key = argv[3], .client_ca = argv[4]};
	r = loop_new(&loop);
	if (r == 0)
		r = tls_server_new(&ts, &s.tls, &e);
	for (int i = 0; r == 0 && i < count; i++) {
		r = http_server_new(loop, &s, &server, &e);
		if (r == 0)
			printf("%s%s", i ? "," : "", http_server_address(server));
	}
	if (r < 0) {
		fprintf(stderr, "fanout_nodes: %s\n", e.text);
		return 1;
	}
	puts("");
	fflush(stdout);
	if (loop_watch(loop, STDIN_FILENO, stop, loop) < 0)
		return 1;
	return loop_run(loop) < 0; /* the servers go with the process */
}
