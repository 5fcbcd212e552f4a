/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_table.c - the tables that are copied row by row, each by its description. A row
 * whose key is there already is a duplicate; `settle` says what the output's row gains from it. */
#include <ctype.h>

#include "store/merge/nodedb_merge_private.h"

#define SQL_MAX 4096

struct copier {
	const struct table *table;
	struct column columns[TABLE_COLUMNS_MAX];
	size_t count;
	sql_stmt *put, *settle;
};

static int copy_row(
	struct merge *m, struct copier *c, const struct sql_value *values, struct errinfo *reterr)
{
	struct merge_tally *tally = &m->source.report.others;
	size_t first = c->table->is_of_all;
	int r = sql_put(c->put, values + first, c->count - first, reterr);

	if (r < 0)
		return r;
	if (sql_changes(m->out)) {
		tally->copied++;
		return 0;
	}
	tally->duplicates++;
	return c->settle ? sql_put(c->settle, values, (size_t)sql_parameters(c->settle), reterr)
			 : 0;
}

/* $column is the parameter of its value. */
static int prepare_settle(
	struct merge *m, const struct copier *c, sql_stmt **ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_MAX);

	for (const char *s = c->table->settle; *s;) {
		size_t len = 1;

		if (*s != '$') {
			buf_putc(&sql, *s++);
			continue;
		}
		while (isalnum((unsigned char)s[len]) || s[len] == '_')
			len++;
		for (size_t i = 0; i < c->count; i++)
			if (!strncmp(c->columns[i].name, s + 1, len - 1) &&
				!c->columns[i].name[len - 1])
				buf_printf(&sql, "?%zu", i + 1);
		s += len;
	}
	return sql_prepare_buf(m->out, &sql, ret, reterr);
}

static int copy_table(struct merge *m, enum node_table table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL, *put = NULL, *settle = NULL;
	struct copier c = {.table = &node_tables[table]};
	const struct table *t = c.table;
	struct sql_value values[TABLE_COLUMNS_MAX];
	uint64_t unplaced = m->source.report.unplaced;
	struct merge_node *node;
	int r;

	c.count = merge_columns(t, c.columns);
	r = merge_select(m, t->name, c.columns, c.count, &get, reterr);
	if (r < 0 || !get)
		return r;
	r = merge_insert(
		m, t->name, c.columns + t->is_of_all, c.count - t->is_of_all, "", 0, &put, reterr);
	if (r == 0 && t->settle)
		r = prepare_settle(m, &c, &settle, reterr);
	c.put = put;
	c.settle = settle;
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(m, c.columns, c.count, get, values, &node, reterr);
		if (r > 0)
			r = copy_row(m, &c, values, reterr);
	}
	if (t->is_of_all)
		m->source.report.unplaced = unplaced;
	return r;
}

int merge_collectives(struct merge *m, struct errinfo *reterr)
{
	return copy_table(m, TABLE_COLLECTIVES, reterr);
}

int merge_other_tables(struct merge *m, struct errinfo *reterr)
{
	static const enum node_table tables[] = {TABLE_SAMPLES, TABLE_GPU_SAMPLES, TABLE_CONTAINERS,
		TABLE_LEDGER, TABLE_OVERHEAD, TABLE_PROCESS_NAMES, TABLE_PROCESSES, TABLE_COVERAGE,
		TABLE_CALL_GAPS, TABLE_GROUPS, TABLE_SCHEDSTAT, TABLE_ANNOTATIONS, TABLE_KERNELS,
		TABLE_NAMES, TABLE_LOSSES, TABLE_CPU_LOSSES, TABLE_ACCOUNTING, TABLE_PRUNED};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(tables); i++)
		r = copy_table(m, tables[i], reterr);
	return r;
}
