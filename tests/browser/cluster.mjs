// SPDX-License-Identifier: Apache-2.0
// cluster.mjs - the cluster's page on the demo's 64 ranks, of which rank 41 is late: who and what it costs, as the API
// says it; the heat map's pixels; arrivals by mouse and keyboard; light, dark and a phone. With $shots pictures are left there.
import {api, check, equal, open, quiet, shots, url, withBrowser} from "./browser.mjs";

const LATE = 41, RANKS = 64;
const PHONE = {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true, deviceScaleFactor: 1};
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const picture = (page, name) => shots ? page.screenshot({path: `${shots}/${name}.png`, fullPage: true}) : null;

async function load(page) {
	await page.goto(url);
	await page.waitForSelector("#blame .verdict.high");
	await page.waitForFunction((n) => document.getElementById("heat").height === n && document.querySelector("#nodes .body table, #nodes .body tr"), RANKS);
}

// Of the newest 60 collectives, every other of which the rank is late for: the share of pixels that differ from the picture's
// most frequent colour, by row.
function unusual() {
	const canvas = document.getElementById("heat"), {width, height} = canvas;
	const words = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer), counts = new Map();
	words.forEach((w) => counts.set(w, (counts.get(w) || 0) + 1));
	const usual = [...counts].sort((a, b) => b[1] - a[1])[0][0];
	return {width, colours: counts.size, rows: Array.from({length: height}, (_, y) => words.subarray((y + 1) * width - 60, (y + 1) * width).filter((w) => w !== usual).length / 60)};
}

async function desktop(browser) {
	const page = await open(browser);
	await load(page);
	await page.click("#pause");
	const said = await page.innerText("#blame .verdict"), all = await page.innerText("#blame");
	const b = await api(page, "blame"), e = b.episodes[0];
	equal("cluster: the API names the late rank (control)", [e.rank, e.node, e.problem], [LATE, "node-5", "straggler"]);
	check("cluster: the late rank and its node", said.includes(`rank ${LATE} on ${e.node}`), said);
	check("cluster: why, and what helps", e.cause && said.includes(e.cause), said);
	check("cluster: the fix", said.includes("Fix: ") && said.includes(e.fix), said);
	check("cluster: what it costs", /costs \$\d+\.\d\d\/h/.test(said) && /\$\d+\.\d\d\/h/.test(all.replace(said, "")), all);
	check("cluster: the title says that something is wrong", (await page.title()).startsWith("\u25b2"), await page.title());
	const first = await page.innerText("#ranks table tbody tr:first-child");
	check("cluster: it is the first of the late ranks", new RegExp(`^${LATE}\\b`).test(first), first);
	check("cluster: its nodes", (await page.locator("#nodes tbody tr").count()) === 8, await page.innerText("#nodes"));
	check("cluster: its episode", (await page.innerText("#episodes")).includes(`rank ${LATE} on`), await page.innerText("#episodes"));
	const seen = await page.evaluate(unusual), others = seen.rows.filter((_, y) => y !== LATE);
	equal("heat map: a row for each rank", seen.rows.length, RANKS);
	check("heat map: many collectives, several colours", seen.width >= 60 && seen.colours >= 2, seen);
	check("heat map: the late rank's row stands out", seen.rows[LATE] > 0.4 && seen.rows[LATE] > Math.max(...others), seen);

	await page.locator("#heat").scrollIntoViewIfNeeded();
	const box = await page.locator("#heat").boundingBox();
	await page.mouse.click(box.x + box.width * 0.9, box.y + (LATE + 0.5) / RANKS * box.height);
	await page.waitForSelector("#arrivals .arrivals span");
	equal("arrivals: all ranks", await page.locator("#arrivals .arrivals span").count(), RANKS);
	check("arrivals: the rank below the pointer is named", (await page.innerText("#heat-said")).includes(`rank ${LATE} `), await page.innerText("#heat-said"));
	const title = await page.innerText("#arrivals h3");
	await page.focus("#heat");
	await page.keyboard.press("ArrowLeft");
	await page.keyboard.press("Enter");
	await page.waitForFunction((t) => document.querySelector("#arrivals h3").textContent !== t, title).catch(() => {});
	check("arrivals: by keyboard", (await page.innerText("#arrivals h3")) !== title, title);
	equal("cluster: nothing sticks out", await overflow(page), 0);
	await picture(page, "cluster-light");
	quiet("cluster", page);
}

async function small(browser, colorScheme) {
	const page = await open(browser, {...PHONE, colorScheme});
	await load(page);
	equal(`phone, ${colorScheme}: no scrolling to the side`, await overflow(page), 0);
	const box = await page.locator("#heat").boundingBox();
	check(`phone, ${colorScheme}: the heat map is all in sight`, box.x >= 0 && box.width > 200 && box.x + box.width <= PHONE.viewport.width, box);
	check(`phone, ${colorScheme}: it is drawn`, (await page.evaluate(unusual)).rows[LATE] > 0.4);
	await picture(page, `cluster-phone-${colorScheme}`);
	quiet(`phone, ${colorScheme}`, page);
}

await withBrowser(async (browser) => {
	await desktop(browser);
	await small(browser, "light");
	await small(browser, "dark");
});
