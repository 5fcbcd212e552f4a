// SPDX-License-Identifier: Apache-2.0
// graphs.js - CUDA graphs: captured, instantiated, launched.
import {el, group, name} from "./dom.js";
import {figures, nothing, table} from "./parts.js";
import * as f from "./format.js";

export function view(ctx) {
	const m = ctx.data["graph-metrics"], events = ctx.data["graph-events"];
	if (!m.total_events)
		return nothing("No CUDA graph was captured or launched in this time: the program does not use them, or choose a longer time range above.");
	return group(figures([["Captures", f.count(m.captures), m.avg_capture_dur_us ? `${f.micros(m.avg_capture_dur_us)} each` : null],
		["Instantiations", f.count(m.instantiations), m.avg_instantiate_dur_us ? `${f.micros(m.avg_instantiate_dur_us)} each` : null],
		["Launches", f.count(m.launches), m.launch_rate_per_sec ? `${f.plain(m.launch_rate_per_sec)} a second` : null],
		["Launches per capture", m.captures ? f.plain(m.launches / m.captures) : "\u2013", m.captures ? "few: captured too often" : "captured before"],
		["Errors", f.count(m.errors || 0)]]),
	el("details", {class: "more", "data-open": "graph-events"}, el("summary", {}, `The newest ${f.count(events.length)} stored calls`),
		table([{title: "When", cell: (e) => f.clockMs(e.timestamp)}, {title: "Call", cell: (e) => e.op},
			{title: "Process", class: "wide", cell: (e) => group(name(e.comm || ""), ` (${e.pid})`)}, {title: "Took", class: "n", cell: (e) => f.micros(e.duration_us)},
			{title: "Graph", class: "wide mono", cell: (e) => e.exec_handle || e.graph_handle || e.stream_handle || "\u2013"},
			{title: "Result", class: "n", cell: (e) => e.ret_code ? `error ${e.ret_code}` : "ok"}], events, null, "Graph calls")));
}
