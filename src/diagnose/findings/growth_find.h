/* SPDX-License-Identifier: Apache-2.0 */
/* growth_find.h - steady growth of a GPU's memory, by the driver's readings. */
#pragma once

#include "diagnose/recording.h"

struct memory_growth {
	int64_t first_ns, last_ns; /* the reading before the first rise, and the last reading */
	uint64_t start_bytes;      /* in use at first_ns */
	uint64_t bytes;            /* more at last_ns */
	int64_t free_bytes;        /* at last_ns; -1: not known */
	size_t rises;              /* readings above the one before */
	double bend;               /* largest distance from a straight line, as a share of bytes */
	bool after_level;          /* memory stood still before */
};

/* growth_find - whether the memory of GPU number @gpu grows at the end of [from_ns, to_ns], the time in
 * which the process in question was there. Both are times that can be reckoned with
 * (baseline_is_sane()). Returns 1; 0: it does not, or that is not known (*ret is untouched); or
 * -ENOMEM. */
int growth_find(const struct recording *rec, int64_t gpu, int64_t from_ns, int64_t to_ns,
	struct memory_growth *ret);

/* growth_is_possible - false if the readings of no GPU differ by as much as a growth needs. */
bool growth_is_possible(const struct recording *rec);
