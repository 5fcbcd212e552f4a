// SPDX-License-Identifier: Apache-2.0
// address.js - what is looked at, as an address: ?since=&from=&to=&node=&pid=&rank=&op=&incident=… and the section as its
// fragment. A link can be sent to somebody else; a reload shows the same; Back goes back.
//
// What an address says comes from anybody: a value that is not what its key holds is left out.
const NS = 1000000000n, DAY_MS = 86400000;

// stamp - a time of @ns (BigInt) since 1970 as RFC 3339 in UTC, exact.
export function stamp(ns) {
	const s = ns / NS, part = String(ns % NS).padStart(9, "0").replace(/0+$/, "");
	return new Date(Number(s) * 1000).toISOString().slice(0, 19) + (part ? `.${part}` : "") + "Z";
}

// nsOf - the reverse; null if it is no such time.
export function nsOf(text) {
	const m = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text || ""), ms = m ? Date.parse(`${m[1]}Z`) : NaN;
	return Number.isNaN(ms) || ms < DAY_MS ? null : BigInt(ms) * 1000000n + BigInt((m[2] || "").padEnd(9, "0"));
}

const time = (v) => nsOf(v) !== null;
const words = (most) => (v) => v.length <= most;

// Names within a value; one that is not written as it should be is left out.
export const listText = (names) => [...names].map(encodeURIComponent).join(",");
export function listOf(text) {
	return text.split(",").filter((n) => n && !/%(?![0-9A-Fa-f]{2})/.test(n)).flatMap((n) => {
		try {
			return [decodeURIComponent(n)];
		} catch {
			return [];
		}
	});
}

// A range within a value: FROM~TO.
export const spanText = (from, to) => `${stamp(from)}~${stamp(to)}`;
export function spanOf(text) {
	const [from, to] = (text || "").split("~").map(nsOf);
	return from && to && from < to ? {from, to} : null;
}
const isSpan = (v) => spanOf(v) !== null;

const KEYS = {since: (v) => v === "all" || /^(\d{1,6}[smhdw])+$/.test(v), from: time, to: time, node: words(200),
	pid: (v) => /^\d{1,9}(,\d{1,9}){0,15}$/.test(v), rank: (v) => /^\d{1,9}$/.test(v), op: (v) => /^[a-z_]{1,20}\/[\w.:()-]{1,80}$/.test(v),
	incident: words(200), frame: words(200), vs: isSpan, view: isSpan, sel: isSpan, event: words(120), find: words(100), hide: words(2000)};

export const state = Object.fromEntries(Object.keys(KEYS).map((k) => [k, ""]));
let panel = "", told = () => {};

// read - the address into state.
export function read() {
	const q = new URLSearchParams(location.search);
	for (const [key, good] of Object.entries(KEYS)) {
		const v = q.get(key) || "";
		state[key] = v && good(v) ? v : "";
	}
	if (!state.from || !state.to || nsOf(state.from) >= nsOf(state.to))
		state.from = state.to = "";
	panel = /^#[a-z]{1,20}$/.test(location.hash) ? location.hash.slice(1) : "";
}

export const section = () => panel;

// addressOf - of the state with @change: path, query and section.
export function addressOf(change = {}, where = panel) {
	const all = {...state, ...change}, q = new URLSearchParams(Object.keys(KEYS).filter((k) => all[k]).map((k) => [k, all[k]]));
	return location.pathname + (q.size ? `?${String(q).replace(/%(3A|2F|7E|2C)/g, (c) => decodeURIComponent(c))}` : "") + (where ? `#${where}` : "");
}

export const link = (change, where) => location.origin + addressOf(change, where);

// go - another state. @quiet: the address changes without a step to go back to.
export function go(change, {quiet = false, where = panel} = {}) {
	const before = addressOf();
	for (const [key, v] of Object.entries(change))
		state[key] = v && KEYS[key](String(v)) ? String(v) : "";
	panel = where;
	const after = addressOf();
	if (after !== before)
		history[quiet ? "replaceState" : "pushState"](null, "", after);
	told();
}

// note - a change that nobody needs to be told: where the reader is within a panel.
export function note(change) {
	Object.assign(state, change);
	history.replaceState(null, "", addressOf());
}

// seen - the section in sight, without a step and without anybody being told.
export function seen(where) {
	if (where === panel)
		return;
	panel = where;
	history.replaceState(null, "", addressOf());
}

// listen - @act after each change of the state, by go() or by the browser's buttons.
export function listen(act) {
	told = act;
	window.addEventListener("popstate", () => { read(); act(true); });
}
