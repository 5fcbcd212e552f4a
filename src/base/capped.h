/* SPDX-License-Identifier: Apache-2.0 */
/* capped.h - sums and products that stay at the highest number instead of beginning anew. */
#pragma once

#include <stdint.h>

static inline uint64_t capped_sum(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t capped_product(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
