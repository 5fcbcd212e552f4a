// SPDX-License-Identifier: Apache-2.0
// timeline_event.js - what stands beside the drawing as text: an event, the table of what is in sight, the range that is selected.
import {el, group, name} from "./dom.js";
import {copier, figures, frames, nothing, table} from "./parts.js";
import {link, spanText, state} from "./address.js";
import {clockAt} from "./timeline_draw.js";
import {title} from "./timeline_rows.js";
import * as f from "./format.js";

const TABLE = 200;
const LABELS = {comm: "Communicator", seq: "Collective no.", gpu_id: "GPU", wait_ns: "Waited", bytes: "Bytes", stream: "Stream", rank: "Rank", peer_pid: "By process"};
const button = (act, text, more = {}) => el("button", {type: "button", class: "small", "data-act": act, ...more}, text);

function valueText(a) {
	if (a.unit === "bytes" || a.unit === "B")
		return f.bytes(Number(a.value));
	if (a.unit === "ns")
		return f.duration(Number(a.value));
	return `${a.text ?? a.value}${a.unit ? ` ${a.unit}` : ""}`;
}

// eventView - the event @d of the server: {name, source, process, thread, rank, start, dur, wait, arguments, frames, incidents, step, sql}.
export function eventView(d, origin) {
	const at = origin + BigInt(d.start), process = d.process || {}, thread = d.thread || {};
	const who = group(name(process.name || thread.name || "process", 60), ` (${process.pid})`), rank = process.rank ?? d.rank;
	return el("article", {class: "tl-event", "aria-label": `Event ${d.name}`}, el("div", {class: "row"}, el("h3", {}, name(d.name, 120)), button("tl-close", "Close"), copier(link({event: state.event}, "timeline"), "Copy link"),
		button("tl-around", "Zoom to it"), d.sql ? button("sql", "Open its SQL", {"data-text": d.sql}) : null),
	figures([["When", f.clockMs(String(at)), `${f.day(String(at))}, ${clockAt(origin, d.start, 9)} ${f.zone(Number(at))}`], ["Took", f.duration(d.dur), d.wait ? `then waited ${f.duration(d.wait)}` : null], ["Process", who, d.node ? name(d.node) : null],
		["Thread", group(thread.name ? [name(thread.name, 40), " "] : "", String(thread.tid ?? "\u2013")), rank === null || rank === undefined ? null : `rank ${rank}`], d.source && ["Source", d.source],
		...(d.arguments || []).map((a) => [LABELS[a.name] || String(a.name).replaceAll("_", " "), name(valueText(a), 80)])]),
	d.description ? el("p", {class: "dim"}, `${d.name}: ${d.description.split(";")[0]}.`) : null,
	(d.incidents || []).length ? el("p", {class: "line"}, "Part of: ", d.incidents.map((i) => button("open", `${i.severity}: ${i.title || i.summary || i.id}`, {"data-id": i.id}))) : null,
	d.step ? el("p", {class: "dim"}, `In ${d.step.slow ? "a slow" : "a"} step of ${f.duration(d.step.dur)}.`) : null,
	(d.frames || []).length ? group(el("h4", {}, "Call stack"), frames(d.frames)) : el("p", {class: "note"}, "No call stack is known of it: record without --stack=false."));
}

// tableView - the longest of what is in sight, for those who do not see the drawing or want to read it.
export function tableView(answer, rows, view, origin) {
	const all = [];
	for (const row of rows.filter((r) => r.kind === "track"))
		for (const s of row.track.slices)
			if (s[0] < view.to && s[0] + s[1] > view.from)
				all.push({row, s});
	const longest = all.sort((a, b) => b.s[1] - a.s[1]).slice(0, TABLE).sort((a, b) => a.s[0] - b.s[0]);
	const sums = rows.filter((r) => r.kind === "track" && r.track.bins.length).map((row) => ({row, busy: row.track.bins.reduce((n, b) => n + b[1], 0), count: row.track.bins.reduce((n, b) => n + b[2], 0)}));
	return group(longest.length ? table([{title: "When", cell: ({s}) => clockAt(origin, s[0], 6)}, {title: "Track", cell: ({row}) => name(row.inner ? `${title(row.group, false)}, ${row.label}` : row.label, 80)},
		{title: "What", cell: ({s}) => name(answer.names[s[2]], 80)}, {title: "Took", class: "n", cell: ({s}) => f.duration(s[1])},
		{title: "", cell: ({s}) => button("tl-open", "Open", {"data-ref": s[3], "aria-label": `Open ${answer.names[s[2]]} at ${clockAt(origin, s[0], 6)}`})}], longest, null, "Visible events") : null,
	sums.length ? table([{title: "Track", cell: ({row}) => name(row.inner ? `${title(row.group, false)}, ${row.label}` : row.label, 80)}, {title: "Calls", class: "n", cell: (x) => f.count(x.count)},
		{title: "In calls", class: "n", cell: (x) => f.duration(x.busy)}, {title: "Of the time", class: "n", cell: (x) => f.share(x.busy / (view.to - view.from))}], sums, null, "Visible tracks, summed up") : null,
	all.length > TABLE ? el("p", {class: "note"}, `The ${TABLE} longest of ${f.count(all.length)}; zoom in for the others.`) : null,
	!all.length && !sums.length ? nothing("Nothing visible: zoom out (s) or show the whole recording (0).") : null);
}

// rangeView - what can be done with the range that is selected. @base: another one that it is to be compared with.
export function rangeView(range, origin, base) {
	const text = (r) => `${clockAt(origin, r.from, 6)} \u2013 ${clockAt(origin, r.to, 6)}`, span = spanText(origin + BigInt(Math.round(range.from)), origin + BigInt(Math.round(range.to)));
	return el("div", {class: "row tl-range", role: "group", "aria-label": "Selected range"}, el("b", {}, f.duration(range.to - range.from)), el("span", {class: "dim"}, text(range)),
		button("tl-fit", "Zoom"), button("tl-explain", "Explain this range"), button("tl-flame", "Flame graph of it"),
		base ? group(button("tl-compare", `Compare with ${text(base)}`), button("tl-base", "Forget this range")) : button("tl-base", "Compare with\u2026", {title: "Keeps this range; then select another one"}),
		copier(link({sel: span}, "timeline"), "Copy link"), button("tl-deselect", "\u2715", {"aria-label": "Deselect"}),
		base && base.from === range.from ? el("span", {class: "dim"}, "Now select the range to compare it with.") : null);
}
