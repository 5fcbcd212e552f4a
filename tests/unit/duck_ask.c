/* SPDX-License-Identifier: Apache-2.0 */
/* duck_ask.c - for tests/integration/81-duck-sql: a statement from standard input, asked of the worker, or of
 * DuckDB as it comes, without any guard.
 *
 *   duck-ask guarded MILLISECONDS FILE…   by the worker, on these files
 *   duck-ask bare FILE…                   in this process: every statement, the files attached to be written
 *
 * Prints "error NUMBER SENTENCE" and perhaps "hint …", or "rows N" and the rows with tabs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "duck/duck_worker.h"
#include "duck_fixture.h"

static const struct duck_worker_table tables[] = {
	{"events", "ts_ns BIGINT, cluster_id VARCHAR, node_id VARCHAR, value_double DOUBLE"},
	{"incidents", "ts_ns BIGINT, cluster_id VARCHAR, node_id VARCHAR, summary VARCHAR"},
};

static void print_cell(const struct sql_table *t, const struct sql_cell *c)
{
	switch (c->type) {
	case SQL_NULL: printf("NULL"); break;
	case SQL_INT: printf("%" PRId64, c->i); break;
	case SQL_REAL: printf("%.17g", c->d); break;
	case SQL_TEXT:
	case SQL_BLOB: fwrite(sql_table_bytes(t, c), 1, c->len, stdout); break;
	}
}

static void print_table(const struct sql_table *t)
{
	printf("rows %zu\n", t->row_count);
	for (size_t i = 0; i < t->row_count; i++)
		for (int k = 0; k < t->column_count; k++) {
			print_cell(t, sql_table_cell(t, i, k));
			putchar(k + 1 < t->column_count ? '\t' : '\n');
		}
}

static int ask_guarded(
	char **args, int count, const char *text, struct sql_table *t, struct errinfo *e)
{
	_cleanup_buf_ struct buf hint = BUF_INIT(4096);
	struct sql_guard_rules rules = {.timeout_ns = strtoull(args[0], NULL, 10) * NS_PER_MS};
	struct duck_worker_question q = {.files = (const char *const *)args + 1,
		.file_count = (size_t)count - 1,
		.tables = tables,
		.table_count = ARRAY_SIZE(tables),
		.text = text};
	int r = duck_worker_ask(&q, &rules, t, &hint, e);

	if (hint.len)
		printf("hint %s\n", buf_str(&hint));
	return r;
}

static int ask_bare(
	char **files, int count, const char *text, struct sql_table *t, struct errinfo *e)
{
	static const struct duck_limits limits = {.rows_max = 10000, .bytes_max = 8u << 20};
	struct duck_connection *c;
	struct duck *d;
	char attach[4200];
	int r = duck_open(NULL, NULL, &d, e);

	if (r == 0)
		r = duck_connect(d, &c, e);
	for (int i = 0; r == 0 && i < count; i++) {
		snprintf(attach, sizeof(attach), "ATTACH '%s' AS p%d", files[i], i);
		r = duck_exec(c, attach, e);
	}
	if (r == 0 && count)
		r = duck_exec(c, "USE p0", e);
	if (r == 0 && !strncmp(text, "script:", 7)) {
		*t = (struct sql_table){0};
		return duck_exec(c, text + 7, e);
	}
	return r < 0 ? r : duck_select(c, text, &limits, t, e);
}

int main(int argc, char **argv)
{
	static char text[SQL_GUARD_TEXT_MAX + 100];
	struct errinfo e = {0};
	struct sql_table t;
	int r;

	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	if (argc < 3)
		return EXIT_USAGE;
	text[fread(text, 1, sizeof(text) - 1, stdin)] = 0;
	if (!duck_fixture_has())
		return 77;
	r = !strcmp(argv[1], "bare") ? ask_bare(argv + 2, argc - 2, text, &t, &e)
				     : ask_guarded(argv + 2, argc - 2, text, &t, &e);
	if (r < 0)
		printf("error %d %s\n", r, e.text);
	else
		print_table(&t);
	return r < 0 ? 1 : 0;
}
