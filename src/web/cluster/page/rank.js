// SPDX-License-Identifier: Apache-2.0
// rank.js - one rank, or the ranks of one node: how late it is, where its slow steps lose their time in its agent's
// words, what happened before, and the way to the node itself.
import {el, group, name} from "./dom.js";
import {commands, figures, nothing, table} from "./parts.js";
import {about, opName} from "./heat.js";
import * as links from "./links.js";
import * as f from "./format.js";

// Lines of the account of a step, as the node's page names them.
const LINES = {gpu: "waiting for the GPU", copy: "copies to and from the GPU", launch: "launching kernels", allocation: "allocating GPU memory",
	graph: "CUDA graphs", collective: "collectives", call: "other CUDA calls", host: "host code", gc: "garbage collection",
	gil: "waiting for Python\u2019s interpreter lock", lock: "waiting for another thread", cpu: "waiting for a CPU", disk: "disk",
	memory: "page faults and reclaim", network: "network", asleep: "asleep", stopped: "stopped", unknown: "unknown"};
const DOINGS = {running: "running host code", gpu: "waiting for its GPU", collective: "in a collective, waiting for others",
	blocked: "blocked: disk, network, a lock or asleep", stopped: "stopped by a signal or a debugger", gone: "gone: the process has ended"};
const MOST_STEPS = 20, MOST_BARS = 200;

const lineName = (line) => Object.hasOwn(LINES, line) ? LINES[line] : line;
const lineClass = (line) => Object.hasOwn(LINES, line) ? `part-${line}` : "part-unknown";

// ---- the account ----

// Two bars of one scale: an ordinary step, a slow one and of it the line that grew most.
function stepBars(a) {
	const top = Math.max(a.step_ns, a.ordinary_ns), wide = (ns) => ({width: `${(ns / top * 100).toFixed(2)}%`});
	const grew = Math.min(a.line ? a.line_ns || 0 : 0, a.step_ns);
	return el("div", {class: "steps"},
		el("p", {}, el("span", {}, "Ordinary step"), el("span", {class: "track"}, el("i", {class: "plain", style: wide(a.ordinary_ns)})), el("b", {}, f.duration(a.ordinary_ns))),
		el("p", {}, el("span", {}, "Slow step"), el("span", {class: "track"}, el("i", {class: "plain", style: wide(a.step_ns - grew)}),
			grew ? el("i", {class: lineClass(a.line), style: wide(grew), title: `${lineName(a.line)}: ${f.duration(grew)} more`}) : null), el("b", {}, f.duration(a.step_ns))),
		grew ? el("p", {class: "grew"}, el("span", {class: `key ${lineClass(a.line)}`}), name(lineName(a.line), 60), ` takes ${f.duration(grew)} more in a slow step`) : null);
}

function account(r, now) {
	const a = r.account;
	if (!a)
		return nothing(group("The node\u2019s agent has not reported on this rank in the last two minutes. On ", name(r.node, 60), ": ", el("code", {}, "ingero explain --steps")));
	return el("div", {class: "account"},
		a.step_ns && a.ordinary_ns ? stepBars(a) : el("p", {class: "dim"}, "No slow steps so far."),
		el("dl", {class: "facts"},
			a.cause ? group(el("dt", {}, "Why"), el("dd", {}, name(a.cause, 500), a.confidence > 0 ? el("small", {}, ` confidence ${f.share(a.confidence)}`) : null)) : null,
			a.fix ? group(el("dt", {}, "Fix"), el("dd", {}, commands(a.fix))) : null,
			el("dt", {}, "Doing"), el("dd", {}, Object.hasOwn(DOINGS, a.doing) ? DOINGS[a.doing] : "unknown", a.doing_where ? group(" at ", name(a.doing_where, 200)) : null),
			a.incident ? group(el("dt", {}, "Incident"), el("dd", {}, el("code", {}, name(a.incident, 80)), " on the node")) : null,
			el("dt", {}, "Told"), el("dd", {}, now - a.sent_ns < 1e9 ? "just now" : `${f.duration(now - a.sent_ns)} ago`, " by the node\u2019s agent")));
}

// ---- what it did lately ----

function lately(heat, rank) {
	const place = heat.names.indexOf(rank);
	if (place < 0 || heat.columns.length < 2)
		return null;
	const cells = heat.columns.slice(-MOST_BARS).map((c) => [c, about(c.cells[place])]), most = Math.max(...cells.map(([, ns]) => ns || 0), 1e6);
	const late = cells.filter(([, ns]) => ns === null || ns >= 1e6).length;
	return el("figure", {class: "lately"}, el("figcaption", {}, `Its last ${f.counted(cells.length, "collective")}: late or missing in ${f.count(late)}, by up to about ${f.duration(most)}`),
		el("div", {class: "arrivals low", role: "img", "aria-label": `Lateness of rank ${rank} by collective`}, cells.map(([c, ns]) => el("span", {
			class: ns === null ? "gone" : ns >= 1e6 ? "late" : null, title: `${opName(c.op)} ${c.seq}: ${ns === null ? "missing" : f.duration(ns)}`,
			style: {height: ns === null ? "100%" : `${(2 + 98 * ns / most).toFixed(1)}%`}}))));
}

// Of a node those of all its ranks: @r has no rank then.
const own = (episodes, r) => episodes.filter((e) => e.node === r.node && (r.rank === undefined || e.rank === null || e.rank === r.rank)).slice(0, 8);

function incidentsOf(episodes, r) {
	const list = own(episodes, r);
	return list.length ? group(el("h4", {}, "Incidents"), el("ul", {class: "others"}, list.map((e) => el("li", {key: `i${e.id}`, class: e.until_ns ? "over" : null},
		name(e.text, 1000), el("small", {}, e.until_ns ? ` ${f.span(e.since_ns, e.until_ns)}` : ` since ${f.moment(e.since_ns)}`))))) : null;
}

// What the cluster's memory has of the steps of a rank, a row for each process that was it; absent without a memory.
function stepsBefore(rows) {
	return rows && rows.length ? group(el("h4", {}, "Its steps in the last week"), table([
		{title: "Last told", cell: (s) => f.clock(s.ts_ns)},
		{title: "Slow", class: "n", cell: (s) => f.duration(s.step_ns)},
		{title: "Ordinary", class: "n", cell: (s) => f.duration(s.ordinary_ns)},
		{title: "Grew", cell: (s) => s.line ? group(name(lineName(s.line), 60), ` ${f.duration(s.line_ns)}`) : "\u2013"},
		{title: "Reports", class: "n wide", cell: (s) => f.count(s.reports)},
		{title: "Doing", class: "wide", cell: (s) => s.doing ? group(name(s.doing, 30), s.doing_where ? group(" at ", name(s.doing_where, 80)) : null) : "\u2013"}],
	rows.slice(0, MOST_STEPS), (s) => `${s.pid}/${s.ts_ns}`, "Steps of the rank")) : null;
}

function reach(d, node) {
	const page = links.ownPage(d.nodePage, node);
	return el("p", {class: "reach"}, page ? el("a", {class: "button", href: page, target: "_blank", rel: "noopener noreferrer"}, `Open ${node}\u2019s own page \u2197`) :
		group("Its own page: ", el("code", {}, "ingero dashboard"), " on ", name(node, 60), d.nodePage ? "" : group("; ", el("code", {}, "--node-page"), " of this service makes a link of it")));
}

function lateFigures(r) {
	return figures([["Came last", `${f.count(r.last_count)} of ${f.count(r.calls)}`, "collectives"], ["Late, median", f.duration(r.lag_p50_ns), "where it was last"],
		["Late, p99", f.duration(r.lag_p99_ns), `at most ${f.duration(r.lag_max_ns)}`], ["Waited for others", f.duration(r.waited_ns), "in all"],
		["Clock", `\u00b1 ${f.duration(r.clock.error_ns)}`, `offset ${f.duration(r.clock.offset_ns)}`]]);
}

function one(d, r) {
	return el("article", {key: `rank-${r.node}-${r.pid}`},
		el("p", {class: "dim"}, "on ", links.node(r.node), `, process ${r.pid}`),
		lateFigures(r), lately(d.heat, r.rank),
		el("h4", {}, "Account of its steps"), account(r, d.now), incidentsOf(d.episodes, r), stepsBefore(d.steps), reach(d, r.node));
}

// rankView - @d: ranks of the API, episodes, heat, now, nodePage, steps.
export function rankView(d, rank) {
	if (!d.ranks.length)
		return nothing(`Rank ${rank} has made no call in a communicator since this service started.`);
	return group(d.ranks.slice(0, 4).map((r) => one(d, r)));
}

function nodeFigures(n) {
	return figures([["State", n.straggler ? n.reason : n.state, n.straggler ? `since ${f.moment(n.since_ns)}` : "by its own report"],
		["Score", n.score.toFixed(3), n.threshold === null ? "no threshold yet" : `threshold ${n.threshold.toFixed(3)}`],
		["Throughput", f.share(n.throughput), ""], ["Compute", f.share(n.compute), ""], ["Memory", f.share(n.memory), ""], ["CPU", f.share(n.cpu), ""],
		["Heard", `${f.duration(n.age_ns)} ago`, n.workload || ""],
		["GPUs", n.gpu_count ? f.count(n.gpu_count) : "\u2013", n.gpu_model ? name(n.gpu_model, 50) : ""]]);
}

export function nodeView(d, node, found) {
	return el("article", {key: `node-${node}`}, found ? nodeFigures(found) : el("p", {class: "note"}, "It has pushed no health data, or was forgotten."),
		d.ranks.length ? group(el("h4", {}, "Its ranks"), table([
			{title: "Rank", cell: (r) => links.rank(r.rank, r.node)},
			{title: "Last", class: "n", cell: (r) => `${f.count(r.last_count)} of ${f.count(r.calls)}`},
			{title: "Late, p99", class: "n", cell: (r) => f.duration(r.lag_p99_ns)},
			{title: "Grew in slow steps", cell: (r) => r.account && r.account.line ? group(el("span", {class: `key ${lineClass(r.account.line)}`}), name(lineName(r.account.line), 40), ` ${f.duration(r.account.line_ns)}`) : "\u2013"},
			{title: "Doing", class: "wide", cell: (r) => r.account ? name(r.account.doing, 30) : "\u2013"}],
		d.ranks.slice(0, 64), (r) => r.pid, "Ranks of the node")) : el("p", {class: "note"}, "None of its ranks has entered a collective."),
		incidentsOf(d.episodes, {node}), reach(d, node));
}
