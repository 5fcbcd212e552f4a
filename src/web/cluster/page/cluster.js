// SPDX-License-Identifier: Apache-2.0
// cluster.js - the cluster's page: who is late now and why, what it costs, and what stands behind it.
import {el, group, name, show} from "./dom.js";
import {bar, badge, figures, nothing, table} from "./parts.js";
import {Heat, scale} from "./heat.js";
import * as client from "./client.js";
import * as f from "./format.js";

const TICK_MS = 2000, MOST_NODES = 500, MOST_EPISODES = 100, MOST_RANKS = 12, MOST_BARS = 256;
const QUESTIONS = {
	blame: {limit: 16}, clusters: {}, nodes: {limit: MOST_NODES}, ranks: {}, heatmap: {limit: 200}, hangs: {limit: 50},
	mismatches: {limit: 50}, episodes: {limit: MOST_EPISODES}, version: {},
};
const $ = (id) => document.getElementById(id);
const data = {}, failed = {};
let cluster = "", comm = "", paused = false, busy = false, refusal = null, heat = null;

const money = (x) => typeof x.cost_per_hour === "number" ? `${x.symbol || ""}${x.cost_per_hour.toFixed(2)}/h` : "unpriced";
const lost = (seconds) => seconds > 0 ? `${f.duration(seconds * 1e9)} of GPU time` : "";
const body = (id) => $(id).querySelector(":scope > .body");

// ---- who is it ----

function verdict(d) {
	const [worst, ...rest] = d.episodes;
	if (!worst)
		return el("div", {class: d.examined.nodes || d.examined.ranks ? "verdict ok" : "verdict"}, badge(d.examined.nodes || d.examined.ranks ? "OK" : "UNKNOWN"),
			el("p", {class: "line"}, d.examined.nodes || d.examined.ranks ? "Nobody makes the others wait." : "No agent has pushed anything yet."),
			el("p", {class: "more"}, d.examined.nodes || d.examined.ranks ?
				`Examined: ${f.counted(d.examined.nodes, "node")}, ${f.counted(d.examined.ranks, "rank")}, ${f.counted(d.examined.collectives, "collective")}.` :
				group("Start ", el("code", {}, "ingero fleet-push"), " on the nodes.")));
	return group(el("div", {class: "verdict high", key: "worst"}, badge(worst.problem === "hang" ? "CRITICAL" : "HIGH"),
		el("p", {class: "line"}, name(worst.text, 1000)),
		el("p", {class: "more"}, `Since ${f.moment(worst.since_ns)} (${f.duration(worst.lasts_ns)}), confidence ${f.share(worst.confidence)}. ${lost(worst.lost_gpu_seconds)}`),
		worst.fix ? el("p", {class: "more"}, el("b", {}, "Fix: "), name(worst.fix, 500)) : null),
	rest.length ? el("ul", {class: "others"}, rest.map((e) => el("li", {key: `o${e.id}`}, name(e.text, 1000), el("small", {}, ` ${f.duration(e.lasts_ns)}`)))) : null,
	d.total > d.episodes.length ? el("p", {class: "note"}, `${f.count(d.total - d.episodes.length)} more below.`) : null);
}

function own() {
	return data.clusters && data.clusters.clusters.find((c) => c.cluster_id === cluster);
}

function numbers() {
	const c = own();
	if (!c)
		return null;
	const unpriced = c.unpriced_model ? group("no price for ", name(c.unpriced_model, 60)) : c.priced ? "at barriers, now" : "";
	return figures([["Lost per hour", money(c), unpriced], ["Lost so far", typeof c.cost_total === "number" ? `${c.symbol || ""}${c.cost_total.toFixed(2)}` : "unpriced", lost(c.lost_gpu_seconds)],
		["Nodes", f.count(c.nodes), c.stragglers ? f.counted(c.stragglers, "straggler") : "none stands out"],
		["Threshold", c.quorum_met ? c.threshold.toFixed(3) : "none yet", c.quorum_met ? `median ${c.median.toFixed(3)}` : "too few active nodes"],
		["Ranks", f.count(c.ranks), f.counted(c.communicators, "communicator")],
		["Calls", f.count(c.calls && c.calls.taken), c.calls && (c.calls.refused || c.calls.evicted) ? `${f.count(c.calls.refused)} refused, ${f.count(c.calls.evicted)} dropped` : "none lost"]]);
}

// ---- ranks ----

function ranksView(d) {
	const late = d.ranks.filter((r) => r.last_count).sort((a, b) => b.lag_p99_ns * b.last_count - a.lag_p99_ns * a.last_count);
	const most = Math.max(...late.map((r) => r.last_count), 1);
	if (!d.ranks.length)
		return nothing("No collectives yet: they come from agents that trace a job of several ranks.");
	if (!late.length)
		return el("p", {class: "note"}, `${f.counted(d.ranks.length, "rank")}; none came last by more than the clocks' error.`);
	return group(table([
		{title: "Rank", cell: (r) => el("b", {}, r.rank === null ? "?" : String(r.rank))},
		{title: "Node", cell: (r) => group(name(r.node, 60), el("small", {}, `pid ${r.pid}`))},
		{title: "Last", class: "n", hint: "collectives for which it came last", cell: (r) => group(`${f.count(r.last_count)} of ${f.count(r.calls)}`, bar(r.last_count / most))},
		{title: "Late, median", class: "n", cell: (r) => f.duration(r.lag_p50_ns)},
		{title: "Late, p99", class: "n", cell: (r) => f.duration(r.lag_p99_ns)},
		{title: "Waited for others", class: "n wide", cell: (r) => f.duration(r.waited_ns)},
		{title: "Clock", class: "n wide", hint: "offset of the node's clock and how wrong it may be", cell: (r) => `${f.duration(r.clock.offset_ns)} ± ${f.duration(r.clock.error_ns)}`}],
	late.slice(0, MOST_RANKS), (r) => `${r.node}/${r.pid}`, "Late ranks"),
	late.length > MOST_RANKS ? el("p", {class: "note"}, `The ${MOST_RANKS} latest of ${f.counted(late.length, "rank")} that came last at least once, of ${f.count(d.ranks.length)}.`) : null);
}

function heatView(d) {
	const list = d.communicators || [];
	$("comm-choice").hidden = list.length < 2;
	show($("comm"), list.slice(0, 200).map((c) => el("option", {value: c.comm, selected: c.comm === d.comm}, `${c.comm} (${c.nranks} ranks)`)));
	show($("heat-scale"), scale());
	heat.draw(d);
	document.querySelector(".heatmap").hidden = $("heat-said").hidden = $("heat-scale").hidden = !heat.columns.length;
}

// pooled - at most @most of @values as [index, value]: of neighbours the worst, which is null or the highest.
function pooled(values, most) {
	const each = Math.ceil(values.length / most) || 1, list = [];
	values.forEach((v, i) => {
		const last = list[list.length - 1];
		if (i % each === 0)
			list.push([i, v]);
		else if (last[1] !== null && (v === null || v > last[1]))
			list[list.length - 1] = [i, v];
	});
	return list;
}

async function arrivals(column) {
	const place = $("arrivals");
	try {
		const d = await client.get("collectives", {cluster_id: cluster, comm: data.heatmap.comm, seq: column.seq});
		const first = Math.min(...d.after_median_ns.filter((v) => v !== null)), most = Math.max(...d.after_median_ns.map((v) => v === null ? 0 : v - first), 1);
		const late = Math.max(1e6, most / 2), bars = pooled(d.after_median_ns, MOST_BARS);
		show(place, el("h3", {}, `${column.op} ${column.seq}: who came when`),
			el("div", {class: "arrivals", role: "img", "aria-label": `Arrivals of ${d.after_median_ns.length} ranks, the last ${f.duration(most)} after the first`},
				bars.map(([i, v]) => el("span", {class: v === null ? "gone" : v - first >= late ? "late" : null,
					title: v === null ? `rank ${i}: missing` : `rank ${i}: ${f.duration(v - first)} after the first`,
					style: {height: v === null ? "100%" : `${(2 + 98 * (v - first) / most).toFixed(1)}%`}}))),
			el("p", {class: "note"}, `Rank 0 on the left, rank ${d.after_median_ns.length - 1} on the right; the highest is ${f.duration(most)} after the first.`));
	} catch (e) {
		show(place, nothing(`Cannot show it: ${e.message}.`));
	}
}

// ---- hangs, nodes, episodes ----

const who = (r) => group(`rank ${r.rank === null || r.rank === undefined ? "?" : r.rank}`, r.node ? group(" on ", name(r.node, 60)) : "");

function hangsView(h, m) {
	if (!h.total && !m.total)
		return nothing("None.");
	return group(h.hangs.map((x) => el("div", {class: "episode lasts", key: `h${x.comm}${x.seq}`},
		el("p", {}, `${f.counted(x.waiting, "rank")} ${x.waiting === 1 ? "waits" : "wait"} in ${x.op} ${x.seq} for `, x.missing.map((r, i) => group(i ? ", " : "", who(r), r.ever_seen ? "" : " (never seen)")),
			x.missing_count > x.missing.length ? ` and ${f.count(x.missing_count - x.missing.length)} more` : ""),
		el("p", {class: "cost"}, f.duration(x.lasts_ns)), el("small", {}, `communicator ${x.comm} of ${x.nranks} ranks`))),
	m.mismatches.map((x) => el("div", {class: "episode lasts", key: `m${x.comm}${x.seq}${x.what}`},
		el("p", {}, who(x.rank_says), ` disagrees about the ${x.what} of collective ${x.seq}: ${x.rank_says.op || f.count(x.rank_says.value)}, not ${x.others_say.op || f.count(x.others_say.value)} as `, who(x.others_say)),
		el("small", {}, `communicator ${x.comm}, ${f.moment(x.at_ns)}`))));
}

function nodesView(d) {
	if (!d.nodes.length)
		return nothing("No node has pushed its health yet.");
	return group(table([
		{title: "Node", cell: (n) => group(name(n.node, 60), n.gpu_model ? el("small", {}, `${n.gpu_count} \u00d7 `, name(n.gpu_model, 50)) : null)},
		{title: "State", cell: (n) => n.straggler ? group(badge(n.reason === "silent" ? "CRITICAL" : "HIGH"), el("small", {}, name(n.reason === "silent" ? "silent" : `${n.reason}: ${n.signal || "unknown"}`, 60))) : n.state},
		{title: "Score", class: "n", cell: (n) => group(n.score.toFixed(3), bar(n.score))},
		{title: "Threshold", class: "n", cell: (n) => n.threshold === null ? "\u2013" : n.threshold.toFixed(3)},
		{title: "Throughput", class: "n wide", cell: (n) => f.share(n.throughput)},
		{title: "Compute", class: "n wide", cell: (n) => f.share(n.compute)},
		{title: "Memory", class: "n wide", cell: (n) => f.share(n.memory)},
		{title: "CPU", class: "n wide", cell: (n) => f.share(n.cpu)},
		{title: "Heard", class: "n", hint: "time since its last push", cell: (n) => f.duration(n.age_ns)}],
	d.nodes, (n) => `${n.cluster_id}/${n.node}`, "Nodes"),
	d.total > d.nodes.length ? el("p", {class: "note"}, `${f.count(d.nodes.length)} of ${f.counted(d.total, "node")}.`) : null);
}

function episodesView(d) {
	if (!d.episodes.length)
		return nothing("Nothing has been wrong since this service started.");
	return group([...d.episodes].sort((a, b) => (a.until_ns ? 1 : 0) - (b.until_ns ? 1 : 0)).map((e) => el("div", {class: e.until_ns ? "episode" : "episode lasts", key: `e${e.id}`},
		el("p", {}, name(e.text, 1000)), el("p", {class: "cost"}, e.lost_gpu_seconds > 0 ? group(money(e), el("small", {}, lost(e.lost_gpu_seconds))) : ""),
		el("small", {}, e.until_ns ? `${f.span(e.since_ns, e.until_ns)} (${f.duration(e.lasts_ns)})` : `since ${f.moment(e.since_ns)} (${f.duration(e.lasts_ns)})`,
			e.fix ? group("; fix: ", name(e.fix, 300)) : null))),
	d.total > d.episodes.length ? el("p", {class: "note"}, `${f.count(d.episodes.length)} of ${f.count(d.total)}.`) : null);
}

// ---- the frame ----

function frame() {
	const list = data.clusters ? data.clusters.clusters : [];
	$("token").hidden = !(refusal && refusal.status === 401);
	$("main").hidden = !$("token").hidden;
	$("banner").hidden = !refusal || refusal.status === 401;
	show($("banner"), refusal ? `\u25b2 ${refusal.message}. Retrying.` : "");
	$("cluster-choice").hidden = list.length < 2;
	show($("cluster"), list.map((c) => el("option", {value: c.cluster_id, selected: c.cluster_id === cluster}, c.cluster_id)));
	show($("pause"), paused ? "Continue" : "Pause");
	$("pause").setAttribute("aria-pressed", paused);
	show($("about"), cluster ? group(el("span", {class: refusal ? "pill" : "pill live"}, paused ? "paused" : refusal ? "not up to date" : "live"), name(cluster, 60)) : "");
	show($("footer"), data.version ? `ingero-cluster ${data.version.version} \u00b7 refreshed every 2 s` : "");
	document.title = `${data.blame && data.blame.episodes.length ? "\u25b2 " : ""}${cluster || "Ingero"} \u00b7 Ingero cluster`;
}

const VIEWS = [["blame", ["blame"], () => group(verdict(data.blame), numbers())], ["ranks", ["ranks"], () => ranksView(data.ranks)],
	["hangs", ["hangs", "mismatches"], () => hangsView(data.hangs, data.mismatches)], ["nodes", ["nodes"], () => nodesView(data.nodes)],
	["episodes", ["episodes"], () => episodesView(data.episodes)]];

function showAll() {
	frame();
	for (const [id, needs, view] of VIEWS)
		if (needs.every((q) => data[q]))
			show(body(id), view());
		else if (needs.some((q) => failed[q]))
			show(body(id), nothing(`Cannot load this: ${failed[needs.find((q) => failed[q])].message}.`));
	if (data.heatmap)
		heatView(data.heatmap);
}

async function answer(id) {
	const asked = cluster;
	try {
		const got = await client.get(id, {...QUESTIONS[id], cluster_id: id === "clusters" ? "" : cluster, comm: id === "heatmap" ? comm : ""});
		if (asked !== cluster)
			return;
		data[id] = got;
		delete failed[id];
	} catch (e) {
		failed[id] = e;
		if (e.status === 401 || e.status === 0 || id === "clusters")
			refusal = e;
	}
}

async function turn() {
	if (busy)
		return;
	busy = true;
	refusal = null;
	try {
		await answer("clusters");
		if (!refusal) {
			const list = data.clusters.clusters;
			if (!list.some((c) => c.cluster_id === cluster))
				cluster = list.length ? list[0].cluster_id : "";
			await Promise.all(Object.keys(QUESTIONS).filter((q) => q !== "clusters" && !(q === "version" && data.version)).map(answer));
		}
	} finally {
		busy = false;
		showAll();
	}
}

function themeApply(theme) {
	document.documentElement.dataset.theme = theme;
	show($("theme"), {auto: "Auto", dark: "Dark", light: "Light"}[theme]);
	$("theme").setAttribute("aria-label", `Colours: ${theme}`);
	if (data.heatmap)
		heatView(data.heatmap);
}

const ACTS = {
	pause: () => { paused = !paused; frame(); },
	theme: () => {
		const order = ["auto", "dark", "light"], next = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3];
		localStorage.setItem("ingero-theme", next);
		themeApply(next);
	},
};

function listen() {
	document.addEventListener("click", (e) => {
		const act = e.target instanceof Element && e.target.closest("[data-act]");
		if (act && ACTS[act.dataset.act])
			ACTS[act.dataset.act]();
	});
	$("cluster").addEventListener("change", () => {
		cluster = $("cluster").value;
		comm = "";
		show($("arrivals"));
		turn();
	});
	$("comm").addEventListener("change", () => { comm = $("comm").value; show($("arrivals")); turn(); });
	$("token").addEventListener("submit", async (e) => {
		e.preventDefault();
		client.tokenSet($("token-text").value.trim());
		await turn();
		$("token-said").textContent = refusal && refusal.status === 401 ? "\u25b2 Invalid token." : "";
		if (!refusal)
			$("token-text").value = "";
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => data.heatmap && heatView(data.heatmap));
}

new ResizeObserver(() => document.documentElement.style.setProperty("--fold", `${document.querySelector("nav").offsetTop}px`))
	.observe(document.querySelector(".top"));
heat = new Heat($("heat"), $("heat-said"), arrivals);
themeApply(["auto", "dark", "light"].includes(localStorage.getItem("ingero-theme")) ? localStorage.getItem("ingero-theme") : "auto");
client.tokenFromLink();
listen();
setInterval(() => { if (!document.hidden && !paused && !(refusal && refusal.status === 401)) turn(); }, TICK_MS);
turn();
