/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the table of routes: the server, the check of parameters and the description of the API
 * (/api/v1/openapi.json) derive from it; docs/api.md has the words.
 *
 * To add a route: a row, and a section in docs/api.md. */
#include "agent/serve/serve_private.h"

#define WINDOW     (API_TIME | API_NODE)
#define QUERY_BODY (128u << 10)

const struct api_row api_rows[] = {
	{"GET", "/healthz", "Health of the server and confinement of SQL", 0, .reply = api_health,
		.open = true},
	{"GET", "/api/v1/time", "This node's clock", 0, .reply = api_time},
	{"GET", "/api/v1/openapi.json", "This description", 0, .reply = api_describe},
	{"GET", "/api/v1/overview", "Overview of the recording: health, counts, worst incident",
		API_NODE, .answer = overview_json},
	{"GET", "/api/v1/ops", "Call counts and durations by operation", WINDOW | API_PID | API_OP,
		.answer = ops_json, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/series", "Call counts and durations by operation over time",
		WINDOW | API_PID | API_OP | API_LIMIT | API_POINTS, .answer = series_json,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/chains", "Stored incidents, newest first", WINDOW | API_LIMIT,
		.answer = chains_json},
	{"GET", "/api/v1/incidents", "Incidents of a time range, worst first, with evidence",
		WINDOW | API_PID | API_LIMIT | API_STACKS, .answer = incidents_json,
		.lane = LANE_HEAVY},
	{"GET", "/api/v1/steps", "Time of ordinary and slow steps, by line",
		WINDOW | API_PID | API_LIMIT | API_STACKS, .answer = steps_json,
		.lane = LANE_HEAVY},
	{"GET", "/api/v1/snapshots", "Host samples", WINDOW | API_POINTS, .answer = snapshots_json,
		.default_ns = 60 * NS_PER_S},
	{"GET", "/api/v1/gpus", "GPU samples", WINDOW | API_POINTS, .answer = gpus_json,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/collectives", "NCCL communicators: late and waiting ranks",
		WINDOW | API_LIMIT, .answer = collectives_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/stacks", "Call stacks with the most time",
		WINDOW | API_PID | API_OP | API_LIMIT, .answer = stacks_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/flame", "All call stacks as one tree",
		WINDOW | API_PID | API_OP | API_NODES, .answer = flame_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/graph-metrics", "CUDA graphs: captures, instantiations, launches",
		WINDOW | API_PID, .answer = graph_metrics_json, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/graph-events", "Latest CUDA graph calls", WINDOW | API_PID | API_LIMIT,
		.answer = graph_events_json, .lane = LANE_HEAVY, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/losses", "Event accounting: hits = stored + aggregated + lost", API_NODE,
		.answer = losses_json},
	{"GET", "/api/v1/overhead", "Overhead of tracing", WINDOW | API_POINTS,
		.answer = overhead_json, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/processes", "Processes: rank, job, coverage, calls",
		WINDOW | API_PID | API_LIMIT, .answer = processes_json,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/nodes", "The nodes in the file", 0, .answer = nodes_json},
	{"GET", "/api/v1/sessions", "The runs of `ingero trace` in the file", API_NODE | API_LIMIT,
		.answer = sessions_json},
	{"GET", "/api/v1/capabilities", "Which data the recording has", 0,
		.answer = capabilities_json},
	{"POST", "/api/v1/query", "Run one read-only SQL statement", 0, .make = api_query,
		.begin = api_query_begin, .lane = LANE_SQL, .body_max = QUERY_BODY},
	{.method = NULL},
};
