/* SPDX-License-Identifier: Apache-2.0 */
#include "stat/rank.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"

struct ranked {
	uint64_t value;
	size_t at;
};

static int by_value(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

int rank_values(const uint64_t *values, size_t n, double *ret)
{
	_cleanup_free_ struct ranked *order = calloc(n + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct ranked){values[i], i};
	qsort(order, n, sizeof(*order), by_value);
	for (size_t i = 0, to; i < n; i = to) {
		for (to = i + 1; to < n && order[to].value == order[i].value;)
			to++;
		for (size_t k = i; k < to; k++)
			ret[order[k].at] = (double)(i + 1 + to) / 2;
	}
	return 0;
}
