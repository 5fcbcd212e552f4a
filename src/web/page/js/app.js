// SPDX-License-Identifier: Apache-2.0
// app.js - asks the server for what the panels in sight need, every now and then, and shows it.
//
// Live recordings are asked about every 2 s, not while the page is hidden or paused; saved files once.
// A panel that is not in sight is not asked for. What fails is said: in its panel, and if nothing
// answers at all, on top.
import {el, group, show} from "./dom.js";
import * as client from "./client.js";
import {chartsListen, readOutAgain} from "./chart.js";
import {Flame} from "./flame.js";
import {lacking, nothing} from "./parts.js";
import {clock, duration, moment} from "./format.js";
import * as health from "./health.js";
import * as incidents from "./incidents.js";
import * as operations from "./operations.js";
import * as hardware from "./hardware.js";
import * as ranks from "./ranks.js";
import * as graphs from "./graphs.js";
import * as recording from "./recording.js";
import * as sql from "./sql.js";
import * as steps from "./steps.js";

const TICK_MS = 2000, QUIET_NS = 15e9;
const $ = (id) => document.getElementById(id);

// every: seconds between questions of a live recording. time, node: which parameters it takes.
const QUESTIONS = {
	overview: {every: 2},
	incidents: {every: 6, time: true, node: true, params: {stacks: 1}},
	steps: {every: 10, time: true, node: true, params: {stacks: 1}},
	chains: {every: 10, time: true, node: true, params: {limit: 200}},
	capabilities: {every: 60},
	ops: {every: 2, time: true},
	series: {every: 4, time: true, params: {limit: 100}},
	gpus: {every: 2, time: true, node: true},
	snapshots: {every: 2, time: true, node: true},
	collectives: {every: 4, time: true, node: true},
	"graph-metrics": {every: 4, time: true},
	"graph-events": {every: 4, time: true},
	flame: {every: 10, time: true},
	losses: {every: 4, node: true},
	overhead: {every: 4, time: true, node: true},
	processes: {every: 10, time: true, node: true},
};

const PANELS = [
	{id: "health", needs: ["overview", "incidents", "gpus"], view: health.view, optional: ["gpus"]},
	{id: "incidents", needs: ["incidents", "chains"], view: incidents.view, optional: ["chains"]},
	{id: "steps", needs: ["steps"], view: steps.view},
	{id: "operations", needs: ["ops", "series"], view: operations.view, optional: ["series"]},
	{id: "gpu", needs: ["gpus"], view: hardware.gpuView},
	{id: "host", needs: ["snapshots"], view: hardware.hostView},
	{id: "ranks", needs: ["collectives"], view: ranks.view},
	{id: "graphs", needs: ["graph-metrics", "graph-events"], view: graphs.view},
	{id: "flame", needs: ["flame"], view: flameView},
	{id: "agent", needs: ["losses", "overhead", "processes"], view: recording.view},
];
const ALWAYS = ["overview", "incidents", "gpus", "capabilities"];

const ctx = {data: {}, failed: {}, open: new Set(), sort: {by: "total_us", down: true}, source: "gpu", node: "", since: ""};
const asked = {}; // question to when it was last asked
const sight = new Set(["health", "incidents"]);
let paused = false, busy = false, again = null, answeredAt = 0, refusal = null, flame = null;

function flameView() {
	const d = ctx.data.flame, some = d.nodes.length > 1;
	for (const part of ["flame-tree", "flame-about"])
		$(part).hidden = !some;
	flame.update(some ? d : {nodes: [], total: 0});
	$("flame-found").textContent = flame.wanted ? `${flame.search(flame.wanted)} matched` : "";
	if (!some)
		return lacking(ctx, "stacks", "call stacks", "record without --stack=false.");
	return group(el("p", {class: "note"}, `${duration(d.total)} in calls of ${d.rows.toLocaleString("en-US")} rows examined` +
		(d.left_out ? `; ${duration(d.left_out)} in frames too small to list` : "") + (d.truncated ? "; older rows were omitted" : "") + "."));
}

// ---- showing ----

function themeApply(choice) {
	document.documentElement.dataset.theme = choice;
	$("theme").textContent = `\u25d0 ${choice}`;
	$("theme").setAttribute("aria-label", `Colours: ${choice}`);
}

function bannerText() {
	const o = ctx.data.overview, w = ctx.data.incidents && ctx.data.incidents.window;
	if (refusal && refusal.status !== 401)
		return (refusal.status === 0 ? `The server cannot be reached (${refusal.message}). ` : `The server reports: ${refusal.message}.  `) +
			(answeredAt ? `Data shown is from ${clock(answeredAt * 1e6)}, ${duration((Date.now() - answeredAt) * 1e6)} old. Retrying.` :
				"Check that `ingero dashboard` is running and that the address is correct. Retrying.");
	if (o && o.live && w && o.event_count && w.to_ns - o.last_ns > QUIET_NS)
		return `No event for ${duration(w.to_ns - o.last_ns)}: the last one is from ${moment(o.last_ns)}. The traced programs are idle or have ended.`;
	return "";
}

function frameShow() {
	const o = ctx.data.overview, text = bannerText();
	$("banner").hidden = !text;
	$("banner").textContent = text;
	$("token").hidden = !(refusal && refusal.status === 401);
	$("main").hidden = !$("token").hidden || !o;
	for (const b of $("windows").children)
		b.setAttribute("aria-pressed", String(b.dataset.since === ctx.since));
	if (!o)
		return;
	show($("recording"), health.recordingLine(ctx));
	$("pause").hidden = !o.live;
	$("pause").textContent = paused ? "Resume" : "Pause";
	$("node-choice").hidden = o.nodes.length < 2;
	show($("node"), el("option", {value: ""}, "all nodes"), o.nodes.map((n) => el("option", {value: n, key: n}, n)));
	$("node").value = ctx.node;
	show($("footer"), `Ingero ${o.version} \u00b7 schema ${o.schema} \u00b7 times are local \u00b7 ` +
		(o.live && !paused ? "refreshed every 2 s" : paused ? "paused" : "saved file, not refreshed") + ` \u00b7 answered ${clock(answeredAt * 1e6)}`);
	document.title = title(o);
}

function title(o) {
	const worst = ctx.data.incidents && ctx.data.incidents.incidents.find((i) => i.severity !== "LOW");
	return `${worst ? `${worst.severity} \u00b7 ` : ""}${o.node || "Ingero"} \u00b7 Ingero`;
}

function panelShow(panel) {
	const place = $(panel.id).querySelector(":scope > .body");
	const missing = panel.needs.find((q) => !ctx.data[q] && !(panel.optional || []).includes(q));
	const failed = panel.needs.map((q) => ctx.failed[q]).find(Boolean);
	if (missing)
		return show(place, failed ? nothing(`Cannot load this: ${failed.message}.${passes(failed) ? " Retrying." : ""}`) : el("p", {class: "dim"}, "Loading\u2026"));
	show(place, panel.view(ctx), failed ? el("p", {class: "alarm"}, `\u25b2 Not up to date: ${failed.message}.`) : null);
	return null;
}

function showAll() {
	frameShow();
	for (const panel of PANELS)
		if (sight.has(panel.id) || panel.needs.every((q) => ctx.data[q] || (panel.optional || []).includes(q)))
			panelShow(panel);
	for (const d of document.querySelectorAll("details[data-open]"))
		d.open = ctx.open.has(d.dataset.open);
	readOutAgain();
}

// ---- asking ----

function paramsOf(q) {
	return {...q.params, since: q.time ? ctx.since : "", node: q.node ? ctx.node : ""};
}

async function answer(id) {
	const q = QUESTIONS[id], since = ctx.since, node = ctx.node;
	asked[id] = Date.now();
	try {
		const data = await client.get(id, paramsOf(q));
		if (since !== ctx.since || node !== ctx.node)
			return;
		ctx.data[id] = data;
		delete ctx.failed[id];
		answeredAt = Date.now();
		if (id === "overview")
			refusal = null;
	} catch (e) {
		ctx.failed[id] = e;
		if (e.status === 401 || e.status === 0 || id === "overview")
			refusal = e;
	}
}

// What may be better the next time: no connection, or a server that has too much to do.
const passes = (e) => e.status === 0 || e.status === 503;

function due(all) {
	const wanted = new Set(ALWAYS), now = Date.now();
	for (const panel of PANELS)
		if (sight.has(panel.id))
			panel.needs.forEach((q) => wanted.add(q));
	return [...wanted].filter((q) => all || !asked[q] || (ctx.failed[q] && passes(ctx.failed[q])) || (ctx.data.overview.live && !paused && now - asked[q] >= QUESTIONS[q].every * 1000 - TICK_MS / 2));
}

// One at a time: what is wanted meanwhile (all anew, or what is due) has its turn afterwards.
async function turn(all) {
	if (busy) {
		again = again || all;
		return;
	}
	busy = true;
	again = null;
	try {
		if (!ctx.data.overview || refusal)
			await answer("overview");
		if (!refusal) {
			ctx.since = ctx.since || (ctx.data.overview.live ? "5m" : "all");
			await Promise.all(due(all).map(answer));
		}
	} finally {
		busy = false;
		showAll();
	}
	if (again !== null)
		await turn(again);
	else
		$("main").removeAttribute("aria-busy");
}

function tick() {
	const o = ctx.data.overview, amiss = !o || refusal || Object.values(ctx.failed).some(passes);
	if (!document.hidden && !(refusal && refusal.status === 401) && (amiss || (o.live && !paused)))
		turn(false);
}

// Another time or node: what was known is of the old one.
function choose(change) {
	Object.assign(ctx, change);
	for (const id of Object.keys(asked))
		if (QUESTIONS[id].time || QUESTIONS[id].node)
			delete asked[id];
	$("main").setAttribute("aria-busy", "true");
	frameShow();
	turn(false);
}

// ---- acting ----

async function copy(button) {
	const before = button.textContent;
	try {
		await navigator.clipboard.writeText(button.dataset.text);
		button.textContent = "Copied";
	} catch {
		button.textContent = "Not allowed here";
	}
	setTimeout(() => { button.textContent = before; }, 1500);
}

function toggle(id) {
	ctx.open[ctx.open.has(id) ? "delete" : "add"](id);
	showAll();
}

function openIncident(id) {
	ctx.open.add(id);
	showAll();
	const d = [...document.querySelectorAll("details.incident")].find((x) => x.dataset.open === id);
	if (d) {
		d.scrollIntoView({block: "start"});
		d.querySelector("summary").focus({preventScroll: true});
	}
}

// The entries of a line, the first of them in sight.
function openEntries(ids) {
	ids.forEach((id) => ctx.open.add(id));
	showAll();
	const d = [...document.querySelectorAll("#steps details.stack")].find((x) => ids.includes(x.dataset.open));
	if (d) {
		d.scrollIntoView({block: "center"});
		d.querySelector("summary").focus({preventScroll: true});
	}
}

function flameFind(words) {
	$("flame").scrollIntoView({block: "start"});
	$("flame-search").value = words;
	$("flame-search").dispatchEvent(new Event("input"));
}

function sqlRun() {
	sql.run($("sql-text").value, Number($("sql-limit").value), $("sql-result")).catch((e) => {
		refusal = e;
		frameShow();
	});
}

const ACTS = {
	window: (b) => choose({since: b.dataset.since}),
	pause: () => { paused = !paused; frameShow(); tick(); },
	refresh: () => turn(true),
	theme: () => {
		const order = ["auto", "dark", "light"], next = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3];
		localStorage.setItem("ingero-theme", next);
		themeApply(next);
	},
	copy,
	open: (b) => openIncident(b.dataset.id),
	sort: (b) => {
		ctx.sort = {by: b.dataset.by, down: ctx.sort.by === b.dataset.by ? !ctx.sort.down : b.dataset.by !== "operation"};
		showAll();
	},
	source: (b) => { ctx.source = b.dataset.source; showAll(); },
	sql: (b) => { $("sql-text").value = b.dataset.text; $("sql").scrollIntoView({block: "start"}); sqlRun(); },
	"steps-line": (b) => openEntries(b.dataset.ids.split("\n")),
	"flame-find": (b) => flameFind(b.dataset.text),
	"flame-all": () => { $("flame-search").value = ""; $("flame-found").textContent = ""; flame.search(""); flame.zoom(0); },
};

function listen() {
	document.addEventListener("click", (e) => {
		const on = (selector) => e.target instanceof Element && e.target.closest(selector);
		const act = on("[data-act]"), summary = on("details[data-open] > summary");
		if (act && ACTS[act.dataset.act])
			ACTS[act.dataset.act](act);
		else if (summary) { // at once: a refresh in between would undo what the browser does later
			e.preventDefault();
			toggle(summary.parentElement.dataset.open);
		}
	});
	document.addEventListener("visibilitychange", tick);
	$("node").addEventListener("change", () => choose({node: $("node").value}));
	$("token").addEventListener("submit", async (e) => {
		e.preventDefault();
		client.tokenSet($("token-text").value.trim());
		await turn(true);
		$("token-said").textContent = refusal && refusal.status === 401 ? "\u25b2 Invalid token." : "";
		if (!refusal)
			$("token-text").value = "";
	});
	$("flame-search").addEventListener("input", () => {
		const found = flame.search($("flame-search").value);
		$("flame-found").textContent = found ? `${found} matched` : "";
	});
	$("sql-form").addEventListener("submit", (e) => { e.preventDefault(); sqlRun(); });
	$("sql-text").addEventListener("keydown", (e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && sqlRun());
	$("sql-examples").addEventListener("change", (e) => { $("sql-text").value = (sql.EXAMPLES[e.target.value] || ["", ""])[1]; });
	chartsListen();
}

function sightWatch() {
	const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
	const near = new IntersectionObserver((entries) => {
		for (const e of entries)
			sight[e.isIntersecting ? "add" : "delete"](e.target.id);
		if (ctx.data.overview)
			turn(false);
	}, {rootMargin: "300px"});
	const here = new IntersectionObserver((entries) => {
		for (const e of entries)
			if (e.isIntersecting)
				for (const [id, a] of links)
					a.toggleAttribute("aria-current", id === e.target.id);
	}, {rootMargin: "-25% 0px -70% 0px"});
	for (const s of document.querySelectorAll("main > section")) {
		near.observe(s);
		here.observe(s);
	}
}

// On a narrow screen the header folds away up to its last line, the sections.
new ResizeObserver(() => document.documentElement.style.setProperty("--fold", `${document.querySelector("nav").offsetTop}px`))
	.observe(document.querySelector(".top"));
themeApply(["auto", "dark", "light"].includes(localStorage.getItem("ingero-theme")) ? localStorage.getItem("ingero-theme") : "auto");
flame = new Flame($("flame-tree"), $("flame-about"));
show($("sql-examples"), el("option", {value: ""}, "Examples\u2026"), sql.EXAMPLES.map(([title], i) => el("option", {value: i}, title)));
client.tokenFromLink();
listen();
sightWatch();
setInterval(tick, TICK_MS);
turn(false);
