// SPDX-License-Identifier: Apache-2.0
// heat.js - ranks by collectives on a canvas: 1,024 by 200 cells would be too many elements. A cell is a
// digit of base 62 (twice the logarithm of 1 + the microseconds after the median arrival) or '-'.
//
// What is in view is a window {x, y, width, height} of whole cells: wheel with Ctrl, two fingers, a drawn
// rectangle, buttons and keys change it. A chosen cell is kept by its sequence number, so that it stays where
// it is while newer collectives come in.
import {el, show} from "./dom.js";
import {clock, duration} from "./format.js";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LEVEL = new Map([...DIGITS].map((c, i) => [c, i]));
// Lateness in nanoseconds from which a colour holds, from light to dark ground and back.
const STEPS = [
	{from: 0, light: [236, 240, 243], dark: [30, 36, 42], text: "on time"},
	{from: 1e6, light: [190, 224, 220], dark: [22, 66, 63], text: "1 ms"},
	{from: 5e6, light: [244, 208, 120], dark: [122, 92, 22], text: "5 ms"},
	{from: 2e7, light: [235, 138, 66], dark: [196, 98, 30], text: "20 ms"},
	{from: 1e8, light: [176, 24, 48], dark: [255, 110, 122], text: "100 ms"},
];
const MOST_ROWS = 256, LEAST_CELLS = 4, DRAG_PX = 8, ROW_TICKS = 9;
const GONE = {light: [20, 24, 29], dark: [255, 255, 255]};

// lateness - the least that a cell stands for, in nanoseconds; null: missing. about - the middle of it.
export const lateness = (cell) => cell === "-" ? null : (2 ** (LEVEL.get(cell) / 2) - 1) * 1e3;
export const about = (cell) => cell === "-" || cell === "0" ? lateness(cell) : (2 ** ((LEVEL.get(cell) + .5) / 2) - 1) * 1e3;

// worst - of @cells from @from to @to: missing, then the latest. Digits stand in the order of their characters.
export function worst(cells, from, to) {
	let most = "0";
	for (let i = from; i < to && i < cells.length; i++) {
		if (cells[i] === "-")
			return "-";
		if (cells[i] > most)
			most = cells[i];
	}
	return most;
}

// opName - without the library's prefix, as sentences have it.
export const opName = (op) => String(op).replace(/^nccl/, "");

const within = (v, low, high) => Math.min(Math.max(v, low), Math.max(high, low));

const isDark = () => {
	const theme = document.documentElement.dataset.theme;
	return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};

// By cell, as words of a picture's memory.
function palette(shade) {
	const word = (rgb) => new Uint32Array(new Uint8ClampedArray([...rgb, 255]).buffer)[0];
	return new Map([["-", word(GONE[shade])], ...[...DIGITS].map((c) => [c, word(STEPS.findLast((s) => lateness(c) >= s.from)[shade])])]);
}

export function scale() {
	const shade = isDark() ? "dark" : "light", css = (c) => ({background: `rgb(${c.join(" ")})`});
	return [...STEPS.map((s) => el("span", {}, el("i", {style: css(s[shade])}), s.from ? `from ${s.text}` : s.text)),
		el("span", {}, el("i", {style: css(GONE[shade])}), "missing")];
}

export class Heat {
	// @on: choose(column, place) a cell was chosen, moved() another part is in view.
	constructor(parts, on) {
		Object.assign(this, parts, {on, columns: [], ranks: 0, names: [], places: [], seq: null, place: 0, view: null, touches: new Map()});
		const c = this.canvas;
		c.addEventListener("pointerdown", (e) => this.down(e));
		c.addEventListener("pointermove", (e) => this.move(e));
		c.addEventListener("pointerup", (e) => this.up(e));
		c.addEventListener("pointercancel", (e) => this.drop(e));
		c.addEventListener("wheel", (e) => this.wheel(e), {passive: false});
		c.addEventListener("keydown", (e) => this.key(e));
	}

	// take - @data of the API. What is in view stays, or goes with the newest if it was at the right edge.
	take(data) {
		const before = this.columns.length ? this.columns[this.columns.length - 1].seq : null, ranks = data.shown_ranks || 0;
		const follows = !this.view || this.view.x + this.view.width >= this.columns.length;
		const other = data.comm !== this.comm || ranks !== this.ranks;
		const zoomed = this.isZoomed();
		this.columns = [...(data.collectives || [])].reverse();
		Object.assign(this, {comm: data.comm, ranks, names: data.ranks || [], places: data.places || []});
		const newer = before === null ? 0 : this.columns.filter((c) => c.seq > before).length;
		if (other || !zoomed) {
			this.view = this.all();
			if (other)
				this.seq = null;
		} else {
			this.view.x = follows ? this.columns.length - this.view.width : this.view.x - newer;
			this.clamp();
		}
		this.draw();
	}

	all() {
		return {x: 0, y: 0, width: Math.max(this.columns.length, 1), height: Math.max(this.ranks, 1)};
	}

	isZoomed() {
		return Boolean(this.view) && (this.view.width < this.columns.length || this.view.height < this.ranks);
	}

	clamp() {
		const v = this.view, a = this.all();
		v.width = Math.round(within(v.width, Math.min(LEAST_CELLS, a.width), a.width));
		v.height = Math.round(within(v.height, Math.min(LEAST_CELLS, a.height), a.height));
		v.x = Math.round(within(v.x, 0, a.width - v.width));
		v.y = Math.round(within(v.y, 0, a.height - v.height));
	}

	// The name of a row is its rank in the job, where that is known.
	rank(place) {
		return this.names[place] ?? null;
	}

	rowName(place) {
		const rank = this.rank(place);
		return rank === null ? `rank ${place} of the communicator` : `rank ${rank}`;
	}

	node(place) {
		const at = this.places.findLast((p) => p.from <= place);
		return at ? at.node : null;
	}

	// Rows of the picture: of more ranks than there are rows, neighbours share one.
	each() {
		return Math.ceil(this.view.height / MOST_ROWS) || 1;
	}

	// The cells are drawn one pixel each; the browser enlarges them. A row of several ranks shows the latest of
	// them: nobody late is left out.
	draw() {
		const v = this.view, each = this.each(), height = Math.ceil(v.height / each), colours = palette(isDark() ? "dark" : "light");
		const g = this.canvas.getContext("2d");
		this.canvas.width = v.width;
		this.canvas.height = height;
		this.canvas.style.setProperty("height", `${within(Math.ceil(this.ranks / (Math.ceil(this.ranks / MOST_ROWS) || 1)) * 6, 96, 512)}px`);
		const image = g.createImageData(v.width, height), words = new Uint32Array(image.data.buffer);
		this.columns.slice(v.x, v.x + v.width).forEach((c, x) => {
			for (let y = 0; y < height; y++)
				words[y * v.width + x] = colours.get(worst(c.cells, v.y + y * each, Math.min(v.y + (y + 1) * each, v.y + v.height)));
		});
		g.putImageData(image, 0, 0);
		this.axes();
		this.mark();
		this.on.moved();
	}

	// Ranks on the left, their nodes on the right, times below.
	axes() {
		const v = this.view, step = [1, 2, 4, 8, 16, 32, 64, 128, 256].find((s) => v.height / s <= ROW_TICKS) || 256;
		const at = (place) => ({top: `${((place - v.y + .5) / v.height * 100).toFixed(2)}%`}), rows = [], nodes = [];
		const here = this.seq !== null && this.place >= v.y && this.place < v.y + v.height;
		for (let y = Math.ceil(v.y / step) * step; y < v.y + v.height; y += step)
			if (!here || Math.abs(y - this.place) / v.height > .04)
				rows.push(el("span", {key: `y${y}`, style: at(y)}, String(this.rank(y) ?? `(${y})`)));
		this.places.forEach((p, i) => {
			const from = Math.max(p.from, v.y), to = Math.min(i + 1 < this.places.length ? this.places[i + 1].from : this.ranks, v.y + v.height);
			if (p.node && to > from && (to - from) / v.height >= 0.03)
				nodes.push(el("span", {key: `n${p.from}`, title: p.node, style: {top: `${((from - v.y) / v.height * 100).toFixed(2)}%`,
					height: `${((to - from) / v.height * 100).toFixed(2)}%`}}, el("bdi", {}, p.node)));
		});
		if (here)
			rows.push(el("b", {key: "chosen", style: at(this.place)}, `${this.rank(this.place) ?? `(${this.place})`} \u25b8`));
		show(this.rows, rows);
		show(this.nodes, nodes);
		const seen = this.columns.slice(v.x, v.x + v.width), few = [seen[0], seen[Math.floor(seen.length / 2)], seen[seen.length - 1]];
		show(this.times, seen.length > 2 ? few.map((c) => el("span", {}, clock(c.last_ns))) : null);
	}

	column() {
		return this.seq === null ? -1 : this.columns.findIndex((c) => c.seq === this.seq);
	}

	// The chosen cell's row and column are outlined.
	mark() {
		const x = this.column(), v = this.view, inside = x >= v.x && x < v.x + v.width && this.place >= v.y && this.place < v.y + v.height;
		this.cross.hidden = !inside;
		if (!inside)
			return;
		const wide = 100 / v.width, high = 100 / v.height;
		this.cross.style.cssText = `left:${((x - v.x) * wide).toFixed(3)}%;width:${wide.toFixed(3)}%;top:${((this.place - v.y) * high).toFixed(3)}%;height:${high.toFixed(3)}%`;
	}

	say(x, place) {
		const c = this.columns[x], cell = c && c.cells[place];
		if (!cell)
			return;
		const ns = about(cell), node = this.node(place), row = this.rowName(place);
		show(this.said, `${opName(c.op)} ${c.seq}, ${clock(c.last_ns)}: ${row}${node ? ` on ${node}` : ""} ` + (ns === null ? "is missing" :
			ns < 1e3 ? "was on time" : `arrived about ${duration(ns)} after the median`) + `; the last arrived ${duration(c.lag_ns)} after the median.`);
	}

	// The latest of the ranks @from to @to of a column.
	latest(x, from, to) {
		const cells = this.columns[x] ? this.columns[x].cells.slice(from, to) : "";
		return from + Math.max(cells.indexOf(worst(cells, 0, cells.length)), 0);
	}

	choose(x, place) {
		this.seq = this.columns[x].seq;
		this.place = place;
		this.say(x, place);
		this.axes();
		this.mark();
		this.on.choose(this.columns[x], place);
	}

	// leave - nothing is chosen any more.
	leave() {
		this.seq = null;
		this.axes();
		this.mark();
	}

	// find - brings the row of @rank into view and marks its latest cell there; false: there is none.
	find(rank) {
		const place = this.names.indexOf(rank);
		if (place < 0 || !this.columns.length)
			return false;
		const x = this.columns.reduce((best, c, i) => (lateness(c.cells[place]) ?? Infinity) >= (lateness(this.columns[best].cells[place]) ?? Infinity) ? i : best, 0);
		if (this.seq === null || this.place !== place) {
			this.seq = this.columns[x].seq;
			this.place = place;
		}
		if (place < this.view.y || place >= this.view.y + this.view.height)
			this.view.y = place - Math.floor(this.view.height / 2);
		this.clamp();
		this.draw();
		return true;
	}

	// ---- the window ----

	// zoom - by @factor, what is at (@x, @y), shares of the picture, stays there.
	zoom(factor, x = 1, y = .5) {
		const v = this.view, left = v.x + v.width * x, top = v.y + v.height * y;
		v.width = Math.max(v.width / factor, 1);
		v.height = Math.max(v.height / factor, 1);
		v.x = left - v.width * x;
		v.y = top - v.height * y;
		this.clamp();
		this.draw();
	}

	// Around the chosen cell if it is in view, else at the newest.
	zoomHere(factor) {
		const v = this.view, x = this.column(), inside = !this.cross.hidden;
		this.zoom(factor, inside ? (x - v.x + .5) / v.width : 1, inside ? (this.place - v.y + .5) / v.height : .5);
	}

	reset() {
		this.view = this.all();
		this.draw();
	}

	// ---- pointers ----

	share(e) {
		const box = this.canvas.getBoundingClientRect();
		return [within((e.clientX - box.left) / box.width, 0, .9999), within((e.clientY - box.top) / box.height, 0, .9999)];
	}

	cellAt([sx, sy]) {
		const v = this.view, each = this.each(), x = v.x + Math.floor(sx * v.width), row = Math.floor(sy * Math.ceil(v.height / each));
		return [x, this.latest(x, v.y + row * each, Math.min(v.y + (row + 1) * each, v.y + v.height))];
	}

	down(e) {
		this.touches.set(e.pointerId, this.share(e));
		this.canvas.setPointerCapture(e.pointerId);
		this.start = this.touches.size === 1 ? this.share(e) : null;
		this.spread = null;
	}

	move(e) {
		const here = this.share(e);
		if (this.touches.has(e.pointerId))
			this.touches.set(e.pointerId, here);
		if (this.touches.size === 2) {
			const [a, b] = [...this.touches.values()], spread = Math.hypot(a[0] - b[0], a[1] - b[1]);
			if (this.spread && spread > 0 && Math.abs(Math.log2(spread / this.spread)) > .1) {
				this.zoom(spread / this.spread, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
				this.spread = spread;
			} else if (!this.spread) {
				this.spread = spread;
			}
			return;
		}
		this.say(...this.cellAt(here));
		if (this.start && e.pointerType === "mouse" && this.isDrag(here))
			this.frame(here);
	}

	isDrag([x, y]) {
		const box = this.canvas.getBoundingClientRect();
		return Math.hypot((x - this.start[0]) * box.width, (y - this.start[1]) * box.height) > DRAG_PX;
	}

	frame([x, y]) {
		const [x0, y0] = this.start;
		this.band.hidden = false;
		this.band.style.cssText = `left:${Math.min(x, x0) * 100}%;top:${Math.min(y, y0) * 100}%;width:${Math.abs(x - x0) * 100}%;height:${Math.abs(y - y0) * 100}%`;
	}

	up(e) {
		const here = this.share(e), start = this.start;
		this.drop(e);
		if (!start)
			return;
		this.start = start;
		const dragged = this.isDrag(here);
		this.start = null;
		if (dragged && e.pointerType === "mouse") {
			const v = this.view, [w, h] = [Math.abs(here[0] - start[0]), Math.abs(here[1] - start[1])];
			this.view = {x: v.x + Math.min(here[0], start[0]) * v.width, y: v.y + Math.min(here[1], start[1]) * v.height,
				width: Math.max(w * v.width, 1), height: Math.max(h * v.height, 1)};
			this.clamp();
			this.draw();
		} else if (!dragged && this.columns.length) {
			this.choose(...this.cellAt(here));
		}
	}

	drop(e) {
		this.touches.delete(e.pointerId);
		this.start = null;
		this.band.hidden = true;
	}

	// A wheel alone scrolls the page.
	wheel(e) {
		if (!e.ctrlKey)
			return;
		e.preventDefault();
		this.zoom(e.deltaY < 0 ? 1.4 : 1 / 1.4, ...this.share(e));
	}

	// ---- keys ----

	key(e) {
		const moves = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], PageUp: [0, -16], PageDown: [0, 16],
			Home: [-1e9, 0], End: [1e9, 0]}, move = moves[e.key];
		const zoom = {"+": 2, "=": 2, "-": .5}[e.key];
		if (!this.columns.length || e.ctrlKey || e.metaKey || e.altKey || !(move || zoom || e.key === "Enter" || e.key === "0"))
			return;
		e.preventDefault();
		if (zoom)
			this.zoomHere(zoom);
		else if (e.key === "0")
			this.reset();
		else
			this.walk(move);
	}

	// The first key goes to the newest collective and its latest rank.
	walk(move) {
		let x = this.column();
		if (x < 0) {
			x = this.columns.length - 1;
			this.place = this.latest(x, 0, this.ranks);
			if (move && move[1] === 0)
				x = within(x + move[0] + (move[0] > 0 ? 0 : 1), 0, x);
		} else if (move) {
			x = within(x + move[0], 0, this.columns.length - 1);
			this.place = within(this.place + move[1], 0, this.ranks - 1);
		}
		this.seq = this.columns[x].seq;
		const v = this.view;
		v.x = x < v.x ? x : x >= v.x + v.width ? x - v.width + 1 : v.x;
		v.y = this.place < v.y ? this.place : this.place >= v.y + v.height ? this.place - v.height + 1 : v.y;
		this.clamp();
		this.draw();
		this.say(x, this.place);
		if (!move)
			this.on.choose(this.columns[x], this.place);
	}
}
