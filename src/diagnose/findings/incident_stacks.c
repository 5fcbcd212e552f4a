/* SPDX-License-Identifier: Apache-2.0 */
/* incident_stacks.c - see incident_stacks.h. Stacks are known by their hash alone; whoever prints has the names. */
#include "diagnose/findings/incident_stacks.h"

#include <stdlib.h>

#include "base/macros.h"

static int by_hash(const void *a, const void *b)
{
	const struct incident_stack *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static int by_excess(const void *a, const void *b)
{
	const struct incident_stack *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return by_hash(a, b);
}

void incident_stacks_merge(struct incident_stack *list, size_t n, struct incident *inc)
{
	size_t distinct = 0;

	qsort(list, n, sizeof(*list), by_hash);
	for (size_t i = 0; i < n; i++) {
		inc->stack_ns += list[i].ns;
		if (distinct && list[distinct - 1].hash == list[i].hash) {
			list[distinct - 1].ns += list[i].ns;
			list[distinct - 1].calls++;
		} else {
			list[distinct++] = list[i];
		}
	}
	qsort(list, distinct, sizeof(*list), by_excess);
	inc->stack_total = (uint32_t)distinct;
	inc->stack_count = (int)MIN(distinct, (size_t)INCIDENT_STACKS);
	for (int i = 0; i < inc->stack_count; i++)
		inc->stacks[i] = list[i];
}
