// SPDX-License-Identifier: Apache-2.0
// choices.js - the time range to the millisecond, local or UTC, and the filters: their form, and what is chosen as a line of
// buttons that each take one back.
import {el, name, show} from "./dom.js";
import {go, nsOf, stamp, state} from "./address.js";
import * as f from "./format.js";

const $ = (id) => document.getElementById(id);
const date = (ns) => new Date(Number(ns) / 1e6 + 0.0005);
const two = (n, w = 2) => String(n).padStart(w, "0");
let zone = "local";
const isUtc = () => zone === "utc";

// As a field of type datetime-local wants it.
function fieldText(ns) {
	const d = date(ns);
	if (isUtc())
		return d.toISOString().slice(0, 23);
	return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${two(d.getMilliseconds(), 3)}`;
}

function fieldNs(id) {
	const v = $(id).value, ms = v ? Date.parse(isUtc() ? `${v}Z` : v) : NaN;
	return Number.isNaN(ms) ? null : BigInt(ms) * 1000000n;
}

// The other zone's reading of what is typed.
function otherZone() {
	const [from, to] = [fieldNs("range-from"), fieldNs("range-to")];
	if (!from || !to)
		return "Give both times.";
	if (from >= to)
		return "\u25b2 The end is not after the start.";
	const local = (ns) => `${date(ns).toLocaleDateString("sv")} ${f.clockMs(ns)}`, utc = (ns) => date(ns).toISOString().slice(0, 23).replace("T", " ");
	return isUtc() ? `local: ${local(from)} \u2013 ${local(to)} ${f.zone(Number(to))}` : `UTC: ${utc(from)} \u2013 ${utc(to)}`;
}

const sayZone = () => { $("range-said").textContent = otherZone(); };

export function fill(range) {
	if (range) {
		$("range-from").value = fieldText(range.from);
		$("range-to").value = fieldText(Math.ceil(Number(range.to) / 1e6) * 1e6);
	}
	sayZone();
}

const option = (value, text) => el("option", {value, key: `o${value}`}, text);

// The lists of the filters, from what is known of the recording.
export function lists(ctx) {
	const processes = ctx.data.processes ? ctx.data.processes.processes.filter((p) => p.calls > 0) : [], ops = ctx.data.ops ? ctx.data.ops.ops : [];
	const ranks = [...new Set(processes.map((p) => p.rank).filter((r) => r !== null && r !== undefined))].sort((a, b) => a - b);
	const put = (id, all, rows, value) => {
		if (document.activeElement === $(id))
			return;
		show($(id), option("", all), rows, value && !rows.some((o) => o.value === value) ? option(value, value) : null);
		$(id).value = value;
	};
	put("filter-pid", "all processes", processes.map((p) => option(String(p.pid), `${p.comm} (${p.pid})${p.rank === null || p.rank === undefined ? "" : `, rank ${p.rank}`}`)), state.pid);
	put("filter-rank", "all ranks", ranks.map((r) => option(String(r), `rank ${r}`)), state.rank);
	put("filter-op", "all operations", ops.filter((o) => !o.nested).map((o) => option(`${o.source}/${o.operation}`, o.operation)), state.op);
}

const chip = (key, label, text) => el("button", {type: "button", key: `chip-${key}`, "data-act": "unfilter", "data-filter": key, "aria-label": `${label} ${text}: remove this filter`},
	`${label} `, name(text, 60), el("span", {"aria-hidden": "true"}, " \u2715"));

export function chosen(ctx) {
	const process = ctx.data.processes && ctx.data.processes.processes.find((p) => String(p.pid) === state.pid), some = state.pid || state.rank || state.op || state.from;
	$("chosen").hidden = !some;
	show($("chosen"), state.from ? chip("from", "time", f.span(Number(nsOf(state.from)), Number(nsOf(state.to)))) : null,
		state.pid ? chip("pid", "process", process ? `${process.comm} (${state.pid})` : state.pid) : null, state.rank ? chip("rank", "rank", state.rank) : null,
		state.op ? chip("op", "operation", state.op.split("/")[1]) : null,
		state.pid || state.rank ? el("span", {class: "dim"}, "GPU, host and ranks show all processes.") : null);
}

export const unfilter = (key) => go(key === "from" ? {from: "", to: ""} : {[key]: ""});

function apply(e) {
	const from = fieldNs("range-from"), to = fieldNs("range-to");
	e.preventDefault();
	sayZone();
	if (!from || !to || from >= to)
		return $("range-from").focus();
	return go({from: stamp(from), to: stamp(to), since: ""});
}

export function choicesListen() {
	$("choices").addEventListener("submit", apply);
	for (const id of ["range-from", "range-to"])
		$(id).addEventListener("input", sayZone);
	$("range-zone").addEventListener("change", (e) => {
		const [from, to] = [fieldNs("range-from"), fieldNs("range-to")];
		zone = e.target.value;
		fill(from && to ? {from, to} : null);
	});
	for (const key of ["pid", "rank", "op"])
		$(`filter-${key}`).addEventListener("change", (e) => go({[key]: e.target.value}));
}
