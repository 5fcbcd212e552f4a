// SPDX-License-Identifier: Apache-2.0
// compare.mjs - two times of a recording compared: what the page says is what the API says, and the address holds it.
import {api, check, detail, equal, load, open, panel, quiet, url, withBrowser} from "./browser.mjs";

const plain = (s) => s.replaceAll(/[\u202f\u00a0]/g, " ");
const query = (page) => new URL(page.url()).searchParams;
const shown = async (page) => plain(await page.innerText("#compare > .body"));

async function compared(page) {
	await page.waitForSelector("#compare .figures");
	const q = query(page), [from, to] = q.get("vs").split("~");
	return api(page, `diff?${new URLSearchParams({from, to, from2: q.get("from"), to2: q.get("to"), limit: 50})}`);
}

async function offers(page) {
	const place = await panel(page, "compare"), text = await place.innerText();
	check("nothing is compared: it says how", text.includes("Nothing is compared") && text.includes("ingero diff A.db B.db"), text);
	check("nothing is compared: nothing is asked", !page.asked.some((a) => a.url.includes("/api/v1/diff")));
	await page.click("#compare [data-act=compare-halves]");
}

async function same(page) {
	const d = await compared(page), text = await shown(page), first = d.ops.find((o) => !o.nested && o.total_us + o.total_us2 > 0);
	check("the sentence is the server's", text.includes(plain(d.summary.replace(/^B's steps/, "Steps").replaceAll(" in B ", " now "))), [d.summary, text.slice(0, 300)]);
	const ops = page.locator("#compare table").filter({hasText: "Time a second"}), row = plain(await ops.locator("tbody tr").first().innerText());
	check("operations: the first is the server's first", row.startsWith(first.operation), [row, first]);
	check("operations: time a second has its sign", row.includes(first.lost_us_s > 0 ? "+" : "\u2212") || first.lost_us_s === 0, row);
	const wanted = first.duration === "more" ? "slower" : first.duration === "less" ? "faster" : !first.count ? "only now" : !first.count2 ? "only before" :
		first.calls === "more" || first.calls === "less" ? `${first.calls} often` : first.duration === "noise" ? "within noise" : "too little data";
	check("operations: and the verdict", row.includes(wanted), [row, wanted]);
	equal("GPUs: all that are read", await page.locator("#compare table").filter({hasText: "SM clock"}).locator("tbody tr").count(), d.gpus.length);
	check("the times are told", text.includes("Before") && text.includes("Now") && text.includes("calls"), text);
}

async function addressed(page) {
	const before = {from: query(page).get("from"), to: query(page).get("to"), vs: query(page).get("vs")}, text = await shown(page);
	await page.reload();
	await panel(page, "compare");
	await page.waitForSelector("#compare .figures");
	equal("a reload compares the same", await shown(page), text);
	await page.click("#compare [data-act=compare-swap]");
	await page.waitForFunction((from) => new URL(location.href).searchParams.get("vs").startsWith(from), before.from);
	equal("swapped: now is before", `${query(page).get("from")}~${query(page).get("to")}`, before.vs);
	await page.waitForFunction((was) => document.querySelector("#compare .figures") && document.querySelector("#compare > .body").innerText.replaceAll(/[\u202f\u00a0]/g, " ") !== was, text);
	await page.goBack();
	await page.waitForFunction((vs) => new URL(location.href).searchParams.get("vs") === vs, before.vs);
	await page.waitForFunction((was) => document.querySelector("#compare > .body").innerText.replaceAll(/[\u202f\u00a0]/g, " ") === was, text);
	check("back: as it was", true);
	await page.click("#compare [data-act=flame-plain]");
	await page.waitForFunction(() => document.querySelector("#compare > .body").innerText.includes("Nothing is compared"));
	equal("ended: nothing in the address", query(page).get("vs"), null);
}

async function fromIncident(page) {
	await load(page);
	const d = await api(page, "incidents?since=all"), o = await api(page, "overview"), i = d.incidents.find((x) => (x.since_ns || x.first_seen_ns) > o.first_ns && x.last_seen_ns > (x.since_ns || x.first_seen_ns));
	await page.goto(`${url}/?incident=${encodeURIComponent(i.id)}#incidents`);
	await page.click("details.incident[open] [data-act=compare-incident]");
	await compared(page);
	check("an incident is compared with the time before it", Math.abs(Date.parse(query(page).get("from")) - (i.since_ns || i.first_seen_ns) / 1e6) < 2 && query(page).get("vs").endsWith(`~${query(page).get("from")}`), page.url());
	await page.waitForFunction(() => { const y = document.querySelector("#compare h2").getBoundingClientRect().top; return y >= 0 && y < innerHeight; });
	check("and the answer is in sight", true);
	await detail(page, "#compare", "compare");
}

async function nothingThere(page) {
	await page.goto(`${url}/?from=2026-11-15T08:55:30Z&to=2026-11-15T08:55:40Z&vs=2001-01-01T00:00:00Z~2001-01-01T00:00:01Z#compare`);
	await page.waitForFunction(() => document.querySelector("#compare > .body").innerText.includes("cannot be compared"));
	const text = await shown(page);
	check("a time without calls: it says so, once", text.includes("nothing to compare: A, the first time,") && !text.includes("Not up to date"), text);
}

async function phone(browser) {
	const page = await open(browser, {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true});
	await load(page);
	await panel(page, "compare");
	await page.tap("#compare [data-act=compare-halves]");
	await page.waitForSelector("#compare .figures");
	equal("phone: nothing sticks out", await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
	check("phone: no word is broken into letters", await page.evaluate(() => [...document.querySelectorAll("#compare td.said")].every((c) => c.offsetHeight < 60)));
	check("phone: fingers are told of, no wheel", await page.locator("#timeline .lead .touch").isVisible() && !await page.locator("#timeline .lead .mouse").isVisible());
	quiet("phone", page);
}

await withBrowser(async (browser) => {
	const page = await open(browser);
	await load(page);
	await offers(page);
	await same(page);
	await addressed(page);
	await fromIncident(page);
	await nothingThere(page);
	quiet("compare", page);
	await phone(browser);
});
