/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_event.c - one event of a time line: see timeline.h. */
#include "answer/timeline/timeline.h"

#include <strings.h>

#include "answer/timeline/timeline_index_private.h"
#include "base/text.h"

struct reference {        /* what a name means */
	int64_t row;      /* of `events`; or */
	int64_t start_ns; /* of a collective, */
	uint64_t pid, tid, op;
};

static bool take(const char **p, char end, uint64_t max, uint64_t *ret)
{
	char *after;

	if (**p < '0' || **p > '9')
		return false;
	errno = 0;
	*ret = strtoull(*p, &after, 10);
	if (errno || *ret > max || *after != end)
		return false;
	*p = after + (end != 0);
	return true;
}

static int parse(const char *text, struct reference *ret, struct errinfo *reterr)
{
	const char *p = text + 1;
	uint64_t v = 0;
	bool good = false;

	*ret = (struct reference){0};
	if (text[0] == 'e') {
		good = take(&p, 0, INT64_MAX, &v);
		ret->row = (int64_t)v;
	} else if (text[0] == 'c') {
		good = take(&p, '.', INT64_MAX, &v) && take(&p, '.', UINT32_MAX, &ret->pid) &&
		       take(&p, '.', UINT32_MAX, &ret->tid) &&
		       take(&p, 0, WIRE_OP_MAX - 1, &ret->op);
		ret->start_ns = (int64_t)v;
	}
	return good ? 0
		    : errinfo_set(reterr, -EINVAL,
			      "ref: give an event's ref from /api/v1/timeline, for example e123");
}

static int none(const struct question *q, struct errinfo *reterr)
{
	return errinfo_set(reterr, -ESRCH,
		"the recording has no event %s: it was deleted to keep the file small, or belongs "
		"to another recording",
		TEXT_SHOWN(q->request->text));
}

/* 1: it is there. */
static int find_collective(const struct question *q, const struct reference *ref,
	struct collective_row *ret, struct errinfo *reterr)
{
	_cleanup_free_ struct collective_row *rows = NULL;
	struct scope scope = {.from_ns = ref->start_ns, .to_ns = ref->start_ns};
	size_t count = 0;
	bool truncated;
	int r = nodedb_snapshot_collectives(q->snapshot, &scope, &rows, &count, &truncated, reterr);

	for (size_t i = 0; r == 0 && i < count; i++)
		if (rows[i].pid == ref->pid && rows[i].tid == ref->tid && rows[i].op == ref->op) {
			*ret = rows[i];
			return 1;
		}
	return r;
}

static int load_event(const struct question *q, const struct reference *ref,
	struct timeline_event *t, struct errinfo *reterr)
{
	int r = nodedb_snapshot_event(q->snapshot, ref->row, &t->e, t->node, reterr);
	struct reference same;

	if (r <= 0)
		return r < 0 ? r : none(q, reterr);
	t->row = ref->row;
	snprintf(t->sql, sizeof(t->sql), "SELECT * FROM events WHERE rowid = %" PRId64, t->row);
	event_args_call(&t->e, !nodedb_snapshot_is_ours(q->snapshot), &t->args);
	if (t->e.source != SOURCE_NCCL)
		return 0;
	same = (struct reference){
		.start_ns = t->e.start.ns, .pid = t->e.pid, .tid = t->e.tid, .op = t->e.op};
	r = find_collective(q, &same, &t->collective, reterr);
	t->has_collective = r > 0;
	return MIN(r, 0);
}

static int load_collective(const struct question *q, const struct reference *ref,
	struct timeline_event *t, struct errinfo *reterr)
{
	int r = find_collective(q, ref, &t->collective, reterr);
	const struct collective_row *row = &t->collective;

	if (r <= 0)
		return r < 0 ? r : none(q, reterr);
	t->has_collective = true;
	t->e = (struct event){.start = row->start,
		.dur_ns = row->dur_ns,
		.pid = row->pid,
		.tid = row->tid,
		.source = SOURCE_NCCL,
		.op = row->op,
		.ret = row->ret,
		.device = row->device,
		.stream = row->stream,
		.weight = 1};
	snprintf(t->node, sizeof(t->node), "%s", row->node);
	snprintf(t->sql, sizeof(t->sql),
		"SELECT * FROM collectives WHERE timestamp = %" PRId64 " AND pid = %u AND tid = %u",
		row->start.ns, row->pid, row->tid);
	return 0;
}

/* Incidents of its process, or of none in particular, that it overlaps. */
static int load_incidents(
	const struct question *q, struct timeline_event *t, struct errinfo *reterr)
{
	struct question asked = *q;
	struct timeline_answer a = {.from_ns = t->e.start.ns, .to_ns = event_end_ns(&t->e)};
	struct timeline_view v = {.q = &asked, .a = &a};
	int r;

	asked.scope = (struct scope){.pids = &t->e.pid, .pid_count = 1};
	r = timeline_list_incidents(&v, reterr);
	t->incidents = a.incidents;
	t->incident_count = a.incident_count;
	return r;
}

int answer_timeline_event(
	const struct question *q, struct timeline_event *ret, struct errinfo *reterr)
{
	_cleanup_(timeline_event_done) struct timeline_event t = {0};
	struct reference ref;
	int r = parse(q->request->text, &ref, reterr);

	if (r < 0)
		return r;
	r = ref.row ? load_event(q, &ref, &t, reterr) : load_collective(q, &ref, &t, reterr);
	if (r == 0 && t.has_collective)
		event_args_collective(&t.collective, &t.args);
	if (r == 0 && t.e.stack_hash)
		r = nodedb_snapshot_stack(q->snapshot, t.e.stack_hash, &t.stack, reterr);
	r = r ?: load_incidents(q, &t, reterr);
	if (r < 0)
		return r;
	*ret = t;
	t = (struct timeline_event){0};
	return 0;
}

void timeline_event_done(struct timeline_event *e)
{
	free(e->stack);
	free(e->incidents);
	*e = (struct timeline_event){0};
}

/* events and tracks by a text: see timeline.h.
 * 
 * Events have no index by operation: rows are looked at, the newest first, until there are enough or
 * LOOKED_AT were seen. How many calls there were in all the aggregates say. */

#define LOOKED_AT 3000000

static bool has(const char *text, const char *part)
{
	return strcasestr(text, part) != NULL;
}

static int add_hit(void *arg, const struct nodedb_slice *s)
{
	struct timeline_hits *h = arg;
	struct timeline_hit *hit = &h->items[h->count];
	size_t len;
	const char *node = nodedb_slice_node(s, &len);

	if (h->count == TIMELINE_HITS)
		return 0;
	*hit = (struct timeline_hit){.start_ns = s->start_ns,
		.dur_ns = s->dur_ns,
		.pid = s->pid,
		.tid = s->tid,
		.row = s->row,
		.off_cpu = s->source == SOURCE_HOST && s->op == HOST_SCHED_SWITCH};
	snprintf(hit->name, sizeof(hit->name), "%s", WIRE_OP_NAME(s->source, s->op));
	snprintf(hit->node, sizeof(hit->node), "%.*s", (int)MIN(len, sizeof(hit->node) - 1), node);
	h->count++;
	return 0;
}

/* The operations that are meant, as bits. */
static bool choose_ops(const char *text, uint64_t ops[WIRE_SOURCE_MAX])
{
	bool any = false;

	for (const struct wire_op_row *o = wire_ops; o->name; o++)
		if (o->source < WIRE_SOURCE_MAX && o->op < WIRE_OP_MAX && has(o->name, text)) {
			ops[o->source] |= UINT64_C(1) << o->op;
			any = true;
		}
	return any;
}

static int count_calls(const struct question *q, const uint64_t ops[WIRE_SOURCE_MAX], uint64_t *ret,
	struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_OP_SUMS, &q->scope, 0, &t, reterr);
	int source = table_column(&t, "source"), op = table_column(&t, "op");
	int calls = table_column(&t, "calls");

	for (size_t i = 0; r == 0 && i < t.row_count; i++) {
		int64_t s = table_int(&t, i, source), o = table_int(&t, i, op);

		if (s >= 0 && s < WIRE_SOURCE_MAX && o >= 0 && o < WIRE_OP_MAX && ops[s] >> o & 1)
			*ret += (uint64_t)table_int(&t, i, calls);
	}
	return r;
}

static void choose_tracks(
	const struct timeline_index *ix, const char *text, struct timeline_hits *h)
{
	for (size_t i = 0; i < ix->entry_count; i++) {
		const struct timeline_entry *e = &ix->entries[i];
		const struct timeline_process *p = &ix->processes[e->process];
		const char *thread = e->kind == TRACK_THREAD && e->lane ? e->lane->name : "";

		if (!has(thread, text) && (e->kind == TRACK_STREAM ||
						  (!has(p->comm, text) && !has(p->command, text))))
			continue;
		if (h->track_count == ARRAY_SIZE(h->tracks)) {
			h->truncated = true;
			return;
		}
		h->tracks[h->track_count++] = e;
	}
}

int answer_timeline_search(const struct question *q, const struct timeline_index *ix,
	struct timeline_hits *ret, struct errinfo *reterr)
{
	_cleanup_(timeline_hits_done) struct timeline_hits h = {0};
	const char *text = q->request->text;
	struct nodedb_search what = {
		.scope = q->scope, .frame = text, .limit = TIMELINE_HITS, .looked_at = LOOKED_AT};
	bool any, more = false;
	int r = 0;

	if (strlen(text) < TIMELINE_TEXT_MIN)
		return errinfo_set(reterr, -EINVAL, "q: give at least %d letters of a name",
			TIMELINE_TEXT_MIN);
	h.items = calloc(TIMELINE_HITS, sizeof(*h.items));
	if (!h.items)
		return -ENOMEM;
	any = choose_ops(text, what.ops);
	if (any)
		r = count_calls(q, what.ops, &h.total, reterr);
	r = r ?: nodedb_snapshot_search(q->snapshot, &what, add_hit, &h, &more, reterr);
	if (r < 0)
		return r;
	if (ix)
		choose_tracks(ix, text, &h);
	h.truncated = h.truncated || more;
	*ret = h;
	h = (struct timeline_hits){0};
	return 0;
}

void timeline_hits_done(struct timeline_hits *h)
{
	free(h->items);
	*h = (struct timeline_hits){0};
}
