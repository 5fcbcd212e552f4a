// SPDX-License-Identifier: Apache-2.0
// browser.mjs - a real browser with guards: what it complains about, what it asks of other servers, what
// the page's policy forbade, are written down. A check is a line: "ok - NAME" or "not ok - NAME<TAB>DETAIL".
import {createRequire} from "node:module";

const settings = JSON.parse(process.env.PAGE_TEST);
const {chromium} = createRequire(settings.peers + "/")("playwright-core");

export const {url, shots, token} = settings;
const unanswered = []; // requests of all pages
let failed = 0;

export function check(name, good, detail = "") {
	failed += good ? 0 : 1;
	process.stdout.write(`${good ? "ok" : "not ok"} - ${name}${good ? "" : "\t" + String(typeof detail === "string" ? detail : JSON.stringify(detail)).slice(0, 3000).replaceAll("\n", "\\n")}\n`);
}

export const equal = (name, got, wanted) => check(name, JSON.stringify(got) === JSON.stringify(wanted), `got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`);

export async function withBrowser(act) {
	const browser = await chromium.launch({executablePath: settings.chromium, args: ["--no-sandbox", "--disable-gpu", "--force-color-profile=srgb"]});
	try {
		await act(browser);
	} catch (e) {
		process.stderr.write(`requests without an answer:\n${unanswered.join("")}`);
		throw e;
	} finally {
		await browser.close();
	}
	process.exitCode = failed ? 1 : 0;
}

// open - a page with @options of a browser context, and .complaints, .foreign, .violations, .asked, .pending (no answer yet) of it.
export async function open(browser, options = {}) {
	const context = await browser.newContext({viewport: {width: 1280, height: 800}, ignoreHTTPSErrors: true, reducedMotion: "reduce",
		timezoneId: "UTC", locale: "en-US", ...options});
	context.setDefaultTimeout(90000); // two busy cores draw a page in more than the usual 30 s now and then
	const page = await context.newPage(), own = new URL(url).origin;
	const log = {complaints: [], foreign: [], violations: [], asked: [], pending: new Set()};
	// A reply with an error status is noted by the browser itself; tests that provoke one look at `asked`.
	page.on("console", (m) => ["error", "warning"].includes(m.type()) && !/Failed to load resource/.test(m.text()) && log.complaints.push(m.text()));
	page.on("pageerror", (e) => log.complaints.push(e.stack || e.message));
	page.on("dialog", (d) => { log.complaints.push("dialog: " + d.message()); d.dismiss(); });
	for (const kind of ["requestfinished", "requestfailed"])
		page.on(kind, (r) => log.pending.delete(r));
	page.on("requestfailed", (r) => unanswered.push(`${r.url()}: ${r.failure()?.errorText}\n`));
	page.on("request", (r) => {
		log.pending.add(r);
		log.asked.push({url: r.url(), headers: r.headers()});
		if (!r.url().startsWith(own + "/") && !r.url().startsWith("data:"))
			log.foreign.push(r.url());
	});
	await context.exposeBinding("policyBroken", (_, what) => log.violations.push(what));
	await context.addInitScript(() => document.addEventListener("securitypolicyviolation", (e) => window.policyBroken(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`)));
	return Object.assign(page, log);
}

export async function load(page) {
	await page.goto(url);
	await page.waitForSelector(".verdict");
	await page.waitForFunction(() => !document.querySelector("#incidents .body").textContent.includes("Loading"));
}

// panel - brings a section into sight and waits until it has been filled.
export async function panel(page, id) {
	await page.evaluate((x) => document.getElementById(x).scrollIntoView(), id);
	await page.waitForFunction((x) => {
		const body = document.querySelector(`#${x} > .body`);
		return body && body.childNodes.length && !/^(Loading|This could not be loaded)/.test(body.textContent);
	}, id);
	return page.locator(`#${id}`);
}

export async function api(page, path) {
	const reply = await page.request.get(url + "/api/v1/" + path, {headers: token ? {Authorization: "Bearer " + token} : {}, ignoreHTTPSErrors: true});
	if (!reply.ok())
		throw new Error(`${path}: ${reply.status()} ${await reply.text()}`);
	return reply.json();
}

export function quiet(name, page) {
	equal(`${name}: nothing to complain about on the console`, page.complaints, []);
	equal(`${name}: the policy forbade nothing`, page.violations, []);
	equal(`${name}: no other server was asked`, page.foreign, []);
}

// lateCells - of each row of the cluster's heat map: how many cells have the colour of 100 ms and more.
export const lateCells = (page) => page.evaluate(() => {
	const canvas = document.getElementById("heat"), {width, height} = canvas, g = new OffscreenCanvas(width, height).getContext("2d", {willReadFrequently: true});
	g.drawImage(canvas, 0, 0);
	const words = new Uint32Array(g.getImageData(0, 0, width, height).data.buffer), rows = new Array(height).fill(0);
	const word = (rgb) => new Uint32Array(new Uint8ClampedArray([...rgb, 255]).buffer)[0], late = [word([176, 24, 48]), word([255, 110, 122])];
	words.forEach((w, i) => { rows[Math.floor(i / width)] += late.includes(w) ? 1 : 0; });
	return rows;
});

// picture - of the whole page, as wide as it is; left in $shots, if that is given. What sticks to the top is there once.
export async function picture(page, name, most = 6000) {
	if (!shots)
		return;
	const size = page.viewportSize(), height = await page.evaluate(() => document.documentElement.scrollHeight);
	await page.setViewportSize({width: size.width, height: Math.min(height, most)});
	await page.evaluate(() => scrollTo(0, 0));
	await page.screenshot({path: `${shots}/${name}.png`});
	await page.setViewportSize(size);
}

// detail - a picture of one part of it.
export async function detail(page, selector, name) {
	if (shots)
		await page.locator(selector).screenshot({path: `${shots}/${name}.png`});
}
