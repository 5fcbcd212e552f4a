/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_json.c - Chrome's trace events, one array, as published: microseconds, `X` for slices and
 * `i` for moments. Ours besides: names of threads (M), flows (s, f), counters (C), labels (b, e).
 *
 * Of a published file times are whole microseconds and what took less than one is a moment. Ours
 * are told in quarters of a microsecond, rounded down, start and end alike: that is what the double
 * into which viewers read them holds of the time since 1970 (up to 2^51 us, the year 2041), so that
 * slices which nest still do in the viewer. */
#include <math.h>

#include "export/perfetto_private.h"
#include "json/writer.h"

#define QUARTER_NS 250

static struct json_writer *writer(struct perfetto *p)
{
	return p->state;
}

static int begin(struct perfetto *p)
{
	struct json_writer *w = malloc(sizeof(*w));

	p->state = w;
	if (!w)
		return -ENOMEM;
	*w = json_writer_to_buf(&p->out);
	json_begin_array(w);
	return 0;
}

static void end(struct perfetto *p)
{
	json_end_array(writer(p));
	if (json_finish(writer(p)) < 0 && !p->out.err)
		p->out.err = writer(p)->err;
}

static void done(struct perfetto *p)
{
	free(p->state);
}

static void put_name(struct perfetto *p, const char *what, const struct perfetto_track *t,
	int64_t tid, const char *name)
{
	struct json_writer *w = writer(p);

	json_begin_object(w);
	JSON_PUT(w, JSON_S("name", what), JSON_S("ph", "M"), JSON_I("ts", 0),
		JSON_I("pid", t->number));
	if (tid >= 0)
		json_int_member(w, "tid", tid);
	JSON_PUT_INTO(w, "args", JSON_S("name", name));
	json_end_object(w);
}

static void track(struct perfetto *p, const struct perfetto_track *t)
{
	char name[sizeof(t->node) + 32];

	if (t->rank >= 0)
		snprintf(name, sizeof(name), "%s (rank %d)", t->node_len ? t->node : "local",
			t->rank);
	else
		snprintf(name, sizeof(name), "%s", t->node_len ? t->node : "local");
	put_name(p, "process_name", t, -1, name);
}

static void line(struct perfetto *p, const struct perfetto_line *l, const char *name, unsigned lane)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);

	if (!*name || l->kind == LINE_LABEL) /* labels lie on no thread */
		return;
	buf_puts(&b, name);
	if (lane)
		buf_printf(&b, " (%u)", lane + 1);
	put_name(p, "thread_name", l->track, l->tid, buf_str(&b));
}

/* The nanoseconds of @ns that are told. */
static int64_t told(const struct perfetto *p, int64_t ns)
{
	return ns - ns % (p->is_published ? 1000 : QUARTER_NS);
}

/* {"name": …, "cat": …, "ph": …, "ts": …; the object stays open. */
static void open_event(
	struct perfetto *p, const char *name, const char *cat, const char *ph, int64_t ns)
{
	struct json_writer *w = writer(p);

	json_begin_object(w);
	JSON_PUT(w, JSON_S("name", name), JSON_S("cat", cat), JSON_S("ph", ph));
	json_thousandths_member(w, "ts", told(p, ns));
}

static void put_place(struct perfetto *p, const struct perfetto_track *t, uint32_t tid)
{
	JSON_PUT(writer(p), JSON_I("pid", t->number), JSON_I("tid", tid));
}

static void put_args(struct json_writer *w, const struct perfetto_slice *s)
{
	if (!s->args->count && !s->stack)
		return;
	json_begin_object_member(w, "args");
	for (size_t i = 0; i < s->args->count; i++) {
		const struct event_arg *a = &s->args->list[i];

		if (a->name_text || a->text[0])
			json_string_member(w, a->name, a->name_text ? a->name_text : a->text);
		else
			json_int_member(w, a->name, a->number);
	}
	if (s->stack) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

		json_begin_array_member(w, "stack");
		for (size_t i = 0; i < s->stack->count; i++) {
			buf_clear(&b);
			perfetto_frame(&b, &s->stack->frames[i]);
			json_put_string_len(w, buf_str(&b), b.len);
		}
		json_end_array(w);
	}
	json_end_object(w);
}

/* One end of a flow: it belongs to the slice that lies there. */
static void put_flow(
	struct perfetto *p, const struct perfetto_line *l, const char *ph, uint64_t id, int64_t ns)
{
	struct json_writer *w = writer(p);

	open_event(p, "collective", "nccl", ph, ns);
	put_place(p, l->track, l->tid);
	json_uint_member(w, "id", id);
	if (ph[0] == 'f')
		json_string_member(w, "bp", "e");
	json_end_object(w);
}

static void slice(struct perfetto *p, const struct perfetto_line *l, const struct perfetto_slice *s)
{
	struct json_writer *w = writer(p);
	/* a published duration is rounded by itself, not as the difference of two moments */
	int64_t dur_ns = p->is_published ? told(p, s->end_ns - s->start_ns)
					 : told(p, s->end_ns) - told(p, s->start_ns);

	open_event(p, s->name ? s->name : WIRE_OP_NAME(s->source, s->op),
		perfetto_category(s->source), dur_ns ? "X" : "i", s->start_ns);
	if (dur_ns)
		json_thousandths_member(w, "dur", dur_ns);
	put_place(p, l->track, l->tid);
	if (!dur_ns)
		json_string_member(w, "s", "t");
	put_args(w, s);
	json_end_object(w);
	if (s->from)
		put_flow(p, l, "f", s->from, s->start_ns);
	if (s->to)
		put_flow(p, l, "s", s->to, s->start_ns);
}

static const char *colour(const char *severity)
{
	static const struct {
		const char *severity, *name;
	} rows[] = {
		{"CRITICAL", "terrible"}, {"HIGH", "bad"}, {"MEDIUM", "yellow"}, {"LOW", "good"}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].severity, severity))
			return rows[i].name;
	return NULL;
}

static void put_fixes(struct json_writer *w, const char *lines)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);

	for (; *lines; lines++)
		if (*lines == '\n')
			buf_puts(&b, "; ");
		else
			buf_putc(&b, *lines);
	json_string_member(w, "recommendations", buf_str(&b));
}

static void chain(struct perfetto *p, const struct perfetto_track *t, const struct incident_row *c)
{
	struct json_writer *w = writer(p);
	char name[sizeof(c->severity) + sizeof(c->summary) + 4];

	snprintf(name, sizeof(name), "%s: %s", c->severity, c->summary);
	open_event(p, name, "causal_chain", "i", c->detected_ns);
	JSON_PUT(w, JSON_I("pid", t->number), JSON_S("s", "g"));
	if (colour(c->severity))
		json_string_member(w, "cname", colour(c->severity));
	json_begin_object_member(w, "args");
	JSON_PUT(w, JSON_S("severity", c->severity), JSON_S("root_cause", c->root_cause));
	put_fixes(w, c->fixes);
	json_end_object(w);
	json_end_object(w);
}

static void counter(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_counter *c)
{
	struct json_writer *w = writer(p);
	char name[96];

	snprintf(name, sizeof(name), "%s (%s)", c->name, c->unit);
	open_event(p, name, "counter", "C", c->time_ns);
	json_int_member(w, "pid", t->number);
	JSON_PUT_INTO(w, "args", JSON_R(c->unit, round(c->value * 1000) / 1000));
	json_end_object(w);
}

static void label(struct perfetto *p, const struct perfetto_line *l, const struct perfetto_label *b)
{
	struct json_writer *w = writer(p);
	char name[600], id[32];

	snprintf(name, sizeof(name), "%s=%s", b->key, b->value);
	snprintf(id, sizeof(id), "0x%" PRIx64, l->uuid);
	for (int i = 0; i < 2; i++) {
		open_event(p, name, "annotation", i ? "e" : "b", i ? b->end_ns : b->start_ns);
		put_place(p, l->track, b->pid);
		json_string_member(w, "id", id);
		json_end_object(w);
	}
}

/* Two quarters of a microsecond: one is left, wherever it begins. */
const struct perfetto_format perfetto_json = {
	2 * QUARTER_NS, begin, track, line, slice, chain, counter, label, end, done};
