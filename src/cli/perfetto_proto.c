/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_proto.c - Perfetto's own format: a Trace of TracePackets with track descriptors and
 * track events, in nanoseconds. Names are interned: written once, then by number.
 *
 * Slices of a track must lie within each other, so that what does not nest gets tracks of its own:
 * a thread's calls on the thread, its stays off CPU beside it, block requests (many at once) on
 * as many lanes as are needed at a time, LANES_MAX at most. A request beyond is drawn as a moment.
 *
 * Packets need not be in order of time: the reader sorts them. One sequence writes all; its first
 * packet clears what a reader knows. The clock is told to be the wall clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/protobuf.h"
#include "cli/perfetto_private.h"

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
#define LANES_MAX        1024
#define TRACKS_KNOWN_MAX (2u << 20)
#define OPS              (WIRE_SOURCE_MAX * WIRE_OP_MAX)

struct lanes { /* of one process: until when each is taken */
	int64_t *end_ns;
	int used, room;
};

struct state {
	struct idmap described; /* tracks whose descriptor is written */
	struct idmap lanes;     /* struct lanes, by process */
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
	s->lanes = IDMAP_INIT(65536);
	return 0;
}

static void end(struct perfetto *p)
{
}

static void done(struct perfetto *p)
{
	struct state *s = state_of(p);
	size_t cursor = 0;
	struct lanes *lanes;

	if (!s)
		return;
	while ((lanes = idmap_next(&s->lanes, &cursor, NULL))) {
		free(lanes->end_ns);
		free(lanes);
	}
	idmap_done(&s->lanes);
	idmap_done(&s->described);
	free(s);
}

/* ---- packets ---- */

static size_t open_packet(struct perfetto *p)
{
	size_t mark = protobuf_begin(&p->out, TRACE_PACKET);

	protobuf_varint(&p->out, PACKET_SEQUENCE_ID, SEQUENCE);
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
	size_t mark = protobuf_begin(&p->out, PACKET_TRACK_DESCRIPTOR);

	protobuf_varint(&p->out, TRACK_UUID, d->uuid);
	if (d->parent)
		protobuf_varint(&p->out, TRACK_PARENT_UUID, d->parent);
	if (d->name)
		protobuf_string(&p->out, TRACK_NAME, d->name);
	return mark;
}

static void describe(struct perfetto *p, const struct descriptor *d, const char *unit)
{
	size_t packet = open_packet(p), mark = open_descriptor(p, d), counter;

	if (unit) {
		counter = protobuf_begin(&p->out, TRACK_COUNTER);
		protobuf_string(&p->out, COUNTER_UNIT_NAME, unit);
		protobuf_end(&p->out, counter);
	}
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
}

static void track(struct perfetto *p, const struct perfetto_track *t)
{
	struct descriptor d = {.uuid = t->uuid};
	size_t packet = open_packet(p), mark = open_descriptor(p, &d), process;
	char name[sizeof(t->node) + 32];

	snprintf(name, sizeof(name), t->rank >= 0 ? "%s (rank %d)" : "%s",
		t->node_len ? t->node : "local", t->rank);
	process = protobuf_begin(&p->out, TRACK_PROCESS);
	protobuf_varint(&p->out, PROCESS_PID, t->number);
	protobuf_string(&p->out, PROCESS_NAME, name);
	protobuf_end(&p->out, process);
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
}

static uint64_t thread_uuid(const struct perfetto_track *t, uint32_t tid)
{
	return mix(t->uuid, tid);
}

static void describe_thread(
	struct perfetto *p, const struct perfetto_track *t, uint32_t tid, const char *name)
{
	struct descriptor d = {.uuid = thread_uuid(t, tid), .parent = t->uuid};
	size_t packet = open_packet(p), mark = open_descriptor(p, &d), thread;

	thread = protobuf_begin(&p->out, TRACK_THREAD);
	protobuf_varint(&p->out, THREAD_PID, t->number);
	protobuf_varint(&p->out, THREAD_TID, tid);
	if (name)
		protobuf_string(&p->out, THREAD_NAME, name);
	protobuf_end(&p->out, thread);
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
}

static void thread(
	struct perfetto *p, const struct perfetto_track *t, uint32_t tid, const char *name)
{
	(void)is_new(p, thread_uuid(t, tid)); /* a second descriptor would only add the name */
	describe_thread(p, t, tid, name);
}

/* The first event says which clock it all is by, and that what follows stands alone. */
static void begin_sequence(struct perfetto *p, int64_t ns)
{
	static const int clocks[] = {CLOCK_BOOTTIME_ID, CLOCK_REALTIME_ID};
	size_t packet = open_packet(p), snapshot, clock;

	protobuf_varint(&p->out, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
	snapshot = protobuf_begin(&p->out, PACKET_CLOCK_SNAPSHOT);
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		clock = protobuf_begin(&p->out, SNAPSHOT_CLOCKS);
		protobuf_varint(&p->out, CLOCK_ID, (uint64_t)clocks[i]);
		protobuf_varint(&p->out, CLOCK_TIMESTAMP, (uint64_t)ns);
		protobuf_end(&p->out, clock);
	}
	protobuf_end(&p->out, snapshot);
	protobuf_end(&p->out, packet);
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
	protobuf_varint(&p->out, PACKET_TIMESTAMP, (uint64_t)MAX(ns, INT64_C(0)));
	protobuf_varint(&p->out, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
	return packet;
}

static void intern_one(struct perfetto *p, uint32_t field, uint64_t iid, const char *text)
{
	size_t mark = protobuf_begin(&p->out, field);

	protobuf_varint(&p->out, INTERNED_IID, iid);
	protobuf_string(&p->out, INTERNED_TEXT, text);
	protobuf_end(&p->out, mark);
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
	char scratch[32];
	size_t mark;

	if (s->named[iid - 1] && s->grouped[source])
		return;
	mark = protobuf_begin(&p->out, PACKET_INTERNED_DATA);
	if (!s->grouped[source])
		intern_one(p, INTERNED_CATEGORIES, source + 1, perfetto_category(source));
	if (!s->named[iid - 1])
		intern_one(p, INTERNED_NAMES, iid, wire_op_name(source, op, scratch));
	protobuf_end(&p->out, mark);
	s->named[iid - 1] = s->grouped[source] = true;
}

static size_t open_event(struct perfetto *p, enum event_type type, uint64_t uuid)
{
	size_t mark = protobuf_begin(&p->out, PACKET_TRACK_EVENT);

	protobuf_varint(&p->out, EVENT_TYPE, type);
	protobuf_varint(&p->out, EVENT_TRACK_UUID, uuid);
	return mark;
}

static void put_int(struct perfetto *p, const char *name, int64_t v)
{
	size_t mark = protobuf_begin(&p->out, EVENT_DEBUG_ANNOTATIONS);

	protobuf_string(&p->out, ANNOTATION_NAME, name);
	protobuf_varint(&p->out, ANNOTATION_INT, (uint64_t)v);
	protobuf_end(&p->out, mark);
}

static void put_text(struct perfetto *p, const char *name, const char *text)
{
	size_t mark = protobuf_begin(&p->out, EVENT_DEBUG_ANNOTATIONS);

	protobuf_string(&p->out, ANNOTATION_NAME, name);
	protobuf_string(&p->out, ANNOTATION_TEXT, text);
	protobuf_end(&p->out, mark);
}

static void put_stack(struct perfetto *p, const struct stack *s)
{
	size_t mark = protobuf_begin(&p->out, EVENT_DEBUG_ANNOTATIONS), frame;

	protobuf_string(&p->out, ANNOTATION_NAME, "stack");
	for (size_t i = 0; i < s->count; i++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

		perfetto_frame(&b, &s->frames[i]);
		frame = protobuf_begin(&p->out, ANNOTATION_ARRAY);
		protobuf_string(&p->out, ANNOTATION_TEXT, buf_str(&b));
		protobuf_end(&p->out, frame);
	}
	protobuf_end(&p->out, mark);
}

static void put_slice_end(struct perfetto *p, uint64_t uuid, int64_t ns)
{
	size_t packet = open_event_packet(p, ns), mark = open_event(p, TYPE_SLICE_END, uuid);

	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
}

/* ---- what goes where ---- */

static bool grow(struct lanes *l)
{
	int room = l->room ? 2 * l->room : 8;
	void *p = room <= LANES_MAX ? reallocarray(l->end_ns, (size_t)room, sizeof(*l->end_ns))
				    : NULL;

	if (!p)
		return false;
	l->end_ns = p;
	l->room = room;
	return true;
}

/* A lane that is free from @start on; -1 if there is none. */
static int find_lane(struct lanes *l, int64_t start_ns, int64_t end_ns)
{
	for (int i = 0; i < l->used; i++)
		if (l->end_ns[i] <= start_ns) {
			l->end_ns[i] = end_ns;
			return i;
		}
	if (l->used == l->room && !grow(l))
		return -1;
	l->end_ns[l->used] = end_ns;
	return l->used++;
}

static struct lanes *lanes_of(struct perfetto *p, const struct perfetto_track *t)
{
	struct state *s = state_of(p);
	struct lanes *l = idmap_get(&s->lanes, t->uuid);

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	if (!l || idmap_put(&s->lanes, t->uuid, l) < 0) {
		free(l);
		p->out.err = p->out.err ? p->out.err : -ENOMEM;
		return NULL;
	}
	return l;
}

static uint64_t io_uuid(
	struct perfetto *p, const struct perfetto_track *t, const struct event *e, bool *ret_room)
{
	struct lanes *l = lanes_of(p, t);
	int lane = l ? find_lane(l, e->start.ns, event_end_ns(e)) : -1;
	struct descriptor d = {.parent = t->uuid, .name = "block I/O"};

	*ret_room = lane >= 0;
	d.uuid = mix(mix(t->uuid, 0x10), (uint64_t)MAX(lane, 0));
	if (is_new(p, d.uuid))
		describe(p, &d, NULL);
	return d.uuid;
}

static uint64_t switch_uuid(
	struct perfetto *p, const struct perfetto_track *t, const struct event *e)
{
	struct descriptor d = {.parent = thread_uuid(t, e->tid), .name = "off CPU"};

	d.uuid = mix(d.parent, 0x5c);
	if (is_new(p, d.uuid))
		describe(p, &d, NULL);
	return d.uuid;
}

static uint64_t call_uuid(
	struct perfetto *p, const struct perfetto_track *t, const struct event *e, bool *ret_room)
{
	uint64_t uuid = thread_uuid(t, e->tid);

	*ret_room = true;
	if (e->source == SOURCE_IO)
		return io_uuid(p, t, e, ret_room);
	if (is_new(p, uuid)) /* a thread that nothing has named */
		describe_thread(p, t, e->tid, NULL);
	if (e->source == SOURCE_HOST && e->op == HOST_SCHED_SWITCH)
		return switch_uuid(p, t, e);
	return uuid;
}

static void call(struct perfetto *p, const struct perfetto_track *t, const struct event *e,
	const struct stack *s)
{
	bool room, is_slice;
	uint64_t uuid = call_uuid(p, t, e, &room);
	size_t packet = open_event_packet(p, e->start.ns), mark;

	is_slice = e->dur_ns > 0 && room;
	intern_op(p, e->source, e->op);
	mark = open_event(p, is_slice ? TYPE_SLICE_BEGIN : TYPE_INSTANT, uuid);
	protobuf_varint(&p->out, EVENT_CATEGORY_IIDS, e->source + 1u);
	protobuf_varint(&p->out, EVENT_NAME_IID, op_iid(e->source, e->op));
	if (!room)
		put_int(p, "duration_ns", (int64_t)e->dur_ns);
	if (e->device > 0)
		put_int(p, "gpu_id", e->device);
	if (e->ret)
		put_int(p, "ret_code", e->ret);
	if (e->weight > 1)
		put_int(p, "stands_for_calls", e->weight);
	if (s)
		put_stack(p, s);
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
	if (is_slice)
		put_slice_end(p, uuid, event_end_ns(e));
}

static void collective(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_collective *c)
{
	const struct collective_row *row = c->row;
	uint64_t uuid = thread_uuid(t, row->tid);
	size_t packet, mark;

	if (is_new(p, uuid))
		describe_thread(p, t, row->tid, NULL);
	packet = open_event_packet(p, row->start.ns);
	intern_op(p, SOURCE_NCCL, row->op);
	mark = open_event(p, TYPE_SLICE_BEGIN, uuid);
	protobuf_varint(&p->out, EVENT_CATEGORY_IIDS, SOURCE_NCCL + 1);
	protobuf_varint(&p->out, EVENT_NAME_IID, op_iid(SOURCE_NCCL, row->op));
	if (c->from || c->to)
		protobuf_fixed64(&p->out, EVENT_FLOW_IDS, c->group);
	put_int(p, "comm", (int64_t)row->c.comm_hash);
	put_int(p, "seq", (int64_t)row->c.seq);
	if (row->c.rank >= 0)
		put_int(p, "rank", row->c.rank);
	put_int(p, "bytes", (int64_t)row->c.bytes);
	if (row->c.wait_ns >= 0)
		put_int(p, "wait_ns", row->c.wait_ns);
	if (row->ret)
		put_int(p, "ret_code", row->ret);
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
	put_slice_end(p, uuid, row->start.ns + (int64_t)MAX(row->dur_ns, UINT64_C(1)));
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
	protobuf_string(&p->out, EVENT_NAME, name);
	put_text(p, "severity", c->severity);
	put_text(p, "root_cause", c->root_cause);
	put_text(p, "recommendations", c->fixes);
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
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
	protobuf_double(&p->out, EVENT_DOUBLE_COUNTER_VALUE, c->value);
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
}

static void label(
	struct perfetto *p, const struct perfetto_track *t, const struct perfetto_label *l)
{
	struct descriptor d = {.parent = t->uuid, .name = l->key};
	size_t packet, mark;
	char name[600];

	d.uuid = mix(mix(t->uuid, hash_bytes(l->key, strlen(l->key))), l->pid + 0x1abe1ull);
	if (is_new(p, d.uuid))
		describe(p, &d, NULL);
	snprintf(name, sizeof(name), "%s=%s", l->key, l->value);
	packet = open_event_packet(p, l->start_ns);
	mark = open_event(p, TYPE_SLICE_BEGIN, d.uuid);
	protobuf_string(&p->out, EVENT_NAME, name);
	if (l->pid)
		put_int(p, "pid", l->pid);
	protobuf_end(&p->out, mark);
	protobuf_end(&p->out, packet);
	put_slice_end(p, d.uuid, l->end_ns);
}

const struct perfetto_format perfetto_proto = {
	begin, track, thread, call, collective, chain, counter, label, end, done};
