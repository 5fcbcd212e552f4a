/* SPDX-License-Identifier: Apache-2.0 */
/* live_ops.c - see live_ops.h. Rows are found by looking at all: there are a few dozen. */
#include "record/trace/live_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"
#include "wire/op_kind.h"

#define CALLS_MIN 100 /* before an op has a limit of its own */
#define RATIO     3   /* slower than this times the median is an exception */
#define FLOOR_NS                                                                                   \
	50000 /* shorter: explains nothing of a step, and a row with its stack costs more */

void slow_limits_add(
	struct slow_limits *l, unsigned source, unsigned op, const struct sketch *calls)
{
	uint64_t limit, *slot;

	if (!op_kind_is_cuda(source))
		return;
	if (calls->count < CALLS_MIN || op >= WIRE_OP_MAX)
		return;
	limit = MAX(RATIO * sketch_quantile(calls, 0.5), (uint64_t)FLOOR_NS);
	slot = &l->ns[source][op];
	if (!*slot || limit < *slot)
		*slot = limit;
}

/* Searched from end to end: gaps come when a library is met for the first
 * time, a few times in a run. */

/* A start of 0 is not known, because the process had ended: then the pid decides. */
static bool is_same_process(const struct gap_log_entry *e, const struct call_gap *g)
{
	return e->pid == g->pid &&
	       (!e->start_ticks || !g->start_ticks || e->start_ticks == g->start_ticks);
}

bool gap_log_add(struct gap_log *l, const struct call_gap *g, bool *ret_is_new_process)
{
	uint64_t file = hash_bytes(g->file, strlen(g->file));

	*ret_is_new_process = true;
	for (size_t i = 0; i < MIN(l->count, ARRAY_SIZE(l->entries)); i++) {
		if (!is_same_process(&l->entries[i], g))
			continue;
		*ret_is_new_process = false;
		if (l->entries[i].file == file)
			return false;
	}
	l->entries[l->count++ % ARRAY_SIZE(l->entries)] =
		(struct gap_log_entry){g->pid, g->start_ticks, file};
	return true;
}

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
