// SPDX-License-Identifier: Apache-2.0
// token.mjs - a server that asks for a token: the page asks its reader, keeps it in the tab, never puts it
// into an address; and a server that goes away is said to be away.
import {check, equal, open, quiet, token, url, withBrowser} from "./browser.mjs";

await withBrowser(async (browser) => {
	const page = await open(browser);
	await page.goto(url);
	await page.waitForSelector("#token:not([hidden])");
	check("token: the page says that it needs one, and nothing else", await page.isHidden("main") && (await page.innerText("#token")).includes("requires a token"));
	await page.fill("#token-text", "wrong");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => document.querySelector("#token-said").textContent);
	check("token: a wrong one is refused in words", (await page.innerText("#token-said")).includes("Invalid token"));
	await page.fill("#token-text", token);
	await page.keyboard.press("Enter");
	await page.waitForSelector(".verdict");
	check("token: the right one opens the page", await page.isHidden("#token") && await page.isVisible("main"));
	equal("token: its field is emptied", await page.inputValue("#token-text"), "");
	const kept = await page.evaluate(() => [Object.values({...localStorage}).join(), Object.values({...sessionStorage}).join(), document.cookie, location.href]);
	check("token: in this tab's session only", !kept[0].includes(token) && kept[1] === token && !kept[2] && !kept[3].includes(token), kept);
	check("token: sent as a header, never in an address", page.asked.some((a) => a.headers.authorization === `Bearer ${token}`) && page.asked.every((a) => !a.url.includes(token)),
		page.asked.map((a) => a.url));
	await page.reload();
	await page.waitForSelector(".verdict");
	check("token: kept over a reload", await page.isVisible("main"));
	quiet("token", page);

	await page.route("**/api/**", (r) => r.abort());
	await page.evaluate(() => document.getElementById("refresh").click());
	await page.waitForSelector("#banner:not([hidden])");
	check("away: said plainly, with the age of what is shown", /cannot be reached.*old/s.test(await page.innerText("#banner")) && await page.isVisible(".verdict"), await page.innerText("#banner"));
	await page.unroute("**/api/**");
	await page.waitForFunction(() => document.querySelector("#banner").hidden, null, {timeout: 15000});
	check("away: it finds back by itself", await page.isVisible(".verdict"));
	const linked = await open(browser);
	await linked.goto(url + "#token=" + token);
	await linked.waitForSelector(".verdict");
	check("token: a link that holds it opens the page", await linked.isHidden("#token"));
	check("token: and is cleaned", !(await linked.evaluate(() => location.href)).includes(token) && linked.asked.every((a) => !a.url.includes(token)),
		linked.asked.map((a) => a.url));
	const other = await open(browser);
	await other.goto(url);
	await other.waitForSelector("#token:not([hidden])");
	check("token: another tab has to be told anew", await other.isHidden("main"));

	const cut = await open(browser);
	let cuts = 0;
	await cut.route("**/js/steps.js", (r) => cuts++ ? r.continue() : r.abort());
	await cut.goto(url);
	await cut.waitForSelector("#banner:not([hidden])");
	check("cut: a part that did not come is said", /could not be loaded.*Retrying/.test(await cut.innerText("#banner")), await cut.innerText("#banner"));
	await cut.waitForSelector("#token:not([hidden])");
	check("cut: and the page comes up all the same", cuts === 2 && await cut.isHidden("#banner"), cuts);
});
