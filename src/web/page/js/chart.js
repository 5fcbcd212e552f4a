// SPDX-License-Identifier: Apache-2.0
// chart.js - lines over time, or stacked pieces of it. The drawing is stretched to whatever width there is (no size is measured);
// all text is HTML beside it. One read-out moment is shared by all charts, by pointer or arrow keys.
import {el, svg} from "./dom.js";
import {clock, zone} from "./format.js";

const WIDTH = 1000, HEIGHT = 100, MOST_POINTS = 700, STYLES = 8, SPOKEN = 8;
const models = new Map(); // key of a chart to what is drawn there
export const hidden = new Set(); // names of lines that are not drawn, in all charts
let cursor = null, lit = null; // unix ns that is read out, name of the line that stands out, or null

// Each of 64 lines has a pair of colour and dashes of its own.
const styleOf = (i) => `line s${i % STYLES} d${(i + 3 * Math.floor(i / STYLES)) % STYLES}`;
const toggles = (model) => !model.bars && model.series.length > 1;
const isDrawn = (model, s) => !toggles(model) || !hidden.has(s.name);

const within = (v, low, high) => Math.min(high, Math.max(low, v));

function niceTop(v) {
	const base = 10 ** Math.floor(Math.log10(v));
	return [1, 1.5, 2, 3, 4, 5, 8, 10, 15].map((n) => n * base).find((n) => n >= v * 1.02) || v;
}

// Of more points than can be seen, the lowest and the highest of each stretch.
function thinned(points) {
	if (points.length <= MOST_POINTS)
		return points;
	const per = Math.ceil(points.length / (MOST_POINTS / 2)), kept = [];
	for (let i = 0; i < points.length; i += per) {
		const part = points.slice(i, i + per).filter((p) => p[1] !== null);
		if (!part.length)
			continue;
		const low = part.reduce((a, b) => b[1] < a[1] ? b : a), high = part.reduce((a, b) => b[1] > a[1] ? b : a);
		kept.push(...(low === high ? [low] : low[0] < high[0] ? [low, high] : [high, low]));
	}
	return kept;
}

// A line is broken where a value is missing, or nothing came for three steps.
function pathOf(points, x, y, gap) {
	let d = "", last = null;
	for (const [t, v] of points) {
		if (v === null) {
			last = null;
			continue;
		}
		const command = last === null || t - last > gap ? "M" : "L";
		d += `${command}${x(t).toFixed(1)} ${y(v).toFixed(1)}`;
		if (command === "M")
			d += "h.1";
		last = t;
	}
	return d;
}

export function spark(values, label) {
	const known = values.filter((v) => v !== null && v !== undefined);
	if (known.length < 2)
		return el("span", {class: "dim"}, "\u2013");
	const top = Math.max(...known) || 1, step = 100 / (values.length - 1);
	const points = values.map((v, i) => [i, v === undefined ? null : v]);
	return svg("svg", {class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", role: "img", "aria-label": label},
		svg("title", {}, label),
		svg("path", {class: "line", d: pathOf(points, (i) => i * step, (v) => 22.5 - 21 * v / top, 1.5)}));
}

// The worst is drawn last, on top.
function bands(model, x) {
	return model.marks.toReversed().map((m) => {
		const from = within(x(m.from), 0, WIDTH), width = Math.max(within(x(m.to), 0, WIDTH) - from, 2);
		const kind = m.severity.toLowerCase();
		return [svg("rect", {class: `band edge ${kind}`, x: from, y: 0, width, height: 2.5}),
			kind === "medium" ? null : svg("rect", {class: `band ${kind}`, x: from, y: 0, width, height: HEIGHT})];
	});
}

function markers(model, x) {
	return model.marks.toReversed().map((m) => el("span", {class: `marker ${m.severity.toLowerCase()}`, title: `${m.severity}: ${m.label}`,
		style: {left: `${within(x(m.from) / WIDTH * 100, 0, 99)}%`}}, "\u25be"));
}

function strip(model, x) {
	if (!model.strip)
		return null;
	const runs = model.strip.runs.map((r) => svg("rect", {class: "run", x: x(r.from), y: 0,
		width: Math.max(x(r.to) - x(r.from), 3), height: 10}, svg("title", {}, `${r.text}, ${clock(r.from)} \u2013 ${clock(r.to)}`)));
	return svg("svg", {class: "strip", viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", role: "img",
		"aria-label": model.strip.label}, runs);
}

// A line of several can be switched off: a click; with Shift, the others.
function legend(model) {
	return el("ul", {class: model.series.length > STYLES ? "legend many" : "legend"}, model.series.map((s, i) => {
		const last = s.points.findLast((p) => p[1] !== null), text = [s.kind ? el("span", {class: `key ${s.kind}`}) :
			svg("svg", {class: "swatch", viewBox: "0 0 22 8", "aria-hidden": "true"}, svg("path", {class: styleOf(i), d: "M0 4H22"})),
		el("bdi", {}, s.name), " ", el("b", {"data-series": i}, model.bars ? "" : last ? model.format(last[1]) : "no value")];
		return el("li", {key: s.name}, toggles(model) ? el("button", {type: "button", class: "line-toggle", "data-act": "line", "data-line": s.name,
			"aria-pressed": String(!hidden.has(s.name)), title: "Click: show or hide. Shift-click: only this one."}, text) : text);
	}));
}

function summary(model) {
	const drawn = model.series.filter((s) => isDrawn(model, s));
	return drawn.slice(0, SPOKEN).map((s) => {
		const known = s.points.map((p) => p[1]).filter((v) => v !== null);
		return known.length ? `${s.name}: now ${model.format(known[known.length - 1])}, lowest ${model.format(Math.min(...known))}, ` +
			`highest ${model.format(Math.max(...known))}` : `${s.name}: no value`;
	}).join("; ") + (drawn.length > SPOKEN ? `; and ${drawn.length - SPOKEN} more lines` : "");
}

// toggle - shows or hides a line in all charts; @only: hides the others of its chart, or shows all again.
export function toggle(name, only, key) {
	if (!only)
		return hidden[hidden.has(name) ? "delete" : "add"](name);
	const others = models.get(key).series.map((s) => s.name).filter((n) => n !== name), alone = others.every((n) => hidden.has(n));
	hidden.delete(name);
	return others.forEach((n) => hidden[alone ? "delete" : "add"](n));
}

// The line whose entry in a legend is pointed at stands out, in all charts.
function light(name) {
	lit = name;
	for (const path of document.querySelectorAll(".lines path[data-line]")) {
		path.classList.toggle("lit", path.dataset.line === name);
		path.classList.toggle("faint", name !== null && path.dataset.line !== name);
	}
}

// Each bar is as wide as the time it is of; its pieces stand on each other in the order of the series.
function piles(model, x, y) {
	return model.bars.map((b) => {
		const left = x(b.from), width = Math.max(x(b.to) - left, 1);
		let sum = 0;
		return b.parts.map((v, i) => {
			const low = y(sum), high = y(sum += v);
			return v ? svg("rect", {class: `part ${model.series[i].kind}`, x: left.toFixed(1), y: high.toFixed(2), width: width.toFixed(1),
				height: (low - high).toFixed(2)}) : null;
		});
	});
}

const sumOf = (b) => b.parts.reduce((n, v) => n + v, 0);

// chart - @spec: key, title, note, format(v), series [{name, points [[ns, v|null]]}], from, to, step (ns),
// top (of the axis; else found, at most `most`), limit {value, label}, marks [{from, to, severity, label}],
// strip {label, runs [{from, to, text}]}, bars [{from, to, parts [v of each series]}]: pieces instead of lines; a series
// then has a kind, the class of its pieces.
export function chart(spec) {
	const model = {marks: [], ...spec};
	const values = model.bars ? model.bars.map(sumOf) : model.series.filter((s) => isDrawn(model, s)).flatMap((s) => s.points.map((p) => p[1])).filter((v) => v !== null);
	const highest = values.reduce((a, b) => Math.max(a, b), model.limit ? model.limit.value : 0);
	const top = model.top || Math.min(highest > 0 ? niceTop(highest) : 1, model.most || Infinity);
	const x = (t) => (t - model.from) / (model.to - model.from || 1) * WIDTH;
	const y = (v) => HEIGHT - v / top * (HEIGHT - 3) - 1;

	model.x = x;
	models.set(model.key, model);
	return el("figure", {class: "chart", key: model.key, "data-chart": model.key},
		el("figcaption", {}, el("h3", {}, model.title), legend(model)),
		el("div", {class: "plot", tabindex: 0, role: "img", "aria-label": `${model.title}. ${summary(model)}. ` +
			(model.marks.length ? `${model.marks.length} incident(s) marked. ` : "") + "Arrow keys read out values."},
		el("span", {class: "axis most"}, model.format(top)), el("span", {class: "axis zero"}, model.format(0)),
		svg("svg", {class: "lines", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true"},
			bands(model, x), svg("path", {class: "grid", d: `M0 ${y(top / 2)}H${WIDTH}M0 ${y(top)}H${WIDTH}M0 ${y(0)}H${WIDTH}`}),
			model.limit ? svg("path", {class: "limit", d: `M0 ${y(model.limit.value)}H${WIDTH}`}, svg("title", {}, model.limit.label)) : null,
			model.bars ? piles(model, x, y) : model.series.map((s, i) => isDrawn(model, s) && svg("path", {class: styleOf(i), key: s.name, "data-line": s.name,
				d: pathOf(thinned(s.points), x, y, 3.5 * (model.step || 1e9))}))),
		markers(model, x), el("span", {class: "needle", "data-keep": true})),
		strip(model, x),
		el("div", {class: "times"}, el("span", {}, clock(model.from, model.to)),
			el("output", {class: "readout", "data-keep": true}), el("span", {}, `${clock(model.to, model.to)} ${zone(model.to)}`)),
		el("p", {class: "unseen spoken", "aria-live": "polite", "data-keep": true}),
		model.note ? el("p", {class: "note"}, model.note) : null);
}

function nearest(points, t) {
	let best = null;
	for (const p of points)
		if (p[1] !== null && (!best || Math.abs(p[0] - t) < Math.abs(best[0] - t)))
			best = p;
	return best;
}

// The legend tells the values at the needle; else the newest, which of pieces would be those of one bar among many.
function legendRead(figure, model, at) {
	const gap = 3.5 * (model.step || 1e9);
	return model.series.map((s, i) => {
		const p = at === null ? s.points.findLast((q) => q[1] !== null) : nearest(s.points, at);
		const text = at === null && model.bars ? "" : p && (at === null || Math.abs(p[0] - at) <= gap) ? model.format(p[1]) : "no value";
		const place = figure.querySelector(`[data-series="${i}"]`);
		if (place)
			place.textContent = text;
		return `${s.name} ${text}`;
	});
}

function readOut(figure, speak) {
	const model = models.get(figure.dataset.chart), needle = figure.querySelector(".needle");
	const output = figure.querySelector(".readout");
	if (!model)
		return;
	const at = cursor !== null && cursor >= model.from && cursor <= model.to ? cursor : null;
	const texts = legendRead(figure, model, at);
	needle.hidden = at === null;
	output.textContent = "";
	if (at === null)
		return;
	const run = model.strip && model.strip.runs.find((r) => r.from <= at && at <= r.to);
	needle.style.left = `${model.x(at) / WIDTH * 100}%`;
	output.textContent = clock(at);
	if (speak)
		figure.querySelector(".spoken").textContent = `${clock(at)}: ${texts.join(", ")}${run ? ", " + run.text : ""}`;
}

function readOutAll(t, speaker) {
	cursor = t;
	for (const figure of document.querySelectorAll(".chart"))
		readOut(figure, figure === speaker);
}

// After a refresh the figures move under the needle.
export function readOutAgain() {
	if (cursor !== null)
		readOutAll(cursor, null);
	if (lit !== null)
		light(lit);
}

function legendPointed(event) {
	const entry = event.target instanceof Element && event.target.closest("[data-act=line]"), name = entry ? entry.dataset.line : null;
	if (name !== lit)
		light(name);
}

function pointed(event) {
	const plot = event.target instanceof Element && event.target.closest(".chart .plot");
	if (!plot)
		return cursor !== null && !(document.activeElement && document.activeElement.matches(".plot")) && readOutAll(null, null);
	const model = models.get(plot.closest(".chart").dataset.chart), box = plot.getBoundingClientRect();
	return readOutAll(model.from + within((event.clientX - box.left) / box.width, 0, 1) * (model.to - model.from), null);
}

function keyed(event) {
	const plot = event.target instanceof Element && event.target.closest(".chart .plot");
	const moves = {ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity};
	if (!plot || (!(event.key in moves) && event.key !== "Escape"))
		return;
	const figure = plot.closest(".chart"), model = models.get(figure.dataset.chart);
	event.preventDefault();
	if (event.key === "Escape")
		return readOutAll(null, null);
	const step = Math.max(model.step || 1e9, (model.to - model.from) / 120);
	const start = cursor === null ? model.to : cursor;
	readOutAll(within(start + moves[event.key] * step, model.from, model.to), figure);
}

export function chartsListen() {
	document.addEventListener("pointermove", pointed, {passive: true});
	document.addEventListener("pointerdown", pointed, {passive: true});
	document.addEventListener("keydown", keyed);
	for (const kind of ["pointerover", "focusin"])
		document.addEventListener(kind, legendPointed, {passive: true});
}
