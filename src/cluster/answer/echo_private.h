/* SPDX-License-Identifier: Apache-2.0 */
/* echo_private.h - shared by the files behind echo_server.h:
 *	echo_server.c	routes, health, metrics, life
 *	echo_api.c	/api/v2: arguments, tools, the envelope
 *	echo_mcp.c	POST /mcp: the tools and the prompt; a question: let in, run on a thread, replied to on the loop
 *	openapi.c	the description of /api/v2 */
#pragma once

#include <pthread.h>

#include "base/macros.h"
#include "base/pool.h"
#include "cluster/answer/echo_server.h"
#include "cluster/answer/tool.h"
#include "mcp/dispatcher.h"
#include "net/rate.h"

/* How often an address may ask what needs no token. Of the addresses that asked longest ago
 * nothing is remembered. */

#define SOURCE_LIMIT_RATE    30 /* a second */
#define SOURCE_LIMIT_BURST   100
#define SOURCE_LIMIT_SOURCES 4096

struct source_limit;
int source_limit_new(struct source_limit **ret);
DECLARE_FREE(struct source_limit, source_limit_free)

/* source_limit_take - one more question of @peer; false: too many. */
bool source_limit_take(struct source_limit *l, const char *peer, uint64_t now_ns);

#define ECHO_TOOLS_MAX 32
#define ECHO_REPLY_MAX (32u << 20)
#define ECHO_BODY_MAX  (256u << 10)

/* A question waits for others of its kind only. */
enum echo_lane { ECHO_TOOLS, ECHO_SQL, ECHO_MCP, ECHO_LANES };

struct echo_tool { /* what the server knows of each row of cluster_tools */
	const struct tool *tool;
	json_t *input;            /* its schema */
	char dotted[TOOL_ID_MAX]; /* as it was called before */
	struct sketch took;
	uint64_t calls, failed;
};

struct echo_server {
	struct echo_server_settings settings;
	struct loop *loop;
	struct http_server *http;
	struct pool *lanes[ECHO_LANES];
	struct echo_tool tools[ECHO_TOOLS_MAX];
	size_t tool_count;
	struct registry registry;
	struct registry_tool registry_tools[ECHO_TOOLS_MAX + 1];
	struct dispatcher *dispatcher;
	struct source_limit *source_limit;
	struct buf tools_list, openapi; /* made once */
	pthread_mutex_t lock;           /* of what tools count */
	bool has_lock;
	wall_time started;
	uint64_t denied, limited;
	/* Lines of the audit about requests without a valid token, and about those of tokens that may not. */
	struct rate strangers, denials;
	bool ready, is_stopping;
};

struct echo_call; /* one question under way */
typedef void echo_fn(struct echo_call *c);

struct echo_call {
	struct echo_server *server;
	struct http_exchange *x;
	const struct http_request *q; /* until it is replied to */
	struct echo_tool *tool;       /* NULL: of MCP */
	const struct tenant *tenant;  /* whose it is */
	echo_fn *run;                 /* on a thread */
	mono_time came;               /* its time counts from then on */
	/* the reply, which run() makes: */
	int status;
	const char *type, *allow; /* NULL: JSON; none */
	bool again;               /* with Retry-After */
	struct buf out;
	/* private */
	struct pool_job queued;
	struct loop_task task;
};

/* echo_call_start - @x is answered by @run on a thread of @lane, or refused at once: who asks may not (403), or
 * not now (429, 503). @verb as of tenants_admit(). Whether it was let in: else @x and @q are gone. */
bool echo_call_start(struct echo_server *e, enum echo_lane lane, unsigned verb,
	struct echo_tool *tool, echo_fn *run, struct http_exchange *x,
	const struct http_request *q);

/* echo_admit - whether @q may be answered now, which is replied to if not. *ret is whose it is, as of
 * tenants_find(). */
bool echo_admit(struct echo_server *e, unsigned verb, struct http_exchange *x,
	const struct http_request *q, const struct tenant **ret);

/* echo_call_ask - runs @tool, counts and audits it: on any thread. As of struct tool. */
int echo_call_ask(struct echo_call *c, struct echo_tool *tool, const json_t *arguments,
	json_t **ret, struct buf *ret_text, struct errinfo *reterr);

/* echo_audit_refusal - likewise, unless there were too many of its kind, which @rate counts: a flood of
 * refusals does not push the lines of others out of the files. On the loop. */
void echo_audit_refusal(struct echo_server *e, const struct http_request *q, const char *key_name,
	int status, struct rate *rate);

struct echo_tool *echo_tool_find(struct echo_server *e, const char *name);

/* ---- the envelope ---- */

struct echo_failure {
	int status;
	const char *code; /* "not_found" */
};
/* echo_failure_of - what a negative errno of a tool is to HTTP. */
struct echo_failure echo_failure_of(int err);

/* echo_put_data - {"ok":true,"data":…,"text":…}; @data is taken, @text may be NULL.
 * echo_put_error - {"ok":false,"error":{code,message}}. */
void echo_put_data(struct buf *b, json_t *data, const char *text);
void echo_put_error(struct buf *b, const char *code, const char *message);
void echo_reply_data(struct http_exchange *x, json_t *data);
void echo_reply_error(struct http_exchange *x, int status, const char *code, const char *fmt, ...)
	_printf_(4, 5);

/* ---- handlers and their parts ---- */

http_handler echo_on_tool, echo_on_list, echo_on_sql, echo_on_openapi, echo_on_whoami, echo_on_mcp,
	echo_on_unknown;

/* echo_mcp_init - the registry and dispatcher. */
int echo_mcp_init(struct echo_server *e, struct errinfo *reterr);

/* openapi_write - the document as JSON. */
int openapi_write(struct echo_server *e, struct buf *b);
