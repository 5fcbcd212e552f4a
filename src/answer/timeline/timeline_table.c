/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_table.c - what a time line takes over from tables other than that of events: collectives with
 * who came last, buckets of counted calls, readings of GPUs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/timeline/timeline_index_private.h"
#include "diagnose/accounts/lateness.h"
#include "base/array.h"

const struct timeline_gpu_field timeline_gpu_fields[5] = {
	{"utilization", "%", "util_gpu_pct", 1},
	{"memory used", "MB", "mem_used_bytes", 1e-6},
	{"power", "W", "power_mw", 1e-3},
	{"temperature", "C", "temperature_c", 1},
	{"SM clock", "MHz", "sm_clock_mhz", 1},
};

/* ---- collectives ---- */

static void take_collective(
	struct timeline_index *ix, const struct collective_row *row, struct timeline_collective *c)
{
	*c = (struct timeline_collective){.start_ns = row->start.ns,
		.dur_ns = row->dur_ns,
		.comm = row->c.comm_hash,
		.seq = row->c.seq,
		.bytes = row->c.bytes,
		.wait_ns = row->c.wait_ns,
		.pid = row->pid,
		.tid = row->tid,
		.rank = row->c.rank,
		.late_rank = -1,
		.op = row->op,
		.node = timeline_find_node(ix, row->node, strlen(row->node))};
	ix->longest_collective_ns = MAX(ix->longest_collective_ns, timeline_collective_ns(c));
}

/* Who came last, where that can be told; rows of the table are those of @rows. */
static int judge(struct timeline_collective *list, const struct collective_row *rows, size_t count)
{
	struct recording rec = {.collectives = rows, .collective_count = count};
	_cleanup_(match_done) struct match_table t = {0};
	int r = match_run(&rec, &t);

	for (size_t i = 0; r == 0 && i < t.match_count; i++) {
		const struct match *m = &t.matches[i];
		struct lateness late;

		if (m->count < 2 || !lateness_find(&t, m, &late))
			continue;
		for (size_t k = 0; k < m->count; k++) {
			const struct collective_row *row = match_row(&t, m, k);

			if (row < rows || row >= rows + count)
				continue; /* a copy with another number */
			list[row - rows].late_rank = late.row->c.rank;
			list[row - rows].gap_ns = late.gap_ns;
		}
	}
	return r;
}

int timeline_load_collectives(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	_cleanup_free_ struct collective_row *rows = NULL;
	_cleanup_free_ struct timeline_collective *list = NULL;
	size_t count = 0, first;
	int r = nodedb_snapshot_collectives(
		l, &(struct scope){0}, &rows, &count, &ix->older_collectives, reterr);

	if (r < 0)
		return r;
	first = count > TIMELINE_COLLECTIVES_MAX ? count - TIMELINE_COLLECTIVES_MAX : 0;
	ix->older_collectives = ix->older_collectives || first;
	list = calloc(count - first + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = first; i < count; i++)
		take_collective(ix, &rows[i], &list[i - first]);
	r = count ? judge(list, rows + first, count - first) : 0;
	if (r < 0)
		return r;
	free(ix->collectives);
	ix->collectives = TAKE(list);
	ix->collective_count = count - first;
	return 0;
}

/* ---- buckets ---- */

struct bucketing {
	struct timeline_index *ix;
	struct timeline_bucket *list;
	size_t count, room, first; /* first: of those that begin when the last one does */
};

/* Ops of one process and bucket become one. */
static int add_bucket(void *arg, const struct nodedb_bucket *b)
{
	struct bucketing *g = arg;
	uint16_t node = timeline_find_node(g->ix, b->node, b->node_len);
	struct timeline_cell sum,
		one = {.lead_ns = (float)b->busy_ns, .name = TIMELINE_NAME(b->source, b->op)};
	struct timeline_bucket *to = NULL;
	int r;

	if (g->count && g->list[g->count - 1].start_ns != b->start_ns)
		g->first = g->count;
	for (size_t i = g->first; i < g->count && !to; i++)
		if (g->list[i].pid == b->pid && g->list[i].node == node)
			to = &g->list[i];
	if (!to) {
		r = ARRAY_RESERVE(g->list, g->room, g->count + 1, (size_t)TIMELINE_BUCKETS_MAX);
		if (r < 0) {
			g->ix->older_buckets = r == -ENOBUFS;
			return r == -ENOBUFS ? 0 : r;
		}
		to = &g->list[g->count++];
		*to = (struct timeline_bucket){
			.start_ns = b->start_ns, .pid = b->pid, .node = node, .name = one.name};
	}
	sum = (struct timeline_cell){.lead_ns = to->lead_ns, .name = to->name};
	timeline_cell_add(&sum, &one);
	to->lead_ns = sum.lead_ns;
	to->name = sum.name;
	to->busy_ns += b->busy_ns;
	to->count += b->count;
	return 0;
}

int timeline_load_buckets(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	struct bucketing g = {.ix = ix};
	int r = nodedb_snapshot_buckets(
		l, TIMELINE_FINE_NS, add_bucket, &g, &ix->bucket_ns, reterr);

	if (r < 0) {
		free(g.list);
		return r;
	}
	free(ix->buckets);
	ix->buckets = g.list;
	ix->bucket_count = g.count;
	return 0;
}

/* ---- GPUs ---- */

int timeline_load_gpus(struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct timeline_gpu *list;
	int node, gpu, time;
	int r = nodedb_snapshot_list(l, NODEDB_GPU_SAMPLES, &(struct scope){0}, 0, &t, reterr);

	if (r < 0)
		return r;
	list = calloc(t.row_count + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	node = table_column(&t, "node");
	gpu = table_column(&t, "gpu");
	time = table_column(&t, "timestamp");
	for (size_t i = 0; i < t.row_count; i++) { /* newest first */
		struct timeline_gpu *g = &list[t.row_count - 1 - i];
		const char *name = table_text(&t, i, node);

		g->time_ns = table_int(&t, i, time);
		g->node = timeline_find_node(ix, name, strlen(name));
		g->gpu = (uint16_t)table_int(&t, i, gpu);
		for (size_t k = 0; k < ARRAY_SIZE(timeline_gpu_fields); k++) {
			int c = table_column(&t, timeline_gpu_fields[k].column);
			bool known = c >= 0 && sql_table_cell(&t, i, c)->type == SQL_INT;

			g->value[k] = known ? (float)((double)table_int(&t, i, c) *
						      timeline_gpu_fields[k].scale)
					    : NAN;
		}
	}
	free(ix->gpus);
	ix->gpus = list;
	ix->gpu_count = t.row_count;
	ix->older_gpus = t.truncated;
	return 0;
}
