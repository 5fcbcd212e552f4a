// SPDX-License-Identifier: Apache-2.0
// links.js - what is looked at, as an address: ?cluster=&rank=&node=. A link can be sent to somebody else, and
// Back goes back.
import {el, group, name} from "./dom.js";
import * as f from "./format.js";

const KEYS = ["cluster", "rank", "node"];

export const state = {cluster: "", rank: null, node: null};

export function read() {
	const q = new URLSearchParams(location.search), rank = q.get("rank");
	state.cluster = q.get("cluster") || "";
	state.rank = rank !== null && /^\d{1,9}$/.test(rank) ? Number(rank) : null;
	state.node = q.get("node") || null;
}

function address(to) {
	const q = new URLSearchParams(KEYS.filter((k) => to[k] !== null && to[k] !== undefined && to[k] !== "").map((k) => [k, String(to[k])]));
	return q.size ? `?${q}` : location.pathname;
}

// go - another state; @quiet: the address changes, without a step to go back to.
export function go(to, quiet) {
	Object.assign(state, to);
	history[quiet ? "replaceState" : "pushState"](null, "", address(state));
}

export function rank(n, node, text) {
	if (n === null || n === undefined)
		return "rank ?";
	return el("a", {href: address({cluster: state.cluster, rank: n, node}), "data-act": "rank", "data-rank": n, "data-node": node || null}, text || `rank ${n}`);
}

export const node = (n, text) => n ? el("a", {href: address({cluster: state.cluster, node: n}), "data-act": "node", "data-node": n}, text || name(n, 60)) : "";

export const who = (r) => group(rank(r.rank, r.node), r.node ? group(" on ", node(r.node)) : "");

// ranks - numbers as short text: "0\u20137, 12".
export function ranks(list) {
	const known = list.filter((r) => r !== null).sort((a, b) => a - b), runs = [];
	for (const r of known) {
		const last = runs[runs.length - 1];
		if (last && r === last[1] + 1)
			last[1] = r;
		else if (!last || r !== last[1])
			runs.push([r, r]);
	}
	const text = runs.slice(0, 8).map(([a, b]) => a === b ? `${a}` : `${a}\u2013${b}`).join(", ");
	return `${known.length === 1 ? "rank" : "ranks"} ${text}${runs.length > 8 ? " \u2026" : ""}` + (known.length < list.length ? ` and ${f.count(list.length - known.length)} without a number` : "");
}

// A name that could be something other than a host's is not put into an address.
export function ownPage(template, n) {
	return template && /^https?:\/\//.test(template) && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(n) ? template.replaceAll("{node}", n) : null;
}
