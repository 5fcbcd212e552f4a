// SPDX-License-Identifier: Apache-2.0
// health.js - the first thing one reads: what is wrong, in words, or that nothing is.
import {el, group, name} from "./dom.js";
import {badge, figures} from "./parts.js";
import {state} from "./address.js";
import * as f from "./format.js";

// The share stands there unless the summary tells one, which may be of another time.
function costOf(i, data) {
	const wall = data.last_ns - data.first_ns, part = wall > 0 ? i.excess_ns / wall : 0;
	if (!i.excess_ns)
		return `${f.count(i.count)} ${i.unit}`;
	return `${f.duration(i.excess_ns)} lost in ${f.count(i.count)} ${i.unit}` +
		(part > 0.001 && part <= 1 && !i.summary.includes("%") ? `, ${f.share(part)} of the time range` : "");
}

function verdict(ctx) {
	const {overview, incidents} = ctx.data, list = incidents.incidents, worst = list[0], d = incidents.data;

	if (!overview.event_count)
		return {state: "UNKNOWN", line: "No events recorded yet.",
			more: group("Start ", el("code", {}, "sudo ingero trace"), ", then a CUDA program; this page updates automatically.")};
	if (worst && worst.severity !== "LOW")
		return {state: worst.severity, line: worst.summary, incident: worst,
			more: group("Since ", el("b", {}, f.moment(worst.since_ns || worst.first_seen_ns)), " \u00b7 ", el("b", {}, costOf(worst, d)), " \u00b7 ",
				el("b", {}, f.share(worst.confidence)), " confident", worst.comm ? [" \u00b7 ", name(worst.comm), ` (${worst.pid})`] : null)};
	if (d.no_gpu_calls)
		return {state: "UNKNOWN", line: "No CUDA or NCCL calls in this time range.",
			more: "Choose a longer time range, or check under \u201cRecording\u201d which processes are traced."};
	if (!list.length && incidents.examined && incidents.examined.every((n) => !n.processes.length))
		return {state: "UNKNOWN", line: "No process used a GPU for long enough.",
			more: "Choose a longer time range."};
	return {state: "OK", line: "No problems found.",
		more: `${f.looked(d)} examined, ${f.span(d.first_ns, d.last_ns)}` +
			(list.length ? `; ${f.counted(list.length, "remark")} below` : "")};
}

function complete(books) {
	return books.lost ? `${f.share(books.lost / books.hits)} of the calls lost` : "nothing lost";
}

function lossTile(books) {
	if (!books)
		return ["Losses", "unknown", "not in this file"];
	return ["Losses", books.lost ? `\u25b2 ${f.share(books.lost / books.hits)}` : "none", books.lost ? `${f.count(books.lost)} calls` : "every call is accounted for"];
}

export function recordingLine(ctx) {
	const o = ctx.data.overview, live = o.live;
	return group(el("span", {class: live ? "pill live" : "pill"}, live ? "\u25cf Live" : "\u25a0 Saved file"), " ",
		!state.node && o.nodes.length > 1 ? `${o.nodes.length} nodes` : name(state.node || o.node || "unnamed node"), o.gpu && o.gpu.model ? [" \u00b7 ", name(o.gpu.model)] : null,
		o.last_ns ? ` \u00b7 recorded ${f.span(o.first_ns, o.last_ns)}` : "", o.books ? ` \u00b7 ${complete(o.books)}` : "");
}

function gpuTiles(ctx) {
	const gpus = ctx.data.gpus ? ctx.data.gpus.gpus.filter((g) => g.last) : [];
	if (!gpus.length)
		return [];
	const mean = (key) => {
		const known = gpus.map((g) => g.last[key]).filter((v) => v !== null && v !== undefined);
		return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
	};
	const slowed = gpus.filter((g) => (g.last.throttle || []).some((t) => t !== "gpu_idle"));
	const before = gpus.filter((g) => (g.samples || []).some((s) => (s.throttle_reasons || 0) & ~1)).map((g) => g.gpu);
	const reasons = [...new Set(slowed.flatMap((g) => g.last.throttle))].filter((t) => t !== "gpu_idle");
	return [["GPU busy", f.percent(mean("util_gpu_pct")), gpus.length > 1 ? `mean of ${gpus.length}` : null],
		["GPU memory", f.bytes(mean("mem_used_bytes")), `of ${f.bytes(mean("mem_total_bytes"))}`],
		["GPU clocks", slowed.length ? `${slowed.length} of ${gpus.length} lowered` : "not lowered", reasons.join(", ").replaceAll("_", " ") || (before.length ? `earlier they were: GPU ${before.join(", ")}` : null)]];
}

export function view(ctx) {
	const v = verdict(ctx), s = ctx.data.overview.system, o = ctx.data.overview, list = ctx.data.incidents.incidents;
	const serious = list.filter((i) => i.severity !== "LOW").length;
	return group(el("div", {class: `verdict ${v.state.toLowerCase()}`, key: "verdict", role: "status"},
		el("p", {class: "state"}, badge(v.state), serious > 1 ? el("span", {class: "dim"}, ` worst of ${serious} incidents`) : null),
		el("p", {class: "line"}, v.line), el("p", {class: "more"}, v.more),
		v.incident ? el("p", {}, el("button", {type: "button", class: "main", "data-act": "open", "data-id": v.incident.id}, "Show evidence and fix")) : null),
	figures([...gpuTiles(ctx), s && ["CPU", f.percent(s.cpu_percent), `load ${f.plain(s.load_avg)}`],
		s && ["Host memory", f.percent(s.mem_percent), s.swap_mb ? `${f.megabytes(s.swap_mb)} swapped` : `${f.megabytes(s.mem_avail_mb)} free`],
		["Events stored", f.count(o.event_count), o.books && o.books.hits ? `of ${f.count(o.books.hits)}; the rest counted` : null],
		lossTile(o.books)]));
}
