/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_proto.c - Perfetto's own format: a Trace of TracePackets with track descriptors and
 * track events, in nanoseconds. Names are interned: written once, then by number.
 *
 * A line is a track. Lanes of one owner have the same name and parent, by which viewers put them
 * together.
 *
 * Packets need not be in order of time: the reader sorts them. One sequence writes all; its first
 * packet clears what a reader knows. The clock is told to be the wall clock. */

#include "base/hash.h"
#include "protobuf/pb.h"
#include "export/perfetto_private.h"

/* Numbers of fields, as Perfetto's public .proto files give them. */
enum { TRACE_PACKET = 1 };
enum packet_field {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60,
};
enum event_field {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_DEBUG_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK_UUID = 11,
	EVENT_NAME = 23,
	EVENT_DOUBLE_COUNTER_VALUE = 44,
	EVENT_FLOW_IDS = 47,
};
enum event_type { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum track_field {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT_UUID = 5,
	TRACK_COUNTER = 8,
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { COUNTER_UNIT_NAME = 6 };
enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_IID = 1, INTERNED_TEXT = 2 };
enum { ANNOTATION_INT = 4, ANNOTATION_TEXT = 6, ANNOTATION_NAME = 10, ANNOTATION_ARRAY = 12 };
enum { SNAPSHOT_CLOCKS = 1, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6 };

#define SEQUENCE         1
#define STATE_CLEARED    1
#define NEEDS_STATE      2
#define TRACKS_KNOWN_MAX (1u << 20)
#define OPS              (WIRE_SOURCE_MAX * WIRE_OP_MAX)

struct state {
	struct idmap described; /* tracks of counters and incidents whose descriptor is written */
	bool named[OPS], grouped[WIRE_SOURCE_MAX];
	bool has_begun;
};

static struct state *state_of(struct perfetto *p)
{
	return p->state;
}

static int begin(struct perfetto *p)
{
	struct state *s = calloc(1, sizeof(*s));

	p->state = s;
	if (!s)
		return -ENOMEM;
	s->described = IDMAP_INIT(TRACKS_KNOWN_MAX);
	return 0;
}

static void end(struct perfetto *p)
{
}

static void done(struct perfetto *p)
{
	struct state *s = state_of(p);

	if (!s)
		return;
	idmap_done(&s->described);
	free(s);
}

/* ---- packets ---- */

static size_t open_packet(struct perfetto *p)
{
	size_t mark = pb_put_begin(&p->out, TRACE_PACKET);

	pb_put_varint(&p->out, PACKET_SEQUENCE_ID, SEQUENCE);
	return mark;
}

static uint64_t mix(uint64_t uuid, uint64_t more)
{
	return hash_number(uuid ^ hash_number(more + 1));
}

/* True the first time that @uuid is asked about: its descriptor is to be written. Tracks beyond the
 * ceiling are drawn without a name. */
static bool is_new(struct perfetto *p, uint64_t uuid)
{
	struct state *s = state_of(p);

	return !idmap_get(&s->described, uuid) && idmap_put(&s->described, uuid, s) == 0;
}

struct descriptor {
	uint64_t uuid, parent;
	const char *name;
};

static size_t open_descriptor(struct perfetto *p, const struct descriptor *d)
{
	size_t mark = pb_put_begin(&p->out, PACKET_TRACK_DESCRIPTOR);

	pb_put_varint(&p->out, TRACK_UUID, d->uuid);
	if (d->parent)
		pb_put_varint(&p->out, TRACK_PARENT_UUID, d->parent);
	if (d->name)
		pb_put_string(&p->out, TRACK_NAME, d->name);
	return mark;
}

static void describe(struct perfetto *p, const struct descriptor *d, const char *unit)
{
	size_t packet = open_packet(p), mark = open_descriptor(p, d), counter;

	if (unit) {
		counter = pb_put_begin(&p->out, TRACK_COUNTER);
		pb_put_string(&p->out, COUNTER_UNIT_NAME, unit);
		pb_put_end(&p->out, counter);
	}
	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
}

static void track(struct perfetto *p, const struct perfetto_track *t)
{
	struct descriptor d = {.uuid = t->uuid};
	size_t packet = open_packet(p), mark = open_descriptor(p, &d), process;
	char name[sizeof(t->node) + 32];

	snprintf(name, sizeof(name), t->rank >= 0 ? "%s (rank %d)" : "%s",
		t->node_len ? t->node : "local", t->rank);
	process = pb_put_begin(&p->out, TRACK_PROCESS);
	pb_put_varint(&p->out, PROCESS_PID, t->number);
	pb_put_string(&p->out, PROCESS_NAME, name);
	pb_put_end(&p->out, process);
	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
}

static void describe_thread(struct perfetto *p, const struct perfetto_line *l, const char *name)
{
	struct descriptor d = {.uuid = l->uuid, .parent = l->parent};
	size_t packet = open_packet(p), mark = open_descriptor(p, &d), thread;

	thread = pb_put_begin(&p->out, TRACK_THREAD);
	pb_put_varint(&p->out, THREAD_PID, l->track->number);
	pb_put_varint(&p->out, THREAD_TID, l->tid);
	if (*name)
		pb_put_string(&p->out, THREAD_NAME, name);
	pb_put_end(&p->out, thread);
	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
}

static void line(struct perfetto *p, const struct perfetto_line *l, const char *name, unsigned lane)
{
	struct descriptor d = {.uuid = l->uuid, .parent = l->parent, .name = name};

	if (l->is_thread)
		describe_thread(p, l, name);
	else
		describe(p, &d, NULL);
}

/* The first event says which clock it all is by, and that what follows stands alone. */
static void begin_sequence(struct perfetto *p, int64_t ns)
{
	static const int clocks[] = {CLOCK_BOOTTIME_ID, CLOCK_REALTIME_ID};
	size_t packet = open_packet(p), snapshot, clock;

	pb_put_varint(&p->out, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	snapshot = pb_put_begin(&p->out, PACKET_CLOCK_SNAPSHOT);
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		clock = pb_put_begin(&p->out, SNAPSHOT_CLOCKS);
		pb_put_varint(&p->out, CLOCK_ID, (uint64_t)clocks[i]);
		pb_put_varint(&p->out, CLOCK_TIMESTAMP, (uint64_t)ns);
		pb_put_end(&p->out, clock);
	}
	pb_put_end(&p->out, snapshot);
	pb_put_end(&p->out, packet);
}

static size_t open_event_packet(struct perfetto *p, int64_t ns)
{
	struct state *s = state_of(p);
	size_t packet;

	if (!s->has_begun) {
		s->has_begun = true;
		begin_sequence(p, ns);
	}
	packet = open_packet(p);
	pb_put_varint(&p->out, PACKET_TIMESTAMP, (uint64_t)MAX(ns, INT64_C(0)));
	pb_put_varint(&p->out, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	return packet;
}

static void intern_one(struct perfetto *p, uint32_t field, uint64_t iid, const char *text)
{
	size_t mark = pb_put_begin(&p->out, field);

	pb_put_varint(&p->out, INTERNED_IID, iid);
	pb_put_string(&p->out, INTERNED_TEXT, text);
	pb_put_end(&p->out, mark);
}

/* Operation and group, each told once. Numbers are those of wire/ids.h, counted from 1. */
static uint64_t op_iid(unsigned source, unsigned op)
{
	return 1 + source * WIRE_OP_MAX + op;
}

static void intern_op(struct perfetto *p, unsigned source, unsigned op)
{
	struct state *s = state_of(p);
	uint64_t iid = op_iid(source, op);
	size_t mark;

	if (s->named[iid - 1] && s->grouped[source])
		return;
	mark = pb_put_begin(&p->out, PACKET_INTERNED_DATA);
	if (!s->grouped[source])
		intern_one(p, INTERNED_CATEGORIES, source + 1, perfetto_category(source));
	if (!s->named[iid - 1])
		intern_one(p, INTERNED_NAMES, iid, WIRE_OP_NAME(source, op));
	pb_put_end(&p->out, mark);
	s->named[iid - 1] = s->grouped[source] = true;
}

static size_t open_event(struct perfetto *p, enum event_type type, uint64_t uuid)
{
	size_t mark = pb_put_begin(&p->out, PACKET_TRACK_EVENT);

	pb_put_varint(&p->out, EVENT_TYPE, type);
	pb_put_varint(&p->out, EVENT_TRACK_UUID, uuid);
	return mark;
}

static void put_int(struct perfetto *p, const char *name, int64_t v)
{
	size_t mark = pb_put_begin(&p->out, EVENT_DEBUG_ANNOTATIONS);

	pb_put_string(&p->out, ANNOTATION_NAME, name);
	pb_put_varint(&p->out, ANNOTATION_INT, (uint64_t)v);
	pb_put_end(&p->out, mark);
}

static void put_text(struct perfetto *p, const char *name, const char *text)
{
	size_t mark = pb_put_begin(&p->out, EVENT_DEBUG_ANNOTATIONS);

	pb_put_string(&p->out, ANNOTATION_NAME, name);
	pb_put_string(&p->out, ANNOTATION_TEXT, text);
	pb_put_end(&p->out, mark);
}

static void put_stack(struct perfetto *p, const struct stack *s)
{
	size_t mark = pb_put_begin(&p->out, EVENT_DEBUG_ANNOTATIONS), frame;

	pb_put_string(&p->out, ANNOTATION_NAME, "stack");
	for (size_t i = 0; i < s->count; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

		perfetto_frame(&b, &s->frames[i]);
		frame = pb_put_begin(&p->out, ANNOTATION_ARRAY);
		pb_put_string(&p->out, ANNOTATION_TEXT, buf_str(&b));
		pb_put_end(&p->out, frame);
	}
	pb_put_end(&p->out, mark);
}

static void put_slice_end(struct perfetto *p, uint64_t uuid, int64_t ns)
{
	size_t packet = open_event_packet(p, ns), mark = open_event(p, TYPE_SLICE_END, uuid);

	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
}

static void slice(struct perfetto *p, const struct perfetto_line *l, const struct perfetto_slice *s)
{
	bool is_slice = s->end_ns > s->start_ns;
	size_t packet = open_event_packet(p, s->start_ns), mark;

	intern_op(p, s->source, s->op);
	mark = open_event(p, is_slice ? TYPE_SLICE_BEGIN : TYPE_INSTANT, l->uuid);
	pb_put_varint(&p->out, EVENT_CATEGORY_IIDS, s->source + 1u);
	if (s->name)
		pb_put_string(&p->out, EVENT_NAME, s->name);
	else
		pb_put_varint(&p->out, EVENT_NAME_IID, op_iid(s->source, s->op));
	if (s->group)
		pb_put_fixed64(&p->out, EVENT_FLOW_IDS, s->group);
	for (size_t i = 0; i < s->args->count; i++) {
		const struct event_arg *a = &s->args->list[i];

		if (a->name_text || a->text[0])
			put_text(p, a->name, a->name_text ? a->name_text : a->text);
		else
			put_int(p, a->name, a->number);
	}
	if (s->stack)
		put_stack(p, s->stack);
	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
	if (is_slice)
		put_slice_end(p, l->uuid, s->end_ns);
}

static void chain(struct perfetto *p, const struct perfetto_track *t, const struct incident_row *c)
{
	struct descriptor d = {.uuid = mix(t->uuid, 0x11c), .parent = t->uuid, .name = "incidents"};
	char name[sizeof(c->severity) + sizeof(c->summary) + 4];
	size_t packet, mark;

	if (is_new(p, d.uuid))
		describe(p, &d, NULL);
	snprintf(name, sizeof(name), "%s: %s", c->severity, c->summary);
	packet = open_event_packet(p, c->detected_ns);
	mark = open_event(p, TYPE_INSTANT, d.uuid);
	pb_put_string(&p->out, EVENT_NAME, name);
	put_text(p, "severity", c->severity);
	put_text(p, "root_cause", c->root_cause);
	put_text(p, "recommendations", c->fixes);
	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
}

static void counter(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_counter *c)
{
	struct descriptor d = {.parent = t->uuid, .name = c->name};
	size_t packet, mark;

	d.uuid = mix(t->uuid, hash_bytes(c->name, strlen(c->name)));
	if (is_new(p, d.uuid))
		describe(p, &d, c->unit);
	packet = open_event_packet(p, c->time_ns);
	mark = open_event(p, TYPE_COUNTER, d.uuid);
	pb_put_double(&p->out, EVENT_DOUBLE_COUNTER_VALUE, c->value);
	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
}

static void label(struct perfetto *p, const struct perfetto_line *l, const struct perfetto_label *b)
{
	size_t packet = open_event_packet(p, b->start_ns);
	size_t mark = open_event(p, TYPE_SLICE_BEGIN, l->uuid);

	pb_put_string(&p->out, EVENT_NAME, FORMATTED(600, "%s=%s", b->key, b->value));
	if (b->pid)
		put_int(p, "pid", b->pid);
	pb_put_end(&p->out, mark);
	pb_put_end(&p->out, packet);
	put_slice_end(p, l->uuid, b->end_ns);
}

const struct perfetto_format perfetto_proto = {
	1, begin, track, line, slice, chain, counter, label, end, done};
