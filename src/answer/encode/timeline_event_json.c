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

static void put_incidents(struct json_writer *w, const struct timeline_event *t)
{
	json_begin_array_member(w, "incidents");
	for (size_t i = 0; i < t->incident_count; i++) {
		json_begin_object(w);
		json_string_member(w, "id", t->incidents[i].id);
		json_string_member(w, "severity", t->incidents[i].severity);
		json_string_member(w, "title", t->incidents[i].title);
		json_end_object(w);
	}
	json_end_array(w);
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
	put_incidents(w, &t);
	put_step(w, &t, ix);
	json_string_member(w, "sql", t.sql);
	put_window(q, w);
	json_end_object(w);
	return 0;
}
