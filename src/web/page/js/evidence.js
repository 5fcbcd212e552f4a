// SPDX-License-Identifier: Apache-2.0
// evidence.js - the rows that show an incident, with names, times and units; asked for when it is opened, one after the other.
import {el, group, name} from "./dom.js";
import {copier, nothing, table} from "./parts.js";
import {query} from "./client.js";
import {cellText, names, titleOf} from "./readable.js";
import * as f from "./format.js";

const AGAIN_MS = 3000, PASSING = new Set([0, 408, 503]);
const ROWS = 16, CELL = 120, LEFT_OUT = new Set(["id", "node", "arg1", "mark"]);
const found = new Map(); // SQL to {rows} or {error}
let turn = Promise.resolve();

async function fetchRows(sql, done) {
	try {
		found.set(sql, {data: await query({sql, limit: ROWS + 1}), names: await names()});
	} catch (e) {
		found.set(sql, {error: e.message});
		if (PASSING.has(e.status)) // a server that has too much to do
			setTimeout(() => { found.delete(sql); done(); }, AGAIN_MS);
	}
	done();
}

// load - asks for the rows of @sql unless they are there; @done when they are.
export function load(sql, done) {
	if (found.has(sql))
		return;
	found.set(sql, {});
	turn = turn.then(() => fetchRows(sql, done));
}

function cell(column, v, row, sql, dictionary) {
	const text = cellText(column, v, row, sql, dictionary);
	if (column === "arg0" && "arg1" in row)
		return el("bdi", {class: "name"}, [text, cellText("arg1", row.arg1, row, sql, dictionary)].filter(Boolean).join(", ") || "\u2013");
	return text === null ? v === null ? "\u2013" : name(String(v), CELL) : el("bdi", {class: "name whole", title: String(v)}, text);
}

// rowsView - the rows of @sql as a table, as soon as they are there. @more: a further column; @hide: columns that are not shown; @empty: what is said if there are none.
export function rowsView(sql, again, {more, empty, hide = [], caption = "Rows that show it"} = {}) {
	load(sql, again);
	const got = found.get(sql);
	if (got.error)
		return nothing(`Cannot load the rows: ${got.error}.`);
	if (!got.data)
		return el("p", {class: "dim"}, "Loading\u2026");
	if (!got.data.rows.length)
		return nothing(empty || "Its rows are no longer in the recording: older events are deleted to keep the file small.");
	const objects = got.data.rows.slice(0, ROWS).map((r) => Object.fromEntries(got.data.columns.map((c, i) => [c, r[i]])));
	const columns = got.data.columns.filter((c) => !LEFT_OUT.has(c) && !hide.includes(c)).map((c) => ({title: titleOf(c), class: c === "arg0" ? "args" : null, cell: (r) => cell(c, r[c], r, sql, got.names)}));
	return group(table([...columns, ...(more ? [more] : [])], objects, null, caption),
		got.data.rows.length > ROWS || got.data.truncated ? el("p", {class: "note"}, `The first ${ROWS}; Run shows them all.`) : null);
}

export function view(i, again) {
	return i.evidence_sql ? group(el("h4", {}, "Evidence"), rowsView(i.evidence_sql, again),
		el("details", {class: "more", "data-open": `${i.id}/sql`}, el("summary", {}, "SQL of these rows"),
			el("div", {class: "sql"}, el("code", {}, i.evidence_sql), el("div", {}, copier(i.evidence_sql),
				el("button", {type: "button", class: "small", "data-act": "sql", "data-text": i.evidence_sql}, "Run"))))) : null;
}

// around - where on the time line an incident is seen, with some time around it.
export function around(i) {
	const from = i.since_ns || i.first_seen_ns, room = Math.max((i.last_seen_ns - from) * 0.1, 5e7);
	return {from: BigInt(Math.floor(from - room)), to: BigInt(Math.ceil(i.last_seen_ns + room)), text: f.span(from, i.last_seen_ns)};
}
