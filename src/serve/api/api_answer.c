/* SPDX-License-Identifier: Apache-2.0 */
/* api_answer.c - routes that say what the recording says. What is costly is kept for a while: a page
 * that many look at asks the same again and again. */
#include <stdio.h>

#include "serve/serve_private.h"

static void reply(
	struct serve_call *c, const struct api_row *row, const struct answer_request *request)
{
	struct errinfo e = {0};
	int r = answer_run(serve_db(c->serve), request, row->answer, row->default_ns, &c->out, &e);

	if (r < 0)
		serve_error(c, r, &e, NULL);
}

static void reply_kept(
	struct serve_call *c, const struct api_row *row, const struct answer_request *request)
{
	_cleanup_buf_ struct buf key = BUF_INIT(4096);
	struct response_cache_slot *slot;
	uint64_t age = 0;

	buf_printf(&key, "%s?%s", c->path, c->query);
	if (!key.err && response_cache_begin(c->serve->response_cache, serve_db(c->serve),
				buf_str(&key), &c->out, &age, &slot)) {
		snprintf(c->age, sizeof(c->age), "%llu", (unsigned long long)(age / NS_PER_S));
		return;
	}
	reply(c, row, request);
	if (!key.err)
		response_cache_end(c->serve->response_cache, slot,
			c->status == 200 && !c->out.err ? &c->out : NULL);
}

static void reply_timeline(
	struct serve_call *c, const struct api_row *row, struct answer_request *request)
{
	request->timeline = timeline_keeper_begin(c->serve->timeline, &request->timeline_progress);
	reply(c, row, request);
	timeline_keeper_end(c->serve->timeline);
}

void api_answer(struct serve_call *c)
{
	const struct api_row *row = c->data;
	struct answer_request request;
	struct errinfo e = {0};
	int r = api_request(row, c->query, &request, &e);

	if (r < 0)
		serve_error(c, r, &e, NULL);
	request.version = c->serve->settings.version;
	if (r < 0)
		return;
	if (row->needs_timeline)
		reply_timeline(c, row, &request);
	else if (row->lane == LANE_HEAVY)
		reply_kept(c, row, &request);
	else
		reply(c, row, &request);
}
