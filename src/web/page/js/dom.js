// SPDX-License-Identifier: Apache-2.0
// dom.js - elements from data. Every string that reaches the document goes through here as text, with
// what cannot be seen (control characters, marks that turn the direction of text) written out, so that
// a name can neither run, nor restyle, nor disguise itself.
const SVG = "http://www.w3.org/2000/svg";
const UNSEEN = new RegExp("[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u115f\\u1160\\u180e" +
	"\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb" +
	"\\u{e0000}-\\u{e01ef}]", "gu");
const STACKED = /(\p{M}{2})\p{M}+/gu; // marks that would climb over the lines around

const ORDINARY = /^[ -~]*$/; // most text: nothing in it to write out

export function visible(value) {
	const s = String(value);
	return ORDINARY.test(s) ? s : s
		.replace(UNSEEN, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}")
		.replace(STACKED, "$1");
}

function put(node, children) {
	for (const child of children) {
		if (child === null || child === undefined || child === false)
			continue;
		if (Array.isArray(child))
			put(node, child);
		else
			node.append(child instanceof Node ? child : visible(child));
	}
	return node;
}

function make(node, props, children) {
	for (const [name, value] of Object.entries(props || {})) {
		if (value === null || value === undefined || value === false)
			continue;
		if (name === "style")
			for (const [property, v] of Object.entries(value))
				node.style.setProperty(property, v);
		else if (name === "key")
			node.dataset.key = value;
		else
			node.setAttribute(name, value === true ? "" : visible(value));
	}
	return put(node, children);
}

export const el = (tag, props, ...children) => make(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => make(document.createElementNS(SVG, tag), props, children);
export const group = (...children) => put(document.createDocumentFragment(), children);

// name - text that a stranger chose, kept apart from the direction of what stands around it.
export function name(text, most = 120) {
	const s = String(text);
	return s.length > most ? el("bdi", {class: "name", title: s.slice(0, 2000)}, s.slice(0, most - 1) + "\u2026")
		: el("bdi", {class: "name"}, s);
}

const OWN = new Set(["style", "open"]); // style goes its own way, open belongs to the reader

function attributesCopy(from, to) {
	for (const {name: n} of [...from.attributes])
		if (!OWN.has(n) && !to.hasAttribute(n))
			from.removeAttribute(n);
	for (const {name: n, value} of to.attributes)
		if (!OWN.has(n) && from.getAttribute(n) !== value)
			from.setAttribute(n, value);
	if (from.style.cssText !== to.style.cssText)
		from.style.cssText = to.style.cssText;
}

function childrenCopy(from, to) {
	const wanted = new Set([...to.children].map((n) => n.dataset.key).filter(Boolean)), there = new Map();
	for (const n of [...from.children]) {
		const key = n.dataset.key;
		if (key && wanted.has(key) && !there.has(key))
			there.set(key, n);
		else if (key)
			n.remove();
	}
	let at = from.firstChild;
	for (const n of [...to.childNodes]) {
		const key = n.dataset && n.dataset.key;
		const same = key ? there.get(key) : at && at.nodeName === n.nodeName && !(at.dataset && at.dataset.key) ? at : null;
		if (!same) {
			from.insertBefore(n, at);
			continue;
		}
		there.delete(key);
		if (same === at)
			at = at.nextSibling;
		else
			from.insertBefore(same, at);
		become(same, n);
	}
	while (at) {
		const next = at.nextSibling;
		at.remove();
		at = next;
	}
}

// become - makes @from what @to is with the fewest changes: what stays keeps focus, selection, scroll
// position. Children with a key are matched by it. What has data-keep is left as it is.
export function become(from, to) {
	if (from.nodeType === Node.TEXT_NODE) {
		if (from.data !== to.data)
			from.data = to.data;
		return;
	}
	if (from.hasAttribute("data-keep") || from.isEqualNode(to)) // most of a page is as it was, which the browser sees fastest
		return;
	attributesCopy(from, to);
	childrenCopy(from, to);
}

// show - @children as the content of @node.
export function show(node, ...children) {
	const to = node.cloneNode(false);
	put(to, children);
	childrenCopy(node, to);
}
