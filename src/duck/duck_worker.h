/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker.h - one statement that a stranger wrote, run by DuckDB in a process that is thrown away
 * afterwards; what sql/sql_worker.h is for SQLite.
 *
 * DuckDB has no authorizer, and its settings do not hold hostile SQL: what may be reached is decided by
 * which files the process can open. So this program is started once more, under another name. It loads the
 * library, gives up everything but reading the given files, attaches these and only these, turns off
 * DuckDB's own ways out and runs the statement. It is killed at the deadline, whatever it is doing. What
 * it answers is checked as a stranger's word. */
#pragma once

#include "duck/duck.h"
#include "sql/sql_guard.h"
#include "sql/sql_worker.h"

#define DUCK_WORKER_NAME       "ingero-duck"
#define DUCK_WORKER_AT_ONCE    4 /* of one process; more wait for their turn */
#define DUCK_WORKER_TIMEOUT_NS (5 * NS_PER_S)
#define DUCK_WORKER_MEMORY     (384u << 20) /* of DuckDB, for an error instead of an end */
#define DUCK_WORKER_ADDRESS    (768u << 20) /* of the process, by the kernel */
#define DUCK_WORKER_ROWS_MAX   10000
#define DUCK_WORKER_BYTES_MAX  (8u << 20)
#define DUCK_WORKER_FILES_MAX  700 /* each takes 2 ms and 0.4 MiB before a row is read */
#define DUCK_WORKER_TABLES_MAX 32

struct duck_worker_table {
	const char *name;    /* as the stranger's SQL names it */
	const char *columns; /* as in CREATE TABLE: "ts_ns BIGINT, node_id VARCHAR" */
};

struct duck_worker_question {
	/* DuckDB files, of which every row may be seen; none is written while it is read. A file that has
	 * a table of these names gives its rows to it; a column that a file lacks is NULL. */
	const char *const *files;
	size_t file_count;
	const struct duck_worker_table *tables; /* what there is, also with no file at all */
	size_t table_count;
	const char *text;
};

/* duck_worker_ask - runs the question and waits for its rows. Safe from any thread. What of @rules is 0 or
 * more than the ceilings above becomes these; its time counts from the call on and includes starting the
 * process. On success *ret is the caller's (sql_table_done()). @hint is for a second
 * sentence, what there is instead of what was not found; if it is NULL, that stands behind the first.
 * -EINVAL the statement is wrong, not alone or not a query; -EPERM it asks for what it may not;
 * -ETIMEDOUT; -ENOMEM; -E2BIG the statement, or the list of files, is over its ceiling; -EBUSY no turn came
 * in time, or a file is being written; -ECANCELED as of sql_worker_watch(); -ENOENT a file is gone, or there is no library; -EBADMSG a
 * file is damaged, which the sentence names; -EPROTO the process ended or answered what cannot be. */
int duck_worker_ask(const struct duck_worker_question *q, const struct sql_guard_rules *rules,
	struct sql_table *ret, struct buf *hint, struct errinfo *reterr);

struct sql_worker_stats duck_worker_stats(void);

/* duck_worker_rest - ends the process that waits for the next question. */
void duck_worker_rest(void);

/* The worker's own side, for main(). */
bool duck_worker_is_meant(int argc, char **argv);
_noreturn_ void duck_worker_main(void);

/* */

/* The worker's files become the tables of its database; private to duck/. */

struct duck_files {
	const char *names[DUCK_WORKER_FILES_MAX];
	int fds[DUCK_WORKER_FILES_MAX]; /* O_PATH */
	size_t count;
};

/* duck_files_open - looks them up, reads nothing. -ENOENT one is gone; the sentence names it. */
int duck_files_open(struct duck_files *f, struct errinfo *reterr);

/* duck_attach_all - each as a catalog of its own, to be read. -EBADMSG one is damaged, -EBUSY one is
 * being written; the sentence names it. */
int duck_attach_all(struct duck_connection *c, const struct duck_files *f, struct errinfo *reterr);

/* How a question travels to the worker; private to duck/. Answers are those of
 * sql/sql_worker_wire.h.
 *
 * The head is one message. The body follows in as many as it takes: texts, each with its NUL: the files,
 * name and columns of each table, the statement. */

#define DUCK_WIRE_MAGIC    0xd0c5u
#define DUCK_WIRE_BODY_MAX (8u << 20)

struct duck_wire_question {
	uint32_t magic, file_count, table_count, body_len;
	uint64_t deadline_ns; /* of the monotonic clock */
	struct sql_guard_rules rules;
};

struct duck_walls {
	int landlock; /* version of the kernel's interface; 0: it has none */
	bool seccomp;
};

/* duck_worker_confine - from now on this process reads @f and nothing else, for good: no privileges, no
 * processes, no network, no file written, DUCK_WORKER_ADDRESS of memory, @left_ns and a little of CPU time.
 * It dies with its parent. What the kernel does not have is told in *ret; what it refuses is an error. */
int duck_worker_confine(const struct duck_files *f, uint64_t left_ns, struct duck_walls *ret);
