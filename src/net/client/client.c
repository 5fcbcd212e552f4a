/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - calls: begun, given a connection, ended, and told to their callers.
 *
 * Invariants:
 *   1. A call is in exactly one list: client->waiting (no connection is free), a connection's
 * calls, or client->ended. call->in says which.
 *   2. Callers' functions run in run_ended() alone, called by the loop itself. There they may ask,
 *      cancel, and free the client.
 *   3. A call's time counts from http_ask(), whatever it waits for; then it ends. */
#include "net/client/client.h"

#include <ctype.h>
#include <event2/event.h>
#include <strings.h>

#include "net/client/client_private.h"

#define TIMEOUT_MAX_NS (24 * 3600 * NS_PER_S) /* longer than anybody waits, without overflow */
#define PATH_MAX_BYTES 7168 /* with method and version within HTTP_LINE_MAX of servers */

/* ---- the client ---- */

static void run_ended(int fd, short what, void *arg);

/* What may stand in a field's value: no control characters, or it could begin another field. */
static bool is_value(const char *s)
{
	for (; *s; s++)
		if (((unsigned char)*s < ' ' && *s != '\t') || *s == 0x7f)
			return false;
	return true;
}

int http_client_new(struct loop *l, const struct http_client_settings *s, struct http_client **ret,
	struct errinfo *reterr)
{
	_cleanup_(http_client_freep) struct http_client *c = calloc(1, sizeof(*c));

	if (!c)
		return errinfo_set(reterr, -ENOMEM, "out of memory for the HTTP client");
	TAILQ_INIT(&c->conns);
	TAILQ_INIT(&c->closed);
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->ended);
	if (s->bearer && (!*s->bearer || strlen(s->bearer) > CLIENT_FIELDS_MAX / 2 ||
				 !is_value(s->bearer) || strpbrk(s->bearer, " \t")))
		return errinfo_set(reterr, -EINVAL,
			"invalid token: it is empty, too long, or contains a blank or a control character");
	c->base = loop_base(l);
	c->tls = s->tls;
	c->plain_ok = s->plain_ok;
	c->bearer = s->bearer ? strdup(s->bearer) : NULL;
	c->run_ended = event_new(c->base, -1, 0, run_ended, c);
	if ((s->bearer && !c->bearer) || !c->run_ended ||
		client_names_new(c->base, "", &c->names) < 0)
		return errinfo_set(reterr, -ENOMEM, "out of memory for the HTTP client");
	*ret = TAKE(c);
	return 0;
}

static void call_free(struct http_call *call)
{
	if (call->deadline)
		event_free(call->deadline);
	http1_done(&call->parser);
	buf_done(&call->reply);
	buf_done(&call->fields);
	free(call->method);
	free(call->path);
	free(call->type);
	free(call->body);
	free(call->grpc);
	free(call);
}

static void calls_free(struct client_calls *calls)
{
	struct http_call *call;

	while ((call = TAILQ_FIRST(calls))) {
		TAILQ_REMOVE(calls, call, link);
		call_free(call);
	}
}

static void closed_free(struct http_client *c)
{
	struct client_conn *conn;

	while ((conn = TAILQ_FIRST(&c->closed))) {
		TAILQ_REMOVE(&c->closed, conn, link);
		client_conn_free(conn);
	}
}

void http_client_free(struct http_client *c)
{
	struct client_conn *conn;

	if (c->freed)
		*c->freed = true;
	while ((conn = TAILQ_FIRST(&c->conns))) {
		calls_free(&conn->calls);
		client_conn_close(conn);
	}
	calls_free(&c->waiting);
	calls_free(&c->ended);
	closed_free(c);
	client_names_freep(&c->names);
	if (c->run_ended)
		event_free(c->run_ended);
	tls_freep(&c->own_tls);
	if (c->bearer)
		explicit_bzero(c->bearer, strlen(c->bearer));
	free(c->bearer);
	free(c);
}

/* ---- a call's way ---- */

static void list_move(struct http_call *call, struct client_calls *to)
{
	if (call->in)
		TAILQ_REMOVE(call->in, call, link);
	call->in = to;
	if (to)
		TAILQ_INSERT_TAIL(to, call, link);
}

void client_dispatch(struct http_client *c)
{
	if (c->run_ended)
		event_active(c->run_ended, EV_TIMEOUT, 1);
}

void client_call_end(struct http_call *call, int err, const struct errinfo *e)
{
	if (call->in == &call->client->ended)
		return;
	if (call->conn)
		client_conn_leave(call->conn, call, false);
	event_del(call->deadline);
	call->err = call->reply.err && !err ? call->reply.err : err;
	if (e)
		call->errinfo = *e;
	else if (call->err)
		errinfo_set(&call->errinfo, call->err, "%s: out of memory for the reply",
			call->endpoint.host);
	call->response.body = buf_str(&call->reply);
	call->response.body_len = call->reply.len;
	list_move(call, &call->client->ended);
	client_dispatch(call->client);
}

/* A kept connection for @call, or NULL. */
static struct client_conn *find_kept(struct http_call *call, const struct client_protocol *protocol)
{
	struct client_conn *c = TAILQ_FIRST(&call->client->conns), *next;

	for (; c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->protocol == protocol && client_conn_has_room(c) &&
			client_endpoint_equal(&c->endpoint, &call->endpoint) &&
			client_conn_is_alive(c))
			return c;
	}
	return NULL;
}

/* At the ceiling, whoever waits for a call to another place makes room. */
static bool make_room(struct http_client *client)
{
	struct client_conn *c;

	if (client->conn_count < HTTP_CLIENT_CONNECTIONS)
		return true;
	TAILQ_FOREACH (c, &client->conns, link)
		if (!c->call_count) {
			client_conn_close(c);
			return true;
		}
	return false;
}

/* Gives the call a connection. False: it must wait. */
static bool place_call(struct http_call *call)
{
	const struct client_protocol *protocol = call->is_grpc ? &client_h2 : &client_h1;
	struct client_conn *c = call->alone || call->retried ? NULL : find_kept(call, protocol);
	struct errinfo e;
	int r;

	if (!c && !make_room(call->client))
		return false;
	list_move(call, NULL);
	if (c) {
		client_conn_give(c, call);
		return true;
	}
	r = client_conn_new(call, protocol);
	if (r < 0)
		client_call_end(call,
			errinfo_set(
				&e, r, "%s: out of memory for a connection", call->endpoint.host),
			&e);
	return true;
}

void client_call_retry(struct http_call *call)
{
	call->retried = true;
	call->response = (struct http_response){};
	list_move(call, &call->client->waiting);
	client_dispatch(call->client);
}

static void run_ended(int fd, short what, void *arg)
{
	struct http_client *c = arg;
	struct http_call *call, *last = TAILQ_LAST(&c->ended, client_calls);
	bool freed = false, is_last = !last;

	(void)fd, (void)what;
	closed_free(c);
	c->freed = &freed;
	/* Calls that end meanwhile have their turn in the next round of the loop. */
	while (!is_last && (call = TAILQ_FIRST(&c->ended))) {
		is_last = call == last;
		list_move(call, NULL);
		c->call_count--;
		if (call->is_grpc)
			client_h2_send(call);
		else
			call->done(call->arg, call->err ? NULL : &call->response, call->err,
				&call->errinfo);
		call_free(call);
		if (freed)
			return;
	}
	c->freed = NULL;
	while ((call = TAILQ_FIRST(&c->waiting)) && place_call(call))
		;
}

static void set_deadline(struct http_call *call, uint64_t now_ns)
{
	uint64_t ns = call->deadline_ns > now_ns ? call->deadline_ns - now_ns : 0;

	event_add(call->deadline, &(struct timeval){.tv_sec = (time_t)(ns / NS_PER_S),
					  .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)});
}

/* The loop's clock is coarse, and within its functions late: a timer may run some milliseconds
 * early. */
static void on_deadline(int fd, short what, void *arg)
{
	struct http_call *call = arg;
	uint64_t now_ns = mono_now().ns;
	struct errinfo e;

	(void)fd, (void)what;
	if (now_ns < call->deadline_ns)
		set_deadline(call, now_ns);
	else
		client_call_end(call, client_open_timeout(call->conn, call, &e), &e);
}

void http_call_cancel(struct http_call *call)
{
	struct http_client *c = call->client;

	if (call->conn)
		client_conn_leave(call->conn, call, false);
	list_move(call, NULL);
	c->call_count--;
	call_free(call);
	client_dispatch(c);
}

/* ---- asking ---- */

static bool is_token(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (!isalnum((unsigned char)s[n]) && !strchr("!#$%&'*+-.^_`|~", s[n]))
			return false;
	return n > 0 && n < 256;
}

static bool is_path(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if ((unsigned char)s[n] <= ' ' || (unsigned char)s[n] >= 0x7f)
			return false;
	return s[0] == '/' && n <= PATH_MAX_BYTES;
}

/* Fields whose meaning is ours to decide. */
static bool is_ours(const char *name)
{
	static const char *const names[] = {"host", "content-length", "transfer-encoding",
		"connection", "upgrade", "te", "trailer", "expect", "content-type"};

	return EXISTS(i, ARRAY_SIZE(names), !strcasecmp(name, names[i]));
}

static int copy_fields(struct http_call *call, const struct http_ask *a)
{
	call->fields = BUF_INIT(CLIENT_FIELDS_MAX);
	if (a->field_count > CLIENT_FIELDS)
		return -EINVAL;
	for (size_t i = 0; i < a->field_count; i++) {
		const struct http_field *f = &a->fields[i];

		if (!is_token(f->name) || !is_value(f->value) || is_ours(f->name))
			return -EINVAL;
		call->has_authorization |= !strcasecmp(f->name, "authorization");
		for (const char *c = f->name; *c; c++)
			buf_putc(&call->fields, (char)tolower((unsigned char)*c));
		buf_putc(&call->fields, 0);
		buf_append(&call->fields, f->value, strlen(f->value) + 1);
	}
	return call->fields.err;
}

static int copy_request(struct http_call *call, const struct http_ask *a)
{
	const char *type = a->type ? a->type : "application/json";

	if (!is_token(a->method) || !is_path(a->path) || !is_value(type) || !a->endpoint->host[0])
		return -EINVAL;
	if (a->body_len > HTTP_CLIENT_REQUEST_MAX)
		return -EMSGSIZE;
	call->endpoint = *a->endpoint;
	call->timeout_ns = MIN(a->timeout_ns, (uint64_t)TIMEOUT_MAX_NS);
	call->deadline_ns = mono_now().ns + call->timeout_ns;
	call->alone = a->alone;
	call->gzip = a->gzip;
	call->body_max = a->body_max;
	call->reply = BUF_INIT(a->body_max);
	call->method = strdup(a->method);
	call->path = strdup(a->path);
	call->type = strdup(type);
	call->body = malloc(a->body_len + 1);
	if (!call->method || !call->path || !call->type || !call->body)
		return -ENOMEM;
	if (a->body_len)
		memcpy(call->body, a->body, a->body_len);
	call->body_len = a->body_len;
	return copy_fields(call, a);
}

DEFINE_CLEANUP(struct http_call *, call_free)

static int call_new(struct http_client *c, const struct http_ask *a, struct http_call **ret)
{
	_cleanup_(call_freep) struct http_call *call = NULL;
	int r;

	if (c->call_count >= HTTP_CLIENT_CALLS)
		return -ENOBUFS;
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	call->client = c;
	r = copy_request(call, a);
	if (r < 0)
		return r;
	call->deadline = evtimer_new(c->base, on_deadline, call);
	if (!call->deadline)
		return -ENOMEM;
	*ret = TAKE(call);
	return 0;
}

static void call_begin(struct http_call *call)
{
	call->client->call_count++;
	set_deadline(call, mono_now().ns);
	if (!place_call(call))
		list_move(call, &call->client->waiting);
}

int http_ask(struct http_client *c, const struct http_ask *a, http_done *done, void *arg,
	struct http_call **ret_call)
{
	struct http_call *call;
	int r = call_new(c, a, &call);

	if (r < 0)
		return r;
	call->done = done;
	call->arg = arg;
	call_begin(call);
	if (ret_call)
		*ret_call = call;
	return 0;
}

int grpc_ask(struct http_client *c, const struct http_ask *a, grpc_done *done, void *arg)
{
	struct http_call *call;
	int r = call_new(c, a, &call);

	if (r < 0)
		return r;
	call->is_grpc = true;
	call->grpc_done = done;
	call->arg = arg;
	call_begin(call);
	return 0;
}
