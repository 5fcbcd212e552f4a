// SPDX-License-Identifier: Apache-2.0
// empty.mjs - a server without a recording: the page says what to do, and shows the recording once there is one.
import {renameSync} from "node:fs";
import {check, open, quiet, url, withBrowser} from "./browser.mjs";

await withBrowser(async (browser) => {
	const page = await open(browser), folder = process.env.PAGE_RECORDING;
	await page.goto(url);
	await page.waitForSelector("#empty:not([hidden])");
	const said = await page.innerText("#empty");
	check("empty: that there is no recording, and the command that makes one", said.includes("No recording yet") && said.includes("sudo ingero trace"), said);
	check("empty: the page is not blank and nothing else is shown", await page.isHidden("main") && await page.isHidden("#banner"));
	renameSync(`${folder}/later.db`, `${folder}/ingero.db`);
	await page.waitForSelector(".verdict", {timeout: 20000});
	check("empty: the recording is shown as soon as it is there", await page.isHidden("#empty") && await page.isVisible("main"));
	check("empty: and the worst of it", (await page.innerText(".verdict")).includes("rank 2"), await page.innerText(".verdict"));
	quiet("empty", page);
});
