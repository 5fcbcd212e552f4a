/* SPDX-License-Identifier: Apache-2.0 */
/* http_transport.c - see http_transport.h.
 *
 * The field MCP-Protocol-Version and the metadata in the body decide by which revision a request is
 * served. In a stateless one the fields must repeat what the body says, so that what looks only at
 * the fields (a proxy, a log) cannot be deceived: everything else is refused. */
#include "mcp/http_transport.h"

#include "json/tree.h"

/* Messages that come one a line. A request that brings the metadata of a stateless
 * revision is served by that; every other one by what `initialize` agreed on, or if nothing was
 * agreed on yet by the newest revision that has a handshake. */

/* A client waits for every request's answer, also when there is no memory to make it. */
#define NO_MEMORY                                                                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"out of memory\"}}"

/* The replies of @one to the messages of @batch from who speaks @r; NULL: none is due, or @e. */
static json_t *answer_all(const struct revision *r, json_t *batch,
	json_t *(*one)(void *arg, json_t *doc), void *arg, struct rpc_error *e)
{
	_cleanup_json_ json_t *replies = NULL;
	json_t *doc;
	size_t i;

	if (!r || !r->batches)
		rpc_fail(e, RPC_INVALID_REQUEST, "batches are not part of this protocol version");
	else if (!json_array_size(batch) || json_array_size(batch) > RPC_BATCH_MAX)
		rpc_fail(
			e, RPC_INVALID_REQUEST, "a batch has from 1 to %d messages", RPC_BATCH_MAX);
	if (e->code)
		return NULL;
	replies = json_array();
	json_array_foreach (batch, i, doc) {
		json_t *reply = one(arg, doc);

		if (reply)
			json_array_append_new(replies, reply);
	}
	return json_array_size(replies) ? TAKE(replies) : NULL;
}

struct line { /* being answered */
	const struct dispatcher *dispatcher;
	struct dispatcher_lines *session;
	bool due; /* a reply */
};

/* answer_line_one - NULL: none is due, or there is no memory for it. */
static json_t *answer_line_one(void *arg, json_t *doc)
{
	struct line *l = arg;
	struct dispatcher_lines *s = l->session;
	struct call call = {.revision = s->agreed ? s->agreed : revision_agree(NULL),
		.notify = s->notify,
		.notify_arg = s->notify_arg};
	_cleanup_(rpc_error_done) struct rpc_error e = {0};
	struct rpc_message m;
	json_t *result = NULL;
	int r = rpc_read(doc, &m, &e);

	if (r == 0 && m.kind != RPC_REQUEST)
		return NULL;
	l->due = true;
	if (r == 0 && json_object_get(json_object_get(m.params, "_meta"), DISPATCHER_META_REVISION))
		r = dispatcher_meta(&m, &call, &e);
	if (r == 0)
		result = dispatcher_answer(l->dispatcher, &call, &m, &s->agreed, &e);
	return result ? rpc_result(m.id, result)
		      : rpc_failure(m.id, call.revision && call.revision->stateless, &e);
}

void dispatcher_line(const struct dispatcher *t, struct dispatcher_lines *s, const char *text,
	size_t len, struct buf *reply)
{
	_cleanup_(rpc_error_done) struct rpc_error e = {0};
	_cleanup_json_ json_t *doc = NULL, *answer = NULL;
	struct line l = {t, s, false};
	const size_t before = reply->len;

	if (rpc_parse(text, len, &doc, &e) == 0)
		answer = json_is_array(doc) ? answer_all(s->agreed, doc, answer_line_one, &l, &e)
					    : answer_line_one(&l, doc);
	if (e.code)
		answer = rpc_failure(NULL, false, &e);
	if (answer)
		json_tree_write(answer, RPC_DUMP, reply);
	else if (e.code || l.due)
		buf_puts(reply, NO_MEMORY);
	else
		return;
	buf_putc(reply, '\n');
	if (reply->err && reply->data) { /* half a line would spoil the next one too */
		reply->len = before;
		reply->data[before] = 0;
	}
}

#define FIELD_REVISION "mcp-protocol-version"
#define JSON_TYPE      "application/json"
#define EVENTS_TYPE    "text/event-stream"
#define ENCODED_PREFIX "=?base64?"
#define ENCODED_SUFFIX "?="
#define NAME_MAX_BYTES 4096
#define EVENT          "event: message\ndata: "

struct exchange {
	const struct dispatcher *dispatcher;
	const struct http_transport_request *request;
	struct http_transport_reply *reply;
	const struct revision *revision;
	bool json, events; /* what the client takes */
	struct buf notes;  /* events before the reply */
	struct rpc_error error;
};

static const char *field(const struct exchange *x, const char *name)
{
	return x->request->field(x->request->field_arg, name);
}

static void note(void *arg, const char *text, size_t len)
{
	struct exchange *x = arg;

	buf_puts(&x->notes, EVENT);
	buf_append(&x->notes, text, len);
	buf_puts(&x->notes, "\n\n");
}

static void send(struct exchange *x, int status, json_t *message)
{
	bool stream = x->events && (x->notes.len || !x->json);
	struct buf *b = &x->reply->body;

	/* A request's answer that could not be made. */
	x->reply->status = !message && status == 200 ? 500 : status;
	if (!message)
		return;
	x->reply->type = stream ? EVENTS_TYPE : JSON_TYPE;
	if (stream)
		buf_append(b, buf_str(&x->notes), x->notes.len);
	buf_puts(b, stream ? EVENT : "");
	json_tree_write(message, RPC_DUMP, b);
	buf_puts(b, stream ? "\n\n" : "");
	if (b->err) { /* no part of an answer */
		x->reply->status = 500;
		x->reply->type = NULL;
		buf_clear(b);
	}
}

static void refuse(struct exchange *x, int status, json_t *id)
{
	_cleanup_json_ json_t *failure =
		rpc_failure(id, x->revision && x->revision->stateless, &x->error);

	x->json = true; /* not a stream: the status says it already */
	send(x, status, failure);
}

/* ---- fields ---- */

static bool lists(const char *value, const char *type)
{
	return value && strcasestr(value, type);
}

/* Only JSON is taken, which no page of another site can send without being asked first. */
static bool check_types(struct exchange *x)
{
	const char *type = field(x, "content-type"), *accept = field(x, "accept");

	if (!type || strncasecmp(type, JSON_TYPE, strlen(JSON_TYPE))) {
		rpc_fail(&x->error, RPC_INVALID_REQUEST, "Content-Type must be " JSON_TYPE);
		refuse(x, 415, NULL);
		return false;
	}
	x->json = !accept || lists(accept, JSON_TYPE) || lists(accept, "*/*") ||
		  lists(accept, "application/*");
	x->events = accept && (lists(accept, EVENTS_TYPE) || lists(accept, "*/*"));
	if (!x->json && !x->events) {
		rpc_fail(&x->error, RPC_INVALID_REQUEST,
			"Accept must list " JSON_TYPE " and " EVENTS_TYPE);
		refuse(x, 406, NULL);
		return false;
	}
	return true;
}

static int digit(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *p = c ? strchr(digits, c) : NULL;

	return p ? (int)(p - digits) : -1;
}

/* Groups of four digits; only the last may end in '='. */
static int decode(const char *s, size_t len, struct buf *out)
{
	if (len % 4)
		return -EINVAL;
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		int pad = last && s[i + 3] == '=' ? (s[i + 2] == '=' ? 2 : 1) : 0;
		unsigned v = 0;

		for (int k = 0; k < 4; k++) {
			int d = k >= 4 - pad ? 0 : digit(s[i + (size_t)k]);

			if (d < 0)
				return -EINVAL;
			v = v << 6 | (unsigned)d;
		}
		for (int k = 0; k < 3 - pad; k++)
			buf_putc(out, (char)(v >> (16 - 8 * k)));
	}
	return out->err;
}

/* A value that is not plain ASCII comes as =?base64?…?=. */
static bool equals_field(const char *value, const char *wanted)
{
	_cleanup_buf_ struct buf b = BUF_INIT(NAME_MAX_BYTES);
	size_t len = strlen(value), pre = strlen(ENCODED_PREFIX), suf = strlen(ENCODED_SUFFIX);

	if (len < pre + suf || strncmp(value, ENCODED_PREFIX, pre) ||
		strcmp(value + len - suf, ENCODED_SUFFIX))
		return !strcmp(value, wanted);
	return decode(value + pre, len - pre - suf, &b) == 0 && b.len == strlen(wanted) &&
	       !memcmp(buf_str(&b), wanted, b.len);
}

static int check_field(struct exchange *x, const char *name, const char *wanted)
{
	const char *value = field(x, name);

	if (value && wanted && equals_field(value, wanted))
		return 0;
	return rpc_fail(&x->error, DISPATCHER_HEADER_MISMATCH, "the field %s %s", name,
		value ? "does not match the body" : "is missing");
}

/* The fields that a stateless request must have, against its body. */
static int check_fields(struct exchange *x, const struct rpc_message *m)
{
	static const struct {
		const char *method, *param;
	} named[] = {{"tools/call", "name"}, {"resources/read", "uri"}, {"prompts/get", "name"}};
	int r = check_field(x, "mcp-method", m->method);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(named); i++) {
		const char *value = json_string_value(json_object_get(m->params, named[i].param));

		if (!strcmp(m->method, named[i].method) && value)
			r = check_field(x, "mcp-name", value);
	}
	return r;
}

/* ---- revisions ---- */

/* Which revision serves a message: that of the field, unless field and body contradict. */
static int choose_revision(struct exchange *x, const struct rpc_message *m)
{
	const char *head = field(x, FIELD_REVISION), *body = dispatcher_revision(m);

	if (body && !head)
		return check_field(x, FIELD_REVISION, body);
	if (body && strcmp(head, body)) {
		x->revision = revision_find(head);
		return check_field(x, FIELD_REVISION, body);
	}
	x->revision = head ? revision_find(head) : revision_assumed();
	return x->revision ? 0 : dispatcher_no_revision(head, &x->error);
}

static int status_of(const struct exchange *x)
{
	if (!x->revision->stateless)
		return 200;
	switch (x->error.code) {
	case RPC_NO_METHOD: return 404;
	case DISPATCHER_NO_CAPABILITY:
	case DISPATCHER_NO_REVISION: return 400;
	default: return 200;
	}
}

static json_t *answer_one(struct exchange *x, const struct rpc_message *m, struct call *call)
{
	json_t *result = dispatcher_answer(x->dispatcher, call, m, NULL, &x->error);

	return result ? rpc_result(m->id, result) : NULL;
}

static void answer_message(struct exchange *x, json_t *doc)
{
	struct call call = {
		.arg = x->request->arg, .notify = x->events ? note : NULL, .notify_arg = x};
	_cleanup_json_ json_t *reply = NULL;
	struct rpc_message m;
	int r = rpc_read(doc, &m, &x->error);

	r = r ?: choose_revision(x, &m);
	call.revision = x->revision;
	if (r == 0 && m.kind == RPC_RESPONSE && x->revision->stateless)
		r = rpc_fail(&x->error, RPC_INVALID_REQUEST, "no request");
	if (r == 0 && m.kind != RPC_REQUEST) {
		send(x, 202, NULL);
		return;
	}
	if (r == 0 && x->revision->stateless) {
		r = dispatcher_meta(&m, &call, &x->error);
		r = r ?: check_fields(x, &m);
	}
	if (r < 0) {
		refuse(x, 400, m.id);
		return;
	}
	reply = answer_one(x, &m, &call);
	if (reply)
		send(x, 200, reply);
	else
		refuse(x, status_of(x), m.id);
}

static json_t *answer_element(void *arg, json_t *doc)
{
	struct exchange *x = arg;
	struct call call = {.arg = x->request->arg, .revision = x->revision};
	struct rpc_message m;
	json_t *reply;

	if (rpc_read(doc, &m, &x->error) == 0 && m.kind != RPC_REQUEST)
		return NULL;
	reply = x->error.code ? NULL : answer_one(x, &m, &call);
	reply = reply ?: rpc_failure(m.id, false, &x->error);
	rpc_error_done(&x->error);
	return reply;
}

static void answer_batch(struct exchange *x, json_t *batch)
{
	const char *head = field(x, FIELD_REVISION);
	_cleanup_json_ json_t *replies = NULL;

	x->revision = head ? revision_find(head) : revision_assumed();
	replies = answer_all(x->revision, batch, answer_element, x, &x->error);
	if (x->error.code)
		refuse(x, 400, NULL);
	else
		send(x, replies ? 200 : 202, replies);
}

void http_transport_answer(const struct dispatcher *t, const struct http_transport_request *q,
	struct http_transport_reply *ret)
{
	struct exchange x = {
		.dispatcher = t, .request = q, .reply = ret, .notes = BUF_INIT(RPC_BYTES_MAX)};
	_cleanup_json_ json_t *doc = NULL;

	*ret = (struct http_transport_reply){
		.status = 500, .body = BUF_INIT(HTTP_TRANSPORT_REPLY_MAX)};
	if (strcmp(q->method, "POST")) {
		ret->allow = "POST";
		rpc_fail(&x.error, RPC_INVALID_REQUEST, "messages are sent with POST");
		refuse(&x, 405, NULL);
	} else if (check_types(&x)) {
		if (rpc_parse(q->body, q->body_len, &doc, &x.error) < 0)
			refuse(&x, 400, NULL);
		else if (json_is_array(doc))
			answer_batch(&x, doc);
		else
			answer_message(&x, doc);
	}
	rpc_error_done(&x.error);
	buf_done(&x.notes);
}
