/* SPDX-License-Identifier: Apache-2.0 */
/* sql_worker_wire.h - what asker and worker say to each other; for sql/ and duck/.
 *
 * SQLite's question is one message: head, path, text; DuckDB's is described in duck/. The answer is a head and, in as many messages as
 * it takes, sentence, hint, offsets of names, cells, texts, one after the other. Both are one
 * program, so structs travel as they are. */
#pragma once

#include "sql/sql_guard.h"

#define SQL_WIRE_MAGIC       0x51c5u
#define SQL_WIRE_MESSAGE     (64u << 10) /* bytes of one message of an answer */
#define SQL_WIRE_PATH_MAX    4096
#define SQL_WIRE_COLUMNS_MAX 2000
#define SQL_WIRE_HINT_MAX    (16u << 10)
#define SQL_WIRE_SLACK       (1u << 20) /* names come on top of a table's bytes_max */

struct sql_wire_question {
	uint32_t magic, path_len, text_len;
	uint64_t deadline_ns; /* of the monotonic clock */
	struct sql_guard_rules rules;
};

struct sql_wire_answer {
	uint32_t magic;
	int32_t err, exit_code;
	int32_t landlock;
	uint32_t seccomp, truncated;
	uint32_t sentence_len, hint_len, column_count;
	uint64_t row_count, text_len;
};

struct sql_wire_result { /* what an answer is made from, and becomes */
	struct sql_wire_answer head;
	struct errinfo err;
	struct sql_table table;
	struct buf *hint; /* may be NULL */
};

/* sql_wire_send - 0 or what sendmsg(2) gave. */
int sql_wire_send(int socket, const struct sql_wire_result *r);

struct sql_wire_wait { /* for an answer */
	int socket;
	int gone;          /* readable when nobody wants it any more; -1: somebody always does */
	uint64_t until_ns; /* monotonic */
};

/* sql_wire_receive - @rules is what was asked for: no more is taken. 0; -ETIMEDOUT; -ECANCELED;
 * -EPROTO the other end closed or said what cannot be; -ENOMEM. On success r->table is the caller's.
 */
int sql_wire_receive(const struct sql_wire_wait *w, const struct sql_guard_rules *rules,
	struct sql_wire_result *r);

/* sql_wire_judge - what a worker's answer says as a result: its error, without its table then. */
int sql_wire_judge(struct sql_wire_result *r, struct errinfo *reterr);

/* Bytes in as many messages as it takes; results as of sql_wire_send() and sql_wire_receive(). */
int sql_wire_send_bytes(int socket, const void *data, size_t len);
int sql_wire_receive_bytes(const struct sql_wire_wait *w, void *out, size_t len);
