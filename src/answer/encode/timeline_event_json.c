/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_event_json.c - one event of a time line as JSON: names, times and units, no ids that a
 * person would have to look up. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer/encode/event_json.h"
#include "answer/timeline/timeline_event.h"
#include "answer/encode/timeline_json.h"

static const char *unit_of(const char *name)
{
	size_t len = strlen(name);

	if (len > 3 && !strcmp(name + len - 3, "_ns"))
		return "ns";
	return !strcmp(name, "bytes") ? "B" : "";
}

static void put_args(struct json_writer *w, const struct event_args *args)
{
	json_begin_array_member(w, "arguments");
	for (size_t i = 0; i < args->count; i++) {
		const struct event_arg *a = &args->list[i];

		json_begin_object(w);
		json_string_member(w, "name", a->name);
		if (a->text[0])
			json_string_member(w, "value", a->text);
		else
			json_int_member(w, "value", a->number);
		json_string_member(w, "unit", a->text[0] ? "" : unit_of(a->name));
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_process(
	struct json_writer *w, const struct timeline_event *t, const struct timeline_index *ix)
{
	const struct timeline_process *p = NULL;

	for (size_t i = 0; ix && i < ix->process_count && !p; i++)
		if (ix->processes[i].pid == t->e.pid &&
			(!strcmp(ix->nodes[ix->processes[i].node], t->node) ||
				!ix->nodes[ix->processes[i].node][0]))
			p = &ix->processes[i];
	json_begin_object_member(w, "process");
	json_int_member(w, "pid", t->e.pid);
	json_string_member(w, "name", p ? p->command[0] ? p->command : p->comm : t->e.comm);
	if (t->e.place.known & PLACEMENT_RANK)
		json_int_member(w, "rank", t->e.place.rank);
	else if (p && p->rank >= 0)
		json_int_member(w, "rank", p->rank);
	else
		json_null_member(w, "rank");
	json_end_object(w);
	json_begin_object_member(w, "thread");
	json_int_member(w, "tid", t->e.tid);
	json_string_member(w, "name", t->e.comm);
	json_end_object(w);
}

static void put_what(struct json_writer *w, const struct timeline_event *t)
{
	const struct wire_op_row *op = wire_op_find(t->e.source, t->e.op);
	char scratch[32];

	json_string_member(w, "name", wire_op_name(t->e.source, t->e.op, scratch));
	json_string_member(w, "source", wire_source_name(t->e.source));
	json_string_member(w, "description", op ? op->description : "");
	json_bool_member(w, "nested", t->e.flags & WIRE_NESTED);
	json_bool_member(w, "slow", t->e.flags & WIRE_SLOW);
}

static void put_times(
	struct json_writer *w, const struct timeline_event *t, const struct timeline_index *ix)
{
	char text[32];

	event_json_time(w, t->e.start);
	snprintf(text, sizeof(text), "%" PRId64, t->e.start.ns);
	json_string_member(w, "timestamp_ns", text);
	json_int_member(w, "start", t->e.start.ns - (ix ? ix->lanes.origin_ns : t->e.start.ns));
	json_uint_member(w, "dur", t->e.dur_ns);
	if (t->has_collective && t->collective.c.wait_ns >= 0)
		json_int_member(w, "wait", t->collective.c.wait_ns);
	else
		json_null_member(w, "wait");
}

static void put_step(
	struct json_writer *w, const struct timeline_event *t, const struct timeline_index *ix)
{
	const struct timeline_step *s =
		ix ? timeline_index_step(ix, t->node, t->e.pid, t->e.start.ns) : NULL;

	if (!s) {
		json_null_member(w, "step");
		return;
	}
	json_begin_object_member(w, "step");
	json_int_member(w, "start", s->start_ns - ix->lanes.origin_ns);
	json_uint_member(w, "dur", s->dur_ns);
	json_bool_member(w, "slow", s->is_slow);
	json_end_object(w);
}

int timeline_event_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	const struct timeline_index *ix = q->request->timeline;
	_cleanup_(timeline_event_done) struct timeline_event t = {0};
	int r = answer_timeline_event(q, &t, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	json_string_member(w, "ref", q->request->text);
	put_what(w, &t);
	json_string_member(w, "node", t.node);
	put_process(w, &t, ix);
	put_times(w, &t, ix);
	put_args(w, &t.args);
	event_json_frames(w, t.stack);
	json_begin_array_member(w, "incidents");
	for (size_t i = 0; i < t.incident_count; i++) {
		json_begin_object(w);
		json_string_member(w, "id", t.incidents[i].id);
		json_string_member(w, "severity", t.incidents[i].severity);
		json_string_member(w, "title", t.incidents[i].title);
		json_end_object(w);
	}
	json_end_array(w);
	put_step(w, &t, ix);
	json_string_member(w, "sql", t.sql);
	put_window(q, w);
	json_end_object(w);
	return 0;
}

/* ---- what was found in a time line, as JSON ---- */

static void put_hit(
	struct json_writer *w, const struct timeline_hit *h, const struct timeline_index *ix)
{
	_cleanup_buf_ struct buf id = BUF_INIT(512);
	char ref[32];

	buf_printf(&id, "t:%u:%u", h->pid, h->tid);
	if (ix && timeline_index_has_nodes(ix) && h->node[0])
		buf_printf(&id, "@%s", h->node);
	snprintf(ref, sizeof(ref), "e%" PRId64, h->row);
	json_begin_object(w);
	json_string_member(w, "track", buf_str(&id));
	json_int_member(w, "start", h->start_ns - (ix ? ix->lanes.origin_ns : 0));
	json_uint_member(w, "dur", h->dur_ns);
	json_string_member(w, "name", h->name);
	json_string_member(w, "ref", ref);
	json_string_member(w, "node", h->node);
	json_int_member(w, "pid", h->pid);
	json_int_member(w, "tid", h->tid);
	json_end_object(w);
}

static void put_track(
	struct json_writer *w, const struct timeline_entry *e, const struct timeline_index *ix)
{
	_cleanup_buf_ struct buf id = BUF_INIT(512);

	timeline_track_id(&id, ix, e);
	json_begin_object(w);
	json_string_member(w, "id", buf_str(&id));
	json_string_member(w, "kind", timeline_track_names[e->kind]);
	json_string_member(w, "name", e->kind == TRACK_THREAD && e->lane ? e->lane->name : "");
	json_begin_object_member(w, "group");
	timeline_put_group(w, ix, &ix->processes[e->process]);
	json_end_object(w);
	json_end_object(w);
}

int timeline_search_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	const struct timeline_index *ix = q->request->timeline;
	_cleanup_(timeline_hits_done) struct timeline_hits h = {0};
	char origin[32];
	int r = answer_timeline_search(q, ix, &h, reterr);

	if (r < 0)
		return r;
	snprintf(origin, sizeof(origin), "%" PRId64, ix ? ix->lanes.origin_ns : 0);
	json_begin_object(w);
	json_string_member(w, "q", q->request->text);
	json_string_member(w, "origin", origin);
	json_begin_array_member(w, "hits");
	for (size_t i = 0; i < h.count; i++)
		put_hit(w, &h.items[i], ix);
	json_end_array(w);
	json_begin_array_member(w, "tracks");
	for (size_t i = 0; i < h.track_count; i++)
		put_track(w, h.tracks[i], ix);
	json_end_array(w);
	json_uint_member(w, "total", h.total);
	return answer_end(q, w, h.truncated);
}
