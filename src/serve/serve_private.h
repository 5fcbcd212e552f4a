/* SPDX-License-Identifier: Apache-2.0 */
/* serve_private.h - shared by serve.c, the table of questions and those who answer them: api/ and mcp/. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "answer/answer.h"
#include "serve/serve.h"
#include "json/writer.h"
#include "mcp/rpc.h"
#include "mcp/registry.h"
#include "base/pool.h"
#include "net/server/server.h"
#include "base/buf.h"
#include "base/clock.h"
#include "answer/timeline/timeline_index.h"

#define NODE_MAX 256

struct serve {
	struct serve_settings settings;
	struct loop *loop;
	struct http_server *http;
	struct pool *lanes[LANE_COUNT];
	struct response_cache *response_cache; /* answers that are costly to make */
	struct timeline_keeper *timeline;
	char node[NODE_MAX];     /* whose recording it is; "": it does not say. The loop's */
	atomic_bool is_nameless; /* there was no recording to ask yet */
};

/* Parameters that a route knows; the rest is refused, so that a slip of the pen is not silently
 * nothing. */
#define API_TIME   (1u << 0) /* since, from, to */
#define API_PID    (1u << 1)
#define API_NODE   (1u << 2)
#define API_LIMIT  (1u << 3)
#define API_POINTS (1u << 4)
#define API_OP     (1u << 5) /* source, op */
#define API_STACKS (1u << 6)
#define API_NODES  (1u << 7) /* of a flame graph */
#define API_TRACKS (1u << 8) /* width, kinds, offset: of a time line */
#define API_REF    (1u << 9)
#define API_TEXT   (1u << 10) /* q */
#define API_TIME2  (1u << 11) /* from2, to2 */
/* Of assistants alone: */
#define API_ID       (1u << 12)
#define API_SQL      (1u << 13)
#define API_ACTION   (1u << 14)
#define API_SCENARIO (1u << 15)
#define API_FULL     (1u << 16)
#define API_ANY      (1u << 17) /* what every tool takes */

/* A tool that is more than an answer of the API. */
typedef void api_tool(const struct call *c, const json_t *arguments, struct answer *a);

struct api_row { /* one question: a route of the API, a tool of assistants, or both */
	const char *method, *path; /* NULL: no route */
	const char *summary;       /* NULL ends the table; also the tool's title */
	unsigned params;
	answer_fn *answer; /* what the recording says; or */
	serve_fn *make;    /* something else, on a lane; or */
	int (*begin)(struct serve_call *c, struct errinfo *reterr); /* before that: serve_plan */
	http_handler *reply;                                        /* at once, on the loop */
	enum serve_lane lane;
	uint64_t default_ns; /* of answer_run() */
	bool open;
	bool needs_timeline; /* its request has the index of the time line */
	size_t body_max;
	const char *tool;     /* its name as a tool; NULL: none */
	const char *about;    /* for assistants */
	unsigned more, needs; /* parameters that the tool takes besides; that must be there */
	/* The tool, where it is not that answer. */
	api_tool *run;
	bool is_extra; /* it is not listed */
	bool is_fleet; /* it asks other nodes */
};

extern const struct api_row api_rows[]; /* ended by a summary of NULL */

/* api_request - the parameters in @query that @row knows. -EINVAL with a sentence that names the parameter.
 * api_request_json - likewise those in the arguments of a tool. */
int api_request(const struct api_row *row, const char *query, struct answer_request *ret,
	struct errinfo *reterr);
unsigned api_tool_takes(const struct api_row *row); /* parameters of the tool */
int api_request_json(const struct api_row *row, const json_t *arguments, struct answer_request *ret,
	struct errinfo *reterr);

extern const struct param api_params[];

/* serve_put_node - whose recording it is as a field of the reply, if that is known. */
void serve_put_node(const struct serve *s, struct http_exchange *x);

serve_fn api_answer, api_query;
int api_query_begin(struct serve_call *c, struct errinfo *reterr);
api_tool mcp_check, mcp_causal_chains, mcp_demo_run, mcp_test_report, mcp_sql, mcp_fleet;
http_handler api_time, api_health, api_describe, api_page;

/* A request that is answered on a thread of a pool and replied to on the loop.
 *
 * It is withdrawn if its time is up before a thread took it. One that ends with its asker is so,
 * too, when its connection is closed, and what it waits for from a SQL worker is ended then. */

struct job { /* a part of what the request needs */
	struct http_exchange *x;
	bool ends_with_asker; /* not for what a client that half-closes should still get */
	/* On a thread. False: see pool_fn. */
	bool (*run)(struct job *j, bool brief);
	/* On the loop, once: replies, and frees the whole. @err is 0 if it ran to its end, -EBUSY if
	 * no thread took it in time, -ECANCELED if nobody waits for it. */
	void (*finish)(struct job *j, int err);
	/* private */
	struct loop *loop;
	struct pool *pool;
	struct pool_job queued;
	struct loop_task task;
	struct loop_timer *timer; /* NULL: it may wait as long as it takes */
	int gone; /* an eventfd: readable when the asker has gone; -1: not watched */
	bool is_gone;
};

/* job_start - on the loop. @deadline_ns (monotonic) ends its waiting; 0: nothing does. On failure
 * (-EBUSY: there are too many) it is still the caller's. */
int job_start(struct job *j, struct loop *l, struct pool *p, const struct http_request *q,
	uint64_t deadline_ns);

/* Answers that were costly, kept for the next who asks the same soon.
 *
 * An answer is good for RESPONSE_CACHE_NS, and longer while the recording's files have not changed. Who asks
 * while another is making that very answer waits for it. Safe from any thread. */

#define RESPONSE_CACHE_SLOTS 16

struct response_cache;
struct response_cache_slot;

int response_cache_new(struct response_cache **ret);
DECLARE_FREE(struct response_cache, response_cache_free)

/* response_cache_begin - true: the answer to @key about the recording @path was appended to @out, *ret_age_ns
 * old. False: the caller makes it and calls response_cache_end() with *ret_slot, which may be NULL. */
bool response_cache_begin(struct response_cache *k, const char *path, const char *key,
	struct buf *out, uint64_t *ret_age_ns, struct response_cache_slot **ret_slot);

/* response_cache_end - @made is what was made; NULL: nothing to keep. */
void response_cache_end(
	struct response_cache *k, struct response_cache_slot *slot, const struct buf *made);

/* How a recording's files look, to know later whether they have changed. */

struct file_mark {
	uint64_t value[6]; /* inode, size and time of the file and of its log */
};

/* The index of the recording's time line (answer/timeline/timeline_index.h), kept while a
 * server runs: made on a thread of its own at the first question, extended while the recording
 * grows, made anew when the file is another one. Safe from any thread. */

struct timeline_keeper;

/* timeline_keeper_new - @path stays the caller's and outlives it. */
int timeline_keeper_new(const char *path, struct timeline_keeper **ret);
DECLARE_FREE(struct timeline_keeper, timeline_keeper_free) /* waits for what is being made */

/* timeline_keeper_begin - the index, which stays as it is until timeline_keeper_end(). NULL: it is
 * being made, and *ret_progress of 1000 are done; of a small recording it is waited for.
 * timeline_keeper_end() is called in either case. */
const struct timeline_index *timeline_keeper_begin(
	struct timeline_keeper *k, unsigned *ret_progress);
void timeline_keeper_end(struct timeline_keeper *k);
