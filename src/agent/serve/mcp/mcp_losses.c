/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_losses.c - get_losses: how complete the recording is (agent/answer/losses.h), the sessions of
 * each source together. */
#include "agent/serve/mcp/mcp_tool.h"

#include <string.h>

#include "agent/answer/losses.h"
#include "agent/serve/mcp/mcp_clean.h"
#include "wire/names.h"

#define UNSEEN_SHOWN 16

static json_t *reasons_json(const struct sql_table *losses, int64_t source)
{
	json_t *list = json_array();

	for (int k = 0; k < LOSS_COUNT; k++) {
		json_int_t n = 0;

		for (size_t i = 0; i < losses->row_count; i++)
			if (table_int(losses, i, LOSSES_SOURCE) == source &&
				!strcmp(table_text(losses, i, LOSSES_REASON), wire_losses[k].name))
				n += table_int(losses, i, LOSSES_COUNT);
		if (n)
			json_array_append_new(
				list, json_pack("{s:s, s:I, s:s}", "reason", wire_losses[k].name,
					      "count", n, "meaning", wire_losses[k].description));
	}
	return list;
}

static json_t *sources_json(const struct losses_answer *a)
{
	json_t *list = json_array();

	for (unsigned source = 0; source < WIRE_SOURCE_MAX; source++) {
		json_int_t sums[LOSSES_LOST + 1] = {0};
		bool balances = true;

		for (size_t i = 0; i < a->books.row_count; i++) {
			if (table_int(&a->books, i, LOSSES_SOURCE) != source)
				continue;
			for (int c = LOSSES_HITS; c <= LOSSES_LOST; c++)
				sums[c] += table_int(&a->books, i, c);
			balances = balances && losses_balance(&a->books, i);
		}
		if (!sums[LOSSES_HITS])
			continue;
		json_array_append_new(
			list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:b, s:o}", "source",
				      wire_source_name(source), "hits", sums[LOSSES_HITS], "stored",
				      sums[LOSSES_STORED], "aggregated", sums[LOSSES_AGGREGATED],
				      "lost", sums[LOSSES_LOST], "balanced", balances, "reasons",
				      reasons_json(&a->losses, source)));
	}
	return list;
}

/* Calls before the probes were there, the longest time first. */
static json_t *unseen_json(const struct sql_table *t)
{
	json_t *list = json_array();

	for (size_t i = 0; i < t->row_count && i < UNSEEN_SHOWN; i++)
		json_array_append_new(list,
			json_pack("{s:I, s:o, s:o, s:o, s:s}", "pid",
				(json_int_t)table_int(t, i, table_column(t, "pid")), "process_name",
				mcp_clean_string(
					table_text(t, i, table_column(t, "comm")), MCP_CLEAN_NAME),
				"duration_us",
				mcp_us(table_real(t, i, table_column(t, "duration_ns"))), "file",
				mcp_clean_string(
					table_text(t, i, table_column(t, "file")), MCP_CLEAN_NAME),
				"reason", table_text(t, i, table_column(t, "reason"))));
	return list;
}

static json_t *losses_value(
	const struct question *q, const json_t *arguments, struct errinfo *reterr)
{
	_cleanup_(losses_answer_done) struct losses_answer a = {0};
	int r = answer_losses(q, &a, reterr);
	json_t *full, *range = r < 0 ? NULL : mcp_range(q, reterr);
	_cleanup_buf_ struct buf why = BUF_INIT(512);
	json_int_t pruned = 0;

	if (!range)
		return NULL;
	for (size_t i = 0; i < a.pruned.row_count; i++)
		if (!strcmp(table_text(&a.pruned, i, table_column(&a.pruned, "table")), "events"))
			pruned += table_int(&a.pruned, i, table_column(&a.pruned, "rows"));
	full = json_pack("{s:I, s:o, s:o}", "pruned_rows", pruned, "range", range, "sources",
		sources_json(&a));
	if (completeness_share(&a.total) >= 0)
		json_object_set_new(full, "completeness", json_real(completeness_share(&a.total)));
	else if (accounting_put_unclean(&a.total.books, &why))
		json_object_set_new(full, "note", json_string(buf_str(&why)));
	else
		json_object_set_new(full, "note",
			json_string("losses of this recording are unknown (the published agent "
				    "did not count)"));
	if (a.unseen.row_count) /* of which no number can be known */
		json_object_set_new(full, "unseen", unseen_json(&a.unseen));
	return full;
}

void mcp_losses(const struct call *c, const json_t *arguments, struct answer *a)
{
	mcp_answer(c, arguments, losses_value, a);
}
