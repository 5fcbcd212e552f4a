// SPDX-License-Identifier: Apache-2.0
// mcp_connect.mjs - an official client of the Model Context Protocol, old (sdk) or new (client), connected over
// stdio or HTTP. $PEER_TOKEN is its bearer token.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

export async function connect(packages, which, way, mode, target) {
  const require = createRequire(packages + "/package.json");
  const load = (name) => import(pathToFileURL(require.resolve(name)).href);

  async function makeClient() {
    const info = { name: "peer", version: "1.0.0" };
    if (which === "sdk") {
      const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
      return new Client(info, { capabilities: {} });
    }
    const { Client } = await load("@modelcontextprotocol/client");
    const wanted = mode === "legacy" || mode === "auto" ? mode : { pin: mode };
    return new Client(info, { capabilities: {}, versionNegotiation: { mode: wanted } });
  }

  async function makeTransport() {
    const headers = process.env.PEER_TOKEN ? { Authorization: "Bearer " + process.env.PEER_TOKEN } : {};
    if (way === "http") {
      const { StreamableHTTPClientTransport } =
        which === "sdk" ? await load("@modelcontextprotocol/sdk/client/streamableHttp.js") : await load("@modelcontextprotocol/client");
      return new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } });
    }
    const { StdioClientTransport } =
      which === "sdk" ? await load("@modelcontextprotocol/sdk/client/stdio.js") : await load("@modelcontextprotocol/client/stdio");
    return new StdioClientTransport({ command: target[0], args: target.slice(1), stderr: "inherit" });
  }

  const client = await makeClient();
  const transport = await makeTransport();
  await client.connect(transport);
  const call = (name, args, options) =>
    which === "sdk" ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options);
  return { client, transport, call };
}
