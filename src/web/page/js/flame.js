// SPDX-License-Identifier: Apache-2.0
// flame.js - the tree of /api/v1/flame: a block a frame, as wide as its share, the outermost on top.
// Click or Enter zooms, Esc shows all, arrow keys walk the tree.
import {el, show} from "./dom.js";
import {duration, share, count} from "./format.js";

const NARROWEST = 0.0012, MOST_BLOCKS = 1500, LETTERED = 2.5; // percent of the width that holds a few letters
const WHAT = {python: "Python", native: "native", call: "CUDA or NCCL call", root: "everything"};

export class Flame {
	constructor(place, about) {
		this.place = place;
		this.about = about;
		this.zoomed = this.focused = 0;
		this.wanted = "";
		this.nodes = [];
		place.addEventListener("click", (e) => this.onBlock(e, (i) => this.zoom(i === this.zoomed ? this.nodes[i].parent : i)));
		place.addEventListener("pointerover", (e) => this.onBlock(e, (i) => this.tell(i)));
		place.addEventListener("focusin", (e) => this.onBlock(e, (i) => this.tell(this.focused = i)));
		place.addEventListener("keydown", (e) => this.key(e));
	}

	onBlock(event, act) {
		const block = event.target instanceof Element && event.target.closest("[data-node]");
		if (block)
			act(Number(block.dataset.node));
	}

	// A zoom survives a refresh: frames are found again by their names from the root.
	pathOf(i) {
		const path = [];
		for (; i > 0; i = this.nodes[i].parent)
			path.unshift(this.nodes[i].name);
		return path;
	}

	find(path) {
		let at = 0;
		for (const part of path) {
			at = this.nodes.findIndex((n) => n.parent === at && n.name === part);
			if (at < 0)
				return 0;
		}
		return at;
	}

	update(data) {
		const zoomed = this.pathOf(this.zoomed), focused = this.pathOf(this.focused);
		const used = new Map();
		this.nodes = data.nodes.map((n) => ({...n, children: []}));
		this.total = data.total || 1;
		this.isCount = data.unit !== "ns";
		this.compared = Boolean(data.compared);
		this.most = this.compared ? Math.max(...data.nodes.map((n) => Math.abs(n.after - n.before)), 1) : 1;
		this.nodes.forEach((n, i) => {
			const p = this.nodes[n.parent];
			n.depth = p ? p.depth + 1 : 0;
			n.x = p ? p.x + (used.get(n.parent) || 0) : 0;
			if (p) {
				used.set(n.parent, (used.get(n.parent) || 0) + n.total);
				p.children.push(i);
			}
		});
		this.zoomed = this.find(zoomed);
		this.focused = this.find(focused);
		this.draw();
	}

	value(v) {
		return this.isCount ? `${count(v)} calls` : duration(v);
	}

	// Of two times: what a frame took in a second of each.
	describeBoth(n) {
		const d = n.after - n.before;
		return `${n.name}: ${duration(n.before)} a second before, ${duration(n.after)} now: ${d < 0 ? "\u2212" : "+"}${duration(Math.abs(d))}` +
			(n.before > 0 ? ` (${d < 0 ? "\u2212" : "+"}${share(Math.abs(d) / n.before)})` : " (new)");
	}

	describe(i) {
		const n = this.nodes[i];
		if (this.compared)
			return this.describeBoth(n);
		return `${n.name}: ${this.value(n.total)}, ${share(n.total / this.total)} of all` +
			(n.self ? `, ${this.value(n.self)} in itself` : "") + ` (${WHAT[n.kind] || n.kind})`;
	}

	tell(i) {
		if (this.nodes[i])
			show(this.about, el("span", {}, this.describe(i)));
	}

	isHit(n) {
		return this.wanted && n.parent >= 0 && n.name.toLowerCase().includes(this.wanted);
	}

	block(i, above) {
		const n = this.nodes[i], z = this.nodes[this.zoomed], scale = 100 / (z.total || 1);
		const left = above ? 0 : (n.x - z.x) * scale, width = above ? 100 : n.total * scale;
		const change = this.compared ? (n.after - n.before) / this.most : 0, kind = this.compared ? change < 0 ? "shrunk" : "grown" : n.kind;
		return el("div", {class: `frame ${kind}${above ? " above" : ""}${this.isHit(n) ? " hit" : ""}${width < LETTERED ? " thin" : ""}`, key: i, "data-node": i,
			role: "treeitem", "aria-level": n.depth + 1, "aria-label": this.describe(i), "aria-selected": i === this.focused,
			"aria-expanded": n.children.length ? "true" : null, tabindex: i === this.focused ? 0 : -1,
			style: {left: `${left}%`, width: `calc(${width}% - 1px)`, top: `${n.depth * 1.375}rem`, "--change": Math.abs(change).toFixed(3)}}, width < LETTERED ? null : n.name);
	}

	draw() {
		const z = this.nodes[this.zoomed], blocks = [], above = new Set();
		let deepest = 0;
		if (!z)
			return show(this.place);
		for (let i = z.parent; i >= 0; i = this.nodes[i].parent)
			above.add(i);
		const inside = new Set([this.zoomed]);
		this.nodes.forEach((n, i) => {
			if (inside.has(n.parent) && n.total / z.total >= NARROWEST)
				inside.add(i);
			if (!above.has(i) && !inside.has(i) || blocks.length >= MOST_BLOCKS)
				return;
			deepest = Math.max(deepest, n.depth);
			blocks.push(this.block(i, above.has(i)));
		});
		if (!inside.has(this.focused) && !above.has(this.focused))
			this.focused = this.zoomed;
		this.place.classList.toggle("seeking", Boolean(this.wanted));
		this.place.style.height = `${(deepest + 1) * 1.375}rem`;
		return show(this.place, blocks);
	}

	zoom(i) {
		if (!this.nodes[i])
			return;
		this.zoomed = this.focused = i;
		this.draw();
		this.tell(i);
	}

	// The share is that of the outermost frames found: one inside another is not counted twice.
	search(words) {
		const under = new Set();
		let sum = 0;
		this.wanted = words.trim().toLowerCase();
		this.nodes.forEach((n, i) => {
			if (under.has(n.parent))
				under.add(i);
			else if (this.isHit(n)) {
				under.add(i);
				sum += n.total;
			}
		});
		this.draw();
		return this.wanted ? share(sum / this.total) : "";
	}

	go(i) {
		const block = this.place.querySelector(`[data-node="${i}"]`);
		if (!block)
			return;
		for (const b of this.place.querySelectorAll('[tabindex="0"]'))
			b.tabIndex = -1;
		block.tabIndex = 0;
		block.focus();
	}

	key(event) {
		const n = this.nodes[this.focused];
		if (!n)
			return;
		const siblings = n.parent >= 0 ? this.nodes[n.parent].children : [0], at = siblings.indexOf(this.focused);
		const moves = {ArrowUp: n.parent, ArrowDown: n.children[0], ArrowLeft: siblings[at - 1], ArrowRight: siblings[at + 1]};
		if (event.key in moves)
			this.go(moves[event.key]);
		else if (event.key === "Enter" || event.key === " ")
			this.zoom(this.focused);
		else if (event.key === "Escape")
			this.zoom(0);
		else
			return;
		event.preventDefault();
		if (event.key === "Escape" || event.key === "Enter" || event.key === " ")
			this.go(this.focused);
	}
}
