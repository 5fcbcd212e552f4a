/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_losses.c - get_losses: how complete the recording is. hits = stored + aggregated + lost. */
#include "agent/serve/mcp_tool.h"

#include "base/buf.h"
#include "mcp/rpc.h"
#include "wire/names.h"

static json_t *reasons_json(const struct account *a)
{
	json_t *list = json_array();

	for (int i = 0; i < LOSS_COUNT; i++)
		if (a->lost[i])
			json_array_append_new(
				list, json_pack("{s:s, s:I, s:s}", "reason", wire_losses[i].name,
					      "count", (json_int_t)a->lost[i], "meaning",
					      wire_losses[i].description));
	return list;
}

static json_t *source_json(unsigned source, const struct account *a)
{
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:b, s:o}", "source", wire_source_name(source),
		"hits", (json_int_t)a->hits, "stored", (json_int_t)a->stored, "aggregated",
		(json_int_t)a->aggregated, "lost", (json_int_t)account_lost(a), "balanced",
		account_balances(a), "reasons", reasons_json(a));
}

static json_t *books_json(const struct nodedb_content *c, json_t *full)
{
	_cleanup_buf_ struct buf why = BUF_INIT(512);
	json_t *sources = json_array();
	uint64_t hits = 0, lost = 0;

	for (unsigned i = 0; c->has_books && i < WIRE_SOURCE_MAX; i++) {
		const struct account *a = &c->books.source[i];

		if (!a->hits)
			continue;
		hits += a->hits;
		lost += account_lost(a);
		json_array_append_new(sources, source_json(i, a));
	}
	if (accounting_put_unclean(&c->books, &why))
		json_object_set_new(full, "note", json_string(buf_str(&why)));
	else if (c->has_books)
		json_object_set_new(full, "completeness",
			json_real(hits ? 1.0 - (double)lost / (double)hits : 1.0));
	else
		json_object_set_new(full, "note",
			json_string("losses of this recording are unknown (the published agent "
				    "did not count)"));
	return sources;
}

void mcp_losses(const struct call *c, const json_t *arguments, struct answer *a)
{
	_cleanup_(nodedb_content_done) struct nodedb_content content = {0};
	_cleanup_(mcp_part_done) struct mcp_part part = {.filter = {.thin = NODEDB_THIN_LARGE}};
	char text[CALL_GAP_SENTENCE_MAX];
	struct errinfo e = {0};
	json_t *full;
	int r = mcp_part_read(mcp_settings_of(c)->db, arguments, &part, &content, &e);

	if (r < 0) {
		mcp_reply_error(a, r, &e);
		return;
	}
	full = json_pack("{s:I, s:I, s:o}", "pruned_rows", (json_int_t)content.pruned_rows,
		"damaged_rows", (json_int_t)content.skipped_rows, "range",
		mcp_range(&content, &part));
	json_object_set_new(full, "sources", books_json(&content, full));
	if (content.books.unseen.processes)
		json_object_set_new(full, "unseen",
			json_string(call_gap_sentence(&content.books.unseen, text, sizeof(text))));
	mcp_reply(a, arguments, full, NULL);
}
