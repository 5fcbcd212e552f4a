/* SPDX-License-Identifier: Apache-2.0 */
/* runs.h - rounds of a loop from marks of which some are missing: how many there are between two says nothing then,
 * but where they were left does. Marks of one place in a row are a run; a round is from the beginning of a run to the
 * next of the same place. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct run_mark {
	int64_t ns;     /* ascending */
	uint64_t place; /* 0: not known */
};

/* runs_find - of the places whose runs come at one distance, nearly all of the time and at least @least_ns apart, the one
 * with the shortest distance: the beginnings of its runs into @ret, which has room for @n. *ret_count 0: there is none.
 * 0 or -ENOMEM. */
int runs_find(
	const struct run_mark *marks, size_t n, int64_t least_ns, int64_t *ret, size_t *ret_count);
