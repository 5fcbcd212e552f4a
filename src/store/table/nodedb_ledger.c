/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_ledger.c - rows of `ledger`, written and read; the columns are those of ledger_columns.h and
 * WIRE_LEDGER_LINES. Processes are not selected by the filter's pids: what a thread waited for is in
 * the rows of others.
 *
 * The lines of a row add up to its duration, also when it is read: a row with more is damaged; what a
 * file does not say because it knows a line that this reader does not is `blocked`, "anything else". */
#include <string.h>

#include "store/schema/ledger_columns.h"
#include "store/nodedb_private.h"
#include "store/read/nodedb_reader.h"

static const char *const line_names[LEDGER_LINES] = {
#define X(NAME, column, what) column,
	WIRE_LEDGER_LINES(X)
#undef X
};

#define ONE(...) +1
enum {
	COL_TIME,
	COL_DURATION,
	COL_COMM,
	COL_NUMBERS,
	COL_LINES = COL_NUMBERS LEDGER_NUMBERS(ONE),
	COL_STAY_LINE = COL_LINES + LEDGER_LINES,
	COL_WAKER_COMM,
	COL_STACK,
	COL_COUNT
};

static struct sql_value count_value(uint64_t v)
{
	return SQL_I(MIN(v, (uint64_t)INT64_MAX));
}

int nodedb_put_ledger(struct nodedb *db, const struct ledger_row *row, struct errinfo *reterr)
{
	bool is_stay = row->mark == MARK_STAY && row->stay_line < LEDGER_LINES;
	struct sql_value values[1 + COL_COUNT] = {SQL_S(db->node)}, *v = values + 1;
	sql_stmt *stmt;
	int r = nodedb_statement(db, STATEMENT_LEDGER, &stmt, reterr);

	if (r < 0)
		return r;
	v[COL_TIME] = SQL_I(row->start.ns);
	v[COL_DURATION] = count_value(row->dur_ns);
	v[COL_COMM] = SQL_SN(row->comm, COMM_LEN);
	for (int i = 0; i < LEDGER_LINES; i++)
		v[COL_LINES + i] = count_value(row->ns[i]);
	v += COL_NUMBERS;
#define X(field, max) *v++ = count_value(row->field);
	LEDGER_NUMBERS(X)
#undef X
	v = values + 1;
	v[COL_STAY_LINE] = SQL_S(is_stay ? line_names[row->stay_line] : "");
	v[COL_WAKER_COMM] = SQL_SN(row->waker_comm, COMM_LEN);
	v[COL_STACK] = SQL_I(row->stack_hash);
	return sql_put(stmt, values, ARRAY_SIZE(values), reterr);
}

/* ---- reading ---- */

static bool number_at(sql_stmt *stmt, int column, int64_t max, int64_t *ret)
{
	return sql_column_is_int(stmt, column, ret) && *ret >= 0 && *ret <= max;
}

static bool read_lines(sql_stmt *stmt, struct ledger_row *row)
{
	uint64_t rest = row->dur_ns;
	int64_t v;

	for (int i = 0; i < LEDGER_LINES; i++) {
		if (!number_at(stmt, COL_LINES + i, (int64_t)rest, &v))
			return false;
		row->ns[i] = (uint64_t)v;
		rest -= (uint64_t)v;
	}
	row->ns[LEDGER_BLOCKED] += rest;
	return true;
}

static bool read_numbers(sql_stmt *stmt, struct ledger_row *row)
{
	int column = COL_NUMBERS;
	int64_t v;

#define X(field, max)                                                                              \
	if (!number_at(stmt, column++, max, &v))                                                   \
		return false;                                                                      \
	row->field = (typeof(row->field))v;
	LEDGER_NUMBERS(X)
#undef X
	return true;
}

/* The name of a line of a later version is BLOCKED, as its time is. */
static bool read_stay_line(sql_stmt *stmt, struct ledger_row *row)
{
	char name[32];

	if (!reader_text(stmt, COL_STAY_LINE, name, sizeof(name)))
		return false;
	if (!name[0])
		return true;
	row->stay_line = LEDGER_BLOCKED;
	for (uint8_t i = 0; i < LEDGER_LINES; i++)
		if (!strcmp(name, line_names[i]))
			row->stay_line = i;
	return true;
}

static bool read_row(sql_stmt *stmt, void *ret)
{
	struct ledger_row *row = ret;
	int64_t duration, stack;

	*row = (struct ledger_row){0};
	if (!number_at(stmt, COL_TIME, INT64_MAX / 2, &row->start.ns) ||
		!number_at(stmt, COL_DURATION, INT64_MAX / 2, &duration) ||
		!sql_column_is_int(stmt, COL_STACK, &stack))
		return false;
	row->dur_ns = (uint64_t)duration;
	row->stack_hash = (uint64_t)stack;
	return read_lines(stmt, row) && read_numbers(stmt, row) && read_stay_line(stmt, row) &&
	       reader_text(stmt, COL_COMM, row->comm, sizeof(row->comm)) &&
	       reader_text(stmt, COL_WAKER_COMM, row->waker_comm, sizeof(row->waker_comm));
}

static const struct reader_column columns[COL_COUNT] = {
	[COL_TIME] = {"timestamp", NULL},
	{"duration", NULL},
	{"comm", "''"},
#define X(field, max) {#field, "0"},
	LEDGER_NUMBERS(X)
#undef X
#define X(NAME, column, what) {column, "0"},
		WIRE_LEDGER_LINES(X)
#undef X
			[COL_STAY_LINE] = {"stay_line", "''"},
	{"waker_comm", "''"},
	{"stack_hash", "0"},
};

static const struct reader_table table = {.name = "ledger",
	.columns = columns,
	.column_count = COL_COUNT,
	.order = "rowid DESC",
	.read = read_row,
	.row_bytes = sizeof(struct ledger_row),
	.max = NODEDB_LEDGER_MAX};

int reader_load_ledger(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;

	return r->filter->ledger ? reader_load_table(r, &table, &c->ledger, &c->ledger_count,
					   &c->older_ledger, reterr)
				 : 0;
}
