/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_http.c - see mcp_http.h.
 *
 * A request belongs to its thread until loop_call() has handed it back; its strings stay until it
 * is replied to. `running` counts what is between the handler and the reply. */
#include "agent/serve/mcp_http.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct mcp_http {
	const struct talk *talk;
	struct loop *loop;
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	unsigned running; /* threads */
};

struct work {
	struct mcp_http *http;
	struct http_exchange *exchange;
	const struct http_request *request;
	struct post_reply reply;
};

static const char *field(const void *arg, const char *name)
{
	return http_head_get(arg, name);
}

void mcp_http_answer(const struct talk *t, const struct http_request *q, struct post_reply *ret)
{
	struct post_request p = {.method = q->method,
		.body = q->body ? q->body : "",
		.body_len = q->body_len,
		.field = field,
		.field_arg = &q->head};

	post_answer(t, &p, ret);
}

void mcp_http_reply(struct http_exchange *x, const struct post_reply *r)
{
	if (r->allow)
		http_reply_field(x, "allow", r->allow);
	http_reply(x, r->body.err ? 500 : r->status, r->type, buf_str(&r->body), r->body.len);
}

int mcp_http_new(const struct talk *t, struct loop *l, struct mcp_http **ret)
{
	struct mcp_http *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->talk = t;
	h->loop = l;
	pthread_mutex_init(&h->mutex, NULL);
	pthread_cond_init(&h->ended, NULL);
	*ret = h;
	return 0;
}

void mcp_http_free(struct mcp_http *h)
{
	if (!h)
		return;
	pthread_mutex_lock(&h->mutex);
	while (h->running)
		pthread_cond_wait(&h->ended, &h->mutex);
	pthread_mutex_unlock(&h->mutex);
	pthread_cond_destroy(&h->ended);
	pthread_mutex_destroy(&h->mutex);
	free(h);
}

static bool take_turn(struct mcp_http *h)
{
	bool free_turn;

	pthread_mutex_lock(&h->mutex);
	free_turn = h->running < MCP_HTTP_AT_ONCE;
	h->running += free_turn;
	pthread_mutex_unlock(&h->mutex);
	return free_turn;
}

static void end_turn(struct mcp_http *h)
{
	pthread_mutex_lock(&h->mutex);
	h->running--;
	pthread_cond_broadcast(&h->ended);
	pthread_mutex_unlock(&h->mutex);
}

static void hand_back(void *arg)
{
	struct work *w = arg;

	mcp_http_reply(w->exchange, &w->reply);
	buf_done(&w->reply.body);
	free(w);
}

static void *answer(void *arg)
{
	struct work *w = arg;
	struct mcp_http *h = w->http;

	mcp_http_answer(h->talk, w->request, &w->reply);
	/* Without memory for the call nobody would ever be answered: try until there is some. */
	while (loop_call(h->loop, hand_back, w) == -ENOMEM)
		sched_yield();
	end_turn(h);
	return NULL;
}

void mcp_http_handler(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct mcp_http *h = arg;
	struct work *w = NULL;
	pthread_t thread;

	if (take_turn(h)) {
		w = calloc(1, sizeof(*w));
		if (w)
			*w = (struct work){.http = h, .exchange = x, .request = q};
		if (w && pthread_create(&thread, NULL, answer, w) == 0) {
			pthread_detach(thread);
			return;
		}
		free(w);
		end_turn(h);
	}
	http_reply_field(x, "retry-after", "1");
	http_reply_error(
		x, 503, "%d requests are being answered already: try again", MCP_HTTP_AT_ONCE);
}

void mcp_http_serve_handler(void *arg, struct http_exchange *x, const struct http_request *q)
{
	mcp_http_handler(serve_arg(arg), x, q);
}

bool mcp_http_is_idle(struct mcp_http *h)
{
	bool idle;

	pthread_mutex_lock(&h->mutex);
	idle = !h->running;
	pthread_mutex_unlock(&h->mutex);
	return idle;
}
