// SPDX-License-Identifier: Apache-2.0
// timeline.js - the time line: which part of it is in sight, what is asked of the server for it, what is selected. Each view asks
// anew, a moment after the last movement; until the answer comes, the old one is drawn stretched. Painting is timeline_draw.js's.
import {el, group, name, show, visible} from "./dom.js";
import * as client from "./client.js";
import {nothing} from "./parts.js";
import {nsOf, note, spanOf, spanText, stamp, state} from "./address.js";
import {clockAt, colours, Painter} from "./timeline_draw.js";
import {isFolded, LANE, layout, OFF, title} from "./timeline_rows.js";
import {Input, KEYS} from "./timeline_input.js";
import {eventView, rangeView, tableView} from "./timeline_event.js";
import * as f from "./format.js";

const WAIT_MS = 90, WRITE_MS = 400, FIND_MS = 250, AGAIN_MS = 500, LIVE_MS = 4000, LEAST_NS = 500, GUTTER = 200, NARROW = 640, AXIS = 20, NEAR_PX = 4, INCIDENT_LANES = 3, STEP_LANES = 3, STEPS_MS = 2000, SUMS_NS = 10e9, MOST_TRACKS = 512;
const TRACKS = {process: "All calls", rank: "Ranks", thread: "Threads", stream: "Streams", host: "Host", gpu: "GPUs"};
const $ = (id) => document.getElementById(id);
const own = {answer: null, whole: null, origin: 0n, view: null, moved: false, sel: null, base: null, event: "", eventData: null, wanted: "", hits: [], total: 0, hitAt: -1, kinds: new Set(Object.keys(TRACKS)),
	kindsChosen: false, folds: new Map(), depths: new Map(), field: "utilization", rows: [], cursor: -1, selecting: false, table: false, sight: false, colours: null, error: null, top: AXIS};
const timers = {};
let hooks = null, top = null, body = null, aborting = null, asked = "", askedAt = 0, painting = 0;

const later = (id, ms, act) => { clearTimeout(timers[id]); timers[id] = setTimeout(act, ms); };
const width = () => Math.max($("tl-area").clientWidth || $("timeline").clientWidth - 2, 100);
const isWide = () => width() >= NARROW;
const gutter = () => isWide() ? GUTTER : 0;
const absolute = (t) => own.origin + BigInt(Math.round(t));
const relative = (ns) => Number(ns - own.origin);
const timeAt = (x) => own.view.from + (x - gutter()) / (width() - gutter()) * (own.view.to - own.view.from);
const say = (text) => { $("tl-said").textContent = visible(text); };

// ---- asking ----

function params() {
	const p = {...hooks.params(), width: String(Math.min(4096, Math.max(16, Math.round(width() - gutter()))))};
	if (own.view && own.moved) {
		delete p.since;
		Object.assign(p, {from: stamp(absolute(own.view.from)), to: stamp(absolute(own.view.to))});
	}
	if (own.kinds.size < Object.keys(TRACKS).length)
		Object.assign(p, {kinds: [...own.kinds].join(","), limit: String(MOST_TRACKS)});
	return p;
}

// Times that an address named before the server said what they are counted from.
function rebase(origin) {
	const shift = Number(own.origin - origin);
	for (const r of [own.view, own.sel, own.base].filter(Boolean)) {
		r.from += shift;
		r.to += shift;
	}
	own.origin = origin;
}

function take(d) {
	if (own.origin !== BigInt(d.origin))
		rebase(BigInt(d.origin));
	own.answer = d;
	own.error = null;
	if (!own.view || !own.moved)
		own.view = {from: d.from, to: Math.max(d.to, d.from + LEAST_NS)};
	if (!own.whole || d.to - d.from >= own.whole.to - own.whole.from)
		own.whole = d;
	// So many processes are compared by their collectives first.
	if (d.more_tracks && !own.kindsChosen && d.tracks.some((t) => t.kind === "rank")) {
		own.kindsChosen = true;
		own.kinds = new Set(["rank", "gpu"]);
		ask();
	}
}

async function ask() {
	const p = params(), key = JSON.stringify(p), mine = new AbortController();
	if (aborting)
		aborting.abort();
	aborting = mine;
	asked = key;
	askedAt = Date.now();
	$("tl-area").setAttribute("aria-busy", "true");
	try {
		const d = await client.get("timeline", p, mine.signal);
		if (mine.signal.aborted)
			return;
		if (d.tracks)
			take(d);
		if (d.ready === false)
			later("ask", AGAIN_MS, ask);
		else if (d.steps_known === false)
			later("ask", STEPS_MS, ask);
		$("tl-state").textContent = d.ready === false ? `Reading the recording: ${Math.round((d.progress || 0) * 100)} %\u2026` : "";
	} catch (e) {
		if (mine.signal.aborted)
			return;
		own.error = e;
		asked = "";
	}
	$("tl-area").removeAttribute("aria-busy");
	render();
}

const askSoon = () => { if (own.sight) later("ask", WAIT_MS, ask); };

// refresh - what is asked for has changed, or a live recording has grown.
export function refresh(live) {
	if (!own.sight || !hooks)
		return;
	if (JSON.stringify(params()) !== asked || (live && !own.moved && Date.now() - askedAt > LIVE_MS))
		ask();
}

// ---- the view ----

function viewSet(from, to, quiet) {
	const whole = own.answer, span = Math.max(to - from, LEAST_NS), room = (whole.end - whole.begin) * 0.05 + LEAST_NS, most = whole.end - whole.begin + 2 * room;
	const s = Math.min(span, most), start = Math.min(Math.max(from + (span - s) / 2, whole.begin - room), whole.end + room - s);
	own.view = {from: start, to: start + s};
	own.moved = true;
	if (!quiet)
		later("write", WRITE_MS, () => note({view: spanText(absolute(own.view.from), absolute(own.view.to))}));
	askSoon();
	paintSoon();
}

function zoom(factor, at) {
	if (!own.view)
		return;
	const t = at && at.x > gutter() ? timeAt(at.x) : (own.view.from + own.view.to) / 2;
	viewSet(t - (t - own.view.from) * factor, t + (own.view.to - t) * factor);
}

function pan(px, py = 0, pointer = "") {
	if (!own.view)
		return;
	const dt = px / (width() - gutter()) * (own.view.to - own.view.from);
	if (py && pointer === "mouse")
		$("tl-scroll").scrollTop += py;
	viewSet(own.view.from + dt, own.view.to + dt);
}

function all() {
	if (own.answer)
		viewSet(own.answer.begin, own.answer.end);
}

// ---- what is where ----

function rowAt(y) {
	const at = y - own.top + $("tl-scroll").scrollTop;
	return y < own.top ? null : own.rows.find((r) => at >= r.y && at < r.y + r.h);
}

function inLane(row, y) {
	const at = y - own.top + $("tl-scroll").scrollTop - row.lane;
	return {depth: Math.floor(at / LANE), off: row.track.kind === "thread" && at >= row.lanes * LANE && at < row.lanes * LANE + OFF + 3};
}

const sizeOf = (track) => track.bin_ns || own.answer.bin_ns; // of a bin, ns

// found - what is at a point: {slice}, {off}, {bin}, with its row.
function found(p) {
	const row = rowAt(p.y), a = own.answer;
	if (!row || row.kind !== "track" || p.x < gutter() || !a)
		return null;
	const t = timeAt(p.x), size = sizeOf(row.track), slack = NEAR_PX * (own.view.to - own.view.from) / (width() - gutter()), {depth, off} = inLane(row, p.y), hit = (s) => s[0] - slack <= t && t <= s[0] + s[1] + slack;
	if (off) {
		const stay = (row.track.off || []).find(hit), bin = (row.track.off_bins || []).find((b) => b[0] * size <= t && t < (b[0] + 1) * size);
		return stay ? {row, off: stay} : bin ? {row, offBin: bin} : null;
	}
	const near = row.track.slices.filter((s) => hit(s) && (s[4] || 0) === Math.min(depth, row.lanes - 1)), exact = near.filter((s) => s[0] <= t && t <= s[0] + s[1]);
	const slice = (exact.length ? exact : near).sort((x, y) => Math.abs(x[0] - t) - Math.abs(y[0] - t))[0];
	const bin = slice ? null : row.track.bins.find((b) => b[0] * size <= t && t < (b[0] + 1) * size);
	return slice ? {row, slice} : bin ? {row, bin} : null;
}

function incidentAt(p) {
	const y = p.y - own.stepsHeight - AXIS;
	if (y < 0 || p.y >= own.top || p.x < gutter())
		return null;
	const t = timeAt(p.x), slack = NEAR_PX * (own.view.to - own.view.from) / width();
	return own.incidents.find((i) => i.lane === Math.floor(y / LANE) && i.start - slack <= t && t <= i.start + i.dur + slack);
}

function tipText(what) {
	const names = own.answer.names, {slice: s, off, offBin, bin, row} = what, size = sizeOf(row.track);
	if (s)
		return `${names[s[2]]}, ${f.duration(s[1])}\n${clockAt(own.origin, s[0], 6)}` + (s[5] > 0 ? `\n${s[6] === row.group.rank ? "the last rank to arrive" : `waited ${f.duration(s[5])}${s[6] >= 0 ? ` for rank ${s[6]}` : ""}`}` : "");
	if (off)
		return `${names[off[2]]}, ${f.duration(off[1])}` + (off[3] >= 0 ? `\nthe CPU was used by ${names[off[3]]}` : "");
	if (offBin)
		return `${names[offBin[3]]}: ${f.duration(offBin[1])} of ${f.duration(size)}` + (offBin[4] >= 0 ? `\nthe CPU was used most by ${names[offBin[4]]}` : "");
	return `${f.counted(bin[2], "call")}, ${f.duration(bin[1])} of ${f.duration(size)}\nmostly ${names[bin[3]]}` + (bin[4] ? `\n${f.duration(bin[4])} of it waiting for other ranks` : "");
}

function hover(p) {
	const what = p && own.answer && own.view ? found(p) : null, incident = p && own.answer && own.view ? incidentAt(p) : null, tip = $("tl-tip");
	tip.hidden = !what && !incident;
	if (tip.hidden)
		return;
	tip.textContent = visible(incident ? `${incident.severity}: ${incident.title}` : tipText(what)).replaceAll("\\u{a}", "\n");
	tip.style.left = `${Math.min(p.x + 14, width() - 240)}px`;
	tip.style.top = `${p.y + 16}px`;
}

// ---- painting ----

// Incidents that overlap stand below each other.
function lanes(list) {
	const ends = [];
	return list.map((i) => {
		let lane = ends.findIndex((e) => e <= i.start);
		lane = lane < 0 ? Math.min(ends.length, INCIDENT_LANES - 1) : lane;
		ends[lane] = i.start + Math.max(i.dur, (own.view.to - own.view.from) / 200);
		return {...i, lane};
	});
}

function model() {
	return {view: own.view, gutter: gutter(), colours: own.colours, event: own.event, wanted: own.wanted};
}

function paintTop() {
	const now = model();
	const order = (own.answer.groups || []).map((x) => x.pid), pids = [...new Set(own.answer.steps.map((s) => s[4]))].sort((a, b) => order.indexOf(a) - order.indexOf(b)).slice(0, STEP_LANES), laneOf = new Map(pids.map((pid, n) => [pid, n]));
	own.stepsHeight = pids.length * LANE;
	own.incidents = lanes(hooks.incidents(own.origin) || own.answer.incidents);
	own.top = AXIS + own.stepsHeight + (own.incidents.length ? (Math.max(...own.incidents.map((i) => i.lane)) + 1) * LANE + 2 : 0);
	top.size(width(), own.top);
	top.begin(now);
	top.axis(own.origin, 2);
	top.steps(own.answer.steps, AXIS, laneOf);
	top.incidents(own.incidents, AXIS + own.stepsHeight);
	if (own.sel)
		top.band(own.sel.from, own.sel.to, own.colours.accent, 0.25);
	top.g.clearRect(0, 0, gutter(), own.top);
	if (gutter()) {
		pids.forEach((pid, n) => top.text(`Steps (${pid})`, 8, AXIS + (n + 0.5) * LANE - 2, GUTTER - 12, own.colours.dim));
		if (own.incidents.length)
			top.text("Incidents", 8, AXIS + own.stepsHeight + LANE / 2 - 1, GUTTER - 12, own.colours.dim);
	}
}

function paint() {
	if (!own.answer || !own.view || !own.sight)
		return;
	own.colours = own.colours || colours($("tl-tip").parentElement);
	paintTop();
	const scroll = $("tl-scroll"), offset = scroll.scrollTop, height = Math.min(scroll.clientHeight, Math.max(own.height - offset, 1));
	body.size(width(), Math.max(height, 1));
	body.begin(model());
	body.gridLines(own.origin);
	for (const [n, row] of own.rows.entries()) {
		const y = row.y - offset;
		if (y + row.h < 0 || y > height)
			continue;
		if (n === own.cursor) {
			body.g.fillStyle = own.colours.sunk;
			body.g.fillRect(0, y, body.width, row.h);
		}
		body.row(row, y, own.answer);
	}
	if (own.base)
		body.band(own.base.from, own.base.to, own.colours.s4, 0.14);
	if (own.sel)
		body.band(own.sel.from, own.sel.to, own.colours.accent, 0.16);
	$("tl-now").textContent = `${clockAt(own.origin, own.view.from, 6)} \u2013 ${clockAt(own.origin, own.view.to, 6)} ${f.zone(Number(own.origin))} \u00b7 ${f.duration(own.view.to - own.view.from)} shown`;
}

function paintSoon() {
	cancelAnimationFrame(painting);
	painting = requestAnimationFrame(paint);
}

// ---- the elements around ----

function labels() {
	return own.rows.map((r, n) => {
		const style = {top: `${r.y}px`, height: `${isWide() ? r.h : 15}px`};
		const text = name(r.label, 90);
		return r.fold ? el("button", {type: "button", class: `tl-label fold${n === own.cursor ? " now" : ""}`, key: r.key, style, "data-act": "tl-fold", "data-key": r.group.key, "aria-expanded": String(!r.folded), title: r.group.name},
			el("span", {"aria-hidden": "true"}, r.folded ? "\u25b8 " : "\u25be "), text) :
			el("span", {class: `tl-label${r.inner ? " inner" : ""}${n === own.cursor ? " now" : ""}`, key: r.key, style}, text);
	});
}

function kindChips() {
	const fields = [...new Set(own.answer.gpu.map((s) => s.field))];
	return group(Object.entries(TRACKS).map(([k, text]) => el("button", {type: "button", key: `k${k}`, "data-act": "tl-kind", "data-kind": k, "aria-pressed": String(own.kinds.has(k))}, text)),
		fields.length > 1 && own.kinds.has("gpu") ? el("label", {key: "field", class: "small-label"}, "GPU line ", el("select", {id: "tl-field"}, fields.map((x) => el("option", {value: x, selected: x === own.field}, x)))) : null);
}

function message() {
	const a = own.answer;
	if (own.error)
		return nothing(own.error.status === 404 ? "This server is older than the page and has no time line: restart `ingero dashboard`." : `Cannot load the time line: ${own.error.message}.`);
	if (!a)
		return el("p", {class: "dim"}, "Loading\u2026");
	if (a.tracks.every((t) => !t.bins.length && !t.slices.length && !(t.off || []).length && !(t.off_bins || []).length))
		return nothing("No events in this time range: choose \u201call\u201d above, remove filters, or record some with `sudo ingero trace` while a CUDA program runs.");
	const calls = a.groups ? a.groups.reduce((n, g) => n + g.calls, 0) : 0, rows = a.groups ? a.groups.reduce((n, g) => n + g.rows, 0) : 0;
	const thin = rows < calls && a.to - a.from >= SUMS_NS; // calls are counted in stretches of some seconds
	return a.more_tracks || a.truncated || thin ? el("p", {class: "note"}, (thin ? `${f.count(rows)} of ${f.count(calls)} visible calls are stored one by one and drawn; \u201cAll calls\u201d are the sums of every call. ` : "") + (a.more_tracks ? `${f.counted(a.more_tracks, "further track")} not shown: choose a process above, or fewer kinds of tracks. ` : "") +
		(a.truncated ? "Some events are left out: zoom in." : "")) : null;
}

function render() {
	const has = own.answer && (own.answer.tracks.length || own.answer.gpu.length);
	show($("timeline").querySelector(":scope > .body"), message());
	$("tl-area").hidden = !has;
	if (!has)
		return;
	if (!own.answer.gpu.some((s) => s.field === own.field) && own.answer.gpu.length)
		own.field = own.answer.gpu[0].field;
	const {rows, height, groups} = layout(own.kinds.has("gpu") ? own.answer : {...own.answer, gpu: []}, {folds: own.folds, depths: own.depths, wide: isWide(), field: own.field});
	Object.assign(own, {rows, height, groups});
	$("tl-body").style.height = `${height}px`;
	show($("tl-labels"), labels());
	show($("tl-kinds"), kindChips());
	show($("tl-range"), own.sel ? rangeView(own.sel, own.origin, own.base) : null);
	$("tl-table").hidden = !own.table;
	if (own.table)
		show($("tl-table"), tableView(own.answer, rows, own.view, own.origin));
	paint();
}

// ---- events and search ----

async function eventLoad(ref) {
	own.event = ref;
	own.eventData = null;
	paintSoon();
	if (!ref)
		return show($("tl-detail"));
	try {
		const d = await client.get("timeline/event", {ref});
		if (own.event !== ref)
			return null;
		own.eventData = d;
		if (d.origin)
			own.origin = own.origin || BigInt(d.origin);
		show($("tl-detail"), eventView(d, own.origin));
		say(`${d.name}, ${f.duration(d.dur)}`);
	} catch (e) {
		show($("tl-detail"), nothing(`Cannot load this event: ${e.message}.`));
	}
	return null;
}

const eventOpen = (ref) => hooks.go({event: ref});

// A track in sight: its process unfolded, its row scrolled to.
function trackShow(id) {
	const t = own.answer.tracks.find((x) => x.id === id);
	if (!t)
		return;
	if (!own.rows.some((r) => r.key === id)) {
		own.folds.set(`${t.group.node}/${t.group.pid}`, false);
		render();
	}
	own.cursor = own.rows.findIndex((r) => r.key === id);
	const row = own.rows[own.cursor], scroll = $("tl-scroll");
	if (row && (row.y < scroll.scrollTop || row.y + row.h > scroll.scrollTop + scroll.clientHeight))
		scroll.scrollTop = row.y - scroll.clientHeight / 3;
	paintSoon();
}

function lookAt(start, dur) {
	const now = own.view.to - own.view.from, span = dur > now * 0.8 || dur < now / 2000 ? Math.max(dur * 12, 2000) : now, middle = start + dur / 2;
	viewSet(middle - span / 2, middle + span / 2);
}

function hitShow(step) {
	if (!own.hits.length)
		return say("No hits.");
	own.hitAt = (own.hitAt + step + own.hits.length) % own.hits.length;
	const h = own.hits[own.hitAt];
	$("tl-found").textContent = `${own.hitAt + 1} of ${f.count(own.total)}`;
	lookAt(h.start, h.dur);
	trackShow(h.track);
	return h.ref ? eventOpen(h.ref) : null;
}

async function find(text) {
	own.wanted = text.trim().toLowerCase();
	Object.assign(own, {hits: [], total: 0, hitAt: -1});
	note({find: text.trim()});
	paintSoon();
	$("tl-found").textContent = own.wanted ? "Searching\u2026" : "";
	if (own.wanted.length < 2) {
		$("tl-found").textContent = own.wanted ? "two letters or more" : "";
		return;
	}
	try {
		const {since, ...rest} = hooks.params(), d = await client.get("timeline/search", {...rest, ...(state.from ? {} : {since}), q: text.trim()});
		if (own.wanted !== text.trim().toLowerCase())
			return;
		Object.assign(own, {hits: d.hits, total: d.total ?? d.hits.length});
		$("tl-found").textContent = d.hits.length ? f.counted(own.total, "hit") : "not found";
	} catch (e) {
		$("tl-found").textContent = `Cannot search: ${e.message}`;
	}
}

// ---- by keyboard ----

function cursorMove(step) {
	const usable = own.rows.map((r, n) => n).filter((n) => own.rows[n].kind !== "group");
	if (!usable.length)
		return;
	own.cursor = usable[Math.min(Math.max(usable.indexOf(own.cursor) + step, 0), usable.length - 1)];
	const row = own.rows[own.cursor], scroll = $("tl-scroll");
	if (row.y < scroll.scrollTop || row.y + row.h > scroll.scrollTop + scroll.clientHeight)
		scroll.scrollTop = row.y - 40;
	show($("tl-labels"), labels());
	say(`${row.inner ? `${title(row.group, false)}, ` : ""}${row.label}${row.track ? `: ${row.track.slices.length ? f.counted(row.track.slices.length, "event") : `${f.counted(row.track.bins.reduce((n, b) => n + b[2], 0), "call")}, summed up`}` : ""}`);
	paintSoon();
}

function sliceMove(step) {
	const row = own.rows[own.cursor], list = row && row.track ? row.track.slices : [];
	if (!list.length)
		return say(row ? "Single events are not visible: zoom in with w." : "Choose a track first: arrow down.");
	const now = list.findIndex((s) => s[3] === own.event), middle = list.findIndex((s) => s[0] >= own.view.from);
	const s = list[Math.min(Math.max(now < 0 ? Math.max(middle, 0) : now + step, 0), list.length - 1)];
	own.event = s[3];
	if (s[0] < own.view.from || s[0] > own.view.to)
		lookAt(s[0], Math.min(s[1], own.view.to - own.view.from));
	say(`${own.answer.names[s[2]]}, ${clockAt(own.origin, s[0], 6)}, ${f.duration(s[1])}`);
	return paintSoon();
}

// ---- acts ----

function selectSet(a, b) {
	own.sel = a === null ? null : {from: Math.min(a, b), to: Math.max(a, b)};
	note({sel: own.sel ? spanText(absolute(own.sel.from), absolute(own.sel.to + 1)) : ""});
	render();
}

function helpShow() {
	show($("tl-help-keys"), KEYS.map(([k, what]) => el("div", {}, el("dt", {}, el("kbd", {}, k)), el("dd", {}, what))));
	$("tl-help").showModal();
}

function tableToggle() {
	own.table = !own.table;
	document.querySelector("[data-act=tl-table]").setAttribute("aria-expanded", String(own.table));
	render();
}

function click(p) {
	const incident = incidentAt(p), what = found(p);
	if (incident)
		return hooks.incident(incident.id);
	if (what && (what.slice || what.off)) {
		own.cursor = own.rows.indexOf(what.row);
		return eventOpen(what.slice ? what.slice[3] : what.off[4]);
	}
	if (what && what.bin)
		return viewSet((what.bin[0] - 4) * sizeOf(what.row.track), (what.bin[0] + 5) * sizeOf(what.row.track));
	return own.sel ? selectSet(null) : null;
}

const rangeChange = (r) => ({from: stamp(absolute(r.from)), to: stamp(absolute(Math.max(r.to, r.from + 1))), since: ""});

const input = {zoom, pan, hover, click, all, find: () => $("tl-find").focus(), selecting: () => own.selecting, selected: () => render(),
	select: (x0, x1) => { own.sel = {from: timeAt(Math.max(Math.min(x0, x1), gutter())), to: timeAt(Math.max(x0, x1))}; note({sel: spanText(absolute(own.sel.from), absolute(own.sel.to + 1))}); paintSoon(); },
	selectView: () => selectSet(own.view.from, own.view.to), fit: () => own.sel && viewSet(own.sel.from, own.sel.to), track: cursorMove, step: sliceMove,
	open: () => own.event && eventOpen(own.event), hit: hitShow, table: tableToggle, help: helpShow,
	escape: () => { if (own.event) hooks.go({event: ""}); else selectSet(null); }};

export const ACTS = {"tl-in": () => zoom(1 / 2, null), "tl-out": () => zoom(2, null), "tl-all": all, "tl-next": () => hitShow(1), "tl-prev": () => hitShow(-1), "tl-help": helpShow, "tl-table": tableToggle,
	"tl-select": (b) => { own.selecting = !own.selecting; b.setAttribute("aria-pressed", String(own.selecting)); },
	"tl-fold": (b) => { own.folds.set(b.dataset.key, !isFolded(b.dataset.key, own.folds, own.groups)); render(); },
	"tl-kind": (b) => { const k = b.dataset.kind; own.kindsChosen = true; own.kinds[own.kinds.has(k) ? "delete" : "add"](k); if (!own.kinds.size) own.kinds.add(k); render(); askSoon(); },
	"tl-open": (b) => eventOpen(b.dataset.ref), "tl-close": () => hooks.go({event: ""}), "tl-fit": input.fit, "tl-deselect": () => selectSet(null),
	"tl-around": () => own.eventData && lookAt(own.eventData.start, Math.max(own.eventData.dur, (own.view.to - own.view.from) / 1000)),
	"tl-base": () => { own.base = own.base ? null : own.sel; render(); },
	"tl-explain": () => hooks.go(rangeChange(own.sel), "incidents"), "tl-flame": () => hooks.go({...rangeChange(own.sel), vs: ""}, "flame"),
	"tl-compare": () => hooks.go({...rangeChange(own.sel), vs: spanText(absolute(own.base.from), absolute(own.base.to + 1))}, "compare")};

// ---- from outside ----

// moved - the address changed: another view, event or search.
export function moved() {
	const view = spanOf(state.view), sel = spanOf(state.sel);
	if (!own.origin && (view || sel) && own.answer === null)
		own.origin = (view || sel).from; // until the server says which
	if (view && (!own.view || stamp(absolute(own.view.from)) !== stamp(view.from) || stamp(absolute(own.view.to)) !== stamp(view.to)))
		Object.assign(own, {view: {from: relative(view.from), to: relative(view.to)}, moved: true});
	else if (!view && own.moved && !timers.writing)
		Object.assign(own, {view: null, moved: false});
	own.sel = sel ? {from: relative(sel.from), to: relative(sel.to)} : null;
	if (state.event !== own.event || (state.event && !own.eventData))
		eventLoad(state.event);
	if ($("tl-find").value.trim() !== state.find) {
		$("tl-find").value = state.find;
		find(state.find);
	}
	refresh(false);
	if (own.answer)
		render();
}

export function sight(is) {
	if (is === own.sight)
		return;
	own.sight = is;
	if (is)
		moved();
}

export function recolour() {
	own.colours = null;
	paintSoon();
}

// start - @given: params() for questions, go(change, section), incident(id), incidents(origin).
export function start(given) {
	hooks = given;
	top = new Painter($("tl-top"));
	body = new Painter($("tl-rows"));
	new Input($("tl-area"), input);
	$("tl-scroll").addEventListener("scroll", paintSoon, {passive: true});
	$("tl-find").addEventListener("input", () => later("find", FIND_MS, () => find($("tl-find").value)));
	$("tl-find").addEventListener("keydown", (e) => e.key === "Enter" && (e.preventDefault(), own.hits.length ? hitShow(e.shiftKey ? -1 : 1) : find($("tl-find").value)));
	$("tl-kinds").addEventListener("change", (e) => { if (e.target.id === "tl-field") { own.field = e.target.value; render(); } });
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
	new ResizeObserver(() => { if (own.answer) { render(); later("ask", WAIT_MS, () => refresh(false)); } }).observe($("tl-area"));
}

// viewOf - another part of it from elsewhere on the page: FROM~TO of an address.
export const viewOf = (text) => spanOf(text) && nsOf(text.split("~")[0]) ? {view: text} : {};
