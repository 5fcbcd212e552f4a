// SPDX-License-Identifier: Apache-2.0
// memory.js - the cluster's memory (`ingero-cluster echo`), where this server has one: it is asked once whether it
// has; what only the memory knows is absent otherwise, and nothing is said to be wrong.
import * as client from "./client.js";

let offered = null; // a promise of whether there is one

export const isThere = () => offered ??= client.ask("/api/versions", {}, JSON.parse).then((v) => (v.supported || []).includes("v2"), () => false);

// ask - the answer of a tool; null: there is no memory, or it does not answer now.
export async function ask(tool, args) {
	if (!await isThere())
		return null;
	try {
		return (await client.ask(`/api/v2/tools/fleet_cluster_${tool}`, {method: "POST", body: JSON.stringify(args)}, JSON.parse)).data;
	} catch {
		return null;
	}
}

// clusters - those that this token is for; null: it is for all, or there is no memory.
export async function clusters() {
	if (!await isThere())
		return null;
	return client.ask("/api/v2/whoami", {}, JSON.parse).then((w) => w.data.clusters, () => null);
}

// forget - with another token another answer is possible.
export const forget = () => { offered = null; };
