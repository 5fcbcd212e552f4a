/* SPDX-License-Identifier: Apache-2.0 */
/* clickhouse_client.h - asks ClickHouse servers over HTTP and waits for their answers; private to store/.
 *
 * From any thread: each ask takes a loop of its own that is kept for the next. A connection is made for
 * each ask, since the servers close idle ones and a statement that was sent into a closing connection may
 * have run or not. A password is not sent without TLS to another machine. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/errinfo.h"

#define CLICKHOUSE_BODY_MAX (48u << 20) /* bytes of one insert */

struct clickhouse; /* the servers */

struct clickhouse_account {
	const char *user, *password; /* the password may be NULL */
};

/* clickhouse_new - @shards are URLs. -EINVAL with a sentence: one of them is none. */
int clickhouse_new(
	const char *const *shards, size_t count, struct clickhouse **ret, struct errinfo *reterr);
void clickhouse_free(struct clickhouse *c); /* when no ask is under way */
DEFINE_CLEANUP(struct clickhouse *, clickhouse_free)

size_t clickhouse_shard_count(const struct clickhouse *c);

struct clickhouse_ask {
	size_t shard;
	const struct clickhouse_account *account;
	const char *query;
	const char *settings; /* "&name=value…", escaped; NULL: none */
	const void *rows;     /* of an INSERT; NULL: none */
	size_t rows_len;
	uint64_t timeout_ns;
	size_t answer_max;
	/* results */
	int err; /* 0; what http_done() says; or by ClickHouse's own error, see clickhouse_client.c */
	struct errinfo e;
	struct buf answer; /* whole, or err is set */
};

/* clickhouse_ask_all - all at once; returns when each has its result: 0, or the err of the first that
 * failed, with its sentence. The answers are the caller's in any case. */
int clickhouse_ask_all(
	struct clickhouse *c, struct clickhouse_ask *asks, size_t count, struct errinfo *reterr);
void clickhouse_ask_done(struct clickhouse_ask *a);
