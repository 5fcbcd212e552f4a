/* SPDX-License-Identifier: Apache-2.0 */
/* overview.c - the recording at a glance: whose it is, how much is in it, how things stand, which data it has. */

#include "answer/answer.h"
#include "base/text.h"

#define NODES_MAX    1024
#define SESSIONS     100
#define SESSIONS_MAX 5000
#define REASONS_MAX  8
#define COMPLETE     0.99                     /* below, conclusions may be wrong */
#define STALE_NS     (30 * (int64_t)NS_PER_S) /* nothing new for so long while recording */

static int64_t severity_count(const struct sql_table *t, const char *name)
{
	int64_t n = 0;

	for (size_t i = 0; i < t->row_count; i++)
		if (!strcmp(table_text(t, i, 0), name))
			n += table_int(t, i, 1);
	return n;
}

static void put_severities(struct json_writer *w, const char *key, const struct sql_table *t)
{
	static const char *const names[] = {"CRITICAL", "HIGH", "MEDIUM", "LOW"};

	json_begin_object_member(w, key);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		json_int_member(w, names[i], severity_count(t, names[i]));
	json_end_object(w);
}

static int put_top_chain(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct scope scope = {.node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table c = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_WORST_CHAINS, &scope, 1, &c, reterr);
	static const char *const keys[] = {
		"id", "severity", "summary", "root_cause", "detected_at", "node"};

	if (r < 0 || !c.row_count)
		return r;
	json_begin_object_member(w, "top_chain");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		json_key(w, keys[i]);
		table_cell(w, &c, 0, table_column(&c, keys[i]));
	}
	put_chain_texts(
		w, "recommendations", table_text(&c, 0, table_column(&c, "recommendations")));
	json_end_object(w);
	return 0;
}

static int put_gpu(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct scope scope = {.node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SESSIONS, &scope, 100, &s, reterr);

	for (size_t i = 0; r == 0 && i < s.row_count; i++) {
		const char *model = table_text(&s, i, table_column(&s, "gpu_model"));

		if (!model[0])
			continue;
		JSON_PUT_INTO(w, "gpu", JSON_S("model", model),
			JSON_S("driver_version", table_text(&s, i, table_column(&s, "gpu_driver"))),
			JSON_S("cuda_version", table_text(&s, i, table_column(&s, "cuda_ver"))));
		break;
	}
	return r;
}

/* ---- health ---- */

struct health {
	int state; /* of states[] */
	char reasons[REASONS_MAX][160];
	int reason_count;
};
static const char *const states[] = {"ok", "warning", "critical", "unknown"};
enum { STATE_OK, STATE_WARNING, STATE_CRITICAL, STATE_UNKNOWN };

static void because(struct health *h, int state, const char *reason)
{
	h->state = MAX(h->state, state);
	if (h->reason_count < REASONS_MAX)
		snprintf(h->reasons[h->reason_count++], sizeof(h->reasons[0]), "%s", reason);
}

static void judge_incidents(struct health *h, const struct sql_table *active, bool live)
{
	static const struct {
		const char *severity;
		int state;
	} rules[] = {{"CRITICAL", STATE_CRITICAL}, {"HIGH", STATE_CRITICAL},
		{"MEDIUM", STATE_WARNING}, {"LOW", STATE_OK}};

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		int64_t n = severity_count(active, rules[i].severity);

		if (!n)
			continue;
		because(h, rules[i].state,
			FORMATTED(128, "%lld %s incident%s%s", (long long)n, rules[i].severity,
				n == 1 ? "" : "s", live ? " in the last 5m" : " in the recording"));
	}
}

static void judge_data(struct health *h, const struct question *q, double completeness)
{
	char text[128];
	int64_t age = wall_now().ns - q->range.last_ns;

	if (!q->range.last_ns) {
		because(h, STATE_UNKNOWN, "nothing was recorded");
		return;
	}
	if (completeness < 0)
		because(h, STATE_WARNING,
			"the recording ended without a clean stop: its completeness is unknown");
	else if (completeness < COMPLETE) {
		snprintf(text, sizeof(text), "only %s of the events are recorded",
			TEXT_PERCENT(completeness));
		because(h, STATE_WARNING, text);
	}
	if (q->live && age > STALE_NS) {
		snprintf(text, sizeof(text), "nothing new for %s", TEXT_DURATION((uint64_t)age));
		because(h, STATE_WARNING, text);
	}
}

static int put_health(const struct question *q, struct json_writer *w, double completeness,
	struct errinfo *reterr)
{
	struct scope scope = {.node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table active = {0};
	struct health h = {0};
	bool ours = nodedb_snapshot_is_ours(q->snapshot);
	int r;

	if (q->live && q->range.last_ns)
		scope.from_ns = wall_now().ns - (int64_t)ANSWER_DEFAULT_NS;
	r = nodedb_snapshot_list(q->snapshot, q->live && ours ? NODEDB_ACTIVE : NODEDB_SEVERITIES,
		&scope, 0, &active, reterr);
	if (r < 0)
		return r;
	judge_incidents(&h, &active, q->live);
	if (!q->live && !active.row_count && q->range.last_ns)
		because(&h, STATE_UNKNOWN,
			"no incidents are stored in the recording; ask for incidents to find "
			"them");
	judge_data(&h, q, completeness);
	json_begin_object_member(w, "health");
	json_string_member(w, "state", states[h.state]);
	json_begin_array_member(w, "reasons");
	for (int i = 0; i < h.reason_count; i++)
		json_put_string(w, h.reasons[i]);
	json_end_array(w);
	json_end_object(w);
	return 0;
}

/* ---- answers ---- */

static int put_counts(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table severities = {0};
	struct scope scope = {.node = q->scope.node};
	struct nodedb_totals totals = {0};
	int r = nodedb_snapshot_totals(q->snapshot, &totals, reterr);

	r = r
		    ?: nodedb_snapshot_list(
			       q->snapshot, NODEDB_SEVERITIES, &scope, 0, &severities, reterr);
	if (r < 0)
		return r;
	JSON_PUT(w, JSON_U("event_count", totals.events),
		JSON_B("event_count_exact", totals.events_exact),
		JSON_U("chain_count", totals.chains), JSON_U("session_count", totals.sessions));
	put_severities(w, "chains_by_severity", &severities);
	return 0;
}

int overview_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct scope all = {0};
	_cleanup_(sql_table_done) struct sql_table nodes = {0};
	double completeness = 1;
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_NODES, &all, NODES_MAX, &nodes, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	json_string_member(w, "node", q->scope.node ? q->scope.node : q->node);
	json_begin_array_member(w, "nodes");
	for (size_t i = 0; i < nodes.row_count; i++)
		json_put_string(w, table_text(&nodes, i, 0));
	json_end_array(w);
	if (q->request->version)
		json_string_member(w, "version", q->request->version);
	JSON_PUT(w, JSON_S("schema", nodedb_snapshot_schema(q->snapshot)), JSON_B("live", q->live),
		JSON_I("first_ns", q->range.first_ns), JSON_I("last_ns", q->range.last_ns));
	r = put_counts(q, w, reterr);
	r = r ?: put_books(q, w, &completeness, reterr);
	r = r ?: put_health(q, w, completeness, reterr);
	r = r ?: put_system(q, w, reterr);
	r = r ?: put_top_chain(q, w, reterr);
	r = r ?: put_gpu(q, w, reterr);
	json_end_object(w);
	return r;
}

int nodes_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct scope all = {0};
	_cleanup_(sql_table_done) struct sql_table nodes = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_NODES, &all, NODES_MAX, &nodes, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	table_put(w, "nodes", &nodes);
	JSON_PUT(w, JSON_S("node", q->node), JSON_B("merged", nodes.row_count > 1),
		JSON_B("truncated", nodes.truncated));
	json_end_object(w);
	return 0;
}

int sessions_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	struct scope scope = {.node = q->scope.node};
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(q->snapshot, NODEDB_SESSIONS, &scope,
		answer_limit(q->request->limit, SESSIONS, SESSIONS_MAX), &s, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	table_put(w, "sessions", &s);
	JSON_PUT(w, JSON_B("live", q->live), JSON_B("truncated", s.truncated));
	json_end_object(w);
	return 0;
}

/* ---- which data a recording has ---- */

static const struct capability {
	const char *id, *label;
	const char *table;   /* it is there if this has a row */
	const char *tool;    /* what makes it; NULL: nothing can */
	const char *tooltip; /* what it shows, or why not */
} capabilities[] = {
	{"cuda_calls", "CUDA calls", "events", "ingero trace", "slow, rare and failed calls, each"},
	{"latency", "Latency percentiles", "event_aggregates_5s", "ingero trace",
		"of every call, stored or not"},
	{"chains", "Causal chains", "causal_chains", "ingero trace",
		"incidents stored while tracing"},
	{"incidents", "Incidents", "incidents", "ingero trace",
		"when they began, were last seen and were resolved"},
	{"stacks", "Call stacks", "stack_traces", "ingero trace --stack",
		"native and Python frames of calls"},
	{"flame", "Flame graph", "stack_traces", "ingero trace --stack", "time by call stack"},
	{"host", "Host load", "system_snapshots", "ingero trace", "CPU, memory, stalls"},
	{"gpu", "GPU state", "gpu_samples", "NVIDIA driver (NVML)",
		"utilisation, power, temperature, throttling, memory, errors"},
	{"collectives", "NCCL collectives", "collectives", "ingero trace",
		"late and waiting ranks"},
	{"processes", "Processes", "processes", "ingero trace", "rank, job, container, coverage"},
	{"losses", "Losses", "accounting", "ingero trace", "hits = stored + aggregated + lost"},
	{"overhead", "Overhead", "overhead", "ingero trace", "overhead of tracing"},
	{"annotations", "Annotations", "annotations", "ingero annotate",
		"labels sent by the workload"},
	{"sm_stalls", "SM stall reasons", NULL, "Nsight Compute",
		"needs hardware counters, which slow the kernels that they measure"},
	{"kernel_times", "Kernel times on the GPU", NULL, "torch.profiler or Nsight Systems",
		"calls are traced on the host; kernels on the GPU are not"},
};

int capabilities_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	int r = 0;

	json_begin_object(w);
	json_begin_array_member(w, "capabilities");
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(capabilities); i++) {
		const struct capability *c = &capabilities[i];

		r = c->table ? nodedb_snapshot_has(q->snapshot, c->table, reterr) : 0;
		if (r < 0)
			break;
		json_begin_object(w);
		JSON_PUT(w, JSON_S("id", c->id), JSON_S("label", c->label),
			JSON_B("available", r > 0));
		if (c->table)
			json_string_member(w, "source", c->table);
		if (r == 0)
			json_string_member(w, "required_tool", c->tool);
		json_string_member(w, "tooltip", c->tooltip);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
	return MIN(r, 0);
}
