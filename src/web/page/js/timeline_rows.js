// SPDX-License-Identifier: Apache-2.0
// timeline_rows.js - the tracks of an answer as rows: processes with their threads, streams and collectives below them, GPUs
// last. A process that is folded is one row, its collectives or its busiest thread.
export const LANE = 17, OFF = 13;
const HEAD = 22, GAP = 3, GPU = 36, LABEL = 15, MANY = 6, DEEPEST = 4;

const keyOf = (g) => `${g.node}/${g.pid}`;

// The processes in the order of their ranks; those without one after them, as the server has them.
function groupsOf(answer) {
	const groups = new Map(), nodeOf = new Map(answer.tracks.filter((t) => t.group.node).map((t) => [t.group.pid, t.group]));
	for (const t of answer.tracks) {
		const group = t.group.node ? t.group : nodeOf.get(t.group.pid) || t.group, key = keyOf(group);
		if (!groups.has(key))
			groups.set(key, {key, ...group, tracks: []});
		groups.get(key).tracks.push(t);
	}
	const last = (g) => g.rank === null || g.rank === undefined ? Infinity : g.rank;
	return [...groups.values()].map((g, i) => [g, i]).sort(([a, i], [b, j]) => last(a) - last(b) || i - j).map(([g]) => g);
}

// A command's last part of the path and its first words are what it is known by.
export function short(command) {
	const words = String(command).split(" "), program = words[0].slice(words[0].lastIndexOf("/") + 1);
	const script = words.slice(1).find((w) => /\.(py|sh|js)$/.test(w));
	return script ? `${program} ${script.slice(script.lastIndexOf("/") + 1)}` : program || "?";
}

export function title(g, several) {
	return `${g.rank === null || g.rank === undefined ? "" : `rank ${g.rank} \u00b7 `}${short(g.name)} (${g.pid})${several && g.node ? ` \u00b7 ${g.node}` : ""}`;
}

const isEmpty = (t) => !t.total_ns && !t.bins.length && !t.slices.length;
const busiest = (list) => list.reduce((a, b) => b.total_ns > a.total_ns ? b : a);
function main(g) {
	const threads = g.tracks.filter((t) => t.kind === "thread");
	return g.tracks.find((t) => t.kind === "rank") || busiest(threads.length ? threads : g.tracks);
}

function depthOf(t, depths) {
	const now = t.slices.reduce((n, s) => Math.max(n, s[4] || 0), 0), known = Math.max(depths.get(t.id) || 0, now);
	depths.set(t.id, known);
	return Math.min(known, DEEPEST - 1);
}

// folded - whether a process is one row: what the reader chose, else where there are many.
export const isFolded = (key, folds, count) => folds.has(key) ? folds.get(key) : count > MANY;

// layout - rows [{kind, key, y, h, lane (y of its first lane), label, track, group}] and their height. @wide: labels have a column of their own.
export function layout(answer, {folds, depths, wide, field}) {
	const groups = groupsOf(answer), several = new Set(groups.map((g) => g.node).filter(Boolean)).size > 1, rows = [];
	let y = 0;
	const add = (row, h) => {
		const label = wide ? 0 : LABEL;
		rows.push({...row, y, h: h + label + GAP, lane: y + label});
		y += h + label + GAP;
	};
	const track = (t, g, label, extra) => {
		const lanes = depthOf(t, depths) + 1;
		add({kind: "track", key: t.id, label, track: t, group: g, lanes, ...extra}, lanes * LANE + (t.kind === "thread" ? OFF : 0));
	};
	for (const g of groups) {
		if (isFolded(g.key, folds, groups.length)) {
			track(main(g), g, title(g, several), {fold: true, folded: true});
			continue;
		}
		rows.push({kind: "group", key: `g:${g.key}`, y, h: HEAD, lane: y, label: title(g, several), group: g, fold: true, folded: false});
		y += HEAD;
		g.tracks.filter((t) => !isEmpty(t)).forEach((t) => track(t, g, t.name, {inner: true}));
	}
	for (const s of answer.gpu.filter((x) => x.field === field))
		add({kind: "gpu", key: `u:${s.node}/${s.gpu}`, label: `GPU ${s.gpu}${several ? ` \u00b7 ${s.node}` : ""} ${s.field}`, series: s}, GPU);
	return {rows, height: y, groups: groups.length};
}
