// SPDX-License-Identifier: Apache-2.0
// nodes.js - the machines: those that have fallen silent, then all of them by job, then what each says of itself.
import {el, group, name} from "./dom.js";
import {badge, bar, nothing, table} from "./parts.js";
import * as links from "./links.js";
import * as f from "./format.js";

const MOST_ROWS = 40, MANY = 48; // of many nodes the well ones are small

// What is the matter with a node: its own trouble, or that of a rank on it.
function trouble(n, episodes) {
	if (n.straggler)
		return {level: n.reason === "silent" ? "critical" : "high", text: n.reason === "silent" ? "silent" : `${n.reason}: ${n.signal || "unknown"}`};
	const e = episodes.find((x) => x.node === n.node);
	return e ? {level: e.problem === "hang" ? "critical" : "high", text: e.rank !== null ? `${e.problem === "hang" ? "hangs" : "late"}: rank ${e.rank}` : e.problem.replaceAll("_", " ")} : null;
}

// ---- silent ones ----

function silentView(nodes, seats) {
	const silent = nodes.filter((n) => n.reason === "silent");
	if (!silent.length)
		return null;
	return group(el("h3", {class: "alarm"}, `\u2716 ${f.counted(silent.length, "node")} ${silent.length === 1 ? "has" : "have"} fallen silent`),
		el("ul", {class: "silent"}, silent.slice(0, 50).map((n) => el("li", {key: `s${n.node}`}, links.node(n.node), ` was last heard ${f.duration(n.age_ns)} ago`,
			seats.has(n.node) ? `; ${links.ranks(seats.get(n.node))} ran there` : "", `. Its score was ${n.score.toFixed(3)}.`))),
		el("p", {class: "note"}, "The others still push, so the cause is the node, its agent or its network: ", el("code", {}, "ssh"), " to it and look at ", el("code", {}, "ingero check"), " and the log of ", el("code", {}, "ingero fleet-push"), "."));
}

// ---- by job ----

function tile(n, episodes, ranks, dense) {
	const t = n.score === undefined ? null : trouble(n, episodes);
	const said = [n.node, t ? t.text : n.state || "no health pushed", ranks ? links.ranks(ranks) : "", n.score === undefined ? "" : `score ${n.score.toFixed(3)}, heard ${f.duration(n.age_ns)} ago`].filter(Boolean).join(", ");
	return el("li", {key: `t${n.node}`}, el("a", {href: `?node=${encodeURIComponent(n.node)}`, class: `tile ${t ? t.level : n.state === "active" ? "well" : "quiet"}`, title: said, "aria-label": said, "data-act": "node", "data-node": n.node},
		name(n.node, 40), dense && !t && n.state === "active" ? null : el("small", {}, t ? t.text : n.state || "\u2013")));
}

// The troubled first: of a thousand they are to be seen at once.
function tiles(list, episodes, seats) {
	const rank = (n) => n.score === undefined ? 1 : trouble(n, episodes) ? 0 : 2;
	const dense = list.length > MANY;
	return el("ul", {class: dense ? "tiles dense" : "tiles"}, [...list].sort((a, b) => rank(a) - rank(b) || a.node.localeCompare(b.node, "en", {numeric: true})).map((n) => tile(n, episodes, seats.get(n.node), dense)));
}

function jobView(job, by, episodes) {
	const seats = new Map(job.nodes.map((n) => [n.node, n.ranks])), list = job.nodes.map((n) => by.get(n.node) || {node: n.node});
	const bad = list.filter((n) => n.score !== undefined && trouble(n, episodes)).length, model = list.find((n) => n.gpu_model);
	return el("div", {class: "job", key: `j${job.comm}`},
		el("h3", {}, `Job of ${f.counted(job.nranks || job.ranks, "rank")} on ${f.counted(job.nodes.length, "node")}`, job.ranks < job.nranks ? ` (${f.count(job.ranks)} seen)` : ""),
		el("p", {class: "dim"}, bad ? el("b", {class: "alarm"}, `${f.count(bad)} ${bad === 1 ? "node is" : "nodes are"} unhealthy. `) : "All nodes are healthy. ",
			[...new Set(list.map((n) => n.workload).filter(Boolean))].slice(0, 3).map((w) => group(name(w, 40), " \u00b7 ")), model ? group(`${model.gpu_count} \u00d7 `, name(model.gpu_model, 50), " each \u00b7 ") : "",
			`communicator ${job.comm}`),
		tiles(list, episodes, seats));
}

function jobsView(d, jobs, episodes) {
	const by = new Map(d.nodes.map((n) => [n.node, n])), placed = new Set(jobs.flatMap((j) => j.nodes.map((n) => n.node)));
	const idle = d.nodes.filter((n) => !placed.has(n.node));
	return group(jobs.map((j) => jobView(j, by, episodes)),
		idle.length ? el("div", {class: "job", key: "idle"}, el("h3", {}, `${f.counted(idle.length, "node")} without a known job`),
			el("p", {class: "dim"}, "None of their processes has entered a collective."), tiles(idle, episodes, new Map())) : null);
}

// ---- the table ----

function stateCell(n, episodes) {
	const t = trouble(n, episodes);
	return t ? group(badge(t.level.toUpperCase()), el("small", {}, name(t.text, 60))) : n.state;
}

function nodeTable(d, episodes, all) {
	const ordered = [...d.nodes].sort((a, b) => Boolean(trouble(b, episodes)) - Boolean(trouble(a, episodes))), list = all ? ordered : ordered.slice(0, MOST_ROWS);
	return group(el("h3", {}, "Self-reported health"), table([
		{title: "Node", cell: (n) => group(links.node(n.node), n.gpu_model ? el("small", {}, `${n.gpu_count} \u00d7 `, name(n.gpu_model, 50)) : null)},
		{title: "State", class: "state", cell: (n) => stateCell(n, episodes)},
		{title: "Score", class: "n", cell: (n) => group(n.score.toFixed(3), bar(n.score))},
		{title: "Threshold", class: "n wide", cell: (n) => n.threshold === null ? "\u2013" : n.threshold.toFixed(3)},
		{title: "Throughput", class: "n wide", cell: (n) => f.share(n.throughput)},
		{title: "Compute", class: "n wide", cell: (n) => f.share(n.compute)},
		{title: "Memory", class: "n wide", cell: (n) => f.share(n.memory)},
		{title: "CPU", class: "n wide", cell: (n) => f.share(n.cpu)},
		{title: "Heard", class: "n", hint: "time since its last push", cell: (n) => f.duration(n.age_ns)}],
	list, (n) => `${n.cluster_id}/${n.node}`, "Nodes"),
	list.length < d.nodes.length || all ? el("p", {class: "note"}, `${f.count(list.length)} of ${f.counted(d.total, "node")}. `,
		d.nodes.length > MOST_ROWS ? el("button", {type: "button", class: "small", "data-act": "all-nodes"}, all ? "Show fewer" : "Show all") : null) : null);
}

// nodesView - @d: nodes, @jobs, @episodes that last, @all: the whole table.
export function nodesView(d, jobs, episodes, all) {
	if (!d.nodes.length && !jobs.length)
		return nothing("No node has pushed its health yet.");
	const seats = new Map();
	for (const n of jobs.flatMap((j) => j.nodes))
		seats.set(n.node, [...(seats.get(n.node) || []), ...n.ranks]);
	return group(silentView(d.nodes, seats), jobsView(d, jobs, episodes), d.nodes.length ? nodeTable(d, episodes, all) : null);
}
