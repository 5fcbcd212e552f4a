/* SPDX-License-Identifier: Apache-2.0 */
/* search.h - orders by which rows are sorted, and binary search in whatever is in order. */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* ORDER - defines a comparator for qsort() and bsearch() of two elements of @type, *x and *y: the first key that
 * differs decides.
 *
 *	ORDER(by_start, struct step, ASCENDING(start_ns) ?: DESCENDING(dur_ns) ?: strcmp(x->name, y->name))
 *
 * ORDER_OF_POINTERS - likewise of an array of pointers to such elements. */
#define COMPARE(a, b)     (((a) > (b)) - ((a) < (b)))
#define ASCENDING(field)  COMPARE(x->field, y->field)
#define DESCENDING(field) COMPARE(y->field, x->field)
#define ORDER(name, type, keys)                                                                    \
	static int name(const void *a_, const void *b_)                                            \
	{                                                                                          \
		const type *x = a_, *y = b_;                                                       \
                                                                                                   \
		return keys;                                                                       \
	}
#define ORDER_OF_POINTERS(name, type, keys)                                                        \
	static int name(const void *a_, const void *b_)                                            \
	{                                                                                          \
		const type *x = *(const type *const *)a_, *y = *(const type *const *)b_;           \
                                                                                                   \
		return keys;                                                                       \
	}

/* SORT - qsort() of an array, which may be NULL if @count is 0. */
#define SORT(items, count, compare)                                                                \
	do {                                                                                       \
		if ((count) > 0)                                                                   \
			qsort(items, count, sizeof(*(items)), compare);                            \
	} while (0)

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

/* Sorting rows that are almost in order.
 *
 * Rows of a recording come in order of time and are wanted by thread, and by time in it. Comparing each
 * with log n others is what explaining spends most on, and needless: dealt out by thread they are in
 * order already. */

/* sort_dealt - sorts @n elements of @size bytes by @compare; equal ones keep their order. @keys are the
 * @key_count places, in an element, of the uint32_t that @compare looks at first, the first of them
 * first. Elements that are in order but for these take O(n); others what qsort() takes and a little
 * more. Uses as much memory as the elements have; without it, it is qsort(). */
void sort_dealt(void *items, size_t n, size_t size, const size_t *keys, size_t key_count,
	int (*compare)(const void *, const void *));

/* SORT_DEALT - the same of an array and one or two fields of its elements. */
#define SORT_DEALT(items, n, compare, ...)                                                         \
	sort_dealt(items, n, sizeof(*(items)), (const size_t[]){__VA_ARGS__},                      \
		sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t), compare)
