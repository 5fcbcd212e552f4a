/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_index.c - see timeline_index.h.
 *
 * Readers of an index change nothing in it: what timeline_pieces() may add (a peer, a node) is known
 * once the row was loaded. */
#include "agent/answer/timeline_index.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/answer/answer.h"
#include "agent/correlate/engine/lateness.h"
#include "agent/probe/function.h"
#include "base/array.h"
#include "base/hash.h"
#include "wire/op_kind.h"

#define PROGRESS_ROWS 4096

const struct timeline_gpu_field timeline_gpu_fields[5] = {
	{"utilization", "%", "util_gpu_pct", 1},
	{"memory used", "MB", "mem_used_bytes", 1e-6},
	{"power", "W", "power_mw", 1e-3},
	{"temperature", "C", "temperature_c", 1},
	{"SM clock", "MHz", "sm_clock_mhz", 1},
};

void timeline_index_done(struct timeline_index *ix)
{
	timeline_lanes_done(&ix->lanes);
	free(ix->nodes);
	free(ix->peers);
	idmap_done(&ix->peer_ids);
	free(ix->processes);
	free(ix->entries);
	free(ix->collectives);
	free(ix->buckets);
	free(ix->steps);
	free(ix->gpus);
	*ix = (struct timeline_index){0};
}

/* ---- names ---- */

static uint16_t find_node(struct timeline_index *ix, const char *name, size_t len)
{
	len = MIN(len, sizeof(ix->nodes[0]) - 1);
	if (!len && ix->node_count)
		return 0;
	for (size_t i = ix->node_count; i-- > 0;)
		if (!strncmp(ix->nodes[i], name, len) && !ix->nodes[i][len])
			return (uint16_t)i;
	if (ARRAY_RESERVE(ix->nodes, ix->node_room, ix->node_count + 1, TIMELINE_NODES_MAX) < 0)
		return 0;
	memcpy(ix->nodes[ix->node_count], name, len);
	ix->nodes[ix->node_count][len] = 0;
	return (uint16_t)ix->node_count++;
}

uint16_t timeline_index_node(struct timeline_index *ix, const struct nodedb_slice *s)
{
	size_t len;
	const char *name = nodedb_slice_node(s, &len);

	return find_node(ix, name, len);
}

/* Who had the CPU; 0: nobody, or one of too many. */
static uint16_t find_peer(struct timeline_index *ix, const struct nodedb_slice *s)
{
	struct timeline_peer p = {.pid = s->peer_pid};
	uint64_t id;
	uintptr_t at;

	if (!s->peer_pid)
		return 0;
	nodedb_slice_peer(s, p.comm);
	id = hash_number(hash_bytes(p.comm, strlen(p.comm)) ^ hash_number(p.pid)) | 1;
	at = (uintptr_t)idmap_get(&ix->peer_ids, id);
	if (at)
		return (uint16_t)at;
	if (ARRAY_RESERVE(ix->peers, ix->peer_room, ix->peer_count + 1, TIMELINE_PEERS_MAX) < 0 ||
		idmap_put(&ix->peer_ids, id, (void *)(uintptr_t)ix->peer_count) < 0)
		return 0;
	ix->peers[ix->peer_count] = p;
	return (uint16_t)ix->peer_count++;
}

/* ---- rows ---- */

static bool has_stream(unsigned source, unsigned op)
{
	const struct probe_function *f;

	if (source == SOURCE_NCCL)
		return (op >= NCCL_ALL_REDUCE && op <= NCCL_RECV) ||
		       (op >= NCCL_REDUCE && op <= NCCL_SCATTER);
	f = probe_function_find((uint8_t)source, (uint16_t)op);
	return f && f->cookie.stream;
}

static int off_cpu(struct timeline_index *ix, const struct nodedb_slice *s, uint16_t node,
	struct timeline_piece ret[TIMELINE_PIECES])
{
	uint64_t wait_ns = s->flags & WIRE_PREEMPTED ? s->dur_ns : MIN(s->wait_ns, s->dur_ns);
	struct timeline_key key = {.pid = s->pid, .tid = s->tid, .node = node};
	int n = 0;

	if (wait_ns < s->dur_ns || !s->dur_ns) {
		key.kind = TIMELINE_BLOCKED;
		ret[n++] = (struct timeline_piece){
			.key = key, .start_ns = s->start_ns, .dur_ns = s->dur_ns - wait_ns};
	}
	if (wait_ns) {
		key.kind = TIMELINE_WAITING;
		ret[n++] = (struct timeline_piece){.key = key,
			.start_ns = s->start_ns + (int64_t)(s->dur_ns - wait_ns),
			.dur_ns = wait_ns,
			.name = find_peer(ix, s)};
	}
	return n;
}

int timeline_pieces(struct timeline_index *ix, const struct nodedb_slice *s, uint16_t node,
	struct timeline_piece ret[TIMELINE_PIECES])
{
	struct timeline_key key = {.pid = s->pid, .tid = s->tid, .node = node};
	bool is_call = op_kind_is_gpu(s->source);
	int n = 0;

	if (s->source == SOURCE_HOST && s->op == HOST_SCHED_SWITCH)
		return off_cpu(ix, s, node, ret);
	key.kind = is_call ? TIMELINE_CALLS : TIMELINE_HOST;
	if (!is_call)
		key.tid = 0;
	ret[n++] = (struct timeline_piece){.key = key,
		.start_ns = s->start_ns,
		.dur_ns = s->dur_ns,
		.name = TIMELINE_NAME(s->source, s->op),
		.nested = is_call && s->flags & WIRE_NESTED};
	if (is_call && !ix->is_published && !(s->flags & WIRE_NESTED) &&
		ix->streams[s->source] >> s->op & 1) {
		ret[n] = ret[0];
		ret[n].key = (struct timeline_key){
			.pid = s->pid, .node = node, .stream = s->stream, .kind = TIMELINE_STREAM};
		n++;
	}
	return n;
}

struct loading {
	struct timeline_index *ix;
	atomic_uint *progress;
	int64_t first_row, row_span;
};

static int add_piece(
	struct timeline_index *ix, const struct timeline_piece *p, const struct nodedb_slice *s)
{
	struct timeline_lane *lane;
	bool nested = p->nested;
	int r = timeline_lane_find(&ix->lanes, &p->key, &lane);

	if (r < 0)
		return r;
	if (!lane) {
		ix->lanes.other_rows++;
		return 0;
	}
	if (!lane->rows && p->key.kind != TIMELINE_STREAM && p->key.kind != TIMELINE_HOST)
		nodedb_slice_comm(s, lane->name);
	if (s->rank >= 0)
		lane->rank = s->rank;
	/* The published agent does not mark calls inside others; they come by start here. */
	if (ix->is_published && p->key.kind == TIMELINE_CALLS) {
		nested = p->start_ns < lane->open_end_ns;
		if (!nested)
			lane->open_end_ns = p->start_ns + (int64_t)p->dur_ns;
	}
	if (!nested)
		r = timeline_lane_add(&ix->lanes, lane, p->start_ns, p->dur_ns, p->name);
	return r;
}

static int add_slice(void *arg, const struct nodedb_slice *s)
{
	struct loading *g = arg;
	struct timeline_index *ix = g->ix;
	struct timeline_piece pieces[TIMELINE_PIECES];
	int n = timeline_pieces(ix, s, timeline_index_node(ix, s), pieces);
	int r = timeline_lanes_row(&ix->lanes, s->start_ns);

	for (int i = 0; r == 0 && i < n; i++)
		r = add_piece(ix, &pieces[i], s);
	if (r == 0 && s->dur_ns >= (uint64_t)ix->lanes.long_ns)
		r = timeline_lanes_long(
			&ix->lanes, &(struct timeline_long){s->start_ns, s->dur_ns, s->row});
	ix->last_row = MAX(ix->last_row, s->row);
	if (++ix->rows % PROGRESS_ROWS == 0 && g->progress && g->row_span > 0)
		atomic_store(g->progress,
			(unsigned)(1000 * MIN((s->row - g->first_row) / (double)g->row_span, 1.0)));
	return r;
}

/* ---- processes ---- */

static void take_process(
	struct timeline_index *ix, const struct sql_table *t, size_t i, struct timeline_process *p)
{
	int rank = table_column(t, "rank");
	const char *node = table_text(t, i, table_column(t, "node"));

	*p = (struct timeline_process){.pid = (uint32_t)table_int(t, i, table_column(t, "pid")),
		.rank = -1,
		.node = find_node(ix, node, strlen(node))};
	if (rank >= 0 && sql_table_cell(t, i, rank)->type == SQL_INT)
		p->rank = (int32_t)table_int(t, i, rank);
	snprintf(p->comm, sizeof(p->comm), "%s", table_text(t, i, table_column(t, "comm")));
	snprintf(
		p->command, sizeof(p->command), "%s", table_text(t, i, table_column(t, "cmdline")));
}

static uint64_t process_id(uint16_t node, uint32_t pid)
{
	return ((uint64_t)node << 32 | pid) + 1;
}

static struct timeline_process *find_process(
	struct idmap *at, struct timeline_process *list, size_t *count, uint16_t node, uint32_t pid)
{
	struct timeline_process *p = idmap_get(at, process_id(node, pid));

	if (p || *count == TIMELINE_PROCESSES_MAX)
		return p;
	p = &list[*count];
	if (idmap_put(at, process_id(node, pid), p) < 0)
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
		r = idmap_put(&at, process_id(list[i].node, list[i].pid), &list[i]);
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

static int load_processes(
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
		.node = find_node(ix, row->node, strlen(row->node))};
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
				continue; /* an adopted one */
			list[row - rows].late_rank = late.row->c.rank;
			list[row - rows].gap_ns = late.gap_ns;
		}
	}
	return r;
}

static int load_collectives(
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
	uint16_t node = find_node(g->ix, b->node, b->node_len);
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

static int load_buckets(
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

static int load_gpus(struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
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
		g->node = find_node(ix, name, strlen(name));
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

/* ---- tracks ---- */

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
	uintptr_t process = (uintptr_t)idmap_get(processes, process_id(l->key.node, l->key.pid));

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
		add_entry(processes, process_id(ix->collectives[i].node, ix->collectives[i].pid),
			ranks, TRACK_RANK, list, n);
	for (size_t i = 0; i < ix->bucket_count; i++)
		add_entry(processes, process_id(ix->buckets[i].node, ix->buckets[i].pid), counted,
			TRACK_PROCESS, list, n);
	for (size_t i = 0; i < *n; i++)
		if (list[i].kind == TRACK_PROCESS)
			list[i].total_ns = ix->processes[list[i].process].busy_ns;
	return 0;
}

static int list_tracks(struct timeline_index *ix)
{
	struct idmap processes = IDMAP_INIT(TIMELINE_PROCESSES_MAX);
	size_t room = ix->lanes.count + 2 * ix->process_count + 1, n = 0;
	struct timeline_entry *list = calloc(room, sizeof(*list));
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ix->process_count; i++)
		r = idmap_put(&processes, process_id(ix->processes[i].node, ix->processes[i].pid),
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

/* ---- all ---- */

/* Tables of a single node's file do not all say whose they are. */
static int name_recording(
	struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table nodes = {0};
	int r = nodedb_snapshot_list(l, NODEDB_NODES, &(struct scope){0}, 2, &nodes, reterr);
	const char *name = r == 0 && nodes.row_count == 1 ? table_text(&nodes, 0, 0) : "";

	if (r < 0)
		return r;
	find_node(ix, name, strlen(name));
	return ix->node_count ? 0 : -ENOMEM;
}

static int begin(struct timeline_index *ix, struct nodedb_snapshot *l, struct errinfo *reterr)
{
	int r = nodedb_snapshot_range(l, &ix->range, reterr);

	if (r < 0)
		return r;
	ix->is_published = !nodedb_snapshot_is_ours(l);
	ix->peer_ids = IDMAP_INIT(TIMELINE_PEERS_MAX);
	r = ARRAY_RESERVE(ix->peers, ix->peer_room, 1, TIMELINE_PEERS_MAX);
	if (r < 0)
		return r;
	ix->peers[0] = (struct timeline_peer){0};
	ix->peer_count = 1;
	r = name_recording(ix, l, reterr);
	if (r < 0)
		return r;
	for (unsigned source = 0; source < WIRE_SOURCE_MAX; source++)
		for (unsigned op = 0; op < WIRE_OP_MAX; op++)
			if (has_stream(source, op))
				ix->streams[source] |= OP_BIT(op);
	timeline_lanes_init(&ix->lanes, ix->range.first_ns, ix->range.last_ns - ix->range.first_ns);
	return 0;
}

static int load_rows(struct timeline_index *ix, struct nodedb_snapshot *l, atomic_uint *progress,
	struct errinfo *reterr)
{
	struct loading g = {.ix = ix, .progress = progress, .first_row = ix->last_row};
	struct nodedb_slices what = {.after_row = ix->last_row};
	struct nodedb_totals totals = {0};
	uint64_t skipped = 0;
	int r = nodedb_snapshot_totals(l, &totals, reterr);

	g.row_span = (int64_t)totals.events;
	if (r == 0)
		r = nodedb_snapshot_slices(l, &what, add_slice, &g, &skipped, reterr);
	ix->skipped_rows += skipped;
	timeline_lanes_settle(&ix->lanes);
	ix->has_rows = true;
	return r;
}

int timeline_index_load(struct timeline_index *ix, struct nodedb_snapshot *l, bool rows,
	atomic_uint *progress, struct errinfo *reterr)
{
	int r = ix->peers ? nodedb_snapshot_range(l, &ix->range, reterr) : begin(ix, l, reterr);

	if (r == 0 && rows)
		r = load_rows(ix, l, progress, reterr);
	if (r == 0)
		r = load_buckets(ix, l, reterr);
	if (r == 0)
		r = load_collectives(ix, l, reterr);
	if (r == 0)
		r = load_gpus(ix, l, reterr);
	if (r == 0)
		r = load_processes(ix, l, reterr);
	return r == 0 ? list_tracks(ix) : r;
}
