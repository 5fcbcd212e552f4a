/* SPDX-License-Identifier: Apache-2.0 */
#include "base/search.h"

#include "base/macros.h"

/* Dealt out by each byte of the keys, the least significant first (a radix sort,
 * which keeps the order of equal ones), then put right by insertion. Insertion that gets nowhere
 * (MOVES for each element) leaves it to qsort(): whatever the input, it takes O(n log n). */

#define MOVES  4
#define BYTES  256
#define SMALL  64 /* fewer are not worth the counting */
#define WIDEST 1024

static bool is_ordered(
	const char *items, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	for (size_t i = 1; i < n; i++)
		if (compare(items + (i - 1) * size, items + i * size) > 0)
			return false;
	return true;
}

static uint32_t byte_of(const char *item, size_t key, unsigned byte)
{
	uint32_t v;

	memcpy(&v, item + key, sizeof(v));
	return v >> (8 * byte) & (BYTES - 1);
}

/* Deals @from out to @to by one byte of a key; false if it is the same in all. */
static bool deal(const char *from, char *to, size_t n, size_t size, size_t key, unsigned byte)
{
	size_t at[BYTES] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[byte_of(from + i * size, key, byte)]++;
	if (at[byte_of(from, key, byte)] == n)
		return false;
	for (size_t i = 0; i < BYTES; i++) {
		size_t count = at[i];

		at[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(to + size * at[byte_of(from + i * size, key, byte)]++, from + i * size,
			size);
	return true;
}

static bool insert_all(
	char *items, size_t n, size_t size, int (*compare)(const void *, const void *))
{
	size_t moves = MOVES * n;
	char held[WIDEST];

	for (size_t i = 1; i < n; i++) {
		size_t to = i;

		if (compare(items + (i - 1) * size, items + i * size) <= 0)
			continue;
		memcpy(held, items + i * size, size);
		while (to > 0 && moves > 0 && compare(items + (to - 1) * size, held) > 0) {
			memcpy(items + to * size, items + (to - 1) * size, size);
			to--;
			moves--;
		}
		memcpy(items + to * size, held, size);
		if (!moves)
			return false;
	}
	return true;
}

void sort_dealt(void *items, size_t n, size_t size, const size_t *keys, size_t key_count,
	int (*compare)(const void *, const void *))
{
	_cleanup_free_ char *scratch = NULL;
	char *from = items, *to;

	if (is_ordered(items, n, size, compare))
		return;
	if (n > SMALL && size <= WIDEST)
		scratch = reallocarray(NULL, n, size);
	if (!scratch) {
		qsort(items, n, size, compare);
		return;
	}
	to = scratch;
	for (size_t k = key_count; k-- > 0;)
		for (unsigned byte = 0; byte < sizeof(uint32_t); byte++)
			if (deal(from, to, n, size, keys[k], byte)) {
				char *swap = from;

				from = to;
				to = swap;
			}
	if (from != items)
		memcpy(items, from, n * size);
	if (!insert_all(items, n, size, compare))
		qsort(items, n, size, compare);
}
