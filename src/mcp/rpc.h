/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h - JSON-RPC 2.0 messages: bytes in, parts out, and the replies. No I/O.
 *
 * A message is at most RPC_BYTES_MAX long and RPC_DEPTH_MAX deep, so that foreign text cannot cost
 * more than that. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/macros.h"

#define RPC_BYTES_MAX (1u << 20)
#define RPC_DEPTH_MAX 32
#define RPC_BATCH_MAX 64 /* messages in one array */

/* How messages are written: on one line, numbers as people write them. */
#define RPC_DUMP (JSON_COMPACT | JSON_REAL_PRECISION(15))

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
};

struct rpc_error {
	int code; /* 0: none */
	char message[640];
	json_t *data; /* NULL: none; done with rpc_error_done() */
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message { /* points into its document */
	enum rpc_kind kind;
	json_t *id;     /* string or integer; NULL: a notification */
	json_t *params; /* object; NULL: none */
	const char *method;
};

#define _cleanup_json_ _cleanup_(json_decrefp)

/* rpc_fail - sets @e and returns -EPROTO, so that a failing path is one line. */
int rpc_fail(struct rpc_error *e, int code, const char *fmt, ...) _printf_(3, 4);
void rpc_error_done(struct rpc_error *e);

/* rpc_parse - one JSON document, the caller's. -EPROTO with RPC_PARSE_ERROR: not JSON, or over a
 * ceiling. */
int rpc_parse(const char *text, size_t len, json_t **ret, struct rpc_error *e);

/* rpc_read - the parts of a message. -EPROTO with RPC_INVALID_REQUEST; ret->id is set even then if
 * it can be told. */
int rpc_read(json_t *doc, struct rpc_message *ret, struct rpc_error *e);

/* rpc_result, rpc_failure - a reply; @result is taken, @id is not. NULL without memory. @id NULL:
 * null, as JSON-RPC says, or with @omit nothing. */
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_failure(json_t *id, bool omit, const struct rpc_error *e);
json_t *rpc_notification(const char *method, json_t *params);
