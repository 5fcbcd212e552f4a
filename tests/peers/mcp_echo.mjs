// SPDX-License-Identifier: Apache-2.0
// mcp_echo.mjs PACKAGES sdk|client MODE URL - asks every tool of `ingero-cluster echo` with an official client,
// which checks each answer against the tool's schema and throws if it does not fit. Prints what it saw.
import { connect } from "./mcp_connect.mjs";

const [packages, which, mode, url] = process.argv.slice(2);
const { client, transport, call } = await connect(packages, which, "http", mode, [url]);
const seen = { answers: {}, texts: {}, failed: {} };
seen.revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
seen.server = client.getServerVersion()?.name;
const { tools } = await client.listTools();
seen.tools = tools.map((t) => t.name);
seen.listBytes = new TextEncoder().encode(JSON.stringify(tools)).length;
seen.bareBytes = new TextEncoder().encode(JSON.stringify(tools.map(({ outputSchema, ...t }) => t))).length;
seen.described = tools.every((t) => t.title && t.description && t.inputSchema && t.outputSchema && t.annotations.readOnlyHint);
for (const { name } of tools) {
  const r = await call(name, name.endsWith("run_analysis") ? { query: "SELECT count(*) AS n FROM events", limit: 10 } : {});
  seen.answers[name] = r.isError ? null : r.structuredContent;
  seen.texts[name] = r.content[0].text;
  if (r.content.length !== 1 || r.content[0].text.startsWith("{")) seen.failed[name] = "sent twice";
}
seen.alias = (await call("fleet.cluster.summary", {})).structuredContent?.clusters?.length;
seen.failed.arguments = (await call("fleet.cluster.summary", { limits: 5 })).isError;
seen.failed.sql = (await call("fleet.cluster.run_analysis", { sql: "DROP TABLE events" })).isError;
try {
  await call("no_such_tool", {});
} catch (e) {
  seen.failed.tool = e.code;
}
const prompt = await client.getPrompt({ name: "investigate", arguments: { cluster_id: "train", question: "why is it slow?" } });
seen.prompt = prompt.messages[0].content.text;
await client.close();
console.log(JSON.stringify(seen));
process.exit(0);
