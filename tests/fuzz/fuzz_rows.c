/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP requests of strangers as rows of the cluster's tables: whatever was sent, what was made of it can be
 * read, names who it is about, and is as much as was counted. The first byte says what comes: 1 logs, 2 JSON,
 * 4 traces; 8: rows as bytes, which are damaged, and what was read of them, written anew, reads the same. */
#include <errno.h>

#include "base/text.h"
#include "cluster/keep/rows.h"
#include "fuzz.h"

static void put_cell(struct batch *b, enum column_type type, int column, const struct sql_value *v)
{
	if (v->type == SQL_NULL)
		return;
	switch (type) {
	case COLUMN_TIME:
	case COLUMN_INT: batch_int(b, column, v->i); break;
	case COLUMN_REAL: batch_real(b, column, v->d); break;
	case COLUMN_TEXT: batch_text(b, column, v->p, v->len); break;
	}
}

/* copy_rows - how many rows @bytes hold, written anew into @ret. */
static size_t copy_rows(const void *bytes, size_t len, struct batch *ret, int *ret_err)
{
	struct batch_reader r = {bytes, len};
	struct batch_row row;
	size_t count = 0;
	int err;

	while ((err = batch_next(&r, &row)) == 1) {
		const struct table_desc *d = &store_tables[row.table];

		MUST(row.cells[d->cluster].type == SQL_TEXT && row.cells[d->node].type == SQL_TEXT);
		batch_row(ret, row.table);
		for (int i = 0; i < d->column_count; i++)
			put_cell(ret, d->columns[i].type, i, &row.cells[i]);
		count++;
	}
	MUST(err == 0 || err == -EBADMSG);
	*ret_err = err;
	return count;
}

static void check_bytes(const uint8_t *data, size_t size)
{
	struct batch first = {.bytes = BUF_INIT(64 << 20)}, again = {.bytes = BUF_INIT(64 << 20)};
	int err;
	size_t count = copy_rows(data, size, &first, &err);

	MUST(count == first.row_count);
	MUST(copy_rows(first.bytes.data, first.bytes.len, &again, &err) == count && err == 0);
	MUST(again.bytes.len == first.bytes.len);
	MUST(!again.bytes.len || memcmp(again.bytes.data, first.bytes.data, again.bytes.len) == 0);
	buf_done(&first.bytes);
	buf_done(&again.bytes);
}

static bool may_write(void *arg, uint64_t sender, const char *cluster, size_t len)
{
	MUST(len < ROWS_NODE_MAX);
	return !len || cluster[0] != 'x';
}

static void check_request(const uint8_t *data, size_t size, enum otlp_signal signal, bool json)
{
	const struct keeper_request q = {
		.signal = signal, .json = json, .data = data, .len = size, .may_write = may_write};
	struct rows rows = {.batch.bytes = BUF_INIT(ROWS_BYTES_MAX)};
	struct batch copy = {.bytes = BUF_INIT(64 << 20)};
	struct seen *seen = NULL;
	int r, err;

	MUST(seen_new(NS_PER_S, &seen) == 0);
	r = rows_read(&q, 1, seen, &rows, NULL);
	MUST(r == 0 || r == -EBADMSG || r == -E2BIG || r == -ENOMEM);
	if (r == 0) {
		MUST(rows.refused <= rows.rejected);
		MUST((rows.rejected > 0) == (rows.why[0] != 0));
		MUST(rows.batch.row_count >= rows.taken);
		MUST(copy_rows(rows.batch.bytes.data, rows.batch.bytes.len, &copy, &err) ==
			rows.batch.row_count);
		MUST(err == 0 && copy.bytes.len == rows.batch.bytes.len);
	}
	seen_free(seen);
	rows_done(&rows);
	buf_done(&copy.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t kind;

	if (!size)
		return 0;
	kind = *data++;
	size--;
	if (kind & 8)
		check_bytes(data, size);
	else
		check_request(data, size,
			kind & 4   ? OTLP_TRACES
			: kind & 1 ? OTLP_LOGS
				   : OTLP_METRICS,
			kind & 2);
	return 0;
}
