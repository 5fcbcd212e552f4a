// SPDX-License-Identifier: Apache-2.0
// now.js - who makes the others wait now, the cluster in numbers, and what the waiting costs.
import {el, group, name} from "./dom.js";
import {badge, bar, commands, figures, nothing} from "./parts.js";
import {spark} from "./chart.js";
import * as links from "./links.js";
import * as f from "./format.js";

const MOST_COSTS = 12;

export const sum = (x, digits = 2) => `${x.symbol || ""}${x.value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits})}`;
export const money = (x) => typeof x.cost_per_hour === "number" ? `${sum({symbol: x.symbol, value: x.cost_per_hour})}/h` : "unpriced";
export const lost = (seconds) => seconds > 0 ? `${f.duration(seconds * 1e9)} of GPU time lost` : "";
export const severity = (problem) => problem === "hang" || problem === "silent_node" ? "CRITICAL" : problem === "mismatch" || problem === "straggler" ? "HIGH" : "MEDIUM";

// sentence - as the service writes it, with a capital.
export const sentence = (text) => name(text.charAt(0).toUpperCase() + text.slice(1), 1000);

// ways - from an incident to whom it is about.
export function ways(e) {
	const list = [e.rank !== null && e.rank !== undefined ? links.rank(e.rank, e.node, `Rank ${e.rank}`) : null, e.node ? links.node(e.node) : null].filter(Boolean);
	return list.length ? el("span", {class: "ways"}, list) : null;
}

function quietVerdict(d) {
	const known = d.examined.nodes || d.examined.ranks;
	return el("div", {class: known ? "verdict ok" : "verdict", key: "none"}, badge(known ? "OK" : "UNKNOWN"),
		el("p", {class: "line"}, known ? "No straggler found." : "No agent has pushed anything yet."),
		el("p", {class: "more"}, known ? `Examined: ${f.counted(d.examined.nodes, "node")}, ${f.counted(d.examined.ranks, "rank")}, ${f.counted(d.examined.collectives, "collective")}.` :
			group("Start ", el("code", {}, "ingero fleet-push"), " on the nodes.")));
}

export function verdict(d) {
	const [worst, ...rest] = d.episodes;
	if (!worst)
		return quietVerdict(d);
	const level = severity(worst.problem), [head, ...details] = worst.text.split("; "); // who and what first, then why and what it costs
	return group(el("div", {class: `verdict ${level.toLowerCase()}`, key: "worst"}, badge(level),
		el("p", {class: "line"}, sentence(head)), details.map((part, i) => el("p", {class: "more", key: `d${i}`}, sentence(part))),
		el("p", {class: "more"}, `Since ${f.moment(worst.since_ns)} (${f.duration(worst.lasts_ns)}), confidence ${f.share(worst.confidence)}. ${lost(worst.lost_gpu_seconds)}`),
		worst.fix ? el("p", {class: "more"}, el("b", {}, "Fix: "), commands(worst.fix)) : null, ways(worst)),
	rest.length ? el("ul", {class: "others"}, rest.map((e) => el("li", {key: `o${e.id}`, class: severity(e.problem).toLowerCase()}, sentence(e.text), el("small", {}, ` ${f.duration(e.lasts_ns)}`), ways(e)))) : null,
	d.total > d.episodes.length ? el("p", {class: "note"}, `${f.count(d.total - d.episodes.length)} more below.`) : null);
}

// numbers - @c: the cluster, @nodes: its nodes, @blame: what lasts.
export function numbers(c, nodes, blame) {
	const silent = nodes.filter((n) => n.reason === "silent").length, late = new Set(blame.episodes.map((e) => e.node).filter(Boolean)).size;
	const remarks = [silent ? `${f.count(silent)} silent` : "", late ? `${f.count(late)} with an incident` : ""].filter(Boolean);
	const guess = c.gpu_hour && c.price_is && c.price_is.startsWith("middle") ? `at about ${sum({symbol: c.symbol, value: c.gpu_hour})} a GPU-hour, ${c.price_is.includes("unknown") ? "provider unknown" : "the middle of list prices"}` : "";
	const unpriced = c.unpriced_model ? group("no price for ", name(c.unpriced_model, 60)) : guess || (c.priced ? "at barriers, now" : "");
	return figures([["Lost per hour", money(c), unpriced],
		["Lost so far", typeof c.cost_total === "number" ? sum({symbol: c.symbol, value: c.cost_total}) : "unpriced", lost(c.lost_gpu_seconds)],
		["Nodes", f.count(c.nodes), remarks.join(", ") || "all are healthy"],
		["Ranks", f.count(c.ranks), f.counted(c.communicators, "communicator")],
		["Threshold", c.quorum_met ? c.threshold.toFixed(3) : "none yet", c.quorum_met ? `median score ${c.median.toFixed(3)}` : "too few active nodes"],
		["Calls", f.count(c.calls && c.calls.taken), c.calls && (c.calls.refused || c.calls.evicted) ? `${f.count(c.calls.refused)} refused, ${f.count(c.calls.evicted)} dropped` : "none lost"]]);
}

// ---- cost ----

const costName = (x) => x.rank !== null ? links.who(x) : x.node ? links.node(x.node) : x.problem.replaceAll("_", " ");
// By money where there is a price, else by GPU time.
const weight = (x) => typeof x.cost_per_hour === "number" ? x.cost_per_hour : x.lost_gpu_seconds;

function costTable(list) {
	const most = Math.max(...list.map(weight), 1e-9);
	return el("ul", {class: "costs"}, list.slice(0, MOST_COSTS).map((x) => el("li", {key: `c${x.episode}`},
		el("span", {class: "whom"}, costName(x), x.cause ? el("small", {}, name(x.cause, 160)) : null),
		el("span", {class: "amount"}, el("b", {}, money(x)), el("small", {}, [typeof x.cost_total === "number" ? `${sum({symbol: x.symbol, value: x.cost_total})} so far` : "", lost(x.lost_gpu_seconds)].filter(Boolean).join(", "))),
		bar(weight(x) / most))));
}

function courseOf(course) {
	const known = course.values.filter((v) => v !== null);
	return known.length > 1 ? el("figure", {class: "course"}, el("figcaption", {}, `${course.text}; at most ${course.format(Math.max(...known))}, last ${course.format(known[known.length - 1])}`), spark(course.values, course.text)) : null;
}

// costView - @c: of /api/v1/cost; @course: {text, values, format} over time; null: not known.
export function costView(c, course) {
	if (!c)
		return nothing("No cost data for this cluster.");
	const list = c.by.filter((x) => weight(x) > 0).sort((a, b) => weight(b) - weight(a)), perHour = typeof c.cost_per_hour === "number" ? c.cost_per_hour : null;
	return group(
		el("p", {class: "line"}, perHour === null ? commands("No GPU here has a price: set one with the service's `--provider` or `--rates`.") :
			perHour > 0 ? `${money(c)} is lost to waiting; at this rate ${sum({symbol: c.symbol, value: perHour * 24}, 0)} a day.` : "No time is being lost to waiting now."),
		el("p", {class: "dim"}, [typeof c.cost_total === "number" && c.cost_total > 0 ? `${sum({symbol: c.symbol, value: c.cost_total})} so far` : "", lost(c.lost_gpu_seconds),
			c.lost_watt_hours > 0 ? `${f.plain(c.lost_watt_hours / 1000)} kWh` : "", c.unpriced_model ? `no price for ${c.unpriced_model}` : ""].filter(Boolean).join(" \u00b7 ")),
		list.length ? costTable(list) : null,
		list.length > MOST_COSTS ? el("p", {class: "note"}, `The ${MOST_COSTS} costliest of ${f.count(list.length)}.`) : null,
		course ? courseOf(course) : null);
}
