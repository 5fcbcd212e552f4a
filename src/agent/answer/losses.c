/* SPDX-License-Identifier: Apache-2.0 */
/* losses.c - what became of every hit, and what tracing itself cost, as the agent recorded it.
 */
#include "agent/answer/answer_private.h"

#define POINTS     300
#define POINTS_MAX 5000
#define ROWS_MAX   5000

enum { COL_SESSION, COL_NODE, COL_SOURCE, COL_HITS, COL_STORED, COL_AGGREGATED, COL_LOST };

struct sums {
	double hits, stored, aggregated, lost; /* absurd numbers must not overflow */
};

static struct sums add_up(const struct sql_table *t)
{
	struct sums s = {0};

	for (size_t i = 0; i < t->row_count; i++) {
		s.hits += table_real(t, i, COL_HITS);
		s.stored += table_real(t, i, COL_STORED);
		s.aggregated += table_real(t, i, COL_AGGREGATED);
		s.lost += table_real(t, i, COL_LOST);
	}
	return s;
}

static double completeness(const struct sums *s)
{
	return s->hits > 0 ? MIN((s->stored + s->aggregated) / s->hits, 1.0) : 1.0;
}

static void put_count(struct json_writer *w, const char *key, double v)
{
	json_uint_member(w, key, v > 0 && v < 9e18 ? (uint64_t)v : 0);
}

static void put_sums(struct json_writer *w, const struct sums *s)
{
	put_count(w, "hits", s->hits);
	put_count(w, "stored", s->stored);
	put_count(w, "aggregated", s->aggregated);
	put_count(w, "lost", s->lost);
	json_double_member(w, "completeness", completeness(s));
}

static struct scope all_of_node(const struct question *t)
{
	return (struct scope){.node = t->scope.node};
}

int put_books(const struct question *t, struct json_writer *w, double *ret_completeness,
	struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table books = {0};
	struct scope scope = all_of_node(t);
	int r = nodedb_snapshot_list(
		t->snapshot, NODEDB_ACCOUNTING, &scope, ROWS_MAX, &books, reterr);
	struct sums s;

	if (r < 0 || !books.row_count)
		return r;
	s = add_up(&books);
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
		if (table_int(losses, i, COL_SESSION) != table_int(books, row, COL_SESSION) ||
			table_int(losses, i, COL_SOURCE) != table_int(books, row, COL_SOURCE) ||
			strcmp(table_text(losses, i, COL_NODE), table_text(books, row, COL_NODE)) !=
				0)
			continue;
		json_begin_object(w);
		json_string_member(w, "reason", table_text(losses, i, 3));
		json_int_member(w, "count", table_int(losses, i, 4));
		json_end_object(w);
	}
	json_end_array(w);
}

static bool balances(const struct sql_table *t, size_t row)
{
	return table_real(t, row, COL_HITS) == table_real(t, row, COL_STORED) +
						       table_real(t, row, COL_AGGREGATED) +
						       table_real(t, row, COL_LOST);
}

static void put_sources(
	struct json_writer *w, const struct sql_table *books, const struct sql_table *losses)
{
	json_key(w, "sources");
	json_begin_array(w);
	for (size_t i = 0; i < books->row_count; i++) {
		if (!table_int(books, i, COL_HITS) && !table_int(books, i, COL_STORED) &&
			!table_int(books, i, COL_AGGREGATED) && !table_int(books, i, COL_LOST))
			continue; /* a source that was not there */
		json_begin_object(w);
		json_int_member(w, "session", table_int(books, i, COL_SESSION));
		json_string_member(w, "node", table_text(books, i, COL_NODE));
		json_string_member(
			w, "source", wire_source_name((unsigned)table_int(books, i, COL_SOURCE)));
		for (int c = COL_HITS; c <= COL_LOST; c++)
			json_int_member(w, sql_table_name(books, c), table_int(books, i, c));
		put_bool(w, "balances", balances(books, i));
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
		json_int_member(w, "session", table_int(t, i, COL_SESSION));
		json_string_member(
			w, "source", wire_source_name((unsigned)table_int(t, i, COL_SOURCE)));
		json_string_member(w, "reason", table_text(t, i, 3));
		json_int_member(w, "cpu", table_int(t, i, 4));
		json_int_member(w, "count", table_int(t, i, 5));
		json_end_object(w);
	}
	json_end_array(w);
}

int losses_json(const struct question *t, struct json_writer *w, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table books = {0};
	_cleanup_(sql_table_done) struct sql_table losses = {0};
	_cleanup_(sql_table_done) struct sql_table cpus = {0};
	_cleanup_(sql_table_done) struct sql_table pruned = {0};
	struct scope scope = all_of_node(t);
	struct sums s;
	bool balanced = true;
	int r = nodedb_snapshot_list(
		t->snapshot, NODEDB_ACCOUNTING, &scope, ROWS_MAX, &books, reterr);

	if (r == 0)
		r = nodedb_snapshot_list(
			t->snapshot, NODEDB_LOSSES, &scope, ROWS_MAX, &losses, reterr);
	if (r == 0)
		r = nodedb_snapshot_list(
			t->snapshot, NODEDB_CPU_LOSSES, &scope, ROWS_MAX, &cpus, reterr);
	if (r == 0)
		r = nodedb_snapshot_list(
			t->snapshot, NODEDB_PRUNED, &scope, ROWS_MAX, &pruned, reterr);
	if (r < 0)
		return r;
	s = add_up(&books);
	for (size_t i = 0; i < books.row_count; i++)
		balanced = balanced && balances(&books, i);
	json_begin_object(w);
	json_key(w, "total");
	json_begin_object(w);
	put_sums(w, &s);
	put_bool(w, "balances", balanced);
	json_end_object(w);
	put_sources(w, &books, &losses);
	put_cpus(w, &cpus);
	table_put(w, "pruned", &pruned);
	put_bool(w, "recorded", books.row_count > 0);
	put_bool(w, "live", t->live);
	put_bool(w, "truncated",
		books.truncated || losses.truncated || cpus.truncated || pruned.truncated);
	json_end_object(w);
	return 0;
}

/* ---- cost ---- */

static void put_value(
	struct json_writer *w, const struct sql_table *t, size_t row, const char *name)
{
	json_key(w, name);
	table_cell(w, t, row, table_column(t, name));
}

int overhead_json(const struct question *t, struct json_writer *w, struct errinfo *reterr)
{
	static const char *const series[] = {"timestamp", "overhead", "launch_weight",
		"agent_cpu_pct", "agent_rss_bytes", "db_bytes"};
	static const char *const newest[] = {"budget", "overhead", "hit_ns", "launch_weight",
		"agent_cpu_pct", "agent_rss_bytes", "db_bytes"};
	size_t points = answer_limit(t->request->points, POINTS, POINTS_MAX), every;
	_cleanup_(sql_table_done) struct sql_table s = {0};
	int r = nodedb_snapshot_list(t->snapshot, NODEDB_OVERHEAD, &t->scope, 0, &s, reterr);

	if (r < 0)
		return r;
	every = s.row_count / points + 1;
	json_begin_object(w);
	put_bool(w, "recorded", s.row_count > 0);
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
	put_bool(w, "truncated", s.truncated);
	put_window(t, w);
	json_end_object(w);
	return 0;
}
