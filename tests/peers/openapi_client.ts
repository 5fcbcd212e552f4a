// SPDX-License-Identifier: Apache-2.0
// openapi_client.ts URL TOKEN - every operation of /api/v2 through a client whose types were generated from the
// server's own OpenAPI document (./schema.ts): tsc checks the calls and what is read of the answers, then this
// is run. Prints what it saw.
import createClient from "openapi-fetch";
import type { paths } from "./schema.ts";

const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
const seen: Record<string, unknown> = {};

function good<T>(name: string, answer: { data?: { ok: true; data: T }; error?: unknown; response: Response }): T {
  if (!answer.data) throw new Error(`${name}: ${answer.response.status} ${JSON.stringify(answer.error)}`);
  seen[name] = answer.response.status;
  return answer.data.data;
}

const body = { cluster_id: "train" };
seen.nodes = good("summary", await client.POST("/api/v2/tools/fleet_cluster_summary", { body })).clusters[0].nodes;
const stragglers = good("find_stragglers", await client.POST("/api/v2/tools/fleet_cluster_find_stragglers", { body: { ...body, limit: 5 } }));
seen.stragglers = stragglers.stragglers.map((s) => s.node_id);
seen.reasons = stragglers.stragglers[0].reasons;
good("find_outlier_nodes", await client.POST("/api/v2/tools/fleet_cluster_find_outlier_nodes", { body })).outliers.map((o) => o.deviation);
seen.events = good("event_history", await client.POST("/api/v2/tools/fleet_cluster_event_history", { body: { limit: 3 } })).events.length;
seen.rows = good("run_analysis", await client.POST("/api/v2/tools/fleet_cluster_run_analysis", { body: { sql: "SELECT 1 AS one" } })).rows;
seen.total = good("get_cost", await client.POST("/api/v2/tools/fleet_cluster_get_cost", { body })).total;
good("anomalies", await client.POST("/api/v2/tools/fleet_cluster_anomalies", { body })).anomalies.map((a) => a.type);
seen.bandwidth = good("nccl_summary", await client.POST("/api/v2/tools/fleet_cluster_nccl_summary", { body })).operations[0].bandwidth_bytes_per_s;
good("memcpy_bandwidth_summary", await client.POST("/api/v2/tools/fleet_cluster_memcpy_bandwidth_summary", { body })).directions.map((d) => d.bytes);
good("memfrag_hotspots", await client.POST("/api/v2/tools/fleet_cluster_memfrag_hotspots", { body })).nodes.map((n) => n.calls);
good("kernel_launch_summary", await client.POST("/api/v2/tools/fleet_cluster_kernel_launch_summary", { body })).nodes.map((n) => n.launches);
seen.verdict = good("blame", await client.POST("/api/v2/tools/fleet_cluster_blame", { body })).verdicts[0].verdict;
good("steps", await client.POST("/api/v2/tools/fleet_cluster_steps", { body })).steps.map((s) => s.step_ns);

// The same by GET, with a query.
const got = await client.GET("/api/v2/tools/fleet_cluster_find_stragglers", { params: { query: { cluster_id: "train", threshold: 0.4, limit: 1 } } });
seen.got = good("get find_stragglers", got).stragglers.length;

seen.sql = good("sql", await client.POST("/api/v2/sql", { body: { sql: "SELECT count(*) FROM events", limit: 5 } })).columns.length;
seen.listed = good("list_tools", await client.GET("/api/v2/tools/list", {})).tools.filter((t) => t.name.startsWith("fleet_")).length;
seen.verbs = good("whoami", await client.GET("/api/v2/whoami", {})).verbs;
seen.status = good("health", await client.GET("/api/v2/health", {})).status;
seen.preferred = ((await client.GET("/api/versions", {})).data as { preferred?: string }).preferred;

// What is wrong comes in the envelope as well, typed.
const wrong = await client.POST("/api/v2/tools/fleet_cluster_summary", { body: { since: "soon" } });
seen.wrong = [wrong.response.status, wrong.error?.error.code];
const stranger = createClient<paths>({ baseUrl: url });
const refused = await stranger.GET("/api/v2/whoami", {});
seen.refused = [refused.response.status, refused.error?.ok, refused.error?.error.code];
console.log(JSON.stringify(seen));
