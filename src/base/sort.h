/* SPDX-License-Identifier: Apache-2.0 */
/* sort.h - sorting rows that are almost in order.
 *
 * Rows of a recording come in order of time and are wanted by thread, and by time in it. Comparing each
 * with log n others is what explaining spends most on, and needless: dealt out by thread they are in
 * order already. */
#pragma once

#include <stddef.h>

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
