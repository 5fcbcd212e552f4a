// SPDX-License-Identifier: Apache-2.0
// heat.js - ranks by collectives on a canvas: 1,024 by 200 cells would be too many elements. A cell is a
// digit of base 62 (twice the logarithm of 1 + the microseconds after the median arrival) or '-'.
import {el, show} from "./dom.js";
import {duration} from "./format.js";

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
const MOST_ROWS = 256;
const GONE = {light: [20, 24, 29], dark: [255, 255, 255]};

export const lateness = (cell) => cell === "-" ? null : (2 ** (LEVEL.get(cell) / 2) - 1) * 1e3;

// worst - of several cells: missing, then the latest.
export const worst = (cells) => [...cells].reduce((a, b) => (lateness(b) ?? Infinity) > (lateness(a) ?? Infinity) ? b : a, "0");

const isDark = () => {
	const theme = document.documentElement.dataset.theme;
	return theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
};

function colour(cell, shade) {
	const ns = lateness(cell);
	return ns === null ? GONE[shade] : STEPS.findLast((s) => ns >= s.from)[shade];
}

export function scale() {
	const shade = isDark() ? "dark" : "light", css = (c) => ({background: `rgb(${c.join(" ")})`});
	return [...STEPS.map((s) => el("span", {}, el("i", {style: css(s[shade])}), s.from ? `from ${s.text}` : s.text)),
		el("span", {}, el("i", {style: css(GONE[shade])}), "missing")];
}

export class Heat {
	constructor(canvas, said, choose) {
		Object.assign(this, {canvas, said, choose, columns: [], ranks: 0, at: null});
		canvas.addEventListener("pointermove", (e) => this.point(e, false));
		canvas.addEventListener("click", (e) => this.point(e, true));
		canvas.addEventListener("keydown", (e) => this.key(e));
	}

	// The cells are drawn one pixel each; the browser enlarges them. Of more ranks than there are rows,
	// neighbours share one, which shows the latest of them: nobody late is left out.
	draw(data) {
		this.columns = [...(data.collectives || [])].reverse();
		this.ranks = data.shown_ranks || 0;
		const width = Math.max(this.columns.length, 1), each = Math.ceil(this.ranks / MOST_ROWS) || 1,
			height = Math.max(Math.ceil(this.ranks / each), 1), shade = isDark() ? "dark" : "light";
		const g = this.canvas.getContext("2d");
		this.canvas.width = width;
		this.canvas.height = height;
		this.canvas.style.setProperty("height", `${Math.min(Math.max(height * 6, 96), 512)}px`);
		const image = g.createImageData(width, height);
		this.columns.forEach((c, x) => {
			for (let y = 0; y < height; y++)
				image.data.set([...colour(worst(c.cells.slice(y * each, (y + 1) * each)), shade), 255], 4 * (y * width + x));
		});
		g.putImageData(image, 0, 0);
	}

	say(x, y) {
		const c = this.columns[x], cell = c && c.cells[y];
		if (!cell)
			return;
		const ns = lateness(cell);
		show(this.said, `${c.op} ${c.seq}: rank ${y} ` + (ns === null ? "is missing" : ns < 1e3 ? "was on time" :
			`came about ${duration(ns)} after the median`) + `; the last came ${duration(c.lag_ns)} after the median.`);
	}

	// The latest of the ranks @from to @to of a column.
	latest(x, from, to) {
		const cells = this.columns[x] ? this.columns[x].cells.slice(from, to) : "";
		return from + Math.max(cells.indexOf(worst(cells)), 0);
	}

	point(e, chosen) {
		const box = this.canvas.getBoundingClientRect();
		const x = Math.floor((e.clientX - box.left) / box.width * this.columns.length);
		const each = Math.ceil(this.ranks / MOST_ROWS) || 1, row = Math.floor((e.clientY - box.top) / box.height * Math.ceil(this.ranks / each));
		this.say(x, this.latest(x, row * each, (row + 1) * each));
		if (chosen && this.columns[x])
			this.choose(this.columns[x]);
	}

	key(e) {
		const step = {ArrowLeft: -1, ArrowRight: 1}[e.key];
		if (!this.columns.length || (!step && e.key !== "Enter"))
			return;
		e.preventDefault();
		this.at = Math.min(Math.max((this.at ?? this.columns.length) + (step || 0), 0), this.columns.length - 1);
		this.say(this.at, this.latest(this.at, 0, this.ranks));
		if (!step)
			this.choose(this.columns[this.at]);
	}
}
