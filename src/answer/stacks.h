/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - from where calls were made in a time, by time. */
#pragma once

#include "answer/answer.h"
#include "model/event.h"
#include "wire/names.h"
#include "base/buf.h"
#include "model/stack.h"

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

struct stack_total {
	uint64_t hash; /* 0: calls without a stack */
	uint8_t source;
	uint16_t op;
	uint64_t ns, calls; /* rows times their weight */
};

/* stack_total_run - sums the calls (CUDA, driver, graph, NCCL) among @events, most time first.
 * Driver calls made inside runtime calls are part of those and left out, unless @op asks for them;
 * @op NULL: all. On success *ret is the caller's (free()). 0 or -ENOMEM. */
int stack_total_run(const struct event *events, size_t count, const struct wire_op_row *op,
	struct stack_total **ret, size_t *ret_count);

/* stack_text_frame - "forward() at train.py:142", "launch (ops.cc:31)", "gemm [libfoo.so]", or the
 * address where nothing has a name. */
void stack_text_frame(struct buf *b, const struct stack_frame *f);

/* stack_text_place - the same without the types of a C++ function's arguments, for the end of a sentence. */
void stack_text_place(struct buf *b, const struct stack_frame *f);

/* stack_text - a line for each frame, innermost first, @indent columns in and cut to @width columns
 * (SIZE_MAX: never). Of a deep stack the middle is left out, and a line says how much. */
void stack_text(struct buf *b, const struct stack *s, size_t indent, size_t width);
