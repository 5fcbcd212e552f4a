// SPDX-License-Identifier: Apache-2.0
// links.mjs - what is looked at is in the address: a reload shows it again, Back goes back, a link opens it for somebody else.
import {check, equal, load, open, panel, quiet, url, withBrowser} from "./browser.mjs";

const params = (page) => new URL(page.url()).searchParams;
const hash = (page) => new URL(page.url()).hash;
const pressed = (page) => page.locator("#windows [aria-pressed=true]").evaluateAll((l) => l.map((b) => b.dataset.since));
const askedOf = (page, from, path) => page.asked.slice(from).map((a) => new URL(a.url)).filter((u) => u.pathname.endsWith("/" + path));
const isOpen = (page, n) => page.locator("details.incident").nth(n).evaluate((d) => d.open);
const inSight = (page, selector) => page.locator(selector).first().evaluate((e) => { const b = e.getBoundingClientRect(); return b.top > -5 && b.top < innerHeight * 0.6; });

async function until(name, act, wanted = true) {
	for (let i = 0; i < 100; i++, await new Promise((r) => { setTimeout(r, 50); }))
		if (JSON.stringify(await act()) === JSON.stringify(wanted))
			return check(name, true);
	return equal(name, await act(), wanted);
}

async function range(page) {
	await page.click("#windows [data-since='1m']");
	equal("address: the time", params(page).get("since"), "1m");
	await page.click("#windows [data-since='5m']");
	await page.goBack();
	await until("back: the time before", () => pressed(page), ["1m"]);
	await page.goForward();
	await until("forward: and again", () => pressed(page), ["5m"]);
	await page.reload();
	await page.waitForSelector(".verdict");
	equal("reload: the time is kept", await pressed(page), ["5m"]);
	await page.click("#windows [data-since='all']");
}

async function incident(page, browser) {
	await page.locator("details.incident > summary").nth(1).click();
	const id = params(page).get("incident");
	check("address: the incident that is open", id && hash(page) === "#incidents", page.url());
	await page.locator("details.incident > summary").nth(0).click();
	check("address: another one", params(page).get("incident") !== id, page.url());
	await page.goBack();
	await until("back: the incident before", () => isOpen(page, 1));
	await page.reload();
	await until("reload: it is open", () => page.locator("details.incident").nth(1).evaluate((d) => d.open).catch(() => false));
	await until("reload: and in sight", () => inSight(page, "details.incident[open]"));
	await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
	await page.locator("details.incident").nth(1).getByRole("button", {name: "Copy link"}).click();
	const link = await page.evaluate(() => navigator.clipboard.readText()), summary = await page.locator("details.incident .what b").nth(1).innerText();
	check("link: it holds the incident and its range", /[?&]incident=/.test(link) && /from=2026.*to=2026/.test(link), link);
	const other = await open(browser);
	await other.goto(link);
	await until("link: for somebody else the incident is open", () => other.locator("details.incident[open] .what b").first().innerText().catch(() => ""), summary);
	await until("link: and in sight", () => inSight(other, "details.incident[open]"));
	quiet("link", other);
	await other.context().close();
}

async function filters(page) {
	await page.click("#choices-open");
	await page.waitForFunction(() => document.querySelectorAll("#filter-pid option").length > 2);
	const pid = await page.locator("#filter-pid option", {hasText: "python3"}).getAttribute("value"), from = page.asked.length;
	await page.selectOption("#filter-pid", pid);
	await until("filter: asked for one process", () => askedOf(page, from, "incidents").some((u) => u.searchParams.get("pid") === pid));
	equal("filter: in the address", params(page).get("pid"), pid);
	await page.reload();
	await page.waitForSelector("#chosen:not([hidden]) [data-filter=pid]");
	await until("filter: kept over a reload, with its name", async () => (await page.innerText("#chosen")).includes(`python3 (${pid})`));
	await page.click("#chosen [data-filter=pid]");
	equal("filter: taken back", [params(page).get("pid"), await page.isHidden("#chosen")], [null, true]);
}

// In Tokyo, nine hours ahead: the fields are local, the questions are not.
async function absolute(browser) {
	const page = await open(browser, {timezoneId: "Asia/Tokyo"});
	await load(page);
	await page.click("#choices-open");
	await page.fill("#range-from", "2026-11-15T17:55:30.250");
	await page.fill("#range-to", "2026-11-15T17:55:40");
	check("range: the other zone is told", (await page.innerText("#range-said")).includes("UTC: 2026-11-15 08:55:30.250"), await page.innerText("#range-said"));
	const from = page.asked.length;
	await page.getByRole("button", {name: "Show this time"}).click();
	await until("range: asked for in UTC", () => askedOf(page, from, "incidents").map((u) => [u.searchParams.get("from"), u.searchParams.get("to"), u.searchParams.get("since")])[0], ["2026-11-15T08:55:30.25Z", "2026-11-15T08:55:40Z", null]);
	equal("range: in the address", params(page).get("from"), "2026-11-15T08:55:30.25Z");
	await until("range: shown as a filter, local", async () => /17:55:30 – 17:55:40/.test(await page.innerText("#chosen")));
	await page.selectOption("#range-zone", "utc");
	check("range: the fields in UTC", (await page.inputValue("#range-from")).startsWith("2026-11-15T08:55:30.25"), await page.inputValue("#range-from"));
	await page.fill("#range-to", "2026-11-15T08:55:20");
	await page.getByRole("button", {name: "Show this time"}).click();
	check("range: an end before its start is refused", (await page.innerText("#range-said")).includes("not after") && params(page).get("to") === "2026-11-15T08:55:40Z", await page.innerText("#range-said"));
	await page.fill("#range-from", "2020-01-01T00:00");
	await page.fill("#range-to", "2020-01-02T00:00");
	await page.getByRole("button", {name: "Show this time"}).click();
	await until("range: nothing then, said with what to do", async () => /longer|choose|No CUDA/.test(await page.innerText(".verdict")));
	await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
	await until("range: nor on the time line", async () => /No events in this time range.*sudo ingero trace/s.test(await page.innerText("#timeline > .body")));
	quiet("range", page);
	await page.context().close();
}

async function operation(page) {
	await panel(page, "operations");
	await page.locator("#operations .line-button", {hasText: "cudaStreamSync"}).first().click();
	equal("operation: in the address", params(page).get("op"), "cuda/cudaStreamSync");
	await page.waitForSelector("#operations tr.detail td");
	const rows = page.getByRole("region", {name: "Longest calls"});
	await rows.locator("tbody tr").first().waitFor();
	const took = (await rows.locator("tbody tr").allInnerTexts()).map((t) => parseFloat(/([\d.]+)\s*ms/.exec(t)[1]));
	check("operation: its longest calls, with names and units", took.length === 10 && took.every((v, i) => !i || v <= took[i - 1]) && !/\d{15,}/.test(await rows.innerText()), await rows.innerText());
	const from = page.asked.length;
	await page.getByRole("button", {name: "Flame graph of it"}).click();
	await until("operation: leads to its flame graph", () => askedOf(page, 0, "flame").some((u) => u.searchParams.get("op") === "cudaStreamSync" && u.searchParams.get("source") === "cuda"));
	await until("operation: which is in sight", () => inSight(page, "#flame h2"));
	await panel(page, "operations");
	await rows.getByRole("button", {name: "Time line"}).first().click();
	await until("operation: a call leads to the time line", () => inSight(page, "#timeline h2"));
	await until("operation: at its time", () => askedOf(page, from, "timeline").some((u) => u.searchParams.get("from") && u.searchParams.get("from") === (params(page).get("view") || "").split("~")[0]));
	await page.click("#chosen [data-filter=op]");
}

async function flame(page) {
	await panel(page, "flame");
	await page.click("#flame-compare");
	await page.waitForSelector("#flame-tree .frame.grown, #flame-tree .frame.shrunk");
	const vs = params(page).get("vs"), asked = askedOf(page, 0, "flame").map((u) => u.searchParams.get("from"));
	check("flame: two times are asked about", vs && asked.includes(vs.split("~")[0]) && asked.includes(params(page).get("from")), [vs, asked]);
	const said = await page.innerText("#flame > .body");
	check("flame: which are compared, and what colours mean", /compared with/.test(said) && /takes more now/.test(said), said);
	await page.locator("#flame-tree .frame").nth(3).hover();
	check("flame: a block says both", /a second before, .* now: [+−]/.test(await page.innerText("#flame-about")), await page.innerText("#flame-about"));
	await page.reload();
	await page.waitForSelector("#flame-tree .frame.grown, #flame-tree .frame.shrunk");
	await until("flame: a reload compares again, and is there again", () => inSight(page, "#flame h2"));
	await page.click("#flame-plain");
	await until("flame: and ends", () => page.locator("#flame-tree .frame.grown").count(), 0);
	await page.click("#chosen [data-filter=from]");
}

// What an address says comes from anybody.
async function hostile(browser) {
	const page = await open(browser), nasty = encodeURIComponent("<img src=x onerror=window.ran=1>");
	await page.goto(`${url}/?since=${nasty}&pid=1;2&rank=x&op=${nasty}&incident=${nasty}&node=&from=1&to=2&view=a~b&event=${nasty}&find=${nasty}&hide=%25,${nasty}#${nasty}`);
	await page.waitForSelector(".verdict");
	await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
	await page.waitForSelector("#tl-detail .nothing");
	check("address: a foreign one is taken as text, or not at all", await page.evaluate(() => !window.ran && !document.querySelector("main img")), await page.innerText("#tl-detail"));
	const asked = page.asked.filter((a) => /\/(incidents|ops|overview)/.test(a.url)).map((a) => a.url);
	check("address: wrong values are left out of questions", asked.every((u) => !/pid=|rank=|op=|from=/.test(u)), asked);
	check("address: an incident that is not there is said so", (await page.innerText("#incidents")).includes("not in this time range"), await page.innerText("#incidents"));
	quiet("address", page);
	await page.context().close();
}

await withBrowser(async (browser) => {
	const page = await open(browser);
	await load(page);
	await range(page);
	await incident(page, browser);
	await filters(page);
	await operation(page);
	await flame(page);
	quiet("links", page);
	await absolute(browser);
	await hostile(browser);
});
