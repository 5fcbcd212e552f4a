// SPDX-License-Identifier: Apache-2.0
// operations.js - what each kind of call took.
import {el, group, name} from "./dom.js";
import {bar, nothing} from "./parts.js";
import {spark} from "./chart.js";
import {rowsView} from "./evidence.js";
import {spanText, state} from "./address.js";
import * as f from "./format.js";

const GPU = new Set(["cuda", "driver", "cuda_graph", "nccl"]);
const COLUMNS = [
	{id: "operation", title: "Operation", text: true},
	{id: "spark", title: "p99 over time", class: "wide", fixed: true},
	{id: "count", title: "Calls", class: "n"},
	{id: "p50_us", title: "p50", class: "n wide", hint: "half of the calls were faster"},
	{id: "p95_us", title: "p95", class: "n wide", hint: "19 of 20 calls were faster"},
	{id: "p99_us", title: "p99", class: "n", hint: "99 of 100 calls were faster"},
	{id: "max_us", title: "Longest", class: "n wide"},
	{id: "total_us", title: "Of wall", class: "n", hint: "time in these calls, summed over all threads, divided by the time range"},
];

function head(sort) {
	return el("tr", {}, COLUMNS.map((c) => el("th", {scope: "col", class: c.class, title: c.hint,
		"aria-sort": sort.by === c.id ? sort.down ? "descending" : "ascending" : null},
	c.fixed ? c.title : el("button", {type: "button", "data-act": "sort", "data-by": c.id}, c.title,
		el("span", {"aria-hidden": "true", class: "arrow"}, sort.by === c.id ? sort.down ? " \u25be" : " \u25b4" : "")))));
}

function ordered(ops, sort) {
	const sign = sort.down ? -1 : 1;
	return [...ops].sort((a, b) => sort.by === "operation" ? sign * a.operation.localeCompare(b.operation) :
		sign * ((a[sort.by] ?? -1) - (b[sort.by] ?? -1)));
}

function trend(o, series) {
	const s = series && series.series.find((x) => x.operation === o.operation && x.source === o.source && x.nested === o.nested);
	if (!s)
		return el("span", {class: "dim"}, "\u2013");
	const known = s.p99_us.filter((v) => v !== null);
	return spark(s.p99_us, known.length ? `p99 of ${o.operation}: ${f.micros(Math.min(...known))} to ${f.micros(Math.max(...known))}, ` +
		`steps of ${f.duration(series.bucket_ns)}` : "no calls");
}

const idOf = (o) => `${o.source}/${o.operation}`;
const quoted = (s) => `'${s.replaceAll("'", "''")}'`;

// The longest stored calls of an operation in this time.
function longestSql(o, w) {
	const who = state.pid ? ` AND pid IN (${state.pid})` : state.rank ? ` AND rank = ${state.rank}` : "";
	return "SELECT timestamp, pid, tid, e.source AS source, op, duration, arg0, arg1, ret_code\nFROM events e JOIN ops o ON o.source_id = e.source AND o.op_id = e.op JOIN sources s ON s.id = e.source\n" +
		`WHERE o.name = ${quoted(o.operation)} AND lower(s.name) = ${quoted(o.source)} AND timestamp BETWEEN ${w.from_ns} AND ${w.to_ns}${who}\nORDER BY duration DESC LIMIT 10`;
}

// A call on the time line, with as much before and after it as it took.
function showButton(r) {
	const from = BigInt(r.timestamp), dur = BigInt(Math.max(Number(r.duration), 1000));
	return el("button", {type: "button", class: "small", "data-act": "view", "data-view": spanText(from - dur, from + 2n * dur)}, "Time line");
}

function detail(ctx, o, w) {
	const sql = longestSql(o, w);
	return el("tr", {key: `more-${idOf(o)}`, class: "detail"}, el("td", {colspan: COLUMNS.length},
		el("div", {class: "row"}, el("button", {type: "button", class: "small", "data-act": "op-flame"}, "Flame graph of it"),
			el("button", {type: "button", class: "small", "data-act": "op-find", "data-text": o.operation}, "Find on the time line"),
			el("button", {type: "button", class: "small", "data-act": "sql", "data-text": sql}, "SQL")),
		el("h4", {}, "Longest calls"), rowsView(sql, ctx.again, {caption: "Longest calls", hide: ["source", "op"], more: {title: "", cell: showButton}, empty: o.stored === 0 ? "None of its calls is stored individually: all are counted in the totals above." : "No stored call of it in this time range."})));
}

function row(o, series, wall, most, chosen) {
	const part = wall > 0 ? o.total_us * 1e3 / wall : null;
	return el("tr", {key: `${o.source}/${o.operation}/${o.nested}`, class: chosen ? "chosen" : null},
		el("th", {scope: "row"}, o.nested ? name(o.operation, 60) : el("button", {type: "button", class: "line-button", "data-act": "op", "data-op": idOf(o), "aria-expanded": String(chosen),
			title: "Its longest calls, time line and flame graph"}, name(o.operation, 60)), el("small", {}, o.source + (o.nested ? ", inside runtime calls" : ""))),
		el("td", {class: "wide trend"}, trend(o, series)), el("td", {class: "n"}, f.count(o.count)),
		el("td", {class: "n wide"}, f.micros(o.p50_us ?? o.avg_us)), el("td", {class: "n wide"}, f.micros(o.p95_us)),
		el("td", {class: "n"}, f.micros(o.p99_us)), el("td", {class: "n wide"}, f.micros(o.max_us)),
		el("td", {class: "n"}, f.share(part), bar(o.total_us / most)));
}

function chips(ops, chosen) {
	const sources = [...new Set(ops.map((o) => o.source))].sort();
	return sources.length < 2 ? null : el("div", {class: "chips", role: "group", "aria-label": "Sources shown"},
		["gpu", "all", ...sources].map((s) => el("button", {type: "button", key: `c${s}`, "data-act": "source", "data-source": s, "aria-pressed": String(chosen === s)},
			s === "gpu" ? "GPU calls" : s)));
}

// "GPU calls" are those a program makes itself: what the runtime calls in the driver is part of them.
function isShown(o, chosen) {
	return chosen === "all" || (chosen === "gpu" ? GPU.has(o.source) && !o.nested : o.source === chosen);
}

export function view(ctx) {
	const d = ctx.data.ops, series = ctx.data.series, wall = d.window.to_ns - d.window.from_ns;
	const chosen = d.ops.some((o) => isShown(o, ctx.source)) ? ctx.source : "all";
	const shown = ordered(d.ops.filter((o) => isShown(o, chosen)), ctx.sort), most = Math.max(...shown.map((o) => o.total_us), 1);
	const isChosen = (o) => !o.nested && idOf(o) === state.op;
	if (!d.ops.length)
		return nothing("No calls in this time range: choose a longer one above, or check under \u201cRecording\u201d that the program is traced.");
	return group(chips(d.ops, chosen), el("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": "Operations"},
		el("table", {class: "operations"}, el("caption", {class: "unseen"}, "Operations and their durations"),
			el("thead", {}, head(ctx.sort)), el("tbody", {}, shown.map((o) => [row(o, series, wall, most, isChosen(o)), isChosen(o) ? detail(ctx, o, d.window) : null])))),
	el("p", {class: "note"}, d.mode === "aggregate" ? "Written by an older agent: averages are shown instead of medians, percentiles are unknown. " :
		ctx.data.overview.books ? `${f.count(d.total_calls)} calls of all sources, stored or not; percentiles are within 3.2\u202f%. Beyond 100\u202f% of wall: several threads at once. ` :
			`${f.count(d.total_calls)} rows of the file, whose agent did not report losses. Beyond 100\u202f% of wall: several threads at once. `,
	state.node ? "All nodes of the file together. " : "", d.truncated ? "The list is truncated." : ""));
}
