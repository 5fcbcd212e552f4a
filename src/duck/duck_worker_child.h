/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_child.h - */
#pragma once

#include <stdint.h>

#include "duck/duck.h"
#include "duck/duck_worker.h"
#include "sql/sql_guard.h"

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
