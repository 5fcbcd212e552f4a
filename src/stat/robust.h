/* SPDX-License-Identifier: Apache-2.0 */
/* robust.h - order statistics of plain arrays: what a few wild values cannot move.
 *
 * All take values in ascending order (robust_sort()). Quantiles are nearest rank, index
 * ceil(q * n) - 1, as published; the median is that of q = 0.5, so it is always a value that
 * occurred. Empty arrays give 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

void robust_sort(uint64_t *values, size_t n);

/* robust_quantile - the value at rank ceil(q * n), 0 < q <= 1. */
uint64_t robust_quantile(const uint64_t *sorted, size_t n, double q);
uint64_t robust_median(const uint64_t *sorted, size_t n);

/* robust_median_of - sorts @values; 0 if there are none. */
uint64_t robust_median_of(uint64_t *values, size_t n);

/* robust_mad - the median of the distances from the median. Times 1.4826 it estimates the standard
 * deviation of normal data. */
uint64_t robust_mad(const uint64_t *sorted, size_t n);

/* robust_on_the_way - of @values, in the order of time, the share of those that come before most of the high ones and are in the
 * middle half of the way, by logarithms, from the lowest twentieth to @high. What grows little by little or in several
 * stages has some; what jumps, or is larger now and then, hardly any. @scratch has room for all. */
double robust_on_the_way(const uint64_t *values, size_t n, uint64_t high, uint64_t *scratch);

/* Places of values in their order. */

/* rank_values - into @ret the place of each of @values by size, from 1 on. Equal values share the mean of
 * theirs, or their order in time would decide. 0 or -ENOMEM. */
int rank_values(const uint64_t *values, size_t n, double *ret);

/* One value of many by its rank, without sorting them. */

/* select_kth - the @k-th smallest (from 0) of the @n > @k in @v, which are put out of order. Pivots are drawn from
 * @seed, so that no order of values makes it slow. */
int64_t select_kth(int64_t *v, size_t n, size_t k, uint64_t seed);
