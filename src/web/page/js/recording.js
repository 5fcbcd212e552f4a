// SPDX-License-Identifier: Apache-2.0
// recording.js - what the recording lacks, what tracing costs, and who is followed.
import {el, group, name} from "./dom.js";
import {figures, marks, nothing, table} from "./parts.js";
import {chart} from "./chart.js";
import * as f from "./format.js";

function losses(d) {
	if (!d.recorded)
		return nothing("Losses are unknown: this file was written by an agent that does not count them.");
	const lost = (r) => r.lost ? `\u25b2 ${f.count(r.lost)}` : "0";
	return group(el("p", {class: "line"}, d.total.lost ? `${f.count(d.total.lost)} of ${f.count(d.total.hits)} calls were lost: ${f.share(d.total.lost / d.total.hits)}.` :
		`No losses: all ${f.count(d.total.hits)} calls are in the file, ${f.count(d.total.stored)} as rows, ${f.count(d.total.aggregated)} counted.`),
	table([{title: "Source", cell: (r) => group(el("b", {}, r.source), el("small", {}, name(r.node)))},
		{title: "Seen", class: "n", cell: (r) => f.count(r.hits)}, {title: "Rows", class: "n", cell: (r) => f.count(r.stored)},
		{title: "Counted", class: "n wide", hint: "in the aggregates only", cell: (r) => f.count(r.aggregated)},
		{title: "Lost", class: "n", cell: lost},
		{title: "Why", class: "wide", cell: (r) => r.reasons.filter((x) => x.count).map((x) => `${x.reason.replaceAll("_", " ")} ${f.count(x.count)}`).join(", ") || "\u2013"},
		{title: "Accounting", cell: (r) => r.balances ? "\u2713 balanced" : d.live ? "in progress" : "\u2716 not balanced"}],
	d.sources, (r) => `${r.session}/${r.source}`, "Calls traced, stored and lost"),
	d.pruned.length ? el("p", {class: "note"}, `Deleted to keep the file small: ${d.pruned.map((p) => `${f.count(p.rows)} of ${p.table}`).join(", ")}.`) : null,
	d.by_cpu.length ? el("p", {class: "note"}, `Lost by CPU: ${d.by_cpu.map((c) => `CPU ${c.cpu} ${f.count(c.count)} (${c.source})`).join(", ")}.`) : null);
}

function overhead(ctx, d) {
	if (!d.recorded)
		return nothing("Tracing overhead is not in this file.");
	const {from_ns: from, to_ns: to} = d.window, over = d.overhead > d.budget && d.budget > 0;
	const series = (title, key) => [{name: title, points: d.samples.map((s) => [s.timestamp, s[key] ?? null])}];
	return group(figures([["Lost to probes", d.pairs ? f.share(d.overhead) : `up to ${f.share(d.overhead_high ?? d.overhead)}`, (d.overhead_low === null ? "" : `${f.share(d.overhead_low)} to ${f.share(d.overhead_high)}; `) + (d.budget ? `${over ? "\u25b2 over" : "of"} a budget of ${f.share(d.budget)}` : "no budget")],
		["A probe", f.duration(d.hit_ns), "each time"],
		["Launches", d.launch_weight > 1 ? `1 in ${f.count(d.launch_weight)} seen` : "all seen"],
		["Agent\u2019s CPU", f.percent(d.agent_cpu_pct), "of one CPU"], ["Agent\u2019s memory", f.bytes(d.agent_rss_bytes)], ["File", f.bytes(d.db_bytes)]]),
	d.samples.length > 1 ? el("div", {class: "charts"},
		chart({key: "agent-overhead", title: "Time lost to probes", format: f.share, from, to, step: 5e9, series: series("of the busiest process", "overhead"),
			limit: d.budget ? {value: d.budget, label: `budget ${f.share(d.budget)}`} : undefined, marks: marks(ctx, from, to)}),
		chart({key: "agent-cpu", title: "Agent\u2019s CPU", format: f.percent, from, to, step: 5e9, series: series("of one CPU", "agent_cpu_pct"), marks: marks(ctx, from, to)})) : null);
}

function processes(d) {
	if (!d.processes.length)
		return nothing("No process used CUDA during this recording.");
	const used = d.processes.filter((p) => p.calls > 0 || (p.coverage || []).length).sort((a, b) => b.calls - a.calls);
	const others = d.processes.length - used.length;
	const gaps = (p) => (p.coverage || []).filter((c) => c.state !== "covered" && c.state !== "absent"); // absent: not used
	const seen = (p) => gaps(p).length ? gaps(p).map((c) => `${c.layer}: ${c.state}${c.detail ? ` (${c.detail})` : ""}`).join("; ") : "everything";
	return group(table([{title: "Process", cell: (p) => group(el("b", {}, name(p.comm, 40)), el("small", {title: p.cmdline}, `${p.pid} `, name(p.cmdline || "", 60)))},
		{title: "Rank", class: "n", cell: (p) => p.rank === null || p.rank === undefined ? "\u2013" : `${p.rank} of ${p.world_size ?? "?"}`},
		{title: "Node", class: "wide", cell: (p) => name(p.node)}, {title: "Calls", class: "n", cell: (p) => f.count(p.calls)},
		{title: "In calls", class: "n wide", cell: (p) => f.micros(p.gpu_us)}, {title: "Coverage", class: "wide text", cell: seen}],
	used, (p) => `${p.node}/${p.pid}/${p.start_time}`, "Processes"),
	others ? el("p", {class: "note"}, `${f.counted(others, "further process", "es")} without a call: ${d.processes.filter((p) => !used.includes(p)).slice(0, 8).map((p) => p.comm).join(", ")}${others > 8 ? " \u2026" : ""}.`) : null);
}

export function view(ctx) {
	const {losses: l, overhead: o, processes: p} = ctx.data;
	return group(el("h3", {}, "Losses"), losses(l), el("h3", {}, "Tracing overhead"), overhead(ctx, o), el("h3", {}, "Processes"), processes(p),
		p.truncated ? el("p", {class: "note"}, "The list is truncated.") : null);
}
