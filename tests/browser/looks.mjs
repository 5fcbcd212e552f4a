// SPDX-License-Identifier: Apache-2.0
// looks.mjs - light and dark, a laptop and a phone: readable, nothing cut off, all of it by keyboard. With
// $shots pictures are left there.
import {check, equal, load, open, panel, quiet, shots, withBrowser} from "./browser.mjs";

const SECTIONS = ["health", "incidents", "steps", "operations", "gpu", "host", "ranks", "graphs", "flame", "agent", "sql"];
const PHONE = {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true, deviceScaleFactor: 1};

async function all(page) {
	for (const id of SECTIONS.filter((s) => s !== "sql"))
		await panel(page, id);
}

// Text whose contrast with what is behind it is below WCAG's AA; colours are asked of a canvas, whatever they are written in.
function tooFaint() {
	const ctx = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const rgba = (c) => { ctx.clearRect(0, 0, 1, 1); ctx.fillStyle = c; ctx.fillRect(0, 0, 1, 1); return [...ctx.getImageData(0, 0, 1, 1).data]; };
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return rgba("Canvas"); };
	const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), bad = new Map();
	let looked = 0;
	while (walker.nextNode()) {
		const e = walker.currentNode.parentElement, style = getComputedStyle(e);
		if (!walker.currentNode.data.trim() || !e.checkVisibility({visibilityProperty: true}) || e.closest(".unseen, svg, option, .frame.above"))
			continue;
		looked++;
		const a = light(rgba(style.color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700);
		if (ratio < (large ? 3 : 4.5))
			bad.set(`${e.className || e.tagName}: ${walker.currentNode.data.trim().slice(0, 30)}`, ratio.toFixed(2));
	}
	return {looked, bad: [...bad].slice(0, 10)};
}

const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const picture = (page, name, options = {}) => shots ? page.screenshot({path: `${shots}/${name}.png`, ...options}) : null;

async function desktop(browser, colorScheme) {
	const page = await open(browser, {colorScheme, viewport: {width: 1280, height: 860}});
	await load(page);
	await picture(page, `dashboard-${colorScheme}`);
	await all(page);
	await page.locator("details.incident").nth(1).locator("summary").first().click();
	const faint = await page.evaluate(tooFaint);
	check(`${colorScheme}: contrast of all text is AA`, faint.looked > 200 && !faint.bad.length, faint);
	equal(`${colorScheme}: nothing sticks out`, await overflow(page), 0);
	return page;
}

async function pictures(page) {
	if (!shots)
		return;
	await page.setViewportSize({width: 1280, height: 1120});
	await page.evaluate(() => document.querySelectorAll("details.incident")[1].scrollIntoView());
	await picture(page, "dashboard-incident");
	await page.locator("details.incident").nth(1).locator("summary").first().click();
	await page.setViewportSize({width: 1280, height: 900});
	await panel(page, "flame");
	await picture(page, "dashboard-flame");
	await panel(page, "gpu");
	await page.locator("#gpu .plot").first().hover({position: {x: 150, y: 40}});
	await picture(page, "dashboard-gpu");
}

async function themes(page) {
	const seen = [await ground(page)];
	for (let i = 0; i < 3; i++) {
		await page.click("#theme");
		seen.push(await ground(page));
	}
	check("theme: auto, dark, light, auto", seen[0] === seen[3] && new Set(seen).size === 2 && seen[1] !== seen[2], seen);
	await page.click("#theme");
	const dark = await ground(page);
	await page.reload();
	await page.waitForSelector(".verdict");
	equal("theme: the choice is kept", await ground(page), dark);
	await page.click("#theme");
	await page.click("#theme");
}

async function keyboard(page) {
	await page.locator(".skip").focus();
	const order = [];
	for (let i = 0; i < 24; i++) {
		await page.keyboard.press("Tab");
		order.push(await page.evaluate(() => { const e = document.activeElement; return e.id || e.dataset.since || e.dataset.act || (e.hash || e.tagName).toLowerCase(); }));
	}
	check("keyboard: times, refresh, theme, sections, the verdict's button, incidents", ["1m", "all", "refresh", "theme", "#incidents", "open", "summary"].every((x) => order.includes(x)), order);
	check("keyboard: what has the focus can be seen", await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle !== "none"));
	await page.locator("details.incident > summary").nth(2).focus();
	await page.keyboard.press("Enter");
	check("keyboard: Enter opens an incident", await page.locator("details.incident").nth(2).evaluate((d) => d.open));
	await page.keyboard.press("Enter");
	const unnamed = await page.evaluate(() => [...document.querySelectorAll("button, a, input, select, textarea, [role=img], [role=region], [role=tree]")]
		.filter((e) => e.checkVisibility() && !(e.getAttribute("aria-label") || e.textContent.trim() || (e.labels && e.labels.length && e.labels[0].textContent.trim()))).map((e) => e.outerHTML.slice(0, 80)));
	equal("every control and chart has a name", unnamed, []);
}

// What the reader does is kept when the page is refreshed.
async function refresh(page) {
	await panel(page, "operations");
	const second = page.locator("details.incident").nth(1);
	if (!await second.evaluate((d) => d.open))
		await second.locator("summary").first().click();
	await page.waitForSelector("[aria-label='Rows that show it']");
	await page.evaluate(() => {
		const row = document.querySelector("#operations tbody th bdi").firstChild;
		getSelection().setBaseAndExtent(row, 0, row, 4);
		document.querySelector("#operations").scrollIntoView();
		document.querySelector("#operations thead button").focus({preventScroll: true});
		window.kept = [row.parentElement, scrollY, document.activeElement, document.querySelectorAll("details.incident")[1]];
	});
	const asked = page.asked.length;
	await page.evaluate(() => document.getElementById("refresh").click());
	await page.waitForTimeout(800);
	check("refresh: asks anew", page.asked.length > asked + 3, page.asked.length - asked);
	equal("refresh: selection, place, focus, opened incident are kept", await page.evaluate(() => [String(getSelection()).length, window.kept[0].isConnected,
		scrollY === window.kept[1], document.activeElement === window.kept[2], window.kept[3].isConnected && window.kept[3].open]), [4, true, true, true, true]);
}

async function phone(browser) {
	const page = await open(browser, PHONE);
	await load(page);
	await picture(page, "dashboard-phone");
	await all(page);
	await page.locator("details.incident").nth(1).locator("summary").first().tap();
	equal("phone: no sideways scrolling at 390 px", await overflow(page), 0);
	const small = await page.evaluate(() => [...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) &&
		!e.closest(".unseen, svg") && parseFloat(getComputedStyle(e).fontSize) < 10).map((e) => e.className || e.tagName));
	equal("phone: no text below 10 px", small, []);
	const cut = await page.evaluate(() => [...document.querySelectorAll(".verdict p, .incident .what, .figures dd, h2, .lead, .comm .line")].filter((e) => e.checkVisibility() && !e.matches(".unseen") && e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent));
	equal("phone: nothing is cut off", cut, []);
	await page.evaluate(() => document.getElementById("ranks").scrollIntoView());
	check("phone: the sections stay at hand", await page.locator("nav a", {hasText: "Ranks"}).evaluate((a) => a.getBoundingClientRect().top < 60 && a.getBoundingClientRect().top >= -1));
	quiet("phone", page);
	await page.context().close();
}

await withBrowser(async (browser) => {
	const light = await desktop(browser, "light");
	await pictures(light);
	await themes(light);
	await keyboard(light);
	await refresh(light);
	quiet("light", light);
	const dark = await desktop(browser, "dark");
	quiet("dark", dark);
	await phone(browser);
});
