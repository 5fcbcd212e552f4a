// SPDX-License-Identifier: Apache-2.0
// timeline.mjs - the time line: what is asked for each view, wheel, mouse, keys and fingers; events, search, ranges, a table. With
// $shots pictures are left there.
import {api, check, equal, load, open, quiet, shots, url, withBrowser} from "./browser.mjs";

const GUTTER = 200, STEP = 1.35;
const PHONE = {viewport: {width: 390, height: 844}, isMobile: true, hasTouch: true, deviceScaleFactor: 1};
const params = (page) => new URL(page.url()).searchParams;
const views = (page, from = 0) => page.asked.slice(from).map((a) => new URL(a.url)).filter((u) => u.pathname === "/api/v1/timeline").map((u) => u.searchParams);
const ns = (text) => BigInt(Date.parse(text.slice(0, 19) + "Z")) * 1000000n + BigInt((/\.(\d+)/.exec(text) || ["", "0"])[1].padEnd(9, "0"));
const spanOf = (q) => Number(ns(q.get("to")) - ns(q.get("from")));

async function until(name, act, wanted = true) {
	for (let i = 0; i < 120; i++, await new Promise((r) => { setTimeout(r, 50); }))
		if (JSON.stringify(await act()) === JSON.stringify(wanted))
			return check(name, true);
	return equal(name, await act(), wanted);
}

async function settle(page) {
	await page.waitForFunction(() => !document.querySelector("#tl-area").hidden && !document.querySelector("#tl-area").hasAttribute("aria-busy"));
	await page.waitForTimeout(250);
	await page.waitForFunction(() => !document.querySelector("#tl-area").hasAttribute("aria-busy"));
}

async function show(page) {
	await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
	await settle(page);
}

// How many colours are in a part of a canvas: a blank one has one or two.
const colours = (page, id) => page.evaluate((x) => {
	const c = document.getElementById(x), g = new OffscreenCanvas(c.width, c.height).getContext("2d");
	g.drawImage(c, 0, 0);
	return new Set(new Uint32Array(g.getImageData(0, 0, c.width, c.height).data.buffer)).size;
}, id);

async function first(page) {
	const q = views(page)[0], width = await page.evaluate(() => document.getElementById("tl-area").clientWidth);
	equal("timeline: asked with the width of the drawing and the range of the page", [q.get("width"), q.get("since"), q.get("from")], [String(width - GUTTER), "all", null]);
	const labels = await page.locator(".tl-label").allInnerTexts();
	check("timeline: ranks in their order, then others, GPUs last", ["rank 0", "rank 1", "rank 2", "rank 3"].every((r, i) => labels[i].includes(r)) && labels.at(-1).includes("GPU 1"), labels);
	check("timeline: something is drawn", await colours(page, "tl-rows") > 8 && await colours(page, "tl-top") > 4, [await colours(page, "tl-rows"), await colours(page, "tl-top")]);
	const d = await api(page, "timeline?width=500");
	check("timeline: what is in sight is said", (await page.innerText("#tl-now")).includes(`${((d.to - d.from) / 1e9).toFixed(1)}\u202fs shown`), await page.innerText("#tl-now"));
}

// From all of it to microseconds: what is asked is what the wheel turned to.
async function wheel(page) {
	const box = await page.locator("#tl-area").boundingBox(), x = box.x + GUTTER + (box.width - GUTTER) / 2, before = views(page).length, y = box.y + 8;
	await page.mouse.move(x, y);
	await page.mouse.wheel(0, 100);
	await page.waitForTimeout(300);
	equal("wheel: without the focus it belongs to the page", views(page).length, before);
	await show(page);
	await page.keyboard.down("Control");
	await page.mouse.wheel(0, -100);
	await page.keyboard.up("Control");
	await settle(page);
	const d = await api(page, "timeline?width=500"), whole = d.to - d.from;
	check("wheel: with Ctrl it zooms", Math.abs(spanOf(views(page).at(-1)) / (whole / STEP) - 1) < 0.001, [spanOf(views(page).at(-1)), whole]);
	await page.mouse.click(x, (await page.locator("#tl-area").boundingBox()).y + 8);
	for (const [level, most] of [["seconds", 5e9], ["milliseconds", 5e6], ["microseconds", 5e3]]) {
		for (let n = 0; n < 60; n++) {
			const span = spanOf(views(page).at(-1));
			if (span < most)
				break;
			await page.mouse.wheel(0, -200);
			await page.waitForTimeout(15);
			if (n % 3 === 2 || span < most * 4)
				await settle(page);
		}
		await settle(page);
		const q = views(page).at(-1), [from, to] = params(page).get("view").split("~");
		check(`wheel: ${level}`, spanOf(q) < most && spanOf(q) > most / 20, spanOf(q));
		await until(`wheel: ${level} are in the address`, () => params(page).get("view"), `${q.get("from")}~${q.get("to")}`);
		check(`wheel: ${level} on the axis`, (await page.innerText("#tl-now")).includes("shown"), [from, to]);
	}
	const asked = views(page).length;
	check("wheel: not each turn is asked about", asked < 60, asked);
	await page.keyboard.press("0");
	await settle(page);
	await until("keys: 0 shows all", async () => Math.abs(spanOf(views(page).at(-1)) / whole - 1) < 0.001);
}

async function drag(page) {
	await page.goto(url + "/?view=2026-11-15T08:55:30Z~2026-11-15T08:55:31Z#timeline");
	await settle(page);
	const q = views(page).at(-1), box = await page.locator("#tl-area").boundingBox(), plot = box.width - 2 - GUTTER;
	equal("address: the view it names is asked for", [q.get("from"), q.get("to")], ["2026-11-15T08:55:30Z", "2026-11-15T08:55:31Z"]);
	await page.mouse.move(box.x + 800, box.y + 8);
	await page.mouse.down();
	await page.mouse.move(box.x + 500, box.y + 8, {steps: 5});
	await page.mouse.up();
	await settle(page);
	const moved = Number(ns(views(page).at(-1).get("from")) - ns("2026-11-15T08:55:30Z"));
	check("drag: moves by as much as the hand", Math.abs(moved / (300 / plot * 1e9) - 1) < 0.02 && Math.abs(spanOf(views(page).at(-1)) - 1e9) < 10, [moved, 300 / plot * 1e9]);
}

// Until the answer comes the old picture is there, stretched; a question that is out of date is dropped.
async function slow(page) {
	const dropped = [];
	page.on("requestfailed", (r) => r.url().includes("/timeline?") && dropped.push(r.failure().errorText));
	await page.route("**/api/v1/timeline?**", async (r) => { await new Promise((go) => { setTimeout(go, 700); }); await r.continue().catch(() => 0); });
	const before = views(page).length, shot = () => page.evaluate(() => document.getElementById("tl-rows").toDataURL());
	const old = await shot();
	await page.locator("#tl-area").focus();
	await page.keyboard.press("w");
	await page.waitForTimeout(250);
	const stretched = await shot();
	check("slow server: the old picture, stretched, at once", stretched !== old && await colours(page, "tl-rows") > 8 && views(page).length === before + 1, [views(page).length - before]);
	await page.keyboard.press("w");
	await page.waitForTimeout(250);
	check("slow server: a question that is out of date is dropped", dropped.some((t) => /ABORTED/.test(t)), dropped);
	await page.unroute("**/api/v1/timeline?**");
	await settle(page);
}

async function event(page) {
	await page.goto(url + "/?view=2026-11-15T08:55:30Z~2026-11-15T08:55:30.05Z#timeline");
	await settle(page);
	const row = await page.locator(".tl-label", {hasText: "train.py"}).boundingBox(), area = await page.locator("#tl-area").boundingBox();
	const at = area.x + GUTTER + (area.width - GUTTER) * 0.15;
	await page.mouse.move(at, row.y + 9);
	await until("hover: the event's name and duration", async () => /cudaStreamSync, 9\.39\sms/.test(await page.innerText("#tl-tip")));
	await page.mouse.move(at + 60, row.y + row.height - 11);
	await until("hover: off the CPU, and who had it", async () => /waiting for a CPU, 3\.73\sms\s+the CPU was used by ingero/.test(await page.innerText("#tl-tip")));
	await page.mouse.click(at, row.y + 9);
	await page.waitForSelector(".tl-event");
	const t = await page.innerText(".tl-event");
	check("event: name, duration, process, thread, argument", ["cudaStreamSync", "9.39\u202fms", "29086", "python3", "default"].every((x) => t.includes(x)), t);
	check("event: its stack and its incident", t.includes("Trainer.train_step (/srv/job/sim/train.py:93)") && t.includes("MEDIUM: cudaStreamSync"), t);
	check("event: no ids and no nanoseconds since 1970", !/\b\d{16,}\b|source \d|op \d/.test(t), t);
	equal("event: in the address", params(page).get("event"), "e26455");
	await page.reload();
	await page.waitForSelector(".tl-event");
	check("event: a reload shows it again", (await page.innerText(".tl-event")).includes("9.39\u202fms"));
	await page.getByRole("button", {name: "Open its SQL"}).click();
	await page.waitForSelector("#sql-result table");
	check("event: its row by SQL", (await page.innerText("#sql-result")).includes("cudaStreamSync") && await page.locator("#sql-result tbody tr").count() === 1, await page.innerText("#sql-result"));
	await page.goBack();
	await until("back: the event is closed", () => page.locator(".tl-event").count(), 0);
}

async function keyboard(page) {
	await page.goto(url + "/?view=2026-11-15T08:55:30Z~2026-11-15T08:55:30.05Z#timeline");
	await settle(page);
	await page.locator("[data-act=tl-help]").focus();
	while (await page.evaluate(() => document.activeElement.id !== "tl-area"))
		await page.keyboard.press("Tab");
	await page.keyboard.press("?");
	check("keys: ? tells them all", await page.isVisible("#tl-help") && (await page.innerText("#tl-help")).includes("zoom in"));
	await page.keyboard.press("Escape");
	await page.locator("#tl-area").focus();
	const before = views(page).at(-1);
	await page.keyboard.press("w");
	await settle(page);
	check("keys: w zooms in", Math.abs(spanOf(views(page).at(-1)) * STEP / spanOf(before) - 1) < 0.001, [spanOf(views(page).at(-1)), spanOf(before)]);
	const at = views(page).at(-1);
	await page.keyboard.press("d");
	await settle(page);
	check("keys: d moves on", ns(views(page).at(-1).get("from")) > ns(at.get("from")) && Math.abs(spanOf(views(page).at(-1)) - spanOf(at)) < 10);
	await page.keyboard.press("a");
	await page.keyboard.press("s");
	await settle(page);
	for (let n = 0; n < 20 && !(await page.textContent("#tl-said")).includes("train.py"); n++)
		await page.keyboard.press("ArrowDown");
	check("keys: arrows choose a track, said aloud", /train\.py.*\d+ events/.test(await page.textContent("#tl-said")), await page.textContent("#tl-said"));
	await page.keyboard.press(".");
	await page.keyboard.press(".");
	check("keys: . walks the events, said aloud", /cuda\w+, 08:55:30\.\d\d\d \d\d\d, [\d.]+/.test(await page.textContent("#tl-said")), await page.textContent("#tl-said"));
	await page.keyboard.press("Enter");
	await page.waitForSelector(".tl-event");
	check("keys: Enter opens it", params(page).get("event").startsWith("e"), page.url());
	await page.keyboard.press("t");
	await page.waitForSelector("#tl-table table");
	const rows = await page.getByRole("region", {name: "Visible events"}).locator("tbody tr").count(), d = await api(page, `timeline?width=968&from=${views(page).at(-1).get("from")}&to=${views(page).at(-1).get("to")}`);
	check("table: what is in sight, as rows", rows > 10 && rows <= d.tracks.reduce((n, x) => n + x.slices.length, 0), rows);
	await page.getByRole("region", {name: "Visible events"}).getByRole("button").first().press("Enter");
	await until("table: a row opens its event", async () => params(page).get("event") && await page.locator(".tl-event").count() === 1);
	await page.locator("#tl-area").focus();
	await page.keyboard.press("t");
	await page.keyboard.press("Escape");
	await until("keys: Esc closes it", () => page.locator(".tl-event").count(), 0);
}

async function search(page) {
	await page.fill("#tl-find", "train_step");
	await until("search: hits of a function of stacks", async () => /\d+ hits/.test(await page.innerText("#tl-found")));
	await page.keyboard.press("Enter");
	await page.waitForSelector(".tl-event");
	const one = params(page).get("event");
	check("search: the first is opened, with that function", (await page.innerText(".tl-event")).includes("train_step") && (await page.innerText("#tl-found")).startsWith("1 of"), await page.innerText("#tl-found"));
	await page.click("[data-act=tl-next]");
	await until("search: the next", async () => params(page).get("event") !== one && (await page.innerText("#tl-found")).startsWith("2 of"));
	await page.click("[data-act=tl-prev]");
	await until("search: and back", () => params(page).get("event"), one);
	equal("search: in the address", params(page).get("find"), "train_step");
	await page.fill("#tl-find", "no such thing anywhere");
	await until("search: not found is said", () => page.innerText("#tl-found"), "not found");
	await page.fill("#tl-find", "");
	await page.keyboard.press("Escape");
}

async function ranges(page) {
	await page.goto(url + "/?view=2026-11-15T08:55:30Z~2026-11-15T08:55:40Z#timeline");
	await settle(page);
	const box = await page.locator("#tl-area").boundingBox(), select = async (a, b) => {
		await page.keyboard.down("Shift");
		await page.mouse.move(box.x + a, box.y + 8);
		await page.mouse.down();
		await page.mouse.move(box.x + b, box.y + 8, {steps: 3});
		await page.mouse.up();
		await page.keyboard.up("Shift");
	};
	await select(300, 500);
	await page.waitForSelector(".tl-range");
	const [from] = params(page).get("sel").split("~"), wanted = Number(ns("2026-11-15T08:55:30Z")) + (300 - GUTTER) / (box.width - 2 - GUTTER) * 1e10;
	check("range: Shift and dragging selects, where the hand was", Math.abs(Number(ns(from)) - wanted) < 5e7, [from, wanted]);
	await page.getByRole("button", {name: "Compare with\u2026"}).click();
	await select(700, 900);
	await page.getByRole("button", {name: /^Compare with 08:/}).click();
	await page.waitForSelector("#compare .figures");
	const q = params(page);
	check("range: two of them lead to what differs", q.get("vs").startsWith(from.slice(0, 20)) && q.get("from") > q.get("vs"), page.url());
	await page.goBack();
	await until("back: no range", () => params(page).get("from"), null);
	await page.evaluate(() => document.getElementById("timeline").scrollIntoView());
	await page.waitForSelector(".tl-range");
	await page.getByRole("button", {name: "Explain this range"}).click();
	await until("range: explained", () => page.asked.some((a) => a.url.includes("/incidents?") && a.url.includes(`from=${encodeURIComponent(params(page).get("from"))}`)));
	await page.waitForTimeout(200);
}

async function touch(browser) {
	const page = await open(browser, PHONE);
	await load(page);
	await show(page);
	equal("phone: nothing sticks out", await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
	const box = await page.locator("#tl-area").boundingBox(), cdp = await page.context().newCDPSession(page), y = box.y + 60, finger = (id, x) => ({id, x, y});
	const send = (type, touchPoints) => cdp.send("Input.dispatchTouchEvent", {type, touchPoints});
	const d = await api(page, "timeline?width=300"), whole = d.to - d.from;
	await send("touchStart", [finger(0, 150), finger(1, 200)]);
	for (const n of [1, 2, 3, 4])
		await send("touchMove", [finger(0, 150 - 25 * n), finger(1, 200 + 25 * n)]);
	await send("touchEnd", []);
	await settle(page);
	await until("touch: two fingers zoom", () => views(page).length > 1 && Math.abs(spanOf(views(page).at(-1)) / (whole / 5) - 1) < 0.1);
	const before = views(page).at(-1);
	await send("touchStart", [finger(0, 250)]);
	for (const n of [1, 2, 3, 4])
		await send("touchMove", [finger(0, 250 - 25 * n)]);
	await send("touchEnd", []);
	await settle(page);
	await until("touch: one finger moves", () => Number(ns(views(page).at(-1).get("from")) - ns(before.get("from"))) > 0.1 * spanOf(before));
	if (shots)
		await page.screenshot({path: `${shots}/timeline-phone.png`});
	quiet("phone", page);
	await page.context().close();
}

async function pictures(browser) {
	for (const [name, view, options] of [["timeline-all", "", {}], ["timeline-ms", "?view=2026-11-15T08:55:38.091Z~2026-11-15T08:55:38.121Z", {}], ["timeline-us", "?view=2026-11-15T08:55:17.632540Z~2026-11-15T08:55:17.632680Z", {}],
		["timeline-dark", "?view=2026-11-15T08:55:38.091Z~2026-11-15T08:55:38.121Z&event=e38957", {colorScheme: "dark"}]]) {
		const page = await open(browser, {viewport: {width: 1180, height: 800}, ...options});
		await page.goto(`${url}/${view}#timeline`);
		await settle(page);
		await page.waitForTimeout(1800);
		await page.screenshot({path: `${shots}/${name}.png`});
		await page.context().close();
	}
}

await withBrowser(async (browser) => {
	const page = await open(browser);
	await load(page);
	await show(page);
	for (const part of [first, wheel, drag, slow, event, keyboard, search, ranges])
		await part(page);
	quiet("timeline", page);
	await touch(browser);
	if (shots)
		await pictures(browser);
	const size = new Set(page.asked.map((a) => new URL(a.url)).filter((u) => !u.pathname.startsWith("/api/")).map((u) => u.pathname));
	let bytes = 0;
	for (const path of size)
		bytes += (await (await page.request.get(url + path)).body()).length;
	check("page: all of it is at most 250 KB", size.size > 20 && bytes > 90e3 && bytes <= 250 * 1024, [size.size, bytes]);
});
