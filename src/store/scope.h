/* SPDX-License-Identifier: Apache-2.0 */
/* scope.h - which part of a recording is meant: one description of it for loaders, short questions
 * and exports, and one place where it becomes SQL. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct scope {
	int64_t from_ns, to_ns; /* inclusive, of the start; 0: open */
	const uint32_t *pids;   /* any of these, or all if pid_count is 0. sched_switch rows of
				   published files carry a thread's id here */
	size_t pid_count;
	const char *node; /* NULL: any. Tables without nodes know nothing of it */
	uint8_t source;   /* 0: any */
	uint16_t op;      /* of that source; 0: any */
};

struct scope_columns {          /* which of a table's columns a scope applies to */
	const char *time, *pid; /* NULL: none */
	int64_t width_ns;       /* a row is a bucket of this width; 0: a moment */
	bool op;                /* it has source and op */
	bool node;              /* it has node */
};

/* scope_where - appends " WHERE 1" and what @s asks of columns @c: a complete condition to which
 * " AND …" may be added. Check sql->err. */
void scope_where(const struct scope *s, const struct scope_columns *c, struct buf *sql);

/* scope_accepts - whether a row of that time and process belongs to @s: as scope_where() says it. */
bool scope_accepts(const struct scope *s, int64_t time_ns, int64_t pid);

/* scope_bucket_ns - of which buckets calls of @s are summed up: of 5 s for a time of up to half an
 * hour, where they are few; else of minutes. */
int64_t scope_bucket_ns(const struct scope *s);
const char *scope_bucket_table(int64_t width_ns);
