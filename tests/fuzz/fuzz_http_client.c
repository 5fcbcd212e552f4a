/* SPDX-License-Identifier: Apache-2.0 */
/* A server that answers the client's HTTP/1.1 or gRPC call with the input and closes: the call ends
 * exactly once, with a response or with a sentence. The first byte says which call it is. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include "fuzz.h"
#include "net/address.h"
#include "net/client/client.h"
#include "net/loop.h"

#define BODY_MAX 4096

static struct loop *loop;
static struct http_client *client;
static struct http_endpoint endpoint = {.host = "127.0.0.1"};
static struct fuzz_input answer;
static int told;

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		bufferevent_free(bev);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	shutdown(bufferevent_getfd(bev), SHUT_WR);
}

static void on_request(struct bufferevent *bev, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(bev);

	evbuffer_drain(in, evbuffer_get_length(in));
	if (!answer.size) {
		on_written(bev, arg);
		return;
	}
	bufferevent_setcb(bev, on_request, on_written, on_event, NULL);
	bufferevent_write(bev, answer.data, answer.size);
	answer.size = 0;
}

static void on_accept(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg)
{
	struct bufferevent *bev =
		bufferevent_socket_new(loop_base(loop), fd, BEV_OPT_CLOSE_ON_FREE);

	MUST(bev);
	bufferevent_setcb(bev, on_request, NULL, on_event, NULL);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
}

static void start(void)
{
	union address a = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)}};
	const struct http_client_settings s = {.tls = NULL};
	struct evconnlistener *l;
	socklen_t len = sizeof(a.v4);
	struct errinfo e = {0};

	MUST(loop_new(&loop) == 0);
	l = evconnlistener_new_bind(loop_base(loop), on_accept, NULL,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 16, &a.any, sizeof(a.v4));
	MUST(l && getsockname(evconnlistener_get_fd(l), &a.any, &len) == 0);
	endpoint.port = ntohs(a.v4.sin_port);
	MUST(http_client_new(loop, &s, &client, &e) == 0);
}

static void on_response(void *arg, const struct http_response *r, int err, const struct errinfo *e)
{
	told++;
	MUST(err ? err < 0 && e->text[0] : r->status >= 200 && r->status <= 999);
	if (!err)
		MUST(r->body_len <= BODY_MAX && r->head.count <= HTTP_FIELDS_MAX);
	loop_stop(loop);
}

static void on_grpc(void *arg, int status, const char *message, const void *body, size_t len,
	int err, const struct errinfo *e)
{
	told++;
	MUST(err ? err < 0 && e->text[0] : status >= 0);
	if (!err)
		MUST(len <= BODY_MAX && message);
	loop_stop(loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_ask ask = {.endpoint = &endpoint,
		.method = "GET",
		.path = "/x.Y/Z",
		.timeout_ns = 5 * NS_PER_S,
		.body_max = BODY_MAX,
		.alone = true};

	if (!client)
		start();
	if (size < 1)
		return 0;
	if (data[0] & 2)
		ask.method = "HEAD";
	answer = (struct fuzz_input){data + 1, size - 1};
	told = 0;
	if (data[0] & 1) {
		ask.method = "POST";
		ask.body = "m";
		ask.body_len = 1;
		MUST(grpc_ask(client, &ask, on_grpc, NULL) == 0);
	} else {
		MUST(http_ask(client, &ask, on_response, NULL, NULL) == 0);
	}
	MUST(loop_run(loop) == 0);
	for (int i = 0; i < 4; i++)
		event_base_loop(loop_base(loop), EVLOOP_NONBLOCK);
	MUST(told == 1);
	return 0;
}
