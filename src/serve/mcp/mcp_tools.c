/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c - the table of tools. None of them writes: what pages somebody or changes a machine
 * does not belong on a server whose answers hold strangers' texts. */
#include "serve/mcp/mcp_tools.h"

#include "serve/mcp/mcp_schema.h"
#include "serve/mcp/mcp_tool.h"

#define READ_ONLY  "{\"readOnlyHint\":true,\"openWorldHint\":false}"
#define READ_FLEET "{\"readOnlyHint\":true,\"openWorldHint\":true}"

/* clang-format off */
const struct registry_tool mcp_tools[] = {
	{.name = "explain",
	 .title = "Why the GPU waited",
	 .description = "Start here. What went wrong in the recording, worst first: summary, root "
			"cause, culprit process, share of the lost time it explains, confidence, "
			"timeline, source line, fixes. With an id, all of one incident.",
	 .input = ARGUMENTS(ARG_SINCE
			    ARG_PID
			    ARG_PIDS
			    ARG_RANK
			    ARG_TOP_N
			    TEXT("id", 256, "Only the incident with this id.")),
	 .annotations = READ_ONLY,
	 .run = mcp_explain},
	{.name = "get_steps",
	 .title = "Where a step's time went",
	 .description = "The account of each process's training or inference steps: every moment of "
			"a step on one line (GPU, host code, CPU, disk, locks, …), ordinary steps "
			"beside slow ones, and whose time grew: thread, loader worker, culprit, "
			"source line.",
	 .input = ARGUMENTS(ARG_SINCE
			    ARG_PID
			    NUMBER("limit", 1, 64, 3, "How many processes.")),
	 .annotations = READ_ONLY,
	 .run = mcp_steps},
	{.name = "get_trace_stats",
	 .title = "Statistics by operation",
	 .description = "Calls, p50, p95, p99 and maximum, share of wall time and outliers of every "
			"CUDA, driver, NCCL and host operation, most time first, and the host's "
			"load. Nested ones are part of another row and in no total.",
	 .input = ARGUMENTS(ARG_SINCE
			    ARG_PID
			    ARG_PIDS
			    ARG_RANK),
	 .annotations = READ_ONLY,
	 .run = mcp_trace_stats},
	{.name = "get_causal_chains",
	 .title = "Causal chains",
	 .description = "What was found while tracing, worst first, as chains of events with root "
			"cause and fixes; without stored ones, or for given processes, they are "
			"computed now. `explain` has more details.",
	 .input = ARGUMENTS(ARG_SINCE
			    ARG_PID
			    ARG_PIDS
			    ARG_RANK
			    ARG_TOP_N),
	 .annotations = READ_ONLY,
	 .run = mcp_causal_chains},
	{.name = "get_stacks",
	 .title = "Call stacks",
	 .description = "From where in the program calls were made (Python and native frames, "
			"innermost first), those with most time first.",
	 .input = ARGUMENTS(CHOICE("source", "\"cuda\",\"driver\",\"nccl\",\"cuda_graph\"",
				   "Only calls of this library.")
			    ARG_OP
			    ARG_PID
			    ARG_RANK
			    ARG_SINCE
			    NUMBER("limit", 1, 100, 10, "How many stacks.")),
	 .annotations = READ_ONLY,
	 .run = mcp_stacks},
	{.name = "get_collectives",
	 .title = "NCCL calls and ranks",
	 .description = "The straggler (the rank that the others wait for), and collectives by "
			"operation and by rank: calls, bytes, waits, how often and how long a rank "
			"came last, how far it is behind.",
	 .input = ARGUMENTS(ARG_SINCE),
	 .annotations = READ_ONLY,
	 .run = mcp_collectives},
	{.name = "get_gpu_state",
	 .title = "State of the GPUs",
	 .description = "For each GPU: utilisation, clocks, power, temperature (least, most, mean), "
			"how long it was throttled and why, memory, errors, PCIe.",
	 .input = ARGUMENTS(ARG_SINCE),
	 .annotations = READ_ONLY,
	 .run = mcp_gpu_state},
	{.name = "get_losses",
	 .title = "How complete the recording is",
	 .description = "hits = stored + aggregated + lost for every source of events, the reasons "
			"of losses, calls that no probe could see (unseen), and what was deleted to "
			"keep the file small. Call this before you conclude that something did not happen.",
	 .input = ARGUMENTS(""),
	 .annotations = READ_ONLY,
	 .run = mcp_losses},
	{.name = "run_sql",
	 .title = "Run SQL",
	 .description = "One SQLite statement that reads the recording, stopped after 5 s. Resource "
			"ingero://schema has tables and columns: events(timestamp, duration in ns, "
			"pid, tid, source, op, …) is a selection, event_aggregates counts all; "
			"ops(source_id, op_id, name), collectives, incidents, gpu_samples, "
			"system_snapshots, ledger (what threads spent their time on), "
			"container_samples.",
	 .input = ARGUMENTS_WITH("query",
			    "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":65536,"
			    "\"description\":\"SELECT …\"},"
			    ARG_ROWS),
	 .annotations = READ_ONLY,
	 .run = mcp_sql},
	{.name = "graph_lifecycle",
	 .title = "Life of CUDA graphs",
	 .description = "Captures, instantiations, launches and ends of CUDA graphs of one process "
			"in order, and how often each graph is replayed.",
	 .input = ARGUMENTS_WITH("pid",
			    ARG_PID
			    ARG_SINCE),
	 .annotations = READ_ONLY,
	 .run = mcp_graph_lifecycle},
	{.name = "graph_frequency",
	 .title = "How often CUDA graphs are launched",
	 .description = "Executable CUDA graphs of one process by launches: rate, HOT, cold or "
			"never-launched, and the number of recaptures.",
	 .input = ARGUMENTS_WITH("pid",
			    ARG_PID
			    ARG_SINCE),
	 .annotations = READ_ONLY,
	 .run = mcp_graph_frequency},
	{.name = "query_fleet",
	 .title = "Query all nodes",
	 .description = "Asks the nodes named in the configuration (never others) for chains, "
			"statistics by operation, an overview, or by SQL. Nodes that do not "
			"respond are listed.",
	 .input = ARGUMENTS_WITH("action",
			    CHOICE("action", "\"chains\",\"ops\",\"overview\",\"sql\"",
				   "What to query.")
			    TEXT("query", 65536, "action sql: the statement.")
			    TEXT("sql", 65536, "The same as query.")
			    ARG_SINCE
			    ARG_PID
			    ARG_ROWS),
	 .annotations = READ_FLEET,
	 .run = mcp_fleet},
	{.name = "get_check",
	 .title = "Check this machine",
	 .description = "Whether kernel, driver, GPU and privileges allow tracing here, and what to "
			"do if not.",
	 .input = ARGUMENTS(""),
	 .annotations = READ_ONLY,
	 .run = mcp_check},
	{.name = "run_demo",
	 .title = "Explain a recorded demonstration",
	 .description = "Explains a recorded run of a known problem, to show what answers look "
			"like. Nothing is started on this machine.",
	 .input = ARGUMENTS_WITH("scenario",
			    CHOICE("scenario",
				   "\"incident\",\"cold-start\",\"memcpy-bottleneck\","
				   "\"periodic-spike\",\"cpu-contention\",\"gpu-steal\"",
				   "Which problem.")),
	 .annotations = READ_ONLY,
	 .run = mcp_demo_run},
	{.name = "get_test_report",
	 .title = "Report of the last test run",
	 .description = "logs/test-report.json of the directory that the server was started in.",
	 .input = ARGUMENTS(""),
	 .annotations = READ_ONLY,
	 .run = mcp_test_report},
	{.name = NULL},
};
/* clang-format on */
