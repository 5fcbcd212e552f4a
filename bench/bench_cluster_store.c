/* SPDX-License-Identifier: Apache-2.0 */
/* bench_cluster_store.c - the cluster's store on DuckDB: rows that are taken, committed, sealed and merged,
 * per second, as a ratio to bare appends into a DuckDB file with as many rows a commit; then how long
 * questions take on what is stored.
 *
 * Bare has the same columns and values, appends on one connection and commits to DuckDB's own file and log.
 * Both take turns in one run, so that a noisy machine disturbs them alike; the median of the rounds counts.
 *
 *   bench_cluster_store [ROWS [COMMIT [ROUNDS [FOLDER]]]]      rates
 *   bench_cluster_store ask ROWS FOLDER                        fills FOLDER up to ROWS once, then asks */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/store/store_duck.h"
#include "duck/duck.h"

#define NODES      64
#define METRICS    20
#define ENTRY_ROWS 500
#define ROUNDS_MAX 32
#define ASK_ROUNDS 40
#define STEP_NS    INT64_C(10000000) /* between two rows: 100 M rows are 11 days */
#define T0         INT64_C(1790000000000000000)

static void check(int r, const struct errinfo *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "bench_cluster_store: %s\n", *err->text ? err->text : strerror(-r));
	exit(r == -ENOENT ? 77 : 1);
}

/* ---- rows ---- */

static void put_row(struct batch *b, uint64_t i)
{
	char node[24], metric[32], id[32];

	snprintf(node, sizeof(node), "gpu-node-%02u", (unsigned)(i % NODES));
	snprintf(metric, sizeof(metric), "ingero.metric.%u", (unsigned)(i / NODES % METRICS));
	snprintf(id, sizeof(id), "e%" PRIu64, i);
	batch_row(b, TABLE_EVENTS);
	batch_int(b, EVENTS_TS, T0 + (int64_t)i * STEP_NS);
	batch_int(b, EVENTS_RECEIVED, T0 + (int64_t)i * STEP_NS + 1000);
	batch_text_of(b, EVENTS_CLUSTER, "prod");
	batch_text_of(b, EVENTS_NODE, node);
	batch_int(b, EVENTS_RANK, (int64_t)(i % NODES));
	batch_int(b, EVENTS_NRANKS, NODES);
	batch_text_of(b, EVENTS_NAME, metric);
	batch_text_of(b, EVENTS_KIND, "gauge");
	batch_real(b, EVENTS_REAL, (double)(i * 2654435761u % 100000) / 1000);
	batch_text_of(b, EVENTS_UNIT, "ms");
	batch_text_of(b, EVENTS_EVENT, id);
}

/* Entries of rows, made before the clock runs: the same for both. */
struct entry {
	void *data;
	size_t len;
};

static struct entry *make_entries(uint64_t first, uint64_t rows)
{
	struct entry *e = calloc(rows / ENTRY_ROWS, sizeof(*e));

	for (uint64_t k = 0; e && k < rows / ENTRY_ROWS; k++) {
		struct batch b = {.bytes = BUF_INIT(1u << 20)};

		for (uint64_t i = 0; i < ENTRY_ROWS; i++)
			put_row(&b, first + k * ENTRY_ROWS + i);
		e[k].len = b.bytes.len;
		e[k].data = buf_take(&b.bytes);
	}
	return e;
}

static void free_entries(struct entry *e, uint64_t rows)
{
	for (uint64_t k = 0; k < rows / ENTRY_ROWS; k++)
		free(e[k].data);
	free(e);
}

/* ---- rates ---- */

static double rate_since(mono_time begin, uint64_t rows)
{
	return (double)rows * 1e9 / (double)(mono_now().ns - begin.ns);
}

static double run_ours(
	const char *folder, const struct entry *entries, uint64_t rows, uint64_t commit)
{
	struct store_duck_settings settings = {.folder = folder};
	struct errinfo err = {0};
	struct store *s;
	mono_time begin;
	double rate;

	check(store_duck_open(&settings, &s, &err), &err);
	begin = mono_now();
	for (uint64_t k = 0; k < rows / ENTRY_ROWS; k++) {
		check(store_take(s, k + 1, entries[k].data, entries[k].len, &err), &err);
		if ((k + 1) * ENTRY_ROWS % commit == 0)
			check(store_commit(s, &err), &err);
	}
	check(store_commit(s, &err), &err);
	check(s->ops->seal(s, &err), &err);
	rate = rate_since(begin, rows);
	store_free(s);
	return rate;
}

static void append_entry(struct duck_appender *a, const struct entry *e)
{
	struct batch_reader reader = {.data = e->data, .len = e->len};
	struct batch_row row;
	struct errinfo err = {0};

	while (batch_next(&reader, &row) > 0)
		check(duck_append(a, row.cells, &err), &err);
}

static void make_bare_table(struct duck_connection *c, enum duck_type types[TABLE_COLUMNS_MAX])
{
	static const char *const names[] = {"BIGINT", "BIGINT", "DOUBLE", "VARCHAR"};
	static const enum duck_type of[] = {DUCK_BIGINT, DUCK_BIGINT, DUCK_DOUBLE, DUCK_VARCHAR};
	const struct table_desc *d = &store_tables[TABLE_EVENTS];
	_cleanup_buf_ struct buf text = BUF_INIT(1u << 16);
	struct errinfo err = {0};

	buf_puts(&text, "CREATE TABLE events(");
	for (int i = 0; i < d->column_count; i++) {
		types[i] = of[d->columns[i].type];
		buf_printf(&text, "%s%s %s", i ? ", " : "", d->columns[i].name,
			names[d->columns[i].type]);
	}
	buf_puts(&text, ")");
	check(duck_exec(c, buf_str(&text), &err), &err);
}

static double run_bare(
	const char *path, const struct entry *entries, uint64_t rows, uint64_t commit)
{
	static const struct duck_setting settings[] = {{"memory_limit", "512MiB"}, {NULL, NULL}};
	enum duck_type types[TABLE_COLUMNS_MAX];
	struct duck_connection *c;
	struct duck_appender *a;
	struct errinfo err = {0};
	struct duck *d;
	mono_time begin;
	double rate;

	check(duck_open(path, settings, &d, &err), &err);
	check(duck_connect(d, &c, &err), &err);
	make_bare_table(c, types);
	begin = mono_now();
	check(duck_appender_new(
		      c, NULL, "events", types, store_tables[TABLE_EVENTS].column_count, &a, &err),
		&err);
	for (uint64_t k = 0; k < rows / ENTRY_ROWS; k++) {
		append_entry(a, &entries[k]);
		if ((k + 1) * ENTRY_ROWS % commit == 0)
			check(duck_append_flush(a, &err), &err);
	}
	check(duck_append_flush(a, &err), &err);
	duck_appender_free(a);
	check(duck_exec(c, "CHECKPOINT", &err), &err);
	rate = rate_since(begin, rows);
	duck_disconnect(c);
	duck_close(d);
	return rate;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static int bench_rates(uint64_t rows, uint64_t commit, size_t rounds, const char *folder)
{
	struct entry *entries = make_entries(0, rows);
	double ours[ROUNDS_MAX], bare[ROUNDS_MAX], ratio;
	char path[512], command[600];

	for (size_t i = 0; i < rounds; i++) {
		snprintf(command, sizeof(command), "rm -rf '%s/bench-store' '%s/bench-bare'*",
			folder, folder);
		if (system(command) != 0)
			return 1;
		snprintf(path, sizeof(path), "%s/bench-store", folder);
		ours[i] = run_ours(path, entries, rows, commit);
		snprintf(path, sizeof(path), "%s/bench-bare", folder);
		bare[i] = run_bare(path, entries, rows, commit);
	}
	if (system(command) != 0)
		return 1;
	free_entries(entries, rows);
	ratio = median(ours, rounds) / median(bare, rounds);
	printf("%" PRIu64 " rows, %" PRIu64
	       " a commit: ours %.0f rows/s, bare %.0f rows/s, ratio %.2f\n",
		rows, commit, median(ours, rounds), median(bare, rounds), ratio);
	return 0;
}

/* ---- questions ---- */

static void fill(struct store *s, uint64_t rows)
{
	struct errinfo err = {0};
	struct store_stats st;

	s->ops->stats(s, &st);
	for (uint64_t n = st.rows[TABLE_EVENTS]; n < rows; n += 100000) {
		struct entry *e = make_entries(n, 100000);

		for (uint64_t k = 0; k < 100000 / ENTRY_ROWS; k++)
			check(store_take(s, n / ENTRY_ROWS + k + 1, e[k].data, e[k].len, &err),
				&err);
		check(store_commit(s, &err), &err);
		free_entries(e, 100000);
		if (n % 5000000 == 0)
			while (s->ops->upkeep(s, T0, &err) > 0)
				;
	}
	check(s->ops->seal(s, &err), &err);
	while (s->ops->upkeep(s, T0, &err) > 0)
		;
}

static void ask(
	struct store *s, const char *name, const struct store_scope *scope, const char *question)
{
	double took[ASK_ROUNDS];
	struct errinfo err = {0};
	struct sql_table t;
	size_t rows = 0;

	for (size_t i = 0; i < ASK_ROUNDS; i++) {
		mono_time begin = mono_now();

		check(store_select(s, scope, question, &STORE_LIMITS, &t, &err), &err);
		took[i] = (double)(mono_now().ns - begin.ns) / 1e6;
		rows = t.row_count;
		sql_table_done(&t);
	}
	qsort(took, ASK_ROUNDS, sizeof(*took), compare);
	printf("%-36s %6zu rows  median %7.1f ms  worst %7.1f ms\n", name, rows,
		took[ASK_ROUNDS / 2], took[ASK_ROUNDS - 1]);
}

static int bench_questions(uint64_t rows, const char *folder)
{
	struct store_duck_settings settings = {.folder = folder, .memory_bytes = 1ull << 30};
	int64_t end = T0 + (int64_t)rows * STEP_NS;
	struct store_scope hour = {.since_ns = end - 3600 * (int64_t)NS_PER_S};
	struct store_scope day = {.since_ns = end - 24 * 3600 * (int64_t)NS_PER_S};
	struct errinfo err = {0};
	struct store_stats st;
	struct store *s;
	mono_time begin = mono_now();

	check(store_duck_open(&settings, &s, &err), &err);
	printf("opened in %.0f ms\n", (double)(mono_now().ns - begin.ns) / 1e6);
	fill(s, rows);
	s->ops->stats(s, &st);
	printf("%" PRIu64 " rows, %" PRIu64 " parts, %.1f bytes a row\n", st.rows[TABLE_EVENTS],
		st.parts, (double)st.bytes / (double)st.rows[TABLE_EVENTS]);
	ask(s, "nodes, last hour", &hour,
		"SELECT node_id, count(*), max(ts_ns), {last:value_double:ts_ns} FROM {events} GROUP BY node_id");
	ask(s, "one metric by node, last hour", &hour,
		"SELECT node_id, avg(value_double), {quantile:0.99:value_double} FROM {events} WHERE metric_name = 'ingero.metric.7' GROUP BY node_id");
	ask(s, "newest events of a node", &hour,
		"SELECT * FROM {events} WHERE node_id = 'gpu-node-07' ORDER BY ts_ns DESC LIMIT 100");
	ask(s, "one metric by node, last day", &day,
		"SELECT node_id, avg(value_double), {quantile:0.99:value_double} FROM {events} WHERE metric_name = 'ingero.metric.7' GROUP BY node_id");
	ask(s, "one metric by node, rolled up, all", NULL,
		"SELECT node_id, sum(sum) / sum(count), max(max) FROM {node_metrics} WHERE metric_name = 'ingero.metric.7' GROUP BY node_id");
	ask(s, "count of all by node", NULL,
		"SELECT node_id, count(*) FROM {events} GROUP BY node_id");
	ask(s, "one metric by node, all", NULL,
		"SELECT node_id, avg(value_double) FROM {events} WHERE metric_name = 'ingero.metric.7' GROUP BY node_id");
	store_free(s);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && !strcmp(argv[1], "ask"))
		return bench_questions(strtoull(argv[2], NULL, 10), argv[3]);
	return bench_rates(argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000,
		argc > 2 ? strtoull(argv[2], NULL, 10) : 5000,
		argc > 3 ? MIN(strtoull(argv[3], NULL, 10), (unsigned long long)ROUNDS_MAX) : 3,
		argc > 4 ? argv[4] : ".");
}
