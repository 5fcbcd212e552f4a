// SPDX-License-Identifier: Apache-2.0
// client.js - questions to the server. The token lives in this tab's session only and goes out as a
// header, never in an address, which would end up in logs and histories.
const KEY = "ingero-token", PATIENCE_MS = 20000;

export class Refusal extends Error {
	constructor(status, message, hint) {
		super(message);
		this.status = status; // 0: no answer at all
		this.hint = hint;
	}
}

export const tokenGet = () => sessionStorage.getItem(KEY) || "";
export const tokenSet = (t) => t ? sessionStorage.setItem(KEY, t) : sessionStorage.removeItem(KEY);

// A link that holds the token (`ingero dashboard` prints one) gives it in the fragment, which browsers do
// not send; it is taken out of the address at once, so that it is neither shown nor kept in the history.
export function tokenFromLink() {
	const given = new URLSearchParams(location.hash.slice(1)).get("token");
	if (!given)
		return;
	tokenSet(given);
	history.replaceState(null, "", location.pathname + location.search);
}

// Integers beyond 53 bits (hashes, times) as text: a double would change their last digits.
export function parseExact(text) {
	return JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d{16,}(?![\d.eE])/g, (m) => m[0] === '"' ? m : `"${m}"`));
}

export async function ask(path, {signal, ...options}, parse) {
	const headers = {Accept: "application/json"};
	let reply, text;

	if (tokenGet())
		headers.Authorization = "Bearer " + tokenGet();
	if (options.body)
		headers["Content-Type"] = "application/json";
	try {
		reply = await fetch(path, {...options, headers, credentials: "omit", cache: "no-store",
			redirect: "error", signal: signal ? AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]) : AbortSignal.timeout(PATIENCE_MS)});
		text = await reply.text();
	} catch (e) {
		throw new Refusal(0, e.name === "TimeoutError" ? "no answer within 20 s" : "no connection");
	}
	let data = null;
	try {
		data = parse(text);
	} catch {
		if (reply.ok)
			throw new Refusal(reply.status, "the answer is not JSON");
	}
	if (!reply.ok)
		throw new Refusal(reply.status, (data && (data.error?.message || data.error)) || `status ${reply.status}`, data && data.hint);
	return data;
}

export function get(path, params, signal) {
	const query = new URLSearchParams(Object.entries(params || {}).filter(([, v]) => v !== "" && v !== undefined));
	return ask("/api/v1/" + path + (query.size ? "?" + query : ""), {signal}, JSON.parse);
}

export const query = (body) => ask("/api/v1/query", {method: "POST", body: JSON.stringify(body)}, parseExact);
