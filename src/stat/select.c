/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - see select.h. */
#include "stat/select.h"

#include "base/hash.h"

int64_t select_kth(int64_t *v, size_t n, size_t k, uint64_t seed)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		int64_t pivot;
		size_t less = low, more = high, i = low;

		seed = hash_number(seed + 1);
		pivot = v[low + seed % (high - low)];
		while (i < more) { /* [low, less) smaller, [less, i) equal, [more, high) greater */
			int64_t x = v[i];

			if (x < pivot) {
				v[i++] = v[less];
				v[less++] = x;
			} else if (x > pivot) {
				v[i] = v[--more];
				v[more] = x;
			} else {
				i++;
			}
		}
		if (k >= less && k < more)
			return pivot;
		if (k < less)
			high = less;
		else
			low = more;
	}
	return v[low];
}
