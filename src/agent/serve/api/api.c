/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the table of routes: the server, the check of parameters and the description of the API
 * (/api/v1/openapi.json) derive from it; docs/api.md has the words.
 *
 * To add a route: a row, and a section in docs/api.md. */
#include "agent/serve/serve_private.h"

#define WINDOW     (API_TIME | API_NODE)
#define QUERY_BODY (128u << 10)

const struct api_row api_rows[] = {
	{"GET", "/healthz", "Whether the recording can be read, and how SQL is confined", 0,
		.reply = api_health, .open = true},
	{"GET", "/api/v1/time", "This node's clock", 0, .reply = api_time},
	{"GET", "/api/v1/openapi.json", "This description", 0, .reply = api_describe},
	{"GET", "/api/v1/overview", "The recording at a glance: health, counts, the worst verdict",
		API_NODE, .answer = overview_json},
	{"GET", "/api/v1/ops", "Every operation: calls and durations", WINDOW | API_PID | API_OP,
		.answer = ops_json, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/series", "The same over time, for sparklines",
		WINDOW | API_PID | API_OP | API_LIMIT | API_POINTS, .answer = series_json,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/chains", "Stored incidents, newest first", WINDOW | API_LIMIT,
		.answer = chains_json},
	{"GET", "/api/v1/incidents", "The explanation of a time, worst first, with its proof",
		WINDOW | API_PID | API_LIMIT | API_STACKS, .answer = incidents_json,
		.lane = LANE_HEAVY},
	{"GET", "/api/v1/snapshots", "Samples of the host", WINDOW | API_POINTS,
		.answer = snapshots_json, .default_ns = 60 * NS_PER_S},
	{"GET", "/api/v1/gpus", "Samples of the GPUs", WINDOW | API_POINTS, .answer = gpus_json,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/collectives", "NCCL's communicators: who was last, who waited",
		WINDOW | API_LIMIT, .answer = collectives_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/stacks", "The call stacks with most time",
		WINDOW | API_PID | API_OP | API_LIMIT, .answer = stacks_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/flame", "All call stacks as one tree",
		WINDOW | API_PID | API_OP | API_NODES, .answer = flame_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/graph-metrics", "CUDA graphs: captures, instantiations, launches",
		WINDOW | API_PID, .answer = graph_metrics_json, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/graph-events", "The newest calls of CUDA graphs",
		WINDOW | API_PID | API_LIMIT, .answer = graph_events_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/losses", "The books: hits = stored + aggregated + lost", API_NODE,
		.answer = losses_json},
	{"GET", "/api/v1/overhead", "What tracing cost, as the agent recorded it",
		WINDOW | API_POINTS, .answer = overhead_json, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/processes", "Processes: rank, job, coverage, calls",
		WINDOW | API_PID | API_LIMIT, .answer = processes_json,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/nodes", "The nodes in the file", 0, .answer = nodes_json},
	{"GET", "/api/v1/sessions", "The runs of `ingero trace` in the file", API_NODE | API_LIMIT,
		.answer = sessions_json},
	{"GET", "/api/v1/capabilities", "What this recording can tell, and what not", 0,
		.answer = capabilities_json},
	{"POST", "/api/v1/query", "One SQL statement that only reads", 0, .make = api_query,
		.begin = api_query_begin, .lane = LANE_SQL, .body_max = QUERY_BODY},
	{.method = NULL},
};
