/* SPDX-License-Identifier: Apache-2.0 */
/* tell_books.c - what became of every hit, and what tracing itself cost, as the agent recorded it.
 */
#include "agent/answer/tell_private.h"

#define POINTS         300
#define POINTS_MAX     5000
#define ROWS_MAX       5000
#define SENTENCE_BYTES 512

enum { COL_SESSION, COL_NODE, COL_SOURCE, COL_HITS, COL_STORED, COL_AGGREGATED, COL_LOST };

struct sums {
	double hits, stored, aggregated, lost; /* absurd numbers must not overflow */
	struct accounting unclean;             /* what is not known, if anything */
};

static uint64_t to_count(double v)
{
	return v > 0 && v < 9e18 ? (uint64_t)v : 0;
}

static int add_up(const struct tell *t, const struct sql_table *books, struct sums *ret,
	struct errinfo *reterr)
{
	struct sums s = {0};

	for (size_t i = 0; i < books->row_count; i++) {
		s.hits += tell_real(books, i, COL_HITS);
		s.stored += tell_real(books, i, COL_STORED);
		s.aggregated += tell_real(books, i, COL_AGGREGATED);
		s.lost += tell_real(books, i, COL_LOST);
	}
	s.unclean.source[0] = (struct account){
		.hits = to_count(s.hits), .stored = to_count(s.stored + s.aggregated + s.lost)};
	*ret = s;
	return nodedb_look_unclean(t->look, &ret->unclean, reterr);
}

/* Hits that are in no column are on their way while tracing goes on. Negative: not known. */
static double completeness(const struct sums *s)
{
	double seen = s->stored + s->aggregated, known = seen + s->lost;

	if (s->unclean.unclean)
		return -1;
	return known > 0 ? seen / known : 1.0;
}

static void put_sums(struct json_writer *w, const struct sums *s)
{
	_cleanup_buf_ struct buf why = BUF_INIT(SENTENCE_BYTES);

	json_uint_member(w, "hits", to_count(s->hits));
	json_uint_member(w, "stored", to_count(s->stored));
	json_uint_member(w, "aggregated", to_count(s->aggregated));
	json_uint_member(w, "lost", to_count(s->lost));
	if (accounting_put_unclean(&s->unclean, &why))
		json_string_member(w, "unclean", buf_str(&why));
	json_key(w, "completeness"); /* null: not known */
	if (completeness(s) < 0)
		json_put_null(w);
	else
		json_put_double(w, completeness(s));
}

static struct nodedb_scope all_of_node(const struct tell *t)
{
	return (struct nodedb_scope){.node = t->scope.node, .limit = ROWS_MAX};
}

int tell_books(const struct tell *t, struct json_writer *w, double *ret_completeness,
	struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table books = {0};
	struct nodedb_scope scope = all_of_node(t);
	int r = nodedb_look_list(t->look, NODEDB_ACCOUNTING, &scope, &books, reterr);
	struct sums s;

	if (r < 0 || !books.row_count)
		return r;
	r = add_up(t, &books, &s, reterr);
	if (r < 0)
		return r;
	*ret_completeness = completeness(&s);
	json_key(w, "books");
	json_begin_object(w);
	put_sums(w, &s);
	json_end_object(w);
	return 0;
}

/* The reasons of one session, node and source. */
static void put_reasons(struct json_writer *w, const struct sql_table *books, size_t row,
	const struct sql_table *losses)
{
	json_key(w, "reasons");
	json_begin_array(w);
	for (size_t i = 0; i < losses->row_count; i++) {
		if (tell_int(losses, i, COL_SESSION) != tell_int(books, row, COL_SESSION) ||
			tell_int(losses, i, COL_SOURCE) != tell_int(books, row, COL_SOURCE) ||
			strcmp(tell_text(losses, i, COL_NODE), tell_text(books, row, COL_NODE)) !=
				0)
			continue;
		json_begin_object(w);
		json_string_member(w, "reason", tell_text(losses, i, 3));
		json_int_member(w, "count", tell_int(losses, i, 4));
		json_end_object(w);
	}
	json_end_array(w);
}

static bool balances(const struct sql_table *t, size_t row)
{
	return tell_real(t, row, COL_HITS) == tell_real(t, row, COL_STORED) +
						      tell_real(t, row, COL_AGGREGATED) +
						      tell_real(t, row, COL_LOST);
}

static void put_sources(
	struct json_writer *w, const struct sql_table *books, const struct sql_table *losses)
{
	json_key(w, "sources");
	json_begin_array(w);
	for (size_t i = 0; i < books->row_count; i++) {
		if (!tell_int(books, i, COL_HITS) && !tell_int(books, i, COL_STORED) &&
			!tell_int(books, i, COL_AGGREGATED) && !tell_int(books, i, COL_LOST))
			continue; /* a source that was not there */
		json_begin_object(w);
		json_int_member(w, "session", tell_int(books, i, COL_SESSION));
		json_string_member(w, "node", tell_text(books, i, COL_NODE));
		json_string_member(
			w, "source", wire_source_name((unsigned)tell_int(books, i, COL_SOURCE)));
		for (int c = COL_HITS; c <= COL_LOST; c++)
			json_int_member(w, sql_table_name(books, c), tell_int(books, i, c));
		tell_bool(w, "balances", balances(books, i));
		put_reasons(w, books, i, losses);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_cpus(struct json_writer *w, const struct sql_table *t)
{
	json_key(w, "by_cpu");
	json_begin_array(w);
	for (size_t i = 0; i < t->row_count; i++) {
		json_begin_object(w);
		json_int_member(w, "session", tell_int(t, i, COL_SESSION));
		json_string_member(
			w, "source", wire_source_name((unsigned)tell_int(t, i, COL_SOURCE)));
		json_string_member(w, "reason", tell_text(t, i, 3));
		json_int_member(w, "cpu", tell_int(t, i, 4));
		json_int_member(w, "count", tell_int(t, i, 5));
		json_end_object(w);
	}
	json_end_array(w);
}

int tell_losses(const struct tell *t, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table books = {0};
	_cleanup_(sql_table_done) struct sql_table losses = {0};
	_cleanup_(sql_table_done) struct sql_table cpus = {0};
	_cleanup_(sql_table_done) struct sql_table gaps = {0};
	_cleanup_(sql_table_done) struct sql_table pruned = {0};
	struct nodedb_scope scope = all_of_node(t);
	struct sums s;
	bool balanced = true;
	int r = nodedb_look_list(t->look, NODEDB_ACCOUNTING, &scope, &books, reterr);

	if (r == 0)
		r = nodedb_look_list(t->look, NODEDB_LOSSES, &scope, &losses, reterr);
	if (r == 0)
		r = nodedb_look_list(t->look, NODEDB_CPU_LOSSES, &scope, &cpus, reterr);
	if (r == 0)
		r = nodedb_look_list(t->look, NODEDB_CALL_GAPS, &scope, &gaps, reterr);
	if (r == 0)
		r = nodedb_look_list(t->look, NODEDB_PRUNED, &scope, &pruned, reterr);
	if (r == 0)
		r = add_up(t, &books, &s, reterr);
	if (r < 0)
		return r;
	for (size_t i = 0; i < books.row_count; i++)
		balanced = balanced && balances(&books, i);
	json_begin_object(w);
	json_key(w, "total");
	json_begin_object(w);
	put_sums(w, &s);
	tell_bool(w, "balances", balanced);
	json_end_object(w);
	put_sources(w, &books, &losses);
	put_cpus(w, &cpus);
	tell_rows(w, "unseen", &gaps);
	tell_rows(w, "pruned", &pruned);
	tell_bool(w, "recorded", books.row_count > 0);
	tell_bool(w, "live", t->live);
	tell_bool(w, "truncated",
		books.truncated || losses.truncated || cpus.truncated || gaps.truncated ||
			pruned.truncated);
	json_end_object(w);
	return 0;
}

/* ---- cost ---- */

static void put_value(
	struct json_writer *w, const struct sql_table *t, size_t row, const char *name)
{
	json_key(w, name);
	tell_cell(w, t, row, tell_column(t, name));
}

int tell_overhead(const struct tell *t, struct json_writer *w, struct errinfo *reterr)
{
	static const char *const series[] = {"timestamp", "overhead", "launch_weight",
		"agent_cpu_pct", "agent_rss_bytes", "db_bytes"};
	static const char *const newest[] = {"budget", "overhead", "hit_ns", "launch_weight",
		"agent_cpu_pct", "agent_rss_bytes", "db_bytes"};
	size_t points = tell_limit(t->wish->points, POINTS, POINTS_MAX), every;
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_look_list(t->look, NODEDB_OVERHEAD, &t->scope, &s, reterr);

	if (r < 0)
		return r;
	every = s.row_count / points + 1;
	json_begin_object(w);
	tell_bool(w, "recorded", s.row_count > 0);
	for (size_t i = 0; s.row_count && i < ARRAY_SIZE(newest); i++)
		put_value(w, &s, 0, newest[i]);
	json_key(w, "samples");
	json_begin_array(w);
	for (size_t i = s.row_count; i-- > 0;) {
		if (i % every)
			continue;
		json_begin_object(w);
		for (size_t c = 0; c < ARRAY_SIZE(series); c++)
			put_value(w, &s, i, series[c]);
		json_end_object(w);
	}
	json_end_array(w);
	tell_bool(w, "truncated", s.truncated);
	tell_window(t, w);
	json_end_object(w);
	return 0;
}
