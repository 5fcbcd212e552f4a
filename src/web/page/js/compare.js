// SPDX-License-Identifier: Apache-2.0
// compare.js - what differs between two times of the recording: before (the address's vs) and now (its from and to).
import {el, group, name} from "./dom.js";
import {nothing, table} from "./parts.js";
import {nsOf, spanOf, spanText, stamp, state} from "./address.js";
import * as f from "./format.js";

const OPS = 12, LEAST = 0.001; // a line with less of a step is left out
const WORDS = {more: "\u25b2 more", less: "\u25bc less", noise: "within noise", unknown: "too little data"};
const button = (act, text, more = {}) => el("button", {type: "button", class: "small", "data-act": act, ...more}, text);

// timeOf - the range that is looked at, in ns; @w: of what is chosen by its length.
function timeOf(w) {
	return state.from ? {from: nsOf(state.from), to: nsOf(state.to)} : {from: BigInt(w.from_ns), to: BigInt(w.to_ns)};
}

// params - of the question: A is before, B now.
export function params(window) {
	const vs = spanOf(state.vs), now = window || state.from ? timeOf(window) : null;
	return vs && now ? {from: stamp(vs.from), to: stamp(vs.to), from2: stamp(now.from), to2: stamp(now.to), limit: 50} : {};
}

// between - the change of the address that compares [@from, @to] with as long a time before it, or as much of that as there is.
export function between(from, to, first) {
	const start = from - (to - from);
	return {from: stamp(from), to: stamp(to), since: "", vs: spanText(start > first ? start : first, from)};
}

// beforeOf - the same for an incident; null where the recording begins with it.
export function beforeOf(i, o) {
	const from = BigInt(i.since_ns || i.first_seen_ns), to = BigInt(i.last_seen_ns), first = BigInt(o.first_ns);
	return from > first && to > from ? {...between(from, to, first)} : null;
}

export function swapped() {
	const vs = spanOf(state.vs);
	return vs && state.from ? {from: stamp(vs.from), to: stamp(vs.to), since: "", vs: `${state.from}~${state.to}`} : {};
}

const change = (v, text) => `${v > 0 ? "+" : v < 0 ? "\u2212" : ""}${text(Math.abs(v))}`;
// What takes more time is worse; of a GPU's power or use nobody can say that: @plain.
const said = (v, plain) => el("span", {class: v !== "more" && v !== "less" ? "dim" : plain ? "moved" : v === "more" ? "grew" : "shrank"}, WORDS[v] || v);

function side(title, t) {
	return el("div", {}, el("dt", {}, title), el("dd", {}, f.duration(t.to_ns - t.from_ns), el("small", {}, `${f.clockMs(t.from_ns)} \u2013 ${f.clockMs(t.to_ns)} ${f.zone(t.to_ns)}`),
		el("small", {}, `${f.count(t.calls)} calls`)));
}

function stepTable(s) {
	const lines = s.lines.filter((l) => Math.max(l.ns, l.ns2) >= LEAST * s.step_ns), whole = {title: "step", ns: s.step_ns, ns2: s.step_ns2, difference_ns: s.step_ns2 - s.step_ns, verdict: s.verdict};
	return group(el("h4", {}, "A step of ", name(s.name, 40), s.rank === null || s.rank < 0 ? ` (${s.pid})` : ` (rank ${s.rank})`), table([{title: "Line", cell: (l) => group(l.title, l.place ? el("small", {class: "dim"}, " ", name(l.place, 100)) : null)},
		{title: "Before", class: "n", cell: (l) => f.duration(l.ns)}, {title: "Now", class: "n", cell: (l) => f.duration(l.ns2)},
		{title: "Difference", class: "n wide", cell: (l) => change(l.difference_ns, f.duration)}, {title: "", class: "said", cell: (l) => said(l.verdict)}], [...lines, whole], (l) => l.title, "A step before and now"),
	el("p", {class: "note"}, `Means of ${f.counted(s.steps, "step")} before and ${f.count(s.steps2)} now.`));
}

function opVerdict(o) {
	if (o.duration === "more" || o.duration === "less")
		return el("span", {class: o.duration === "more" ? "grew" : "shrank"}, o.duration === "more" ? "\u25b2 slower" : "\u25bc faster");
	if (!o.count || !o.count2)
		return el("span", {class: o.count ? "shrank" : "grew"}, o.count ? "only before" : "only now");
	if (o.calls === "more" || o.calls === "less")
		return el("span", {class: o.calls === "more" ? "grew" : "shrank"}, `${o.calls} often`);
	return said(o.duration);
}

function opTable(ops) {
	const shown = ops.filter((o) => !o.nested && o.total_us + o.total_us2 > 0).slice(0, OPS), took = (n, us) => n ? f.micros(us) : "\u2013";
	return group(el("h4", {}, "Operations"), table([{title: "Operation", cell: (o) => name(o.operation, 60)},
		{title: "Calls/s before", class: "n wide", cell: (o) => f.plain(o.calls_s)}, {title: "now", class: "n wide", cell: (o) => f.plain(o.calls_s2)},
		{title: "p50 before", class: "n wide", cell: (o) => took(o.count, o.p50_us)}, {title: "now", class: "n wide", cell: (o) => took(o.count2, o.p50_us2)},
		{title: "p99 before", class: "n wide", cell: (o) => took(o.count, o.p99_us)}, {title: "now", class: "n wide", cell: (o) => took(o.count2, o.p99_us2)},
		{title: "Time a second", class: "n", hint: "time in these calls for each second, now minus before", cell: (o) => change(o.lost_us_s, f.micros)},
		{title: "", class: "said", cell: opVerdict}], shown, (o) => `${o.source}/${o.operation}`, "Operations before and now"));
}

// Stacks of one call and one line of the program as one.
function joined(stacks) {
	const places = new Map();
	for (const s of stacks) {
		const key = `${s.source}/${s.op}\n${s.place}`, p = places.get(key) || {...s, us_s: 0, us_s2: 0};
		p.us_s += s.us_s;
		p.us_s2 += s.us_s2;
		places.set(key, p);
	}
	return [...places.values()].sort((a, b) => b.us_s2 - b.us_s - a.us_s2 + a.us_s);
}

function stackTable(stacks) {
	return stacks.length ? group(el("h4", {}, "Where more time is spent now"), table([{title: "Call", cell: (s) => name(s.source === "host" ? "CPU time" : s.op, 60)},
		{title: "From", cell: (s) => name(s.place || "?", 120)}, {title: "Before", class: "n wide", cell: (s) => `${f.micros(s.us_s)}/s`}, {title: "Now", class: "n", cell: (s) => `${f.micros(s.us_s2)}/s`}],
	joined(stacks), null, "Stacks that grew")) : null;
}

function gpuTable(gpus) {
	return gpus.length ? group(el("h4", {}, "GPUs, means"), table([{title: "GPU", cell: (g) => `${g.gpu} ${g.title}`}, {title: "Before", class: "n", cell: (g) => `${f.plain(g.mean)} ${g.unit}`},
		{title: "Now", class: "n", cell: (g) => `${f.plain(g.mean2)} ${g.unit}`}, {title: "", class: "said", cell: (g) => said(g.verdict, true)}], gpus, (g) => `${g.gpu}${g.field}`, "GPUs before and now")) : null;
}

// What can be compared, as long as nothing is.
function offer(ctx) {
	const o = ctx.data.overview, list = ctx.data.incidents ? ctx.data.incidents.incidents : [], worst = list.find((i) => i.severity !== "LOW" && beforeOf(i, o));
	return el("div", {class: "nothing"}, el("p", {}, "Nothing is compared. Select a range on the time line (Shift and drag), press \u201cCompare with\u2026\u201d and select another one; or:"),
		el("div", {class: "row"}, worst ? button("compare-incident", `Since the ${worst.severity} incident, with before`, {"data-id": worst.id}) : null, button("compare-halves", "The range above and the time before it")),
		el("p", {class: "note"}, "Two recordings: ", el("code", {}, "ingero diff A.db B.db")));
}

export function view(ctx) {
	const d = ctx.data.diff, failed = ctx.failed.diff;
	if (!state.vs)
		return offer(ctx);
	const tools = el("div", {class: "row"}, button("compare-swap", "Swap"), button("compare-flame", "As a flame graph"), button("flame-plain", "End the comparison"));
	if (!d)
		return group(failed ? nothing(`These times cannot be compared: ${failed.message}.`) : el("p", {class: "dim"}, "Comparing\u2026"), tools);
	return group(el("p", {class: "line"}, el("b", {}, el("bdi", {}, d.summary.replace(/^B's steps/, "Steps").replaceAll(" in B ", " now ")))), el("dl", {class: "figures"}, side("Before", d.a), side("Now", d.b)), tools,
		d.steps.slice(0, 3).map(stepTable), d.steps.length ? null : el("p", {class: "note"}, "Steps were not found in both times."), d.ops.length ? opTable(d.ops) : null, stackTable(d.stacks), gpuTable(d.gpus),
		el("p", {class: "note"}, "A difference counts if it is more than 5\u202f% and more than noise." + (d.truncated ? " Not everything was examined: choose shorter times." : "")));
}
