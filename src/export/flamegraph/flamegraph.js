// SPDX-License-Identifier: Apache-2.0
// Zoom, search and a line about the frame under the pointer. The picture stands without it: what is
// drawn, where, and every name are in the document; this only moves, hides and labels it anew.
(function () {
	"use strict";
	const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
	const script = document.currentScript;
	const root = (script && script.ownerSVGElement) || document.documentElement;
	const area = root.querySelector("#frames");
	const left = +area.dataset.x, width = +area.dataset.width, letter = +area.dataset.letter;
	const frames = Array.from(area.children, function (g) {
		const rect = g.querySelector("rect"), title = g.querySelector("title").textContent;
		const lines = title.split("\n");
		return {
			g: g, rect: rect, name: lines[0], about: lines.join("  \u2014  "),
			x: +rect.getAttribute("x"), w: +rect.getAttribute("width"), y: +rect.getAttribute("y"),
		};
	});
	const byGroup = new Map(frames.map(function (f) { return [f.g, f]; }));
	const details = root.querySelector("#details"), hint = "Click a frame to zoom in, Esc to see all.";
	let zoomed = frames[0];

	function tool(text, x, y, action) {
		const t = document.createElementNS(SVG, "text");
		t.setAttribute("class", "tool");
		t.setAttribute("x", x);
		t.setAttribute("y", y);
		t.setAttribute("role", "button");
		t.textContent = text;
		t.addEventListener("click", action);
		root.appendChild(t);
		return t;
	}

	function fitted(name, w) {
		const room = Math.floor((w - 6) / letter);
		return room < 3 ? "" : name.length <= room ? name : name.slice(0, room - 1) + "\u2026";
	}

	function place(f, x, w) {
		let text = f.g.querySelector("text");
		const label = fitted(f.name, w);
		f.rect.setAttribute("x", x);
		f.rect.setAttribute("width", w);
		if (!text && label) {
			text = document.createElementNS(SVG, "text");
			text.setAttribute("y", f.y + 12);
			f.g.appendChild(text);
		}
		if (text) {
			text.textContent = label;
			text.setAttribute("x", x + 3);
		}
	}

	// A frame above the one zoomed to fills the width; one outside it is not shown.
	function zoom(to) {
		const scale = width / to.w, end = to.x + to.w;
		zoomed = to;
		for (const f of frames) {
			const above = f.y < to.y && f.x <= to.x + .01 && f.x + f.w >= end - .01;
			const inside = f.y >= to.y && f.x >= to.x - .01 && f.x + f.w <= end + .01;
			f.g.style.display = above || inside ? "" : "none";
			f.g.classList.toggle("up", above);
			if (above)
				place(f, left, width);
			else if (inside)
				place(f, left + (f.x - to.x) * scale, f.w * scale);
		}
		reset.style.display = to === frames[0] ? "none" : "";
	}

	// The share is that of the outermost frames found: one inside another is not counted twice.
	function search(words) {
		const wanted = words.trim().toLowerCase();
		let sum = 0, end = -1;
		root.classList.toggle("seeking", wanted !== "");
		for (const f of frames) {
			const hit = wanted !== "" && f !== frames[0] && f.name.toLowerCase().includes(wanted);
			f.g.classList.toggle("hit", hit);
			if (hit && f.x >= end - .001) {
				sum += f.w;
				end = f.x + f.w;
			}
		}
		matched.textContent = wanted === "" ? "" :
			"matched " + (100 * sum / frames[0].w).toFixed(1) + " %";
	}

	const right = left + width;
	const reset = tool("Reset zoom", right - 420, 24, function () { zoom(frames[0]); });
	const matched = tool("", right - 330, 24, function () {});
	const holder = document.createElementNS(SVG, "foreignObject");
	const input = document.createElementNS(HTML, "input");
	matched.setAttribute("class", "plain");
	for (const [key, value] of [["x", right - 220], ["y", 8], ["width", 220], ["height", 24]])
		holder.setAttribute(key, value);
	input.setAttribute("type", "search");
	input.setAttribute("placeholder", "Search frames");
	input.addEventListener("input", function () { search(input.value); });
	holder.appendChild(input);
	root.appendChild(holder);

	area.addEventListener("click", function (event) {
		const f = byGroup.get(event.target.closest(".f"));
		if (f)
			zoom(f === zoomed ? frames[0] : f);
	});
	area.addEventListener("mouseover", function (event) {
		const f = byGroup.get(event.target.closest(".f"));
		details.textContent = f ? f.about : hint;
	});
	area.addEventListener("mouseleave", function () { details.textContent = hint; });
	document.addEventListener("keydown", function (event) {
		if (event.key !== "Escape")
			return;
		input.value = "";
		search("");
		zoom(frames[0]);
	});
	reset.style.display = "none";
	details.textContent = hint;
	root.classList.add("live");
})();
