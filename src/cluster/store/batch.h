/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h - rows of the tables as bytes: what a request becomes, what the journal holds and what engines
 * are filled from.
 *
 * A row is: number of its table (1 byte), columns that are there (4 bytes, a bit each), then their values
 * in order: integers, times and reals 8 bytes, texts 4 bytes of length and the text. Little-endian. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cluster/store/table.h"
#include "sql/sql.h"

#define BATCH_TEXT_MAX (64u << 10) /* of one value; a longer one is cut */

struct batch { /* being written; failures stick in bytes */
	struct buf bytes;
	size_t row_count;
	size_t row; /* where the row begins that is being written */
	enum store_table table;
	int column; /* the next one that may be put */
};

/* batch_row - begins a row; its columns are put in ascending order, those left out are NULL. */
void batch_row(struct batch *b, enum store_table t);
void batch_int(struct batch *b, int column, int64_t v); /* COLUMN_INT, COLUMN_TIME */
void batch_real(struct batch *b, int column, double v); /* NaN and infinities are NULL */
/* batch_text - NULL or an empty text is NULL, but for cluster and node; cut at a whole character. */
void batch_text(struct batch *b, int column, const char *text, size_t len);
void batch_text_of(struct batch *b, int column, const char *text);

struct batch_reader {
	const uint8_t *data;
	size_t len;
};

struct batch_row {
	enum store_table table;
	struct sql_value cells[TABLE_COLUMNS_MAX]; /* texts lie in the reader's data */
};

/* batch_next - 1: *ret is the next row; 0: there is none; -EBADMSG. */
int batch_next(struct batch_reader *r, struct batch_row *ret);
