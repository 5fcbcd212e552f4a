/* SPDX-License-Identifier: Apache-2.0 */
/* gpus.c - see gpus.h. */
#include "answer/gpus.h"

#include "model/sample.h"

bool gpus_same(const struct gpus_answer *a, size_t x, size_t y)
{
	const struct sql_table *t = &a->samples;

	return table_int(t, x, GPUS_GPU) == table_int(t, y, GPUS_GPU) &&
	       !strcmp(table_text(t, x, GPUS_NODE), table_text(t, y, GPUS_NODE));
}

uint64_t gpus_slowing(int64_t reasons)
{
	uint64_t bits = 0;

	for (const struct gpu_throttle *t = gpu_throttles; reasons > 0 && t->bit; t++)
		if (t->slows)
			bits |= (uint64_t)reasons & t->bit;
	return bits;
}

int answer_gpus(const struct question *q, struct gpus_answer *ret, struct errinfo *reterr)
{
	struct gpus_answer a = {.count = 0};
	int r = nodedb_snapshot_list(
		q->snapshot, NODEDB_GPU_SAMPLES, &q->scope, 0, &a.samples, reterr);

	if (r < 0)
		return r;
	a.truncated = a.samples.truncated;
	for (size_t i = 0; i < a.samples.row_count; i++) {
		size_t k = 0;

		while (k < a.count && !gpus_same(&a, a.newest[k], i))
			k++;
		if (k == GPUS_MAX)
			a.truncated = true;
		else if (k == a.count)
			a.newest[a.count++] = i;
	}
	*ret = a;
	return 0;
}

void gpus_answer_done(struct gpus_answer *a)
{
	sql_table_done(&a->samples);
}

struct gpu_gauge gpus_gauge(const struct gpus_answer *a, size_t gpu, const char *column)
{
	const struct sql_table *t = &a->samples;
	int c = table_column(t, column);
	struct gpu_gauge g = {0};
	double sum = 0;

	for (size_t i = a->newest[gpu]; c >= 0 && i < t->row_count; i++) {
		int64_t v = table_int(t, i, c);

		if (!gpus_same(a, i, a->newest[gpu]) || sql_table_cell(t, i, c)->type != SQL_INT ||
			v < 0)
			continue;
		g.min = g.samples ? MIN(g.min, v) : v;
		g.max = g.samples ? MAX(g.max, v) : v;
		sum += (double)v;
		g.samples++;
	}
	g.mean = g.samples ? sum / (double)g.samples : 0;
	return g;
}
