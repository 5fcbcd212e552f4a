// SPDX-License-Identifier: Apache-2.0
// app.js - asks the server for what the panels in sight need, every now and then, and shows it.
//
// Live recordings are asked about every 2 s, not while the page is hidden or paused; saved files once.
// A panel that is not in sight is not asked for. What fails is said: in its panel, and if nothing
// answers at all, on top.
import {el, show} from "./dom.js";
import * as client from "./client.js";
import * as address from "./address.js";
import * as choices from "./choices.js";
import * as compare from "./compare.js";
import {chartsListen, hidden, readOutAgain, toggle as lineToggle} from "./chart.js";
import * as flame from "./flame_panel.js";
import {nothing} from "./parts.js";
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
import * as timeline from "./timeline.js";

const {state} = address;

const TICK_MS = 2000, QUIET_NS = 15e9, READ_PX = 60, LAND_MS = 1500;
const $ = (id) => document.getElementById(id);

// every: seconds between questions of a live recording. time, node, who (pid, rank), op: which parameters it takes.
const QUESTIONS = {
	overview: {every: 2},
	incidents: {every: 6, time: true, node: true, who: true, params: {stacks: 1}},
	steps: {every: 10, time: true, node: true, who: true, params: {stacks: 1}},
	chains: {every: 10, time: true, node: true, params: {limit: 200}},
	capabilities: {every: 60},
	ops: {every: 2, time: true, who: true},
	series: {every: 4, time: true, who: true, params: {limit: 100}},
	gpus: {every: 2, time: true, node: true},
	snapshots: {every: 2, time: true, node: true},
	collectives: {every: 4, time: true, node: true},
	"graph-metrics": {every: 4, time: true, who: true},
	"graph-events": {every: 4, time: true, who: true},
	flame: {every: 10, time: true, who: true, op: true},
	"flame-vs": {every: 3600, path: "flame", vs: true, who: true, op: true},
	diff: {every: 3600, who: true, op: true, compares: true},
	losses: {every: 4, node: true},
	overhead: {every: 4, time: true, node: true},
	processes: {every: 10, time: true, node: true},
};

const PANELS = [
	{id: "health", needs: ["overview", "incidents", "gpus"], view: health.view, optional: ["gpus"]},
	{id: "incidents", needs: ["incidents", "chains"], view: incidents.view, optional: ["chains"]},
	{id: "steps", needs: ["steps"], view: steps.view},
	{id: "compare", needs: ["diff"], view: compare.view, optional: ["diff"], tells: true},
	{id: "operations", needs: ["ops", "series"], view: operations.view, optional: ["series"]},
	{id: "gpu", needs: ["gpus"], view: hardware.gpuView},
	{id: "host", needs: ["snapshots"], view: hardware.hostView},
	{id: "ranks", needs: ["collectives"], view: ranks.view},
	{id: "graphs", needs: ["graph-metrics", "graph-events"], view: graphs.view},
	{id: "flame", needs: ["flame", "flame-vs"], view: flame.view, optional: ["flame-vs"]},
	{id: "agent", needs: ["losses", "overhead", "processes"], view: recording.view},
];
const ALWAYS = ["overview", "incidents", "gpus", "capabilities"];

const ctx = {data: {}, failed: {}, open: new Set(), sort: {by: "total_us", down: true}, source: "gpu", again: () => showSoon()};
const asked = {}, askedAs = {}; // question to when it was last asked, and with which parameters
const sight = new Set(["health", "incidents"]);
let paused = false, busy = false, again = null, answeredAt = 0, refusal = null;
let landing = true, opened = "", openedFor = "", soon = 0; // the address's place is not reached yet; the incident that was opened for which address

// ---- showing ----

function themeApply(choice) {
	document.documentElement.dataset.theme = choice;
	$("theme").textContent = `\u25d0 ${choice}`;
	$("theme").setAttribute("aria-label", `Colours: ${choice}`);
}

// The server is there, its recording is not.
const isEmpty = () => Boolean(refusal && refusal.status === 503 && /does not exist|no recording/.test(refusal.message) && !ctx.data.overview);
const since = () => state.since || (ctx.data.overview && ctx.data.overview.live ? "5m" : "all");

function bannerText() {
	const o = ctx.data.overview, w = ctx.data.incidents && ctx.data.incidents.window;
	if (refusal && refusal.status !== 401 && !isEmpty())
		return (refusal.status === 0 ? `The server cannot be reached (${refusal.message}). ` : `The server reports: ${refusal.message}.  `) +
			(answeredAt ? `Data shown is from ${clock(answeredAt * 1e6)}, ${duration((Date.now() - answeredAt) * 1e6)} old. Retrying.` :
				"Check that ingero dashboard is running and that the address is correct. Retrying.");
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
	$("empty").hidden = !$("token").hidden || Boolean(o) || !isEmpty();
	for (const b of $("windows").children)
		b.setAttribute("aria-pressed", String(!state.from && b.dataset.since === since()));
	choices.chosen(ctx);
	if (!o)
		return;
	show($("recording"), health.recordingLine(ctx));
	$("pause").hidden = !o.live;
	$("pause").textContent = paused ? "Resume" : "Pause";
	$("node-choice").hidden = o.nodes.length < 2;
	show($("node"), el("option", {value: ""}, "all nodes"), o.nodes.map((n) => el("option", {value: n, key: n}, n)));
	$("node").value = state.node;
	choices.lists(ctx);
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
	show(place, panel.view(ctx), failed && !panel.tells ? el("p", {class: "alarm"}, `\u25b2 Not up to date: ${failed.message}.`) : null);
	return null;
}

// What arrives by itself, between two refreshes.
function showSoon() {
	cancelAnimationFrame(soon);
	soon = requestAnimationFrame(showAll);
}

// The incident that the address names is open, and the one before it closed.
function incidentOpen() {
	const list = ctx.data.incidents && !busy ? ctx.data.incidents.incidents : null, found = list && state.incident ? incidents.find(list, state.incident) : null;
	const id = found ? found.id : "", asked = state.incident !== openedFor;
	if (!list || (id === opened && !asked))
		return "";
	if (opened && id !== opened)
		ctx.open.delete(opened);
	if (id)
		ctx.open.add(id);
	opened = id;
	openedFor = state.incident;
	return asked ? id : "";
}

// Where the address leads, once there is something to see; the reader's own scrolling comes first.
function land(id) {
	const place = id ? [...document.querySelectorAll("details.incident")].find((x) => x.dataset.open === id) : landing && address.section() ? $(address.section()) : null;
	if (!place)
		return;
	place.scrollIntoView({block: "start", behavior: "instant"});
	if (id)
		place.querySelector("summary").focus({preventScroll: true});
}

function showAll() {
	const id = incidentOpen();
	frameShow();
	for (const panel of PANELS)
		if (sight.has(panel.id) || panel.needs.every((q) => ctx.data[q] || (panel.optional || []).includes(q)))
			panelShow(panel);
	for (const d of document.querySelectorAll("details[data-open]"))
		d.open = ctx.open.has(d.dataset.open);
	readOutAgain();
	if (ctx.data.overview) {
		timeline.sight(sight.has("timeline"));
		timeline.refresh(ctx.data.overview.live && !paused);
	}
	if (ctx.data.overview && (id || landing))
		land(landing && !["", "incidents"].includes(address.section()) ? "" : id || (landing ? opened : ""));
}

// ---- asking ----

function paramsOf(q) {
	const vs = q.vs ? address.spanOf(state.vs) : null, [source, op] = state.op.split("/");
	const time = vs ? {from: address.stamp(vs.from), to: address.stamp(vs.to)} : state.from ? {from: state.from, to: state.to} : {since: since()};
	return {...q.params, ...(q.time || q.vs ? time : {}), ...(q.node ? {node: state.node} : {}), ...(q.who ? {pid: state.pid, rank: state.rank} : {}),
		...(q.op && op ? {source, op} : {}), ...(q.compares ? compare.params(ctx.data.incidents && ctx.data.incidents.window) : {})};
}

const asks = (id) => JSON.stringify(paramsOf(QUESTIONS[id]));

async function answer(id) {
	const q = QUESTIONS[id], as = asks(id);
	asked[id] = Date.now();
	askedAs[id] = as;
	try {
		const data = await client.get(q.path || id, paramsOf(q));
		if (as !== asks(id))
			return;
		ctx.data[id] = data;
		delete ctx.failed[id];
		answeredAt = Date.now();
		if (id === "overview")
			refusal = null;
	} catch (e) {
		ctx.failed[id] = e;
		if (q.compares) // what was found for other times says nothing of these
			delete ctx.data[id];
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
	if (!$("choices").hidden || state.pid)
		["processes", "ops"].forEach((q) => wanted.add(q));
	if (!state.vs)
		["flame-vs", "diff"].forEach((q) => wanted.delete(q));
	return [...wanted].filter((q) => all || askedAs[q] !== asks(q) || (ctx.failed[q] && passes(ctx.failed[q])) || (ctx.data.overview.live && !paused && now - asked[q] >= QUESTIONS[q].every * 1000 - TICK_MS / 2));
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
			await Promise.all(due(all).map(answer));
		}
	} finally {
		busy = false;
		showAll();
	}
	if (again !== null)
		await turn(again);
	else {
		$("main").removeAttribute("aria-busy");
		if (landing && ctx.data.overview) // what comes into sight there is asked for, and pushes on
			setTimeout(() => { landing = false; }, LAND_MS);
	}
}

function tick() {
	const o = ctx.data.overview, amiss = !o || refusal || Object.values(ctx.failed).some(passes);
	if (!document.hidden && !(refusal && refusal.status === 401) && (amiss || (o.live && !paused)))
		turn(false);
}

// Another address: what is not yet known of it is asked for. @back: by the browser's buttons.
function moved(back) {
	if (back) {
		hidden.clear();
		hideRead();
		if ($("flame-search").value !== state.frame) {
			$("flame-search").value = state.frame;
			flame.search(state.frame);
		}
	}
	if (Object.keys(askedAs).some((id) => (!["flame-vs", "diff"].includes(id) || state.vs) && askedAs[id] !== asks(id)))
		$("main").setAttribute("aria-busy", "true");
	timeline.moved();
	showAll();
	if (ctx.data.overview)
		turn(false);
}

const hideRead = () => address.listOf(state.hide).forEach((n) => hidden.add(n));

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

function toggle(id, isIncident) {
	const open = !ctx.open.has(id);
	ctx.open[open ? "add" : "delete"](id);
	if (!isIncident)
		return showAll();
	opened = openedFor = open ? id : "";
	return address.go({incident: opened}, {where: "incidents"});
}

function openIncident(id) {
	openedFor = "";
	address.go({incident: id}, {where: "incidents"});
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

function sectionGo(change, where) {
	address.go(change, {where});
	$(where).scrollIntoView({block: "start"});
}

// What the time line asks with, and the incidents of the page for its top, in its own times.
const timelineHooks = {
	params: () => paramsOf({time: true, node: true, who: true}),
	go: (change, where) => where ? sectionGo(change, where) : address.go(change),
	incident: openIncident,
	incidents: (origin) => ctx.data.incidents && ctx.data.incidents.incidents.filter((i) => i.severity !== "LOW").map((i) => ({id: i.id, severity: i.severity, title: i.summary,
		start: Number(BigInt(i.since_ns || i.first_seen_ns) - origin), dur: i.last_seen_ns - (i.since_ns || i.first_seen_ns)})),
};

function choicesToggle(button) {
	const w = ctx.data.incidents && ctx.data.incidents.window, isHidden = !$("choices").hidden;
	$("choices").hidden = isHidden;
	button.setAttribute("aria-expanded", String(!isHidden));
	if (isHidden)
		return;
	choices.fill(state.from ? {from: address.nsOf(state.from), to: address.nsOf(state.to)} : w ? {from: w.from_ns, to: w.to_ns} : null);
	$("range-from").focus();
	turn(false);
}

// A line of the charts; which are off goes into the address.
function lineAct(b, e) {
	lineToggle(b.dataset.line, e.shiftKey, b.closest(".chart").dataset.chart);
	address.go({hide: address.listText(hidden)}, {quiet: true});
}

function sqlRun() {
	sql.run($("sql-text").value, Number($("sql-limit").value), $("sql-result"), $("sql-readable").checked).catch((e) => {
		refusal = e;
		frameShow();
	});
}

const ACTS = {
	...timeline.ACTS,
	view: (b) => sectionGo({...timeline.viewOf(b.dataset.view), event: ""}, "timeline"),
	window: (b) => address.go({since: b.dataset.since, from: "", to: ""}),
	choices: choicesToggle,
	unfilter: (b) => choices.unfilter(b.dataset.filter),
	filter: (b) => address.go({[b.dataset.filter]: b.dataset.value}),
	line: lineAct,
	op: (b) => address.go({op: state.op === b.dataset.op ? "" : b.dataset.op}, {where: "operations"}),
	"op-flame": () => sectionGo({}, "flame"),
	"op-find": (b) => sectionGo({find: b.dataset.text}, "timeline"),
	"flame-compare": () => address.go(flame.compareChange(ctx.data.flame.window, ctx.data.overview), {where: "flame"}),
	"flame-plain": () => address.go({vs: ""}),
	"compare-swap": () => address.go(compare.swapped()),
	"compare-flame": () => sectionGo({}, "flame"),
	"compare-halves": () => address.go(flame.compareChange(ctx.data.incidents.window, ctx.data.overview), {where: "compare"}),
	"compare-incident": (b) => sectionGo(compare.beforeOf(ctx.data.incidents.incidents.find((i) => i.id === b.dataset.id), ctx.data.overview) || {}, "compare"),
	pause: () => { paused = !paused; frameShow(); tick(); },
	refresh: () => turn(true),
	theme: () => {
		const order = ["auto", "dark", "light"], next = order[(order.indexOf(document.documentElement.dataset.theme) + 1) % 3];
		localStorage.setItem("ingero-theme", next);
		themeApply(next);
		timeline.recolour();
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
	"flame-all": () => { flame.showAll(); address.go({frame: ""}, {quiet: true}); },
};

function listen() {
	document.addEventListener("click", (e) => {
		const on = (selector) => e.target instanceof Element && e.target.closest(selector);
		const act = on("[data-act]"), summary = on("details[data-open] > summary");
		if (act && ACTS[act.dataset.act])
			ACTS[act.dataset.act](act, e);
		else if (summary) { // at once: a refresh in between would undo what the browser does later
			e.preventDefault();
			toggle(summary.parentElement.dataset.open, summary.parentElement.matches(".incident"));
		}
	});
	document.addEventListener("visibilitychange", tick);
	for (const kind of ["wheel", "pointerdown", "keydown"])
		document.addEventListener(kind, () => { landing = false; }, {passive: true});
	$("node").addEventListener("change", () => address.go({node: $("node").value}));
	$("token").addEventListener("submit", async (e) => {
		e.preventDefault();
		client.tokenSet($("token-text").value.trim());
		await turn(true);
		$("token-said").textContent = refusal && refusal.status === 401 ? "\u25b2 Invalid token." : "";
		if (!refusal)
			$("token-text").value = "";
	});
	$("flame-search").addEventListener("input", () => {
		flame.search($("flame-search").value);
		address.go({frame: $("flame-search").value}, {quiet: true});
	});
	$("sql-form").addEventListener("submit", (e) => { e.preventDefault(); sqlRun(); });
	$("sql-text").addEventListener("keydown", (e) => e.key === "Enter" && (e.ctrlKey || e.metaKey) && sqlRun());
	$("sql-examples").addEventListener("change", (e) => { $("sql-text").value = (sql.EXAMPLES[e.target.value] || ["", ""])[1]; });
	chartsListen();
	choices.choicesListen();
	address.listen(moved);
}

function sightWatch() {
	const near = new IntersectionObserver((entries) => {
		for (const e of entries)
			sight[e.isIntersecting ? "add" : "delete"](e.target.id);
		if (ctx.data.overview)
			turn(false);
	}, {rootMargin: "300px"});
	for (const s of document.querySelectorAll("main > section"))
		near.observe(s);
}

// Which section is read: the one just below the header, as high as that is now.
let here = null;
function hereWatch(head) {
	const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
	if (here)
		here.disconnect();
	here = new IntersectionObserver((entries) => {
		const e = entries.findLast((x) => x.isIntersecting);
		if (!e)
			return;
		for (const [id, a] of links)
			a.toggleAttribute("aria-current", id === e.target.id);
		if (!landing)
			address.seen(e.target.id === "health" ? "" : e.target.id);
	}, {rootMargin: `-${head + READ_PX}px 0px -${Math.max(innerHeight - head - 2 * READ_PX, 0)}px 0px`});
	for (const s of document.querySelectorAll("main > section"))
		here.observe(s);
}

// On a narrow screen the header folds away up to its last line, the sections.
new ResizeObserver(() => {
	const top = document.querySelector(".top"), fold = document.querySelector("nav").offsetTop, folds = getComputedStyle(top).top !== "0px";
	document.documentElement.style.setProperty("--fold", `${fold}px`);
	document.documentElement.style.setProperty("--head", `${top.offsetHeight - (folds ? fold : 0)}px`);
	hereWatch(top.offsetHeight - (folds ? fold : 0));
}).observe(document.querySelector(".top"));
themeApply(["auto", "dark", "light"].includes(localStorage.getItem("ingero-theme")) ? localStorage.getItem("ingero-theme") : "auto");
client.tokenFromLink();
address.read();
hideRead();
flame.start();
timeline.start(timelineHooks);
$("flame-search").value = state.frame;
show($("sql-examples"), el("option", {value: ""}, "Examples\u2026"), sql.EXAMPLES.map(([title], i) => el("option", {value: i}, title)));
listen();
sightWatch();
setInterval(tick, TICK_MS);
turn(false);
