/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_wire.h - how a question travels to the worker; private to duck/. Answers are those of
 * sql/sql_worker_wire.h.
 *
 * The head is one message. The body follows in as many as it takes: texts, each with its NUL: the files,
 * name and columns of each table, the statement. */
#pragma once

#include <stdint.h>

#include "sql/sql_guard.h"

#define DUCK_WIRE_MAGIC    0xd0c5u
#define DUCK_WIRE_BODY_MAX (8u << 20)

struct duck_wire_question {
	uint32_t magic, file_count, table_count, body_len;
	uint64_t deadline_ns; /* of the monotonic clock */
	struct sql_guard_rules rules;
};
