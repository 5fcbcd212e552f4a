/* SPDX-License-Identifier: Apache-2.0 */
/* test_otlp_read.c - foreign requests in both encodings as one walk, and what only looks like one. The
 * protobuf was encoded by OpenTelemetry's own library for JavaScript. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "otlp/otlp_read.h"
#include "otlp/otlp_write.h"
#include "protobuf/pb.h"

static const char metrics_hex[] =
	"0a83030a5e0a170a0e696e6765726f2e6e6f64652e696412050a036ec3a90a100a0169120b18fdff"
	"ffffffffffffff010a0e0a0164120921000000000000e03f0a070a0162120210010a0a0a01791205"
	"3a0300ff010a0c0a016c12072a050a030a017812a0020a060a0173120131123d0a01671201641a01"
	"312a320a1c1900f153650000000021000000000000f83f3a080a016b12030a01760a121907000000"
	"0000000031f7ffffffffffffff122a0a01731a0242793a210a1b1103000000000000001904000000"
	"0000000031050000000000000010011801124d0a01681a01734a450a411904000000000000002106"
	"000000000000002900000000000004403210010000000000000005000000000000003a0800000000"
	"0000f03f4a080a016b12030a01771002122e0a016552290a250a080a016b12030a01651904000000"
	"00000000210600000000000000290000000000000c401002122c0a01715a270a2519040000000000"
	"00002108000000000000002900000000000012403a080a016b12030a0171";
static const char logs_hex[] =
	"0a6f0a170a150a0e696e6765726f2e6e6f64652e696412030a016e12540a040a026c731245090b00"
	"00000000000010091a04494e464f2a053a030100fe32070a01611202180545010000004a10070707"
	"07070707070707070707070707590c000000000000006202657612052a030a0174";

#define RESOURCE                                                                                   \
	"\"resource\":{\"attributes\":["                                                           \
	"{\"key\":\"ingero.node.id\",\"value\":{\"stringValue\":\"n\\u00e9\"}},"                   \
	"{\"key\":\"i\",\"value\":{\"intValue\":\"-3\"}},"                                         \
	"{\"key\":\"d\",\"value\":{\"doubleValue\":0.5}},"                                         \
	"{\"key\":\"b\",\"value\":{\"boolValue\":true}},"                                          \
	"{\"key\":\"y\",\"value\":{\"bytesValue\":\"AP8B\"}},"                                     \
	"{\"key\":\"l\",\"value\":{\"arrayValue\":{\"values\":[{\"stringValue\":\"x\"}]}}}],"      \
	"\"droppedAttributesCount\":0}"
#define SCOPE "\"scope\":{\"name\":\"s\",\"version\":\"1\"}"
#define K(v)  "\"attributes\":[{\"key\":\"k\",\"value\":{\"stringValue\":\"" v "\"}}]"
#define GAUGE                                                                                      \
	"\"gauge\":{\"dataPoints\":[{" K(                                                          \
		"v") ",\"timeUnixNano\":\"1700000000\",\"asDouble\":1.5},"                         \
		     "{\"timeUnixNano\":7,\"asInt\":-9}]}"
#define OTHERS                                                                                                        \
	"{\"name\":\"s\",\"unit\":\"By\",\"sum\":{\"dataPoints\":[{\"startTimeUnixNano\":\"3\","                      \
	"\"timeUnixNano\":\"4\",\"asInt\":\"5\"}],\"aggregationTemporality\":1,"                                      \
	"\"isMonotonic\":true}},"                                                                                     \
	"{\"name\":\"h\",\"unit\":\"s\",\"histogram\":{\"aggregationTemporality\":2,"                                 \
	"\"dataPoints\":[{" K(                                                                                        \
		"w") ",\"timeUnixNano\":\"4\",\"count\":\"6\",\"sum\":2.5,"                                           \
		     "\"bucketCounts\":[\"1\",\"5\"],\"explicitBounds\":[1]}]}},"                                     \
		     "{\"name\":\"e\",\"exponentialHistogram\":{\"dataPoints\":[{" K(                                 \
			     "e") ",\"timeUnixNano\":\"4\",\"count\":6,\"sum\":3.5}],\"aggregationTemporality\":2}}," \
				  "{\"name\":\"q\",\"summary\":{\"dataPoints\":[{" K(                                 \
					  "q") ",\"timeUnixNano\":\"4\",\"count\":\"8\",\"sum\":\"4.5\"}]}}"
#define METRIC_HEAD "\"name\":\"g\",\"description\":\"d\",\"unit\":\"1\""

/* The same request with what describes a level first, as writers do it, and last. */
static const char metrics_json[] = "{\"resourceMetrics\":[{" RESOURCE ",\"scopeMetrics\":[{" SCOPE
				   ",\"metrics\":[{" METRIC_HEAD "," GAUGE "}," OTHERS "]}]}]}";
static const char metrics_json_reversed[] =
	"{\"later\":[{}],\"resourceMetrics\":[{\"schemaUrl\":\"\",\"scopeMetrics\":[{\"metrics\":"
	"[{" GAUGE "," METRIC_HEAD "}," OTHERS "]," SCOPE "}]," RESOURCE "}]}";
static const char logs_json[] =
	"{\"resourceLogs\":[{\"resource\":{\"attributes\":[{\"key\":\"ingero.node.id\",\"value\":"
	"{\"stringValue\":\"n\"}}]},\"scopeLogs\":[{\"scope\":{\"name\":\"ls\"},\"logRecords\":["
	"{\"timeUnixNano\":\"11\",\"observedTimeUnixNano\":\"12\",\"severityNumber\":9,"
	"\"severityText\":\"INFO\",\"body\":{\"bytesValue\":\"AQD+\"},\"attributes\":[{\"key\":\"a\","
	"\"value\":{\"intValue\":5}}],\"flags\":1,\"traceId\":\"07\",\"eventName\":\"ev\"},"
	"{\"body\":{\"stringValue\":\"t\"}}]}]}]}";

static void unhex(struct buf *b, const char *hex)
{
	for (; *hex; hex += 2) {
		unsigned byte;

		assert_int_equal(sscanf(hex, "%2x", &byte), 1);
		buf_putc(b, (char)byte);
	}
}

/* A visitor that writes down all it is given. */
struct notes {
	struct buf text;
	int answer;
};

static void note_value(struct buf *b, const struct otlp_value *v)
{
	switch (v->kind) {
	case OTLP_NONE: buf_puts(b, "-"); break;
	case OTLP_TEXT: buf_printf(b, "'%.*s'", (int)v->len, v->text); break;
	case OTLP_INT: buf_printf(b, "%lld", (long long)v->i); break;
	case OTLP_DOUBLE: buf_printf(b, "%gd", v->d); break;
	case OTLP_BOOL: buf_puts(b, v->i ? "true" : "false"); break;
	case OTLP_BYTES:
		for (size_t i = 0; i < v->len; i++)
			buf_printf(b, "%02x", (unsigned char)v->text[i]);
		break;
	}
}

static void note_attributes(struct buf *b, const struct otlp_attributes *a)
{
	buf_puts(b, "{");
	for (size_t i = 0; i < a->count; i++) {
		buf_printf(b, "%s%.*s=", i ? " " : "", (int)a->item[i].key_len, a->item[i].key);
		note_value(b, &a->item[i].value);
	}
	buf_puts(b, "}");
}

static int note_point(void *arg, const struct otlp_point *p)
{
	struct notes *n = arg;
	struct buf *b = &n->text;

	if (!b->max)
		return n->answer; /* only counted */
	buf_printf(b, "%zu ", p->resource_number);
	note_attributes(b, p->resource);
	buf_printf(b, " %.*s/%.*s[%.*s] %d%s%s ", (int)p->scope_len, p->scope, (int)p->name_len,
		p->name, (int)p->unit_len, p->unit, p->kind, p->is_monotonic ? "m" : "",
		p->is_delta ? "d" : "");
	note_attributes(b, p->attributes);
	buf_printf(b, " %llu-%llu n=%llu ", (unsigned long long)p->start_ns,
		(unsigned long long)p->time_ns, (unsigned long long)p->count);
	note_value(b, &p->value);
	buf_puts(b, "\n");
	return n->answer;
}

static int note_record(void *arg, const struct otlp_record *r)
{
	struct notes *n = arg;
	struct buf *b = &n->text;

	note_attributes(b, r->resource);
	buf_printf(b, " %.*s/%.*s %d %llu %llu ", (int)r->scope_len, r->scope, (int)r->event_len,
		r->event, r->severity, (unsigned long long)r->time_ns,
		(unsigned long long)r->observed_ns);
	note_attributes(b, r->attributes);
	note_value(b, &r->body);
	buf_puts(b, "\n");
	return n->answer;
}

typedef int read_fn(
	const void *data, size_t len, struct notes *n, struct otlp_walk *walk, struct errinfo *e);

#define READER(name, signal, json)                                                                 \
	static int name(const void *data, size_t len, struct notes *n, struct otlp_walk *walk,     \
		struct errinfo *e)                                                                 \
	{                                                                                          \
		const struct otlp_visitor v = {                                                    \
			.arg = n, .point = note_point, .record = note_record};                     \
                                                                                                   \
		return otlp_read(signal, json, data, len, &v, walk, e);                            \
	}
READER(metrics_pb, OTLP_METRICS, false)
READER(metrics_js, OTLP_METRICS, true)
READER(logs_pb, OTLP_LOGS, false)
READER(logs_js, OTLP_LOGS, true)

#define RESOURCE_NOTE "1 {ingero.node.id='n\xc3\xa9' i=-3 d=0.5d b=true y=00ff01 l=-} "
static const char metrics_notes[] = RESOURCE_NOTE
	"s/g[1] 0 {k='v'} 0-1700000000 n=0 1.5d\n" RESOURCE_NOTE
	"s/g[1] 0 {} 0-7 n=0 -9\n" RESOURCE_NOTE "s/s[By] 1md {} 3-4 n=0 5\n" RESOURCE_NOTE
	"s/h[s] 2 {k='w'} 0-4 n=6 2.5d\n" RESOURCE_NOTE
	"s/e[] 3 {k='e'} 0-4 n=6 3.5d\n" RESOURCE_NOTE "s/q[] 3 {k='q'} 0-4 n=8 4.5d\n";
static const char logs_notes[] =
	"{ingero.node.id='n'} ls/ev 9 11 12 {a=5}0100fe\n{ingero.node.id='n'} ls/ 0 0 0 {}'t'\n";

static void assert_notes(read_fn *read, const void *data, size_t len, const char *notes)
{
	struct notes n = {.text = BUF_INIT(1 << 20)};
	struct otlp_walk walk;
	struct errinfo e = {0};

	if (read(data, len, &n, &walk, &e) != 0)
		fail_msg("%s", e.text);
	assert_string_equal(buf_str(&n.text), notes);
	assert_int_equal(walk.rejected, 0);
	buf_done(&n.text);
}

static void test_metrics(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	unhex(&b, metrics_hex);
	assert_notes(metrics_pb, b.data, b.len, metrics_notes);
	assert_notes(metrics_js, metrics_json, strlen(metrics_json), metrics_notes);
	assert_notes(
		metrics_js, metrics_json_reversed, strlen(metrics_json_reversed), metrics_notes);
}

static void test_logs(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	unhex(&b, logs_hex);
	assert_notes(logs_pb, b.data, b.len, logs_notes);
	assert_notes(logs_js, logs_json, strlen(logs_json), logs_notes);
}

/* Fields of protobuf come in any order: the level's content here before what describes it. */
static void test_protobuf_reversed(void **state)
{
	static const char request[] = "\x0a\x34"
				      "\x12\x21"
				      "\x12\x1a\x2a\x0b\x0a\x09\x31\2\0\0\0\0\0\0\0"
				      "\x3a\x05\x10\x01\x0a\x01\x00"
				      "\x1a\x01u\x0a\x01n"
				      "\x0a\x03\x0a\x01s"
				      "\x0a\x0f\x0a\x0d\x0a\x01k\x12\x08\x0a\x06"
				      "abcdef";
	struct notes n = {.text = BUF_INIT(1 << 16)};
	struct otlp_walk walk;

	/* The point in the sum is a byte that is no message: the walk ends there. */
	assert_int_equal(metrics_pb(request, sizeof(request) - 1, &n, &walk, NULL), -EBADMSG);
	assert_string_equal(buf_str(&n.text), "1 {k='abcdef'} s/n[u] 0 {} 0-0 n=0 2\n");
	buf_done(&n.text);
}

static void test_rejected_are_counted(void **state)
{
	struct notes n = {.text = BUF_INIT(1 << 16), .answer = -EINVAL};
	struct otlp_walk walk;

	assert_int_equal(metrics_js(metrics_json, strlen(metrics_json), &n, &walk, NULL), 0);
	assert_int_equal(walk.taken, 0);
	assert_int_equal(walk.rejected, 6);
	buf_done(&n.text);
}

static void test_empty(void **state)
{
	static const char *const texts[] = {"{}", " {\"resourceMetrics\":[]} ",
		"{\"resourceMetrics\":null}", "{\"resourceMetrics\":[{}]}",
		"{\"resourceMetrics\":[{\"scopeMetrics\":[{}]}]}",
		"{\"resourceMetrics\":[{\"resource\":null,\"scopeMetrics\":[{\"scope\":null,"
		"\"metrics\":[{\"gauge\":null},{\"sum\":{}},{\"name\":null}]}]}]}"};

	assert_notes(metrics_pb, "", 0, "");
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_notes(metrics_js, texts[i], strlen(texts[i]), "");
}

/* One value of one point, as JSON. */
static void assert_value(const char *member, const char *expected)
{
	char text[512];

	snprintf(text, sizeof(text),
		"{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{\"dataPoints\":["
		"{%s}]}}]}]}]}",
		member);
	assert_notes(metrics_js, text, strlen(text), expected);
}

#define POINT(time, value) "1 {} /[] 0 {} 0-" time " n=0 " value "\n"

static void test_json_numbers(void **state)
{
	assert_value("\"asInt\":\"9223372036854775807\"", POINT("0", "9223372036854775807"));
	assert_value("\"asInt\":-9223372036854775808", POINT("0", "-9223372036854775808"));
	assert_value("\"asInt\":5.0", POINT("0", "5"));
	assert_value("\"asInt\":5.5", POINT("0", "-"));
	assert_value("\"asInt\":\"9223372036854775808\"", POINT("0", "-"));
	assert_value("\"asInt\":\"x\"", POINT("0", "-"));
	assert_value("\"asInt\":\"\"", POINT("0", "-"));
	assert_value("\"asInt\":{\"a\":[1]}", POINT("0", "-"));
	assert_value("\"asDouble\":\"NaN\"", POINT("0", "nand"));
	assert_value("\"asDouble\":\"Infinity\"", POINT("0", "infd"));
	assert_value("\"asDouble\":\"-Infinity\"", POINT("0", "-infd"));
	assert_value("\"asDouble\":\"1.5e3\"", POINT("0", "1500d"));
	assert_value("\"asDouble\":\"0x10\"", POINT("0", "-"));
	assert_value("\"asDouble\":\"nan(1)\"", POINT("0", "-"));
	assert_value("\"asDouble\":true", POINT("0", "-"));
	assert_value("\"asDouble\":null", POINT("0", "-"));
	assert_value("\"asDouble\":3", POINT("0", "3d"));
	assert_value(
		"\"timeUnixNano\":\"18446744073709551615\"", POINT("18446744073709551615", "-"));
	assert_value("\"timeUnixNano\":1700000000000000001", POINT("1700000000000000001", "-"));
	assert_value("\"timeUnixNano\":-1", POINT("0", "-"));
	assert_value("\"timeUnixNano\":\"-1\"", POINT("0", "-"));
	assert_value("\"timeUnixNano\":1e300", POINT("0", "-"));
	assert_value("\"timeUnixNano\":[]", POINT("0", "-"));
}

static void assert_attribute(const char *value, const char *expected)
{
	char text[256], notes[256];

	snprintf(text, sizeof(text), "\"attributes\":[{\"value\":%s,\"key\":\"\\tk\"}]", value);
	snprintf(notes, sizeof(notes), "1 {} /[] 0 {\tk=%s} 0-0 n=0 -\n", expected);
	assert_value(text, notes);
}

static void test_json_attributes(void **state)
{
	assert_attribute("{\"stringValue\":\"a\\\"b\\ud83d\\ude00\"}", "'a\"b\xf0\x9f\x98\x80'");
	assert_attribute("{\"stringValue\":\"a\\u0000b\"}", "-");
	assert_attribute("{\"stringValue\":\"\"}", "''");
	assert_attribute("{\"stringValue\":null}", "''");
	assert_attribute("{\"bytesValue\":\"\"}", "");
	assert_attribute("{\"bytesValue\":\"/w==\"}", "ff");
	assert_attribute("{\"bytesValue\":\"_w\"}", "ff");
	assert_attribute("{\"bytesValue\":\"AQI=\"}", "0102");
	assert_attribute("{\"bytesValue\":\"AQIDBA\"}", "01020304");
	assert_attribute("{\"bytesValue\":\"A\"}", "-");
	assert_attribute("{\"bytesValue\":\"AQ!D\"}", "-");
	assert_attribute("{\"bytesValue\":7}", "-");
	assert_attribute("{\"boolValue\":\"yes\"}", "false");
	assert_attribute("{\"kvlistValue\":{\"values\":[{\"key\":\"x\"}]}}", "-");
	assert_attribute("{\"later\":[1,{}]}", "-");
	assert_attribute("null", "-");
}

static void assert_bad(read_fn *read, const void *data, size_t len, int err)
{
	struct notes n = {0};
	struct otlp_walk walk = {.taken = 99};
	struct errinfo e = {0};
	int r = read(data, len, &n, &walk, &e);

	if (r != err)
		fail_msg("%d, not %d: %.80s", r, err, (const char *)data);
	assert_int_equal(walk.taken, 99);
	assert_string_not_equal(e.text, "");
	buf_done(&n.text);
}

static void test_json_refused(void **state)
{
	static const char *const texts[] = {"", "[]", "7", "null", "{", "{}x", "{} {}",
		"{\"resourceMetrics\":7}", "{\"resourceMetrics\":[7]}",
		"{\"resourceMetrics\":[[]]}", "{\"resourceMetrics\":[null]}",
		"{\"resourceMetrics\":[{\"resource\":[]}]}",
		"{\"resourceMetrics\":[{\"resource\":{\"attributes\":[\"a\"]}}]}",
		"{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":7}]}]}]}",
		"{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"\xff\"}]}]}]}"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_bad(metrics_js, texts[i], strlen(texts[i]), -EBADMSG);
}

/* Cut at any byte: never more than what was there, never an answer but one that fits. */
static void cut_everywhere(read_fn *read, const void *data, size_t len, bool json)
{
	for (size_t n = 0; n < len; n++) {
		char *copy = malloc(n ? n : 1); /* so that a sanitizer sees a read beyond it */
		struct notes notes = {.text = BUF_INIT(1 << 20)};
		struct otlp_walk walk;
		int r;

		assert_non_null(copy);
		memcpy(copy, data, n);
		r = read(copy, n, &notes, &walk, NULL);
		assert_int_equal(r, n || json ? -EBADMSG : 0);
		buf_done(&notes.text);
		free(copy);
	}
}

static void test_cut(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	unhex(&b, metrics_hex);
	cut_everywhere(metrics_pb, b.data, b.len, false);
	cut_everywhere(metrics_js, metrics_json, strlen(metrics_json), true);
	cut_everywhere(metrics_js, metrics_json_reversed, strlen(metrics_json_reversed), true);
	buf_clear(&b);
	unhex(&b, logs_hex);
	cut_everywhere(logs_pb, b.data, b.len, false);
	cut_everywhere(logs_js, logs_json, strlen(logs_json), true);
}

static void test_deep(void **state)
{
	static const uint32_t down[] = {1, 2, 2, 5}; /* to a body; from there on lists */
	static size_t marks[5000];
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	buf_puts(&b,
		"{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"k\",\"value\":");
	for (int i = 0; i < 10000; i++)
		buf_puts(&b, "{\"arrayValue\":[");
	assert_bad(metrics_js, b.data, b.len, -E2BIG);
	/* Lists of lists in protobuf are stepped over. */
	buf_clear(&b);
	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		marks[i] = pb_put_begin(&b, i < ARRAY_SIZE(down) ? down[i] : i % 2 ? 1 : 5);
	for (size_t i = ARRAY_SIZE(marks); i > 0; i--)
		pb_put_end(&b, marks[i - 1]);
	assert_notes(logs_pb, b.data, b.len, "{} / 0 0 0 {}-\n");
}

static void write_points(struct buf *b, bool json, size_t points, size_t attributes)
{
	struct otlp_attributes none = {.count = 0}, a = {.count = 0};
	struct otlp_writer w;

	for (size_t i = 0; i < attributes; i++)
		otlp_put_int(&a, "k", (int64_t)i);
	otlp_write_begin(&w, b, json, false, &none, "s", "1");
	otlp_write_metric(&w, "m", NULL, "1", OTLP_GAUGE);
	for (size_t i = 0; i < points; i++)
		otlp_write_point(&w, &(struct otlp_point){.attributes = &a,
					     .value = {.kind = OTLP_INT, .i = 1}});
	otlp_write_metric_end(&w);
	otlp_write_end(&w);
	assert_int_equal(b->err, 0);
}

static void test_too_many_points(void **state)
{
	for (int json = 0; json < 2; json++) {
		_cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
		struct notes n = {0};
		struct otlp_walk walk;

		write_points(&b, json, OTLP_POINTS_MAX, 0);
		assert_int_equal(
			(json ? metrics_js : metrics_pb)(b.data, b.len, &n, &walk, NULL), 0);
		assert_int_equal(walk.taken, OTLP_POINTS_MAX);
		buf_done(&n.text);
		buf_clear(&b);
		write_points(&b, json, OTLP_POINTS_MAX + 1, 0);
		assert_bad(json ? metrics_js : metrics_pb, b.data, b.len, -E2BIG);
	}
}

static void test_too_many_attributes(void **state)
{
	static const char pair[] = "{\"key\":\"k\",\"value\":{\"intValue\":1}}";
	static const char pair_pb[] = "\x3a\x09\x0a\x01k\x12\x04\x18\x80\x80\x01";

	for (size_t count = OTLP_ATTRIBUTES_MAX; count <= OTLP_ATTRIBUTES_MAX + 1; count++) {
		_cleanup_buf_ struct buf b = BUF_INIT(1 << 16), point = BUF_INIT(1 << 16);
		struct notes n = {.text = BUF_INIT(1 << 20)};
		struct otlp_walk walk;
		bool fits = count == OTLP_ATTRIBUTES_MAX;

		buf_puts(&b, "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"gauge\":{"
			     "\"dataPoints\":[{\"attributes\":[");
		for (size_t i = 0; i < count; i++)
			buf_printf(&b, "%s%s", i ? "," : "", pair);
		buf_puts(&b, "]}]}}]}]}]}");
		if (fits)
			assert_int_equal(metrics_js(b.data, b.len, &n, &walk, NULL), 0);
		else
			assert_bad(metrics_js, b.data, b.len, -E2BIG);
		buf_clear(&b);
		for (size_t i = 0; i < count; i++)
			buf_append(&point, pair_pb, sizeof(pair_pb) - 1);
		for (int level = 0; level < 5;
			level++) { /* point, gauge, metric, scope, resource */
			static const char keys[] = {0x0a, 0x2a, 0x12, 0x12, 0x0a};

			buf_clear(&b);
			buf_putc(&b, keys[level]);
			buf_putc(&b, (char)(point.len | 0x80));
			buf_putc(&b, (char)(point.len >> 7));
			buf_append(&b, point.data, point.len);
			buf_clear(&point);
			buf_append(&point, b.data, b.len);
		}
		if (fits)
			assert_int_equal(metrics_pb(b.data, b.len, &n, &walk, NULL), 0);
		else
			assert_bad(metrics_pb, b.data, b.len, -E2BIG);
		buf_done(&n.text);
	}
}

static int note_span(void *arg, const struct otlp_span *p)
{
	struct buf *b = &((struct notes *)arg)->text;

	buf_printf(b, "%zu ", p->resource_number);
	note_attributes(b, p->resource);
	buf_printf(b, " %.*s/%.*s %d %d %llu+%llu ", (int)p->scope_len, p->scope, (int)p->name_len,
		p->name, p->kind, p->status, (unsigned long long)p->start_ns,
		(unsigned long long)(p->end_ns - p->start_ns));
	for (size_t i = 0; i < OTLP_TRACE_ID; i++)
		buf_printf(b, "%02x", p->trace[i]);
	for (size_t i = 0; i < OTLP_SPAN_ID; i++)
		buf_printf(b, "%s%02x", i ? "" : " ", p->id[i]);
	for (size_t i = 0; i < OTLP_SPAN_ID; i++)
		buf_printf(b, "%s%02x", i ? "" : " ", p->parent[i]);
	buf_puts(b, " ");
	note_attributes(b, p->attributes);
	buf_puts(b, "\n");
	return 0;
}

static void test_spans(void **state)
{
	static const char hex[] =
		"0a8c010a120a0e0a076e6f64655f696412030a016e100012760a060a0173120131126c0a10010203"
		"0405060708090a0b0c0d0e0f10120800000000000000af22080000000000000bee2a077374657020"
		"c3a930023905002a36fe9c971741052f928ffe9c97174a0a0a0472616e6b1202180450005a0e0901"
		"ca9a3b000000001201652000600070007a051201781802";
	static const char json[] =
		"{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"node_id\",\"value\":"
		"{\"stringValue\":\"n\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"s\",\"version\":\"1\"},"
		"\"spans\":[{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"00000000000000AF\","
		"\"parentSpanId\":\"0000000000000bee\",\"name\":\"step é\",\"kind\":2,\"startTimeUnixNano\":"
		"\"1700000000000000005\",\"endTimeUnixNano\":\"1700000001500000005\",\"attributes\":[{\"key\":"
		"\"rank\",\"value\":{\"intValue\":4}}],\"events\":[{\"name\":\"e\"}],\"status\":{\"code\":2,"
		"\"message\":\"x\"},\"links\":[]},{\"traceId\":\"zz\",\"spanId\":\"00000000000000ag\"}]}]}]}";
	static const char span[] = "1 {node_id='n'} s/step é 2 2 1700000000000000005+1500000000 "
				   "0102030405060708090a0b0c0d0e0f10 00000000000000af "
				   "0000000000000bee {rank=4}\n";
	static const char bare[] = "1 {node_id='n'} s/ 0 0 0+0 00000000000000000000000000000000 "
				   "0000000000000000 0000000000000000 {}\n";
	struct notes n = {.text = BUF_INIT(1 << 16)};
	const struct otlp_visitor v = {.arg = &n, .span = note_span};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct otlp_walk walk;
	struct errinfo e = {0};

	unhex(&b, hex);
	assert_int_equal(otlp_read(OTLP_TRACES, false, b.data, b.len, &v, &walk, &e), 0);
	assert_int_equal(walk.taken, 1);
	assert_string_equal(buf_str(&n.text), span);
	buf_clear(&n.text);
	assert_int_equal(otlp_read(OTLP_TRACES, true, json, strlen(json), &v, &walk, &e), 0);
	assert_int_equal(walk.taken, 2);
	assert_int_equal(strncmp(buf_str(&n.text), span, strlen(span)), 0);
	assert_string_equal(buf_str(&n.text) + strlen(span), bare);
	for (size_t len = 1; len < b.len; len++)
		assert_int_equal(
			otlp_read(OTLP_TRACES, false, b.data, len, &v, &walk, &e), -EBADMSG);
	assert_non_null(strstr(e.text, "traces"));
	buf_done(&n.text);
}

static void test_attribute_get(void **state)
{
	struct otlp_attributes a = {.count = 0};

	otlp_put_int(&a, "ab", 1);
	otlp_put_int(&a, "a", 2);
	otlp_put_int(&a, "a", 3);
	assert_int_equal(otlp_attribute_get(&a, "a")->i, 2);
	assert_null(otlp_attribute_get(&a, "b"));
	assert_null(otlp_attribute_get(&a, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_logs),
		cmocka_unit_test(test_protobuf_reversed),
		cmocka_unit_test(test_rejected_are_counted),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_json_numbers),
		cmocka_unit_test(test_json_attributes),
		cmocka_unit_test(test_json_refused),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_too_many_points),
		cmocka_unit_test(test_too_many_attributes),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_attribute_get),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
