/* SPDX-License-Identifier: Apache-2.0 */
/* rpc.h - JSON-RPC 2.0 messages: bytes in, parts out, and the replies. No I/O.
 *
 * A message is at most RPC_BYTES_MAX long and RPC_DEPTH_MAX deep, so that foreign text cannot cost
 * more than that. */
#pragma once

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

/* rpc_count - how many messages a text holds at most that rpc_parse() would take: one, or those of a batch. It is
 * not parsed for that: a walk over its bytes. */
unsigned rpc_count(const char *text, size_t len);

/* rpc_read - the parts of a message. -EPROTO with RPC_INVALID_REQUEST; ret->id is set even then if
 * it can be told. */
int rpc_read(json_t *doc, struct rpc_message *ret, struct rpc_error *e);

/* rpc_result, rpc_failure - a reply; @result is taken, @id is not. NULL without memory. @id NULL:
 * null, as JSON-RPC says, or with @omit nothing. */
json_t *rpc_result(json_t *id, json_t *result);
json_t *rpc_failure(json_t *id, bool omit, const struct rpc_error *e);

/* The revisions of the Model Context Protocol that are spoken, and how they differ.
 *
 * Up to 2025-11-25 a client begins with `initialize`, which agrees on a revision; from 2026-07-28
 * every request says its revision itself and nothing is remembered. */

struct revision {
	const char *name; /* NULL ends the table */
	bool stateless;   /* no handshake: each request brings its metadata */
	bool batches;     /* several messages in an array are allowed */
	bool structured;  /* answers have structured content */
	int no_resource;  /* code for a resource that is not there */
};

/* revision_find - NULL if @name is not spoken. */
const struct revision *revision_find(const char *name);

/* revision_agree - what `initialize` answers: @asked, or the newest that has a handshake. */
const struct revision *revision_agree(const char *asked);

/* revision_assumed - for a request over HTTP that names none: the one that had no field for it. */
const struct revision *revision_assumed(void);

json_t *revision_names(void);

/* One request under way: what it brings besides its arguments, and what a tool says. */

/* A notification of this request, one line of JSON without its end; before the reply. */
typedef void call_notify(void *arg, const char *text, size_t len);

struct registry_tool;

struct call {
	void *arg;                        /* the request's; without one the registry's */
	const struct registry_tool *tool; /* that runs; NULL: none does */
	const struct revision *revision;  /* that the client speaks */
	const json_t *capabilities;       /* of the client; NULL: not told */
	const json_t *progress_token;     /* NULL: it wants no word of progress */
	call_notify *notify;              /* NULL: there is no way */
	void *notify_arg;
};

/* call_progress - tells how far it is, if the client wants to know. */
void call_progress(const struct call *c, double done, double total, const char *message);

struct answer {             /* of a tool */
	json_t *content;    /* array of blocks */
	json_t *structured; /* NULL: none */
	bool failed;        /* the text says why */
};

int answer_init(struct answer *a); /* -ENOMEM */
void answer_done(struct answer *a);

/* answer_text - adds a block; @text is UTF-8 or becomes so. */
void answer_text(struct answer *a, const char *text);

/* answer_structured_as_text - what a client of a revision without structured content gets instead; between
 * [@mark] and [/@mark], unless it is NULL. */
void answer_structured_as_text(struct answer *a, const char *mark);

/* answer_fail - what is there is dropped for one sentence about what went wrong and what to do. */
void answer_fail(struct answer *a, const char *fmt, ...) _printf_(2, 3);
