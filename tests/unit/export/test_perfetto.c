/* SPDX-License-Identifier: Apache-2.0 */
/* test_perfetto.c - a small recording as JSON, byte for byte, and as protobuf, by a reader of its
 * own. The rest of the formats is tested from outside: tests/integration/46-perfetto. */
#include "store_fixture.h"

#include "export/export.h"

#define T0   INT64_C(1700000000000000000)
#define MANY 4000
#define US   INT64_C(1000)

static void put(struct nodedb *db, struct event e)
{
	e.weight = e.weight ? e.weight : 1;
	assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
}

static void make(const char *path)
{
	struct nodedb *db = scratch_open(path);
	struct session session = {.started.ns = T0};

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	put(db, (struct event){.start.ns = T0 + 999,
			.dur_ns = 2500,
			.pid = 7,
			.tid = 7,
			.source = SOURCE_CUDA,
			.op = CUDA_MALLOC,
			.arg0 = 4096,
			.arg1 = 0xbeef,
			.ret = 2,
			.device = 1,
			.comm = "a\"b\x1b"});
	put(db, (struct event){.start.ns = T0 + 2 * US,
			.dur_ns = 999,
			.pid = 7,
			.tid = 8,
			.source = SOURCE_DRIVER,
			.op = 63,
			.weight = 5,
			.comm = "loader"});
	put(db, (struct event){.start.ns = T0 + 3 * US,
			.dur_ns = 9 * US,
			.pid = 7,
			.tid = 7,
			.source = SOURCE_IO,
			.op = IO_READ,
			.arg0 = 8});
	put(db, (struct event){.start.ns = T0 + 4 * US,
			.dur_ns = 9 * US,
			.pid = 7,
			.tid = 7,
			.source = SOURCE_IO,
			.op = IO_READ,
			.arg0 = 1});
	scratch_close(db);
}

/* The whole trace; the caller frees it. */
static char *export(struct scratch *s, bool proto, size_t events, size_t *ret_len)
{
	struct perfetto_options options = {.proto = proto};
	struct nodedb_filter all = {0};
	struct perfetto_stats stats;
	struct output o = OUTPUT_INIT;
	struct errinfo err = {0};
	char path[128];

	snprintf(path, sizeof(path), "%s/out", s->folder);
	assert_int_equal(output_open(&o, path, &err), 0);
	if (perfetto_export(s->path, &all, &options, &o, &stats, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(output_commit(&o, &err), 0);
	output_done(&o);
	assert_int_equal(stats.stream.events, events);
	return scratch_bytes(path, ret_len);
}

static void test_json(void **state)
{
	struct scratch *s = *state;
	size_t len;
	char *text;

	make(s->path);
	text = export(s, false, 4, &len);
	text[len] = 0;
	assert_string_equal(text,
		"[{\"name\":\"process_name\",\"ph\":\"M\",\"ts\":0,\"pid\":1,\"args\":{\"name\":"
		"\"n1\"}},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":0,\"pid\":1,\"tid\":7,"
		"\"args\":{\"name\":\"a\\\"b\\u001b\"}},"
		"{\"name\":\"cudaMalloc\",\"cat\":\"cuda\",\"ph\":\"X\",\"ts\":1700000000000000.75,"
		"\"dur\":2.5,\"pid\":1,\"tid\":7,\"args\":{\"bytes\":4096,\"pointer\":\"0xbeef\","
		"\"gpu_id\":1,\"ret_code\":2}},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":0,\"pid\":1,\"tid\":8,"
		"\"args\":{\"name\":\"loader (of process 7)\"}},"
		"{\"name\":\"unknown(63)\",\"cat\":\"driver\",\"ph\":\"X\",\"ts\":1700000000000002,"
		"\"dur\":0.75,\"pid\":1,\"tid\":8,\"args\":{\"stands_for_calls\":5}},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":0,\"pid\":1,\"tid\":8388608,"
		"\"args\":{\"name\":\"block I/O\"}},"
		"{\"name\":\"block_read\",\"cat\":\"io\",\"ph\":\"X\",\"ts\":1700000000000003,"
		"\"dur\":9,\"pid\":1,\"tid\":8388608,\"args\":{\"bytes\":4096}},"
		"{\"name\":\"thread_name\",\"ph\":\"M\",\"ts\":0,\"pid\":1,\"tid\":8388609,"
		"\"args\":{\"name\":\"block I/O (2)\"}},"
		"{\"name\":\"block_read\",\"cat\":\"io\",\"ph\":\"X\",\"ts\":1700000000000004,"
		"\"dur\":9,\"pid\":1,\"tid\":8388609,\"args\":{\"bytes\":512}}]\n");
	free(text);
}

/* ---- a reader of protobuf ---- */

struct cursor {
	const unsigned char *p, *end;
};

static uint64_t varint(struct cursor *c)
{
	uint64_t v = 0;

	for (int shift = 0; shift < 64; shift += 7) {
		assert_true(c->p < c->end);
		v |= (uint64_t)(*c->p & 0x7f) << shift;
		if (!(*c->p++ & 0x80))
			return v;
	}
	fail_msg("a number without end");
	return 0;
}

/* The next field: its number; a message or text in *ret_part, a number in *ret_value. */
static uint32_t field(struct cursor *c, struct cursor *ret_part, uint64_t *ret_value)
{
	uint64_t key = varint(c);

	*ret_value = 0;
	switch (key & 7) {
	case 0: *ret_value = varint(c); break;
	case 1:
		assert_true(c->end - c->p >= 8);
		c->p += 8;
		break;
	case 2:
		*ret_value = varint(c);
		assert_true((uint64_t)(c->end - c->p) >= *ret_value);
		*ret_part = (struct cursor){c->p, c->p + *ret_value};
		c->p += *ret_value;
		break;
	default: fail_msg("no such kind of field");
	}
	return (uint32_t)(key >> 3);
}

struct slices {
	uint64_t tracks[MANY]; /* of begins, in their order; an end follows its begin */
	uint64_t begins[MANY], ends[MANY];
	int begin_count, end_count, instants, descriptors;
};

static void read_event(struct cursor event, uint64_t ns, struct slices *s)
{
	uint64_t value, type = 0, track = 0;
	struct cursor part;

	while (event.p < event.end) {
		uint32_t number = field(&event, &part, &value);

		type = number == 9 ? value : type;
		track = number == 11 ? value : track;
	}
	if (type == 1) {
		s->tracks[s->begin_count] = track;
		s->begins[s->begin_count++] = ns;
	} else if (type == 2) {
		s->ends[s->end_count++] = ns;
	} else {
		s->instants++;
	}
}

static void read_packet(struct cursor packet, struct slices *s)
{
	uint64_t value, ns = 0;
	struct cursor part, event = {0};

	while (packet.p < packet.end) {
		uint32_t number = field(&packet, &part, &value);

		ns = number == 8 ? value : ns;
		event = number == 11 ? part : event;
		s->descriptors += number == 60;
	}
	if (event.p)
		read_event(event, ns, s);
}

static struct slices read_trace(const char *data, size_t len)
{
	struct cursor all = {(unsigned char *)data, (unsigned char *)data + len}, part;
	struct slices found = {0};
	uint64_t value;

	while (all.p < all.end) {
		assert_int_equal(field(&all, &part, &value), 1);
		read_packet(part, &found);
	}
	return found;
}

static void test_proto(void **state)
{
	struct scratch *s = *state;
	struct slices found;
	size_t len;
	char *data;

	make(s->path);
	data = export(s, true, 4, &len);
	found = read_trace(data, len);
	/* process, two threads, two lanes of I/O: the requests overlap */
	assert_int_equal(found.descriptors, 5);
	assert_int_equal(found.begin_count, 4);
	assert_int_equal(found.end_count, 4);
	assert_int_equal(found.begins[0], T0 + 999);
	assert_int_equal(found.ends[0], T0 + 999 + 2500);
	assert_int_equal(found.ends[1] - found.begins[1], 999); /* nanoseconds */
	assert_true(found.tracks[2] != found.tracks[3]);
	assert_true(found.tracks[2] != found.tracks[0]);
	assert_int_equal(found.instants, 0);
	free(data);
}

/* ---- slices that overlap in every way ---- */

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static void make_many(const char *path)
{
	static const struct {
		uint8_t source;
		uint16_t op;
	} ops[] = {{SOURCE_CUDA, CUDA_LAUNCH}, {SOURCE_DRIVER, DRIVER_MEMCPY},
		{SOURCE_HOST, HOST_SCHED_SWITCH}, {SOURCE_HOST, HOST_DIRECT_RECLAIM},
		{SOURCE_IO, IO_READ}, {SOURCE_NET, NET_SEND}, {SOURCE_NCCL, NCCL_GROUP_START}};
	struct nodedb *db = scratch_open(path);
	uint32_t random = 4711;

	for (int i = 0; i < MANY; i++) {
		uint32_t k = next(&random) % ARRAY_SIZE(ops);

		put(db, (struct event){.start.ns = T0 + next(&random) % 2000000,
				.dur_ns = 1 + next(&random) % (i % 3 ? 3000 : 200000),
				.pid = 7,
				.tid = 7 + next(&random) % 3,
				.source = ops[k].source,
				.op = ops[k].op});
	}
	scratch_close(db);
}

static void test_nesting(void **state)
{
	struct scratch *s = *state;
	struct slices found;
	size_t len, cut = 0;
	char *data;

	make_many(s->path);
	data = export(s, true, MANY, &len);
	found = read_trace(data, len);
	assert_int_equal(found.begin_count, MANY);
	assert_int_equal(found.end_count, MANY);
	for (int i = 0; i < MANY; i++)
		for (int k = i + 1; k < MANY; k++) {
			if (found.tracks[i] != found.tracks[k])
				continue;
			assert_true(found.begins[i] <= found.begins[k]);
			cut += found.ends[i] == found.ends[k];
			if (found.begins[k] < found.ends[i] && found.ends[k] > found.ends[i])
				fail_msg("%d and %d overlap in part", i, k);
		}
	assert_true(cut > 0); /* or rounding was not tried */
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_json),
		TEST(test_proto),
		TEST(test_nesting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
