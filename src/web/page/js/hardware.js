// SPDX-License-Identifier: Apache-2.0
// hardware.js - GPUs and host over time.
import {el, group, name} from "./dom.js";
import {lacking, marks} from "./parts.js";
import {chart} from "./chart.js";
import {throttleText} from "./readable.js";
import * as f from "./format.js";

const known = (v) => v === undefined ? null : v;
const points = (samples, key) => samples.map((s) => [s.timestamp, known(s[key])]);
const has = (series) => series.some((s) => s.points.some((p) => p[1] !== null));

function throttled(gpus, step) {
	const runs = [];
	for (const g of gpus) {
		let run = null;
		for (const s of g.samples) {
			const text = throttleText(s.throttle_reasons || 0);
			if (run && text === run.reason && s.timestamp - run.to <= 3 * step)
				run.to = s.timestamp;
			else if (text)
				runs.push(run = {from: s.timestamp, to: s.timestamp + step, reason: text, text: `GPU ${g.gpu} slowed: ${text}`});
			else
				run = null;
		}
	}
	return runs;
}

export function gpuView(ctx) {
	const d = ctx.data.gpus, {from_ns: from, to_ns: to} = d.window;
	const gpus = d.gpus.filter((g) => g.samples.length).sort((a, b) => a.node.localeCompare(b.node) || a.gpu - b.gpu);
	if (!gpus.length)
		return lacking(ctx, "gpu", "GPU samples", "NVML (libnvidia-ml.so.1, part of the NVIDIA driver) was not found or did not respond on this node; run `ingero check` there.");
	const several = gpus.some((g) => g.node !== gpus[0].node);
	const title = (g) => `GPU ${g.gpu}${several ? ` ${g.node}` : ""}`;
	const series = (key) => gpus.map((g) => ({name: title(g), points: points(g.samples, key)}));
	const shape = {from, to, step: d.step_ns, marks: marks(ctx, from, to)}, runs = throttled(gpus, d.step_ns);
	const limit = Math.max(...gpus.map((g) => g.samples.at(-1).power_limit_mw || 0));
	const memory = Math.max(...gpus.map((g) => g.samples.at(-1).mem_total_bytes || 0));
	const charts = [
		{key: "util", title: "Busy", format: f.percent, top: 100, series: series("util_gpu_pct")},
		{key: "memory", title: "Memory used", format: f.bytes, top: memory || undefined, series: series("mem_used_bytes")},
		{key: "clock", title: "Clock", format: f.megahertz, series: series("sm_clock_mhz"), strip: {label: runs.length ? runs.map((r) => r.text).join("; ") :
			"Clocks not lowered", runs}, note: runs.length ? `${[...new Set(runs.map((r) => r.text))].join("; ")}.` : "Clocks were not lowered."},
		{key: "power", title: "Power", format: f.watts, limit: limit ? {value: limit, label: `limit ${f.watts(limit)}`} : undefined, series: series("power_mw"),
			note: limit ? `The dotted line is the limit, ${f.watts(limit)}.` : null},
		{key: "temperature", title: "Temperature", format: f.celsius, series: series("temperature_c")},
		{key: "pcie", title: "PCIe, to the GPU", format: f.rate, series: series("pcie_rx_kb_s")},
	].filter((c) => has(c.series));
	const errors = gpus.flatMap((g) => [g.last && g.last.last_xid ? `${title(g)}: XID ${g.last.last_xid}` : null,
		g.last && g.last.ecc_uncorrected ? `${title(g)}: ${g.last.ecc_uncorrected} memory errors that could not be corrected` : null]).filter(Boolean);
	return group(el("p", {class: "dim"}, gpus.map((g, n) => group(n ? " \u00b7 " : "", `${title(g)}: `, name(g.name)))),
		errors.length ? el("p", {class: "alarm"}, "\u25b2 ", errors.join("; ")) : null,
		el("div", {class: "charts"}, charts.map((c) => chart({...shape, ...c, key: `gpu-${c.key}`}))));
}

export function hostView(ctx) {
	const d = ctx.data.snapshots, s = d.snapshots, {from_ns: from, to_ns: to} = d.window;
	if (!s.length)
		return lacking(ctx, "host", "readings of the host", "`ingero trace` takes one each second; this file has none.");
	const nodes = [...new Set(s.map((x) => x.node || ""))];
	const series = (...keys) => nodes.flatMap((n) => keys.map(([key, title]) => ({name: nodes.length > 1 ? `${n} ${title}` : title,
		points: points(s.filter((x) => (x.node || "") === n), key)}))).filter((x) => has([x]));
	const shape = {from, to, step: d.step_ns, marks: marks(ctx, from, to)};
	const charts = [
		{key: "cpu", title: "CPU", format: f.percent, top: 100, series: series(["cpu_percent", "all CPUs"], ["busiest_cpu_pct", "busiest CPU"])},
		{key: "mem", title: "Memory used", format: f.percent, top: 100, series: series(["mem_percent", "memory"])},
		{key: "load", title: "Load", format: f.plain, series: series(["load_avg", "tasks, mean of 1 min"])},
		{key: "psi", title: "Pressure (PSI)", format: f.percent, most: 100, series: series(["psi_cpu_pct", "CPU"], ["psi_memory_pct", "memory"], ["psi_io_pct", "disk"])},
		{key: "swap", title: "Swap used", format: f.megabytes, series: series(["swap_mb", "swap"])},
		{key: "faults", title: "Pages read back from disk", format: f.perSecond, series: series(["major_faults", "major faults"])},
	].filter((c) => c.series.length);
	return el("div", {class: "charts"}, charts.map((c) => chart({...shape, ...c, key: `host-${c.key}`})));
}
