// SPDX-License-Identifier: Apache-2.0
// hostile.mjs - a recording whose processes, functions, GPUs and nodes have names that want to be code.
import {readFileSync} from "node:fs";
import {check, equal, load, open, panel, quiet, url, withBrowser} from "./browser.mjs";

const names = JSON.parse(readFileSync(process.env.PAGE_NAMES, "utf8"));

const shape = (page) => page.evaluate(() => ({ran: window.ran, scripts: document.scripts.length, odd: [...document.querySelectorAll("iframe, object, embed, style, base, meta[http-equiv], form, img, link, video, svg script, foreignObject, a")]
	.filter((e) => !["token", "sql-form", "choices"].includes(e.id) && !e.closest("#tl-help") && !e.closest("nav, .brand, head") && !e.matches(".skip")).map((e) => e.outerHTML.slice(0, 200)),
acts: [...document.querySelectorAll("*")].filter((e) => [...e.attributes].some((a) => a.name.startsWith("on") || (a.name === "href" && !/^(#|\/)/.test(a.value)))).map((e) => e.outerHTML.slice(0, 200))}));

await withBrowser(async (browser) => {
	// What these names do where nothing stops them, and that the guards see it.
	const control = await (await browser.newContext()).newPage();
	await control.setContent("<p></p>");
	await control.evaluate((list) => { window.ran = 0; for (const n of list) document.body.insertAdjacentHTML("beforeend", n); }, names.filter((n) => n.includes("window.ran")));
	await control.waitForFunction(() => window.ran >= 5, null, {timeout: 10000}).catch(() => 0);
	check("control: as HTML in a page without a policy, several of these names run", await control.evaluate(() => window.ran) >= 5, await control.evaluate(() => window.ran));

	const page = await open(browser);
	await page.addInitScript(() => { window.ran = 0; });
	await load(page);
	await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
	await page.waitForSelector("#tl-area:not([hidden]):not([aria-busy]) .tl-label");
	await page.click("[data-act=tl-table]");
	await page.evaluate(() => document.querySelectorAll(".tl-label.fold[aria-expanded=false]").forEach((b) => b.click()));
	const area = await page.locator("#tl-area").boundingBox();
	for (let y = area.y + 30; y < area.y + area.height && y < 780; y += 12)
		await page.mouse.move(area.x + 500, y);
	await page.evaluate(() => document.querySelector("#tl-table [data-act=tl-open]").click());
	await page.waitForSelector(".tl-event");
	await page.fill("#tl-find", names[2]);
	const tracks = await page.locator(".tl-label").evaluateAll((l) => l.map((e) => e.textContent));
	check("hostile: names are on the time line, as text", tracks.some((t) => t.includes("<img src=x one")), tracks);
	for (const id of ["incidents", "steps", "operations", "gpu", "host", "ranks", "graphs", "flame", "agent"])
		await panel(page, id);
	for (const card of await page.locator("details.incident").all())
		await card.locator(":scope > summary").click();
	await page.evaluate(() => document.querySelectorAll("details:not([open]) > summary").forEach((s) => s.click()));
	await page.fill("#sql-text", "SELECT pid, name FROM process_names ORDER BY pid");
	await page.click("#sql-form button");
	await page.waitForSelector("#sql-result table");
	await page.hover("#flame-tree .frame >> nth=-1");
	await page.waitForTimeout(300);
	const seen = await page.evaluate(() => document.body.textContent), sql = await page.locator("#sql-result td:nth-child(2)").evaluateAll((l) => l.map((e) => e.textContent));
	const shown = await page.evaluate((list) => import("/js/dom.js").then((m) => list.map((n) => m.visible(n))), names);
	check("hostile: there are a hundred", names.length >= 100, names.length);
	equal("hostile: each is shown as the text it is, in SQL's rows", shown.filter((n) => !sql.some((s) => s === n || (s.endsWith("\u2026") && n.startsWith(s.slice(0, -1))))), []);
	check("hostile: and in panels", shown.filter((n) => seen.split(n.slice(0, 40)).length > 2).length >= 60, shown.filter((n) => seen.split(n.slice(0, 40)).length <= 2).slice(0, 5));
	const raw = await page.evaluate(() => (document.body.textContent.match(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g) || []).length);
	equal("hostile: no control character and no mark that turns text reaches the page", raw, 0);
	const s = await shape(page);
	equal("hostile: no script ran", s.ran, 0);
	equal("hostile: no element came of a name", [s.scripts, s.odd, s.acts], [1, [], []]);
	equal("hostile: nothing sticks out", await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
	check("hostile: the title is a text too", typeof await page.title() === "string" && await page.evaluate(() => window.ran) === 0);
	quiet("hostile", page);
	await page.evaluate(() => { const e = document.createElement("script"); e.textContent = "window.ran = 99"; document.body.append(e); });
	await page.waitForTimeout(200);
	check("control: the policy stops a script that is in the document, and the guard notes it", await page.evaluate(() => window.ran) === 0 && page.violations.length > 0, page.violations);
	const policy = (await page.request.get(url + "/", {ignoreHTTPSErrors: true})).headers()["content-security-policy"] || "";
	check("the policy is strict", ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"].every((x) => policy.includes(x)) && !/unsafe|\*/.test(policy), policy);
});
