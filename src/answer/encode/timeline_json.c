/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_json.c - a time line as JSON. Rows of numbers are arrays, because there are thousands of
 * them: docs/api.md says what stands where. The origin is text: as a number of ns since 1970 it would
 * be cut in JavaScript. */

#include "answer/encode/event_json.h"
#include "answer/row.h"
#include "answer/timeline/timeline.h"

/* One event of a time line as JSON: names, times and units, no ids that a
 * person would have to look up. */

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
	JSON_PUT(w, JSON_I("pid", t->e.pid),
		JSON_S("name", p ? p->command[0] ? p->command : p->comm : t->e.comm));
	if (t->e.place.known & PLACEMENT_RANK)
		json_int_member(w, "rank", t->e.place.rank);
	else
		json_known_member(w, "rank", p && p->rank >= 0, p ? p->rank : -1);
	json_end_object(w);
	JSON_PUT_INTO(w, "thread", JSON_I("tid", t->e.tid), JSON_S("name", t->e.comm));
}

#define INCIDENT_PLACE 1 /* when and where: not told of the incidents that an event lies in */

static const struct row_field incident_row[] = {
	ROW(struct timeline_incident, "id", id),
	ROW(struct timeline_incident, "start", start_ns, 0, INCIDENT_PLACE),
	ROW(struct timeline_incident, "dur", dur_ns, 0, INCIDENT_PLACE),
	ROW(struct timeline_incident, "severity", severity),
	ROW(struct timeline_incident, "title", title),
	ROW(struct timeline_incident, "node", node, 0, INCIDENT_PLACE),
	ROW(struct timeline_incident, "pid", pid, 0, INCIDENT_PLACE),
	ROW(struct timeline_incident, "active", active, 0, INCIDENT_PLACE),
	ROW_END,
};

static void put_step(
	struct json_writer *w, const struct timeline_event *t, const struct timeline_index *ix)
{
	const struct timeline_step *s =
		ix ? timeline_index_step(ix, t->node, t->e.pid, t->e.start.ns) : NULL;

	if (!s) {
		json_null_member(w, "step");
		return;
	}
	JSON_PUT_INTO(w, "step", JSON_I("start", s->start_ns - ix->lanes.origin_ns),
		JSON_U("dur", s->dur_ns), JSON_B("slow", s->is_slow));
}

int timeline_event_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	const struct timeline_index *ix = q->request->timeline;
	_cleanup_(timeline_event_done) struct timeline_event t = {0};
	int r = answer_timeline_event(q, &t, reterr);
	const struct wire_op_row *op;

	if (r < 0)
		return r;
	json_begin_object(w);
	json_string_member(w, "ref", q->request->text);
	op = wire_op_find(t.e.source, t.e.op);
	JSON_PUT(w, JSON_S("name", WIRE_OP_NAME(t.e.source, t.e.op)),
		JSON_S("source", wire_source_name(t.e.source)),
		JSON_S("description", op ? op->description : ""),
		JSON_B("nested", t.e.flags & WIRE_NESTED), JSON_B("slow", t.e.flags & WIRE_SLOW),
		JSON_S("node", t.node));
	put_process(w, &t, ix);
	event_json_time(w, t.e.start);
	JSON_PUT(w, JSON_S("timestamp_ns", FORMATTED(32, "%" PRId64, t.e.start.ns)),
		JSON_I("start", t.e.start.ns - (ix ? ix->lanes.origin_ns : t.e.start.ns)),
		JSON_U("dur", t.e.dur_ns),
		JSON_KNOWN("wait", t.has_collective && t.collective.c.wait_ns >= 0,
			t.collective.c.wait_ns));
	put_args(w, &t.args);
	event_json_frames(w, t.stack);
	row_json_list(w, "incidents", incident_row, t.incidents, sizeof(*t.incidents),
		t.incident_count, INCIDENT_PLACE);
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
	JSON_PUT_OBJECT(w, JSON_S("track", buf_str(&id)),
		JSON_I("start", h->start_ns - (ix ? ix->lanes.origin_ns : 0)),
		JSON_U("dur", h->dur_ns), JSON_S("name", h->name), JSON_S("ref", ref),
		JSON_S("node", h->node), JSON_I("pid", h->pid), JSON_I("tid", h->tid));
}

static void timeline_put_group(
	struct json_writer *w, const struct timeline_index *ix, const struct timeline_process *p);

static void timeline_track_id(
	struct buf *b, const struct timeline_index *ix, const struct timeline_entry *e);

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
	JSON_PUT(w, JSON_S("q", q->request->text), JSON_S("origin", origin));
	json_begin_array_member(w, "hits");
	for (size_t i = 0; i < h.count; i++)
		put_hit(w, &h.items[i], ix);
	json_end_array(w);
	json_begin_array_member(w, "tracks");
	for (size_t i = 0; i < h.track_count; i++) {
		const struct timeline_entry *e = h.tracks[i];
		_cleanup_buf_ struct buf id = BUF_INIT(512);

		timeline_track_id(&id, ix, e);
		json_begin_object(w);
		JSON_PUT(w, JSON_S("id", buf_str(&id)),
			JSON_S("kind", timeline_track_names[e->kind]),
			JSON_S("name", e->kind == TRACK_THREAD && e->lane ? e->lane->name : ""));
		json_begin_object_member(w, "group");
		timeline_put_group(w, ix, &ix->processes[e->process]);
		json_end_object(w);
		json_end_object(w);
	}
	json_end_array(w);
	json_uint_member(w, "total", h.total);
	return answer_end(q, w, h.truncated);
}

/* timeline_put_group - the members of a process. */
static void timeline_put_group(
	struct json_writer *w, const struct timeline_index *ix, const struct timeline_process *p)
{
	JSON_PUT(w, JSON_S("node", ix->nodes[p->node]), JSON_I("pid", p->pid),
		JSON_S("name", p->command[0] ? p->command : p->comm),
		JSON_KNOWN("rank", p->rank >= 0, p->rank));
}

/* timeline_track_id - appends the name by which a track is asked for again. */
static void timeline_track_id(
	struct buf *b, const struct timeline_index *ix, const struct timeline_entry *e)
{
	const struct timeline_process *p = &ix->processes[e->process];
	const struct timeline_lane *l = e->lane ? e->lane : e->waiting ? e->waiting : e->blocked;

	switch (e->kind) {
	case TRACK_PROCESS: buf_printf(b, "p:%u", p->pid); break;
	case TRACK_RANK: buf_printf(b, "r:%u", p->pid); break;
	case TRACK_THREAD: buf_printf(b, "t:%u:%u", p->pid, l->key.tid); break;
	case TRACK_STREAM: buf_printf(b, "s:%u:%" PRIx64, p->pid, l->key.stream); break;
	case TRACK_HOST: buf_printf(b, "h:%u", p->pid); break;
	case TRACK_KINDS: break;
	}
	if (timeline_index_has_nodes(ix) && ix->nodes[p->node][0])
		buf_printf(b, "@%s", ix->nodes[p->node]);
}

static void put_name(struct json_writer *w, const struct timeline_track *t)
{
	char name[64];

	switch (t->kind) {
	case TRACK_PROCESS: snprintf(name, sizeof(name), "all calls"); break;
	case TRACK_RANK:
		if (t->process->rank >= 0)
			snprintf(name, sizeof(name), "rank %d collectives", t->process->rank);
		else
			snprintf(name, sizeof(name), "collectives");
		break;
	case TRACK_THREAD:
		snprintf(name, sizeof(name), "%s %u",
			t->name[0]            ? t->name
			: t->process->comm[0] ? t->process->comm
					      : "thread",
			t->tid);
		break;
	case TRACK_STREAM:
		if (t->stream)
			snprintf(name, sizeof(name), "stream 0x%" PRIx64, t->stream);
		else
			snprintf(name, sizeof(name), "default stream");
		break;
	default: snprintf(name, sizeof(name), "disk, network, memory"); break;
	}
	json_string_member(w, "name", name);
}

static void put_bins(struct json_writer *w, const struct timeline_track *t)
{
	json_begin_array_member(w, "bins");
	for (size_t i = 0; i < t->calls.bin_count; i++) {
		const struct timeline_bin *b = &t->calls.bins[i];

		json_begin_array(w);
		json_put_int(w, b->bin);
		json_put_uint(w, b->busy_ns);
		json_put_uint(w, b->count);
		json_put_int(w, b->name);
		if (t->kind == TRACK_RANK)
			json_put_uint(w, b->wait_ns);
		json_end_array(w);
	}
	json_end_array(w);
}

static void put_ref(struct json_writer *w, const struct timeline_slice *s)
{
	char ref[96];
	const struct timeline_collective *c = s->collective;

	if (c)
		snprintf(ref, sizeof(ref), "c%" PRId64 ".%u.%u.%u", c->start_ns, c->pid, c->tid,
			c->op);
	else
		snprintf(ref, sizeof(ref), "e%" PRId64, s->row);
	json_put_string(w, ref);
}

static void put_slices(
	struct json_writer *w, const struct timeline_answer *a, const struct timeline_track *t)
{
	json_begin_array_member(w, "slices");
	for (size_t i = 0; i < t->calls.slice_count; i++) {
		const struct timeline_slice *s = &t->calls.slices[i];

		json_begin_array(w);
		json_put_int(w, s->start_ns - a->origin_ns);
		json_put_uint(w, s->dur_ns);
		json_put_int(w, s->name);
		put_ref(w, s);
		json_put_int(w, s->depth);
		if (s->collective) {
			json_put_uint(w, s->wait_ns);
			json_put_int(w, s->collective->late_rank);
		}
		json_end_array(w);
	}
	json_end_array(w);
}

static void put_off_slices(struct json_writer *w, const struct timeline_answer *a,
	const struct timeline_list *l, int kind)
{
	for (size_t i = 0; i < l->slice_count; i++) {
		const struct timeline_slice *s = &l->slices[i];

		json_begin_array(w);
		json_put_int(w, s->start_ns - a->origin_ns);
		json_put_uint(w, s->dur_ns);
		json_put_int(w, kind);
		json_put_int(w, s->peer);
		put_ref(w, s);
		json_end_array(w);
	}
}

static void put_off_bins(struct json_writer *w, const struct timeline_list *l, int kind)
{
	for (size_t i = 0; i < l->bin_count; i++) {
		const struct timeline_bin *b = &l->bins[i];

		json_begin_array(w);
		json_put_int(w, b->bin);
		json_put_uint(w, b->busy_ns);
		json_put_uint(w, b->count);
		json_put_int(w, kind);
		json_put_int(w, b->name);
		json_end_array(w);
	}
}

static void put_track(struct json_writer *w, const struct timeline_answer *a,
	const struct timeline_index *ix, const struct timeline_track *t)
{
	_cleanup_buf_ struct buf id = BUF_INIT(512);

	timeline_track_id(&id, ix, t->entry);
	json_begin_object(w);
	JSON_PUT(w, JSON_S("id", buf_str(&id)), JSON_S("kind", timeline_track_names[t->kind]));
	json_begin_object_member(w, "group");
	timeline_put_group(w, ix, t->process);
	json_end_object(w);
	put_name(w, t);
	JSON_PUT(w, JSON_U("total_ns", t->total_ns), JSON_I("bin_ns", INT64_C(1) << t->shift));
	put_bins(w, t);
	put_slices(w, a, t);
	if (t->kind == TRACK_THREAD) {
		json_begin_array_member(w, "off");
		put_off_slices(w, a, &t->waiting, a->waiting_name);
		put_off_slices(w, a, &t->blocked, a->blocked_name);
		json_end_array(w);
		json_begin_array_member(w, "off_bins");
		put_off_bins(w, &t->waiting, a->waiting_name);
		put_off_bins(w, &t->blocked, a->blocked_name);
		json_end_array(w);
	}
	json_end_object(w);
}

static void put_steps(
	struct json_writer *w, const struct timeline_answer *a, const struct timeline_index *ix)
{
	json_bool_member(w, "steps_known", ix->steps_known);
	json_begin_array_member(w, "steps");
	for (size_t i = 0; i < a->bar_count; i++) {
		const struct timeline_bar *b = &a->bars[i];

		json_begin_array(w);
		json_put_int(w, b->start_ns);
		json_put_uint(w, b->dur_ns);
		json_put_uint(w, b->slow);
		json_put_uint(w, b->steps);
		json_put_uint(w, b->pid);
		json_put_string(w, ix->nodes[b->node]);
		json_end_array(w);
	}
	json_end_array(w);
}

static void put_gpus(struct json_writer *w, const struct timeline_answer *a)
{
	json_begin_array_member(w, "gpu");
	for (size_t i = 0; i < a->series_count; i++) {
		const struct timeline_series *s = &a->series[i];

		json_begin_object(w);
		JSON_PUT(w, JSON_S("node", s->node), JSON_I("gpu", s->gpu),
			JSON_S("field", timeline_gpu_fields[s->field].name),
			JSON_S("unit", timeline_gpu_fields[s->field].unit));
		json_begin_array_member(w, "points");
		for (size_t k = 0; k < s->count; k++) {
			json_begin_array(w);
			json_put_int(w, s->points[k].time_ns - a->origin_ns);
			json_put_thousandths(w, (int64_t)(s->points[k].value * 1000 + 0.5));
			json_end_array(w);
		}
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_all(
	struct json_writer *w, const struct timeline_answer *a, const struct timeline_index *ix)
{
	char origin[32];

	snprintf(origin, sizeof(origin), "%" PRId64, a->origin_ns);
	JSON_PUT(w, JSON_S("origin", origin), JSON_I("from", a->from_ns), JSON_I("to", a->to_ns),
		JSON_I("begin", a->begin_ns), JSON_I("end", a->end_ns),
		JSON_I("bin_ns", INT64_C(1) << a->shift),
		JSON_S("level", a->is_events ? "events" : "bins"));
	json_begin_array_member(w, "names");
	for (size_t i = 0; i < a->name_count; i++)
		json_put_string(w, a->names[i]);
	json_end_array(w);
	json_begin_array_member(w, "tracks");
	for (size_t i = 0; i < a->track_count; i++)
		put_track(w, a, ix, &a->tracks[i]);
	json_end_array(w);
	json_uint_member(w, "more_tracks", a->other_tracks);
	json_begin_array_member(w, "groups");
	for (size_t i = 0; i < a->count_count; i++) {
		json_begin_object(w);
		timeline_put_group(w, ix, a->counts[i].process);
		JSON_PUT(w, JSON_U("calls", a->counts[i].calls), JSON_U("rows", a->counts[i].rows));
		json_end_object(w);
	}
	json_end_array(w);
	put_steps(w, a, ix);
	row_json_list(w, "incidents", incident_row, a->incidents, sizeof(*a->incidents),
		a->incident_count, 0);
	put_gpus(w, a);
}

int timeline_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	static const struct timeline_index none;
	const struct timeline_index *ix = q->request->timeline;
	_cleanup_(timeline_answer_done) struct timeline_answer a = {0};
	int r = answer_timeline(q, ix ? ix : &none, &a, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	JSON_PUT(w, JSON_B("ready", ix && ix->has_rows),
		JSON_R("progress",
			ix && ix->has_rows ? 1 : q->request->timeline_progress / 1000.0));
	put_all(w, &a, ix ? ix : &none);
	return answer_end(q, w, a.truncated);
}
