/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - from where calls were made in a time, by time. */
#pragma once

#include "answer/answer.h"

enum {
	STACKS_SOURCE,
	STACKS_OP,
	STACKS_HASH,
	STACKS_CALLS,
	STACKS_NS,
	STACKS_MIN,
	STACKS_LONGEST,
	STACKS_PROCESSES,
	STACKS_ROWS
};

struct stacks_answer {
	struct sql_table totals; /* a row for each stack and operation, most time first; the hash 0
				    is of calls without a stack */
	double ns;               /* of all */
	int64_t rows, without;   /* events; those without a stack */
};

/* answer_stacks - of all rows of the scope, as `explain --stacks` sums them up. Calls inside others are part of them and left out, unless the scope asks for their
 * operation. */
int answer_stacks(const struct question *q, struct stacks_answer *ret, struct errinfo *reterr);
void stacks_answer_done(struct stacks_answer *a);

/* stacks_next_process - the next "PID NAME" of a row's processes: *text moves on. False at the end. */
bool stacks_next_process(
	const char **text, uint32_t *ret_pid, const char **ret_name, size_t *ret_len);
