/* SPDX-License-Identifier: Apache-2.0 */
/* chains.c - stored verdicts. Their lists are JSON that somebody wrote into the file: it is
 * read again, not passed on, and what it should not hold is left out. */
#include <jansson.h>

#include "answer/answer_private.h"

#define CHAINS     1000
#define CHAINS_MAX 10000
#define JSON_MAX   (64u << 10) /* of one text in the file */

static json_t *load_array(const char *text)
{
	size_t len = strlen(text);
	json_t *root = len && len <= JSON_MAX ? json_loadb(text, len, 0, NULL) : NULL;

	if (root && json_is_array(root))
		return root;
	json_decref(root);
	return NULL;
}

void put_chain_texts(struct json_writer *w, const char *key, const char *text)
{
	_cleanup_(json_decrefp) json_t *root = load_array(text);
	json_t *item;
	size_t i;

	json_begin_array_member(w, key);
	json_array_foreach (root, i, item)
		if (json_is_string(item))
			json_put_string(w, json_string_value(item));
	json_end_array(w);
}

static void put_timeline(struct json_writer *w, const char *text)
{
	_cleanup_(json_decrefp) json_t *root = load_array(text);
	json_t *item;
	size_t i;

	json_begin_array_member(w, "timeline");
	json_array_foreach (root, i, item) {
		const json_t *us = json_object_get(item, "dur_us");
		const char *layer = json_string_value(json_object_get(item, "layer"));
		const char *op = json_string_value(json_object_get(item, "op"));
		const char *detail = json_string_value(json_object_get(item, "detail"));

		if (!json_is_object(item))
			continue;
		json_begin_object(w);
		json_string_member(w, "layer", layer ? layer : "");
		if (op)
			json_string_member(w, "op", op);
		json_string_member(w, "detail", detail ? detail : "");
		if (json_is_integer(us))
			json_int_member(w, "dur_us", json_integer_value(us));
		json_end_object(w);
	}
	json_end_array(w);
}

/* A column whose empty value means that it is not known. */
static void put_known(
	struct json_writer *w, const struct sql_table *t, size_t row, const char *name)
{
	int c = table_column(t, name);

	if (!table_text(t, row, c)[0] && table_real(t, row, c) <= 0)
		return;
	json_key(w, name);
	table_cell(w, t, row, c);
}

static void put_chain(struct json_writer *w, const struct sql_table *t, size_t row)
{
	static const char *const always[] = {
		"id", "detected_at", "severity", "summary", "root_cause", "explanation"};
	static const char *const known[] = {
		"cuda_op", "cuda_p99_us", "cuda_p50_us", "tail_ratio", "node"};

	json_begin_object(w);
	for (size_t i = 0; i < ARRAY_SIZE(always); i++) {
		json_key(w, always[i]);
		table_cell(w, t, row, table_column(t, always[i]));
	}
	put_chain_texts(
		w, "recommendations", table_text(t, row, table_column(t, "recommendations")));
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		put_known(w, t, row, known[i]);
	put_timeline(w, table_text(t, row, table_column(t, "timeline")));
	json_end_object(w);
}

int chains_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table s = {0};
	struct scope scope = q->scope;
	int r;

	/* A verdict may be found after the last event that it is about. */
	if (!q->request->to[0])
		scope.to_ns = 0;
	if (q->by_default && !q->live)
		scope.from_ns = 0;
	r = nodedb_snapshot_list(q->snapshot, NODEDB_CHAINS, &scope,
		answer_limit(q->request->limit, CHAINS, CHAINS_MAX), &s, reterr);
	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_array_member(w, "chains");
	for (size_t i = 0; i < s.row_count; i++)
		put_chain(w, &s, i);
	json_end_array(w);
	return answer_end(q, w, s.truncated);
}
