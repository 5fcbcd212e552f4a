// SPDX-License-Identifier: Apache-2.0
// flame_panel.js - the flame graph of the time that is chosen, or the difference between that time and another one.
import {el, group} from "./dom.js";
import {lacking} from "./parts.js";
import {Flame} from "./flame.js";
import {nsOf, spanOf, spanText, stamp, state} from "./address.js";
import {clockMs, duration, span} from "./format.js";

const $ = (id) => document.getElementById(id);
let flame = null;

// merge - two trees as one: each frame with what it took in a second of either time (ns), as wide as the mean of both.
export function merge(before, after, secondsBefore, secondsAfter) {
	const nodes = [], places = new Map();
	const add = (tree, key, seconds) => {
		const at = [];
		tree.nodes.forEach((n, i) => {
			const parent = n.parent < 0 ? -1 : at[n.parent], id = `${parent}\n${n.kind}\n${n.name}`;
			if (!places.has(id)) {
				places.set(id, nodes.length);
				nodes.push({parent, name: n.name, kind: n.kind, self: 0, total: 0, before: 0, after: 0});
			}
			const m = nodes[at[i] = places.get(id)];
			m[key] += n.total / seconds;
			m.total += n.total / seconds / 2;
			m.self += n.self / seconds / 2;
		});
	};
	add(before, "before", secondsBefore);
	add(after, "after", secondsAfter);
	return {unit: "ns", nodes, total: nodes.length ? nodes[0].total : 0, compared: true};
}

const seconds = (w) => Math.max((w.to_ns - w.from_ns) / 1e9, 1e-9);
const near = (a, b) => Math.abs(a - b) < 1e6;

// The time before the one that is chosen, as long as it; of the whole recording its first half against its second.
export function compareChange(w, o) {
	const from = state.from ? nsOf(state.from) : BigInt(w.from_ns), to = state.to ? nsOf(state.to) : BigInt(w.to_ns), first = BigInt(o.first_ns);
	if (near(Number(from), o.first_ns) || from <= first) {
		const middle = (from + to) / 2n;
		return {from: stamp(middle), to: stamp(to), since: "", vs: spanText(from, middle)};
	}
	const start = from - (to - from);
	return {from: stamp(from), to: stamp(to), since: "", vs: spanText(start > first ? start : first, from)};
}

function about(d, other) {
	const vs = spanOf(state.vs), text = (w) => near(w.from_ns, w.to_ns) || w.to_ns - w.from_ns < 2e9 ? `${clockMs(w.from_ns)} \u2013 ${clockMs(w.to_ns)}` : span(w.from_ns, w.to_ns);
	if (vs && other)
		return el("p", {class: "note"}, `Time in calls for each second: ${text(d.window)} compared with ${text(other.window)} (before). ` +
			`${duration(other.total / seconds(other.window))} before, ${duration(d.total / seconds(d.window))} now. Width is the mean of both; `,
		el("span", {class: "key grown"}), "takes more now, ", el("span", {class: "key shrunk"}), "takes less.");
	return el("p", {class: "note"}, `${text(d.window)}: ${duration(d.total)} in calls of ${d.rows.toLocaleString("en-US")} rows examined` +
		(d.left_out ? `; ${duration(d.left_out)} in frames too small to list` : "") + (d.truncated ? "; older rows were omitted" : "") + ".");
}

export function view(ctx) {
	const d = ctx.data.flame, other = state.vs ? ctx.data["flame-vs"] : null, some = d.nodes.length > 1 || (other && other.nodes.length > 1);
	for (const part of ["flame-tree", "flame-about"])
		$(part).hidden = !some;
	$("flame-plain").hidden = !state.vs;
	$("flame-compare").hidden = Boolean(state.vs);
	flame.update(!some ? {nodes: [], total: 0} : other ? merge(other, d, seconds(other.window), seconds(d.window)) : d);
	$("flame-found").textContent = flame.wanted ? `${flame.search(flame.wanted)} matched` : "";
	if (!some)
		return lacking(ctx, "stacks", "call stacks", "record without --stack=false.");
	return group(state.vs && !other ? el("p", {class: "dim"}, "Loading the time to compare with\u2026") : null, about(d, other));
}

export function search(words) {
	const found = flame.search(words);
	$("flame-found").textContent = found ? `${found} matched` : "";
}

export function showAll() {
	$("flame-search").value = "";
	search("");
	flame.zoom(0);
}

export function start() {
	flame = new Flame($("flame-tree"), $("flame-about"));
}
