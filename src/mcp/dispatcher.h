/* SPDX-License-Identifier: Apache-2.0 */
/* dispatcher.h - from a message to its reply, whatever carries them.
 *
 * A talk holds nothing that changes, so that several threads may use one. What a transport knows of
 * a request stands in its call. */
#pragma once

#include "base/buf.h"
#include "base/errinfo.h"
#include "mcp/registry.h"

#define DISPATCHER_HEADER_MISMATCH -32020 /* a field of HTTP says something else than the body */
#define DISPATCHER_NO_CAPABILITY   -32021 /* the client lacks what the tool needs */
#define DISPATCHER_NO_REVISION     -32022 /* the revision is not spoken */

#define DISPATCHER_META_REVISION "io.modelcontextprotocol/protocolVersion"

struct dispatcher;

/* dispatcher_new - @o must outlive it. -EINVAL: a schema of the offer is not JSON. */
int dispatcher_new(const struct registry *o, struct dispatcher **ret, struct errinfo *reterr);
DECLARE_FREE(struct dispatcher, dispatcher_free)

/* dispatcher_revision - the revision that the message itself names in its metadata; NULL: none, or not a
 * text. */
const char *dispatcher_revision(const struct rpc_message *m);

/* dispatcher_meta - fills @c from the metadata that every request of a stateless revision brings.
 * -EPROTO and @e: something is missing (RPC_INVALID_PARAMS), or DISPATCHER_NO_REVISION. */
int dispatcher_meta(const struct rpc_message *m, struct call *c, struct rpc_error *e);

/* dispatcher_no_revision - fills @e: @asked is not spoken. Returns -EPROTO. */
int dispatcher_no_revision(const char *asked, struct rpc_error *e);

/* dispatcher_answer - the result of a request, the caller's; NULL and @e: why not. @c says the revision.
 * *ret_agreed, if not NULL, is what `initialize` agreed on. */
json_t *dispatcher_answer(const struct dispatcher *t, const struct call *c,
	const struct rpc_message *m, const struct revision **ret_agreed, struct rpc_error *e);

/* ---- one message a line: stdio ---- */

struct dispatcher_lines {
	const struct revision *agreed; /* by `initialize`; NULL: not yet */
	call_notify *notify;           /* writes a line of a request that is under way */
	void *notify_arg;
};

/* dispatcher_line - answers the message or batch @text; appends the reply, a line with its end, or
 * nothing: never a part of it, also when @reply fails. Whatever @text is, the next line may follow.
 */
void dispatcher_line(const struct dispatcher *t, struct dispatcher_lines *s, const char *text,
	size_t len, struct buf *reply);
