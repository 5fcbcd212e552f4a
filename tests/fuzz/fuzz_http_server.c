/* SPDX-License-Identifier: Apache-2.0 */
/* A peer of the HTTP server, version 1.1 or 2: what it sends comes in two pieces over a pair of
 * sockets. Replies are well-formed, and nothing of the connection is left once the peer is gone. The
 * first byte says where the pieces part. */
#include <event2/event.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "net/loop.h"
#include "net/server/server_private.h"

#define PREFACE      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define FRAME_HEAD   9
#define TURNS_MAX    256
#define REPLY_KEPT   (1 << 20)
#define INFLATED_MAX (2 << 20)

static struct loop *loop;
static struct http_server *server;
static uint8_t reply[REPLY_KEPT];

static void echo(void *arg, struct http_exchange *x, const struct http_request *q)
{
	const char *probe = http_head_get(&q->head, "x-probe");

	MUST(q->path[0] == '/' || strcmp(q->path, "*") == 0);
	MUST(!q->body_len || q->body);
	if (probe)
		http_reply_field(x, "X-Probe", probe);
	http_reply(x, 200, "text/plain", q->body, q->body_len);
}

/* Of what was inflated, which is not what was sent. */
static void swallow(void *arg, struct http_exchange *x, const struct http_request *q)
{
	MUST(q->body_len <= INFLATED_MAX && (!q->body_len || q->body));
	if (q->body_len && q->body[0] == 'f')
		http_reply_error(x, 429, "%s", q->body);
	else
		http_reply(x, 200, NULL, "{}", 2);
}

static void start(void)
{
	static const struct http_route routes[] = {
		{"GET", "/", .handler = echo},
		{"POST", "/", .handler = echo},
		{"POST", "/small", echo, .body_max = 10},
		{"POST", "/gzip", swallow, .inflated_max = INFLATED_MAX},
		{"POST", "/s/Call", swallow, .grpc = true, .inflated_max = INFLATED_MAX},
		{.method = NULL},
	};
	const struct http_server_settings s = {.address = "127.0.0.1:0", .routes = routes};
	struct errinfo e = {0};

	MUST(loop_new(&loop) == 0);
	MUST(http_server_new(loop, &s, &server, &e) == 0);
}

/* turn - lets the server work, and takes what it says: bytes now in reply. */
static size_t turn(int fd, size_t len)
{
	for (int i = 0; i < TURNS_MAX; i++) {
		ssize_t n;

		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
		n = recv(fd, reply + len, sizeof(reply) - len, MSG_DONTWAIT);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

static size_t say(int fd, const uint8_t *data, size_t size, size_t len)
{
	while (size) {
		ssize_t n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);

		len = turn(fd, len);
		if (n <= 0)
			break; /* it has had enough */
		data += n;
		size -= (size_t)n;
	}
	return turn(fd, len);
}

/* came_from - the bytes of an echo stand in what was sent, in this order. */
static bool came_from(const uint8_t *p, size_t len, const uint8_t *sent, size_t size)
{
	for (size_t i = 0; len && i < size; i++)
		if (*p == sent[i])
			p++, len--;
	return len == 0;
}

static void check_frames(size_t len, const uint8_t *sent, size_t sent_len)
{
	size_t at = 0;

	while (at + FRAME_HEAD <= len) {
		size_t size = (size_t)reply[at] << 16 | (size_t)reply[at + 1] << 8 | reply[at + 2];

		MUST(size <= 16384 && reply[at + 3] <= 9);
		if (reply[at + 3] == 0 && size && at + FRAME_HEAD + size <= len)
			MUST(reply[at + FRAME_HEAD] ==
					'{' || /* an error's text, what swallow() says */
				reply[at + FRAME_HEAD] == 0 || /* the same in a frame of gRPC */
				came_from(reply + at + FRAME_HEAD, size, sent, sent_len));
		at += FRAME_HEAD + size;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union address remote = {
		.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)}};
	size_t cut, len = 0;
	int fds[2];

	if (!server)
		start();
	if (size < 1)
		return 0;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
	MUST(peers_enter(server->peers, &remote, server->limits.per_peer) == 0);
	MUST(connection_new(server, fds[0], &remote) == 0);
	cut = MIN((size_t)data[0] * 4, size - 1);
	len = say(fds[1], data + 1, cut, len);
	len = say(fds[1], data + 1 + cut, size - 1 - cut, len);
	shutdown(fds[1], SHUT_WR);
	len = turn(fds[1], len);
	close(fds[1]);
	for (int i = 0; i < TURNS_MAX && http_server_stats(server).open_connections; i++)
		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
	MUST(http_server_stats(server).open_connections == 0);
	MUST(http_server_stats(server).bodies == 0);
	if (size - 1 >= strlen(PREFACE) && memcmp(data + 1, PREFACE, strlen(PREFACE)) == 0)
		check_frames(len, data + 1, size - 1);
	else
		MUST(!len || (len > 9 && memcmp(reply, "HTTP/1.1 ", 9) == 0));
	return 0;
}
