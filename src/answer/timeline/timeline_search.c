/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_search.c - events and tracks by a text: see timeline_event.h.
 *
 * Events have no index by operation: rows are looked at, the newest first, until there are enough or
 * LOOKED_AT were seen. How many calls there were in all the aggregates say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "answer/timeline/timeline_event.h"

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
	char scratch[32];

	if (h->count == TIMELINE_HITS)
		return 0;
	*hit = (struct timeline_hit){.start_ns = s->start_ns,
		.dur_ns = s->dur_ns,
		.pid = s->pid,
		.tid = s->tid,
		.row = s->row,
		.off_cpu = s->source == SOURCE_HOST && s->op == HOST_SCHED_SWITCH};
	snprintf(hit->name, sizeof(hit->name), "%s", wire_op_name(s->source, s->op, scratch));
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
	if (r == 0)
		r = nodedb_snapshot_search(q->snapshot, &what, add_hit, &h, &more, reterr);
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
