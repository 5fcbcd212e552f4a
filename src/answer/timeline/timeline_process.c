/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_process.c - the processes of a time line: those of the recording's table, and those that only
 * rows know of; the busiest first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "answer/timeline/timeline_index_private.h"

static void take_process(
	struct timeline_index *ix, const struct sql_table *t, size_t i, struct timeline_process *p)
{
	int rank = table_column(t, "rank");
	const char *node = table_text(t, i, table_column(t, "node"));

	*p = (struct timeline_process){.pid = (uint32_t)table_int(t, i, table_column(t, "pid")),
		.rank = -1,
		.node = timeline_find_node(ix, node, strlen(node))};
	if (rank >= 0 && sql_table_cell(t, i, rank)->type == SQL_INT)
		p->rank = (int32_t)table_int(t, i, rank);
	snprintf(p->comm, sizeof(p->comm), "%s", table_text(t, i, table_column(t, "comm")));
	snprintf(
		p->command, sizeof(p->command), "%s", table_text(t, i, table_column(t, "cmdline")));
}

static struct timeline_process *find_process(
	struct idmap *at, struct timeline_process *list, size_t *count, uint16_t node, uint32_t pid)
{
	struct timeline_process *p = idmap_get(at, timeline_process_id(node, pid));

	if (p || *count == TIMELINE_PROCESSES_MAX)
		return p;
	p = &list[*count];
	if (idmap_put(at, timeline_process_id(node, pid), p) < 0)
		return NULL;
	*p = (struct timeline_process){.node = node, .pid = pid, .rank = -1};
	++*count;
	return p;
}

/* Lanes say how busy it is, and of those that no table knows that there is one. */
static int add_lanes(struct timeline_index *ix, struct timeline_process *list, size_t *count)
{
	struct idmap at = IDMAP_INIT(TIMELINE_PROCESSES_MAX);
	int r = 0;

	for (size_t i = *count; r == 0 && i-- > 0;)
		r = idmap_put(&at, timeline_process_id(list[i].node, list[i].pid), &list[i]);
	for (size_t i = 0; r == 0 && i < ix->lanes.count; i++) {
		const struct timeline_lane *l = ix->lanes.list[i];
		struct timeline_process *p =
			find_process(&at, list, count, l->key.node, l->key.pid);

		if (!p)
			continue;
		if (p->rank < 0)
			p->rank = l->rank;
		if (l->name[0] && (!p->comm[0] || l->key.tid == l->key.pid))
			memcpy(p->comm, l->name, sizeof(p->comm));
		if (l->key.kind == TIMELINE_CALLS && !ix->bucket_count)
			p->busy_ns += l->busy_ns;
	}
	for (size_t i = 0; r == 0 && i < ix->bucket_count; i++) {
		const struct timeline_bucket *b = &ix->buckets[i];
		struct timeline_process *p = find_process(&at, list, count, b->node, b->pid);

		if (p)
			p->busy_ns += b->busy_ns;
	}
	for (size_t i = 0; r == 0 && i < ix->collective_count; i++) {
		const struct timeline_collective *c = &ix->collectives[i];
		struct timeline_process *p = find_process(&at, list, count, c->node, c->pid);

		if (p && p->rank < 0)
			p->rank = c->rank;
	}
	idmap_done(&at);
	return r == -ENOBUFS ? 0 : r;
}

static int by_use(const void *a, const void *b)
{
	const struct timeline_process *x = a, *y = b;

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns > y->busy_ns ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

int timeline_load_processes(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	_cleanup_free_ struct timeline_process *list = NULL;
	size_t count = 0;
	int r = nodedb_snapshot_list(
		l, NODEDB_PROCESSES, &(struct scope){0}, TIMELINE_PROCESSES_MAX / 2, &t, reterr);

	if (r < 0)
		return r;
	list = calloc(TIMELINE_PROCESSES_MAX, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (; count < t.row_count; count++)
		take_process(ix, &t, count, &list[count]);
	r = add_lanes(ix, list, &count);
	if (r < 0)
		return r;
	qsort(list, count, sizeof(*list), by_use);
	free(ix->processes);
	ix->processes = reallocarray(list, count + 1, sizeof(*list));
	ix->processes = ix->processes ? ix->processes : list;
	ix->process_count = count;
	list = NULL;
	return 0;
}
