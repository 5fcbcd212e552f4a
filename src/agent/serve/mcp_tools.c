/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c - the table of tools. None of them writes: what pages somebody or changes a machine
 * does not belong on a server whose answers hold strangers' texts. */
#include "agent/serve/mcp_tools.h"

#include "agent/serve/mcp_schema.h"
#include "agent/serve/mcp_tool.h"

#define READ_ONLY                                                                                  \
	"{\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,"                \
	"\"openWorldHint\":false}"
#define READ_FLEET                                                                                 \
	"{\"readOnlyHint\":true,\"destructiveHint\":false,\"idempotentHint\":true,"                \
	"\"openWorldHint\":true}"

const struct offer_tool mcp_tools[] = {
	{.name = "explain",
		.title = "Why the GPU waited",
		.description =
			"Start here. Finds what went wrong in the recording and proves it: "
			"incidents, worst first, each with summary, root cause, culprit process, "
			"share of the lost time it explains, confidence, timeline, source line and "
			"fixes. With an id, all of one incident, complete unless tsc is true.",
		.input = OBJECT(ARG_SINCE "," ARG_PID "," ARG_PIDS "," ARG_TOP_N
					  "," ABOUT("id", "\"type\":\"string\",\"maxLength\":256",
						  "Only the incident with this id.") "," ARG_TSC),
		.output = OBJECT(INCIDENTS),
		.run = mcp_explain},
	{.name = "get_trace_stats",
		.title = "Figures of each operation",
		.description =
			"Calls, p50, p95, p99 and maximum (microseconds), share of wall time and "
			"outliers of every CUDA, driver, NCCL and host operation, most time first, "
			"and the host's load.",
		.input = OBJECT(ARG_SINCE "," ARG_PID "," ARG_PIDS "," ARG_TSC),
		.output = OBJECT(P("count", I) "," P("ops",
			LIST(OBJECT(P("operation", S) "," P("source", S) "," P("avg_us", N) "," P(
				"total_us", N) "," P("meaning", S) "," P("count", I) "," P("p50_us",
				N) "," P("p95_us", N) "," P("p99_us", N) "," P("max_us",
				N) "," P("wall_percent", N) "," P("anomaly_count",
				I)))) "," P("total_events", I) "," P("stored_events",
			I) "," P("range", RANGE) "," P("system",
			OBJECT(P("cpu_percent", N) "," P("mem_percent", N) "," P(
				"swap_mb", I) "," P("load_avg", N)))),
		.run = mcp_trace_stats},
	{.name = "get_causal_chains",
		.title = "Causal chains",
		.description = "What was found while tracing, as chains of events with root cause "
			       "and fixes; without stored ones, or for given processes, they are "
			       "worked out now. `explain` says more.",
		.input = OBJECT(ARG_SINCE "," ARG_PID "," ARG_PIDS "," ARG_TOP_N "," ARG_TSC),
		.output = OBJECT(P("chains", LIST(CHAIN)) "," P("total", I) "," P(
			"origin", S) "," P("range", RANGE)),
		.run = mcp_causal_chains},
	{.name = "get_stacks",
		.title = "Call stacks",
		.description = "From where in the program calls were made (Python and native "
			       "frames, innermost first), those with most time first.",
		.input = OBJECT(ABOUT("source",
			"\"type\":\"string\",\"enum\":[\"cuda\",\"driver\",\"nccl\","
			"\"cuda_graph\"]",
			"Only calls of this library.") "," ARG_OP "," ARG_PID "," ARG_SINCE
						       "," ABOUT("limit",
							       "\"type\":\"integer\",\"minimum\":1,"
							       "\"maximum\":100,\"default\":10",
							       "How many stacks.") "," ARG_TSC),
		.output = OBJECT(P("stacks",
			LIST(OBJECT(P("hash", S) "," P("source", S) "," P("operation", S) "," P(
				"count", I) "," P("total_us", N) "," P("avg_us", N) "," P("min_us",
				N) "," P("max_us", N) "," P("processes",
				LIST(PROCESS)) "," P("frames", LIST(S))))) "," P("range",
			RANGE) "," P("note", S) "," P("warning", S)),
		.run = mcp_stacks},
	{.name = "get_collectives",
		.title = "NCCL calls and ranks",
		.description =
			"Collectives by operation and by rank: calls, bytes, waits, the last "
			"sequence number of each rank and how far it is behind. A straggling rank "
			"is behind or waits least.",
		.input = OBJECT(ARG_SINCE "," ARG_TSC),
		.output = OBJECT(P("count", I) "," P(
			"operations", LIST(OBJECT(P("operation", S) "," P("count", I) "," P(
					      "bytes", I) "," P("avg_us", NULL_OR_N) "," P("max_us",
					      N) "," P("avg_wait_us", NULL_OR_N)))) "," P("ranks",
			LIST(OBJECT(P("communicator", S) "," P("node", S) "," P("rank", I) "," P(
				"nranks", I) "," P("pid", I) "," P("count", I) "," P("last_seq",
				I) "," P("avg_wait_us", NULL_OR_N) "," P("max_wait_us",
				NULL_OR_N) "," P("behind", I)))) "," P("range",
			RANGE) "," P("left_out", I) "," P("note", S)),
		.run = mcp_collectives},
	{.name = "get_gpu_state",
		.title = "State of the GPUs",
		.description =
			"For each GPU: utilisation, clocks, power, temperature (least, most, "
			"mean), how long it was throttled and why, memory, errors, PCIe.",
		.input = OBJECT(ARG_SINCE "," ARG_TSC),
		.output = OBJECT(P("gpus",
			LIST(OBJECT(P("gpu", I) "," P("name", S) "," P("uuid", S) "," P(
				"samples", I) "," P("last_at", NULL_OR_S) "," P("throttled_percent",
				N) "," P("throttled_by", S) "," P("util_percent",
				GAUGE) "," P("power_mw", GAUGE) "," P("temperature_c",
				GAUGE) "," P("sm_clock_mhz", GAUGE) "," P("last",
				"{\"type\":\"object\",\"additionalProperties\":{\"type\":"
				"\"integer\"}}")))) "," P("range", RANGE) "," P("note", S)),
		.run = mcp_gpu_state},
	{.name = "get_losses",
		.title = "How complete the recording is",
		.description =
			"The books: hits = stored + aggregated + lost for every source of "
			"events, with the reasons of losses, calls that no probe could see "
			"(unseen), and what was deleted to keep the file small. Look here before you trust an absence.",
		.input = OBJECT(ARG_TSC),
		.output = OBJECT(P("completeness", N) "," P("unseen", S) "," P(
			"pruned_rows", I) "," P("damaged_rows", I) "," P("sources",
			LIST(OBJECT(P("source", S) "," P("hits", I) "," P("stored", I) "," P(
				"aggregated", I) "," P("lost", I) "," P("balanced",
				B) "," P("reasons",
				LIST(OBJECT(P("reason", S) "," P("count", I) "," P(
					"meaning", S))))))) "," P("range", RANGE) "," P("note", S)),
		.run = mcp_losses},
	{.name = "run_sql",
		.title = "Ask with SQL",
		.description =
			"One SQLite statement that reads the recording. Resource ingero://schema "
			"has tables and columns: events(timestamp, duration in ns, pid, tid, "
			"source, op, …), ops(source_id, op_id, name), collectives, incidents, "
			"gpu_samples, system_snapshots. It is stopped after 5 s.",
		.input = NEEDS(
			ABOUT("query", "\"type\":\"string\",\"minLength\":1,\"maxLength\":65536",
				"SELECT …") "," ABOUT("limit",
				"\"type\":\"integer\",\"minimum\":1,\"maximum\":10000,\"default\":"
				"1000",
				"Rows at most.") "," ARG_TSC,
			"\"query\""),
		.output = OBJECT(P(
			"meta", OBJECT(P("rows", I) "," P("truncated", B) "," P(
					"duration_ms", I))) "," P("columns", LIST(S)) "," P("data",
			LIST("{\"type\":\"array\"}")) "," P("rows", LIST("{\"type\":\"object\"}"))),
		.run = mcp_sql},
	{.name = "graph_lifecycle",
		.title = "Life of CUDA graphs",
		.description = "Captures, instantiations, launches and ends of CUDA graphs of one "
			       "process in order, and how often each graph is replayed.",
		.input = NEEDS(ARG_PID "," ARG_SINCE "," ARG_TSC, "\"pid\""),
		.output = OBJECT(P(
			"events", LIST(OBJECT(P("timestamp", NULL_OR_S) "," P("operation", S) "," P(
					  "duration_us", N) "," P("return_code", I) "," P("stream",
					  NULL_OR_S) "," P("graph", NULL_OR_S) "," P("exec",
					  NULL_OR_S)))) "," P("more_events", I) "," P("captures",
			I) "," P("instantiations", I) "," P("launches", I) "," P("updates",
			I) "," P("destroys", I) "," P("replay_ratio", N) "," P("range", RANGE)),
		.run = mcp_graph_lifecycle},
	{.name = "graph_frequency",
		.title = "How often CUDA graphs are launched",
		.description = "Executable CUDA graphs of one process by launches: rate, HOT, cold "
			       "or never-launched, and how often was captured again.",
		.input = NEEDS(ARG_PID "," ARG_SINCE "," ARG_TSC, "\"pid\""),
		.output = OBJECT(P("graphs",
			LIST(OBJECT(P("exec", NULL_OR_S) "," P("launches", I) "," P("rate_per_s",
				N) "," P("class", S)))) "," P("graph_count", I) "," P("launches",
			I) "," P("recaptures", I) "," P("seconds", N) "," P("range", RANGE)),
		.run = mcp_graph_frequency},
	{.name = "query_fleet",
		.title = "Ask all nodes at once",
		.description = "Asks the nodes named in the configuration (never others) for "
			       "chains, figures of operations, an overview, or by SQL. Nodes that "
			       "do not answer are named.",
		.input = NEEDS(
			ABOUT("action",
				"\"type\":\"string\",\"enum\":[\"chains\",\"ops\",\"overview\","
				"\"sql\"]",
				"What to ask.") "," ABOUT("query",
				"\"type\":\"string\",\"maxLength\":65536",
				"action sql: the statement.") "," ABOUT("sql",
				"\"type\":\"string\",\"maxLength\":65536",
				"The same as query.") "," ARG_SINCE "," ARG_PID "," ABOUT("limit",
				"\"type\":\"integer\",\"minimum\":1,\"maximum\":10000,\"default\":"
				"1000",
				"Rows at most.") "," ARG_TSC,
			"\"action\""),
		.output = OBJECT(P("action", S) "," P(
			"nodes", LIST(OBJECT(P("node", S) "," P("address", S) "," P(
					 "answered", B) "," P("why", S) "," P("clock_offset_us",
					 I) "," P("clock_error_us", I)))) "," P("warnings",
			LIST(S)) "," P("chains", LIST("{\"type\":\"object\"}")) "," P("results",
			LIST(OBJECT(P("node", S) "," P("result", ANY)))) "," P("columns",
			LIST(S)) "," P("data", LIST("{\"type\":\"array\"}")) "," P("rows",
			LIST("{\"type\":\"object\"}"))),
		.annotations = READ_FLEET,
		.run = mcp_fleet},
	{.name = "get_check",
		.title = "Can this machine be traced",
		.description = "Whether kernel, driver, GPU and privileges allow tracing here, and "
			       "what to do if not.",
		.input = OBJECT(ARG_TSC),
		.output = OBJECT(P("ready", B) "," P("checks",
			LIST(OBJECT(P("name", S) "," P("state", S) "," P("value", S) "," P(
				"detail", S) "," P("recommendation", S))))),
		.run = mcp_check},
	{.name = "run_demo",
		.title = "Explain a recorded demonstration",
		.description = "Explains a recorded run of a known problem, to show what answers "
			       "look like. Nothing is started on this machine.",
		.input =
			NEEDS(ABOUT("scenario",
				      "\"type\":\"string\",\"enum\":[\"incident\",\"cold-start\","
				      "\"memcpy-bottleneck\",\"periodic-spike\",\"cpu-contention\","
				      "\"gpu-steal\"]",
				      "Which problem.") "," ARG_TSC,
				"\"scenario\""),
		.output = OBJECT(P("scenario", S) "," P("title", S) "," INCIDENTS),
		.run = mcp_demo_run},
	{.name = "get_test_report",
		.title = "Report of the last test run",
		.description =
			"logs/test-report.json of the directory that the server was started in.",
		.input = OBJECT(ARG_TSC),
		.output = OBJECT(P("report", ANY)),
		.run = mcp_test_report},
	{.name = NULL},
};

const char mcp_tools_hints[] = READ_ONLY;
