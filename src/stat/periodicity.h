/* SPDX-License-Identifier: Apache-2.0 */
/* periodicity.h - whether things that happen now and then come back at regular distances. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct periodicity {
	double period;     /* in units of the positions */
	double jitter;     /* median distance from a regular grid, same unit */
	double confidence; /* 0..1, see periodicity.c */
	uint64_t missed;   /* places of the grid where nothing happened */
};

/* periodicity_find - looks for a period in @positions, which must ascend strictly (else false).
 * False: there is none, or too few to tell; *ret is then untouched. O(n log n); at most 2^16
 * positions are looked at, the first ones. Allocates; without memory it finds nothing. */
bool periodicity_find(const uint64_t *positions, size_t n, struct periodicity *ret);
