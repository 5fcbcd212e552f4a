/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_json.c - Chrome's trace events, one array, as published: microseconds, `X` for calls of
 * a microsecond or more and `i` for shorter ones. Ours besides: names of threads (M), flows (s, f),
 * counters (C), labels (b, e). */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cli/perfetto_private.h"
#include "json/writer.h"

#define US(ns) ((int64_t)(ns) / 1000)

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
	json_string_member(w, "name", what);
	json_string_member(w, "ph", "M");
	json_int_member(w, "ts", 0);
	json_int_member(w, "pid", t->number);
	if (tid >= 0)
		json_int_member(w, "tid", tid);
	json_key(w, "args");
	json_begin_object(w);
	json_string_member(w, "name", name);
	json_end_object(w);
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

static void thread(
	struct perfetto *p, const struct perfetto_track *t, uint32_t tid, const char *name)
{
	put_name(p, "thread_name", t, tid, name);
}

/* {"name": …, "cat": …, "ph": …, "ts": …; the object stays open. */
static void open_event(
	struct perfetto *p, const char *name, const char *cat, const char *ph, int64_t ns)
{
	struct json_writer *w = writer(p);

	json_begin_object(w);
	json_string_member(w, "name", name);
	json_string_member(w, "cat", cat);
	json_string_member(w, "ph", ph);
	json_int_member(w, "ts", US(ns));
}

static void put_place(struct perfetto *p, const struct perfetto_track *t, uint32_t tid)
{
	json_int_member(writer(p), "pid", t->number);
	json_int_member(writer(p), "tid", tid);
}

static void put_stack(struct json_writer *w, const struct stack *s)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	json_key(w, "stack");
	json_begin_array(w);
	for (size_t i = 0; i < s->count; i++) {
		buf_clear(&b);
		perfetto_frame(&b, &s->frames[i]);
		json_put_string_len(w, buf_str(&b), b.len);
	}
	json_end_array(w);
}

static void put_call_args(struct json_writer *w, const struct event *e, const struct stack *s)
{
	if (e->device <= 0 && !e->ret && e->weight <= 1 && !s)
		return;
	json_key(w, "args");
	json_begin_object(w);
	if (e->device > 0)
		json_int_member(w, "gpu_id", e->device);
	if (e->ret)
		json_int_member(w, "ret_code", e->ret);
	if (e->weight > 1)
		json_int_member(w, "stands_for_calls", e->weight);
	if (s)
		put_stack(w, s);
	json_end_object(w);
}

static void call(struct perfetto *p, const struct perfetto_track *t, const struct event *e,
	const struct stack *s)
{
	struct json_writer *w = writer(p);
	bool is_short = e->dur_ns < NS_PER_US;
	char scratch[32];

	open_event(p, wire_op_name(e->source, e->op, scratch), perfetto_category(e->source),
		is_short ? "i" : "X", e->start.ns);
	if (!is_short)
		json_int_member(w, "dur", US(e->dur_ns));
	put_place(p, t, e->tid);
	if (is_short)
		json_string_member(w, "s", "t");
	put_call_args(w, e, s);
	json_end_object(w);
}

/* One end of a flow: it belongs to the slice that lies there. */
static void put_flow(struct perfetto *p, const struct perfetto_track *t, const char *ph,
	uint64_t id, const struct collective_row *row)
{
	struct json_writer *w = writer(p);

	open_event(p, "collective", "nccl", ph, row->start.ns);
	put_place(p, t, row->tid);
	json_uint_member(w, "id", id);
	if (ph[0] == 'f')
		json_string_member(w, "bp", "e");
	json_end_object(w);
}

static void collective(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_collective *c)
{
	struct json_writer *w = writer(p);
	const struct collective_row *row = c->row;
	char scratch[32], comm[32];

	open_event(p, wire_op_name(SOURCE_NCCL, row->op, scratch), "nccl", "X", row->start.ns);
	json_int_member(w, "dur", MAX(US(row->dur_ns), INT64_C(1))); /* flows need a slice */
	put_place(p, t, row->tid);
	json_key(w, "args");
	json_begin_object(w);
	snprintf(comm, sizeof(comm), "%016" PRIx64, row->c.comm_hash);
	json_string_member(w, "comm", comm);
	if (row->c.seq)
		json_uint_member(w, "seq", row->c.seq);
	if (row->c.rank >= 0)
		json_int_member(w, "rank", row->c.rank);
	json_uint_member(w, "bytes", row->c.bytes);
	if (row->c.wait_ns >= 0)
		json_int_member(w, "wait_us", US(row->c.wait_ns));
	if (row->ret)
		json_int_member(w, "ret_code", row->ret);
	json_end_object(w);
	json_end_object(w);
	if (c->from)
		put_flow(p, t, "f", c->from, row);
	if (c->to)
		put_flow(p, t, "s", c->to, row);
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
	json_int_member(w, "pid", t->number);
	json_string_member(w, "s", "g");
	if (colour(c->severity))
		json_string_member(w, "cname", colour(c->severity));
	json_key(w, "args");
	json_begin_object(w);
	json_string_member(w, "severity", c->severity);
	json_string_member(w, "root_cause", c->root_cause);
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
	json_key(w, "args");
	json_begin_object(w);
	json_double_member(w, c->unit, round(c->value * 1000) / 1000);
	json_end_object(w);
	json_end_object(w);
}

/* Spans of one key and process lie on a track of their own. */
static void label(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_label *l)
{
	struct json_writer *w = writer(p);
	char name[600], id[32];

	snprintf(name, sizeof(name), "%s=%s", l->key, l->value);
	snprintf(id, sizeof(id), "0x%" PRIx64,
		hash_number(hash_bytes(l->key, strlen(l->key)) + l->pid + t->uuid));
	for (int i = 0; i < 2; i++) {
		open_event(p, name, "annotation", i ? "e" : "b", i ? l->end_ns : l->start_ns);
		put_place(p, t, l->pid);
		json_string_member(w, "id", id);
		json_end_object(w);
	}
}

const struct perfetto_format perfetto_json = {
	begin, track, thread, call, collective, chain, counter, label, end, done};
