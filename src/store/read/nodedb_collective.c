/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_collective.c - rows of `collectives` as struct collective_row. The column comm is the
 * communicator's hash, which all its ranks share; a value that the call does not have is NULL there
 * and -1 here (seq: 0). Processes are not selected by the filter's pids: who came last shows only
 * beside the other ranks. */
#include <errno.h>
#include <stdio.h>

#include "store/read/nodedb_recent.h"
#include "store/read/nodedb_snapshot_private.h"
#include "wire/names.h"

enum column {
	COL_NODE,
	COL_TIME,
	COL_PID,
	COL_TID,
	COL_COMM,
	COL_SEQ,
	COL_OP,
	COL_RANK,
	COL_NRANKS,
	COL_DEVICE,
	COL_BYTES,
	COL_ELEMENTS,
	COL_DATATYPE,
	COL_REDUCE_OP,
	COL_ROOT,
	COL_PEER,
	COL_STREAM,
	COL_DURATION,
	COL_WAIT,
	COL_RET,
	COL_SPAN,
	COL_COUNT
};

static const struct reader_column columns[COL_COUNT] = {
	[COL_NODE] = {"node", "''"},
	[COL_TIME] = {"timestamp", NULL},
	[COL_PID] = {"pid", NULL},
	[COL_TID] = {"tid", NULL},
	[COL_COMM] = {"comm", NULL},
	[COL_SEQ] = {"seq", NULL},
	[COL_OP] = {"op", NULL},
	[COL_RANK] = {"rank", "NULL"},
	[COL_NRANKS] = {"nranks", "NULL"},
	[COL_DEVICE] = {"device", "0"},
	[COL_BYTES] = {"bytes", "0"},
	[COL_ELEMENTS] = {"count", "0"},
	[COL_DATATYPE] = {"datatype", "NULL"},
	[COL_REDUCE_OP] = {"reduce_op", "NULL"},
	[COL_ROOT] = {"root", "NULL"},
	[COL_PEER] = {"peer", "NULL"},
	[COL_STREAM] = {"stream", "0"},
	[COL_DURATION] = {"duration", "0"},
	[COL_WAIT] = {"wait_ns", "NULL"},
	[COL_RET] = {"ret_code", "0"},
	[COL_SPAN] = {"span_ns", "NULL"},
};

/* An integer of 0..most; @missing, if that is not -2, for NULL. */
static bool number_at(sql_stmt *stmt, int column, int64_t most, int64_t missing, int64_t *ret)
{
	int type = sql_column_type(stmt, column);

	*ret = missing;
	if (type == SQL_NULL)
		return missing != -2;
	*ret = sql_column_int(stmt, column);
	return type == SQL_INT && *ret >= 0 && *ret <= most;
}

static bool any_at(sql_stmt *stmt, int column, int64_t *ret)
{
	*ret = sql_column_int(stmt, column);
	return sql_column_type(stmt, column) == SQL_INT;
}

/* 0 for NULL; a rank's own numbers are negative. */
static bool seq_at(sql_stmt *stmt, int64_t *ret)
{
	*ret = 0;
	return sql_column_type(stmt, COL_SEQ) == SQL_NULL || any_at(stmt, COL_SEQ, ret);
}

static bool op_at(sql_stmt *stmt, uint16_t *ret)
{
	char name[40] = "nccl";
	const struct wire_op_row *row;

	if (!reader_text(stmt, COL_OP, name + 4, sizeof(name) - 4))
		return false;
	row = wire_op_by_name(name);
	if (!row || row->source != SOURCE_NCCL)
		return false;
	*ret = row->op;
	return true;
}

static bool read_numbers(sql_stmt *stmt, int64_t v[COL_COUNT])
{
	static const int may_lack[] = {
		COL_RANK, COL_NRANKS, COL_DATATYPE, COL_REDUCE_OP, COL_ROOT, COL_PEER};
	static const int must_have[] = {COL_TIME, COL_BYTES, COL_ELEMENTS, COL_DURATION};
	static const int signed_ones[] = {COL_COMM, COL_STREAM, COL_DEVICE, COL_RET};

	for (size_t i = 0; i < ARRAY_SIZE(may_lack); i++)
		if (!number_at(stmt, may_lack[i], INT32_MAX, -1, &v[may_lack[i]]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(must_have); i++)
		if (!number_at(stmt, must_have[i], INT64_MAX, -2, &v[must_have[i]]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(signed_ones); i++)
		if (!any_at(stmt, signed_ones[i], &v[signed_ones[i]]))
			return false;
	return number_at(stmt, COL_PID, UINT32_MAX, -2, &v[COL_PID]) &&
	       number_at(stmt, COL_TID, UINT32_MAX, -2, &v[COL_TID]) && seq_at(stmt, &v[COL_SEQ]) &&
	       number_at(stmt, COL_WAIT, INT64_MAX, -1, &v[COL_WAIT]) &&
	       number_at(stmt, COL_SPAN, INT64_MAX, 0, &v[COL_SPAN]);
}

static bool read_row(sql_stmt *stmt, void *ret)
{
	struct collective_row *row = ret;
	int64_t v[COL_COUNT] = {0};

	*row = (struct collective_row){0};
	if (!read_numbers(stmt, v) || !op_at(stmt, &row->op) ||
		!reader_text(stmt, COL_NODE, row->node, sizeof(row->node)))
		return false;
	row->start.ns = v[COL_TIME];
	row->dur_ns = (uint64_t)v[COL_DURATION];
	row->pid = (uint32_t)v[COL_PID];
	row->tid = (uint32_t)v[COL_TID];
	row->device = (int32_t)v[COL_DEVICE];
	row->ret = (int32_t)v[COL_RET];
	row->stream = (uint64_t)v[COL_STREAM];
	row->c = (struct collective){.comm_hash = (uint64_t)v[COL_COMM],
		.seq = (uint64_t)v[COL_SEQ],
		.bytes = (uint64_t)v[COL_BYTES],
		.count = (uint64_t)v[COL_ELEMENTS],
		.rank = (int32_t)v[COL_RANK],
		.nranks = (int32_t)v[COL_NRANKS],
		.datatype = (int32_t)v[COL_DATATYPE],
		.reduce_op = (int32_t)v[COL_REDUCE_OP],
		.root = (int32_t)v[COL_ROOT],
		.peer = (int32_t)v[COL_PEER],
		.wait_ns = v[COL_WAIT],
		.span_ns = v[COL_SPAN]};
	return true;
}

static const struct reader_table table = {.name = "collectives",
	.columns = columns,
	.column_count = ARRAY_SIZE(columns),
	.order = "rowid DESC",
	.of_all_nodes = true,
	.read = read_row,
	.row_bytes = sizeof(struct collective_row),
	.max = NODEDB_COLLECTIVES_MAX};

int reader_load_collectives(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;

	return reader_load_table(
		r, &table, &c->collectives, &c->collective_count, &c->older_collectives, reterr);
}

int nodedb_recent_collectives(struct nodedb_snapshot *l, int64_t after, size_t max,
	recent_collective_fn *fn, void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(4096);
	struct reader_column numbered[COL_COUNT + 1] = {[COL_COUNT] = {"rowid", "rowid"}};
	struct collective_row row;
	int r;

	if (!nodedb_snapshot_is_ours(l))
		return -ENOTSUP;
	memcpy(numbered, columns, sizeof(columns));
	r = reader_select(&l->reader, table.name, numbered, ARRAY_SIZE(numbered), &sql, reterr);
	if (r < 0)
		return r;
	buf_printf(&sql, " WHERE rowid > %lld ORDER BY rowid LIMIT %zu", (long long)after, max);
	r = reader_prepare(&l->reader, &sql, &stmt, reterr);
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		r = fn(arg, sql_column_int(stmt, COL_COUNT), read_row(stmt, &row) ? &row : NULL);
		if (r < 0)
			return r;
	}
	return r;
}
