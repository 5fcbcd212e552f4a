// SPDX-License-Identifier: Apache-2.0
// panels.mjs - every panel shows what the API says, in words and units a person reads.
import {api, check, equal, load, open, panel, quiet, withBrowser} from "./browser.mjs";

const plain = (s) => s.replaceAll(/[\u202f\u00a0]/g, " ").replaceAll(/\s+/g, " ");
const text = async (where) => plain(await where.innerText());
const thousands = (n) => n.toLocaleString("en-US");

// What format.js does, written anew: 3 digits and a unit.
function took(ns) {
	const units = [["ns", 1, 999.5], ["µs", 1e3, 999.5e3], ["ms", 1e6, 999.5e6], ["s", 1e9, 119.5e9]];
	const [unit, scale] = units.find(([, , limit]) => ns < limit), v = ns / scale;
	return unit === "ns" ? `${Math.round(v)} ns` : `${v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v.toFixed(2)} ${unit}`;
}

async function health(page) {
	const [o, i] = [await api(page, "overview"), await api(page, "incidents?since=all&stacks=1")], worst = i.incidents[0];
	const t = await text(page.locator("#health"));
	check("health: there is an incident to show", worst && worst.severity === "HIGH", i.incidents.map((x) => x.summary));
	check("health: says what is wrong in the worst incident's words", t.includes(plain(worst.summary)), t);
	check("health: severity, cost and confidence", t.includes(worst.severity) && t.includes(took(worst.excess_ns)) && /\d %? ?confident/.test(t), t);
	check("health: since when, with the zone", new RegExp(`Since (\\d{4}-\\d\\d-\\d\\d )?${new Date(worst.first_seen_ns / 1e6).toISOString().slice(11, 19)} UTC`).test(t), t);
	const line = await text(page.locator("#recording"));
	check("recording: a saved file, its node, its time, nothing lost", line.includes("Saved file") && line.includes(o.node) && line.includes("nothing lost") &&
		line.includes(new Date(o.first_ns / 1e6).toISOString().slice(11, 19)), line);
	check("title: severity and node", (await page.title()).startsWith(`HIGH · ${o.node}`), await page.title());
	return i;
}

async function incidents(page, said) {
	const cards = page.locator("details.incident");
	equal("incidents: all, worst first", (await cards.locator("summary .what b").allInnerTexts()).map(plain), said.incidents.map((i) => plain(i.summary)));
	await page.click("#health button[data-act=open]");
	check("incidents: the button of the verdict opens the worst", await cards.first().evaluate((d) => d.open) && !(await cards.nth(1).evaluate((d) => d.open)));
	for (const [n, i] of said.incidents.entries()) {
		if (n)
			await cards.nth(n).locator(":scope > summary").click();
		const t = await text(cards.nth(n)), w = i.where;
		check(`incident ${i.problem}: root cause, explanation, fixes, figures`, t.includes(plain(i.root_cause).slice(0, 80)) && t.includes(plain(i.explanation).slice(0, 80)) && i.fixes.every((x) => t.includes(plain(x).replaceAll("`", ""))) &&
			(!i.excess_ns || t.includes(took(i.excess_ns))), [t, i.fixes]);
		check(`incident ${i.problem}: timeline`, i.timeline.every((s) => t.includes(plain(s.detail)) && (!s.duration_ns || t.includes(took(s.duration_ns)))), [t, i.timeline]);
		check(`incident ${i.problem}: causes and culprits`, i.causes.slice(0, 2).every((c) => t.includes(took(c.ns)) && (!c.culprit || t.includes(`${c.culprit} (${c.culprit_pid})`))), [t, i.causes]);
		check(`incident ${i.problem}: the line in the program, or that none is known`, w && w.py_file ? t.includes(`${w.py_file}:${w.py_line}`) : w ? t.includes(w.symbol) : t.includes("No line of the program is known"), [t, w]);
		check(`incident ${i.problem}: its evidence as SQL`, plain(await cards.nth(n).textContent()).includes(plain(i.evidence_sql)), t);
		await page.waitForFunction((k) => document.querySelectorAll("details.incident")[k].querySelector("[aria-label='Rows that show it']"), n);
		const rows = cards.nth(n).getByRole("region", {name: "Rows that show it"}), cells = await rows.locator("td").allInnerTexts(), titles = (await rows.locator("th").allInnerTexts()).map(plain);
		check(`incident ${i.problem}: evidence has names, times and units, no raw ids`, cells.length > 3 && cells.every((c) => !/^-?\d{7,}$/.test(c) && !/^(source|op) \d+$/.test(c)) &&
			titles.every((x, k) => !["Operation", "Source"].includes(x) || cells.filter((_, m) => m % titles.length === k).every((c) => /^[a-zA-Z_]/.test(c))) &&
			["run", "gpu wait", "cpu wait"].every((x) => cells.filter((_, m) => titles[m % titles.length] === x).every((c) => /^[\d.,]+\s*(ns|µs|ms|s)$/.test(c))) &&
			(!titles.includes("When") || /^(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{3} UTC$/.test(cells[titles.indexOf("When")])), [titles, cells.slice(0, 16)]);
	}
	const chains = await api(page, "chains?since=all&limit=200");
	check("incidents: verdicts that were stored", !chains.chains.length || (await text(page.locator("#incidents > .body > details.more > summary"))).startsWith(`${chains.chains.length} incident`), chains.chains.length);
	await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
	await cards.first().locator(".fixes button").first().click();
	equal("incident: the fix is copied", await page.evaluate(() => navigator.clipboard.readText()), said.incidents[0].fixes[0]);
	const placed = cards.filter({has: page.locator("details.stack")}).first();
	await placed.locator("details.stack > summary").first().click();
	check("incident: the stack has the functions and their lines", /capture.*train_step\.c:\d+/s.test(await text(placed.locator(".frames").first())), await text(placed));
	for (let n = 1; n < said.incidents.length; n++)
		await cards.nth(n).locator(":scope > summary").click();
}

async function steps(page) {
	const d = await api(page, "steps?since=all&stacks=1"), place = await panel(page, "steps"), a = d.accounts[0], first = place.locator(".account").first(), t = await text(first);
	check("steps: there is a process with slow steps", a && a.slow_steps > 0 && a.ordinary_steps > 0, d.reason);
	check("steps: how many, how many slow, what was lost", t.includes(`${thousands(a.slow_steps)} of ${thousands(a.steps)} steps slow: ${took(a.lost_ns)} lost`), t);
	check("steps: how they were found and how sure that is", t.includes(`Step boundary: ${a.origin_text} (${Math.round(a.confidence * 100)} %)`), t);
	const seen = a.lines.filter((l) => Math.max(l.mean_ns, l.ordinary_ns, l.slow_ns) >= 0.001 * a.mean_step_ns);
	equal("steps: its lines, what grew most first", (await first.locator("tbody tr td:first-child").allInnerTexts()).map(plain), seen.map((l) => l.title));
	check("steps: ordinary beside slow", seen.every((l) => t.includes(took(l.ordinary_ns)) && t.includes(took(l.slow_ns))), [t, seen]);
	const heights = await first.locator(".parts").evaluateAll((l) => l.map((e) => e.getBoundingClientRect().height));
	check("steps: columns are as high as steps are long", heights.length === 2 && Math.abs(heights[0] / heights[1] - a.ordinary_step_ns / a.slow_step_ns) < 0.02, [heights, a.ordinary_step_ns, a.slow_step_ns]);
	const widest = await first.locator(".pile").nth(1).locator(".parts span").evaluateAll((l) => l.map((e) => [e.className, e.getBoundingClientRect().height]).sort((x, y) => y[1] - x[1])[0][0]);
	equal("steps: the highest piece is the longest line", widest, `part-${[...seen].sort((x, y) => y.slow_ns - x.slow_ns)[0].line}`);
	check("steps: a drawing over time, with a text of its own", await first.locator("svg.lines rect.part").count() >= a.bars.length && /^A step over time\. /.test(await first.locator(".plot").getAttribute("aria-label")));
	await first.locator(".plot").focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("PageDown");
	check("steps: the keyboard reads out the lines", plain(await first.locator(".spoken").textContent()).includes(`${seen[0].title} `), await first.locator(".spoken").textContent());
	await page.keyboard.press("Escape");
	const grown = a.entries[0];
	await first.locator(".line-button", {hasText: grown.title}).click();
	const entry = first.locator("details.stack").first();
	check("steps: a line leads to whose time it is", await entry.evaluate((e) => e.open && e.contains(document.activeElement)) && (await text(entry)).includes(took(grown.difference_ns)) &&
		(!grown.culprit || (await text(entry)).includes(grown.culprit_pid === grown.pid ? `thread ${grown.culprit} of the same process` : `${grown.culprit} (${grown.culprit_pid})`)), await text(entry));
	check("steps: a place in the program comes with its stack", a.entries.some((e) => e.frames) && a.entries.every((e) => !e.where || e.frames.length), a.entries);
	for (const button of await first.locator(".line-button").all()) {
		const title = plain(await button.innerText());
		await button.click();
		check(`steps: the line "${title}" leads to an entry of its own`, await page.evaluate(() => document.activeElement.closest("details.stack[open]")) && plain(await page.evaluate(() => document.activeElement.innerText)).includes(title),
			await page.evaluate(() => document.activeElement.outerHTML));
	}
	const found = await first.locator("button[data-act=flame-find]").evaluateAll((l) => l.map((b) => [...b.closest("details").querySelector(".key").classList].find((c) => c.startsWith("part-"))));
	check("steps: only calls are looked for in the flame graph, which is of calls", found.every((c) => ["gpu", "copy", "launch", "allocation", "graph", "collective", "call"].includes(c.slice(5))), found);
	check("steps: and to its stack, or that none is known", grown.frames ? await entry.locator(".frames li").count() === grown.frames.length : (await text(entry)).includes("No call stack"), grown);
	await entry.getByRole("button", {name: "Events of that time"}).click();
	await page.waitForSelector("#sql-result table");
	check("steps: and to the events of that time", await page.locator("#sql-result tbody tr").count() > 0, await page.innerText("#sql-result"));
	equal("steps: other processes follow", await place.locator(".body > details.more").count(), Math.min(d.accounts.length, 8) - 1);
}

async function operations(page) {
	const d = await api(page, "ops?since=all"), series = await api(page, "series?since=all&limit=100"), place = await panel(page, "operations");
	const own = d.ops.filter((o) => ["cuda", "driver", "cuda_graph", "nccl"].includes(o.source) && !o.nested);
	const names = () => place.locator("tbody th bdi").allInnerTexts();
	equal("operations: GPU calls, most time first", await names(), own.map((o) => o.operation));
	const first = plain(await place.locator("tbody tr").first().innerText()), o = own[0];
	check("operations: count, percentiles, longest, share", [thousands(o.count), ...[o.p50_us, o.p95_us, o.p99_us, o.max_us].map((v) => took(v * 1e3))].every((x) => first.includes(x)), [first, o]);
	await place.getByRole("button", {name: "all", exact: true}).click();
	equal("operations: all sources", (await names()).length, d.ops.length);
	await place.getByRole("button", {name: "nccl", exact: true}).click();
	equal("operations: one source", await names(), d.ops.filter((x) => x.source === "nccl").map((x) => x.operation));
	await place.getByRole("button", {name: "all", exact: true}).click();
	await place.locator("thead").getByRole("button", {name: "Calls"}).click();
	equal("operations: sorted by calls", (await names())[0], [...d.ops].sort((a, b) => b.count - a.count)[0].operation);
	await place.locator("thead").getByRole("button", {name: "Calls"}).click();
	equal("operations: the other way round, and told to readers of the screen", [await place.locator("th[aria-sort]").getAttribute("aria-sort"),
		await place.locator("th[aria-sort]").innerText()].join().startsWith("ascending,Calls"), true);
	const drawn = series.series.filter((s) => s.p99_us.filter((v) => v !== null).length > 1).length;
	equal("operations: a sparkline each that has a course", await place.locator("svg.spark path").count(), drawn);
	await place.locator("thead").getByRole("button", {name: "Of wall"}).click();
	await place.getByRole("button", {name: "GPU calls"}).click();
}

async function charts(page) {
	const g = await api(page, "gpus?since=all"), place = await panel(page, "gpu"), t = await text(place), last = g.gpus.map((x) => x.samples.at(-1));
	g.gpus.sort((a, b) => a.gpu - b.gpu);
	equal("gpu: two of them are in the recording", g.gpus.length, 2);
	equal("gpu: charts", await place.locator("h3").allInnerTexts(), ["Busy", "Memory used", "Clock", "Power", "Temperature", ...(last[0].pcie_rx_kb_s === undefined || last[0].pcie_rx_kb_s === null ? [] : ["PCIe, to the GPU"])]);
	check("gpu: newest values with units", last.every((s) => [`${s.sm_clock_mhz} MHz`, `${s.temperature_c} °C`].every((x) => t.includes(x))), [t, last]);
	check("gpu: why it was slowed, in words", t.includes("GPU 1 slowed: software thermal slowdown"), t);
	check("gpu: incidents are marked", await place.locator(".chart").first().locator(".marker").count() >= 1);
	const util = g.gpus[1].samples, middle = util[Math.floor(util.length / 2)], plot = place.locator(".plot").first(), box = await plot.boundingBox();
	await page.mouse.move(box.x + box.width * (middle.timestamp - g.window.from_ns) / (g.window.to_ns - g.window.from_ns), box.y + 30);
	const read = await text(place.locator(".chart").first());
	check("gpu: the value under the pointer", read.includes(`GPU 1 ${Math.round(middle.util_gpu_pct)} %`) && read.includes(new Date(middle.timestamp / 1e6).toISOString().slice(11, 18)), [read, middle]);
	await page.mouse.move(5, 5);
	await plot.focus();
	await page.keyboard.press("Home");
	await page.keyboard.press("PageDown");
	await page.keyboard.press("PageDown");
	const spoken = await place.locator(".spoken").first().textContent();
	check("gpu: the keyboard reads out too, also aloud", /^(\d{4}-\d\d-\d\d )?[\d:]+: GPU 0 \d+ %, GPU 1 \d+ %$/.test(plain(spoken)), spoken);
	await page.keyboard.press("Escape");
	check("gpu: charts have a text of their own", /^Busy\. GPU 0: now \d/.test(plain(await plot.getAttribute("aria-label"))), await plot.getAttribute("aria-label"));
	const h = await api(page, "snapshots?since=all"), host = await panel(page, "host"), newest = h.snapshots.at(-1);
	const titles = await host.locator("h3").allInnerTexts();
	check("host: CPU, memory, load, swap", ["CPU", "Memory used", "Load", "Swap used"].every((x) => titles.includes(x)), titles);
	check("host: newest load", (await text(host)).includes(newest.load_avg >= 10 ? newest.load_avg.toFixed(1) : newest.load_avg.toFixed(2)), [await text(host), newest]);
}

async function ranks(page) {
	const d = await api(page, "collectives?since=all"), place = await panel(page, "ranks"), c = d.comms[0], t = await text(place);
	const latest = [...c.ranks].sort((a, b) => b.late_ns - a.late_ns)[0];
	equal("ranks: the late one is rank 2", latest.rank, 2);
	check("ranks: who holds the others up", t.includes("Rank 2 delays the others"), t);
	equal("ranks: a cell each", await place.locator(".heat li").count(), c.ranks.length);
	check("ranks: last, lateness and waits of each", c.ranks.every((r) => t.includes(thousands(r.last)) && t.includes(took(r.late_ns)) && t.includes(took(r.wait_ns))), [t, c.ranks]);
	await place.locator("details.more > summary").click();
	check("ranks: the latest arrivals", (await text(place)).includes(took(c.worst[0].late_ns)), c.worst[0]);
}

async function graphs(page) {
	const m = await api(page, "graph-metrics?since=all"), e = await api(page, "graph-events?since=all"), place = await panel(page, "graphs"), t = await text(place);
	check("graphs: captures, instantiations, launches", m.captures > 0 && [["Captures", m.captures], ["Instantiations", m.instantiations], ["Launches", m.launches]].every(([k, n]) => t.includes(`${k} ${thousands(n)}`)), [t, m]);
	await place.locator("details.more > summary").click();
	equal("graphs: newest calls", await place.locator("tbody tr").count(), e.length);
}

async function flame(page) {
	const d = await api(page, "flame?since=all"), place = await panel(page, "flame"), tree = place.locator("#flame-tree");
	const shown = d.nodes.filter((n) => n.total / d.total >= 0.0012).length;
	check("flame: every block that is wide enough", Math.abs(await tree.locator(".frame").count() - shown) <= 2, [await tree.locator(".frame").count(), shown]);
	const python = d.nodes.find((n) => n.kind === "python");
	const block = tree.locator(".frame.python").first();
	equal("flame: names of Python functions", await block.innerText(), python.name);
	const narrow = (await block.boundingBox()).width, whole = (await tree.boundingBox()).width;
	check("flame: width is share", Math.abs(narrow / whole - python.total / d.total) < 0.01, [narrow, whole, python.total / d.total]);
	await block.click();
	check("flame: a click zooms", Math.abs((await block.boundingBox()).width - whole) < 3, [await block.boundingBox(), whole]);
	check("flame: and tells", plain(await place.locator("#flame-about").innerText()).includes(took(python.total).split(" ")[0]), await place.locator("#flame-about").innerText());
	await page.keyboard.press("Escape");
	check("flame: Esc shows all", Math.abs((await block.boundingBox()).width - narrow) < 3, await block.boundingBox());
	await tree.locator("[tabindex='0']").focus();
	await page.keyboard.press("ArrowDown");
	equal("flame: arrow keys walk", await page.evaluate(() => document.activeElement.dataset.node), String(d.nodes.findIndex((n) => n.parent === 0)));
	await page.fill("#flame-search", "train_step");
	check("flame: search", await tree.locator(".hit").count() > 0 && (await text(place.locator("#flame-found"))).endsWith("% matched"), await text(place.locator("#flame-found")));
	await place.getByRole("button", {name: "Show all"}).click();
}

async function agent(page) {
	const l = await api(page, "losses"), p = await api(page, "processes?since=all"), o = await api(page, "overhead?since=all"), place = await panel(page, "agent"), t = await text(place);
	check("recording: books by source", l.sources.filter((s) => s.hits).every((s) => t.includes(s.source) && t.includes(thousands(s.hits))), [t, l.sources]);
	check("recording: nothing lost, said in words", l.total.lost ? t.includes("were lost") : t.includes("No losses"), t);
	check("recording: what tracing cost, or that it is not known", o.recorded ? t.includes("of a budget of") || t.includes("no budget") || t.includes("over a budget") : t.includes("not in this file"), [t, o]);
	const used = p.processes.filter((x) => x.calls > 0 || x.coverage.length);
	check("recording: there are processes to show", used.length >= 6, p.processes);
	equal("recording: processes, most calls first", await place.getByRole("region", {name: "Processes"}).locator("tbody tr td:nth-child(4)").allInnerTexts(),
		used.sort((a, b) => b.calls - a.calls).map((x) => thousands(x.calls)));
	check("recording: ranks of processes", t.includes("2 of 4"), t);
}

async function sql(page) {
	await page.evaluate(() => document.getElementById("sql").scrollIntoView());
	await page.fill("#sql-text", "SELECT 9007199254740993 AS big, 'a<b>' AS name, NULL AS none, 1.5 AS real, count(*) AS n FROM events");
	await page.keyboard.press("Control+Enter");
	await page.waitForSelector("#sql-result table");
	const o = await api(page, "overview");
	equal("sql: a row, integers exact", await page.locator("#sql-result tbody td").allInnerTexts(), ["9007199254740993", "a<b>", "NULL", "1.5", String(o.event_count)]);
	await page.fill("#sql-text", "DELETE FROM events");
	await page.click("#sql-form button");
	await page.waitForSelector("#sql-result .alarm");
	check("sql: a write is refused, and why is said", /only read|read/.test(await page.innerText("#sql-result .alarm")), await page.innerText("#sql-result"));
	equal("sql: and nothing was written", (await api(page, "overview")).event_count, o.event_count);
	await page.locator("details.incident").first().getByText("SQL of these rows").click();
	await page.locator("details.incident").first().locator("button[data-act=sql]").click();
	await page.waitForSelector("#sql-result table, #sql-result .alarm");
	check("sql: the evidence of an incident, by its button", await page.locator("#sql-result tbody tr").count() > 0, await page.innerText("#sql-result"));
	for (const [n, option] of (await page.locator("#sql-examples option").allInnerTexts()).entries()) {
		if (!n)
			continue;
		await page.selectOption("#sql-examples", {index: n});
		await page.click("#sql-form button");
		await page.waitForFunction(() => !document.querySelector("#sql-result").textContent.includes("Running"));
		check(`sql: example "${option}" runs`, await page.locator("#sql-result tbody tr").count() > 0, await page.innerText("#sql-result"));
	}
}

async function windows(page) {
	const before = page.asked.length;
	await page.click("#windows [data-since='1m']");
	await page.waitForFunction(() => document.querySelector("[data-since='1m']").getAttribute("aria-pressed") === "true");
	await page.waitForTimeout(500);
	const asked = page.asked.slice(before).map((a) => a.url);
	check("time: all panels are asked about the time chosen", asked.some((u) => u.includes("/incidents?")) && asked.filter((u) => /incidents|ops|gpus/.test(u)).every((u) => u.includes("since=1m")), asked);
	let quietSince = page.asked.length;
	for (let tries = 0; tries < 20; tries++) {
		quietSince = page.asked.length;
		await page.waitForTimeout(2600); // answers to the click may still be on their way, and what a busy server put off is asked again
		if (page.asked.length === quietSince && !page.pending.size)
			break;
	}
	await page.waitForTimeout(2600);
	equal("a saved file is not asked about again", page.asked.slice(quietSince).map((a) => a.url), []);
}

await withBrowser(async (browser) => {
	const page = await open(browser);
	await load(page);
	const said = await health(page);
	await incidents(page, said);
	for (const part of [steps, operations, charts, ranks, graphs, flame, agent, sql, windows])
		await part(page);
	check("no backquotes are shown", !(await page.innerText("main")).includes("`"));
	equal("commands in sentences are set apart", await page.evaluate(async () => {
		const said = (await import("/js/parts.js")).nothing("Run `ingero check` there.");
		return [said.textContent, said.querySelector("code").textContent];
	}), ["Run ingero check there.", "ingero check"]);
	quiet("panels", page);
});
