// SPDX-License-Identifier: Apache-2.0
// past.js - incidents: hangs and mismatches as they are now, what lasts and what is over with its evidence, and what
// the cluster's memory has from before.
import {el, group, name} from "./dom.js";
import {badge, commands, figures, nothing} from "./parts.js";
import {lost, money, sentence, severity, sum, ways} from "./now.js";
import {opName} from "./heat.js";
import * as links from "./links.js";
import * as f from "./format.js";

const MOST = 40;
const WORDS = {straggler: "Late rank", slow_stage: "Slow stage", uneven_load: "Uneven load", slow_link: "Slow link", slow_collective: "Slow collective", slow_node: "Slow node", silent_node: "Silent node", hang: "Hang", mismatch: "Mismatch"};
const word = (problem) => Object.hasOwn(WORDS, problem) ? WORDS[problem] : problem.replaceAll("_", " ");

// ---- hangs ----

export function hangsView(h, m) {
	if (!h.total && !m.total)
		return nothing("No hangs and no mismatches.");
	return group(h.hangs.map((x) => el("div", {class: "episode lasts", key: `h${x.comm}${x.seq}`},
		el("p", {}, `${f.counted(x.waiting, "rank")} ${x.waiting === 1 ? "waits" : "wait"} in ${opName(x.op)} ${x.seq} for `, x.missing.map((r, i) => group(i ? ", " : "", links.who(r), r.ever_seen ? "" : " (never seen)")),
			x.missing_count > x.missing.length ? ` and ${f.count(x.missing_count - x.missing.length)} more` : ""),
		el("p", {class: "cost"}, f.duration(x.lasts_ns)), el("small", {}, `communicator ${x.comm} of ${x.nranks} ranks, since ${f.moment(x.since_ns)}`))),
	m.mismatches.map((x) => el("div", {class: "episode lasts", key: `m${x.comm}${x.seq}${x.what}`},
		el("p", {}, links.who(x.rank_says), ` disagrees about the ${x.what} of collective ${x.seq}: ${x.rank_says.op ? opName(x.rank_says.op) : f.count(x.rank_says.value)}, not ` +
			`${x.others_say.op ? opName(x.others_say.op) : f.count(x.others_say.value)} as `, links.who(x.others_say)),
		el("small", {}, `communicator ${x.comm}, ${f.moment(x.at_ns)}`))));
}

// ---- incidents ----

function evidence(e) {
	const calls = Boolean(e.collective);
	return figures([calls && e.seen_steps ? ["Late steps", `${f.count(e.late_steps)} of ${f.count(e.seen_steps)}`, e.period_steps > 1 ? `one in ${f.count(e.period_steps)}` : ""] : null,
		calls && e.lag_ns ? ["Late by", f.duration(e.lag_ns), ""] : null, calls && e.share ? ["Of the job\u2019s time", f.share(e.share), ""] : null,
		!calls && typeof e.score === "number" ? ["Score", e.score.toFixed(3), e.threshold ? `threshold ${e.threshold.toFixed(3)}` : ""] : null,
		["Confidence", f.share(e.confidence), ""], typeof e.cost_total === "number" && e.cost_total > 0 ? ["Cost", sum({symbol: e.symbol, value: e.cost_total}), e.until_ns ? "" : "so far"] : null,
		e.lost_gpu_seconds > 0 ? ["GPU time", f.duration(e.lost_gpu_seconds * 1e9), "lost"] : null]);
}

function incident(e) {
	const level = severity(e.problem);
	return el("details", {class: `incident ${e.until_ns ? "over" : level.toLowerCase()}`, key: `e${e.id}`},
		el("summary", {}, e.until_ns ? el("span", {class: "badge low"}, "\u2713 OVER") : badge(level),
			el("span", {class: "what"}, el("b", {}, word(e.problem)), ": ", sentence(e.text),
				el("small", {}, e.until_ns ? `${f.span(e.since_ns, e.until_ns)} (${f.duration(e.lasts_ns)})` : `since ${f.moment(e.since_ns)} (${f.duration(e.lasts_ns)})`)),
			el("span", {class: "cost"}, e.lost_gpu_seconds > 0 ? group(e.until_ns ? (typeof e.cost_total === "number" ? sum({symbol: e.symbol, value: e.cost_total}) : "unpriced") : money(e), el("small", {}, lost(e.lost_gpu_seconds))) : "")),
		el("div", {class: "proof"}, e.cause ? el("p", {class: "reason"}, el("b", {}, "Why: "), name(e.cause, 500)) : null, e.fix ? el("p", {class: "reason"}, el("b", {}, "Fix: "), commands(e.fix)) : null,
			evidence(e), ways(e),
			e.collective && Number(e.collective.seq) ? el("p", {class: "note"}, `${opName(e.collective.op)} ${e.collective.seq} of communicator ${e.collective.comm} `,
				el("button", {type: "button", class: "small", "data-act": "arrivals", "data-comm": e.collective.comm, "data-seq": e.collective.seq, "data-op": e.collective.op}, "Arrivals")) : null));
}

// What the memory has, less what is told above already.
function before(rows, known, symbol) {
	const list = (rows || []).filter((r) => !known.has(r.id)).slice(0, MOST);
	return list.length ? group(el("h3", {}, "Before"), el("p", {class: "lead"}, "From the cluster\u2019s history."), list.map((r) => el("div", {class: "episode", key: `b${r.node_id}${r.id}${r.ts_ns}`},
		el("p", {}, el("b", {}, word(r.kind || r.type || "incident")), ": ", sentence(r.summary || "no summary"), r.root_cause && !String(r.summary).includes(r.root_cause) ? group("; ", name(r.root_cause, 300)) : null),
		el("p", {class: "cost"}, typeof r.cost === "number" ? sum({symbol, value: r.cost}) : r.lost_ns ? f.duration(r.lost_ns) : ""),
		el("small", {}, `${f.moment(r.ts_ns)}`, r.node_id ? group(", ", links.node(r.node_id)) : "", r.rank !== null && r.rank !== undefined ? group(", ", links.rank(r.rank, r.node_id)) : "", r.fix ? group("; fix: ", name(r.fix, 300)) : null)))) : null;
}

// incidentsView - @d: episodes; @only: "now", "over" or ""; @rows: of the memory, with money in @symbol.
export function incidentsView(d, only, rows, symbol) {
	const now = d.episodes.filter((e) => !e.until_ns), over = d.episodes.filter((e) => e.until_ns).sort((a, b) => b.until_ns - a.until_ns);
	const list = only === "now" ? now : only === "over" ? over : [...now, ...over];
	const choice = [["", `All ${f.count(d.total)}`], ["now", `Now ${f.count(now.length)}`], ["over", `Over ${f.count(over.length)}`]];
	return group(d.episodes.length ? el("div", {class: "chips", role: "group", "aria-label": "Which incidents"}, choice.map(([id, text]) =>
		el("button", {type: "button", key: `k${id}`, "data-act": "incidents", "data-only": id, "aria-pressed": String(only === id)}, text))) : nothing("No incidents since this service started."),
	list.slice(0, MOST).map(incident),
	d.episodes.length && !list.length ? nothing(only === "now" ? "No open incidents." : "No closed incidents yet.") : null,
	list.length > MOST ? el("p", {class: "note"}, `${MOST} of ${f.count(list.length)}.`) : null,
	only !== "now" ? before(rows, new Set(d.episodes.map((e) => e.event_id).filter(Boolean)), symbol) : null);
}
