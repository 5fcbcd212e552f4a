// SPDX-License-Identifier: Apache-2.0
// mcp_peer.mjs PACKAGES sdk|client stdio|http legacy|auto|2026-07-28 TARGET… - talks to `ingero mcp` with an
// official client and prints what it saw as one JSON object. TARGET is a URL, or a command. The clients check
// every answer against its schema themselves and throw if it does not fit.
import { connect } from "./mcp_connect.mjs";

const [packages, which, way, mode, ...target] = process.argv.slice(2);
const { client, transport, call } = await connect(packages, which, way, mode, target);
// What a tool said: a sentence as text, and the data once.
const value = (r) => (r.content.length === 1 && r.content[0].text.startsWith("[traced-data]") ? r.structuredContent : null);
const seen = { progress: 0, answers: {}, failed: {} };
seen.revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
seen.server = client.getServerVersion()?.name;
const { tools } = await client.listTools();
seen.tools = tools.map((t) => t.name);
for (const name of ["explain", "get_steps", "get_trace_stats", "get_causal_chains", "get_stacks", "get_collectives", "get_gpu_state", "get_losses"])
  for (const tsc of [true, false]) {
    const r = await call(name, { tsc });
    seen.answers[name + (tsc ? "" : " full")] = !r.isError && typeof value(r) === "object";
  }
const sql = await call("run_sql", { query: "SELECT count(*) AS n FROM events" });
seen.rows = value(sql).rows[0][0];
seen.failed.arguments = (await call("run_sql", { query: 5 })).isError;
await call("explain", {}, { onprogress: () => seen.progress++ });
try {
  await call("no_such_tool", {});
} catch (e) {
  seen.failed.tool = e.code;
}
seen.resources = (await client.listResources()).resources.map((r) => r.uri);
seen.templates = (await client.listResourceTemplates()).resourceTemplates.length;
const incidents = JSON.parse((await client.readResource({ uri: "ingero://incidents" })).contents[0].text).incidents;
seen.incident = JSON.parse((await client.readResource({ uri: "ingero://incidents/" + incidents[0].id })).contents[0].text).severity;
try {
  await client.readResource({ uri: "ingero://incidents/none" });
} catch (e) {
  seen.failed.resource = e.code;
}
seen.prompt = (await client.getPrompt({ name: "investigate" })).messages[0].content.text.includes("explain");
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
