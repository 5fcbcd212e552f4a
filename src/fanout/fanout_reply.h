/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_reply.h - whether a node's HTTP reply is an answer, and what is wrong if it is not;
 * private to fanout/. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/errinfo.h"
#include "net/client/client.h"

/* fanout_reply_check - 0 if @r is a reply of status 200 with JSON. Else -EPROTO, or -ENOENT for
 * status 404, with a sentence about the node. @with_token: one was sent. */
int fanout_reply_check(const struct http_response *r, bool with_token, struct errinfo *reterr);

/* fanout_reply_hint - what a refusal says beyond its reason, bounded; NULL: nothing. The caller
 * frees it. */
char *fanout_reply_hint(const struct http_response *r);

/* fanout_reply_time - reads {"timestamp_ns": N}. -EPROTO if it is not that. */
int fanout_reply_time(const struct http_response *r, int64_t *ret_ns);

/* fanout_reply_copy - appends the reply's JSON, compact and valid whatever came. -EPROTO with a
 * sentence; what @b says. */
int fanout_reply_copy(const struct http_response *r, struct buf *b, struct errinfo *reterr);
