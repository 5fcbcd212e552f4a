// SPDX-License-Identifier: Apache-2.0
// cluster_large.mjs - the cluster's page with 1,040 ranks in two jobs on 130 nodes: the late rank is seen among a thousand,
// found and opened; zoom by buttons, keys, a rectangle and two fingers; the silent node; nodes by job. With $shots pictures are
// left there.
import {api, check, equal, lateCells, open, picture, quiet, url, withBrowser} from "./browser.mjs";

const LATE = 777, NODE = "gpu-097", RANKS = 1024, POOLED = 256, SILENT = "gpu-003", HUNG = 13;
const PHONE = {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true, deviceScaleFactor: 1, colorScheme: "dark"};
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
const size = (page) => page.evaluate(() => [document.getElementById("heat").width, document.getElementById("heat").height]);

async function load(page, query = "") {
	await page.goto(url + "/" + query);
	await page.waitForFunction(() => document.getElementById("heat").width > 40 && document.querySelectorAll("#nodes .tile").length);
}

async function map(page) {
	const [width, height] = await size(page);
	equal("1,024 ranks: neighbours share a row", height, POOLED);
	const rows = await lateCells(page);
	check("1,024 ranks: the late one is seen among them", rows[Math.floor(LATE / 4)] > width / 3 && rows.filter((n) => n > width / 3).length === 1, rows);
	await page.focus("#heat");
	await page.keyboard.press("Enter");
	await page.waitForSelector("#chosen:not([hidden])");
	check("keys: Enter goes to the newest collective\u2019s latest rank", (await page.innerText("#heat-said")).includes(`rank ${LATE} on ${NODE}`), await page.innerText("#heat-said"));
	await page.keyboard.press("+");
	await page.keyboard.press("+");
	await page.keyboard.press("+");
	const less = await size(page);
	check("keys: + shows fewer, larger cells", Math.abs(less[0] - width / 8) <= 2 && less[1] === RANKS / 8, [width, less]);
	check("keys: the chosen cell stays in view", await page.locator("#heat-cross").isVisible());
	const place = await page.innerText("#heat-said");
	await page.keyboard.press("ArrowDown");
	check("keys: the next rank", (await page.innerText("#heat-said")).includes(`rank ${LATE + 1} on ${NODE}`), [place, await page.innerText("#heat-said")]);
	check("axes: ranks and nodes of what is in view", (await page.locator("#heat-rows span").count()) > 4 && (await page.innerText("#heat-nodes")).includes(NODE), await page.innerText("#heat-nodes"));
	await page.keyboard.press("0");
	equal("keys: 0 shows all again", await size(page), [width, height]);
	await page.click('[data-act="zoom-in"]');
	equal("buttons: zoom", (await size(page))[1], POOLED);
	await page.click('[data-act="zoom-all"]');
	await page.locator("#heat").scrollIntoViewIfNeeded();
	const box = await page.locator("#heat").boundingBox(), y = box.y + (LATE + .5) / RANKS * box.height;
	await page.mouse.move(box.x + box.width * .5, y - 8);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width * .9, y + 8, {steps: 4});
	check("a rectangle: it is shown while it is drawn", await page.locator("#heat-band").isVisible());
	await page.mouse.up();
	const part = await size(page);
	check("a rectangle: zooms to it", part[0] < width * .5 && part[1] < 64 && part[1] > 8, part);
	check("a rectangle: single ranks are to be seen", (await lateCells(page)).filter((n) => n > 0).length === 1, await lateCells(page));
	await page.mouse.move(box.x + box.width * .5, box.y + box.height * .5);
	await page.keyboard.down("Control");
	await page.mouse.wheel(0, 500);
	await page.keyboard.up("Control");
	check("Ctrl and the wheel: zooms out", (await size(page))[1] > part[1], await size(page));
	await page.click('[data-act="zoom-all"]');
}

async function found(page) {
	await page.keyboard.press("Escape");
	await page.waitForSelector("#chosen[hidden]", {state: "attached"});
	await page.keyboard.press("/");
	await page.keyboard.type(String(LATE));
	await page.keyboard.press("Enter");
	await page.waitForSelector("#chosen .steps");
	const said = await page.innerText("#chosen");
	check("a rank by its number: where it runs and why it is slow", said.includes(`Rank ${LATE}`) && said.includes(NODE) && said.includes("rsync keeps busy") && said.includes("disk takes 80.0"), said);
	equal("a rank: the address says it", new URL(page.url()).searchParams.get("rank"), String(LATE));
	equal("a rank: a link to its node\u2019s own page", await page.locator("#chosen .reach a").getAttribute("href"), `https://${NODE}.example:8080/`);
	equal("a rank: its panel has the focus", await page.evaluate(() => document.activeElement.id), "chosen-title");
	await page.fill("#find-text", "3");
	await page.press("#find-text", "Enter");
	await page.waitForFunction(() => document.querySelectorAll("#chosen article").length === 2);
	check("a number that two jobs have: both are shown", /gpu-000[^]*lab-0|lab-0[^]*gpu-000/.test(await page.innerText("#chosen")), await page.innerText("#chosen"));
	await page.goBack();
	await page.waitForFunction((n) => document.getElementById("chosen-title").textContent === `Rank ${n}`, LATE);
	await page.fill("#find-text", SILENT);
	await page.press("#find-text", "Enter");
	await page.waitForFunction((n) => document.getElementById("chosen-title").textContent === `Node ${n}` && document.querySelectorAll("#chosen tbody tr").length === 8, SILENT);
	check("a node by its name: its ranks", /rank 24\b[^]*rank 31\b/.test((await page.innerText("#chosen table")).split("\n").sort().join("\n")), await page.innerText("#chosen table"));
}

async function hang(page) {
	await page.waitForSelector("#hangs .episode");
	const said = await page.innerText("#hangs");
	check("a hang: who is missing, how many wait", said.includes(`15 ranks wait in AllReduce 49 for rank ${HUNG} on lab-1`), said);
	// Each part of the page asks by itself.
	await page.waitForFunction((n) => document.getElementById("blame").innerText.includes(`ank ${n} on lab-1`), HUNG).catch(() => {});
	const all = await page.innerText("#blame");
	check("a hang: told at the top", all.includes(`ank ${HUNG} on lab-1`) && (await page.locator("#blame .critical").count()) > 0, all);
	await page.click(`#hangs a[data-rank="${HUNG}"]`);
	await page.waitForFunction((n) => document.getElementById("chosen-title").textContent === `Rank ${n}` && document.querySelectorAll("#chosen article").length === 1, HUNG);
	check("a hang: leads to the rank, of its own job", (await page.innerText("#chosen")).includes("lab-1"), await page.innerText("#chosen"));
}

async function machines(page) {
	await page.waitForSelector("#nodes .silent", {timeout: 30000});
	const silent = await page.innerText("#nodes .silent");
	check("the silent node: since when, and which ranks ran there", silent.includes(SILENT) && silent.includes("ranks 24\u201331") && /heard [\d.]+/.test(silent), silent);
	check("the silent node: counted", /Nodes\s+130\s+1 silent/.test(await page.innerText("#blame .figures")), await page.innerText("#blame .figures"));
	const jobs = await page.locator("#nodes .job h3").allInnerTexts();
	equal("nodes by job: both jobs", jobs.sort(), ["Job of 1,024 ranks on 128 nodes", "Job of 16 ranks on 2 nodes"]);
	const large = page.locator("#nodes .job").filter({hasText: "1,024 ranks"});
	equal("nodes by job: all of them", await large.locator(".tile").count(), 128);
	const tiles = await large.locator(".tile").evaluateAll((list) => list.map((t) => [t.dataset.node, t.matches(".high, .critical")])), well = tiles.findIndex(([, bad]) => !bad);
	check("nodes by job: those with trouble first", tiles.slice(well).every(([, bad]) => !bad) && [SILENT, NODE].every((n) => tiles.slice(0, well).some(([node]) => node === n)), tiles);
	check("the table: a part, and all of it", (await page.locator("#nodes tbody tr").count()) === 40);
	await page.click('[data-act="all-nodes"]');
	equal("the table: all", await page.locator("#nodes tbody tr").count(), 130);
}

async function desktop(browser) {
	const page = await open(browser, {colorScheme: "dark"});
	await load(page);
	const b = await api(page, "blame");
	check("1,024 ranks: the service names the late one (control)", b.episodes.some((e) => e.rank === LATE && e.node === NODE), b.episodes.map((e) => e.text));
	await page.click("#pause");
	await map(page);
	await page.click("#pause");
	await found(page);
	await hang(page);
	await machines(page);
	equal("1,024 ranks: nothing sticks out", await overflow(page), 0);
	// A turn asks for newer columns only: of 200 KB little is sent again.
	const again = page.asked.filter((a) => a.url.includes("/heatmap?")).slice(1);
	check("heat map: only newer columns are asked for", again.length && again.every((a) => /after=\d+/.test(a.url)), again.map((a) => a.url));
	await page.fill("#find-text", String(LATE));
	await page.press("#find-text", "Enter");
	await page.waitForSelector("#chosen .steps");
	await picture(page, "cluster-large", 1900);
	quiet("1,024 ranks", page);
}

// Two fingers that part, as a touch screen tells of them.
async function pinch(page, box) {
	const touch = await page.context().newCDPSession(page), x = box.x + box.width / 2, y = box.y + box.height / 2;
	const send = (type, d) => touch.send("Input.dispatchTouchEvent", {type, touchPoints: d === null ? [] : [{x: x - d, y: y - d, id: 0}, {x: x + d, y: y + d, id: 1}]});
	await send("touchStart", 20);
	for (const d of [30, 45, 60, 80])
		await send("touchMove", d);
	await send("touchEnd", null);
}

async function phone(browser) {
	const page = await open(browser, PHONE);
	await load(page, `?rank=${LATE}&node=${NODE}`);
	await page.waitForSelector("#chosen .steps");
	equal("phone, 1,024 ranks: no scrolling to the side", await overflow(page), 0);
	const before = await size(page);
	await page.locator("#heat").scrollIntoViewIfNeeded();
	await pinch(page, await page.locator("#heat").boundingBox());
	const after = await size(page);
	check("phone: two fingers zoom", after[0] < before[0], [before, after]);
	const lines = await page.locator("#nodes td.state").filter({hasText: /^active$/}).first().evaluate((td) => { const r = document.createRange(); r.selectNodeContents(td); return r.getClientRects().length; });
	equal("phone: a state is not broken", lines, 1);
	await page.click('[data-act="zoom-all"]');
	await picture(page, "cluster-large-phone");
	quiet("phone, 1,024 ranks", page);
}

await withBrowser(async (browser) => {
	await desktop(browser);
	await phone(browser);
});
