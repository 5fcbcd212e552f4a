// SPDX-License-Identifier: Apache-2.0
// readable.js - rows of the recording for people: operations and processes by name, times as local times, values with units.
// The number itself stays in the title.
import {query} from "./client.js";
import * as f from "./format.js";

const FRESH_MS = 60000, NCCL = 9;
const EPOCH = /^(1[5-9]|2\d)\d{17}$/; // ns since 1970
const KINDS = ["host to host", "host to device", "device to host", "device to device", "by its pointers"];
const PEOPLE = /who ran|wakee|victim|child/;
const ADDRESSES = /pointer|function|stream|event|graph|exec|comm/;

// NVML's bits; idleness slows nothing down.
export const THROTTLES = [[2, "applications clocks"], [4, "software power cap"], [8, "hardware slowdown"], [16, "sync boost"],
	[32, "software thermal slowdown"], [64, "hardware thermal slowdown"], [128, "hardware power brake"], [256, "display clocks"]];
export const throttleText = (bits) => THROTTLES.filter(([b]) => bits & b).map(([, text]) => text).join(", ");

let known = null, knownAt = 0;

// A file of another agent may lack these tables: then what is not known stays a number.
const rowsOf = (sql) => query({sql, limit: 10000}).then((d) => d.rows, (e) => { if (e.status === 401) throw e; return []; });

async function learn() {
	const [ops, sources, names] = await Promise.all([rowsOf("SELECT source_id, op_id, name, description FROM ops"), rowsOf("SELECT id, name FROM sources"),
		rowsOf("SELECT pid, name FROM process_names ORDER BY seen_at")]);
	return {ops: new Map(ops.map(([s, o, name, about]) => [`${s}/${o}`, {name, about: about || ""}])), sources: new Map(sources.map(([id, name]) => [id, String(name)])),
		processes: new Map(names)};
}

// names - the names of operations, sources and processes, asked for once in a while.
export function names() {
	if (!known || Date.now() - knownAt > FRESH_MS) {
		knownAt = Date.now();
		known = learn().catch((e) => { known = null; throw e; });
	}
	return known;
}

const hex = (v) => v === 0 || v === "0" ? "0" : "0x" + BigInt.asUintN(64, BigInt(v)).toString(16);

// An argument by what its operation's description calls it: "copy; arg0 bytes, arg1 kind".
function argument(op, n, v, processes) {
	const found = op && new RegExp(`arg${n} ([^,;]+)`).exec(op.about), what = found && found[1].trim();
	if (!what)
		return v === 0 || v === null ? "" : String(v);
	if (/^bytes/.test(what))
		return f.bytes(Number(v));
	if (what === "kind")
		return KINDS[v] || `kind ${v}`;
	if (/\bns$/.test(what))
		return `${what.replace(/ ns$/, "")} ${f.duration(Number(v))}`;
	if (PEOPLE.test(what))
		return `${what} ${processes.has(v) ? `${processes.get(v)} (${v})` : v || "\u2013"}`;
	return `${what} ${ADDRESSES.test(what) ? hex(v) : v}`;
}

const UNITS = [[/^(duration|dur|took)$|_ns$|_dur$/, (v) => f.duration(Number(v))], [/_mw$/, f.watts], [/_mhz$/, f.megahertz], [/^temperature_c$|_celsius$/, f.celsius],
	[/_bytes$|^bytes$/, f.bytes], [/_pct$|_percent$/, f.percent], [/_kb_s$/, f.rate], [/_mb$/, f.megabytes], [/_us$/, f.micros],
	[/^throttle_reasons$/, (v) => throttleText(Number(v)) || "not slowed"], [/^ret_code$/, (v) => v ? `error ${v}` : "ok"],
	[/^(stack_hash|comm_hash|stream)$/, hex]];

// What a row of the ledger spent on each line of it.
const LEDGER = /^(run|collect|launch|gpu_wait|copy|alloc|graph|collective|call|cpu_wait|cpu_wait_gpu|lock|poll|sleep|pipe|socket|disk|memory|device|child|blocked|stopped)$/;

// cellText - the value @v of @column for a reader, or null where it is one already. @row: {column: value}.
export function cellText(column, v, row, sql, dictionary) {
	if (v === null)
		return null;
	if (EPOCH.test(v) && !/hash|comm$/.test(column))
		return f.momentMs(v);
	const source = row.source ?? Number(/source = (\d+)/.exec(sql)?.[1] ?? (/FROM collectives/i.test(sql) ? NCCL : NaN)), op = dictionary.ops.get(`${source}/${row.op}`);
	if (column === "op" && typeof v === "number")
		return op ? op.name : null;
	if (column === "source" && typeof v === "number")
		return (dictionary.sources.get(v) || "").toLowerCase() || null;
	if (/^arg[01]$/.test(column))
		return argument(op, column.slice(3), v, dictionary.processes);
	if (/(^|_)pid$/.test(column) && typeof v === "number")
		return v && dictionary.processes.has(v) ? `${dictionary.processes.get(v)} (${v})` : v ? null : "\u2013";
	if (column === "comm" && /^-?\d{16,}$/.test(v))
		return f.hex(v);
	if (typeof v === "number" && LEDGER.test(column) && /\bFROM ledger\b/i.test(sql))
		return f.duration(v);
	const unit = typeof v === "number" || /^-?\d+$/.test(v) ? UNITS.find(([name]) => name.test(column)) : null;
	return unit ? unit[1](typeof v === "number" ? v : Number(v)) : null;
}

const TITLES = {timestamp: "When", duration: "Took", wait_ns: "Waited", pid: "Process", tid: "Thread", source: "Source", op: "Operation", arg0: "Arguments",
	ret_code: "Result", peer_pid: "By", seq: "Number", node: "Node", rank: "Rank", gpu: "GPU", gpu_id: "GPU", calls: "Calls", throttle_reasons: "Slowed by", sm_clock_mhz: "Clock",
	power_mw: "Power", temperature_c: "Temperature", comm: "Name", peer_comm: "By", cpu: "CPU", detail: "Detail", dev: "Device", stream: "Stream",
	"min(timestamp)": "First", "max(timestamp + duration)": "Last"};
export const titleOf = (column) => TITLES[column] || column.replaceAll("_", " ");
