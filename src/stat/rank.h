/* SPDX-License-Identifier: Apache-2.0 */
/* rank.h - places of values in their order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* rank_values - into @ret the place of each of @values by size, from 1 on. Equal values share the mean of
 * theirs, or their order in time would decide. 0 or -ENOMEM. */
int rank_values(const uint64_t *values, size_t n, double *ret);
