// SPDX-License-Identifier: Apache-2.0
// timeline_input.js - wheel, mouse, fingers and keys on the time line. The wheel zooms where the time line has the focus, or with
// Ctrl; otherwise it scrolls the page, which would else end here. One finger moves sideways, two zoom.
const STEP = 1.35, SHARE = 0.15, CLICK_PX = 4, LINE_PX = 16;

export const KEYS = [["w or +", "zoom in"], ["s or \u2212", "zoom out"], ["a or \u2190, d or \u2192", "move"], ["\u2191, \u2193", "another track"], [", and .", "the event before, after, in this track"],
	["Enter", "open the event"], ["m", "select the visible range"], ["f", "zoom to the selection"], ["0", "the whole recording"], ["/", "search"], ["n, N", "next, previous hit"],
	["t", "as a table"], ["Esc", "close, deselect"], ["?", "this help"]];

export class Input {
	constructor(area, act) {
		Object.assign(this, {area, act, pointers: new Map(), drag: null});
		area.addEventListener("wheel", (e) => this.wheel(e), {passive: false});
		area.addEventListener("pointerdown", (e) => this.down(e));
		area.addEventListener("pointermove", (e) => this.move(e));
		for (const kind of ["pointerup", "pointercancel"])
			area.addEventListener(kind, (e) => this.up(e));
		area.addEventListener("pointerleave", () => act.hover(null));
		area.addEventListener("dblclick", (e) => act.zoom(1 / 4, this.at(e)));
		area.addEventListener("keydown", (e) => this.key(e));
	}

	at(e) {
		const box = this.area.getBoundingClientRect();
		return {x: e.clientX - box.left, y: e.clientY - box.top};
	}

	wheel(e) {
		const focused = this.area.contains(document.activeElement), size = e.deltaMode ? LINE_PX : 1;
		if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
			e.preventDefault();
			return this.act.pan((e.deltaX || e.deltaY) * size);
		}
		if (!e.ctrlKey && !e.metaKey && !focused)
			return null;
		e.preventDefault();
		return this.act.zoom(STEP ** (Math.max(-200, Math.min(200, e.deltaY * size)) / 100), this.at(e));
	}

	down(e) {
		if (e.pointerType === "mouse" && (e.button !== 0 || e.target.closest("button")))
			return; // fingers may start on a label, which is beneath them on a phone
		this.area.focus({preventScroll: true});
		this.pointers.set(e.pointerId, this.at(e));
		if (this.pointers.size === 2)
			this.drag = {pinch: this.spread()};
		else
			this.drag = {start: this.at(e), last: this.at(e), selects: e.shiftKey || this.act.selecting(), moved: false};
		if (e.pointerType === "mouse")
			this.area.setPointerCapture(e.pointerId);
	}

	spread() {
		const [a, b] = [...this.pointers.values()];
		return {width: Math.max(Math.abs(a.x - b.x), 10), x: (a.x + b.x) / 2};
	}

	move(e) {
		const p = this.at(e);
		if (!this.pointers.has(e.pointerId))
			return e.pointerType === "mouse" ? this.act.hover(p) : null;
		this.pointers.set(e.pointerId, p);
		if (this.drag.pinch) {
			const now = this.spread(), before = this.drag.pinch;
			this.drag.pinch = now;
			this.act.pan(before.x - now.x);
			return this.act.zoom(before.width / now.width, now);
		}
		this.drag.moved = this.drag.moved || Math.abs(p.x - this.drag.start.x) > CLICK_PX;
		if (!this.drag.moved)
			return null;
		if (this.drag.selects)
			this.act.select(this.drag.start.x, p.x);
		else
			this.act.pan(this.drag.last.x - p.x, this.drag.last.y - p.y, e.pointerType);
		this.drag.last = p;
		return null;
	}

	up(e) {
		const was = this.drag;
		if (!this.pointers.delete(e.pointerId))
			return;
		this.drag = this.pointers.size ? {start: this.at(e), last: [...this.pointers.values()][0], selects: false, moved: true} : null;
		if (e.type === "pointerup" && was && !was.pinch && !was.moved && !e.target.closest("button"))
			this.act.click(this.at(e));
		else if (was && was.selects && was.moved)
			this.act.selected();
	}

	key(e) {
		if (e.ctrlKey || e.metaKey || e.altKey)
			return;
		const act = this.act, pan = (n) => () => act.pan(n * SHARE * this.area.clientWidth), zoom = (n) => () => act.zoom(n, null);
		const keys = {w: zoom(1 / STEP), "+": zoom(1 / STEP), "=": zoom(1 / STEP), s: zoom(STEP), "-": zoom(STEP), a: pan(-1), ArrowLeft: pan(-1), d: pan(1), ArrowRight: pan(1),
			ArrowUp: () => act.track(-1), ArrowDown: () => act.track(1), ",": () => act.step(-1), ".": () => act.step(1), Enter: () => act.open(), m: () => act.selectView(), f: () => act.fit(),
			0: () => act.all(), Home: () => act.all(), "/": () => act.find(), n: () => act.hit(1), N: () => act.hit(-1), t: () => act.table(), Escape: () => act.escape(), "?": () => act.help()};
		if (e.target !== this.area && e.key !== "?" && e.key !== "Escape")
			return; // a label's own keys
		if (!Object.hasOwn(keys, e.key))
			return;
		e.preventDefault();
		keys[e.key]();
	}
}
