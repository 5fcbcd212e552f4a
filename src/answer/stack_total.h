/* SPDX-License-Identifier: Apache-2.0 */
/* stack_total.h - what recorded calls took, by call stack and operation. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/event.h"
#include "wire/names.h"

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
