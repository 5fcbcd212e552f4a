/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - binary search in whatever is in order. */
#pragma once

#include <stddef.h>

/* LOWER_BOUND - how many of @count elements, which are in order, @is_before holds for: the index of
 * the first for which it does not, @count if there is none. @is_before is an expression of @i, an
 * index that the macro declares; it holds for none behind one that it does not hold for.
 *
 *	size_t at = LOWER_BOUND(i, l->count, l->items[i].end_ns <= ns);
 *
 * A macro, because a callback would have to be given what it compares with, and would not be
 * inlined: the search for an interval is the innermost loop of explaining. */
#define LOWER_BOUND(i, count, is_before)                                                           \
	({                                                                                         \
		size_t bound_low_ = 0, bound_high_ = (count);                                      \
                                                                                                   \
		while (bound_low_ < bound_high_) {                                                 \
			size_t i = bound_low_ + (bound_high_ - bound_low_) / 2;                    \
                                                                                                   \
			if (is_before)                                                             \
				bound_low_ = i + 1;                                                \
			else                                                                       \
				bound_high_ = i;                                                   \
		}                                                                                  \
		bound_low_;                                                                        \
	})
