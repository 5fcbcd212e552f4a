// SPDX-License-Identifier: Apache-2.0
// parts.js - small pieces that several panels use.
import {el, group, name} from "./dom.js";

const SIGNS = {CRITICAL: "\u2716", HIGH: "\u25b2", MEDIUM: "\u25c6", LOW: "\u25cf", OK: "\u2713", UNKNOWN: "?"};

// The word and the shape say it too, not the colour alone.
export function badge(severity) {
	return el("span", {class: `badge ${severity.toLowerCase()}`}, el("span", {"aria-hidden": "true"}, SIGNS[severity] || "\u25cf"), " ", severity);
}

// figures - a list of [what, value, remark].
export function figures(rows) {
	return el("dl", {class: "figures"}, rows.filter(Boolean).map(([what, value, remark]) => el("div", {key: what},
		el("dt", {}, what), el("dd", {}, value, remark ? el("small", {}, remark) : null))));
}

// table - columns [{title, cell(row), class, hint}], rows, key(row).
export function table(columns, rows, key, caption) {
	return el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption}, el("table", {},
		el("caption", {class: "unseen"}, caption),
		el("thead", {}, el("tr", {}, columns.map((c) => el("th", {scope: "col", class: c.class, title: c.hint}, c.title)))),
		el("tbody", {}, rows.map((r, i) => el("tr", {key: `r${key ? key(r) : i}`}, columns.map((c) => el("td", {class: c.class}, c.cell(r))))))));
}

export const bar = (x) => el("span", {class: "bar", "aria-hidden": "true"},
	el("span", {style: {width: `${Math.min(100, Math.max(0, x * 100)).toFixed(1)}%`}}));

// commands - @text, with what stands in backquotes set apart: that is typed, and one click selects it.
export function commands(text) {
	return text.split("\u0060").map((part, n, all) => n % 2 && n < all.length - 1 ? el("code", {class: "typed"}, part) : el("bdi", {}, part));
}

// nothing - what a panel without data says: why, and what to do.
export const nothing = (text) => el("p", {class: "nothing"}, typeof text === "string" ? commands(text) : text);

// copier - a button that copies @text; what it did is said in its own label.
export const copier = (text, label = "Copy") => el("button", {type: "button", class: "small", "data-act": "copy", "data-text": text}, label);

// lacking - what a panel without data says: that the recording has some at another time, or why it has none at all.
export function lacking(ctx, id, what, why) {
	const found = ctx.data.capabilities && ctx.data.capabilities.capabilities.find((c) => c.id === id);
	return nothing(found && found.available ? `No ${what} in this time range, but the recording has some: choose a longer range above.` : `No ${what}: ${why}`);
}

// marks - where incidents were, for the charts.
export function marks(ctx, from, to) {
	const list = ctx.data.incidents ? ctx.data.incidents.incidents : [];
	return list.filter((i) => i.severity !== "LOW" && i.last_seen_ns >= from && i.first_seen_ns <= to).slice(0, 20)
		.map((i) => ({from: i.since_ns || i.first_seen_ns, to: i.last_seen_ns, severity: i.severity, label: i.summary}));
}

// A line that is not known is 0 or missing.
function at(file, line) {
	return line ? `${file}:${line}` : file;
}

// place - a frame as the place in the program that it is.
export function place(w) {
	return w.py_file ? group(name(w.py_func, 80), " at ", name(at(w.py_file, w.py_line))) :
		group(name(w.symbol, 80), w.file ? [" at ", name(at(w.file, w.line))] : null);
}

function frame(x) {
	const text = x.py_func || x.py_file ? `${x.py_func || "?"} (${at(x.py_file || "?", x.py_line)})` :
		(x.symbol || x.ip || "?") + (x.file ? ` (${at(x.file, x.line)})` : "");
	return el("li", {class: x.py_file ? "python" : null}, name(text, 200));
}

// frames - a call stack, innermost first.
export const frames = (list) => el("ol", {class: "frames"}, (list || []).map(frame));
