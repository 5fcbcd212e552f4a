/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_http.c - see mcp_registry.h. A request's strings stay until it is replied to, so that the thread
 * that answers reads them where they are. */
#include "serve/mcp/mcp_registry.h"

#include "base/file.h"
#include "serve/serve_private.h"

#define MCP_HTTP_AT_ONCE 4  /* requests being answered */
#define MCP_HTTP_QUEUE   64 /* waiting; more are told to come again (503) */

/* A line longer than a message may be is answered as such and thrown
 * away up to its end, so that the next one is read as if nothing had happened. */

#define CHUNK     65536
#define REPLY_MAX (4u << 20)

struct lines {
	const struct dispatcher *dispatcher;
	struct dispatcher_lines session;
	int in, out;
	struct buf line; /* what has come of the current one, up to one byte too many */
	int err;         /* of writing */
};

static void write_all(struct lines *l, const char *text, size_t len)
{
	l->err = l->err ?: file_write_all(l->out, text, len);
}

static void note(void *arg, const char *text, size_t len)
{
	write_all(arg, text, len);
	write_all(arg, "\n", 1);
}

static void mcp_stdio_answer(struct lines *l)
{
	_cleanup_buf_ struct buf reply = BUF_INIT(REPLY_MAX);
	size_t len = l->line.len;

	if (len && l->line.data[len - 1] == '\r')
		len--;
	if (len)
		dispatcher_line(l->dispatcher, &l->session, l->line.data, len, &reply);
	write_all(l, buf_str(&reply), reply.len);
	buf_clear(&l->line);
}

/* Bytes beyond the ceiling are dropped; that there were some is seen by one that is kept. */
static void take(struct lines *l, const char *data, size_t len)
{
	size_t room = RPC_BYTES_MAX + 1 - MIN(l->line.len, (size_t)RPC_BYTES_MAX + 1);

	buf_append(&l->line, data, MIN(len, room));
}

static void feed(struct lines *l, const char *data, size_t len)
{
	while (len && l->err == 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		take(l, data, n);
		if (end)
			mcp_stdio_answer(l);
		n += end != NULL;
		data += n;
		len -= n;
	}
}

int mcp_stdio_run(const struct dispatcher *t, int in, int out, struct errinfo *reterr)
{
	struct lines l = {
		.dispatcher = t, .in = in, .out = out, .line = BUF_INIT(RPC_BYTES_MAX + 64)};
	_cleanup_free_ char *chunk = malloc(CHUNK);
	ssize_t n = 0;

	if (!chunk)
		return -ENOMEM;
	l.session.notify = note;
	l.session.notify_arg = &l;
	while (l.err == 0) {
		n = read(in, chunk, CHUNK);
		if (n > 0)
			feed(&l, chunk, (size_t)n);
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (n == 0 && l.line.len && l.err == 0)
		mcp_stdio_answer(&l);
	buf_done(&l.line);
	if (n < 0)
		return errinfo_set(reterr, -EIO, "reading messages failed: %s", strerror(errno));
	if (l.err < 0 && l.err != -EPIPE)
		return errinfo_set(reterr, -EIO, "writing a reply failed: %s", strerror(-l.err));
	return 0;
}

struct mcp_http {
	const struct dispatcher *dispatcher;
	struct loop *loop;
	struct pool *pool;
};

struct work {
	struct job job; /* the first, so that a job is its work */
	struct mcp_http *http;
	const struct http_request *request;
	struct http_transport_reply reply;
};

static const char *field(const void *arg, const char *name)
{
	return http_head_get(arg, name);
}

/* Any thread, as long as the tool takes; done with buf_done(&ret->body). */
static void mcp_http_answer(
	const struct dispatcher *t, const struct http_request *q, struct http_transport_reply *ret)
{
	struct http_transport_request p = {.method = q->method,
		.body = q->body ? q->body : "",
		.body_len = q->body_len,
		.field = field,
		.field_arg = &q->head};

	http_transport_answer(t, &p, ret);
}

/* Sends it, on the loop's thread. */
static void mcp_http_reply(struct http_exchange *x, const struct http_transport_reply *r)
{
	if (r->allow)
		http_reply_field(x, "allow", r->allow);
	http_reply(x, r->body.err ? 500 : r->status, r->type, buf_str(&r->body), r->body.len);
}

int mcp_http_new(const struct dispatcher *t, struct loop *l, struct mcp_http **ret)
{
	const struct pool_settings pool = {
		.threads = MCP_HTTP_AT_ONCE, .queue_max = MCP_HTTP_QUEUE, .leaves_room = true};
	struct mcp_http *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->dispatcher = t;
	h->loop = l;
	r = pool_new(&pool, &h->pool);
	if (r < 0) {
		free(h);
		return r;
	}
	*ret = h;
	return 0;
}

void mcp_http_free(struct mcp_http *h)
{
	if (!h)
		return;
	pool_free(h->pool);
	free(h);
}

static bool answer(struct job *j, bool brief _unused_)
{
	struct work *w = (struct work *)j;

	mcp_http_answer(w->http->dispatcher, w->request, &w->reply);
	return true;
}

static void finish(struct job *j, int err)
{
	struct work *w = (struct work *)j;

	if (err < 0)
		http_reply_error(j->x, 408, "the connection was closed before the answer");
	else
		mcp_http_reply(j->x, &w->reply);
	buf_done(&w->reply.body);
	free(w);
}

void mcp_http_handler(void *arg, struct http_exchange *x, const struct http_request *q)
{
	struct mcp_http *h = arg;
	struct work *w = calloc(1, sizeof(*w));

	if (w) {
		*w = (struct work){
			.job = {.x = x, .ends_with_asker = true, .run = answer, .finish = finish},
			.http = h,
			.request = q};
		if (job_start(&w->job, h->loop, h->pool, q, 0) == 0)
			return;
		free(w);
	}
	http_reply_field(x, "retry-after", "1");
	http_reply_error(x, 503, "too many requests are waiting: try again in a moment");
}

void mcp_http_serve_handler(void *arg, struct http_exchange *x, const struct http_request *q)
{
	mcp_http_handler(serve_arg(arg), x, q);
}

bool mcp_http_is_idle(struct mcp_http *h)
{
	return pool_load(h->pool) == 0;
}
