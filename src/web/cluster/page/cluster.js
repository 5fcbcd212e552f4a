// SPDX-License-Identifier: Apache-2.0
// cluster.js - the cluster's page: what is asked and how often, what is looked at, and the frame around the views.
//
// A turn asks the API every TICK_MS; what changes slowly or is long is asked every few turns. Of the heat map
// only newer columns are asked for: 1,024 ranks by 200 collectives are 200 KB.
import {el, group, name, show} from "./dom.js";
import {bar, nothing, table} from "./parts.js";
import {Heat, opName, scale} from "./heat.js";
import {costView, numbers, sum, verdict} from "./now.js";
import {hangsView, incidentsView} from "./past.js";
import {nodesView} from "./nodes.js";
import {nodeView, rankView} from "./rank.js";
import * as links from "./links.js";
import * as memory from "./memory.js";
import * as client from "./client.js";
import * as f from "./format.js";

const TICK_MS = 2000, MOST_NODES = 2000, MOST_EPISODES = 200, MOST_RANKS = 12, MOST_BARS = 256, MOST_COLUMNS = 200, MOST_COURSE = 900;
const MEMORY_MS = 60000, COST_PIECES = 12, COST_HOURS = 2;
// every: in each how many turns.
const QUESTIONS = {
	blame: {limit: 16}, clusters: {}, heatmap: {limit: MOST_COLUMNS}, hangs: {limit: 50}, mismatches: {limit: 50},
	ranks: {limit: MOST_RANKS}, cost: {}, nodes: {limit: MOST_NODES}, jobs: {}, episodes: {limit: MOST_EPISODES}, version: {},
};
const EVERY = {nodes: 3, jobs: 3, episodes: 3};
const $ = (id) => document.getElementById(id);
const {state} = links;
const data = {}, failed = {}, course = [], past = {incidents: null, cost: null, steps: null, at: 0};
let comm = "", paused = false, busy = false, again = false, turns = 0, refusal = null, heat = null, chosen = null, only = "", allNodes = false, asOf = 0;

const body = (id) => $(id).querySelector(":scope > .body");
const own = () => data.clusters && data.clusters.clusters.find((c) => c.cluster_id === state.cluster);
const lasting = () => data.blame ? data.blame.episodes : [];

// ---- ranks ----

function ranksView(d) {
	const late = d.ranks.filter((r) => r.last_count), most = Math.max(...late.map((r) => r.last_count), 1);
	if (!d.ranks.length)
		return nothing("No collectives yet: they come from agents that trace a job of several ranks.");
	if (!late.length)
		return el("p", {class: "note"}, `${f.counted(d.total, "rank")}; none arrived last by more than the clocks\u2019 error.`);
	return group(el("h3", {}, "The latest"), table([
		{title: "Rank", cell: (r) => el("b", {}, links.rank(r.rank, r.node, r.rank === null ? "?" : String(r.rank)))},
		{title: "Node", cell: (r) => group(links.node(r.node), el("small", {}, `pid ${r.pid}`))},
		{title: "Last", class: "n", hint: "collectives at which it arrived last", cell: (r) => group(`${f.count(r.last_count)} of ${f.count(r.calls)}`, bar(r.last_count / most))},
		{title: "Late, median", class: "n wide", cell: (r) => f.duration(r.lag_p50_ns)},
		{title: "Late, p99", class: "n", cell: (r) => f.duration(r.lag_p99_ns)},
		{title: "Waited for others", class: "n wide", cell: (r) => f.duration(r.waited_ns)},
		{title: "Clock", class: "n wide", hint: "offset of the node's clock and its uncertainty", cell: (r) => `${f.duration(r.clock.offset_ns)} ± ${f.duration(r.clock.error_ns)}`}],
	late, (r) => `${r.node}/${r.pid}`, "Late ranks"), el("p", {class: "note"}, `The latest of ${f.counted(d.total, "rank")}.`));
}

function heatView() {
	const d = data.heatmap, list = d.communicators || [];
	$("comm-choice").hidden = list.length < 2;
	show($("comm"), [...list].sort((a, b) => b.nranks - a.nranks || b.matched - a.matched).slice(0, 200)
		.map((c) => el("option", {value: c.comm, key: c.comm}, `${c.nranks} ranks (${c.comm})`)));
	$("comm").value = d.comm || "";
	show($("heat-scale"), scale());
	heat.take(d);
	if (state.rank !== null && heat.seq === null)
		heat.find(state.rank);
	for (const x of [document.querySelector(".heatmap"), $("heat-said"), $("heat-scale"), $("heat-zoom"), $("heat-keys")])
		x.hidden = !heat.columns.length;
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

async function arrivals(what) {
	const place = $("arrivals");
	try {
		const d = await client.get("collectives", {cluster_id: state.cluster, comm: what.comm, seq: what.seq}), here = what.comm === heat.comm;
		const row = (i) => here ? heat.rowName(i) : `rank ${i} of the communicator`;
		const first = Math.min(...d.after_median_ns.filter((v) => v !== null)), most = Math.max(...d.after_median_ns.map((v) => v === null ? 0 : v - first), 1);
		const late = Math.max(1e6, most / 2), bars = pooled(d.after_median_ns, MOST_BARS);
		show(place, el("h3", {tabindex: -1}, `${opName(what.op)} ${what.seq}: arrivals`),
			el("div", {class: "arrivals", role: "img", "aria-label": `Arrivals of ${d.after_median_ns.length} ranks, the last ${f.duration(most)} after the first`},
				bars.map(([i, v]) => el("span", {class: v === null ? "gone" : v - first >= late ? "late" : null,
					title: v === null ? `${row(i)}: missing` : `${row(i)}: ${f.duration(v - first)} after the first`,
					style: {height: v === null ? "100%" : `${(2 + 98 * (v - first) / most).toFixed(1)}%`}}))),
			el("p", {class: "note"}, `The communicator\u2019s first rank on the left, its last on the right; the highest is ${f.duration(most)} after the first.`));
	} catch (e) {
		show(place, nothing(e.status === 404 ? "The service keeps the last minute; this collective is older." : `Cannot show it: ${e.message}.`));
	}
}

// ---- what is looked at ----

async function chosenAsk() {
	const {rank, node, cluster} = state;
	if (rank === null && !node) {
		chosen = null;
		return;
	}
	try {
		const got = await client.get("ranks", {cluster_id: cluster, rank: rank ?? "", node: node ?? ""});
		if (rank === state.rank && node === state.node && cluster === state.cluster)
			chosen = got;
	} catch (e) {
		failed.chosen = e;
	}
}

function chosenView() {
	const d = chosen && {ranks: chosen.ranks, episodes: data.episodes ? data.episodes.episodes : lasting(), heat, now: data.clusters ? data.clusters.now_ns : 0,
		nodePage: data.version && data.version.node_page, steps: past.steps};
	$("chosen").hidden = state.rank === null && !state.node;
	if ($("chosen").hidden) {
		show(body("chosen"));
		return;
	}
	show($("chosen-title"), state.rank !== null ? `Rank ${state.rank}` : group("Node ", name(state.node, 80)));
	show(body("chosen"), !d ? el("p", {class: "dim"}, "Loading\u2026") : state.rank !== null ? rankView(d, state.rank) :
		nodeView(d, state.node, data.nodes && data.nodes.nodes.find((n) => n.node === state.node)));
}

// look - at a rank or a node, or at nothing. @jump: its panel comes into sight and has the focus.
async function look(rank, node, jump) {
	if (rank !== state.rank || node !== state.node) {
		links.go({rank, node});
		chosen = past.steps = null;
	}
	chosenView();
	if (rank === null && data.heatmap)
		heat.leave();
	else if (data.heatmap)
		heat.find(rank);
	if (jump) {
		$("chosen-title").focus({preventScroll: true});
		$("chosen").scrollIntoView({block: "start"});
	}
	await chosenAsk();
	showAll();
	memoryAsk(true);
}

function find(text) {
	const t = text.trim(), rank = /^(?:rank\s*)?(\d{1,9})$/i.exec(t);
	if (rank)
		look(Number(rank[1]), null, true);
	else if (t)
		look(null, t.replace(/^node\s+/i, ""), true);
}

// ---- the memory ----

// What was lost in each of the last pieces of time, oldest first: money, or the job's time where nothing has a price.
async function costBefore(cluster) {
	const pieces = await Promise.all(Array.from({length: COST_PIECES}, (_, i) => COST_PIECES - i).map((n) =>
		memory.ask("get_cost", {cluster_id: cluster, since: `${n * COST_HOURS}h`, ...(n > 1 ? {until: `${(n - 1) * COST_HOURS}h`} : {})})));
	if (!pieces.every(Boolean))
		return null;
	const priced = pieces.find((p) => typeof p.total === "number");
	return priced ? {values: pieces.map((p) => p.total || 0), format: (v) => `${v.toFixed(2)} ${priced.currency || ""}`.trim()} :
		{values: pieces.map((p) => p.lost_ns || 0), format: f.duration};
}

async function memoryAsk(soon) {
	const {cluster, rank, node} = state;
	if (!cluster || (!soon && Date.now() - past.at < MEMORY_MS) || !await memory.isThere())
		return;
	const whole = Date.now() - past.at >= MEMORY_MS;
	past.at = whole ? Date.now() : past.at;
	const at = node || (chosen && chosen.ranks.length ? chosen.ranks[0].node : null);
	const [list, cost, steps] = await Promise.all([whole ? memory.ask("anomalies", {cluster_id: cluster, since: "7d", limit: 100}) : null,
		whole ? costBefore(cluster) : null, rank !== null && at ? memory.ask("steps", {cluster_id: cluster, node_id: at, since: "7d", limit: 1000}) : null]);
	if (cluster !== state.cluster)
		return;
	if (whole) {
		past.incidents = list && list.anomalies;
		past.cost = cost;
	}
	if (rank === state.rank)
		past.steps = steps && (steps.steps || []).filter((s) => s.rank === rank);
	showAll();
}

function courseView() {
	if (past.cost)
		return {text: `Incidents of the last ${COST_PIECES * COST_HOURS} hours, by ${COST_HOURS} hours`, ...past.cost};
	return course.length > 4 ? {text: `Lost per hour since this page was opened, ${f.duration((Date.now() - course[0][0]) * 1e6)} ago`, values: course.map(([, v]) => v),
		format: (v) => sum({symbol: own().symbol, value: v})} : null;
}

// ---- the frame ----

function frame() {
	const list = data.clusters ? data.clusters.clusters : [];
	$("token").hidden = !(refusal && refusal.status === 401);
	$("main").hidden = !$("token").hidden;
	$("banner").hidden = !refusal || refusal.status === 401;
	show($("banner"), refusal ? `\u25b2 ${refusal.message}. Retrying.${asOf ? ` What you see is of ${f.clock(asOf)}.` : ""}` : "");
	$("cluster-choice").hidden = list.length < 2;
	show($("cluster"), list.map((c) => el("option", {value: c.cluster_id, key: c.cluster_id}, c.episodes ? `\u25b2 ${c.cluster_id}` : c.cluster_id)));
	$("cluster").value = state.cluster;
	show($("pause"), paused ? "Continue" : "Pause");
	$("pause").setAttribute("aria-pressed", paused);
	show($("about"), state.cluster ? group(el("span", {class: refusal || paused ? "pill" : "pill live"}, paused ? "paused" : refusal ? "not up to date" : "live"), name(state.cluster, 60), asOf ? ` \u00b7 ${f.moment(asOf)}` : "") : "");
	show($("footer"), data.version ? `ingero-cluster ${data.version.version} \u00b7 refreshed every 2 s` : "");
	document.title = `${lasting().length ? "\u25b2 " : ""}${state.cluster || "Ingero"} \u00b7 Ingero cluster`;
}

// A view is made anew when an answer that it needs has come, or what stands last in its row is another.
const VIEWS = [["blame", ["blame"], () => group(verdict(data.blame), own() ? numbers(own(), data.nodes ? data.nodes.nodes : [], data.blame) : null)],
	["cost", ["cost"], () => costView(data.cost.clusters.find((c) => c.cluster_id === state.cluster), courseView())],
	["ranks", ["ranks"], () => ranksView(data.ranks)],
	["hangs", ["hangs", "mismatches"], () => hangsView(data.hangs, data.mismatches)],
	["incidents", ["episodes"], () => incidentsView(data.episodes, only, past.incidents, own() && own().symbol), () => [only, past.incidents]],
	["nodes", ["nodes", "jobs"], () => nodesView(data.nodes, data.jobs.jobs, lasting(), allNodes), () => [allNodes, ...lasting().map((e) => e.id)]]];
const shown = new Map(); // of a section: what its view was made of

function isShown(id, needs, more) {
	const now = [...needs.map((q) => data[q]), ...(more ? more() : [])], before = shown.get(id);
	shown.set(id, now);
	return more && before && before.length === now.length && now.every((x, i) => x === before[i]);
}

function showAll() {
	frame();
	if (data.heatmap)
		heatView();
	for (const [id, needs, view, more] of VIEWS)
		if (needs.every((q) => data[q])) {
			if (!isShown(id, needs, more))
				show(body(id), view());
		} else if (needs.some((q) => failed[q])) {
			shown.delete(id);
			show(body(id), nothing(`Cannot load this: ${failed[needs.find((q) => failed[q])].message}.`));
		}
	chosenView();
	if (data.nodes)
		show($("find-list"), data.nodes.nodes.slice(0, 200).map((n) => el("option", {value: n.node})));
}

// merged - the columns that came are put before those that are there, newest first.
function merged(got, before) {
	const fresh = got.collectives || [], lowest = fresh.length ? fresh[fresh.length - 1].seq : Infinity;
	return {...got, collectives: [...fresh, ...before.collectives.filter((c) => c.seq < lowest)].slice(0, MOST_COLUMNS)};
}

// The newest columns may still change places for a moment: a few are asked for again.
async function heatmapAsk(params) {
	const before = data.heatmap, there = before && before.comm && (!comm || before.comm === comm) && before.collectives.length > 8 ? before : null;
	const after = there ? there.collectives[8].seq : "";
	const got = await client.get("heatmap", {...params, comm: comm || (there ? there.comm : ""), after});
	const row = (got.communicators || []).find((c) => c.comm === got.comm);
	if (!there)
		return got;
	if (!row || got.comm !== there.comm || got.shown_ranks !== there.shown_ranks || row.last_seq < after || row.nranks !== got.nranks)
		return client.get("heatmap", {...params, comm});
	return merged(got, there);
}

// A token for some clusters may ask about these only, one at a time.
async function clustersAsk() {
	try {
		return await client.get("clusters");
	} catch (e) {
		const mine = e.status === 403 ? await memory.clusters() : null;
		if (!mine)
			throw e;
		const got = await Promise.all(mine.slice(0, 100).map((id) => client.get("clusters", {cluster_id: id})));
		return {now_ns: Math.max(0, ...got.map((g) => g.now_ns)), clusters: got.flatMap((g) => g.clusters)};
	}
}

async function answer(id) {
	const asked = state.cluster, params = {...QUESTIONS[id], cluster_id: asked};
	try {
		const got = await (id === "heatmap" ? heatmapAsk(params) : id === "clusters" ? clustersAsk() : client.get(id, params));
		if (asked !== state.cluster && id !== "clusters")
			return;
		data[id] = got;
		delete failed[id];
	} catch (e) {
		failed[id] = e;
		if (id === "heatmap")
			delete data.heatmap;
		if (e.status === 401 || e.status === 0 || id === "clusters")
			refusal = e;
	}
}

const isDue = (q) => q !== "clusters" && !(q === "version" && data.version) && (!data[q] || turns % (EVERY[q] || 1) === 0);

function sample() {
	const c = own();
	if (c && typeof c.cost_per_hour === "number")
		course.push([Date.now(), c.cost_per_hour]);
	course.splice(0, course.length - MOST_COURSE);
}

async function turn() {
	if (busy) {
		again = true;
		return;
	}
	busy = true;
	refusal = null;
	try {
		await answer("clusters");
		if (!refusal) {
			const list = data.clusters.clusters;
			if (!list.some((c) => c.cluster_id === state.cluster))
				clusterSet(list.length ? [...list].sort((a, b) => b.episodes - a.episodes)[0].cluster_id : "", true);
			await Promise.all([...Object.keys(QUESTIONS).filter(isDue).map(answer), chosenAsk()]);
			turns++;
			asOf = data.clusters.now_ns;
			sample();
		}
	} finally {
		busy = false;
		showAll();
		if (again) {
			again = false;
			turn();
		}
	}
	memoryAsk(false);
}

// ---- what people do ----

function clusterSet(id, quiet) {
	links.go(quiet && !state.cluster ? {cluster: id} : {cluster: id, rank: quiet ? state.rank : null, node: quiet ? state.node : null}, quiet);
	for (const q of Object.keys(QUESTIONS).filter((x) => x !== "clusters" && x !== "version"))
		delete data[q];
	comm = "";
	chosen = null;
	course.length = 0;
	Object.assign(past, {incidents: null, cost: null, steps: null, at: 0});
	show($("arrivals"));
}

function themeApply(theme) {
	document.documentElement.dataset.theme = theme;
	show($("theme"), {auto: "Auto", dark: "Dark", light: "Light"}[theme]);
	$("theme").setAttribute("aria-label", `Colours: ${theme}`);
	if (data.heatmap)
		heatView();
}

async function linkCopy(button) {
	await navigator.clipboard.writeText(location.href).then(() => show(button, "Copied"), () => show(button, "Copy it from the address bar"));
	setTimeout(() => show(button, "Copy link"), 3000);
}

const ACTS = {
	pause: () => { paused = !paused; frame(); },
	theme: () => {
		const order = ["auto", "dark", "light"], next = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3];
		localStorage.setItem("ingero-theme", next);
		themeApply(next);
	},
	rank: (x) => look(Number(x.dataset.rank), x.dataset.node || null, true),
	node: (x) => look(null, x.dataset.node, true),
	close: () => { look(null, null, false); $("heat").focus({preventScroll: true}); },
	"copy-link": linkCopy,
	"zoom-in": () => heat.zoomHere(2),
	"zoom-out": () => heat.zoomHere(.5),
	"zoom-all": () => heat.reset(),
	incidents: (x) => { only = x.dataset.only; showAll(); },
	"all-nodes": () => { allNodes = !allNodes; showAll(); },
	arrivals: async (x) => {
		await arrivals({comm: x.dataset.comm, seq: x.dataset.seq, op: x.dataset.op});
		$("arrivals").scrollIntoView({block: "center"});
	},
};

function onClick(e) {
	const act = e.target instanceof Element && e.target.closest("[data-act]");
	if (!act || !ACTS[act.dataset.act] || (act.matches("a") && (e.ctrlKey || e.metaKey || e.shiftKey || e.button)))
		return;
	if (act.matches("a"))
		e.preventDefault();
	ACTS[act.dataset.act](act);
}

function onKey(e) {
	const typing = e.target instanceof Element && e.target.matches("input, select, textarea");
	if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
		e.preventDefault();
		$("find-text").focus();
	} else if (e.key === "Escape" && !typing && !$("chosen").hidden) {
		ACTS.close();
	}
}

function listen() {
	document.addEventListener("click", onClick);
	document.addEventListener("keydown", onKey);
	window.addEventListener("popstate", () => { links.read(); chosen = past.steps = null; turn(); });
	$("find").addEventListener("submit", (e) => {
		e.preventDefault();
		find($("find-text").value);
		$("find-text").value = "";
	});
	$("cluster").addEventListener("change", () => { clusterSet($("cluster").value, false); turn(); });
	$("comm").addEventListener("change", () => { comm = $("comm").value; delete data.heatmap; show($("arrivals")); turn(); });
	$("token").addEventListener("submit", async (e) => {
		e.preventDefault();
		client.tokenSet($("token-text").value.trim());
		memory.forget();
		await turn();
		$("token-said").textContent = refusal && refusal.status === 401 ? "\u25b2 Invalid token." : "";
		if (!refusal)
			$("token-text").value = "";
	});
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => data.heatmap && heatView());
}

// The section in sight is marked in the navigation.
function watchSections() {
	const anchors = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a])), seen = new Set();
	const watch = new IntersectionObserver((entries) => {
		for (const e of entries)
			seen[e.isIntersecting ? "add" : "delete"](e.target.id);
		const first = [...anchors.keys()].find((id) => seen.has(id));
		for (const [id, a] of anchors)
			a.toggleAttribute("aria-current", id === first);
	}, {rootMargin: "-20% 0px -60% 0px"});
	for (const id of anchors.keys())
		watch.observe($(id));
}

new ResizeObserver(() => document.documentElement.style.setProperty("--fold", `${document.querySelector("nav").offsetTop}px`))
	.observe(document.querySelector(".top"));
heat = new Heat({canvas: $("heat"), said: $("heat-said"), rows: $("heat-rows"), nodes: $("heat-nodes"), times: $("heat-times"), cross: $("heat-cross"), band: $("heat-band")}, {
	choose: (column, place) => {
		arrivals({comm: heat.comm, seq: column.seq, op: column.op});
		if (heat.rank(place) !== null)
			look(heat.rank(place), heat.node(place), false);
	},
	moved: () => { document.querySelector(".heatmap").classList.toggle("zoomed", heat.isZoomed()); },
});
themeApply(["auto", "dark", "light"].includes(localStorage.getItem("ingero-theme")) ? localStorage.getItem("ingero-theme") : "auto");
client.tokenFromLink();
links.read();
listen();
watchSections();
setInterval(() => { if (!document.hidden && !paused && !(refusal && refusal.status === 401)) turn(); }, TICK_MS);
turn();
