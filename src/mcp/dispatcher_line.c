/* SPDX-License-Identifier: Apache-2.0 */
/* dispatcher_line.c - messages that come one a line. A request that brings the metadata of a stateless
 * revision is served by that; every other one by what `initialize` agreed on, or if nothing was
 * agreed on yet by the newest revision that has a handshake. */
#include "mcp/dispatcher.h"

#include <string.h>

#include "base/buf.h"
#include "json/tree.h"

/* A client waits for every request's answer, also when there is no memory to make it. */
#define NO_MEMORY                                                                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"out of memory\"}}"

/* answer_one - NULL: none is due, or there is no memory for it. */
static json_t *answer_one(
	const struct dispatcher *t, struct dispatcher_lines *s, json_t *doc, bool *ret_due)
{
	struct call call = {.revision = s->agreed ? s->agreed : revision_agree(NULL),
		.notify = s->notify,
		.notify_arg = s->notify_arg};
	_cleanup_(rpc_error_done) struct rpc_error e = {0};
	struct rpc_message m;
	json_t *result = NULL;
	int r = rpc_read(doc, &m, &e);

	if (r == 0 && m.kind != RPC_REQUEST)
		return NULL;
	*ret_due = true;
	if (r == 0 && json_object_get(json_object_get(m.params, "_meta"), DISPATCHER_META_REVISION))
		r = dispatcher_meta(&m, &call, &e);
	if (r == 0)
		result = dispatcher_answer(t, &call, &m, &s->agreed, &e);
	return result ? rpc_result(m.id, result)
		      : rpc_failure(m.id, call.revision && call.revision->stateless, &e);
}

static json_t *answer_batch(
	const struct dispatcher *t, struct dispatcher_lines *s, json_t *batch, bool *ret_due)
{
	_cleanup_(rpc_error_done) struct rpc_error e = {0};
	json_t *replies, *one;
	size_t i;

	if (!s->agreed || !s->agreed->batches)
		rpc_fail(&e, RPC_INVALID_REQUEST, "batches are not part of this protocol version");
	else if (!json_array_size(batch) || json_array_size(batch) > RPC_BATCH_MAX)
		rpc_fail(&e, RPC_INVALID_REQUEST, "a batch has from 1 to %d messages",
			RPC_BATCH_MAX);
	if (e.code) {
		*ret_due = true;
		return rpc_failure(NULL, false, &e);
	}
	replies = json_array();
	json_array_foreach (batch, i, one) {
		json_t *reply = answer_one(t, s, one, ret_due);

		if (reply)
			json_array_append_new(replies, reply);
	}
	if (json_array_size(replies))
		return replies;
	json_decref(replies);
	return NULL;
}

void dispatcher_line(const struct dispatcher *t, struct dispatcher_lines *s, const char *text,
	size_t len, struct buf *reply)
{
	_cleanup_(rpc_error_done) struct rpc_error e = {0};
	_cleanup_json_ json_t *doc = NULL, *answer = NULL;
	const size_t before = reply->len;
	bool due = false;

	if (rpc_parse(text, len, &doc, &e) < 0) {
		due = true;
		answer = rpc_failure(NULL, false, &e);
	} else if (json_is_array(doc)) {
		answer = answer_batch(t, s, doc, &due);
	} else {
		answer = answer_one(t, s, doc, &due);
	}
	if (answer)
		json_tree_write(answer, RPC_DUMP, reply);
	else if (due)
		buf_puts(reply, NO_MEMORY);
	else
		return;
	buf_putc(reply, '\n');
	if (reply->err && reply->data) { /* half a line would spoil the next one too */
		reply->len = before;
		reply->data[before] = 0;
	}
}
