/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_index.c - see timeline_index.h.
 *
 * Readers of an index change nothing in it: what timeline_pieces() may add (a peer, a node) is known
 * once the row was loaded. */
#include "answer/timeline/timeline_index.h"

#include "answer/answer.h"
#include "answer/timeline/timeline_index_private.h"
#include "record/probe/function.h"
#include "base/array.h"
#include "base/hash.h"
#include "wire/op_kind.h"

#define PROGRESS_ROWS 4096

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

uint16_t timeline_find_node(struct timeline_index *ix, const char *name, size_t len)
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

	return timeline_find_node(ix, name, len);
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
	timeline_find_node(ix, name, strlen(name));
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
	r = r ?: nodedb_snapshot_slices(l, &what, add_slice, &g, &skipped, reterr);
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
	r = r ?: timeline_load_buckets(ix, l, reterr);
	r = r ?: timeline_load_collectives(ix, l, reterr);
	r = r ?: timeline_load_gpus(ix, l, reterr);
	r = r ?: timeline_load_processes(ix, l, reterr);
	return r ?: timeline_list_entries(ix);
}
