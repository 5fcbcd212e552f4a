// SPDX-License-Identifier: Apache-2.0
// cluster.mjs - the cluster's page on the demo's 64 ranks, of which rank 41 is late: who and what it costs, as the API
// says it; the heat map's pixels; arrivals by mouse and keyboard; its account; incidents; what the cluster's memory adds, and
// that nothing is said where there is none; light, dark and a phone. With $shots pictures are left there.
import {api, check, detail, equal, lateCells, open, picture, quiet, url, withBrowser} from "./browser.mjs";

const LATE = 41, RANKS = 64;
const PHONE = {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true, deviceScaleFactor: 1};
const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

async function load(page, query = "") {
	await page.goto(url + "/" + query);
	await page.waitForSelector("#blame .verdict.high");
	await page.waitForFunction((n) => document.getElementById("heat").height === n && document.querySelector("#nodes .body table, #nodes .body tr"), RANKS);
}

async function verdict(page) {
	const said = await page.innerText("#blame .verdict"), all = await page.innerText("#blame");
	const b = await api(page, "blame"), e = b.episodes[0];
	equal("cluster: the API names the late rank (control)", [e.rank, e.node, e.problem], [LATE, "node-5", "straggler"]);
	check("cluster: the late rank and its node", said.toLowerCase().includes(`rank ${LATE} on ${e.node}`), said);
	check("cluster: why, and what helps", e.cause && said.toLowerCase().includes(e.cause.toLowerCase()), said);
	check("cluster: the fix", said.includes("Fix: ") && said.includes(e.fix), said);
	check("cluster: what it costs", /costs \$\d+\.\d\d\/h/.test(said) && /\$\d+\.\d\d\/h/.test(all.replace(said, "")), all);
	check("cluster: the title says that something is wrong", (await page.title()).startsWith("\u25b2"), await page.title());
	const cost = await page.innerText("#cost .body");
	check("cost: because of whom, and a day of it", cost.includes(`rank ${LATE} on node-5`) && /at this rate \$\d+ a day/.test(cost), cost);
	const first = await page.innerText("#ranks > .body tbody tr:first-child");
	check("cluster: it is the first of the late ranks", new RegExp(`^${LATE}\\b`).test(first), first);
	check("cluster: its nodes", (await page.locator("#nodes tbody tr").count()) === 8, await page.innerText("#nodes"));
	equal("nodes by job: the job", await page.locator("#nodes .job h3").allInnerTexts(), ["Job of 64 ranks on 8 nodes"]);
	check("nodes by job: the late rank\u2019s node stands first", (await page.locator("#nodes .tile").first().innerText()).includes(`late: rank ${LATE}`), await page.innerText("#nodes .tiles"));
	check("hangs: none", (await page.innerText("#hangs")).includes("No hangs"), await page.innerText("#hangs"));
}

async function incidents(page) {
	const one = page.locator("#incidents details").first();
	check("incidents: the late rank", (await one.innerText()).includes(`ank ${LATE} on`), await page.innerText("#incidents"));
	await one.locator("summary").focus();
	await page.keyboard.press("Enter");
	check("incidents: its evidence, by keyboard", /Late steps\s+\d+ of \d+/.test(await one.innerText()), await one.innerText());
	await page.click('#incidents [data-only="over"]');
	check("incidents: those that are over", (await page.innerText("#incidents")).includes("No closed incidents yet"), await page.innerText("#incidents"));
	await page.click('#incidents [data-only=""]');
	await page.locator("#incidents details").first().evaluate((d) => { d.open = true; });
	await page.click('#incidents [data-act="arrivals"]');
	await page.waitForSelector("#arrivals > *");
	check("incidents: who came when", /: arrivals|this collective is older/.test(await page.innerText("#arrivals")), await page.innerText("#arrivals"));
}

async function heatmap(page) {
	const rows = await lateCells(page);
	equal("heat map: a row for each rank", rows.length, RANKS);
	check("heat map: only the late rank's row stands out", rows[LATE] >= 2 && rows.every((n, y) => n === 0 || y === LATE), rows);
	await page.locator("#heat").scrollIntoViewIfNeeded();
	const box = await page.locator("#heat").boundingBox();
	await page.mouse.click(box.x + box.width * 0.9, box.y + (LATE + 0.5) / RANKS * box.height);
	await page.waitForSelector("#arrivals .arrivals span");
	equal("arrivals: all ranks", await page.locator("#arrivals .arrivals span").count(), RANKS);
	check("arrivals: the rank below the pointer is named", (await page.innerText("#heat-said")).includes(`rank ${LATE} on node-5`), await page.innerText("#heat-said"));
	const title = await page.innerText("#arrivals h3");
	await page.focus("#heat");
	await page.keyboard.press("ArrowLeft");
	await page.keyboard.press("Enter");
	await page.waitForFunction((t) => document.querySelector("#arrivals h3").textContent !== t, title).catch(() => {});
	check("arrivals: by keyboard", (await page.innerText("#arrivals h3")) !== title, title);
}

async function account(page) {
	await page.waitForSelector("#chosen .steps");
	const said = await page.innerText("#chosen"), [r] = (await api(page, `ranks?rank=${LATE}`)).ranks;
	equal("a rank: the API has its account (control)", [r.account.line, r.account.doing, r.node], ["disk", "blocked", "node-5"]);
	check("a rank: ordinary and slow steps, and what grew", /Ordinary step\s+500\sms/.test(said) && /Slow step\s+790\sms/.test(said) && said.includes("disk takes 290"), said);
	check("a rank: why, the fix, what it does", said.includes(r.account.cause) && said.includes(r.account.fix) && said.includes("blocked"), said);
	check("a rank: how its node\u2019s own page is reached", said.includes("ingero dashboard"), said);
	equal("a rank: the address leads to it", await page.evaluate(() => [...new URLSearchParams(location.search)].sort()), [["cluster", "demo"], ["node", "node-5"], ["rank", String(LATE)]]);
	await page.click("#chosen [data-act=close]");
	equal("a rank: closed", [await page.locator("#chosen").isVisible(), new URL(page.url()).searchParams.get("rank")], [false, null]);
	await page.goBack();
	await page.waitForSelector("#chosen .steps");
	await page.click("#blame .ways a >> nth=1");
	await page.waitForFunction(() => document.querySelectorAll("#chosen tbody tr").length === 8);
	check("a node: its ranks, and what grew", /rank 41[^]*disk/.test(await page.innerText("#chosen")), await page.innerText("#chosen"));
}

async function desktop(browser) {
	const page = await open(browser);
	await page.route("**/api/versions", (r) => r.fulfill({status: 404, json: {error: "no such path"}}));
	await load(page);
	await page.click("#pause");
	await verdict(page);
	await heatmap(page);
	await account(page);
	await incidents(page);
	equal("cluster: nothing sticks out", await overflow(page), 0);
	equal("no memory: it is asked for once, and nothing is said of it", [page.asked.filter((a) => a.url.endsWith("/api/versions")).length, /memory/.test(await page.innerText("#incidents"))], [1, false]);
	quiet("cluster", page);
}

// What a server with a memory answers (docs/echo.md), without one.
function remembers(page, asked) {
	const now = Date.now() * 1e6, hour = 3600e9, reply = (route, data) => route.fulfill({json: {ok: true, data}});
	const TOOLS = {
		anomalies: () => ({anomalies: [{type: "incident", id: "old-1", kind: "hang", ts_ns: now - 26 * hour, node_id: "node-2", rank: 17, summary: "rank 17 <b>hung</b> in AllReduce 9", root_cause: "its GPU fell off the bus", fix: "Reset it", lost_ns: 9e11}]}),
		get_cost: ({since}) => ({currency: "USD", total: parseInt(since) === 24 ? 31.5 : 2, lost_ns: 1e9}),
		steps: () => ({steps: [{rank: LATE, node_id: "node-5", ts_ns: now - hour, step_ns: 1.3e9, ordinary_ns: 1e9, line: "network", line_ns: 3e8, doing: "blocked"}, {rank: 40, ts_ns: now, step_ns: 1}]}),
	};
	return Promise.all([page.route("**/api/versions", (r) => r.fulfill({json: {supported: ["v2"], preferred: "v2"}})),
		page.route("**/api/v2/tools/*", (r) => {
			const tool = r.request().url().split("fleet_cluster_")[1], args = r.request().postDataJSON();
			asked.push([tool, args]);
			return reply(r, TOOLS[tool](args));
		})]);
}

async function memory(browser) {
	const page = await open(browser), asked = [];
	await remembers(page, asked);
	await load(page, `?rank=${LATE}&node=node-5`);
	await page.waitForFunction(() => document.querySelector("#incidents .body").textContent.includes("Before") && document.querySelector("#chosen").textContent.includes("in the last week"));
	const said = await page.innerText("#incidents"), panel = await page.innerText("#chosen");
	check("memory: incidents of before", said.includes("Rank 17 <b>hung</b> in AllReduce 9") && said.includes("fell off the bus"), said);
	check("memory: a rank\u2019s slow steps of before, of no other rank", /1\.30\ss[^]*network 300/.test(panel) && (await page.locator("#chosen tbody tr").count()) === 1, panel);
	check("memory: cost over a day", /last 24 hours[^]*at most 31\.50 USD/.test(await page.innerText("#cost")), await page.innerText("#cost"));
	check("memory: of this cluster", asked.length >= 14 && asked.every(([, a]) => a.cluster_id === "demo"), asked);
	quiet("memory", page);
}

// The demo's own memory, where DuckDB's library is there: its day had a throttled GPU and a hang.
async function day(browser) {
	const page = await open(browser), v = await page.request.get(url + "/api/versions");
	if (!v.ok()) {
		check("the demo\u2019s day # SKIP it has no memory: run tools/duckdb", true);
		return;
	}
	await load(page);
	await page.waitForFunction(() => /Before[^]*hang/i.test(document.querySelector("#incidents .body").textContent));
	await picture(page, "cluster", 1480);
	await page.click("#blame .ways a");
	await page.waitForSelector("#chosen .steps");
	await page.waitForFunction(() => document.querySelector("#chosen").textContent.includes("in the last week"));
	await detail(page, "#chosen", "cluster-rank");
	const said = await page.innerText("#incidents");
	check("the demo\u2019s day: the throttled GPU and the hang", /ank 17 on node-2[^]*too hot/.test(said) && /for rank 9 on node-1/.test(said), said);
	check("the demo\u2019s day: what lasts is told once", said.split(`ank ${LATE} on node-5`).length === 2, said);
	check("the demo\u2019s day: its cost by time", (await page.innerText("#cost")).includes("last 24 hours"), await page.innerText("#cost"));
	quiet("the demo\u2019s day", page);
}

async function small(browser, colorScheme) {
	const page = await open(browser, {...PHONE, colorScheme});
	await load(page, `?rank=${LATE}&node=node-5`);
	await page.waitForSelector("#chosen .steps");
	equal(`phone, ${colorScheme}: no scrolling to the side`, await overflow(page), 0);
	const box = await page.locator("#heat").boundingBox();
	check(`phone, ${colorScheme}: the heat map is all in sight`, box.x >= 0 && box.width > 200 && box.x + box.width <= PHONE.viewport.width, box);
	check(`phone, ${colorScheme}: it is drawn`, (await lateCells(page))[LATE] >= 2);
	await picture(page, colorScheme === "dark" ? "cluster-phone" : "cluster-phone-light", 2100);
	quiet(`phone, ${colorScheme}`, page);
}

await withBrowser(async (browser) => {
	await desktop(browser);
	await memory(browser);
	await day(browser);
	await small(browser, "light");
	await small(browser, "dark");
});
