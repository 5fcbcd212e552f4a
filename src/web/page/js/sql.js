// SPDX-License-Identifier: Apache-2.0
// sql.js - a question in SQL, and its rows as a table.
import {el, group, name, show} from "./dom.js";
import {copier, nothing} from "./parts.js";
import {query} from "./client.js";
import {cellText, names} from "./readable.js";
import * as f from "./format.js";

const SHOWN = 500, CELL = 300;
export const EXAMPLES = [
	["Slowest calls", "SELECT datetime(timestamp / 1000000000, 'unixepoch') AS utc, comm, pid, o.name AS op,\n       duration / 1e6 AS ms\nFROM events e JOIN ops o ON o.source_id = e.source AND o.op_id = e.op\nWHERE e.source = 1 ORDER BY duration DESC LIMIT 20"],
	["Which process used the CPU", "SELECT peer_comm, peer_pid, count(*) AS times, sum(wait_ns) / 1e6 AS ms\nFROM events WHERE source = 3 AND op = 1 AND peer_pid > 0\nGROUP BY 1, 2 ORDER BY ms DESC LIMIT 20"],
	["Time by process", "SELECT pid, o.name AS op, sum(count) AS calls, sum(sum_dur) / 1e6 AS ms\nFROM event_aggregates_5s a JOIN ops o ON o.source_id = a.source AND o.op_id = a.op\nGROUP BY 1, 2 ORDER BY ms DESC LIMIT 30"],
	["Tables", "SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name"],
];

const cell = (v, text) => v === null ? el("i", {class: "dim"}, "NULL") : text ? el("bdi", {class: "name", title: String(v)}, text) :
	typeof v === "string" ? name(v, CELL) : String(v);

function tsv(d) {
	const clean = (v) => v === null ? "" : String(v).replace(/[\t\r\n]/g, " ");
	return [d.columns, ...d.rows].map((r) => r.map(clean).join("\t")).join("\n");
}

function result(d, sql, dictionary) {
	const numeric = d.columns.map((_, i) => d.rows.length > 0 && d.rows.every((r) => typeof r[i] === "number" || r[i] === null || /^-?\d{16,}$/.test(r[i])));
	const rows = d.rows.slice(0, SHOWN), readable = (r, i, row) => dictionary ? cellText(d.columns[i], r[i], row, sql, dictionary) : null;
	const line = (r) => { const row = Object.fromEntries(d.columns.map((c, i) => [c, r[i]])); return r.map((v, i) => el("td", {class: numeric[i] ? "n" : null}, cell(v, readable(r, i, row)))); };
	return group(el("p", {class: "dim"}, `${f.counted(d.rows.length, "row")} in ${f.duration(d.duration_ms * 1e6)}` +
		(d.truncated ? "; truncated: raise the limit or narrow the query" : "") + (rows.length < d.rows.length ? `; the first ${SHOWN} are shown` : "") + " ",
	d.rows.length ? copier(tsv(d), "Copy as a table") : null),
	d.rows.length ? el("div", {class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Result"}, el("table", {class: "mono"},
		el("caption", {class: "unseen"}, "Result of the SQL"),
		el("thead", {}, el("tr", {}, d.columns.map((c, i) => el("th", {scope: "col", class: numeric[i] ? "n" : null}, name(c, 60))))),
		el("tbody", {}, rows.map((r) => el("tr", {}, line(r)))))) : null);
}

// run - @readable: times, operations and units instead of their numbers, which stay in the titles.
export async function run(sql, limit, place, readable) {
	show(place, el("p", {class: "dim"}, "Running\u2026"));
	try {
		const data = await query({sql, limit});
		show(place, result(data, sql, readable ? await names() : null));
	} catch (e) {
		show(place, el("p", {class: "alarm", role: "alert"}, "\u25b2 ", e.message), e.hint ? nothing(e.hint) : null);
		if (e.status === 401)
			throw e;
	}
}
