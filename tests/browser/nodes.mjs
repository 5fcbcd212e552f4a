// SPDX-License-Identifier: Apache-2.0
// nodes.mjs - a recording of two nodes: one can be chosen, and panels that cannot be told apart say so.
import {api, check, equal, load, open, panel, quiet, withBrowser} from "./browser.mjs";

await withBrowser(async (browser) => {
	const page = await open(browser);
	await load(page);
	const o = await api(page, "overview"), node = o.nodes[1];
	equal("nodes: all of them to choose from", await page.locator("#node option").allInnerTexts(), ["all nodes", ...o.nodes]);
	check("nodes: how many are shown is said", (await page.innerText("#recording")).includes(`${o.nodes.length} nodes`), await page.innerText("#recording"));
	await panel(page, "gpu");
	equal("nodes: both GPUs", await page.locator("#gpu .chart").first().locator(".legend li").count(), 2);
	await page.selectOption("#node", node);
	await page.waitForFunction(() => document.querySelectorAll("#gpu .chart:first-of-type .legend li").length === 1 && !document.querySelector("#main[aria-busy]"));
	const g = await api(page, `gpus?since=all&node=${encodeURIComponent(node)}`);
	equal("nodes: the chosen one's GPU only", g.gpus.map((x) => x.node), [node]);
	check("nodes: the line on top names it", (await page.innerText("#recording")).includes(node), await page.innerText("#recording"));
	check("nodes: questions carry it", page.asked.some((a) => a.url.includes("/gpus?") && a.url.includes(`node=${node}`)) && !page.asked.some((a) => a.url.includes("/ops?") && a.url.includes("node=")));
	await panel(page, "operations");
	check("nodes: operations say that they are of all", (await page.innerText("#operations .note")).includes("All nodes"), await page.innerText("#operations .note"));
	quiet("nodes", page);
});
