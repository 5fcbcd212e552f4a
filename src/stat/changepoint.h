/* SPDX-License-Identifier: Apache-2.0 */
/* changepoint.h - the one shift of level in a noisy series, if there is one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct changepoint {
	size_t index;           /* first value of the new level */
	uint64_t before, after; /* medians */
	double confidence;      /* 0..1, see changepoint.c */
};

/* changepoint_find - looks for a lasting shift of level in @values. False: there is none, or too
 * few values to tell; *ret is then untouched. O(n log n), at most 2^16 values: of a longer series
 * every k-th is looked at, and index is exact to k. Without memory it finds nothing. */
bool changepoint_find(const uint64_t *values, size_t n, struct changepoint *ret);
