// SPDX-License-Identifier: Apache-2.0
// wide.mjs - 64 ranks, 8 GPUs, three hours: readable, and lines that can be switched off. With $shots a picture is left there.
import {check, equal, load, open, panel, quiet, shots, url, withBrowser} from "./browser.mjs";

const params = (page) => new URL(page.url()).searchParams;
const lines = (page, n) => page.locator("#gpu .chart").nth(n).locator(".lines path[data-line]");
const looks = (page) => lines(page, 0).evaluateAll((l) => l.map((p) => { const s = getComputedStyle(p); return `${s.stroke} ${s.strokeDasharray}`; }));

async function settle(page) {
	await page.waitForFunction(() => !document.querySelector("#tl-area").hidden && !document.querySelector("#tl-area").hasAttribute("aria-busy"));
	await page.waitForTimeout(300);
	await page.waitForFunction(() => !document.querySelector("#tl-area").hasAttribute("aria-busy"));
}

async function legend(page) {
	await panel(page, "gpu");
	const all = await looks(page), names = await page.locator("#gpu .chart").first().locator("[data-act=line] bdi").allInnerTexts();
	equal("8 GPUs: a line each", names, Array.from({length: 8}, (_, n) => `GPU ${n}`));
	equal("8 GPUs: each with a look of its own", new Set(all).size, 8);
	equal("8 GPUs: colours alone tell them apart, and so do dashes", [new Set(all.map((x) => x.replace(/\).*/, ""))).size, new Set(all.map((x) => x.replace(/.*\)/, ""))).size], [8, 8]);
	const entry = (n) => page.locator("#gpu .chart").first().locator("[data-act=line]").nth(n);
	await entry(3).click();
	equal("legend: a click takes a line away, in all charts", [await lines(page, 0).count(), await lines(page, 2).count(), await entry(3).getAttribute("aria-pressed")], [7, 7, "false"]);
	equal("legend: in the address", params(page).get("hide"), "GPU%203");
	await entry(5).hover();
	equal("legend: the line that is pointed at stands out", await page.locator("#gpu .lines path.lit").evaluateAll((l) => [...new Set(l.map((p) => p.dataset.line))]), ["GPU 5"]);
	await page.reload();
	await panel(page, "gpu");
	equal("legend: kept over a reload", await lines(page, 0).count(), 7);
	await entry(5).click({modifiers: ["Shift"]});
	equal("legend: Shift shows only this one", await lines(page, 0).evaluateAll((l) => l.map((p) => p.dataset.line)), ["GPU 5"]);
	await entry(5).click({modifiers: ["Shift"]});
	equal("legend: and all again", [await lines(page, 0).count(), params(page).get("hide")], [8, null]);
	await entry(0).focus();
	await page.keyboard.press("Enter");
	equal("legend: by keyboard", await lines(page, 0).count(), 7);
	await page.keyboard.press("Enter");
	const spoken = await page.locator("#gpu .plot").first().getAttribute("aria-label");
	check("8 GPUs: charts have a text", spoken.includes("GPU 7: now"), spoken);
}

async function ranks(page) {
	const place = await panel(page, "ranks");
	equal("64 ranks: a cell each", await place.locator(".heat li").count(), 64);
	check("64 ranks: the late one is named", (await place.innerText()).includes("Rank 2 delays the others"), await place.innerText());
	await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
	await settle(page);
	await page.waitForFunction(() => document.querySelectorAll(".tl-label").length >= 64);
	const labels = await page.locator(".tl-label").allInnerTexts(), at = (n) => labels.findIndex((l) => l.includes(`rank ${n} `));
	check("64 ranks: a row each on the time line, in their order", Array.from({length: 64}, (_, n) => at(n)).every((y, n, l) => y >= 0 && (!n || y > l[n - 1])), labels);
	equal("8 GPUs: a row each", labels.filter((l) => l.includes("GPU ")).length, 8);
	const now = await page.innerText("#tl-now");
	check("hours: in sight at once", /3\sh \d+\smin shown/.test(now), now);
	await page.click("#tl-kinds [data-kind=gpu]");
	await settle(page);
	equal("tracks: a kind can be switched off", (await page.locator(".tl-label").allInnerTexts()).filter((l) => l.includes("GPU ")).length, 0);
	await page.click("#tl-kinds [data-kind=gpu]");
	await page.goto(`${url}/?view=2026-11-15T08:55:38.0Z~2026-11-15T08:55:38.1Z#timeline`);
	await settle(page);
	await page.waitForFunction(() => document.querySelectorAll(".tl-label").length >= 64);
	const area = await page.locator("#tl-area").boundingBox(), row = await page.locator(".tl-label", {hasText: "rank 40 "}).evaluate((e) => { e.scrollIntoView({block: "center"}); return e.getBoundingClientRect().y; });
	await page.waitForTimeout(200);
	await page.mouse.move(area.x + 700, row + 8);
	check("64 ranks: whom a rank waits for", /waited .* for rank 2/.test(await page.textContent("#tl-tip")), await page.textContent("#tl-tip"));
	equal("64 ranks: nothing sticks out", await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
	if (!shots)
		return;
	await page.setViewportSize({width: 900, height: 640});
	await page.goto(`${url}/?view=2026-11-15T08:55:38.01Z~2026-11-15T08:55:38.04Z#timeline`);
	await settle(page);
	await page.waitForTimeout(1500);
	await page.evaluate(() => { document.getElementById("tl-scroll").scrollTop = 0; document.getElementById("timeline").scrollIntoView(); });
	await settle(page);
	await page.screenshot({path: `${shots}/timeline-ranks.png`});
	await page.setViewportSize({width: 1280, height: 800});
}

await withBrowser(async (browser) => {
	const page = await open(browser);
	await load(page);
	await legend(page);
	await ranks(page);
	quiet("wide", page);
});
