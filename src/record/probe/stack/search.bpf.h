/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* search.bpf.h - binary searches in the tables of wire/stack.h. They have no branches, because the
 * verifier would follow every one of them both ways; a unit test compiles them for user space. */
#pragma once

#include "record/probe/bound.bpf.h"
#include "wire/stack.h"

/* @step if @value <= @sought, else 0: by the borrow of the subtraction, which is right for all
 * values. The barrier keeps the compiler from making it a branch. A product and not a mask: newer
 * kernels (6.18 does) know a mask of all bits or none for the choice that it is, and follow it both
 * ways. */
static __always_inline __u32 step_if_reached(__u64 value, __u64 sought, __u32 step)
{
	__u64 beyond = (value & ~sought) | ((value | ~sought) & (sought - value));

	asm volatile("" : "+r"(beyond));
	return step * (__u32)(~beyond >> 63);
}

/* The last row that begins at or before @sought; row 0 even if it does not. */
static __always_inline __u32 chunk_search(const struct unwind_chunk *c, __u32 sought)
{
	__u32 low = 0;

#pragma unroll
	for (__u32 step = UNWIND_CHUNK_ROWS / 2; step; step >>= 1)
		low += step_if_reached(
			c->address[BOUNDED(low + step, UNWIND_CHUNK_ROWS - 1)], sought, step);
	return BOUNDED(low, UNWIND_CHUNK_ROWS - 1);
}

static __always_inline __u32 mapping_search(const struct stack_mappings *m, __u64 sought)
{
	__u32 low = 0;

#pragma unroll
	for (__u32 step = STACK_MAPPINGS_MAX / 2; step; step >>= 1)
		low += step_if_reached(
			m->start[BOUNDED(low + step, STACK_MAPPINGS_MAX - 1)], sought, step);
	return BOUNDED(low, STACK_MAPPINGS_MAX - 1);
}
