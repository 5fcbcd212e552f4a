/* SPDX-License-Identifier: Apache-2.0 */
/* select.h - one value of many by its rank, without sorting them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* select_kth - the @k-th smallest (from 0) of the @n > @k in @v, which are put out of order. Pivots are drawn from
 * @seed, so that no order of values makes it slow. */
int64_t select_kth(int64_t *v, size_t n, size_t k, uint64_t seed);
