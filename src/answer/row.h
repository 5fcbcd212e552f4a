/* SPDX-License-Identifier: Apache-2.0 */
/* row.h - rows that are described once and shown as JSON, as a table of text and to assistants.
 *
 * A description is an array of fields of one struct, ended by ROW_END: which member is shown, under which
 * key, in which unit, and under which title and in how many columns where it is also text. Fields that some
 * readers are not shown carry a group, a bit of the table's own, which these leave out.
 *
 *	static const struct row_field fields[] = {
 *		ROW(struct op_stat, "count", calls, ROW_COUNT, 0, "COUNT", 11),
 *		ROW(struct op_stat, "p50_us", p50_ns, ROW_US, PERCENTILES, "P50", 9),
 *		ROW_END,
 *	}; */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "json/writer.h"

/* clang-format off */
enum row_type { ROW_U8, ROW_U16, ROW_U32, ROW_U64, ROW_I32, ROW_I64, ROW_REAL, ROW_BOOL, ROW_TEXT,
	ROW_CHARS };
/* clang-format on */

enum row_form {
	ROW_PLAIN,
	ROW_COUNT,   /* text: 12,345 */
	ROW_US,      /* nanoseconds, in JSON as microseconds; text: 5.3µs */
	ROW_PERCENT, /* a share; text: 71.3% */
	ROW_NAME,    /* of a number, as a function says */
	ROW_OP,      /* the name of an operation of the member `source` */
};

#define ROW_SET   (1u << 29) /* left out if it is 0 or "" */
#define ROW_KNOWN (1u << 30) /* left out if it is below 0 */
#define ROW_NULLS (1u << 31) /* null if it is below 0 */

struct row_field {
	const char *key;
	uint8_t type, form;
	uint16_t offset, source; /* of the member; ROW_OP: of its source */
	uint32_t groups;         /* the table's bits, ROW_SET, ROW_KNOWN, ROW_NULLS */
	const char *title;       /* NULL: not in text */
	int width;               /* in columns; below 0: to the left */
	const char *(*name)(unsigned id);
};

/* clang-format off */
#define ROW_TYPE(s, member)                                                                        \
	_Generic(&((s *)0)->member, uint8_t *: ROW_U8, uint16_t *: ROW_U16, uint32_t *: ROW_U32,   \
		uint64_t *: ROW_U64, int32_t *: ROW_I32, int64_t *: ROW_I64, wall_time *: ROW_I64, \
		double *: ROW_REAL, bool *: ROW_BOOL, const char **: ROW_TEXT, default: ROW_CHARS)
#define ROW_FIELD(s, key, member, source, name, form, groups, title, width, ...)                   \
	{key, ROW_TYPE(s, member), form, offsetof(s, member), source, groups, title, width, name}
#define ROW_END {.key = NULL}
/* clang-format on */

/* What follows the member: form, groups, title and width, the last ones only if they are not 0. */
#define ROW(s, key, member, ...) ROW_FIELD(s, key, member, 0, NULL, ##__VA_ARGS__, 0, 0, 0, 0)
#define ROW_NAMED(s, key, member, name, ...)                                                       \
	ROW_FIELD(s, key, member, 0, name, ROW_NAME, ##__VA_ARGS__, 0, 0, 0)
#define ROW_OP_NAMED(s, key, ...)                                                                  \
	ROW_FIELD(s, key, op, offsetof(s, source), NULL, ROW_OP, ##__VA_ARGS__, 0, 0, 0)

/* row_json - the fields as members of an open object, without those of the groups @leave_out. */
void row_json(
	struct json_writer *w, const struct row_field *f, const void *row, uint32_t leave_out);

/* row_json_list - the member @key (NULL: an element): an array of @count rows of @size bytes each. */
void row_json_list(struct json_writer *w, const char *key, const struct row_field *f,
	const void *rows, size_t size, size_t count, uint32_t leave_out);

/* row_text - the fields with a title, a space before each, no more than @columns of them; "-" for those
 * of the groups @leave_out. Names are escaped. row_titles() is the line above. Neither ends the line. */
void row_text(
	struct buf *b, const struct row_field *f, const void *row, uint32_t leave_out, int columns);
void row_titles(struct buf *b, const struct row_field *f);
