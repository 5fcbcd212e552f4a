/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_container.c - rows of `container_samples`, written and read; the columns are
 * CONTAINER_FIELDS (model/container_sample.h). What is not known is NULL there and
 * CONTAINER_UNKNOWN here. Groups are not selected by the filter's pids: the processes that a job waits
 * for may be in another one. */
#include <stddef.h>

#include "store/nodedb_private.h"
#include "store/read/nodedb_reader.h"

static const size_t offsets[] = {
#define X(field, meaning) offsetof(struct container_sample, field),
	CONTAINER_FIELDS(X)
#undef X
};
#define FIELDS ARRAY_SIZE(offsets)

enum { COL_TIME, COL_GROUP, COL_FIRST };

static int64_t *field_at(struct container_sample *s, size_t i)
{
	return (int64_t *)((char *)s + offsets[i]);
}

int nodedb_put_container_sample(
	struct nodedb *db, const struct container_sample *s, struct errinfo *reterr)
{
	struct sql_value values[3 + FIELDS] = {
		SQL_S(db->node), SQL_I(s->time.ns), SQL_I(s->cgroup_id)};
	struct container_sample copy = *s;
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_CONTAINER_SAMPLE, &stmt, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < FIELDS; i++) {
		int64_t v = *field_at(&copy, i);

		values[3 + i] = v < 0 ? SQL_NOTHING : SQL_I(v);
	}
	return sql_put(stmt, values, ARRAY_SIZE(values), reterr);
}

static bool read_row(sql_stmt *stmt, void *ret)
{
	struct container_sample *s = ret;
	int64_t time, group;

	if (!sql_column_is_int(stmt, COL_TIME, &time) || time < 0 ||
		!sql_column_is_int(stmt, COL_GROUP, &group))
		return false;
	container_sample_init(s, (wall_time){time}, (uint64_t)group);
	for (size_t i = 0; i < FIELDS; i++) {
		int column = COL_FIRST + (int)i;

		if (sql_column_type(stmt, column) == SQL_NULL)
			continue;
		if (!sql_column_is_int(stmt, column, field_at(s, i)) || *field_at(s, i) < 0)
			return false;
	}
	return true;
}

static const struct reader_column columns[] = {{"timestamp", NULL}, {"cgroup_id", NULL},
#define X(field, meaning) {#field, "NULL"},
	CONTAINER_FIELDS(X)
#undef X
};

static const struct reader_table table = {.name = "container_samples",
	.columns = columns,
	.column_count = ARRAY_SIZE(columns),
	.order = "cgroup_id DESC",
	.read = read_row,
	.row_bytes = sizeof(struct container_sample),
	.max = NODEDB_CONTAINERS_MAX};

int reader_load_containers(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;

	return r->filter->ledger ? reader_load_table(r, &table, &c->containers, &c->container_count,
					   &c->older_containers, reterr)
				 : 0;
}
