/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* bucket.h - the log-linear histogram that the kernel fills and the agent merges.
 *
 * Values 0..15 have a bucket each; above, every power of two is cut into 16 equal parts, up to
 * 2^40 ns (18 minutes); larger values share the last bucket. A bucket's middle is therefore
 * within 1/32 = 3.1 % of every value in it. Two histograms merge by adding counts.
 *
 *   bucket = 16 * (top - 4) + 16 + ((value >> (top - 4)) & 15),   top = index of the highest bit */
#pragma once

#include <linux/types.h>

#define BUCKET_SUB_BITS 4
#define BUCKET_SUB      (1 << BUCKET_SUB_BITS)
#define BUCKET_TOP_BITS 40
#define BUCKET_COUNT    (BUCKET_SUB + (BUCKET_TOP_BITS - BUCKET_SUB_BITS) * BUCKET_SUB) /* 592 */

/* Index of the highest set bit by halving: BPF has no count-leading-zeros instruction. */
static inline __attribute__((always_inline)) __u32 bucket_top_bit(__u64 v)
{
	__u32 top = 0, shift;

	shift = (v > 0xffffffffULL) << 5;
	v >>= shift;
	top |= shift;
	shift = (v > 0xffff) << 4;
	v >>= shift;
	top |= shift;
	shift = (v > 0xff) << 3;
	v >>= shift;
	top |= shift;
	shift = (v > 0xf) << 2;
	v >>= shift;
	top |= shift;
	shift = (v > 0x3) << 1;
	v >>= shift;
	top |= shift;
	return top | (__u32)(v >> 1);
}

static inline __attribute__((always_inline)) __u32 bucket_of(__u64 v)
{
	__u32 top;

	if (v < BUCKET_SUB)
		return (__u32)v;
	if (v >> BUCKET_TOP_BITS)
		return BUCKET_COUNT - 1;
	top = bucket_top_bit(v);
	return (top - BUCKET_SUB_BITS) * BUCKET_SUB + BUCKET_SUB +
	       ((__u32)(v >> (top - BUCKET_SUB_BITS)) & (BUCKET_SUB - 1));
}
