// SPDX-License-Identifier: Apache-2.0
// ranks.js - collectives: who is late, who waits.
import {el, group, name} from "./dom.js";
import {bar, lacking, nothing, table} from "./parts.js";
import * as f from "./format.js";

const FEW = 16; // ranks that are all in the table

const mean = (sum, n) => sum === null || sum === undefined || !n ? null : sum / n;

const lateness = (c) => c.ranks.reduce((sum, r) => sum + (r.late_ns || 0), 0);

function inWords(c) {
	const by = (key, sign) => [...c.ranks].filter((r) => r[key] !== null).sort((a, b) => sign * (b[key] - a[key]))[0];
	if (c.ranks.length < 2 || !c.complete)
		return "Not enough ranks of a collective are in this recording to compare them.";
	if (!c.one_clock) {
		const least = by("wait_ns", -1);
		return "The ranks are on different nodes, so arrival times are not compared across their clocks." +
			(least ? ` Rank ${least.rank} waited least: the others probably wait for it.` : "");
	}
	const r = by("late_ns", 1), sum = lateness(c);
	if (!sum)
		return "No rank was late.";
	const part = r.late_ns / sum;
	if (part < 1.6 / c.ranks.length)
		return `No single rank delays the others: ${f.duration(sum)} of lateness is spread about evenly.`;
	return `Rank ${r.rank} delays the others: it caused ${f.share(part)} of all lateness (${f.duration(sum)}). It arrived last in ` +
		`${f.count(r.last)} of ${f.count(c.complete)} collectives, ${f.duration(mean(r.late_ns, r.last))} after the one before it.`;
}

// One cell a rank: the darker, the more of all lateness is its; the number says it too.
function heat(c) {
	if (!c.one_clock)
		return null;
	return el("ol", {class: "heat", "aria-label": "Each rank\u2019s share of all lateness"}, c.ranks.map((r) => {
		const part = (r.late_ns || 0) / (lateness(c) || 1);
		return el("li", {key: `h${r.rank}`, title: `rank ${r.rank}: ${f.share(part)} of all lateness, last ${f.count(r.last)} times`,
			style: {"--heat": part.toFixed(3)}}, el("b", {}, `rank ${r.rank}`), el("small", {}, f.share(part)));
	}));
}

function rankTable(c) {
	const latest = Math.max(...c.ranks.map((r) => r.late_ns || 0), 1), longest = Math.max(...c.ranks.map((r) => r.wait_ns || 0), 1);
	const rows = c.ranks.length <= FEW ? c.ranks : [...c.ranks].sort((a, b) => (b.late_ns || 0) - (a.late_ns || 0)).slice(0, FEW);
	return group(table([
		{title: "Rank", cell: (r) => group(el("b", {}, String(r.rank)), el("small", {}, name(r.comm_name || "pid"), ` ${r.pid}`))},
		{title: "Node", class: "wide", cell: (r) => group(name(r.node), r.device >= 0 ? ` GPU ${r.device}` : "")},
		{title: "Calls", class: "n wide", cell: (r) => f.count(r.calls)},
		{title: "Last", class: "n", hint: "number of times it arrived last", cell: (r) => f.count(r.last)},
		{title: "Late, sum", class: "n", hint: "time after the previous rank, summed", cell: (r) => group(f.duration(r.late_ns), bar((r.late_ns || 0) / latest))},
		{title: "Worst", class: "n wide", cell: (r) => f.duration(r.late_max_ns)},
		{title: "Waited", class: "n", hint: "in the synchronisation after it", cell: (r) => group(f.duration(r.wait_ns), bar((r.wait_ns || 0) / longest))},
		{title: "Errors", class: "n wide", cell: (r) => f.count(r.errors)}], rows, (r) => r.rank, "Ranks"),
	rows.length < c.ranks.length ? el("p", {class: "note"}, `The ${FEW} latest of ${c.ranks.length} ranks.`) : null);
}

function worst(c) {
	return c.worst.length && c.one_clock ? el("details", {class: "more", "data-open": `worst/${c.comm}`}, el("summary", {}, `The ${c.worst.length} latest arrivals`),
		table([{title: "When", cell: (w) => f.clockMs(w.timestamp)}, {title: "Collective", cell: (w) => `${w.op} ${w.seq}`},
			{title: "Last rank", class: "n", cell: (w) => String(w.last_rank)}, {title: "Late", class: "n", cell: (w) => f.duration(w.late_ns)},
			{title: "Job stalled", class: "n wide", cell: (w) => f.duration(w.lost_ns)}], c.worst, (w) => w.seq, "Latest arrivals")) : null;
}

export function view(ctx) {
	const d = ctx.data.collectives;
	if (!d.comms.length)
		return d.calls_without_comm ? nothing(`${f.count(d.calls_without_comm)} NCCL calls belong to communicators made before the trace: start it before the job to see ranks.`) :
			lacking(ctx, "collectives", "NCCL calls", "a single process makes none; in jobs of several, `ingero trace` records them where libnccl is loaded.");
	return group(d.comms.map((c) => el("article", {class: "comm", key: c.comm},
		el("p", {class: "line"}, inWords(c)),
		el("p", {class: "dim"}, `${c.ranks_seen} of ${c.nranks ?? "?"} ranks seen, ${f.count(c.collectives)} collectives (${f.count(c.complete)} with every rank), ` +
			`${f.bytes(c.bytes)}: ${c.ops.map((o) => `${o.op} \u00d7\u202f${f.count(o.calls)}`).join(", ")}. Communicator ${f.hex(c.comm)}.`),
		heat(c), rankTable(c), worst(c))),
	d.truncated ? el("p", {class: "note"}, "The list is truncated.") : null);
}
