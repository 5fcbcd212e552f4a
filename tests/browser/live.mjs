// SPDX-License-Identifier: Apache-2.0
// live.mjs - a recording that is being written, whose last event is long ago: the page asks politely, stops
// when it is told to or not looked at, and says that nothing comes and why panels are empty.
import {check, equal, load, open, quiet, withBrowser} from "./browser.mjs";

const SECTIONS = ["operations", "gpu", "host", "ranks", "graphs", "flame"];

async function asksIn(page, ms) {
	const before = page.asked.length;
	await page.waitForTimeout(ms);
	return page.asked.slice(before).filter((a) => a.url.includes("/api/"));
}

async function hide(page, hidden) {
	await page.evaluate((is) => {
		Object.defineProperty(document, "hidden", {configurable: true, get: () => is});
		document.dispatchEvent(new Event("visibilitychange"));
	}, hidden);
}

await withBrowser(async (browser) => {
	const page = await open(browser);
	await load(page);
	check("live: said so", (await page.innerText("#recording")).includes("Live") && await page.isVisible("#pause"));
	equal("live: the last five minutes", await page.getAttribute("#windows [data-since='5m']", "aria-pressed"), "true");
	check("live: that nothing comes is said, and since when", /No event for .*idle or have ended/.test(await page.innerText("#banner")), await page.innerText("#banner"));
	check("live: no call in this time is no clean bill of health", (await page.innerText(".verdict")).includes("UNKNOWN"), await page.innerText(".verdict"));
	const overviews = (await asksIn(page, 5200)).filter((a) => a.url.endsWith("/overview")).length;
	check("live: asks about every 2 s", overviews >= 2 && overviews <= 3, overviews);
	await page.click("#pause");
	await page.waitForTimeout(400);
	equal("pause: no more questions", (await asksIn(page, 2600)).length, 0);
	const held = page.asked.length;
	await page.click("#pause");
	await page.waitForTimeout(200);
	check("pause: and on again, at once", page.asked.length > held);
	await hide(page, true);
	await page.waitForTimeout(400);
	equal("hidden: no questions", (await asksIn(page, 2600)).length, 0);
	const unseen = page.asked.length;
	await hide(page, false);
	await page.waitForTimeout(200);
	check("seen again: at once", page.asked.length > unseen);
	for (const id of SECTIONS) {
		await page.evaluate((x) => document.getElementById(x).scrollIntoView(), id);
		await page.waitForSelector(`#${id} .nothing`);
		const said = await page.innerText(`#${id} .nothing`);
		check(`empty: ${id} says why and what to do`, said.length > 40 && /longer|choose|trace|check/.test(said), said);
	}
	await page.click("#windows [data-since='all']");
	await page.waitForSelector(".verdict.high");
	check("live: with all of it, the incident is told", (await page.innerText(".verdict")).includes("rank 2"));
	quiet("live", page);
});
