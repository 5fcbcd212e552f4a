/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_gpu.c - rows of `gpu_samples`, written and read; the columns are GPU_FIELDS
 * (model/gpu_sample.h). A value the driver did not tell is NULL there and GPU_UNKNOWN here. */
#include <stddef.h>
#include <stdio.h>

#include "store/nodedb_private.h"
#include "store/read/nodedb_reader.h"

static const size_t offsets[] = {
#define X(field, meaning) offsetof(struct gpu_sample, field),
	GPU_FIELDS(X)
#undef X
};
#define FIELDS ARRAY_SIZE(offsets)

enum { COL_TIME, COL_GPU, COL_UUID, COL_NAME, COL_PCI, COL_FIRST };

static int64_t *field_at(struct gpu_sample *s, size_t i)
{
	return (int64_t *)((char *)s + offsets[i]);
}

int nodedb_put_gpu_sample(struct nodedb *db, const struct gpu_sample *s, struct errinfo *reterr)
{
	struct sql_value values[6 + FIELDS] = {SQL_S(db->node), SQL_I(s->time.ns), SQL_I(s->index),
		SQL_S(s->uuid), SQL_S(s->name), SQL_S(s->pci)};
	struct gpu_sample copy = *s;
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_GPU_SAMPLE, &stmt, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < FIELDS; i++) {
		int64_t v = *field_at(&copy, i);

		values[6 + i] = v < 0 ? SQL_NOTHING : SQL_I(v);
	}
	return sql_put(stmt, values, ARRAY_SIZE(values), reterr);
}

static bool count_at(sql_stmt *stmt, int column, int64_t *ret)
{
	*ret = sql_column_int(stmt, column);
	return sql_column_type(stmt, column) == SQL_INT && *ret >= 0;
}

static bool read_row(sql_stmt *stmt, void *ret)
{
	struct gpu_sample *s = ret;

	gpu_sample_init(s);
	if (!count_at(stmt, COL_TIME, &s->time.ns) || !count_at(stmt, COL_GPU, &s->index) ||
		!reader_text(stmt, COL_UUID, s->uuid, sizeof(s->uuid)) ||
		!reader_text(stmt, COL_NAME, s->name, sizeof(s->name)) ||
		!reader_text(stmt, COL_PCI, s->pci, sizeof(s->pci)))
		return false;
	for (size_t i = 0; i < FIELDS; i++) {
		int column = COL_FIRST + (int)i;

		if (sql_column_type(stmt, column) != SQL_NULL &&
			!count_at(stmt, column, field_at(s, i)))
			return false;
	}
	return true;
}

static const struct reader_column columns[] = {
	{"timestamp", NULL}, {"gpu", NULL}, {"uuid", "''"}, {"name", "''"}, {"pci", "''"},
#define X(field, meaning) {#field, "NULL"},
	GPU_FIELDS(X)
#undef X
};

static const struct reader_table table = {.name = "gpu_samples",
	.columns = columns,
	.column_count = ARRAY_SIZE(columns),
	.order = "gpu DESC",
	.read = read_row,
	.row_bytes = sizeof(struct gpu_sample),
	.max = NODEDB_GPU_MAX};

int reader_load_gpu_samples(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;

	return reader_load_table(
		r, &table, &c->gpu_samples, &c->gpu_sample_count, &c->older_gpu_samples, reterr);
}
