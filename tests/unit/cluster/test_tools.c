/* SPDX-License-Identifier: Apache-2.0 */
/* test_tools.c - the cluster's tools on a store whose rows are known. Every answer is checked against its
 * tool's schema. */
#include "store_duck_fixture.h"

#include "calls_fixture.h"
#include "cluster/answer/tool.h"
#include "cluster/simulate/job.h"
#include "mcp/registry.h"
#include "wire/names.h"

#define SCORE "ingero.node.health_score"

struct world {
	struct scratch_store *scratch;
	struct batch b;
	uint64_t position;
	int64_t now_ns;
	struct tenant tenant; /* who asks */
	char text[8192];      /* of the last answer */
	mono_time came;       /* of the next question; 0: now */
};

static int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	void *scratch = NULL;

	assert_non_null(w);
	assert_int_equal(scratch_setup(&scratch), 0);
	w->scratch = scratch;
	w->b.bytes = BUF_INIT(64u << 20);
	w->now_ns = BEGIN_NS + 60 * SECOND;
	w->tenant = (struct tenant){.name = "", .verbs = ~0u};
	store_begin(w->scratch);
	*state = w;
	return 0;
}

static int world_teardown(void **state)
{
	struct world *w = *state;
	void *scratch = w->scratch;

	buf_done(&w->b.bytes);
	scratch_teardown(&scratch);
	free(w);
	return 0;
}

static void commit(struct world *w)
{
	assert_int_equal(take_batch(w->scratch->store, ++w->position, &w->b), 0);
	assert_int_equal(store_commit(w->scratch->store, NULL), 0);
	w->b = (struct batch){.bytes = BUF_INIT(64u << 20)};
}

static void put_point(struct world *w, const char *cluster, const char *node, const char *metric,
	const char *kind, const char *attributes, double v, int64_t ago_ns)
{
	struct batch *b = &w->b;

	batch_row(b, TABLE_EVENTS);
	batch_int(b, EVENTS_TS, w->now_ns - ago_ns);
	batch_int(b, EVENTS_RECEIVED, w->now_ns - ago_ns);
	batch_text_of(b, EVENTS_CLUSTER, cluster);
	batch_text_of(b, EVENTS_NODE, node);
	batch_text_of(b, EVENTS_NAME, metric);
	batch_text_of(b, EVENTS_KIND, kind);
	batch_real(b, EVENTS_REAL, v);
	batch_int(b, EVENTS_INT, (int64_t)v);
	batch_text_of(b, EVENTS_ATTRIBUTES, attributes);
}

static void put_score(
	struct world *w, const char *cluster, const char *node, double v, int64_t ago_ns)
{
	put_point(w, cluster, node, SCORE, "gauge", NULL, v, ago_ns);
}

static void put_incident(struct world *w, const char *node, const char *id, const char *kind,
	int64_t lost_ns, double cost, bool over)
{
	struct batch *b = &w->b;

	batch_row(b, TABLE_INCIDENTS);
	batch_int(b, INCIDENTS_TS, w->now_ns - SECOND);
	batch_int(b, INCIDENTS_RECEIVED, w->now_ns);
	batch_text_of(b, INCIDENTS_CLUSTER, "red");
	batch_text_of(b, INCIDENTS_NODE, node);
	batch_text_of(b, INCIDENTS_ID, id);
	batch_text_of(b, INCIDENTS_SOURCE, "fleet");
	batch_text_of(b, INCIDENTS_KIND, kind);
	batch_text_of(b, INCIDENTS_SUMMARY, "it is late");
	batch_text_of(b, INCIDENTS_CAUSE, "its disk is busy");
	batch_int(b, INCIDENTS_LOST, lost_ns);
	if (cost >= 0)
		batch_real(b, INCIDENTS_COST, cost);
	batch_int(b, INCIDENTS_RESOLVED, over);
}

/* The calls of @j, pushed at its present time. */
static void put_calls(struct world *w, struct job *j, const char *cluster)
{
	char text[32], scratch[32];

	for (size_t i = 0; i < j->count; i++) {
		const struct push_call *c = &j->items[i].call;
		struct batch *b = &w->b;

		batch_row(b, TABLE_COLLECTIVES);
		batch_int(b, COLLECTIVES_TS, c->enter_ns);
		batch_int(b, COLLECTIVES_RECEIVED, j->now_ns + 2 * MS);
		batch_text_of(b, COLLECTIVES_CLUSTER, cluster);
		snprintf(text, sizeof(text), "node-%02u", j->items[i].node);
		batch_text_of(b, COLLECTIVES_NODE, text);
		if (c->leave_ns)
			batch_int(b, COLLECTIVES_LEAVE, c->leave_ns);
		if (c->wait_ns != UINT64_MAX)
			batch_int(b, COLLECTIVES_WAIT, (int64_t)c->wait_ns);
		snprintf(text, sizeof(text), "%016llx", (unsigned long long)c->comm);
		batch_text_of(b, COLLECTIVES_COMM, text);
		batch_int(b, COLLECTIVES_SEQ, (int64_t)c->seq);
		batch_text_of(b, COLLECTIVES_OP, wire_op_name(SOURCE_NCCL, c->op, scratch) + 4);
		batch_int(b, COLLECTIVES_RANK, c->rank);
		batch_int(b, COLLECTIVES_NRANKS, c->nranks);
		batch_int(b, COLLECTIVES_WORLD, c->world_rank);
		if (c->peer >= 0)
			batch_int(b, COLLECTIVES_PEER, c->peer);
		batch_int(b, COLLECTIVES_BYTES, (int64_t)c->bytes);
		batch_int(b, COLLECTIVES_PID, c->pid);
	}
	w->now_ns = j->now_ns + SECOND;
	j->count = 0;
}

/* What @name answers; NULL: it fails with *ret_err. The caller's. */
static json_t *try_tool(struct world *w, const char *name, const char *arguments, int *ret_err)
{
	const struct tool *t = tool_find(name);
	_cleanup_buf_ struct buf text = BUF_INIT(1u << 20), why = BUF_INIT(1024);
	json_t *args = json_loads(arguments, 0, NULL), *schema, *data = NULL;
	struct errinfo e = {0};
	struct tool_call c = {.store = w->scratch->store,
		.tenant = &w->tenant,
		.now_ns = w->now_ns,
		.arguments = args,
		.came = w->came};

	assert_non_null(t);
	assert_non_null(args);
	schema = param_schema(tool_params, t->params, t->needs, false);
	assert_non_null(schema);
	assert_int_equal(schema_check(schema, args, &why), 0);
	json_decref(schema);
	*ret_err = tool_run(t, &c, &data, &text, &e);
	json_decref(args);
	snprintf(w->text, sizeof(w->text), "%s", *ret_err < 0 ? e.text : buf_str(&text));
	if (*ret_err < 0)
		return NULL;
	schema = json_loads(t->output, 0, NULL);
	assert_non_null(schema);
	if (schema_check(schema, data, &why) < 0)
		fail_msg("%s: %s", name, buf_str(&why));
	json_decref(schema);
	assert_true(w->text[0]);
	return data;
}

static json_t *ask(struct world *w, const char *name, const char *arguments)
{
	int err;
	json_t *data = try_tool(w, name, arguments, &err);

	if (!data)
		fail_msg("%s: %s", name, w->text);
	return data;
}

static const json_t *at(const json_t *o, const char *list, size_t i)
{
	return json_array_get(json_object_get(o, list), i);
}

static size_t count(const json_t *o, const char *list)
{
	return json_array_size(json_object_get(o, list));
}

static double number(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

static const char *word(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static bool has_reason(const json_t *straggler, const char *reason)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(straggler, "reasons"), i, one)
		if (!strcmp(json_string_value(one), reason))
			return true;
	return false;
}

static const json_t *straggler(const json_t *o, const char *node)
{
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(o, "stragglers"), i, one)
		if (!strcmp(word(one, "node_id"), node))
			return one;
	return NULL;
}

/* ---- nothing ---- */

static void test_empty(void **state)
{
	for (const struct tool *t = cluster_tools; t->name; t++) {
		bool sql = t->verb == TENANT_SQL;

		if (!sql)
			json_decref(ask(*state, t->name, "{}"));
	}
	assert_null(tool_find("fleet.cluster.nothing"));
}

static void test_arguments(void **state)
{
	int err;

	assert_null(try_tool(*state, "fleet.cluster.summary", "{\"since\":\"soon\"}", &err));
	assert_int_equal(err, -EINVAL);
	assert_null(try_tool(
		*state, "fleet.cluster.summary", "{\"since\":\"1h\",\"until\":\"2h\"}", &err));
	assert_int_equal(err, -EINVAL);
	json_decref(ask(*state, "fleet.cluster.summary",
		"{\"since\":\"2023-11-14T22:13:20Z\",\"until\":\"2023-11-15T00:00:00Z\"}"));
}

/* ---- health ---- */

/* Eight nodes, of which two had planted low scores; one of these is well again. */
static void put_scores(struct world *w)
{
	char node[32];

	for (int n = 0; n < 8; n++) {
		snprintf(node, sizeof(node), "gpu-node-%02d", n);
		for (int i = 20; i > 0; i--) {
			bool low = (n == 3 && i <= 9) || (n == 5 && i == 15);

			put_score(w, "red", node, low ? 0.30 : 0.95, i * SECOND);
		}
	}
	put_score(w, "blue", "gpu-node-03", 0.1, SECOND);
	commit(w);
}

static void test_low_scores(void **state)
{
	struct world *w = *state;
	const json_t *s;
	json_t *o;

	put_scores(w);
	o = ask(w, "fleet.cluster.find_stragglers", "{\"cluster_id\":\"red\"}");
	assert_int_equal(count(o, "stragglers"), 2);
	assert_string_equal(word(at(o, "stragglers", 0), "node_id"), "gpu-node-03");
	s = json_object_get(at(o, "stragglers", 0), "score");
	assert_true(number(s, "low_points") == 9 && number(s, "points") == 20);
	assert_true(json_is_true(json_object_get(s, "low_now")));
	s = json_object_get(straggler(o, "gpu-node-05"), "score");
	assert_true(number(s, "low_points") == 1);
	assert_true(json_is_false(json_object_get(s, "low_now")));
	assert_non_null(strstr(w->text, "gpu-node-03"));
	json_decref(o);

	o = ask(w, "fleet.cluster.find_stragglers", "{\"cluster_id\":\"red\",\"threshold\":0.2}");
	assert_int_equal(count(o, "stragglers"), 0);
	assert_non_null(strstr(w->text, "No straggler found"));
	json_decref(o);
	/* A cluster that has sent nothing, or whose name is wrong, is not well. */
	o = ask(w, "fleet.cluster.find_stragglers", "{\"cluster_id\":\"rde\"}");
	assert_int_equal(count(o, "stragglers"), 0);
	assert_non_null(strstr(w->text, "nothing can be said: check cluster_id"));
	assert_null(strstr(w->text, "No straggler"));
	json_decref(o);
}

static void test_summary(void **state)
{
	struct world *w = *state;
	const json_t *c;
	json_t *o;

	put_scores(w);
	put_incident(w, "gpu-node-03", "i1", "straggler", 5 * SECOND, -1, false);
	put_incident(w, "gpu-node-03", "i2", "hang", 5 * SECOND, 2, true);
	commit(w);
	o = ask(w, "fleet.cluster.summary", "{}");
	assert_int_equal(count(o, "clusters"), 2);
	c = at(o, "clusters", 0);
	assert_string_equal(word(c, "cluster_id"), "red");
	assert_true(number(c, "nodes") == 8 && number(c, "points") == 160);
	assert_true(number(c, "low_nodes") == 2 && number(c, "silent_nodes") == 0);
	assert_true(number(c, "incidents") == 2 && number(c, "open_incidents") == 1);
	assert_true(number(c, "cost") == 2);
	assert_string_equal(word(at(o, "worst_nodes", 0), "cluster_id"), "blue");
	assert_string_equal(word(at(o, "worst_nodes", 1), "node_id"), "gpu-node-03");
	assert_non_null(strstr(w->text, "gpu-node-03"));
	json_decref(o);

	w->now_ns += 300 * SECOND;
	o = ask(w, "fleet.cluster.summary", "{\"cluster_id\":\"red\"}");
	assert_true(number(at(o, "clusters", 0), "silent_nodes") == 8);
	json_decref(o);
}

/* ---- collectives ---- */

/* @steps steps of 32 ranks on 8 nodes with clocks that are wrong; rank 13, on node-03, is late in every
 * @period-th. */
static void put_job(struct world *w, int steps, int period, int64_t lag_ns)
{
	struct job j;

	job_init(&j, 32, 4);
	job_skew(&j, 20 * MS);
	for (int i = 0; i < steps; i++) {
		job_step(&j, 100 * MS, period && i % period == 0 ? 13 : -1, lag_ns);
		if (i % 10 == 9)
			put_calls(w, &j, "red");
	}
	put_calls(w, &j, "red");
	commit(w);
	job_done(&j);
}

static void test_late_rank(void **state)
{
	struct world *w = *state;
	const json_t *s, *rank;
	json_t *o;

	put_job(w, 60, 1, 30 * MS);
	o = ask(w, "fleet.cluster.find_stragglers", "{}");
	assert_int_equal(count(o, "stragglers"), 1);
	s = straggler(o, "node-03");
	assert_non_null(s);
	assert_true(has_reason(s, "blamed"));
	assert_int_equal(count(s, "ranks"), 1);
	rank = at(s, "ranks", 0);
	assert_true(number(rank, "rank") == 13 && number(rank, "last_count") >= 55);
	assert_true(number(rank, "lag_p50_ns") > 28e6 && number(rank, "lag_p50_ns") < 32e6);
	assert_string_equal(word(rank, "comm_id_hash"), "abcdef0123456789");
	json_decref(o);

	o = ask(w, "fleet.cluster.blame", "{}");
	assert_int_equal(count(o, "verdicts"), 1);
	assert_string_equal(word(at(o, "verdicts", 0), "verdict"), "ranks");
	assert_true(number(at(at(o, "verdicts", 0), "suspects", 0), "rank") == 13);
	assert_non_null(strstr(w->text, "rank 13 on node-03"));
	assert_non_null(strstr(w->text, "31 ranks wait"));
	assert_int_equal(count(o, "incidents"), 0);
	json_decref(o);

	/* what the service itself has told is said in its words, once */
	put_incident(w, "node-03", "i9", "straggler", SECOND, 1.5, false);
	commit(w);
	o = ask(w, "fleet_cluster_blame", "{}");
	assert_int_equal(count(o, "incidents"), 1);
	assert_non_null(strstr(w->text, ": it is late."));
	assert_null(strstr(w->text, "rank 13"));
	json_decref(o);
}

/* Scores fall where others are waited for: by as much as is waited, that is no fault of the node. */
static void test_waiting_is_no_fault(void **state)
{
	struct world *w = *state;
	json_t *o;

	put_job(w, 60, 1, 30 * MS);
	put_score(w, "red", "node-00", 0.80, SECOND);
	put_score(w, "red", "node-01", 0.30, SECOND);
	commit(w);
	o = ask(w, "fleet.cluster.find_stragglers", "{\"threshold\":0.9}");
	assert_int_equal(count(o, "stragglers"), 2);
	assert_true(has_reason(straggler(o, "node-03"), "blamed"));
	assert_true(has_reason(straggler(o, "node-01"), "low_score"));
	json_decref(o);
}

/* Two ranks of another job on nodes @node and the next; both are late in turn by @lag_ns. */
static void put_other_job(struct world *w, int node, uint64_t comm, int64_t lag_ns)
{
	struct job j;

	job_init(&j, 2, 1);
	job_skew(&j, 20 * MS); /* as in put_job() */
	for (int i = 0; i < 60; i++)
		job_step(&j, 100 * MS, lag_ns ? i % 2 : -1, lag_ns);
	for (size_t i = 0; i < j.count; i++) {
		j.items[i].node += (uint32_t)node;
		j.items[i].call.comm = comm;
		j.items[i].call.pid += 5000;
	}
	put_calls(w, &j, "red");
	commit(w);
	job_done(&j);
}

/* One of its processes does not wait, or the late rank is of another job: the score is not explained by that. */
static void test_waiting_of_some(void **state)
{
	struct world *w = *state;
	json_t *o;

	put_job(w, 60, 1, 30 * MS);
	put_other_job(w, 0, 0xb, 0);
	put_other_job(w, 20, 0xc, 20 * MS);
	put_score(w, "red", "node-00", 0.80, SECOND);
	put_score(w, "red", "node-02", 0.80, SECOND);
	put_score(w, "red", "node-20", 0.94, SECOND);
	commit(w);
	o = ask(w, "fleet.cluster.find_stragglers", "{\"threshold\":0.95}");
	assert_true(has_reason(straggler(o, "node-00"), "waits"));
	assert_true(has_reason(straggler(o, "node-20"), "low_score"));
	assert_null(straggler(o, "node-02")); /* the control */
	assert_non_null(strstr(w->text, "some of its ranks wait for a late one"));
	json_decref(o);
}

/* A job of hosts that run ahead, whose rank 2 is sent twice as much from the third part on: its GPU is late, its calls are not. */
static void put_expert(struct world *w)
{
	struct job_spec s = {.seed = 11,
		.data = 6,
		.tensor = 1,
		.pipeline = 1,
		.microbatches = 1,
		.buckets = 3,
		.clips = true,
		.steps = 90,
		.step_ns = 300 * MS,
		.jitter = 0.02,
		.experts = true,
		.async = true,
		.host_share = 0.15,
		.fault = JOB_EXPERT,
		.amount = 1,
		.faulty = {2},
		.faulty_count = 1,
		.from_step = 30};
	struct job_trace t;
	struct job j;

	assert_int_equal(job_run(&s, &t), 0);
	job_init(&j, 6, 6);
	for (size_t i = 0; i < t.call_count; i++) {
		struct push_call c = t.calls[i].c;

		c.enter_ns += BEGIN_NS;
		c.leave_ns += BEGIN_NS;
		c.world_rank = (int32_t)t.calls[i].worker;
		job_add(&j, 0, c);
	}
	j.now_ns += (int64_t)t.span_ns;
	put_calls(w, &j, "red");
	commit(w);
	job_done(&j);
	job_trace_done(&t);
}

static void test_late_gpu(void **state)
{
	json_t *o;

	put_expert(*state);
	o = ask(*state, "fleet.cluster.blame", "{}");
	assert_true(number(at(at(o, "verdicts", 0), "suspects", 0), "rank") == 2);
	print_message("# %s\n", ((struct world *)*state)->text);
	assert_non_null(strstr(((struct world *)*state)->text,
		"rank 2 on node-00 keeps the job waiting; its GPU has more to do: the others send it 2.0 times as much as before"));
	json_decref(o);
}

/* The clocks are as wrong; nobody is late. */
static void test_nobody_late(void **state)
{
	json_t *o;

	put_job(*state, 60, 0, 0);
	o = ask(*state, "fleet.cluster.find_stragglers", "{}");
	assert_int_equal(count(o, "stragglers"), 0);
	assert_true(number(o, "calls") == 60 * 32);
	json_decref(o);
	o = ask(*state, "fleet.cluster.blame", "{}");
	assert_string_equal(word(at(o, "verdicts", 0), "verdict"), "none");
	json_decref(o);
}

static void test_nccl_summary(void **state)
{
	const json_t *op;
	json_t *o;

	put_job(*state, 40, 0, 0);
	o = ask(*state, "fleet.cluster.nccl_summary", "{}");
	assert_int_equal(count(o, "operations"), 1);
	op = at(o, "operations", 0);
	assert_true(number(op, "operations") == 40 && number(op, "calls") == 40 * 32);
	/* 4 KiB in TRANSFER_NS and at most 20 us. */
	assert_true(number(op, "bandwidth_bytes_per_s") > 3.9e6 &&
		    number(op, "bandwidth_bytes_per_s") <= 4.096e6);
	assert_true(number(op, "bus_bandwidth_bytes_per_s") > number(op, "bandwidth_bytes_per_s"));
	json_decref(o);
}

/* ---- incidents ---- */

static void test_incident_names_a_straggler(void **state)
{
	struct world *w = *state;
	json_t *o;

	put_incident(w, "n1", "i1", "straggler", SECOND, -1, false);
	put_incident(w, "n1", "i2", "disk", SECOND, -1, false);
	put_incident(w, "n2", "i3", "mismatch", SECOND, -1, false);
	commit(w);
	o = ask(w, "fleet.cluster.find_stragglers", "{}");
	assert_int_equal(count(o, "stragglers"), 1);
	assert_true(has_reason(straggler(o, "n1"), "incident"));
	assert_int_equal(count(straggler(o, "n1"), "incidents"), 2);
	assert_non_null(strstr(w->text, "its disk is busy"));
	json_decref(o);
}

static void test_cost(void **state)
{
	struct world *w = *state;
	json_t *o;

	put_incident(w, "n1", "i1", "straggler", 3 * SECOND, -1, false);
	commit(w);
	o = ask(w, "fleet.cluster.get_cost", "{}");
	assert_true(json_is_null(json_object_get(o, "total"))); /* unpriced is not 0 */
	assert_true(json_is_null(json_object_get(at(o, "by_node", 0), "cost")));
	assert_true(number(o, "unpriced_incidents") == 1);
	assert_non_null(strstr(w->text, "Unpriced: 1 "));
	json_decref(o);

	put_incident(w, "n2", "i2", "hang", 4 * SECOND, 1.5, false);
	put_incident(w, "n2", "i2", "hang", 6 * SECOND, 2.5, true); /* told again */
	commit(w);
	o = ask(w, "fleet.cluster.get_cost", "{}");
	assert_true(number(o, "total") == 2.5 && number(o, "lost_ns") == 9e9);
	assert_true(number(o, "priced_incidents") == 1 && number(o, "unpriced_incidents") == 1);
	assert_true(json_is_false(json_object_get(o, "complete")));
	assert_string_equal(word(at(o, "by_node", 0), "node_id"), "n2");
	json_decref(o);
}

static void test_anomalies(void **state)
{
	struct world *w = *state;
	json_t *o;

	put_incident(w, "n1", "i1", "straggler", SECOND, -1, false);
	batch_row(&w->b, TABLE_CHAINS);
	batch_int(&w->b, CHAINS_TS, w->now_ns - 2 * SECOND);
	batch_text_of(&w->b, CHAINS_CLUSTER, "red");
	batch_text_of(&w->b, CHAINS_NODE, "n2");
	batch_text_of(&w->b, CHAINS_ID, "c1");
	batch_text_of(&w->b, CHAINS_SEVERITY, "HIGH");
	batch_text_of(&w->b, CHAINS_PROBLEM, "pcie");
	put_point(w, "red", "n3", "ingero.node.straggler_event", "gauge", NULL, 1, 3 * SECOND);
	commit(w);
	o = ask(w, "fleet.cluster.anomalies", "{}");
	assert_int_equal(count(o, "anomalies"), 3);
	assert_string_equal(word(at(o, "anomalies", 0), "type"), "incident");
	assert_string_equal(word(at(o, "anomalies", 1), "type"), "causal_chain");
	assert_string_equal(word(at(o, "anomalies", 2), "type"), "straggler_event");
	json_decref(o);
	o = ask(w, "fleet.cluster.anomalies", "{\"node_id\":\"n2\",\"limit\":1}");
	assert_int_equal(count(o, "anomalies"), 1);
	assert_string_equal(word(at(o, "anomalies", 0), "severity"), "HIGH");
	assert_string_equal(word(at(o, "anomalies", 0), "problem"), "pcie");
	json_decref(o);
}

/* What incidents get is in the schema of the answer, with its type. */
static void test_the_schema_has_what_incidents_get(void **state)
{
	const struct tool *t = cluster_tools;
	json_t *schema, *items;

	while (strcmp(t->name, "fleet_cluster_anomalies") != 0)
		t++;
	schema = json_loads(t->output, 0, NULL);
	items = json_object_get(
		json_object_get(json_object_get(schema, "properties"), "anomalies"), "items");
	items = json_object_get(items, "properties");
	assert_true(json_object_size(items) > 10);
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++)
		if (incident_fields[n].is_added)
			assert_non_null(json_object_get(
				json_object_get(items, incident_fields[n].column), "type"));
	assert_string_equal(word(json_object_get(items, "problem"), "type"), "string");
	json_decref(schema);
}

/* ---- metrics ---- */

static void test_outliers(void **state)
{
	struct world *w = *state;
	char node[32];
	json_t *o;

	for (int n = 0; n < 8; n++) {
		snprintf(node, sizeof(node), "n%d", n);
		for (int i = 1; i < 5; i++) {
			put_point(w, "red", node, "gpu.temperature", "gauge", NULL,
				n == 6 ? 91 : 60 + n % 3, i * SECOND);
			put_point(w, "red", node, "errors", "counter", "{\"gpu\":\"a\"}",
				1000 * n - (n == 2 ? 10 * i : 0), i * SECOND);
		}
	}
	commit(w);
	o = ask(w, "fleet.cluster.find_outlier_nodes", "{\"metric\":\"gpu.temperature\"}");
	assert_int_equal(count(o, "outliers"), 1);
	assert_string_equal(word(at(o, "outliers", 0), "node_id"), "n6");
	assert_string_equal(word(at(o, "outliers", 0), "direction"), "high");
	json_decref(o);
	/* Of a counter it is the growth that counts, not where it stands. */
	o = ask(w, "fleet.cluster.find_outlier_nodes", "{\"metric\":\"errors\"}");
	assert_int_equal(count(o, "outliers"), 1);
	assert_string_equal(word(at(o, "outliers", 0), "node_id"), "n2");
	assert_true(number(at(o, "outliers", 0), "value") == 10);
	json_decref(o);
}

static void test_counters(void **state)
{
	struct world *w = *state;
	const json_t *n;
	json_t *o;

	for (int i = 0; i < 5; i++) {
		put_point(w, "red", "n1", "gpu.kernel.launch.count", "counter", "{\"pid\":1}",
			100 * i, (10 - i) * SECOND);
		put_point(w, "red", "n1", "gpu.kernel.launch.count", "counter", "{\"pid\":2}",
			7 + 10 * i, (10 - i) * SECOND);
		put_point(w, "red", "n1", "ingero.node.cuda_kernel_launch_total", "counter", NULL,
			5000 + 110 * i, (10 - i) * SECOND);
		put_point(w, "red", "n1", "gpu.memcpy.bytes_total", "counter",
			"{\"ingero.memcpy.direction\":\"h2d\"}", 1e9 * i, (10 - i) * SECOND);
		put_point(w, "red", "n1", "gpu.memcpy.duration_ms", "histogram",
			"{\"ingero.memcpy.direction\":\"h2d\"}", 500 * i, (10 - i) * SECOND);
		put_point(w, "red", "n1", "gpu.memfrag.ioctl_event_total", "counter",
			"{\"cmd\":\"0x2a\"}", 3 * i, (10 - i) * SECOND);
	}
	commit(w);
	o = ask(w, "fleet.cluster.kernel_launch_summary", "{}");
	assert_true(number(o, "launches") == 440); /* by one name, not by both */
	assert_true(number(at(o, "nodes", 0), "launches_per_s") == 110);
	assert_string_equal(w->text, "440 kernel launches on 1 node. Most: n1, 440 launches.");
	json_decref(o);
	o = ask(w, "fleet.cluster.memcpy_bandwidth_summary", "{}");
	n = at(o, "directions", 0);
	assert_string_equal(word(n, "direction"), "h2d");
	assert_true(number(n, "bytes") == 4e9 && number(n, "bandwidth_bytes_per_s") == 2e9);
	assert_string_equal(word(at(o, "nodes", 0), "node_id"), "n1");
	json_decref(o);
	o = ask(w, "fleet.cluster.memfrag_hotspots", "{}");
	assert_true(number(at(o, "nodes", 0), "calls") == 12);
	assert_true(number(json_object_get(at(o, "nodes", 0), "by_cmd"), "0x2a") == 12);
	json_decref(o);
}

/* ---- rows ---- */

static void test_history(void **state)
{
	struct world *w = *state;
	json_t *o;

	put_point(w, "red", "n1", "a", "gauge", "{\"gpu\":3}", 1, 5 * SECOND);
	put_point(w, "red", "n1", "b", "gauge", NULL, 2, 4 * SECOND);
	put_point(w, "red", "n'2", "a", "gauge", NULL, 3, 3 * SECOND);
	put_point(w, "red", "n1", "a", "gauge", NULL, 4, 7200 * SECOND);
	commit(w);
	o = ask(w, "fleet.cluster.event_history", "{}");
	assert_int_equal(count(o, "events"), 3);
	assert_true(number(at(o, "events", 0), "value_double") == 3);
	assert_true(number(json_object_get(at(o, "events", 2), "attrs"), "gpu") == 3);
	json_decref(o);
	o = ask(w, "fleet.cluster.event_history", "{\"node_id\":\"n'2\"}");
	assert_int_equal(count(o, "events"), 1);
	json_decref(o);
	o = ask(w, "fleet.cluster.event_history",
		"{\"metric_name\":\"a\",\"since\":\"0\",\"limit\":2}");
	assert_int_equal(count(o, "events"), 2);
	json_decref(o);
	o = ask(w, "fleet.cluster.event_history", "{\"node_id\":\"' OR 1=1 --\"}");
	assert_int_equal(count(o, "events"), 0);
	json_decref(o);
}

static void test_steps(void **state)
{
	struct world *w = *state;
	struct batch *b = &w->b;
	json_t *o;

	for (int i = 2; i > 0; i--) {
		batch_row(b, TABLE_STEPS);
		batch_int(b, STEPS_TS, w->now_ns - i * SECOND);
		batch_text_of(b, STEPS_CLUSTER, "red");
		batch_text_of(b, STEPS_NODE, "n1");
		batch_int(b, STEPS_RANK, 4);
		batch_int(b, STEPS_PID, 77);
		batch_int(b, STEPS_STEP, 300 * MS / i);
		batch_int(b, STEPS_ORDINARY, 100 * MS);
		batch_text_of(b, STEPS_LINE, "disk");
	}
	commit(w);
	o = ask(w, "fleet.cluster.steps", "{}");
	assert_int_equal(count(o, "steps"), 1);
	assert_true(number(at(o, "steps", 0), "step_ns") == 300e6);
	assert_true(number(at(o, "steps", 0), "reports") == 2);
	assert_non_null(strstr(w->text, "disk"));
	json_decref(o);
}

/* ---- tenants ---- */

static void test_other_clusters(void **state)
{
	static const char *const mine[] = {"blue"};
	struct world *w = *state;
	int err;

	put_scores(w);
	put_job(w, 40, 1, 30 * MS);
	put_incident(w, "gpu-node-03", "i1", "straggler", SECOND, 1, false);
	put_point(w, "red", "n9", "gpu.kernel.launch.count", "counter", NULL, 1, SECOND);
	commit(w);
	w->tenant.clusters = mine;
	w->tenant.cluster_count = 1;
	for (const struct tool *t = cluster_tools; t->name; t++) {
		_cleanup_free_ char *text = NULL;
		json_t *o;

		if (t->verb == TENANT_SQL)
			continue;
		o = ask(w, t->name, "{}");
		text = json_dumps(o, 0);
		assert_null(strstr(text, "\"red\""));
		assert_null(strstr(text, "node-07")); /* a name that only red has */
		assert_null(strstr(w->text, "red:"));
		json_decref(o);
		assert_null(try_tool(w, t->name, "{\"cluster_id\":\"red\"}", &err));
		assert_int_equal(err, -EACCES);
		json_decref(ask(w, t->name, "{\"cluster_id\":\"blue\"}"));
	}
	/* The guard is what keeps them out: a token for all sees them. */
	w->tenant.clusters = NULL;
	{
		json_t *o = ask(w, "fleet.cluster.summary", "{}");
		_cleanup_free_ char *text = json_dumps(o, 0);

		assert_non_null(strstr(text, "\"red\""));
		json_decref(o);
	}
}

/* Time that a question has waited is time that it took. */
static void test_waiting_counts(void **state)
{
	static const char *const names[] = {"fleet.cluster.summary", "fleet.cluster.run_analysis"};
	struct world *w = *state;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *arguments = i ? "{\"sql\":\"SELECT 1\"}" : "{}";

		w->came.ns = mono_now().ns - 11 * NS_PER_S;
		assert_null(try_tool(w, names[i], arguments, &err));
		assert_int_equal(err, -ETIMEDOUT);
		assert_non_null(strstr(w->text, "queueing included"));
	}
	w->came = mono_now();
	json_decref(ask(w, names[0], "{}")); /* the control */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)
		T(test_empty),
		T(test_arguments),
		T(test_low_scores),
		T(test_summary),
		T(test_late_rank),
		T(test_waiting_is_no_fault),
		T(test_waiting_of_some),
		T(test_late_gpu),
		T(test_nobody_late),
		T(test_nccl_summary),
		T(test_incident_names_a_straggler),
		T(test_cost),
		T(test_anomalies),
		T(test_the_schema_has_what_incidents_get),
		T(test_outliers),
		T(test_counters),
		T(test_history),
		T(test_steps),
		T(test_other_clusters),
		T(test_waiting_counts),
#undef T
	};

	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
