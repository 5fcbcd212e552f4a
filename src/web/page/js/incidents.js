// SPDX-License-Identifier: Apache-2.0
// incidents.js - what went wrong, worst first; each opens to its timeline, proof and fix.
import {el, group, name} from "./dom.js";
import {badge, bar, commands, copier, figures, frames, nothing, place, table} from "./parts.js";
import * as evidence from "./evidence.js";
import {beforeOf} from "./compare.js";
import {link, spanText, stamp, state} from "./address.js";
import * as f from "./format.js";

const SLACK_NS = 1000; // numbers of the server are rounded to less than this
const CAUSES = {cpu_preempted: "another thread used the CPU", cpu_run_queue: "waiting for a CPU",
	block_io: "waiting for its own disk request", unexplained: "unexplained", network_wait: "waited for the network",
	memory_reclaim: "memory reclaim", asleep: "sleeping, reason not traced", host_code: "host code was running", cuda_call: "in CUDA calls"};

// main - the causes that matter, and one row for the crumbs.
function main(list) {
	const large = list.filter((c, n) => n < 6 && (n < 2 || c.share >= 0.01)), small = list.slice(large.length);
	const sum = (key) => small.reduce((n, c) => n + c[key], 0);
	return small.length < 2 ? list : [...large, {rest: small.length, culprit: "", share: sum("share"), ns: sum("ns"), calls: sum("calls")}];
}

function causes(i) {
	if (!i.causes.length)
		return null;
	return group(el("h4", {}, "Where the time went"),
		el("div", {class: "stacked", role: "img", "aria-label": i.causes.map((c) => `${CAUSES[c.cause] || c.cause} ${f.share(c.share)}`).join(", ")},
			i.causes.map((c, n) => el("span", {class: `c${n % 6}${c.cause === "unexplained" ? " blank" : ""}`, title: `${CAUSES[c.cause] || c.cause}: ${f.share(c.share)}`,
				style: {width: `${(c.share * 100).toFixed(2)}%`}}))),
		table([{title: "Cause", cell: (c) => c.rest ? `${f.count(c.rest)} smaller ones` : CAUSES[c.cause] || c.cause},
			{title: "Culprit", cell: (c) => c.culprit ? group(c.culprit_count ? `${f.count(c.culprit_count)} \u00d7 ` : "", name(c.culprit), c.culprit_pid && !c.culprit_count ? ` (${c.culprit_pid})` : "",
				c.culprit_share > 0 && c.culprit_share < 0.995 ? `, ${f.share(c.culprit_share)} of it` : "") : "\u2013"},
			{title: "Share", class: "n", cell: (c) => f.share(c.share)},
			{title: "Time", class: "n", cell: (c) => f.duration(c.ns)},
			{title: "Calls", class: "n wide", cell: (c) => f.count(c.calls)}], main(i.causes), null, "Causes and their shares"));
}

function timeline(i) {
	if (!i.timeline.length)
		return null;
	const longest = Math.max(...i.timeline.map((s) => s.duration_ns), 1);
	return group(el("h4", {}, "Timeline"), el("ol", {class: "timeline"}, i.timeline.map((s) => el("li", {},
		el("time", {datetime: s.timestamp_ns ? f.iso(s.timestamp_ns) : null}, s.timestamp_ns ? f.clockMs(s.timestamp_ns) : ""),
		el("span", {class: "layer"}, s.layer), el("span", {}, el("bdi", {}, s.detail)),
		s.duration_ns ? el("span", {class: "took"}, bar(s.duration_ns / longest), f.duration(s.duration_ns)) : null))));
}

function proof(i) {
	const few = i.slow_calls > 0;
	return group(el("h4", {}, "Figures"), figures([
		few && ["Ordinary", f.duration(i.baseline_ns), "median outside"],
		few && ["While slow", f.duration(i.slow_p50_ns), `${f.plain(i.tail_ratio)} times as long`],
		few && ["Slow calls", f.count(i.slow_calls), `of ${f.count(i.calls)}`],
		!few && ["Count", f.count(i.count), i.unit],
		i.excess_ns > 0 && ["Time lost", f.duration(i.excess_ns), i.explained > 0 ? `${f.share(i.explained)} of it explained` : null],
		["Confidence", f.share(i.confidence), "that this is the cause"],
		["Data", i.completeness === null ? "unknown" : f.share(i.completeness), "of the calls recorded"],
		i.culprit_rank !== undefined && ["Rank", String(i.culprit_rank), "is late"],
		i.period_steps && ["Period", `${f.count(i.period_steps)} steps`, `${f.share(i.period_confidence)} sure`]]));
}

function program(i) {
	const stacks = i.stacks || [];
	if (!i.where && !stacks.length)
		return group(el("h4", {}, "In the program"), nothing("No line of the program is known for this time. Call stacks are recorded unless --stack=false is given."));
	return group(el("h4", {}, "In the program"),
		i.where ? el("p", {class: "where"}, el("code", {}, place(i.where)), ` ${f.share(i.where.share)} of the lost time`) : null,
		stacks.slice(0, 5).map((s, n) => el("details", {class: "stack", key: `s${s.hash}`, "data-open": `${i.id}/${s.hash}`},
			el("summary", {}, `Stack ${n + 1}: ${f.share(s.share)} of the lost time, ${f.counted(s.calls, "call")}`),
			frames(s.frames))));
}

function remedy(i) {
	return group(el("h4", {}, "What to do"), i.fixes.length ? el("ul", {class: "fixes"}, i.fixes.map((x) =>
		el("li", {}, el("span", {}, commands(x)), copier(x)))) : nothing("No known fix."));
}

function labels(i) {
	return i.annotations && i.annotations.length ? el("p", {class: "dim"}, "Labels: ", i.annotations.map((a) =>
		group(name(a.key), "=", name(a.values.join(" \u2026 ")), " "))) : null;
}

// linkOf - the address of an incident. Its range goes with it: which incidents there are depends on the time that is looked at.
function linkOf(i, w) {
	const range = state.from ? {} : {since: "", from: stamp(BigInt(Math.floor(w.from_ns - SLACK_NS))), to: stamp(BigInt(Math.ceil(w.to_ns + SLACK_NS)))};
	return link({...range, incident: i.id, view: "", event: ""}, "incidents");
}

// What leads on from here: to others, and to the time line.
function ways(i, w, overview) {
	const {from, to} = evidence.around(i);
	return el("div", {class: "row ways"}, el("button", {type: "button", class: "small", "data-act": "view", "data-view": spanText(from, to)}, "Show on the time line"),
		i.pid ? el("button", {type: "button", class: "small", "data-act": "filter", "data-filter": "pid", "data-value": String(i.pid)}, `Only process ${i.pid}`) : null,
		overview && beforeOf(i, overview) ? el("button", {type: "button", class: "small", "data-act": "compare-incident", "data-id": i.id}, "Compare with before") : null,
		copier(linkOf(i, w), "Copy link"));
}

function body(ctx, i) {
	return el("div", {class: "proof"}, el("p", {class: "reason"}, el("bdi", {}, i.root_cause)), i.explanation ? el("p", {class: "dim"}, el("bdi", {}, i.explanation)) : null, labels(i), ways(i, ctx.data.incidents.window, ctx.data.overview),
		el("div", {class: "columns"}, el("div", {}, remedy(i), causes(i), proof(i)), el("div", {}, timeline(i), program(i))), evidence.view(i, ctx.again));
}

// find - the incident that @id of an address means: the same, or what became of it when its time is looked at anew.
export function find(list, id) {
	const kin = (x) => x.replace(/^[^:]*:/, "").replace(/-\d{15,}$/, ""), at = (x) => Number(/-(\d{15,})$/.exec(x)?.[1] || 0);
	return list.find((i) => i.id === id) || list.filter((i) => kin(i.id) === kin(id)).sort((a, b) => Math.abs(at(a.id) - at(id)) - Math.abs(at(b.id) - at(id)))[0];
}

function meta(i) {
	const same = i.last_seen_ns - i.first_seen_ns < 1e9;
	return group(i.comm ? [name(i.comm), ` (${i.pid}) \u00b7 `] : null, i.node ? [name(i.node), " \u00b7 "] : null,
		same ? f.moment(i.first_seen_ns) : f.span(i.first_seen_ns, i.last_seen_ns), ` \u00b7 ${f.share(i.confidence)} confident`);
}

// What was found while the file was recorded, by whatever agent did; the list above is this program's own look.
function stored(d) {
	return d && d.chains.length ? el("details", {class: "more", "data-open": "chains"}, el("summary", {}, `${f.counted(d.chains.length, "incident")} stored while recording`),
		table([{title: "When", cell: (c) => f.clock(c.detected_at)}, {title: "Severity", cell: (c) => badge(c.severity)},
			{title: "Incident", cell: (c) => el("bdi", {}, c.summary)}], d.chains.slice(0, 200), (c) => c.id, "Stored incidents")) : null;
}

export function view(ctx) {
	const d = ctx.data.incidents, list = d.incidents;
	const left = [d.truncated && "The list is truncated.",
		d.data.older_events > 0 && `${f.count(d.data.older_events)} older events were not examined.`,
		d.data.pruned_rows > 0 && `${f.count(d.data.pruned_rows)} events were deleted to keep the file small.`,
		d.data.skipped_rows > 0 && `${f.count(d.data.skipped_rows)} damaged rows were omitted.`].filter(Boolean).join(" ");
	return group(state.incident && !find(list, state.incident) ? nothing("The incident in this address is not in this time range: choose \u201call\u201d above, or the recording has been replaced.") : null,
		list.length ? list.map((i) => el("details", {class: `incident ${i.severity.toLowerCase()}`, key: i.id, "data-open": i.id},
		el("summary", {}, badge(i.severity), el("span", {class: "what"}, el("b", {}, el("bdi", {}, i.summary)), el("small", {}, meta(i))),
			i.excess_ns ? el("span", {class: "cost"}, f.duration(i.excess_ns), el("small", {}, "lost")) : el("span", {class: "cost"}, f.count(i.count), el("small", {}, i.unit))),
		ctx.open.has(i.id) ? body(ctx, i) : null)) :
		nothing(`No incident between ${f.span(d.window.from_ns, d.window.to_ns)}: ${f.looked(d.data)} were examined.`),
	left ? el("p", {class: "note"}, left) : null, stored(ctx.data.chains));
}
