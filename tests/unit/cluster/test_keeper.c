/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper, from requests of OTLP to rows in a store in memory: what becomes of points, records and spans,
 * who may write, duplicates, restarts, a store and a journal that fail. */
#include "journal_fixture.h"

#include "base/hash.h"
#include "cluster/keep/keeper_private.h"
#include "cluster/keep/keeper.h"
#include "memory_store.h"
#include "otlp/otlp_write.h"
#include "push/push_wire.h"

#define T0 "1700000000000000000"

struct rig {
	struct journal_rig *journal;
	struct memory_store store;
	struct keeper *keeper;
	size_t waiting, kept, again;
	struct keeper_result result;
	const char *may_write; /* NULL: all */
	uint64_t sender;
	size_t asked; /* may_write */
	bool finished;
};

static void open_keeper(struct rig *r, size_t segment_bytes)
{
	const struct keeper_settings s = {.store = &r->store.store, .backlog_max = 1000};
	struct keeper_settings settings = s;
	struct errinfo e = {0};

	if (open_journal(r->journal, segment_bytes, r->store.durable + 1) < 0)
		fail();
	settings.journal = r->journal->journal;
	if (keeper_new(r->journal->loop, &settings, &r->keeper, &e) < 0)
		fail_msg("%s", e.text);
}

static void close_keeper(struct rig *r)
{
	keeper_free(r->keeper);
	r->keeper = NULL;
	close_journal(r->journal);
}

static int keeper_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	void *journal;

	assert_non_null(r);
	journal_setup(&journal);
	r->journal = journal;
	memory_store_init(&r->store);
	open_keeper(r, 0);
	*state = r;
	return 0;
}

static int keeper_teardown(void **state)
{
	struct rig *r = *state;
	void *journal = r->journal;

	if (r->keeper)
		keeper_free(r->keeper);
	journal_teardown(&journal);
	memory_store_done(&r->store);
	free(r);
	return 0;
}

static bool may_write(void *arg, uint64_t sender, const char *cluster, size_t len)
{
	struct rig *r = arg;

	assert_int_equal(sender, r->sender);
	r->asked++;
	return strlen(r->may_write) == len && memcmp(cluster, r->may_write, len) == 0;
}

static void on_kept(void *arg, const struct keeper_result *result)
{
	struct rig *r = arg;

	r->result = *result;
	r->kept += result->err == 0 && !result->duplicate;
	r->again += result->err == -EAGAIN;
	if (--r->waiting == 0)
		loop_stop(r->journal->loop);
}

static void take(struct rig *r, enum otlp_signal signal, bool json, const void *data, size_t len)
{
	const struct keeper_request q = {.signal = signal,
		.json = json,
		.data = data,
		.len = len,
		.may_write = r->may_write ? may_write : NULL,
		.may_write_arg = r,
		.sender = r->sender};

	r->waiting++;
	keeper_take(r->keeper, &q, on_kept, r);
}

static int take_json(struct rig *r, enum otlp_signal signal, const char *text)
{
	take(r, signal, true, text, strlen(text));
	loop_run(r->journal->loop);
	return r->result.err;
}

/* All that was acknowledged is in the store. */
static const char *rows_of(struct rig *r)
{
	for (int i = 0; i < 2000 && keeper_stats(r->keeper).backlog; i++)
		usleep(5000);
	assert_int_equal(keeper_stats(r->keeper).backlog, 0);
	return buf_str(&r->store.rows);
}

static void expect_row(struct rig *r, const char *row)
{
	const char *rows = rows_of(r);

	if (!strstr(rows, row))
		fail_msg("no %s in:\n%s", row, rows);
}

/* A gauge with a value and attributes of point and resource, each a list of JSON's. */
static int take_gauge(
	struct rig *r, const char *resource, const char *point, const char *value, const char *time)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"{\"resourceMetrics\":[{\"resource\":{\"attributes\":[%s]},\"scopeMetrics\":[{\"metrics\":["
		"{\"name\":\"m\",\"unit\":\"s\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"%s\","
		"\"attributes\":[%s],%s}]}}]}]}]}",
		resource, time, point, value);
	return take_json(r, OTLP_METRICS, text);
}

#define TEXT(key, value) "{\"key\":\"" key "\",\"value\":{\"stringValue\":\"" value "\"}}"
#define INT(key, value)  "{\"key\":\"" key "\",\"value\":{\"intValue\":\"" value "\"}}"
#define NODE             TEXT("node_id", "n1") "," TEXT("cluster_id", "c1")

/* ---- rows ---- */

static void test_gauge(void **state)
{
	struct rig *r = *state;

	assert_int_equal(take_gauge(r, NODE "," INT("rank", "3") "," INT("nranks", "8"),
				 TEXT("causal_chain_id", "ch7") "," TEXT("event_id", "e1") "," TEXT(
					 "gpu", "0"),
				 "\"asDouble\":0.25", T0),
		0);
	assert_int_equal(r->result.taken, 1);
	expect_row(r, "events|ts_ns=" T0 "|recv_ns=");
	expect_row(r,
		"|cluster_id=c1|node_id=n1|rank=3|nranks=8|metric_name=m|kind=gauge|value_double=0.25|unit=s|"
		"attrs={\"gpu\":\"0\"}|event_id=e1|causal_chain_id=ch7|\n");
	assert_int_equal(r->store.row_count, 1);
}

static void test_names_of_clusters_and_nodes(void **state)
{
	struct rig *r = *state;
	static const struct {
		const char *resource, *point, *row;
	} rows[] = {
		{TEXT("node_id", "a"), "", "|cluster_id=default|node_id=a|"},
		{TEXT("ingero.node.id", "b") "," TEXT("ingero.cluster.id", "c"), "",
			"|cluster_id=c|node_id=b|"},
		{TEXT("service.name", "s") "," TEXT("host.name", "h"), "",
			"|cluster_id=default|node_id=h|"},
		{TEXT("service.name", "svc"), "", "|node_id=svc|"},
		{TEXT("service.instance.id", "i1") "," TEXT("service.name", "svc"), "",
			"|node_id=i1|"},
		{TEXT("node_id", "d"), TEXT("node_id", "e"), "|node_id=e|"},
		{TEXT("node_id", "f"), TEXT("host.name", "g"), "|node_id=f|"},
		{TEXT("k8s.cluster.name", "k") "," TEXT("host.name", "h2"), "",
			"|cluster_id=k|node_id=h2|"},
		{NODE "," TEXT("ingero.world_size", "16") "," INT("ingero.node.rank", "5"), "",
			"|rank=5|nranks=16|"},
		{NODE, INT("rank", "0"), "|node_id=n1|rank=0|"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			take_gauge(r, rows[i].resource, rows[i].point, "\"asInt\":\"1\"", T0), 0);
		expect_row(r, rows[i].row);
	}
	assert_int_equal(r->store.row_count, ARRAY_SIZE(rows));
	expect_row(r, "|value_double=1|value_int=1|");
	expect_row(r, "attrs={\"service.name\":\"svc\"}"); /* it says more than who */
}

static void test_rejected_points(void **state)
{
	struct rig *r = *state;
	char longer[400];

	memset(longer, 'x', sizeof(longer));
	memcpy(longer, "{\"key\":\"node_id\",\"value\":{\"stringValue\":\"", 42);
	snprintf(longer + 250, sizeof(longer) - 250, "\"}}");
	static const struct {
		const char *resource, *value, *time, *why;
	} rows[] = {
		{"", "\"asInt\":1", T0, "no node"},
		{TEXT("node_id", "a\\u0007b"), "\"asInt\":1", T0, "not plain text"},
		{NODE, "\"asDouble\":\"NaN\"", T0, "finite"},
		{NODE, "\"asDouble\":\"-Infinity\"", T0, "finite"},
		{NODE, "\"flags\":1", T0, "no value"},
		{NODE, "\"asInt\":1", "18446744073709551615", "ahead"},
		{NODE, "\"asInt\":1", "9000000000000000000", "ahead"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(
			take_gauge(r, rows[i].resource, "", rows[i].value, rows[i].time), -EBADMSG);
		assert_int_equal(r->result.rejected, 0); /* refused as a whole */
		if (!strstr(r->result.why, rows[i].why))
			fail_msg("%s: %s", rows[i].why, r->result.why);
	}
	assert_int_equal(take_gauge(r, longer, "", "\"asInt\":1", T0), -EBADMSG);
	assert_int_equal(take_json(r, OTLP_METRICS, "{]"), -EBADMSG);
	assert_int_equal(take_json(r, OTLP_METRICS, "{}"), 0);
	assert_int_equal(keeper_stats(r->keeper).journal.appended, 0);
}

static void test_kinds_of_metrics(void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		take_json(r, OTLP_METRICS,
			"{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" NODE
			"]},\"scopeMetrics\":[{\"metrics\":["
			"{\"name\":\"c\",\"sum\":{\"isMonotonic\":true,\"aggregationTemporality\":2,\"dataPoints\":[{\"timeUnixNano\":\"" T0
			"\",\"asInt\":\"5\"}]}},"
			"{\"name\":\"d\",\"sum\":{\"isMonotonic\":true,\"aggregationTemporality\":1,\"dataPoints\":[{\"timeUnixNano\":\"" T0
			"\",\"asInt\":\"6\"}]}},"
			"{\"name\":\"u\",\"sum\":{\"aggregationTemporality\":2,\"dataPoints\":[{\"timeUnixNano\":\"" T0
			"\",\"asInt\":\"7\"}]}},"
			"{\"name\":\"h\",\"histogram\":{\"aggregationTemporality\":2,\"dataPoints\":[{\"timeUnixNano\":\"" T0
			"\",\"count\":\"9\",\"sum\":4.5}]}},"
			"{\"name\":\"bad\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"" T0
			"\",\"asDouble\":\"Infinity\"}]}}"
			"]}]}]}"),
		0);
	assert_int_equal(r->result.taken, 4);
	assert_int_equal(r->result.rejected, 1);
	assert_non_null(strstr(r->result.why, "finite"));
	expect_row(r, "|metric_name=c|kind=counter|value_double=5|value_int=5|");
	expect_row(r, "|metric_name=d|kind=delta|");
	expect_row(r, "|metric_name=u|kind=gauge|value_double=7|");
	expect_row(r, "|metric_name=h|kind=histogram|value_double=4.5|value_int=9|");
}

static void test_logs_and_chains(void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		take_json(r, OTLP_LOGS,
			"{\"resourceLogs\":[{\"resource\":{\"attributes\":[" NODE
			"]},\"scopeLogs\":[{\"logRecords\":["
			"{\"timeUnixNano\":\"" T0
			"\",\"severityNumber\":17,\"body\":{\"stringValue\":\"it broke\"},\"attributes\":[" TEXT(
				"pod",
				"p") "]},"
				     "{\"observedTimeUnixNano\":\"" T0
				     "\",\"eventName\":\"ingero.causal_chain\",\"attributes\":[" TEXT(
					     "id", "ch1") "," TEXT("severity",
					     "HIGH") "," TEXT("summary",
					     "slow disk") "," TEXT("root_cause",
					     "rsync") ",{\"key\":\"p99_us\",\"value\":{\"doubleValue\":12.5}}"
						      "]}]}]}]}"),
		0);
	assert_int_equal(r->result.taken, 2);
	expect_row(r, "|metric_name=log|kind=log|body=it broke|attrs={\"pod\":\"p\"}|severity=17|");
	expect_row(r, "causal_chains|detected_at=");
	expect_row(r,
		"|node_id=n1|id=ch1|severity=HIGH|summary=slow disk|root_cause=rsync|p99_us=12.5|");
	assert_int_equal(r->store.row_count, 3);
}

static void test_spans(void **state)
{
	struct rig *r = *state;

	assert_int_equal(
		take_json(r, OTLP_TRACES,
			"{\"resourceSpans\":[{\"resource\":{\"attributes\":[" NODE
			"]},\"scopeSpans\":[{\"spans\":["
			"{\"traceId\":\"0102030405060708090a0b0c0d0e0f10\",\"spanId\":\"00000000000000Af\",\"name\":\"step\",\"kind\":2,"
			"\"startTimeUnixNano\":\"1700000000000000000\",\"endTimeUnixNano\":\"1700000001500000000\","
			"\"status\":{\"code\":2},\"attributes\":[" INT("rank", "4") "]}]}]}]}"),
		0);
	expect_row(r,
		"|rank=4|metric_name=step|kind=span|value_double=1.5|unit=s|"
		"attrs={\"trace_id\":\"0102030405060708090a0b0c0d0e0f10\",\"span_id\":\"00000000000000af\","
		"\"span_kind\":\"server\",\"error\":true}|");
}

/* ---- what agents push ---- */

static const struct push_who agent = {
	.cluster = "c1", .node = "n1", .rank = 2, .world_size = 8, .boot = 77};

static int take_calls(struct rig *r, uint64_t batch, int64_t sent_ns)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_call items[2] = {{.comm = 0xabc,
					     .seq = 1,
					     .bytes = 4096,
					     .enter_ns = 1000,
					     .leave_ns = 2000,
					     .wait_ns = 500,
					     .rank = 2,
					     .nranks = 8,
					     .peer = -1,
					     .world_rank = 2,
					     .pid = 9,
					     .op = 3},
		{.comm = 0xabc,
			.seq = 2,
			.bytes = 4096,
			.enter_ns = 3000,
			.leave_ns = 0,
			.wait_ns = UINT64_MAX,
			.rank = 2,
			.nranks = 8,
			.peer = -1,
			.world_rank = 2,
			.pid = 9,
			.op = 3}};
	const struct push_calls c = {
		.who = agent, .batch = batch, .sent_ns = sent_ns, .items = items, .count = 2};

	push_calls_protobuf(&b, &c);
	take(r, OTLP_LOGS, false, b.data, b.len);
	loop_run(r->journal->loop);
	return r->result.err;
}

static void test_collectives(void **state)
{
	struct rig *r = *state;

	assert_int_equal(take_calls(r, 1, 1700000000), 0);
	expect_row(r, "|metric_name=ingero.collectives|kind=log|");
	expect_row(r, "collectives|enter_ns=1000|");
	expect_row(r,
		"|node_id=n1|leave_ns=2000|wait_ns=500|comm_id_hash=0000000000000abc|op_seq=1|"
		"op_type=AllReduce|rank=2|nranks=8|world_rank=2|bytes=4096|pid=9|");
	expect_row(r, "|node_id=n1|comm_id_hash=0000000000000abc|op_seq=2|");
	assert_int_equal(r->store.row_count, 3);
	/* the same batch in another request: its calls are known */
	assert_int_equal(take_calls(r, 1, 1700000001), 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 4);
	assert_int_equal(take_calls(r, 2, 1700000001), 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 7);
}

static int take_report(struct rig *r, int64_t sent_ns, const char *cause)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_report report = {.who = agent,
		.sent_ns = sent_ns,
		.pid = 9,
		.world_rank = 2,
		.doing = PUSH_DOING_BLOCKED,
		.doing_where = "train.py:41",
		.step_ns = 900,
		.ordinary_ns = 300,
		.line = "disk",
		.line_ns = 500,
		.fix = "move it",
		.incident = "inc-1",
		.confidence = 0.5};

	snprintf(report.cause, sizeof(report.cause), "%s", cause);
	push_report_write(&b, &report, false);
	take(r, OTLP_LOGS, false, b.data, b.len);
	loop_run(r->journal->loop);
	return r->result.err;
}

static void test_reports(void **state)
{
	struct rig *r = *state;

	assert_int_equal(take_report(r, 5, "rsync"), 0);
	expect_row(r, "steps|ts_ns=5|");
	expect_row(r, "|node_id=n1|rank=2|pid=9|step_ns=900|ordinary_ns=300|line=disk|line_ns=500|"
		      "doing=blocked|doing_where=train.py:41|");
	expect_row(r, "incidents|ts_ns=5|");
	expect_row(r,
		"|id=inc-1|source=node|kind=slow|rank=2|summary=rsync|root_cause=rsync|fix=move it|"
		"confidence=0.5|lost_ns=600|resolved=0|");
	assert_int_equal(r->store.row_count, 3);
	assert_int_equal(take_report(r, 6, "rsync"), 0); /* told again: a step, no new incident */
	rows_of(r);
	assert_int_equal(r->store.row_count, 5);
	assert_int_equal(take_report(r, 7, "a neighbour"), 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 8);
}

static void test_chains_of_an_agent(void **state)
{
	struct rig *r = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	const struct push_chain chains[] = {
		{.detected_ns = 1000,
			.id = "chain-1",
			.summary = "slow copies",
			.attributes = {{.key = "id", .text = "chain-1"},
				{.key = "severity", .text = "HIGH"},
				{.key = "summary", .text = "slow copies"},
				{.key = "root_cause", .text = "rsync"},
				{.key = "explanation", .text = "in full"},
				{.key = "recommendations", .text = "[\"move it\"]"},
				{.key = "timeline", .text = "[]"},
				{.key = "cuda_op", .text = "cudaMemcpy"},
				{.key = "p99_us", PUSH_REAL, .d = 900},
				{.key = "p50_us", PUSH_REAL, .d = 30},
				{.key = "tail_ratio", PUSH_REAL, .d = 30}},
			.attribute_count = 11},
		{.detected_ns = 2000,
			.id = "chain-2",
			.summary = "",
			.attributes = {{.key = "id", .text = "chain-2"},
				{.key = "severity", .text = "LOW"}, {.key = "summary", .text = ""}},
			.attribute_count = 3}};

	push_chains_protobuf(&b, &agent, chains, ARRAY_SIZE(chains));
	take(r, OTLP_LOGS, false, b.data, b.len);
	loop_run(r->journal->loop);
	assert_int_equal(r->result.err, 0);
	expect_row(r, "causal_chains|detected_at=1000|");
	expect_row(r,
		"|cluster_id=c1|node_id=n1|id=chain-1|severity=HIGH|summary=slow copies|root_cause=rsync|"
		"explanation=in full|recommendations=[\"move it\"]|cuda_op=cudaMemcpy|p99_us=900|p50_us=30|"
		"tail_ratio=30|timeline=[]|\n");
	expect_row(r, "|node_id=n1|id=chain-2|severity=LOW|\n");
	expect_row(r, "|metric_name=ingero.causal_chain|kind=log|body=slow copies|");
	expect_row(r, "|causal_chain_id=chain-1|");
}

/* Of an incident that goes on: a row of incidents each time, one of causal_chains for each cause and severity;
 * nothing of what comes again, whatever request it comes in. */
static void take_ongoing(struct rig *r, const char *severity, int64_t count, int64_t sent)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct push_who who = agent;
	const struct push_chain chain = {.detected_ns = 1000,
		.id = "chain-1",
		.summary = "slow copies",
		.attributes = {{.key = "id", .text = "chain-1"},
			{.key = "severity", .text = severity},
			{.key = "summary", .text = "slow copies"},
			{.key = "root_cause", .text = "rsync"},
			{.key = "confidence", PUSH_REAL, .d = 0.5},
			{.key = "count", PUSH_INT, .i = count},
			{.key = "excess_ns", PUSH_INT, .i = 90 * count},
			{.key = "last_seen", PUSH_INT, .i = 5000 + count},
			{.key = "resolved_at", PUSH_INT, .i = count == 9 ? 9000 : 0}},
		.attribute_count = 9};

	who.boot = (uint64_t)sent;
	push_chains_protobuf(&b, &who, &chain, 1);
	take(r, OTLP_LOGS, false, b.data, b.len);
	loop_run(r->journal->loop);
	assert_int_equal(r->result.err, 0);
	rows_of(r);
}

static void test_an_incident_that_goes_on(void **state)
{
	struct rig *r = *state;

	take_ongoing(r, "LOW", 1, 1);
	expect_row(r, "causal_chains|detected_at=1000|");
	expect_row(r,
		"|id=chain-1|source=node|kind=slow|summary=slow copies|root_cause=rsync|confidence=0.5|"
		"lost_ns=90|resolved=0|severity=LOW|count=1|last_seen=5001|");
	assert_int_equal(r->store.row_count, 3);
	take_ongoing(r, "LOW", 1, 2); /* the same after a restart of the agent */
	assert_int_equal(r->store.row_count, 3);
	take_ongoing(r, "LOW", 4, 2);
	expect_row(r, "|lost_ns=360|resolved=0|severity=LOW|count=4|last_seen=5004|");
	assert_int_equal(r->store.row_count, 5);
	take_ongoing(r, "HIGH", 8, 2);
	assert_int_equal(r->store.row_count, 8);
	take_ongoing(r, "HIGH", 9, 2);
	expect_row(r, "|resolved=1|severity=HIGH|count=9|last_seen=5009|");
	assert_int_equal(r->store.row_count, 10);
}

static void test_rows_of_our_own(void **state)
{
	struct rig *r = *state;
	_cleanup_(buf_done) struct buf none = BUF_INIT(1);
	struct batch b = {.bytes = BUF_INIT(1 << 16)};

	batch_row(&b, TABLE_INCIDENTS);
	batch_int(&b, INCIDENTS_TS, 1);
	batch_text_of(&b, INCIDENTS_CLUSTER, "c1");
	batch_text_of(&b, INCIDENTS_NODE, "");
	batch_text_of(&b, INCIDENTS_SOURCE, "fleet");
	r->waiting++;
	keeper_take_rows(r->keeper, &b, on_kept, r);
	buf_done(&b.bytes);
	loop_run(r->journal->loop);
	assert_int_equal(r->result.err, 0);
	expect_row(r, "incidents|ts_ns=1|cluster_id=c1|node_id=|source=fleet|");
}

/* ---- who may write ---- */

static void test_tenants(void **state)
{
	struct rig *r = *state;

	r->may_write = "c2";
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), -EACCES);
	assert_non_null(strstr(r->result.why, "tenant_scoped_bearer_refused"));
	/* a point may name another cluster than its resource: that is what counts */
	assert_int_equal(take_gauge(r, TEXT("node_id", "n") "," TEXT("cluster_id", "c2"),
				 TEXT("cluster_id", "c1"), "\"asInt\":1", T0),
		-EACCES);
	assert_int_equal(take_calls(r, 1, 1), -EACCES);
	assert_int_equal(
		take_gauge(r, TEXT("node_id", "n"), "", "\"asInt\":1", T0), -EACCES); /* default */
	assert_int_equal(r->store.row_count, 0);
	r->may_write = "c1"; /* the control */
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), 0);
	assert_int_equal(take_calls(r, 1, 1), 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 4);
}

/* What one sender may not write another one may, and each of them once. */
static void test_two_senders_of_one_request(void **state)
{
#define POINT(cluster)                                                                                     \
	"{\"resource\":{\"attributes\":[" TEXT("node_id", "n") "," TEXT("cluster_id",                      \
		cluster) "]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":{\"dataPoints\":[{" \
			 "\"timeUnixNano\":\"" T0 "\",\"asInt\":1}]}}]}]}"
	static const char both[] = "{\"resourceMetrics\":[" POINT("c1") "," POINT("c2") "]}";
	struct rig *r = *state;

	for (int i = 0; i < 2; i++) {
		r->may_write = "c1";
		r->sender = 1;
		assert_int_equal(take_json(r, OTLP_METRICS, both), 0);
		assert_int_equal(r->result.duplicate, i);
		r->may_write = "c2";
		r->sender = 2;
		assert_int_equal(take_json(r, OTLP_METRICS, both), 0);
		assert_int_equal(r->result.duplicate, i);
	}
	rows_of(r);
	assert_int_equal(r->store.row_count, 2);
}

/* Names that somebody makes up have an end; clusters that were there before it still send. */
static void test_too_many_clusters(void **state)
{
	struct rig *r = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	buf_puts(&b, "{\"resourceMetrics\":[");
	for (int i = 0; i <= CLUSTER_LIMIT; i++)
		buf_printf(&b,
			"%s{\"resource\":{\"attributes\":[" TEXT("node_id",
				"n") ",{\"key\":\"cluster_id\",\"value\":{\"stringValue\":\"x%d\"}}]},"
				     "\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":{\"dataPoints\":[{\"timeUnixNano\":\"" T0
				     "\",\"asInt\":1}]}}]}]}",
			i ? "," : "", i);
	buf_puts(&b, "]}");
	assert_int_equal(take_json(r, OTLP_METRICS, buf_str(&b)), 0);
	assert_int_equal(r->result.taken, CLUSTER_LIMIT);
	assert_int_equal(r->result.rejected, 1);
	assert_non_null(strstr(r->result.why, "fewer names"));
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), -EBADMSG);
	assert_non_null(strstr(r->result.why, "fewer names"));
	assert_int_equal(take_gauge(r, TEXT("node_id", "n") "," TEXT("cluster_id", "x7"), "",
				 "\"asInt\":2", T0),
		0);
}

static void test_names_are_counted_anew(void **state)
{
	struct cluster_limit l = CLUSTER_LIMIT_INIT;
	uint64_t now_ns = 2 * CLUSTER_LIMIT_NS;
	char name[16];

	(void)state;
	for (int i = 0; i <= CLUSTER_LIMIT; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		assert_int_equal(cluster_limit_take(&l, NULL, 0, name, strlen(name), now_ns),
			i < CLUSTER_LIMIT);
	}
	assert_true(
		cluster_limit_take(&l, NULL, 0, name, strlen(name), now_ns + CLUSTER_LIMIT_NS + 1));
	cluster_limit_done(&l);
}

static bool has_old(struct store *s, const char *cluster, size_t len)
{
	(void)s;
	return len == 3 && !memcmp(cluster, "old", 3);
}

/* A token that makes names up shuts out neither other tokens nor clusters that have rows. */
static void test_names_of_one_token(void **state)
{
	const struct store_ops ops = {.has = has_old};
	struct store store = {.ops = &ops};
	struct cluster_limit l = CLUSTER_LIMIT_INIT;
	uint64_t now_ns = 2 * CLUSTER_LIMIT_NS;
	char name[16];

	(void)state;
	for (int i = 0; i <= CLUSTER_LIMIT; i++) {
		snprintf(name, sizeof(name), "x%d", i);
		assert_int_equal(cluster_limit_take(&l, &store, 1, name, strlen(name), now_ns),
			i < CLUSTER_LIMIT / 2);
	}
	assert_true(cluster_limit_take(&l, &store, 2, "prod", 4, now_ns));
	assert_true(cluster_limit_take(&l, &store, 1, "prod", 4, now_ns)); /* it is not new now */
	for (int i = 0; i < CLUSTER_LIMIT; i++) {
		snprintf(name, sizeof(name), "y%d", i);
		cluster_limit_take(&l, &store, 2, name, strlen(name), now_ns);
	}
	assert_false(cluster_limit_take(
		&l, &store, 3, "new", 3, now_ns)); /* all places are taken (control) */
	assert_true(cluster_limit_take(&l, &store, 3, "old", 3, now_ns));
	cluster_limit_done(&l);
}

/* ---- duplicates ---- */

static void test_same_request_counts_once(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 5; i++) {
		assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), 0);
		assert_int_equal(r->result.duplicate, i > 0);
	}
	rows_of(r);
	assert_int_equal(r->store.row_count, 1);
	assert_int_equal(keeper_stats(r->keeper).duplicates, 4);
	/* without a time each is its own */
	for (int i = 0; i < 3; i++)
		assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", "0"), 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 4);
}

static void test_duplicate_while_the_first_is_written(void **state)
{
	struct rig *r = *state;
	static const char text[] =
		"{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" NODE
		"]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":{\"dataPoints\":["
		"{\"timeUnixNano\":\"" T0 "\",\"asInt\":\"1\"}]}}]}]}]}";

	take(r, OTLP_METRICS, true, text, strlen(text));
	take(r, OTLP_METRICS, true, text, strlen(text));
	assert_int_equal(r->result.err, -EAGAIN); /* not kept yet: to come again */
	loop_run(r->journal->loop);
	assert_int_equal(r->result.err, 0);
	/* a failed one is not known */
	faults.write_in = 1;
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":2", T0), -EIO);
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":2", T0), 0);
	assert_false(r->result.duplicate);
	rows_of(r);
	assert_int_equal(r->store.row_count, 2);
}

static void test_duplicates_over_restarts(void **state)
{
	struct rig *r = *state;

	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), 0);
	assert_int_equal(take_calls(r, 1, 1), 0);
	rows_of(r);
	for (int i = 0; i < 3; i++) {
		close_keeper(r);
		open_keeper(r, 0);
		assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), 0);
		assert_true(r->result.duplicate);
		assert_int_equal(take_calls(r, 1, 1), 0);
		assert_true(r->result.duplicate);
	}
	rows_of(r);
	assert_int_equal(r->store.row_count, 4);
}

static void stop_loop(void *arg)
{
	loop_stop(arg);
}

static void run_for(struct rig *r, uint64_t ns)
{
	struct loop_timer *t = NULL;

	assert_int_equal(loop_timer_new(r->journal->loop, stop_loop, r->journal->loop, &t), 0);
	loop_timer_set(t, ns);
	loop_run(r->journal->loop);
	loop_timer_free(t);
}

/* The journal is trimmed, and what it said of duplicates stays known. */
static void test_duplicates_over_trimming(void **state)
{
	struct rig *r = *state;
	char value[64];

	close_keeper(r);
	open_keeper(r, 1024);
	for (int i = 0; i < 50; i++) {
		snprintf(value, sizeof(value), "\"asInt\":%d", i);
		assert_int_equal(take_gauge(r, NODE, "", value, T0), 0);
	}
	rows_of(r);
	assert_true(keeper_stats(r->keeper).journal.segments > 5);
	for (int i = 0; i < 200 && keeper_stats(r->keeper).journal.segments > 1; i++)
		run_for(r, 100 * NS_PER_MS);
	assert_int_equal(keeper_stats(r->keeper).journal.segments, 1);
	for (int turn = 0; turn < 2; turn++) {
		for (int i = 0; i < 50; i++) {
			snprintf(value, sizeof(value), "\"asInt\":%d", i);
			assert_int_equal(take_gauge(r, NODE, "", value, T0), 0);
			assert_true(r->result.duplicate);
		}
		close_keeper(r);
		open_keeper(r, 1024);
	}
	rows_of(r);
	assert_int_equal(r->store.row_count, 50);
}

/* ---- failures ---- */

static void test_store_that_fails_for_a_while(void **state)
{
	struct rig *r = *state;

	r->store.commit_err = -EIO;
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), 0); /* it is in the journal */
	for (int i = 0; i < 2000 && !keeper_stats(r->keeper).degraded; i++)
		usleep(5000);
	assert_non_null(strstr(keeper_stats(r->keeper).why, "commits nothing"));
	r->store.take_err = -ENOSPC;
	r->store.commit_err = 0;
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":2", T0), 0);
	r->store.take_err = 0;
	rows_of(r);
	assert_int_equal(r->store.row_count, 2);
	assert_false(keeper_stats(r->keeper).degraded);
}

static void test_backlog_is_bounded(void **state)
{
	struct rig *r = *state;
	char value[64];
	int i, err = 0;

	r->store.take_err = -EIO;
	for (i = 0; i < 2000 && err == 0; i++) {
		snprintf(value, sizeof(value), "\"asInt\":%d", i);
		err = take_gauge(r, NODE, "", value, T0);
	}
	assert_int_equal(err, -EAGAIN);
	assert_int_equal(i, 1002);
	r->store.take_err = 0;
	rows_of(r);
	assert_int_equal(r->store.row_count, 1001);
	assert_int_equal(take_gauge(r, NODE, "", value, T0), 0);
}

/* Nothing is durable in the store: after a crash all comes from the journal again, once. */
static void test_replay(void **state)
{
	struct rig *r = *state;
	char value[64];

	r->store.is_lazy = true;
	for (int i = 0; i < 20; i++) {
		snprintf(value, sizeof(value), "\"asInt\":%d", i);
		assert_int_equal(take_gauge(r, NODE, "", value, T0), 0);
	}
	rows_of(r);
	for (int i = 0; i < 3; i++) {
		close_keeper(r);
		memory_store_crash(&r->store);
		assert_int_equal(r->store.row_count, 0);
		open_keeper(r, 0);
		rows_of(r);
		assert_int_equal(r->store.row_count, 20);
	}
}

/* A store that was put back from long ago: what it needs is not there any more, and told so. */
static void test_journal_that_begins_too_late(void **state)
{
	struct rig *r = *state;
	struct keeper_settings s = {.store = &r->store.store};
	struct errinfo e = {0};

	close_keeper(r);
	assert_int_equal(open_journal(r->journal, 0, 501), 0);
	assert_int_equal(append_and_wait(r->journal, "an entry"), 0);
	s.journal = r->journal->journal;
	assert_int_equal(keeper_new(r->journal->loop, &s, &r->keeper, &e), 0);
	while (keeper_stats(r->keeper).replaying)
		nanosleep(&(struct timespec){.tv_nsec = (long)NS_PER_MS}, NULL);
	assert_int_equal(keeper_stats(r->keeper).lost, 500);
	assert_int_equal(r->store.lost, 500);
}

static void on_finished(void *arg)
{
	struct rig *r = arg;

	r->finished = true;
	loop_stop(r->journal->loop);
}

static void test_finish(void **state)
{
	struct rig *r = *state;
	static const char *const values[] = {"\"asInt\":1", "\"asInt\":2", "\"asInt\":3"};

	r->store.is_lazy = true;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_int_equal(take_gauge(r, NODE, "", values[i], T0), 0);
	keeper_finish(r->keeper, on_finished, r);
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":4", T0), -EAGAIN);
	while (!r->finished)
		loop_run(r->journal->loop);
	assert_int_equal(r->store.row_count, 3);
	assert_int_equal(r->store.durable, 3);
}

static void test_finish_with_a_store_that_fails(void **state)
{
	struct rig *r = *state;

	r->store.take_err = -EIO;
	assert_int_equal(take_gauge(r, NODE, "", "\"asInt\":1", T0), 0);
	keeper_finish(r->keeper, on_finished, r);
	while (!r->finished)
		loop_run(r->journal->loop);
	r->store.take_err = 0;
	close_keeper(r);
	open_keeper(r, 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 1);
}

static void test_free_while_a_request_waits(void **state)
{
	struct rig *r = *state;
	static const char text[] = "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[" NODE
				   "]},\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":{"
				   "\"dataPoints\":[{\"asInt\":\"1\"}]}}]}]}]}";

	for (int i = 0; i < 10; i++)
		take(r, OTLP_METRICS, true, text, strlen(text));
	close_keeper(r);
	assert_int_equal(r->waiting, 0);
	assert_int_equal(r->result.err, -ECANCELED);
}

/* ---- large requests, of which a thread makes the rows ---- */

#define LARGE_POINTS 4000

/* Points of two clusters in turn, c1 first. */
static void put_large(struct buf *b)
{
	buf_puts(b, "{\"resourceMetrics\":[");
	for (int i = 0; i < LARGE_POINTS; i++)
		buf_printf(b, "%s%s", i ? "," : "", i % 2 ? POINT("c2") : POINT("c1"));
	buf_puts(b, "]}");
	assert_int_equal(b->err, 0);
	assert_true(b->len > KEEPER_LARGE);
}

/* The large one came first, and its rows are made while the small one is taken. */
static void test_large_keeps_nobody_waiting(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	static const char small[] = "{\"resourceMetrics\":[" POINT("small") "]}";
	struct rig *r = *state;
	const char *rows;

	put_large(&large);
	take(r, OTLP_METRICS, true, large.data, large.len);
	assert_int_equal(r->waiting, 1);
	take(r, OTLP_METRICS, true, small, strlen(small));
	loop_run(r->journal->loop);
	assert_int_equal(r->kept, 2);
	rows = rows_of(r);
	assert_int_equal(r->store.row_count, LARGE_POINTS + 1);
	assert_true(strstr(rows, "cluster_id=small") < strstr(rows, "cluster_id=c1"));
}

static void test_large_of_tenants(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	struct rig *r = *state;

	put_large(&large);
	r->may_write = "c1";
	r->sender = 7;
	assert_int_equal(take_json(r, OTLP_METRICS, buf_str(&large)), 0);
	assert_int_equal(r->result.taken, LARGE_POINTS / 2);
	assert_int_equal(r->result.rejected, LARGE_POINTS / 2);
	assert_non_null(strstr(r->result.why, "tenant_scoped_bearer_refused"));
	r->may_write = "c3";
	r->sender = 8;
	assert_int_equal(take_json(r, OTLP_METRICS, buf_str(&large)), -EACCES);
	assert_null(strstr(rows_of(r), "cluster_id=c2"));
	assert_int_equal(r->store.row_count, LARGE_POINTS / 2);
}

static void test_large_counts_once(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	struct rig *r = *state;

	put_large(&large);
	take(r, OTLP_METRICS, true, large.data, large.len);
	take(r, OTLP_METRICS, true, large.data, large.len);
	loop_run(r->journal->loop);
	/* the second came while the first was written, or after that */
	assert_int_equal(r->kept, 1);
	assert_int_equal(take_json(r, OTLP_METRICS, buf_str(&large)), 0);
	assert_true(r->result.duplicate);
	rows_of(r);
	assert_int_equal(r->store.row_count, LARGE_POINTS);
}

/* A batch that is in two requests, a small one and a large one. */
static void test_large_is_known_in_part(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	static struct push_call many[20000];
	struct push_calls more = {
		.who = agent, .batch = 2, .sent_ns = 5, .items = many, .count = ARRAY_SIZE(many)};
	struct push_call one[] = {{.comm = 0xabc, .seq = 1, .nranks = 8, .peer = -1}};
	struct push_calls first = {
		.who = agent, .batch = 1, .sent_ns = 4, .items = one, .count = 1};
	struct rig *r = *state;

	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct push_call){.comm = hash_number(i) | 1,
			.seq = hash_number(i) >> 8,
			.nranks = 8,
			.peer = -1};
	assert_int_equal(take_calls(r, 1, 1700000000), 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 3);
	push_calls_protobuf(&large, &first);
	push_calls_protobuf(&large, &more);
	assert_true(large.len > KEEPER_LARGE);
	take(r, OTLP_LOGS, false, large.data, large.len);
	loop_run(r->journal->loop);
	assert_int_equal(r->result.err, 0);
	rows_of(r);
	assert_int_equal(r->store.row_count, 3 + 2 + ARRAY_SIZE(many)); /* two events, one batch */
}

/* What is left of it is made by the thread as well: there a cluster is asked about once, where the rows of 100 batches
 * are made in one turn of the loop it would be for each. */
static void test_large_is_made_again_by_the_thread(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	struct push_call many[200];
	struct push_calls c = {
		.who = agent, .sent_ns = 5, .items = many, .count = ARRAY_SIZE(many)};
	struct rig *r = *state;

	assert_int_equal(take_calls(r, 1, 1700000000), 0);
	for (c.batch = 1; c.batch <= 100; c.batch++) {
		for (size_t i = 0; i < ARRAY_SIZE(many); i++)
			many[i] = (struct push_call){.comm = hash_number(c.batch << 8 | i) | 1,
				.seq = i,
				.nranks = 8,
				.peer = -1};
		push_calls_protobuf(&large, &c);
	}
	assert_true(large.len > KEEPER_LARGE);
	r->may_write = "c1";
	r->asked = 0;
	take(r, OTLP_LOGS, false, large.data, large.len);
	loop_run(r->journal->loop);
	assert_int_equal(r->result.err, 0);
	assert_in_range(r->asked, 1, 2);
	rows_of(r);
	assert_int_equal(r->store.row_count, 3 + 100 + 99 * ARRAY_SIZE(many));
}

/* A batch that is in two large requests at once: the one that is made last is not written twice. */
static void test_large_ones_that_share_a_batch(void **state)
{
	struct buf large[2] = {BUF_INIT(8 << 20), BUF_INIT(8 << 20)};
	struct push_call many[4000];
	struct push_calls c = {
		.who = agent, .sent_ns = 5, .items = many, .count = ARRAY_SIZE(many)};
	struct rig *r = *state;

	assert_int_equal(take_calls(r, 9, 1700000000), 0);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct push_call){
			.comm = hash_number(i) | 1, .seq = i, .nranks = 8, .peer = -1};
	for (uint64_t i = 0; i < 2; i++) {
		static const uint64_t batches[] = {9, 1, 2}; /* 9 is known, 1 in both */

		for (size_t k = 0; k < ARRAY_SIZE(batches); k++) {
			c.batch = batches[k] + (batches[k] == 2 ? i : 0);
			push_calls_protobuf(&large[i], &c);
		}
		take(r, OTLP_LOGS, false, large[i].data, large[i].len);
	}
	loop_run(r->journal->loop);
	while (r->result.err == -EAGAIN) { /* the second one comes again */
		take(r, OTLP_LOGS, false, large[1].data, large[1].len);
		loop_run(r->journal->loop);
	}
	assert_int_equal(r->result.err, 0);
	rows_of(r);
	/* three batches, and the four records that are told in different words */
	assert_int_equal(r->store.row_count, 3 + 4 + 3 * ARRAY_SIZE(many));
	buf_done(&large[0]);
	buf_done(&large[1]);
}

static void test_large_that_is_no_request(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	struct rig *r = *state;

	put_large(&large);
	large.len -= 3;
	take(r, OTLP_METRICS, true, large.data, large.len);
	loop_run(r->journal->loop);
	assert_int_equal(r->result.err, -EBADMSG);
	assert_int_equal(keeper_stats(r->keeper).refused, 1);
}

static void test_free_while_rows_are_made(void **state)
{
	_cleanup_buf_ struct buf large = BUF_INIT(8 << 20);
	static struct loop_task last;
	struct rig *r = *state;

	put_large(&large);
	for (int i = 0; i < 3; i++)
		take(r, OTLP_METRICS, true, large.data, large.len);
	close_keeper(r);
	assert_int_equal(r->waiting, 0);
	assert_int_equal(r->result.err, -ECANCELED);
	assert_int_equal(r->kept, 0);
	loop_post(r->journal->loop, &last, stop_loop, r->journal->loop);
	loop_run(r->journal->loop); /* which frees what was under way */
}

#define KEEPER_TEST(f) cmocka_unit_test_setup_teardown(f, keeper_setup, keeper_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEEPER_TEST(test_gauge),
		KEEPER_TEST(test_names_of_clusters_and_nodes),
		KEEPER_TEST(test_rejected_points),
		KEEPER_TEST(test_kinds_of_metrics),
		KEEPER_TEST(test_logs_and_chains),
		KEEPER_TEST(test_spans),
		KEEPER_TEST(test_collectives),
		KEEPER_TEST(test_reports),
		KEEPER_TEST(test_chains_of_an_agent),
		KEEPER_TEST(test_an_incident_that_goes_on),
		KEEPER_TEST(test_rows_of_our_own),
		KEEPER_TEST(test_tenants),
		KEEPER_TEST(test_two_senders_of_one_request),
		KEEPER_TEST(test_too_many_clusters),
		cmocka_unit_test(test_names_are_counted_anew),
		cmocka_unit_test(test_names_of_one_token),
		KEEPER_TEST(test_same_request_counts_once),
		KEEPER_TEST(test_duplicate_while_the_first_is_written),
		KEEPER_TEST(test_duplicates_over_restarts),
		KEEPER_TEST(test_duplicates_over_trimming),
		KEEPER_TEST(test_store_that_fails_for_a_while),
		KEEPER_TEST(test_backlog_is_bounded),
		KEEPER_TEST(test_replay),
		KEEPER_TEST(test_journal_that_begins_too_late),
		KEEPER_TEST(test_finish),
		KEEPER_TEST(test_finish_with_a_store_that_fails),
		KEEPER_TEST(test_free_while_a_request_waits),
		KEEPER_TEST(test_large_keeps_nobody_waiting),
		KEEPER_TEST(test_large_of_tenants),
		KEEPER_TEST(test_large_counts_once),
		KEEPER_TEST(test_large_is_known_in_part),
		KEEPER_TEST(test_large_is_made_again_by_the_thread),
		KEEPER_TEST(test_large_ones_that_share_a_batch),
		KEEPER_TEST(test_large_that_is_no_request),
		KEEPER_TEST(test_free_while_rows_are_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
