/* SPDX-License-Identifier: Apache-2.0 */
/* api_tell.c - routes that say what the recording says. What is costly is kept for a while: a page
 * that many look at asks the same again and again. */
#include <stdio.h>

#include "agent/serve/serve_private.h"

static void tell(struct serve_call *c, const struct api_row *row, const struct tell_wish *wish)
{
	struct errinfo e = {0};
	int r = tell_run(serve_db(c->serve), wish, row->tell, row->default_ns, &c->out, &e);

	if (r < 0)
		serve_error(c, r, &e, NULL);
}

static void tell_kept(struct serve_call *c, const struct api_row *row, const struct tell_wish *wish)
{
	_cleanup_buf_ struct buf key = BUF_INIT(4096);
	struct keep_slot *slot;
	uint64_t age = 0;

	buf_printf(&key, "%s?%s", c->path, c->query);
	if (!key.err && keep_begin(c->serve->keep, serve_db(c->serve), buf_str(&key), &c->out, &age,
				&slot)) {
		snprintf(c->age, sizeof(c->age), "%llu", (unsigned long long)(age / NS_PER_S));
		return;
	}
	tell(c, row, wish);
	if (!key.err)
		keep_end(c->serve->keep, slot, c->status == 200 && !c->out.err ? &c->out : NULL);
}

void api_tell(struct serve_call *c)
{
	const struct api_row *row = c->data;
	struct tell_wish wish;
	struct errinfo e = {0};
	int r = api_wish(row, c->query, &wish, &e);

	if (r < 0)
		serve_error(c, r, &e, NULL);
	wish.version = c->serve->settings.version;
	if (r < 0)
		return;
	if (row->lane == LANE_HEAVY)
		tell_kept(c, row, &wish);
	else
		tell(c, row, &wish);
}
