/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_entry.c - the tracks that a time line can draw: of threads and streams what lanes there are,
 * of processes those that took part in collectives and whose calls were counted. */
#include <errno.h>
#include <stdlib.h>

#include "answer/timeline/timeline_index_private.h"

static struct timeline_lane *lane_of(
	const struct timeline_index *ix, struct timeline_key key, enum timeline_kind kind)
{
	key.kind = kind;
	return timeline_lane_get(&ix->lanes, &key);
}

/* The track that @l is the first lane of; false: it is not, or belongs to no process. */
static bool make_entry(const struct timeline_index *ix, const struct idmap *processes,
	const struct timeline_lane *l, struct timeline_entry *e)
{
	static const enum timeline_track_kind kinds[TIMELINE_KINDS] = {
		[TIMELINE_CALLS] = TRACK_THREAD,
		[TIMELINE_WAITING] = TRACK_THREAD,
		[TIMELINE_BLOCKED] = TRACK_THREAD,
		[TIMELINE_STREAM] = TRACK_STREAM,
		[TIMELINE_HOST] = TRACK_HOST};
	uintptr_t process =
		(uintptr_t)idmap_get(processes, timeline_process_id(l->key.node, l->key.pid));

	if (!process)
		return false;
	*e = (struct timeline_entry){.kind = kinds[l->key.kind],
		.process = (uint32_t)(process - 1),
		.lane = l,
		.total_ns = l->busy_ns};
	if (e->kind != TRACK_THREAD)
		return true;
	e->lane = lane_of(ix, l->key, TIMELINE_CALLS);
	e->waiting = lane_of(ix, l->key, TIMELINE_WAITING);
	e->blocked = lane_of(ix, l->key, TIMELINE_BLOCKED);
	e->total_ns = e->lane ? e->lane->busy_ns : 0;
	return l == (e->lane ? e->lane : e->waiting ? e->waiting : e->blocked);
}

static int by_process(const void *a, const void *b)
{
	const struct timeline_entry *x = a, *y = b;
	const struct timeline_lane *p = x->lane ? x->lane : x->waiting ? x->waiting : x->blocked;
	const struct timeline_lane *q = y->lane ? y->lane : y->waiting ? y->waiting : y->blocked;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (!p || !q)
		return 0;
	if (p->key.tid != q->key.tid)
		return p->key.tid < q->key.tid ? -1 : 1;
	return (p->key.stream > q->key.stream) - (p->key.stream < q->key.stream);
}

static void add_entry(const struct idmap *processes, uint64_t id, bool *seen,
	enum timeline_track_kind kind, struct timeline_entry *list, size_t *n)
{
	uintptr_t at = (uintptr_t)idmap_get(processes, id);

	if (!at || seen[at - 1])
		return;
	seen[at - 1] = true;
	list[(*n)++] = (struct timeline_entry){.kind = kind, .process = (uint32_t)(at - 1)};
}

/* Tracks for processes that took part in collectives, and for those whose calls were counted. */
static int add_process_tracks(struct timeline_index *ix, const struct idmap *processes,
	struct timeline_entry *list, size_t *n)
{
	_cleanup_free_ bool *ranks = calloc(ix->process_count + 1, sizeof(*ranks));
	_cleanup_free_ bool *counted = calloc(ix->process_count + 1, sizeof(*counted));

	if (!ranks || !counted)
		return -ENOMEM;
	for (size_t i = 0; i < ix->collective_count; i++)
		add_entry(processes,
			timeline_process_id(ix->collectives[i].node, ix->collectives[i].pid), ranks,
			TRACK_RANK, list, n);
	for (size_t i = 0; i < ix->bucket_count; i++)
		add_entry(processes, timeline_process_id(ix->buckets[i].node, ix->buckets[i].pid),
			counted, TRACK_PROCESS, list, n);
	for (size_t i = 0; i < *n; i++)
		if (list[i].kind == TRACK_PROCESS)
			list[i].total_ns = ix->processes[list[i].process].busy_ns;
	return 0;
}

int timeline_list_entries(struct timeline_index *ix)
{
	struct idmap processes = IDMAP_INIT(TIMELINE_PROCESSES_MAX);
	size_t room = ix->lanes.count + 2 * ix->process_count + 1, n = 0;
	struct timeline_entry *list = calloc(room, sizeof(*list));
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ix->process_count; i++)
		r = idmap_put(&processes,
			timeline_process_id(ix->processes[i].node, ix->processes[i].pid),
			(void *)(uintptr_t)(i + 1));
	for (size_t i = 0; r == 0 && i < ix->lanes.count; i++)
		if (make_entry(ix, &processes, ix->lanes.list[i], &list[n]))
			n++;
	if (r == 0)
		r = add_process_tracks(ix, &processes, list, &n);
	if (r == 0) {
		qsort(list, n, sizeof(*list), by_process);
		free(ix->entries);
		ix->entries = TAKE(list);
		ix->entry_count = n;
	}
	free(list);
	idmap_done(&processes);
	return r;
}
