// SPDX-License-Identifier: Apache-2.0
// format.js - numbers with their units, times with their zone.
const THIN = "\u202f", NONE = "\u2013";

function digits(v, most = 3) {
	const a = Math.abs(v);
	return v.toFixed(a >= 100 || a === 0 ? 0 : a >= 10 ? Math.min(1, most - 1) : most - 1);
}

const isNumber = (v) => typeof v === "number" && Number.isFinite(v);

export function duration(ns) {
	if (!isNumber(ns))
		return NONE;
	const a = Math.abs(ns);
	if (a < 999.5)
		return `${Math.round(ns)}${THIN}ns`;
	if (a < 999.5e3)
		return `${digits(ns / 1e3)}${THIN}µs`;
	if (a < 999.5e6)
		return `${digits(ns / 1e6)}${THIN}ms`;
	if (a < 119.5e9)
		return `${digits(ns / 1e9)}${THIN}s`;
	const s = Math.round(ns / 1e9), m = Math.floor(s / 60), h = Math.floor(m / 60), d = Math.floor(h / 24);
	if (m < 60)
		return `${m}${THIN}min ${s % 60}${THIN}s`;
	return h < 48 ? `${h}${THIN}h ${m % 60}${THIN}min` : `${d}${THIN}d ${h % 24}${THIN}h`;
}

export const micros = (us) => isNumber(us) ? duration(us * 1e3) : NONE;

export function count(n) {
	if (!isNumber(n))
		return NONE;
	return Math.abs(n) >= 1e7 ? `${digits(n / 10 ** (n >= 1e9 ? 9 : 6))}${THIN}${n >= 1e9 ? "G" : "M"}` :
		Math.round(n).toLocaleString("en-US");
}

export const counted = (n, noun, ending = "s") => `${count(n)} ${noun}${n === 1 ? "" : ending}`;

// looked - what an explanation is made of.
export const looked = (data) => data.calls ? counted(data.calls, "call") : counted(data.events, "event");

export function share(x) {
	if (!isNumber(x))
		return NONE;
	const p = x * 100;
	if (p > 0 && p < 0.1)
		return `<${THIN}0.1${THIN}%`;
	if (p < 100 && p > 99.9)
		return `>${THIN}99.9${THIN}%`;
	return `${p >= 99.95 || p === 0 ? Math.round(p) : p >= 9.95 && p < 99 ? Math.round(p) : p.toFixed(1)}${THIN}%`;
}

export const percent = (p) => isNumber(p) ? share(p / 100) : NONE;

export function bytes(n) {
	if (!isNumber(n))
		return NONE;
	const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
	let i = 0, v = n;
	for (; Math.abs(v) >= 1000 && i < units.length - 1; i++)
		v /= 1024;
	return `${i ? digits(v) : Math.round(v)}${THIN}${units[i]}`;
}

const number = (unit, scale = 1) => (v) => isNumber(v) ? `${digits(v / scale)}${THIN}${unit}` : NONE;
export const watts = number("W", 1000);
export const megahertz = (v) => isNumber(v) ? `${Math.round(v)}${THIN}MHz` : NONE;
export const celsius = (v) => isNumber(v) ? `${Math.round(v)}${THIN}°C` : NONE;
export const megabytes = (v) => bytes(isNumber(v) ? v * 1048576 : v);
export const rate = (kb) => isNumber(kb) ? `${bytes(kb * 1000)}/s` : NONE;
export const perSecond = (v) => isNumber(v) ? `${digits(v)}/s` : NONE;
export const plain = (v) => isNumber(v) ? digits(v) : NONE;

const two = (n) => String(n).padStart(2, "0");
const dayOf = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
const clockOf = (d) => `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
const dateOf = (ns) => new Date(Number(ns) / 1e6 + 0.0005); // a double's ns are rounded, never to the millisecond before

const zones = new Intl.DateTimeFormat("en-GB", {timeZoneName: "short"}); // dear to make

export function zone(ns) {
	const part = zones
		.formatToParts(ns ? dateOf(ns) : new Date()).find((p) => p.type === "timeZoneName");
	return part ? part.value : "";
}

// The day stands there only if it is not @near's, which is today unless told.
export function clock(ns, near) {
	const d = dateOf(ns), day = dayOf(d);
	return (day === dayOf(near ? dateOf(near) : new Date()) ? "" : day + " ") + clockOf(d);
}
export const day = (ns) => dayOf(dateOf(ns));
export const clockMs = (ns) => `${clockOf(dateOf(ns))}.${String(dateOf(ns).getMilliseconds()).padStart(3, "0")}`;
export const momentMs = (ns) => `${dayOf(dateOf(ns)) === dayOf(new Date()) ? "" : dayOf(dateOf(ns)) + " "}${clockMs(ns)} ${zone(ns)}`;
export const moment = (ns) => `${clock(ns)} ${zone(ns)}`;
export const span = (from, to) => `${clock(from)} \u2013 ${clock(to, from)} ${zone(to)}`;
export const iso = (ns) => dateOf(ns).toISOString();
export const hex = (decimal) => "0x" + BigInt.asUintN(64, BigInt(decimal)).toString(16).padStart(16, "0");
