/* SPDX-License-Identifier: Apache-2.0 */
/* questions.c - what can be asked of a recording, as one table: the HTTP API, its description
 * (/api/v1/openapi.json), the check of parameters and the tools of assistants derive from it; docs/api.md has
 * the words.
 *
 * To add a question: a row with a function of answer/answer.h; a path and a section in docs/api.md, or the name
 * of a tool, or both. */
#include "serve/serve_private.h"

#include <sys/eventfd.h>

#include "sql/sql_worker.h"

#define WINDOW     (API_TIME | API_NODE)
#define QUERY_BODY (128u << 10)

const struct api_row api_rows[] = {
	{"GET", "/healthz", "Health of the server and confinement of SQL", 0, .reply = api_health,
		.open = true},
	{"GET", "/api/v1/time", "This node's clock", 0, .reply = api_time},
	{"GET", "/api/v1/openapi.json", "This description", 0, .reply = api_describe},
	{"GET", "/api/v1/overview", "Overview of the recording: health, counts, worst incident",
		API_NODE, .answer = overview_json},
	{"GET", "/api/v1/incidents", "Incidents of a time range, worst first, with evidence",
		WINDOW | API_PID | API_LIMIT | API_STACKS, .answer = incidents_json,
		.lane = LANE_HEAVY, .tool = "explain", .more = API_ID,
		.about =
			"Start here. What went wrong in the recording, worst first: cause, culprit, "
			"confidence, line of code, fixes. "
			"With an id, all of one incident."},
	{"GET", "/api/v1/steps", "Time of ordinary and slow steps, by line",
		WINDOW | API_PID | API_LIMIT | API_STACKS, .answer = steps_json, .lane = LANE_HEAVY,
		.tool = "get_steps",
		.about = "Where the time of training or inference steps went (GPU, host code, CPU, "
			 "disk, locks …), ordinary steps beside slow ones, and what grew: thread, "
			 "loader worker, culprit, line of code."},
	{"GET", "/api/v1/ops", "Call counts and durations by operation", WINDOW | API_PID | API_OP,
		.answer = ops_json, .default_ns = ANSWER_DEFAULT_NS, .tool = "get_trace_stats",
		.about = "Calls, p50, p95, p99, maximum, share of wall time and outliers of every "
			 "CUDA, driver, NCCL and host operation, most time first."},
	{"GET", "/api/v1/series", "Call counts and durations by operation over time",
		WINDOW | API_PID | API_OP | API_LIMIT | API_POINTS, .answer = series_json,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/chains", "Stored incidents, newest first", WINDOW | API_LIMIT,
		.answer = chains_json},
	{.tool = "get_causal_chains",
		.summary = "Incidents found while tracing, worst first",
		.params = WINDOW | API_PID | API_LIMIT,
		.run = mcp_causal_chains,
		.about = "What was found while tracing, worst first, with root cause and fixes. "
			 "explain says more."},
	{"GET", "/api/v1/timeline", "Threads, streams, ranks and GPUs over time",
		WINDOW | API_PID | API_LIMIT | API_TRACKS, .answer = timeline_json,
		.needs_timeline = true},
	{"GET", "/api/v1/timeline/event", "One event of the time line: arguments, stack, SQL",
		API_REF, .answer = timeline_event_json, .needs_timeline = true},
	{"GET", "/api/v1/timeline/search", "Events, threads and processes by name",
		WINDOW | API_PID | API_TEXT, .answer = timeline_search_json, .lane = LANE_HEAVY,
		.needs_timeline = true},
	{"GET", "/api/v1/snapshots", "Host samples", WINDOW | API_POINTS, .answer = snapshots_json,
		.default_ns = 60 * NS_PER_S},
	{"GET", "/api/v1/gpus", "GPU samples", WINDOW | API_POINTS, .answer = gpus_json,
		.default_ns = ANSWER_DEFAULT_NS, .tool = "get_gpu_state",
		.about = "Of each GPU: utilisation, clocks, power, temperature, how long it was "
			 "throttled and why, memory, errors, PCIe."},
	{"GET", "/api/v1/collectives", "NCCL communicators: late and waiting ranks",
		WINDOW | API_LIMIT, .answer = collectives_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS, .tool = "get_collectives",
		.about = "The straggler, if there is one, and NCCL collectives by operation and "
			 "rank: calls, bytes, waits, how often and how late a rank came last."},
	{"GET", "/api/v1/stacks", "Call stacks with the most time",
		WINDOW | API_PID | API_OP | API_LIMIT, .answer = stacks_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS, .tool = "get_stacks",
		.about = "From where in the program calls were made (Python and native frames, "
			 "innermost first), those with most time first."},
	{"GET", "/api/v1/flame", "All call stacks as one tree",
		WINDOW | API_PID | API_OP | API_NODES, .answer = flame_json, .lane = LANE_HEAVY,
		.default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/flame/diff", "Call stacks of two times as one tree",
		WINDOW | API_PID | API_OP | API_NODES | API_TIME2, .answer = flame_diff_json,
		.lane = LANE_HEAVY, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/diff", "What differs between two times",
		WINDOW | API_PID | API_OP | API_LIMIT | API_TIME2, .answer = diff_json,
		.lane = LANE_HEAVY, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/graph-metrics", "CUDA graphs: captures, instantiations, launches",
		WINDOW | API_PID, .answer = graph_metrics_json, .default_ns = ANSWER_DEFAULT_NS},
	{"GET", "/api/v1/graph-events", "Latest CUDA graph calls", WINDOW | API_PID | API_LIMIT,
		.answer = graph_events_json, .lane = LANE_HEAVY, .default_ns = ANSWER_DEFAULT_NS},
	{.tool = "graph_lifecycle",
		.summary = "CUDA graphs of a process, in order",
		.params = WINDOW | API_PID,
		.needs = API_PID,
		.answer = graph_lifecycle_json,
		.about =
			"Captures, instantiations, launches and ends of a process's CUDA graphs, in "
			"order."},
	{.tool = "graph_frequency",
		.summary = "CUDA graphs of a process by launches",
		.params = WINDOW | API_PID,
		.needs = API_PID,
		.answer = graph_frequency_json,
		.about = "A process's CUDA graphs by launches: rate, hot, cold or never launched, "
			 "recaptures."},
	{"GET", "/api/v1/kernels", "Launched kernels by name, most launches first",
		API_NODE | API_PID | API_LIMIT, .answer = kernels_json},
	{"GET", "/api/v1/losses", "Event accounting: hits = stored + aggregated + lost", API_NODE,
		.answer = losses_json, .tool = "get_losses",
		.about =
			"How complete the recording is. Ask before you conclude that something did "
			"not happen."},
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
		.begin = api_query_begin, .lane = LANE_SQL, .body_max = QUERY_BODY,
		.tool = "run_sql", .more = API_SQL | API_LIMIT, .needs = API_SQL, .run = mcp_sql,
		.about =
			"One SQLite statement that reads the recording, at most 5 s. Resource "
			"ingero://schema has tables and columns: events (a selection; times in ns), "
			"event_aggregates (all), ops, collectives, incidents, gpu_samples, ledger …"},
	{.tool = "query_fleet",
		.summary = "Ask all nodes",
		.run = mcp_fleet,
		.params = API_TIME | API_PID | API_LIMIT | API_ACTION | API_SQL,
		.needs = API_ACTION,
		.is_fleet = true,
		.about =
			"Asks the nodes named in the configuration, never others. Nodes that do not "
			"respond are listed."},
	{.tool = "get_check",
		.summary = "Check this machine",
		.run = mcp_check,
		.about =
			"Whether kernel, driver, GPU and privileges allow tracing here, and what to "
			"do if not."},
	{.tool = "run_demo",
		.summary = "Explain a recorded demonstration",
		.run = mcp_demo_run,
		.params = API_SCENARIO,
		.needs = API_SCENARIO,
		.about = "Explains a recorded run of a known problem. Nothing is started here."},
	{.tool = "get_test_report",
		.summary = "Report of the last test run",
		.run = mcp_test_report,
		.is_extra = true,
		.about = "logs/test-report.json of the server's working directory."},
	{.summary = NULL},
};

/* See serve_private.h.
 *
 * Invariants:
 *  1. finish() is called once: by the loop when a thread has run the job, or by whoever withdrew it
 *     from the queue before one could.
 *  2. Its timer and eventfd are there until then. */

#define LOOK_AGAIN_NS (100 * NS_PER_MS)

static void job_done(struct job *j)
{
	if (j->timer)
		loop_timer_free(j->timer);
	if (j->gone >= 0)
		close(j->gone);
	j->timer = NULL;
	j->gone = -1;
}

static void end(struct job *j, int err)
{
	job_done(j);
	j->finish(j, err);
}

static void on_done(void *arg)
{
	struct job *j = arg;

	end(j, 0);
}

static bool on_thread(void *arg, bool brief)
{
	struct job *j = arg;
	bool done;

	sql_worker_watch(j->gone);
	done = j->run(j, brief);
	sql_worker_watch(-1);
	if (done)
		loop_post(j->loop, &j->task, on_done, j);
	return done;
}

static void on_gone(void *arg)
{
	struct job *j = arg;

	if (pool_withdraw(j->pool, &j->queued))
		end(j, -ECANCELED);
	else
		(void)eventfd_write(j->gone, 1); /* whoever waits for SQL sees it */
}

/* What runs knows its own deadline. But a brief try may end just now and be queued again. */
static void on_late(void *arg)
{
	struct job *j = arg;

	if (pool_withdraw(j->pool, &j->queued))
		end(j, -EBUSY);
	else
		loop_timer_set(j->timer, LOOK_AGAIN_NS);
}

static int set_timer(struct job *j, uint64_t deadline_ns)
{
	uint64_t now = mono_now().ns;
	int r = deadline_ns ? loop_timer_new(j->loop, on_late, j, &j->timer) : 0;

	if (r == 0 && deadline_ns)
		loop_timer_set(j->timer, deadline_ns > now ? deadline_ns - now : 1);
	return r;
}

int job_start(struct job *j, struct loop *l, struct pool *p, const struct http_request *q,
	uint64_t deadline_ns)
{
	int r;

	j->loop = l;
	j->pool = p;
	j->queued = (struct pool_job){.fn = on_thread, .arg = j, .asker = q->asker};
	/* Without a descriptor to spare the job runs to its end, as long as it takes. */
	j->gone = j->ends_with_asker ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	r = set_timer(j, deadline_ns);
	r = r ?: pool_push(p, &j->queued);
	if (r < 0)
		job_done(j);
	else if (j->ends_with_asker)
		http_on_gone(j->x, on_gone, j);
	return r;
}
