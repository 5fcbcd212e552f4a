/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - the HTTP server of a recording: API, page, and what others add to it.
 *
 * The loop's thread parses and replies; what takes time runs on the threads of a lane (pool.h), so
 * that slow questions do not hold up quick ones. */
#pragma once

#include "net/server/server.h"
#include "record/check/check.h"

struct serve;

/* Who runs an answer: threads and a queue of their own each. */
enum serve_lane {
	LANE_READ,  /* short looks into the recording */
	LANE_HEAVY, /* explaining, stacks: up to seconds */
	LANE_SQL,   /* waits for a worker process; each has a deadline */
	LANE_COUNT
};

struct serve_call { /* one request on its way through a lane; texts are copies */
	struct serve *serve;
	char *path, *query, *body;
	size_t body_len;
	const void *data;     /* of its row: see struct serve_plan */
	void *state;          /* what begin() made of the body; malloc()'s */
	uint64_t deadline_ns; /* monotonic, from begin(): no thread by then is a 503; 0: none */
	bool is_brief;        /* no more than SERVE_BRIEF_NS; then set needs_longer and return */
	bool needs_longer;
	/* what to reply with, for the lane to fill in: */
	int status;
	const char *type; /* NULL: JSON */
	struct buf out;
	char retry_after[8], age[16]; /* fields of the reply; "": none */
};
#define SERVE_BRIEF_NS (500 * NS_PER_MS)

typedef void serve_fn(struct serve_call *c);

/* serve_error - the call's reply becomes {"error": sentence, "hint"?}; the status follows from
 * @err. */
void serve_error(struct serve_call *c, int err, const struct errinfo *e, const char *hint);

/* serve_ask - what the API says to GET @target ("/api/v1/ops?since=5m") about the recording @db, without a server: the same
 * question and parameters. -EINVAL: there is no such question; else as answer_run(). */
int serve_ask(const char *db, const char *target, struct buf *out, struct errinfo *reterr);

struct serve_settings {
	const char *db;
	const char *address;
	struct tls *tls;          /* NULL: plain */
	struct token_set *tokens; /* NULL: none */
	const uid_t *owners;      /* who needs none on loopback: see net/server/server.h */
	size_t owner_count;
	const char *const *names;        /* allowed besides those that always are */
	const char *version;             /* of this program */
	const struct http_route *routes; /* besides the API and the page; may be NULL */
	void *arg;                       /* of their handlers: see serve_arg() */
};

/* serve_new - listens on @l. The settings' texts stay the caller's and must outlive it. */
int serve_new(
	struct loop *l, const struct serve_settings *s, struct serve **ret, struct errinfo *reterr);

/* serve_free - waits for the answers under way. */
void serve_free(struct serve *s);

const char *serve_address(const struct serve *s);
const char *serve_db(const struct serve *s);
void *serve_arg(const struct serve *s); /* every handler's own argument is the struct serve */
bool serve_is_idle(struct serve *s);    /* nothing runs and nothing waits */

/* serve_drain - see http_server_drain(). */
void serve_drain(struct serve *s, loop_fn *done, void *arg);

/* What a server gives up before it answers its first request. */

struct serve_confine {
	const char *db;             /* the recording; need not be there yet */
	struct check_probes probes; /* set: what the kernel said before, for get_check */
};

/* serve_confine - from here on the process can listen, connect and read; it writes only beside the
 * recording and beside the default one, where certificates are kept, and begins only processes for
 * SQL. To be called while there is one thread, when certificates and tokens are open. What the
 * kernel lacks is a warning. */
void serve_confine(struct serve_confine *c);
