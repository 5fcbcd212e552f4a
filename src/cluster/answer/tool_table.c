/* SPDX-License-Identifier: Apache-2.0 */
/* tool_table.c - the tools with their schemas: see tool.h. Answers are objects that may grow: what a schema
 * requires is always there. */
#include "cluster/answer/tool_private.h"
#include "model/episode_field.h"
#include "model/incident.h"

/* clang-format off */

/* ---- parameters ---- */

enum {
	SCOPE = 1 << 0, NODE = 1 << 1, LIMIT = 1 << 2, LOW = 1 << 3, FAR = 1 << 4, METRIC = 1 << 5, EVENT = 1 << 6,
	POINTS = 1 << 7, KIND = 1 << 8, SQL = 1 << 9,
};

const struct param tool_params[] = {
	{SCOPE, "cluster_id", NULL, PARAM_TEXT, 0, 256, NULL, "only this cluster", false},
	{SCOPE, "since", NULL, PARAM_TEXT, 0, 256, NULL, "start of the time range: 15m, 7d, 2026-03-24T13:48:00Z; 0: all", false},
	{SCOPE, "until", NULL, PARAM_TEXT, 0, 256, NULL, "end of the time range, likewise (default: now)", true},
	{SQL, "sql", "query", PARAM_TEXT, 1, 65536, NULL, "one SELECT", false},
	{NODE, "node_id", NULL, PARAM_TEXT, 0, 256, NULL, "only this node", false},
	{LIMIT, "limit", NULL, PARAM_INTEGER, 1, 10000, NULL, "maximum number of rows", false},
	{LOW, "threshold", NULL, PARAM_NUMBER, 0, 1, NULL, "a health score below it is low (default: 0.4)", false},
	{FAR, "threshold", NULL, PARAM_NUMBER, 0, 1e9, NULL, "deviations from the median (default: 3.5)", false},
	{METRIC, "metric", "metric_name", PARAM_TEXT, 0, 256, NULL,
		"name of the metric (default: ingero.node.health_score)", false},
	{EVENT, "metric_name", "metric", PARAM_TEXT, 0, 256, NULL, "only of this metric, log event or span", false},
	{POINTS, "kind", NULL, PARAM_TEXT, 0, 256, NULL, "gauge, counter, delta, histogram, log or span", false},
	{EVENT, "causal_chain_id", NULL, PARAM_TEXT, 0, 256, NULL, "only of this causal chain", false},
	{EVENT, "event_id", NULL, PARAM_TEXT, 0, 256, NULL, "only this event", false},
	{KIND, "kind", NULL, PARAM_TEXT, 0, 256, NULL, "only incidents of this kind", false},
	{.name = NULL},
};

/* ---- answers ---- */

#define OUTPUT(required, properties) "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "]}"
#define LIST(name, about, required, properties) \
	"\"" name "\":{\"type\":\"array\",\"description\":\"" about "\",\"items\":" OUTPUT(required, properties) "}"
#define S(name)  "\"" name "\":{\"type\":\"string\"}"
#define I(name)  "\"" name "\":{\"type\":\"integer\"}"
#define N(name)  "\"" name "\":{\"type\":\"number\"}"
#define B(name)  "\"" name "\":{\"type\":\"boolean\"}"
#define NN(name) "\"" name "\":{\"type\":[\"number\",\"null\"]}"
#define SN(name) "\"" name "\":{\"type\":[\"string\",\"null\"]}"
#define R(name)  "\"" name "\""

#define MISSING \
	"\"missing\":{\"type\":\"object\",\"description\":\"only if the answer is incomplete: rows and requests of " \
	"this time range that are damaged\",\"properties\":{" I("rows") "," I("parts") "," I("requests") "," \
	SN("since") "," SN("until") "},\"required\":[\"rows\",\"requests\"]}"
#define WINDOW \
	"\"window\":{\"type\":\"object\",\"description\":\"time range and cluster examined\",\"properties\":{" \
	SN("since") "," SN("until") "," S("cluster_id") "},\"required\":[\"since\",\"until\"]}"
#define ANSWER(required, properties) OUTPUT(R("window") "," required, WINDOW "," properties "," MISSING)
#define WHO       S("cluster_id") "," S("node_id")
#define WHO_NEEDS R("cluster_id") "," R("node_id")

#define INCIDENT \
	WHO "," S("id") "," S("kind") "," S("source") "," I("rank") "," S("summary") "," S("root_cause") "," \
	S("fix") "," N("confidence") "," I("lost_ns") "," N("cost") "," B("resolved") "," SN("since") "," SN("time") EPISODE_FIELDS(FIELD)

/* The fields that incidents got later, and those of a job's fault, by their forms. */
#define OF_U32(name)     I(name)
#define OF_U64(name)     I(name)
#define OF_I32(name)     I(name)
#define OF_REAL(name)    N(name)
#define OF_SHARE(name)   N(name)
#define OF_TEXT(name)    S(name)
#define OF_PROBLEM(name) S(name)
#define OF_TIME(name)    I(name)
#define OF_OP(name)      S(name)
#define OF_COMM(name)    S(name)
#define FIELD(NAME, form, member, name, meaning) "," OF_##form(name)
#define ADDED(NAME, form, member, column, ...) "," OF_##form(column)

#define RANK \
	S("text") "," I("rank") "," WHO "," I("pid") "," I("calls") "," I("last_count") "," I("lag_p50_ns") "," I("lag_max_ns") "," \
	I("waited_ns") "," B("blamed") "," B("cleared") "," N("share") "," I("lost_ns") "," I("waited_for_it_ns") "," \
	N("confidence") "," I("late_steps") "," I("seen_steps") "," I("period_steps") "," I("lag_ns") "," \
	S("comm_id_hash") "," I("op_seq") "," S("op_type") "," SN("since") "," I("stage")
#define RANK_NEEDS WHO_NEEDS "," R("pid") "," R("calls") "," R("last_count") "," R("lag_p50_ns") "," R("blamed")

#define BILL       I("incidents") "," I("unpriced") "," I("lost_ns") "," NN("cost")
#define BILL_NEEDS R("incidents") "," R("unpriced") "," R("lost_ns") "," R("cost")

const struct tool cluster_tools[] = {
	{
		.name = "fleet_cluster_summary", .title = "Summary of the clusters",
		.description = "Clusters, nodes, silent nodes, incidents and the nodes with the lowest health scores. "
			"Ask this first.",
		.params = SCOPE,
		.output = ANSWER(R("clusters") "," R("worst_nodes") "," R("low_score"),
			N("low_score") ","
			LIST("clusters", "most nodes first",
				R("cluster_id") "," R("nodes") "," R("silent_nodes") "," R("low_nodes") "," R("points") ","
				R("incidents") "," R("open_incidents") "," R("lost_ns") "," R("cost"),
				S("cluster_id") "," I("nodes") "," I("silent_nodes") "," I("low_nodes") "," I("points") ","
				I("collectives") "," I("causal_chains") "," I("incidents") "," I("open_incidents") ","
				I("node_incidents") "," I("lost_ns") "," NN("cost")) ","
			LIST("worst_nodes", "lowest score first", WHO_NEEDS "," R("silent") "," R("last_seen"),
				WHO "," N("score") "," N("lowest_score") "," I("points") "," I("collectives") ","
				I("causal_chains") "," B("silent") "," SN("last_seen"))),
		.verb = TENANT_READ, .run = tool_summary, .minutes = 60,
	},
	{
		.name = "fleet_cluster_find_stragglers", .title = "Find stragglers",
		.description = "Nodes that hold others up, worst first: by health score below the threshold, by being "
			"late at collectives (matched by communicator and sequence number, clocks compared), and "
			"by incidents.",
		.params = SCOPE | NODE | LIMIT | LOW,
		.output = ANSWER(R("threshold") "," R("total") "," R("calls") "," R("cut") "," R("stragglers"),
			N("threshold") "," I("total") "," I("calls") "," B("cut") ","
			LIST("stragglers", "worst first", WHO_NEEDS "," R("reasons") "," R("weight"),
				WHO "," N("weight") ","
				"\"reasons\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":"
				"[\"low_score\",\"waits\",\"blamed\",\"late\",\"incident\"]}},"
				"\"score\":" OUTPUT(R("last") "," R("min"),
					N("last") "," N("min") "," I("points") "," I("low_points") "," B("low_now") ","
					SN("since")) ","
				LIST("ranks", "ranks on it that were late", RANK_NEEDS, RANK) ","
				LIST("incidents", "about this node", WHO_NEEDS "," R("resolved"), INCIDENT))),
		.verb = TENANT_READ, .run = tool_stragglers, .minutes = 15,
	},
	{
		.name = "fleet_cluster_find_outlier_nodes", .title = "Find outlier nodes",
		.description = "Nodes whose metric differs most from the median of their cluster: for gauges the mean, for "
			"counters the growth per second.",
		.params = SCOPE | LIMIT | METRIC | FAR,
		.output = ANSWER(R("metric") "," R("compared") "," R("threshold") "," R("nodes") "," R("outliers"),
			S("metric") "," S("compared") "," N("threshold") "," I("nodes") ","
			LIST("outliers", "farthest first", WHO_NEEDS "," R("value") "," R("median") "," R("deviation"),
				WHO "," N("value") "," N("median") "," N("deviation") "," I("points") "," S("direction"))),
		.verb = TENANT_READ, .run = tool_outliers, .minutes = 15,
	},
	{
		.name = "fleet_cluster_event_history", .title = "History of events",
		.description = "Stored points, logs and spans, newest first.",
		.params = SCOPE | NODE | LIMIT | EVENT | POINTS,
		.output = ANSWER(R("count") "," R("events"),
			I("count") ","
			LIST("events", "newest first", WHO_NEEDS "," R("ts_ns") "," R("time"),
				I("ts_ns") "," SN("time") "," WHO "," I("rank") "," I("nranks") "," S("metric_name") ","
				S("kind") "," N("value_double") "," I("value_int") "," S("unit") "," S("body") ","
				"\"attrs\":{\"type\":[\"object\",\"string\"]}," S("event_id") "," S("causal_chain_id") ","
				I("severity"))),
		.verb = TENANT_READ, .run = tool_history, .minutes = 60,
	},
	{
		.name = "fleet_cluster_run_analysis", .title = "Run SQL",
		.description = "One read-only SQL statement over events, causal_chains, node_metrics, collectives, "
			"incidents and steps, which hold only what the token may see. Times are nanoseconds since 1970.",
		.params = SQL | SCOPE | LIMIT,
		.needs = SQL,
		.output = OUTPUT(R("columns") "," R("rows") "," R("row_count") "," R("truncated") "," R("duration_ms"),
			"\"columns\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
			"\"rows\":{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":"
			"{\"type\":[\"number\",\"string\",\"null\"]}}},"
			I("row_count") "," B("truncated") "," I("duration_ms") "," MISSING),
		.verb = TENANT_SQL, .run = tool_analysis,
	},
	{
		.name = "fleet_cluster_get_cost", .title = "What incidents cost",
		.description = "Time and money that incidents cost, by node and kind. Incidents without a price are "
			"counted as unpriced, never as 0.",
		.params = SCOPE | NODE | LIMIT,
		.output = ANSWER(R("currency") "," R("total") "," R("complete") "," R("priced_incidents") ","
			R("unpriced_incidents") "," R("node_incidents") "," R("lost_ns") "," R("by_node") "," R("by_kind"),
			S("currency") "," NN("total") "," B("complete") "," I("priced_incidents") ","
			I("unpriced_incidents") "," I("node_incidents") "," I("lost_ns") ","
			LIST("by_node", "most time lost first", WHO_NEEDS "," BILL_NEEDS, WHO "," BILL) ","
			LIST("by_kind", "most time lost first", R("kind") "," BILL_NEEDS, S("kind") "," BILL)),
		.verb = TENANT_READ, .run = tool_cost, .minutes = 1440,
	},
	{
		.name = "fleet_cluster_anomalies", .title = "Anomalies",
		.description = "Incidents, causal chains and what nodes report about themselves, newest first.",
		.params = SCOPE | NODE | LIMIT | KIND,
		.output = ANSWER(R("count") "," R("anomalies"),
			I("count") ","
			LIST("anomalies", "newest first", WHO_NEEDS "," R("type") "," R("ts_ns") "," R("time"),
				"\"type\":{\"type\":\"string\",\"enum\":[\"incident\",\"causal_chain\",\"straggler_event\"]},"
				I("ts_ns") "," S("severity") "," S("explanation") "," S("op") "," N("value") "," INCIDENT INCIDENT_ADDED(ADDED))),
		.verb = TENANT_READ, .run = tool_anomalies, .minutes = 60,
	},
	{
		.name = "fleet_cluster_nccl_summary", .title = "Collectives and their bandwidth",
		.description = "By operation and number of ranks: how many, how long the transfer took, bandwidth, and "
			"the time that ranks waited.",
		.params = SCOPE,
		.output = ANSWER(R("operations"),
			LIST("operations", "longest total first",
				R("cluster_id") "," R("operations") "," R("calls") "," R("bandwidth_bytes_per_s"),
				S("cluster_id") "," S("op_type") "," I("nranks") "," I("operations") "," I("calls") ","
				N("bytes") "," N("transfer_ns") "," N("transfer_p50_ns") "," N("transfer_p99_ns") ","
				N("transfer_max_ns") "," N("waited_ns") "," NN("bandwidth_bytes_per_s") ","
				NN("bus_bandwidth_bytes_per_s"))),
		.verb = TENANT_READ, .run = tool_nccl, .minutes = 15,
	},
	{
		.name = "fleet_cluster_memcpy_bandwidth_summary", .title = "Copies and their bandwidth",
		.description = "Bytes copied between host and GPU by direction and node, and at which rate, from the "
			"agents' counters.",
		.params = SCOPE | NODE | LIMIT,
		.output = ANSWER(R("directions") "," R("nodes"),
			LIST("directions", "most bytes first",
				R("direction") "," R("bytes") "," R("nodes") "," R("bandwidth_bytes_per_s"),
				S("direction") "," N("bytes") "," N("seconds") "," I("nodes") "," NN("bandwidth_bytes_per_s")) ","
			LIST("nodes", "most bytes first", WHO_NEEDS "," R("direction") "," R("bytes"),
				WHO "," S("direction") "," N("bytes") "," N("seconds") "," I("copies") ","
				N("observed_s") "," NN("bytes_per_s") "," NN("bandwidth_bytes_per_s"))),
		.verb = TENANT_READ, .run = tool_memcpy, .minutes = 15,
	},
	{
		.name = "fleet_cluster_memfrag_hotspots", .title = "Hot spots of memory fragmentation",
		.description = "Nodes by how often their processes changed GPU memory through the driver, which is what "
			"fragments it.",
		.params = SCOPE | NODE | LIMIT,
		.output = ANSWER(R("nodes"),
			LIST("nodes", "most calls first", WHO_NEEDS,
				WHO "," N("calls") "," N("ratio_max") ","
				"\"by_cmd\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}")),
		.verb = TENANT_READ, .run = tool_memfrag, .minutes = 15,
	},
	{
		.name = "fleet_cluster_kernel_launch_summary", .title = "Kernel launches",
		.description = "Kernel launches by node, their rate, and the mean size of blocks and grids where agents "
			"report it.",
		.params = SCOPE | NODE | LIMIT,
		.output = ANSWER(R("launches") "," R("nodes"),
			N("launches") ","
			LIST("nodes", "most launches first", WHO_NEEDS "," R("launches") "," R("launches_per_s"),
				WHO "," N("launches") "," NN("launches_per_s") "," N("observed_s") ","
				N("threads_per_block_mean") "," N("grid_blocks_mean"))),
		.verb = TENANT_READ, .run = tool_launches, .minutes = 15,
	},
	{
		.name = "fleet_cluster_blame", .title = "Which rank makes the job wait",
		.description = "Which rank makes each cluster's job wait: rank, node, collective, start, period, "
			"cause, line, fix, waiting ranks, cost; and the figures of its collectives.",
		.params = SCOPE,
		.output = ANSWER(R("incidents") "," R("verdicts"),
			LIST("incidents", "found by the cluster, newest first", WHO_NEEDS "," R("resolved"), INCIDENT) ","
			LIST("verdicts", "one per cluster",
				R("cluster_id") "," R("verdict") "," R("confidence") "," R("steps") "," R("suspects") ","
				R("cleared"),
				S("cluster_id") ","
				"\"verdict\":{\"type\":\"string\",\"enum\":[\"none\",\"ranks\",\"stage\",\"uneven\"]},"
				N("confidence") "," I("steps") "," I("step_ns") "," I("lost_ns") "," I("calls") "," B("cut")
				"," SN("since") ","
				LIST("suspects", "ranks that cost the job time", RANK_NEEDS, RANK) ","
				LIST("cleared", "ranks that were often last, but only because they waited for others", RANK_NEEDS, RANK))),
		.verb = TENANT_READ, .run = tool_blame, .minutes = 5,
	},
	{
		.name = "fleet_cluster_steps", .title = "Steps of ranks",
		.description = "What agents report about their ranks' steps: how long slow and ordinary ones take, what grew "
			"most, and what the rank was doing.",
		.params = SCOPE | NODE | LIMIT,
		.output = ANSWER(R("steps"),
			LIST("steps", "slowest first", WHO_NEEDS "," R("ts_ns") "," R("time") "," R("reports"),
				WHO "," I("rank") "," I("pid") "," I("ts_ns") "," SN("time") "," I("step_ns") ","
				I("ordinary_ns") "," S("line") "," I("line_ns") "," S("doing") "," S("doing_where") ","
				I("reports"))),
		.verb = TENANT_READ, .run = tool_steps, .minutes = 60,
	},
	{0},
};
