/* SPDX-License-Identifier: Apache-2.0 */
/* live_ops.c - see live_ops.h. Rows are found by looking at all: there are a few dozen. */
#include "record/trace/live_ops.h"

#include <stdlib.h>

#include "base/macros.h"

void live_ops_clear(struct live_ops *t)
{
	t->count = 0;
}

static struct tracer_op *row_of(struct live_ops *t, unsigned source, unsigned op, bool nested)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].source == source && t->rows[i].op == op &&
			t->rows[i].nested == nested)
			return &t->rows[i];
	if (t->count == LIVE_OPS_MAX)
		return NULL;
	t->rows[t->count] =
		(struct tracer_op){.source = (uint8_t)source, .op = (uint16_t)op, .nested = nested};
	return &t->rows[t->count++];
}

void live_ops_add(
	struct live_ops *t, unsigned source, unsigned op, bool nested, const struct sketch *calls)
{
	struct tracer_op *row = row_of(t, source, op, nested);

	if (!row)
		return;
	sketch_merge(&row->sketch, calls);
	row->count = row->sketch.count;
}

void live_ops_count(struct live_ops *t, unsigned source, unsigned op, uint64_t count)
{
	struct tracer_op *row = row_of(t, source, op, false);

	if (row)
		row->count = count;
}

static int compare(const void *a, const void *b)
{
	const struct tracer_op *x = a, *y = b;

	if (x->nested != y->nested)
		return x->nested - y->nested;
	return x->sketch.sum < y->sketch.sum ? 1 : x->sketch.sum > y->sketch.sum ? -1 : 0;
}

void live_ops_sort(struct live_ops *t)
{
	qsort(t->rows, t->count, sizeof(t->rows[0]), compare);
}
