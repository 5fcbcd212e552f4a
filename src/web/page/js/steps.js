// SPDX-License-Identifier: Apache-2.0
// steps.js - where a step's time went: ordinary steps beside slow ones, line by line, and over time. A line leads to
// whose time it is, the call stacks and the events.
import {el, group, name} from "./dom.js";
import {bar, commands, frames, marks, nothing, place, table} from "./parts.js";
import {chart} from "./chart.js";
import * as f from "./format.js";

const SHOWN = 8, SMALL = 0.001, WORTH = 0.01, EVENTS = 200;
const ORDER = ["gpu", "copy", "launch", "allocation", "graph", "collective", "call", "host", "gc", "gil", "lock", "cpu", "disk",
	"memory", "network", "asleep", "stopped", "unknown"];
const CALLS = ORDER.slice(0, ORDER.indexOf("host")); // what the flame graph is of
const kind = (line) => ORDER.includes(line) ? `part-${line}` : "part-unknown";
const comparable = (a) => a.slow_steps > 0 && a.ordinary_steps > 0;
const change = (ns) => (ns < 0 ? "\u2212" : "+") + f.duration(Math.abs(ns));
const signed = (x) => Math.abs(x) < SMALL ? f.share(0) : (x < 0 ? "\u2212" : "") + f.share(Math.abs(x));

// Lines worth a row, in the order of the drawings.
function linesOf(a) {
	const least = SMALL * (a.mean_step_ns || 1);
	return a.lines.filter((l) => Math.max(l.mean_ns, l.ordinary_ns, l.slow_ns) >= least)
		.sort((x, y) => ORDER.indexOf(x.line) - ORDER.indexOf(y.line));
}

const entryId = (a, n) => `steps/${a.node}/${a.pid}/${n}`;

// The entries that are listed: those with most of it, and the first of each other line that matters.
function listed(a) {
	const all = a.entries.map((e, n) => [e, n]), most = all.filter(([e], n) => n < SHOWN && e.share >= WORTH);
	const rest = a.lines.filter((l) => l.share >= WORTH && !most.some(([e]) => e.line === l.line))
		.flatMap((l) => all.filter(([e]) => e.line === l.line && e.share > 0).slice(0, 1));
	return [...most, ...rest].sort((x, y) => x[1] - y[1]);
}

const entriesOf = (a, line) => listed(a).filter(([e]) => e.line === line);

// ---- the two columns ----

function pile(title, lines, of, total, whole) {
	return el("div", {class: "pile", role: "img", "aria-label": `${title === "a step" ? title : `${title} step`}, ${f.duration(whole)}: ` +
		lines.filter((l) => l[of]).map((l) => `${l.title} ${f.duration(l[of])}`).join(", ")},
	el("div", {class: "stand"}, el("div", {class: "parts", style: {height: `${(whole / total * 100).toFixed(2)}%`}},
		lines.map((l) => el("span", {class: kind(l.line), key: l.line, title: `${l.title}: ${f.duration(l[of])}`,
			style: {"flex-grow": String(l[of])}})))),
	el("b", {}, f.duration(whole)), el("small", {}, title));
}

function piles(a, lines) {
	const top = Math.max(a.ordinary_step_ns, a.slow_step_ns, a.mean_step_ns);
	return el("div", {class: "piles"}, comparable(a) ? [pile("ordinary", lines, "ordinary_ns", top, a.ordinary_step_ns),
		pile("slow", lines, "slow_ns", top, a.slow_step_ns)] : pile("a step", lines, "mean_ns", top, a.mean_step_ns));
}

// ---- the table ----

function lineCell(a, l) {
	const own = entriesOf(a, l.line);
	const text = [el("span", {class: `key ${kind(l.line)}`}), l.title];
	return own.length ? el("button", {type: "button", class: "line-button", "data-act": "steps-line", "data-ids": own.map(([, n]) => entryId(a, n)).join("\n"),
		title: "Whose time it is, its call stacks and events"}, text) : group(text);
}

function linesTable(a, lines) {
	const of = comparable(a), growth = [...lines].sort((x, y) => y.difference_ns - x.difference_ns || y.mean_ns - x.mean_ns);
	return table([{title: "Line", cell: (l) => lineCell(a, l)},
		...(of ? [{title: "Ordinary", class: "n", cell: (l) => f.duration(l.ordinary_ns)}, {title: "Slow", class: "n", cell: (l) => f.duration(l.slow_ns)},
			{title: "Difference", class: "n", cell: (l) => change(l.difference_ns)}] : [{title: "Time", class: "n", cell: (l) => f.duration(l.mean_ns)}]),
		{title: of ? "Of the difference" : "Of a step", class: "n wide", cell: (l) => group(signed(l.share), bar(l.share))}],
	growth, (l) => l.line, "Lines of a step");
}

// ---- whose time ----

// Not only of the thread that runs the steps: a job that waits for its data loader is on the lines of the loader.
function owners(a) {
	const own = comparable(a) ? a.owners.filter((o) => Math.abs(o.share) >= WORTH).sort((x, y) => y.difference_ns - x.difference_ns) : [];
	return own.some((o) => o.owner !== "self") ?
		el("p", {class: "note"}, "Of the difference: ", own.map((o) => `${change(o.difference_ns)} in ${o.title}`).join(", ")) : null;
}

function owner(e) {
	if (e.owner === "self")
		return "the thread that runs the steps";
	const what = {thread: "thread ", loader: "data loader worker ", process: "process "}[e.owner] || "";
	return group(what, name(e.comm || "?", 40), e.owner === "thread" || !e.pid ? "" : ` (${e.pid})`);
}

function culprit(e) {
	if (e.culprit && e.culprit_pid === e.pid)
		return group("; because of thread ", name(e.culprit, 40), " of the same process");
	return e.culprit || e.culprit_pid ? group(e.line === "cpu" ? "; on the CPU: " : "; because of ", name(e.culprit || "process", 40),
		e.culprit_pid ? ` (${e.culprit_pid})` : "") : null;
}

// What was recorded of the process while its steps were slow, the longest first.
function eventsSql(a, e) {
	const from = a.slow_first_ns || a.first_ns, to = a.slow_last_ns || a.last_ns;
	return "SELECT datetime(timestamp / 1000000000, 'unixepoch') AS utc, s.name AS source, o.name AS op, tid,\n       duration / 1e6 AS ms, peer_comm, peer_pid\n" +
		"FROM events e JOIN ops o ON o.source_id = e.source AND o.op_id = e.op JOIN sources s ON s.id = e.source\n" +
		`WHERE pid = ${e.pid} AND timestamp BETWEEN ${from} AND ${to}\nORDER BY duration DESC LIMIT ${EVENTS}`;
}

// A frame by the last part of its file's path: the whole path is in the stack below.
function short(w) {
	const last = (path) => path ? path.slice(path.lastIndexOf("/") + 1) : path;
	return {...w, py_file: last(w.py_file), file: last(w.file)};
}

function entryView(a, e, n) {
	const id = entryId(a, n), of = comparable(a), where = e.where;
	return el("details", {class: "stack", key: id, "data-open": id},
		el("summary", {}, el("span", {class: `key ${kind(e.line)}`}), el("b", {}, of ? change(e.difference_ns) : f.duration(e.mean_ns)), ` ${e.title}, in `, owner(e), culprit(e),
			where ? group(": ", el("code", {title: where.py_file || where.file || null}, place(short(where)))) : null),
		where && e.within ? el("p", {class: "note"}, "in ", place(short(e.within))) : null,
		e.frames ? frames(e.frames) : el("p", {class: "note"}, "No call stack is known of it."),
		el("div", {class: "row"}, el("button", {type: "button", class: "small", "data-act": "sql", "data-text": eventsSql(a, e)}, "Events of that time"),
			where && CALLS.includes(e.line) ? el("button", {type: "button", class: "small", "data-act": "flame-find", "data-text": where.py_func || where.symbol || ""}, "Find in the flame graph") : null));
}

function entries(a) {
	const worth = listed(a);
	return worth.length ? group(el("h4", {}, comparable(a) ? "What grew, and whose time it is" : "Whose time it is"), worth.map(([e, n]) => entryView(a, e, n))) : null;
}

// ---- over time ----

function course(ctx, a, lines) {
	const used = lines.map((l) => l.line), from = a.first_ns, to = a.last_ns;
	if (a.bars.length < 2)
		return null;
	const each = (b, line) => (b.ns[line] || 0) / Math.max(b.steps, 1);
	return chart({key: `steps-${a.node}-${a.pid}`, title: "A step over time", format: f.duration, from, to, marks: marks(ctx, from, to),
		step: Math.max(...a.bars.map((b) => b.dur_ns)),
		series: lines.map((l) => ({name: l.title, kind: kind(l.line), points: a.bars.map((b) => [b.start_ns + b.dur_ns / 2, each(b, l.line)])})),
		bars: a.bars.map((b) => ({from: b.start_ns, to: b.start_ns + b.dur_ns, parts: used.map((line) => each(b, line))})),
		note: a.bars.some((b) => b.steps > 1) ? "Each bar is the mean of some steps that followed each other." : null});
}

// ---- all ----

function head(a) {
	const all = a.mean_step_ns * a.steps, unit = a.origin === "time" ? "window" : "step";
	return group(el("h3", {}, name(a.comm || "process"), ` (${a.pid})`, a.node ? [" \u00b7 ", name(a.node)] : null),
		el("p", {class: "line"}, a.slow_steps ? `${f.count(a.slow_steps)} of ${f.counted(a.steps, unit)} slow: ${f.duration(a.lost_ns)} lost of ${f.duration(all)} (${f.share(a.lost_ns / all)})` :
			`${f.counted(a.steps, unit)} of ${f.duration(a.mean_step_ns)}, none slow`),
		el("p", {class: "dim"}, `Step boundary: ${a.origin_text} (${f.share(a.confidence)})` + ` \u00b7 ${f.span(a.first_ns, a.last_ns)}` +
			(a.other_steps ? ` \u00b7 ${f.counted(a.other_steps, "step")} with other work not compared` : "") + (a.period_steps ? ` \u00b7 one in ${f.count(a.period_steps)} is slow` : "")));
}

function account(ctx, a) {
	const lines = linesOf(a);
	return el("div", {class: "account", key: `${a.node}/${a.pid}`}, head(a),
		el("div", {class: "split"}, piles(a, lines), el("div", {}, linesTable(a, lines), owners(a),
			a.unknown_reason && lines.some((l) => l.line === "unknown") ? el("p", {class: "note"}, `Unknown: ${a.unknown_reason}.`) : null)),
		course(ctx, a, lines), entries(a));
}

export function view(ctx) {
	const d = ctx.data.steps;
	if (!d.accounts.length)
		return nothing(`No steps found: ${d.reason}.`);
	const [first, ...rest] = d.accounts.slice(0, SHOWN);
	return group(account(ctx, first), rest.map((a) => el("details", {class: "more", key: `more-${a.node}-${a.pid}`, "data-open": `steps-of/${a.node}/${a.pid}`},
		el("summary", {}, name(a.comm || "process"), ` (${a.pid}): ${f.counted(a.steps, "step")}` + (a.slow_steps ? `, ${f.duration(a.lost_ns)} lost` : ", none slow")),
		account(ctx, a))),
	d.accounts.length > SHOWN ? el("p", {class: "note"}, commands(`${d.accounts.length - SHOWN} more are not shown; \`ingero explain --steps\` prints them all.`)) : null);
}
