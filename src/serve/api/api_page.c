/* SPDX-License-Identifier: Apache-2.0 */
/* api_page.c - what is answered at once on the loop: the page's files, the clock, how things stand.
 */
#include "serve/serve_private.h"
#include "sql/sql_worker.h"
#include "web/web.h"

void api_page(void *arg, struct http_exchange *x, const struct http_request *q)
{
	serve_put_node(arg, x);
	web_reply(&web_dashboard, x, q);
}

static void reply_json(
	struct serve *s, struct http_exchange *x, int status, struct json_writer *w, struct buf *b)
{
	serve_put_node(s, x);
	if (json_finish(w) < 0)
		http_reply_error(x, 500, "cannot write the answer");
	else
		http_reply(x, status, NULL, buf_str(b), b->len);
}

void api_time(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(256);
	struct json_writer w = json_writer_to_buf(&b);

	(void)q;
	json_begin_object(&w);
	json_int_member(&w, "timestamp_ns", wall_now().ns);
	json_end_object(&w);
	reply_json(arg, x, 200, &w, &b);
}

static void put_worker(struct json_writer *w)
{
	struct sql_worker_stats f = sql_worker_stats();
	const char *weakness = sql_worker_weakness();

	json_begin_object_member(w, "sql_worker");
	if (f.known) {
		json_bool_member(w, "landlock", f.landlock > 0);
		json_bool_member(w, "seccomp", f.seccomp);
	}
	json_uint_member(w, "running", f.running);
	json_uint_member(w, "started", f.started);
	json_uint_member(w, "killed", f.killed);
	if (weakness)
		json_string_member(w, "warning", weakness);
	json_end_object(w);
}

/* Whether the file is there and readable; what is in it is not for those without a token. */
void api_health(void *arg, struct http_exchange *x, const struct http_request *q)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4096);
	struct json_writer w = json_writer_to_buf(&b);
	struct serve *s = arg;
	struct http_server_stats f = http_server_stats(s->http);
	bool readable = access(serve_db(s), R_OK) == 0;
	size_t load = 0;

	(void)q;
	for (int i = 0; i < LANE_COUNT; i++)
		load += pool_load(s->lanes[i]);
	json_begin_object(&w);
	json_string_member(&w, "status", readable ? "ok" : "no recording");
	json_string_member(&w, "version", s->settings.version ? s->settings.version : "");
	if (!readable)
		json_string_member(&w, "reason",
			"the recording is missing or unreadable: create one with `sudo ingero trace`");
	put_worker(&w);
	json_uint_member(&w, "requests", f.requests);
	json_uint_member(&w, "rejected", f.rejected);
	json_uint_member(&w, "connections", f.open_connections);
	json_uint_member(&w, "queue", load);
	json_end_object(&w);
	reply_json(s, x, readable ? 200 : 503, &w, &b);
}
