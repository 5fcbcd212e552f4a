// SPDX-License-Identifier: Apache-2.0
// timeline_draw.js - paints rows of the time line. All of it is pixels and fillText: a name cannot be more than a picture of
// itself. What is drawn is found by time, so that an answer for another view is simply stretched.
import {visible} from "./dom.js";
import * as f from "./format.js";
import {LANE, OFF} from "./timeline_rows.js";

const PARTS = ["gpu", "copy", "launch", "allocation", "graph", "collective", "call", "host", "cpu", "disk", "memory", "network", "asleep"];
const SHADES = ["ink", "dim", "rule", "edge", "card", "sunk", "ground", "accent", "critical", "high", "medium", "low", "s4"];
const KINDS = [[/nccl|Reduce|Broadcast|AllGather|SendRecv/i, "collective"], [/graph/i, "graph"], [/sync|wait/i, "gpu"], [/mem(cpy|set)/i, "copy"], [/launch/i, "launch"],
	[/alloc|free/i, "allocation"], [/^(block|io)_|disk/i, "disk"], [/tcp|sock|net|send|recv/i, "network"], [/^mm_|oom|reclaim|fault/i, "memory"], [/process|pod|exec|exit|fork/i, "host"]];
const SHORT_PX = 170, kinds = new Map();

export function kindOf(name) {
	if (!kinds.has(name))
		kinds.set(name, (KINDS.find(([pattern]) => pattern.test(name)) || [null, "call"])[1]);
	return kinds.get(name);
}

// colours - as they are now, light or dark: an element that has each of them is asked.
export function colours(place) {
	const got = {}, probe = (cls, style) => {
		const e = document.createElement("span");
		e.className = cls;
		if (style)
			e.style.setProperty("background-color", style);
		place.append(e);
		const c = getComputedStyle(e).backgroundColor;
		e.remove();
		return c;
	};
	for (const p of PARTS)
		got[p] = probe(`part-${p}`);
	for (const s of SHADES)
		got[s] = probe("", `var(--${s})`);
	return got;
}

// A step of the axis that leaves room for its labels, and how many digits after the second it needs.
export function steps(span, width) {
	const least = span / width * 110, base = 10 ** Math.floor(Math.log10(least));
	const long = [60e9, 120e9, 300e9, 600e9, 1800e9, 3600e9, 7200e9, 21600e9, 86400e9, 7 * 86400e9];
	const step = least > 20e9 ? long.find((s) => s >= least) || Math.ceil(least / 86400e9) * 86400e9 : [1, 2, 5, 10].map((n) => n * base).find((s) => s >= least) || base * 10;
	return {step: Math.max(Math.round(step), 1), digits: step >= 1e9 ? 0 : Math.min(9, Math.ceil(9 - Math.log10(step) - 1e-9))};
}

// The time of day at @t after the origin (BigInt ns), with @digits after the second, in groups of three.
export function clockAt(origin, t, digits) {
	const ns = origin + BigInt(Math.round(t)), d = new Date(Number(ns / 1000000n)), two = (n) => String(n).padStart(2, "0");
	const part = String(ns % 1000000000n).padStart(9, "0").slice(0, digits).replace(/(...)(?=.)/g, "$1 ");
	return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${digits ? `.${part}` : ""}`;
}

export class Painter {
	constructor(canvas) {
		this.canvas = canvas;
		this.g = canvas.getContext("2d");
		this.patterns = new Map();
	}

	size(width, height) {
		const scale = Math.min(window.devicePixelRatio || 1, 2), w = Math.round(width * scale), h = Math.round(height * scale);
		if (this.canvas.width !== w || this.canvas.height !== h) {
			this.canvas.width = w;
			this.canvas.height = h;
			this.canvas.style.width = `${width}px`;
			this.canvas.style.height = `${height}px`;
		}
		this.g.setTransform(scale, 0, 0, scale, 0, 0);
		this.width = width;
		this.height = height;
	}

	begin(model) {
		Object.assign(this, {model, c: model.colours, from: model.view.from, scale: (this.width - model.gutter) / (model.view.to - model.view.from), left: model.gutter});
		this.g.clearRect(0, 0, this.width, this.height);
		this.g.font = "11px system-ui, sans-serif";
		this.g.textBaseline = "middle";
	}

	x(t) {
		return this.left + (t - this.from) * this.scale;
	}

	text(s, x, y, most, colour) {
		const g = this.g, room = Math.floor(most / 6.2);
		if (room < 3)
			return;
		const shown = visible(s);
		g.fillStyle = colour;
		g.fillText(shown.length > room ? shown.slice(0, room - 1) + "\u2026" : shown, x, y, most);
	}

	// Stripes: time that was only waited.
	hatch(colour) {
		if (!this.patterns.has(colour)) {
			const tile = new OffscreenCanvas(6, 6), t = tile.getContext("2d");
			t.globalAlpha = 0.22;
			t.fillStyle = colour;
			t.fillRect(0, 0, 6, 6);
			t.globalAlpha = 0.9;
			t.strokeStyle = colour;
			t.lineWidth = 1.2;
			for (const o of [-6, 0, 6]) {
				t.beginPath();
				t.moveTo(o, 6);
				t.lineTo(o + 6, 0);
				t.stroke();
			}
			this.patterns.set(colour, this.g.createPattern(tile, "repeat"));
		}
		return this.patterns.get(colour);
	}

	// ---- what is beside and above the rows ----

	// Ticks stand at whole times of day.
	ticks(origin, act) {
		const {view} = this.model, {step, digits} = steps(view.to - view.from, this.width - this.left), whole = BigInt(step);
		for (let t = Number(((origin + BigInt(Math.floor(view.from))) / whole + 1n) * whole - origin); t <= view.to; t += step)
			act(Math.round(this.x(t)), t, digits);
	}

	axis(origin, top) {
		this.ticks(origin, (x, t, digits) => {
			this.g.fillStyle = this.c.rule;
			this.g.fillRect(x, 0, 1, this.height);
			this.text(clockAt(origin, t, digits), x + 4, top + 8, 140, this.c.dim);
		});
	}

	gridLines(origin) {
		this.g.fillStyle = this.c.rule;
		this.ticks(origin, (x) => this.g.fillRect(x, 0, 1, this.height));
	}

	incidents(list, y, lit) {
		const rank = {CRITICAL: 3, HIGH: 2, MEDIUM: 1, LOW: 0};
		for (const i of [...list].sort((a, b) => rank[a.severity] - rank[b.severity])) {
			const x = Math.max(this.x(i.start), this.left), end = Math.min(this.x(i.start + i.dur), this.width), w = Math.max(end - x, 4);
			if (end < this.left || x > this.width)
				continue;
			const colour = this.c[i.severity.toLowerCase()] || this.c.low, at = y + (i.lane || 0) * LANE;
			this.g.globalAlpha = i === lit ? 1 : 0.85;
			this.g.fillStyle = colour;
			this.g.fillRect(x, at, w, LANE - 3);
			this.g.globalAlpha = 1;
			this.text(`${i.severity}: ${i.title}`, x + 4, at + LANE / 2 - 1, w - 6, this.c.card);
		}
	}

	// Steps of up to a few processes, each in a lane of its own. [start, dur, how many slow, how many, pid].
	steps(list, top, laneOf) {
		for (const [start, dur, slow, count, pid] of list) {
			const y = top + (laneOf.get(pid) ?? -1) * LANE;
			if (y < top)
				continue;
			const x = Math.max(this.x(start), this.left), w = Math.min(this.x(start + dur), this.width) - x;
			if (w <= 0)
				continue;
			this.g.fillStyle = slow ? this.c.high : this.c.edge;
			this.g.globalAlpha = slow ? 0.9 : 0.45;
			this.g.fillRect(x, y, Math.max(w - 1, 1), LANE - 5);
			this.g.globalAlpha = 1;
			this.text(count > 1 ? `${count} steps${slow ? `, ${slow} slow` : ""}` : slow ? `slow step ${f.duration(dur)}` : `step ${f.duration(dur)}`, x + 4, y + LANE / 2 - 2, w - 6, slow ? this.c.card : this.c.ink);
		}
	}

	band(from, to, colour, alpha) {
		const x = Math.max(this.x(from), this.left), w = Math.min(this.x(to), this.width) - x;
		this.g.globalAlpha = alpha;
		this.g.fillStyle = colour;
		if (w > 0)
			this.g.fillRect(x, 0, w, this.height);
		this.g.globalAlpha = 1;
	}

	// ---- rows ----

	row(row, y, answer) {
		const lane = y + row.lane - row.y;
		this.answer = answer;
		this.g.fillStyle = this.c.rule;
		this.g.fillRect(0, y + row.h - 1, this.width, 1);
		if (row.kind === "group") {
			this.g.fillStyle = this.c.sunk;
			this.g.fillRect(0, y, this.width, row.h - 1);
		} else if (row.kind === "gpu")
			this.series(row.series, lane, row.h - (row.lane - row.y) - 4);
		else {
			this.bins(row, lane);
			this.slices(row, lane);
			this.off(row.track, lane + row.lanes * LANE);
		}
	}

	// One bar a bin: as high as the part of its time that was spent in calls, in the colour of what took most of it.
	bins(row, y) {
		const t = row.track, size = t.bin_ns || this.answer.bin_ns, w = Math.max(size * this.scale, 1), h = LANE - 3, g = this.g;
		for (const [bin, busy, , n, wait] of t.bins) {
			const x = this.x(bin * size);
			if (x + w < this.left || x > this.width)
				continue;
			const at = Math.max(x, this.left), high = Math.max(Math.min(busy / size, 1) * h, 2), colour = this.c[kindOf(this.answer.names[n] || "")];
			g.globalAlpha = this.isFaint(this.answer.names[n]) ? 0.15 : 1;
			g.fillStyle = wait ? this.hatch(colour) : colour;
			g.fillRect(at, y + h - high, w - (at - x), high);
		}
		g.globalAlpha = 1;
	}

	isFaint(name) {
		return this.model.wanted && !String(name).toLowerCase().includes(this.model.wanted);
	}

	slices(row, y) {
		const t = row.track, g = this.g, names = this.answer.names;
		let lastX = -1, lastDepth = -1;
		for (const s of t.slices) {
			const [start, dur, n, ref, depth] = s, x0 = this.x(start), x1 = this.x(start + dur);
			if (x1 < this.left || x0 > this.width)
				continue;
			const x = Math.max(x0, this.left), w = Math.max(Math.min(x1, this.width) - x, 1), px = Math.floor(x);
			if (w <= 1 && px === lastX && depth === lastDepth && ref !== this.model.event)
				continue;
			lastX = w <= 1 ? px : -1;
			lastDepth = depth;
			const colour = this.c[kindOf(names[n] || "")], waits = t.kind === "rank" && s[6] !== row.group.rank && s[5] > 0;
			const at = y + Math.min(depth || 0, row.lanes - 1) * LANE;
			g.globalAlpha = this.isFaint(names[n]) ? 0.15 : 1;
			g.fillStyle = waits ? this.hatch(colour) : colour;
			g.fillRect(x, at, w > 3 ? w - 0.5 : w, LANE - 3);
			g.globalAlpha = 1;
			if (w > 34 && waits) {
				g.fillStyle = this.c.card;
				g.globalAlpha = 0.7;
				g.fillRect(x + 2, at + 1, Math.min(w - 4, this.label(t, s, row, w).length * 5.6 + 6), LANE - 5);
				g.globalAlpha = 1;
			}
			if (w > 34)
				this.text(this.label(t, s, row, w), x + 4, at + LANE / 2 - 1, w - 8, waits ? this.c.ink : this.c.card);
			if (ref === this.model.event) {
				g.strokeStyle = this.c.ink;
				g.lineWidth = 2;
				g.strokeRect(x - 1, at - 1, Math.max(w, 3) + 2, LANE - 1);
			}
		}
	}

	label(t, s, row, w) {
		const name = this.answer.names[s[2]];
		if (t.kind !== "rank" || !s[5])
			return `${name} ${f.duration(s[1])}`;
		if (w < SHORT_PX)
			return s[6] === row.group.rank ? "last" : `${f.duration(s[5])} wait`;
		return s[6] === row.group.rank ? `${name}: last to arrive` : `${name}: ${f.duration(s[5])} wait${s[6] >= 0 ? ` for rank ${s[6]}` : ""}`;
	}

	// Off the CPU: red while it could have run, grey while it was blocked; who had the CPU stands in it.
	off(t, y) {
		const names = this.answer.names, size = t.bin_ns || this.answer.bin_ns;
		for (const [bin, ns, , kind] of t.off_bins || []) {
			const x = Math.max(this.x(bin * size), this.left), w = Math.max(this.x((bin + 1) * size) - x, 1), waits = names[kind] === "waiting for a CPU";
			if (x > this.width || this.x((bin + 1) * size) < this.left)
				continue;
			this.g.globalAlpha = Math.max(0.25, Math.min(ns / size, 1));
			this.g.fillStyle = waits ? this.c.cpu : this.c.asleep;
			this.g.fillRect(x, y + (waits ? 0 : OFF - 6), w, waits ? OFF - 6 : 3);
		}
		this.g.globalAlpha = 1;
		for (const [start, dur, kind, who] of t.off || []) {
			const x = Math.max(this.x(start), this.left), w = Math.min(this.x(start + dur), this.width) - x, waits = names[kind] === "waiting for a CPU";
			if (w <= 0 || x > this.width)
				continue;
			this.g.fillStyle = waits ? this.c.cpu : this.c.asleep;
			this.g.fillRect(x, y + (waits ? 0 : OFF - 6), Math.max(w, 1), waits ? OFF - 3 : 3);
			if (who >= 0 && waits && w > 60) {
				this.g.font = "9.5px system-ui, sans-serif";
				this.text(`CPU: ${names[who]}`, x + 3, y + OFF / 2 - 1, w - 6, this.c.card);
				this.g.font = "11px system-ui, sans-serif";
			}
		}
	}

	series(s, y, h) {
		const g = this.g, top = s.unit === "%" ? 100 : s.points.reduce((m, p) => Math.max(m, p[1]), 1) * 1.1;
		if (!s.points.length)
			return;
		g.beginPath();
		s.points.forEach(([t, v], i) => g[i ? "lineTo" : "moveTo"](Math.max(this.x(t), this.left), y + h - v / top * h));
		g.strokeStyle = this.c.gpu;
		g.lineWidth = 1.5;
		g.stroke();
		g.lineTo(Math.max(this.x(s.points.at(-1)[0]), this.left), y + h);
		g.lineTo(Math.max(this.x(s.points[0][0]), this.left), y + h);
		g.globalAlpha = 0.18;
		g.fillStyle = this.c.gpu;
		g.fill();
		g.globalAlpha = 1;
		const last = s.points.findLast((p) => p[0] <= this.model.view.to) || s.points[0];
		g.fillStyle = this.c.card;
		g.globalAlpha = 0.8;
		g.fillRect(this.width - 66, y + h - 15, 64, 14);
		g.globalAlpha = 1;
		this.text(`${Math.round(last[1] * 10) / 10} ${s.unit}`, this.width - 62, y + h - 8, 60, this.c.ink);
	}
}
