/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_content.c - loads what a store holds besides events: aggregates, host samples, stored
 * verdicts and the node's name. Tables that an older schema lacks load as nothing. */
#include <math.h>

#include "store/read/nodedb_reader.h"

#define FINE_NS      ((int64_t)NODEDB_BUCKET_FINE)
#define COARSE_NS    ((int64_t)NODEDB_BUCKET_COARSE)
#define NEWEST_FIRST " ORDER BY bucket DESC, source DESC, op DESC, pid DESC, nested DESC"

bool reader_aggregate_row(sql_stmt *stmt, struct aggregate *a)
{
	uint64_t bucket, source, op, pid, count, sum, min, max, nested;
	const void *blob;
	size_t len;

	*a = (struct aggregate){0};
	if (!reader_count_at(stmt, 0, &bucket) || !reader_count_at(stmt, 1, &source) ||
		!reader_count_at(stmt, 2, &op) || !reader_count_at(stmt, 3, &pid) ||
		!reader_count_at(stmt, 4, &nested) || !reader_count_at(stmt, 5, &count) ||
		!reader_count_at(stmt, 6, &a->stored) || !reader_count_at(stmt, 7, &sum) ||
		!reader_count_at(stmt, 8, &min) || !reader_count_at(stmt, 9, &max) ||
		!reader_count_at(stmt, 10, &a->sum_arg0))
		return false;
	if (source == 0 || source >= WIRE_SOURCE_MAX || op >= WIRE_OP_MAX || pid > UINT32_MAX ||
		min > max || a->stored > count)
		return false;
	blob = sql_column_blob(stmt, 11, &len);
	if (!blob || sketch_decode(&a->sketch, blob, len) < 0 || a->sketch.count != count)
		return false;
	a->bucket.ns = (int64_t)bucket;
	a->source = (uint8_t)source;
	a->op = (uint16_t)op;
	a->pid = (uint32_t)pid;
	a->flags = nested ? WIRE_NESTED : 0;
	a->sketch.sum = sum;
	a->sketch.min = min;
	a->sketch.max = max;
	return true;
}

static bool read_aggregate(sql_stmt *stmt, void *arg, void *row)
{
	return reader_aggregate_row(stmt, row);
}

static int load_fine(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;
	int res = reader_load(r,
		&(struct reader_query){.table = "event_aggregates_5s",
			.select = "SELECT " READER_AGGREGATE,
			.by = {.time = "bucket", .pid = "pid", .width_ns = FINE_NS},
			/* those of published files in a merged one have no distribution */
			.rest = r->merged ? " AND sketch IS NOT NULL" NEWEST_FIRST : NEWEST_FIRST},
		&(struct reader_rows){READER_INTO(c->aggregates, c->aggregate_count),
			.max = NODEDB_AGGREGATES_MAX, .read = read_aggregate,
			.skipped = &c->skipped_rows, .older = &c->older_aggregates},
		reterr);

	reader_reverse(c->aggregates, c->aggregate_count, sizeof(*c->aggregates));
	return res;
}

int reader_load_aggregates(struct reader *r, struct errinfo *reterr)
{
	bool ours = r->kind == SCHEMA_OURS;
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	double total;
	int res = reader_query(r,
		&(struct reader_query){.table = ours ? "event_aggregates_5s" : "event_aggregates",
			/* total() and not sum(): absurd numbers must not end in an overflow error. */
			.select = "SELECT total(count)",
			.by = {.time = "bucket",
				.pid = "pid",
				.width_ns = ours ? FINE_NS : COARSE_NS},
			.rest = ours ? " AND NOT nested"
				     : NULL}, /* calls inside others are part of them */
		&stmt, reterr);

	if (res == 0 && stmt)
		res = sql_step(stmt, reterr);
	if (res <= 0)
		return res;
	total = sql_column_real(stmt, 0);
	/* Published files lose counts of late calls: there are at least as many as rows. */
	if (total >= 1 && total < 9e18)
		r->content->total_calls = MAX(r->content->total_calls, (uint64_t)total);
	return ours ? load_fine(r, reterr) : 0;
}

/* A JSON text's array as lines; what is no array is nothing. */
#define LINES_OF(column, line)                                                                     \
	"CASE WHEN json_valid(" column ") THEN (SELECT coalesce(group_concat(" line                \
	", char(10)), '') FROM json_each(" column ")) ELSE '' END"
/* Of an entry only texts count; a tab or newline in them would look like ours. */
#define ENTRY_TEXT(key)                                                                            \
	"CASE json_type(value, '$." key "') WHEN 'text' THEN replace(replace(json_extract(value, " \
	"'$." key "'), char(9), ' '), char(10), ' ') ELSE '' END"
#define ENTRY                                                                                      \
	"CASE WHEN json_each.type = 'object' THEN " ENTRY_TEXT(                                    \
		"layer") " || char(9) || " ENTRY_TEXT("detail") " || char(9) || "                  \
								"coalesce(CAST(json_extract("      \
								"value, '$.dur_us') AS "           \
								"INTEGER), '') END"

static bool read_chain(sql_stmt *stmt, void *arg, void *ret)
{
	struct incident_row *row = ret;

	*row = (struct incident_row){0};
	if (!reader_text(stmt, 0, row->id, sizeof(row->id)) ||
		sql_column_type(stmt, 1) != SQL_INT ||
		!reader_text(stmt, 2, row->severity, sizeof(row->severity)) ||
		!reader_text(stmt, 3, row->summary, sizeof(row->summary)) ||
		!reader_text(stmt, 4, row->root_cause, sizeof(row->root_cause)) ||
		!reader_text(stmt, 5, row->explanation, sizeof(row->explanation)) ||
		!reader_text(stmt, 6, row->fixes, sizeof(row->fixes)) ||
		!reader_text(stmt, 7, row->timeline, sizeof(row->timeline)) ||
		!reader_text(stmt, 9, row->op, sizeof(row->op)))
		return false;
	row->detected_ns = sql_column_int(stmt, 1);
	row->tail_ratio = sql_column_real(stmt, 8);
	if (!(isfinite(row->tail_ratio) && row->tail_ratio > 0))
		row->tail_ratio = 0;
	if (sql_column_type(stmt, 10) != SQL_INT)
		return true;
	if (!reader_text(stmt, 13, row->problem, sizeof(row->problem)) ||
		!reader_text(stmt, 14, row->place, sizeof(row->place)))
		return false;
	row->last_ns = sql_column_int(stmt, 10);
	row->resolved_ns = sql_column_int(stmt, 11);
	row->pid = (uint32_t)sql_column_int(stmt, 12);
	return true;
}

/* What the published shape has no room for. */
static int put_own_columns(struct reader *r, struct buf *sql, struct errinfo *reterr)
{
	int res = reader_has_column(r, "incidents", "place", reterr);

	if (res > 0)
		buf_puts(sql, ", (SELECT last_seen FROM incidents i WHERE i.id = c.id)"
			      ", (SELECT resolved_at FROM incidents i WHERE i.id = c.id)"
			      ", (SELECT pid FROM incidents i WHERE i.id = c.id)"
			      ", (SELECT coalesce(problem, '') FROM incidents i WHERE i.id = c.id)"
			      ", (SELECT coalesce(place, '') FROM incidents i WHERE i.id = c.id)");
	else if (res == 0)
		buf_puts(sql, ", NULL, NULL, NULL, NULL, NULL");
	return MIN(res, 0);
}

int reader_load_chains(struct reader *r, struct errinfo *reterr)
{
	/* A column that an older schema lacks reads as nothing; the two lists as lines. */
	static const struct reader_column columns[] = {{"id", NULL}, {"detected_at", NULL},
		{"severity", NULL}, {"summary", NULL}, {"root_cause", NULL},
		{"explanation", "'' AS explanation"}, {"recommendations", "'' AS recommendations"},
		{"timeline", "'' AS timeline"}, {"tail_ratio", "0 AS tail_ratio"},
		{"cuda_op", "'' AS cuda_op"}, {NULL, NULL}};
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(SQL_TEXT_MAX);
	struct nodedb_content *c = r->content;
	int res;

	buf_puts(&sql,
		"SELECT id, detected_at, severity, summary, root_cause, explanation, " LINES_OF(
			"recommendations", "value") ", " LINES_OF("timeline",
			ENTRY) ", tail_ratio, cuda_op");
	res = put_own_columns(r, &sql, reterr);
	if (res < 0)
		return res;
	buf_puts(&sql, " FROM (");
	res = reader_select(r, "causal_chains", columns, &sql, reterr);
	res = res
		      ?: reader_where(r, "causal_chains",
				 (struct scope_columns){.time = "detected_at"}, &sql, reterr);
	buf_printf(&sql, " ORDER BY detected_at DESC, id DESC LIMIT %u) c", NODEDB_CHAINS_MAX);
	res = res ?: reader_prepare(r, &sql, &stmt, reterr);
	res = res
		      ?: reader_collect(stmt,
				 &(struct reader_rows){READER_INTO(c->chains, c->chain_count),
					 .max = NODEDB_CHAINS_MAX, .read = read_chain,
					 .skipped = &c->skipped_rows},
				 reterr);
	reader_reverse(c->chains, c->chain_count, sizeof(*c->chains));
	return res;
}

int reader_load_node(struct reader *r, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	char *out = r->content->node, node[256];
	size_t room = sizeof(r->content->node), len = 0;
	int res = reader_query(r, &reader_nodes, &stmt, reterr);

	while (res >= 0 && stmt && (res = sql_step(stmt, reterr)) > 0)
		if (!reader_text(stmt, 0, node, sizeof(node)))
			r->content->skipped_rows++;
		else if (node[0] && len + strlen(node) + 2 < room)
			len += (size_t)snprintf(
				out + len, room - len, "%s%s", len ? "," : "", node);
	return res;
}
