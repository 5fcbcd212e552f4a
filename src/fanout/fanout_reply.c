/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_reply.c - see fanout_reply.h. */
#include "fanout/fanout_reply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "json/reader.h"
#include "json/tree.h"

#define ERROR_MAX      220 /* bytes of a node's own words */
#define HINT_MAX       4096
#define TEXT_MAX_BYTES (4 << 20)

static bool is_json(const struct http_response *r)
{
	static const char json[] = "application/json";
	const char *type = http_head_get(&r->head, "content-type");

	if (!type || strncasecmp(type, json, strlen(json)) != 0)
		return false;
	return !type[strlen(json)] || strchr("; \t", type[strlen(json)]);
}

/* The node's own sentence, {"error": "…"} or another @member; "" if it gave none. */
static void read_said(const struct http_response *r, const char *member, char *out, size_t size)
{
	_cleanup_(json_reader_done) struct json_reader j;

	out[0] = 0;
	json_reader_init(&j, r->body, r->body_len, 1 << 16);
	if (!is_json(r) || json_read(&j) != JSON_READ_OBJECT)
		return;
	while (json_read(&j) == JSON_READ_KEY) {
		bool wanted = json_read_is(&j, member);
		enum json_read t = json_read(&j);

		if (wanted && t == JSON_READ_STRING)
			snprintf(out, size, "%s", buf_str(&j.text));
		if (!json_skip(&j, t))
			return;
	}
}

/* What a server of another kind says to a path that it does not have. */
static bool is_strange(int status)
{
	return status == 404 || status == 405 || status == 501;
}

static int refuse(const struct http_response *r, bool with_token, struct errinfo *reterr)
{
	char said[ERROR_MAX];

	read_said(r, "error", said, sizeof(said));
	if (r->status >= 300 && r->status < 400)
		return errinfo_set(
			reterr, -EPROTO, "redirects are not followed (HTTP %d)", r->status);
	if (r->status == 401)
		return errinfo_set(reterr, -EPROTO,
			with_token
				? "invalid token (HTTP 401): set another with --token-file or INGERO_FLEET_TOKEN"
				: "a token is required (HTTP 401): set one with --token-file or INGERO_FLEET_TOKEN");
	if (r->status == 408) /* its own words are about the API, which nobody here speaks */
		return errinfo_set(reterr, -EPROTO,
			"the SQL timed out (HTTP 408): select less, or raise --timeout (fleet.timeout in ingero.yaml)");
	if (!said[0] && is_strange(r->status))
		return errinfo_set(reterr, r->status == 404 ? -ENOENT : -EPROTO,
			"unknown request (HTTP %d): is it an `ingero dashboard`?", r->status);
	return errinfo_set(reterr, r->status == 404 ? -ENOENT : -EPROTO, "%s%s(HTTP %d)", said,
		said[0] ? " " : "it refused ", r->status);
}

int fanout_reply_check(const struct http_response *r, bool with_token, struct errinfo *reterr)
{
	const char *type = http_head_get(&r->head, "content-type");

	if (r->status != 200)
		return refuse(r, with_token, reterr);
	if (!is_json(r))
		return errinfo_set(reterr, -EPROTO,
			"it answered with %.60s instead of JSON: is it an `ingero dashboard`?",
			type && type[0] ? type : "something");
	return 0;
}

char *fanout_reply_hint(const struct http_response *r)
{
	char hint[HINT_MAX];

	read_said(r, "hint", hint, sizeof(hint));
	return hint[0] ? strdup(hint) : NULL;
}

int fanout_reply_time(const struct http_response *r, int64_t *ret_ns)
{
	_cleanup_(json_reader_done) struct json_reader j;
	bool found = false;

	json_reader_init(&j, r->body, r->body_len, 4096);
	if (json_read(&j) != JSON_READ_OBJECT)
		return -EPROTO;
	while (json_read(&j) == JSON_READ_KEY) {
		bool time = json_read_is(&j, "timestamp_ns");
		enum json_read t = json_read(&j);

		if (time && t == JSON_READ_INT) {
			*ret_ns = j.i;
			found = true;
		}
		if (!json_skip(&j, t))
			return -EPROTO;
	}
	return found && !j.err ? 0 : -EPROTO;
}

int fanout_reply_copy(const struct http_response *r, struct buf *b, struct errinfo *reterr)
{
	_cleanup_(json_reader_done) struct json_reader j;
	struct json_writer w = json_writer_to_buf(b);

	json_reader_init(&j, r->body, r->body_len, TEXT_MAX_BYTES);
	if (!json_copy_value(&j, json_read(&j), &w) || json_read(&j) != JSON_READ_END)
		return errinfo_set(reterr, -EPROTO,
			j.err == -E2BIG ? "its answer is nested too deeply"
					: "its answer is not valid JSON");
	return json_finish(&w);
}
