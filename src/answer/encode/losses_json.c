/* SPDX-License-Identifier: Apache-2.0 */
/* losses_json.c - /api/v1/losses, and the accounting in the overview. */
#include "answer/losses.h"

#include "answer/answer_private.h"
#include "answer/encode/say.h"

#define SENTENCE_BYTES 512

void put_completeness(struct json_writer *w, const struct completeness *c)
{
	_cleanup_buf_ struct buf why = BUF_INIT(SENTENCE_BYTES);

	if (accounting_put_unclean(&c->books, &why))
		json_string_member(w, "unclean", buf_str(&why));
	buf_clear(&why);
	if (accounting_put_launches(&c->books, &why))
		json_string_member(w, "launches", buf_str(&why));
	json_key(w, "completeness"); /* null: unknown */
	if (completeness_share(c) < 0)
		json_put_null(w);
	else
		json_put_double(w, completeness_share(c));
}

static void put_sums(struct json_writer *w, const struct completeness *c)
{
	json_uint_member(w, "hits", c->hits);
	json_uint_member(w, "stored", c->stored);
	json_uint_member(w, "aggregated", c->aggregated);
	json_uint_member(w, "lost", c->lost);
	put_completeness(w, c);
}

int put_books(const struct question *q, struct json_writer *w, double *ret_completeness,
	struct errinfo *reterr)
{
	_cleanup_(losses_answer_done) struct losses_answer a = {0};
	int r = answer_losses(q, &a, reterr);

	if (r < 0 || !a.total.known)
		return r;
	*ret_completeness = completeness_share(&a.total);
	json_begin_object_member(w, "books");
	put_sums(w, &a.total);
	json_end_object(w);
	return 0;
}

/* The reasons of one session, node and source. */
static void put_reasons(struct json_writer *w, const struct losses_answer *a, size_t row)
{
	const struct sql_table *books = &a->books, *losses = &a->losses;

	json_begin_array_member(w, "reasons");
	for (size_t i = 0; i < losses->row_count; i++) {
		if (table_int(losses, i, LOSSES_SESSION) != table_int(books, row, LOSSES_SESSION) ||
			table_int(losses, i, LOSSES_SOURCE) !=
				table_int(books, row, LOSSES_SOURCE) ||
			strcmp(table_text(losses, i, LOSSES_NODE),
				table_text(books, row, LOSSES_NODE)) != 0)
			continue;
		json_begin_object(w);
		json_string_member(w, "reason", table_text(losses, i, LOSSES_REASON));
		json_int_member(w, "count", table_int(losses, i, LOSSES_COUNT));
		for (int k = 0; k < LOSS_COUNT; k++)
			if (!strcmp(wire_losses[k].name, table_text(losses, i, LOSSES_REASON)))
				json_string_member(w, "meaning", wire_losses[k].description);
		json_end_object(w);
	}
	json_end_array(w);
}

static bool is_used(const struct sql_table *books, size_t row)
{
	for (int c = LOSSES_HITS; c <= LOSSES_LOST; c++)
		if (table_int(books, row, c))
			return true;
	return false; /* a source that was not there */
}

static void put_sources(struct json_writer *w, const struct losses_answer *a)
{
	const struct sql_table *books = &a->books;

	json_begin_array_member(w, "sources");
	for (size_t i = 0; i < books->row_count; i++) {
		if (!is_used(books, i))
			continue;
		json_begin_object(w);
		json_int_member(w, "session", table_int(books, i, LOSSES_SESSION));
		json_string_member(w, "node", table_text(books, i, LOSSES_NODE));
		json_string_member(w, "source",
			wire_source_name((unsigned)table_int(books, i, LOSSES_SOURCE)));
		for (int c = LOSSES_HITS; c <= LOSSES_LOST; c++)
			json_int_member(w, sql_table_name(books, c), table_int(books, i, c));
		json_bool_member(w, "balances", losses_balance(books, i));
		put_reasons(w, a, i);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_cpus(struct json_writer *w, const struct sql_table *t)
{
	json_begin_array_member(w, "by_cpu");
	for (size_t i = 0; i < t->row_count; i++) {
		json_begin_object(w);
		json_int_member(w, "session", table_int(t, i, LOSSES_SESSION));
		json_string_member(
			w, "source", wire_source_name((unsigned)table_int(t, i, LOSSES_SOURCE)));
		json_string_member(w, "reason", table_text(t, i, LOSSES_REASON));
		json_int_member(w, "cpu", table_int(t, i, LOSSES_CPU));
		json_int_member(w, "count", table_int(t, i, LOSSES_CPU_COUNT));
		json_end_object(w);
	}
	json_end_array(w);
}

int losses_json(const struct question *q, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(losses_answer_done) struct losses_answer a = {0};
	int r = answer_losses(q, &a, reterr);

	if (r < 0)
		return r;
	json_begin_object(w);
	json_begin_object_member(w, "total");
	put_sums(w, &a.total);
	json_bool_member(w, "balances", a.balances);
	json_end_object(w);
	put_sources(w, &a);
	if (!q->request->brief)
		put_cpus(w, &a.cpus);
	if (q->request->say)
		say_losses(q->request->say, &a);
	table_put(w, "unseen", &a.unseen);
	table_put(w, "pruned", &a.pruned);
	json_bool_member(w, "recorded", a.total.known);
	json_bool_member(w, "live", q->live);
	json_bool_member(w, "truncated", a.truncated);
	json_end_object(w);
	return 0;
}
