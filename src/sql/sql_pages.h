/* SPDX-License-Identifier: Apache-2.0 */
/* sql_pages.h - the rows of a table from the file's own pages, without running a statement.
 *
 * For looking at every row of a large table: a statement costs about 0.4 us a row, this a fifth of it.
 * Only for files that nobody changes (struct sql_stamp, frozen). Only plain things are read: tables
 * with row numbers, columns of integers and texts, rows that fit on their page. Whatever else is met,
 * damage too, is -ENOTSUP without a word: SQLite knows every form and says what is wrong, so the
 * caller does the same with a statement. (The format: https://www.sqlite.org/fileformat2.html) */
#pragma once

#include "sql/sql.h"

#define SQL_PAGES_COLUMNS 40 /* more are not supported, stored or asked for */

struct sql_pages;

/* Where a value is in a row, by the row's shape. */
struct sql_place {
	uint16_t offset, type; /* as the file says it */
	uint8_t shift;         /* of eight bytes there, for an integer */
};

/* A row, while its callback runs. */
struct sql_record {
	int64_t row;         /* its number */
	const uint8_t *body; /* the values */
	const struct sql_place *places;
};

/* sql_pages_open - @columns are those that will be asked for, @count of them. The connection stays
 * the caller's and is used. */
int sql_pages_open(sql_db *db, const char *table, const char *const *columns, size_t count,
	struct sql_pages **ret);
DECLARE_FREE(struct sql_pages, sql_pages_close)

/* sql_pages_read - calls @fn for each row with low <= number <= high, the highest first, until it
 * returns something else than 0; returns that. */
typedef int sql_pages_fn(void *arg, const struct sql_record *r);
int sql_pages_read(struct sql_pages *p, int64_t low, int64_t high, sql_pages_fn *fn, void *arg);

/* sql_record_ints - the values of @count columns from columns[@first]; false if one is no integer (it
 * reads as 0). */
bool sql_record_ints(const struct sql_record *r, size_t first, size_t count, int64_t *ret);

/* sql_record_values - the same of any kind. A text points into the page and has no NUL. */
void sql_record_values(
	const struct sql_record *r, size_t first, size_t count, struct sql_value *ret);
