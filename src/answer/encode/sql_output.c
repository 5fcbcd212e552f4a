/* SPDX-License-Identifier: Apache-2.0 */
/* sql_output.c - see report_json.h. Values come from files of strangers. */
#include "answer/encode/report_json.h"

#include <math.h>

#include "base/text.h"

#define CELL_BYTES  (64 << 10)
#define REAL_DIGITS 6

static void put_hex(struct buf *b, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_printf(b, "%02x", (unsigned char)data[i]);
}

static void put_real(struct buf *b, double v)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) { /* the shortest that reads back equal */
		snprintf(text, sizeof(text), "%.*g", digits, v);
		if (strtod(text, NULL) == v)
			break;
	}
	buf_puts(b, text);
	if (isfinite(v) && !strpbrk(text, ".e"))
		buf_puts(b, ".0");
}

/* For people: six significant digits, but never a digit less than the whole number has. What a value
 * is to the last digit, --json and --csv say. */
static void put_real_short(struct buf *b, double v)
{
	double size = fabs(v);
	char text[40];

	if (!isfinite(v) || size >= 1e15 || v == trunc(v)) {
		put_real(b, v);
		return;
	}
	if (size < 1e-4) {
		buf_printf(b, "%.*g", REAL_DIGITS, v);
		return;
	}
	snprintf(text, sizeof(text), "%.*f", MAX(REAL_DIGITS - 1 - (int)floor(log10(size)), 0), v);
	for (size_t len = strlen(text); strchr(text, '.') && text[len - 1] == '0';)
		text[--len] = 0;
	buf_printf(b, "%s%s", text, text[strlen(text) - 1] == '.' ? "0" : "");
}

/* A value as bytes; of a long one only its beginning if @cut, of a number what people read. */
static void put_value(struct buf *b, const struct sql_table *t, const struct sql_cell *c, bool cut)
{
	size_t len = cut ? MIN(c->len, (size_t)4 * SQL_OUTPUT_CELL + 4) : c->len;

	switch (c->type) {
	case SQL_INT: buf_printf(b, "%" PRId64, c->i); break;
	case SQL_REAL:
		if (cut)
			put_real_short(b, c->d);
		else
			put_real(b, c->d);
		break;
	case SQL_TEXT: buf_append(b, sql_table_bytes(t, c), len); break;
	case SQL_BLOB:
		buf_puts(b, "x'");
		put_hex(b, sql_table_bytes(t, c), len);
		buf_puts(b, "'");
		break;
	case SQL_NULL: break;
	}
}

/* @cell as it stands in the table: harmless, and no longer than SQL_OUTPUT_CELL. */
static void shown(struct buf *out, const char *data, size_t len)
{
	_cleanup_buf_ struct buf clean = BUF_INIT(CELL_BYTES);
	int bytes;

	buf_clear(out);
	text_escape_terminal_len(&clean, data, len);
	bytes = text_clip(buf_str(&clean), SQL_OUTPUT_CELL);
	if (!buf_str(&clean)[bytes]) {
		buf_puts(out, buf_str(&clean));
		return;
	}
	bytes = text_clip(buf_str(&clean), SQL_OUTPUT_CELL - 1);
	buf_append(out, buf_str(&clean), (size_t)bytes);
	buf_puts(out, "…");
}

static void shown_cell(struct buf *out, const struct sql_table *t, size_t row, int column)
{
	_cleanup_buf_ struct buf value = BUF_INIT(CELL_BYTES);

	put_value(&value, t, sql_table_cell(t, row, column), true);
	shown(out, buf_str(&value), value.len);
}

static void put_padded(struct buf *b, const char *text, int width, bool right, bool last)
{
	int pad = width - text_columns(text);

	buf_printf(b, "%*s%s", right ? pad : 0, "", text);
	if (!last)
		buf_printf(b, "%*s  ", right ? 0 : pad, "");
}

struct column {
	int width;
	bool number; /* all values are */
};

static void measure(const struct sql_table *t, int i, struct column *c, struct buf *cell)
{
	shown(cell, sql_table_name(t, i), strlen(sql_table_name(t, i)));
	*c = (struct column){.width = text_columns(buf_str(cell)), .number = true};
	for (size_t row = 0; row < t->row_count; row++) {
		enum sql_type type = sql_table_cell(t, row, i)->type;

		shown_cell(cell, t, row, i);
		c->width = MAX(c->width, text_columns(buf_str(cell)));
		c->number &= type == SQL_INT || type == SQL_REAL || type == SQL_NULL;
	}
}

static void write_table(struct buf *b, const struct sql_table *t)
{
	_cleanup_free_ struct column *columns =
		calloc((size_t)MAX(t->column_count, 1), sizeof(*columns));
	_cleanup_buf_ struct buf cell = BUF_INIT(CELL_BYTES);
	int last = t->column_count - 1;

	if (!columns) {
		b->err = -ENOMEM;
		return;
	}
	for (int i = 0; i <= last; i++)
		measure(t, i, &columns[i], &cell);
	for (int i = 0; i <= last; i++) {
		shown(&cell, sql_table_name(t, i), strlen(sql_table_name(t, i)));
		put_padded(b, buf_str(&cell), columns[i].width, columns[i].number, i == last);
	}
	buf_putc(b, '\n');
	for (int i = 0; i <= last; i++) {
		for (int k = 0; k < columns[i].width; k++)
			buf_putc(b, '-');
		buf_puts(b, i == last ? "\n" : "  ");
	}
	for (size_t row = 0; row < t->row_count; row++)
		for (int i = 0; i <= last; i++) {
			shown_cell(&cell, t, row, i);
			put_padded(
				b, buf_str(&cell), columns[i].width, columns[i].number, i == last);
			buf_puts(b, i == last ? "\n" : "");
		}
}

/* name, name:2, name:3 */
static void put_key(struct json_writer *w, const struct sql_table *t, int column)
{
	_cleanup_buf_ struct buf name = BUF_INIT(CELL_BYTES);
	int same = 1;

	for (int i = 0; i < column; i++)
		same += !strcmp(sql_table_name(t, i), sql_table_name(t, column));
	buf_puts(&name, sql_table_name(t, column));
	if (same > 1)
		buf_printf(&name, ":%d", same);
	json_key(w, buf_str(&name));
}

static void put_json(struct json_writer *w, const struct sql_table *t, size_t row, int column)
{
	const struct sql_cell *c = sql_table_cell(t, row, column);
	_cleanup_buf_ struct buf hex = BUF_INIT(4 << 20);

	if (c->type != SQL_BLOB) {
		table_cell(w, t, row, column);
		return;
	}
	put_hex(&hex, sql_table_bytes(t, c), c->len);
	json_put_string(w, buf_str(&hex));
}

static void write_json(struct buf *b, const struct sql_table *t)
{
	struct json_writer w = json_writer_to_buf(b);

	for (size_t row = 0; row < t->row_count; row++) {
		json_begin_object(&w);
		for (int i = 0; i < t->column_count; i++) {
			put_key(&w, t, i);
			put_json(&w, t, row, i);
		}
		json_end_object(&w);
		json_finish(&w);
	}
}

static void put_csv(struct buf *b, const char *data, size_t len, bool terminal)
{
	_cleanup_buf_ struct buf clean = BUF_INIT((12 << 20) + CELL_BYTES);
	bool quote = false;

	if (terminal)
		text_escape_terminal_len(&clean, data, len);
	else
		text_put_utf8(&clean, data, len); /* who reads the file may take nothing else */
	data = buf_str(&clean);
	len = clean.len;
	for (size_t i = 0; i < len; i++)
		quote |= strchr(",\"\r\n", data[i]) != NULL;
	if (!quote) {
		buf_append(b, data, len);
		return;
	}
	buf_putc(b, '"');
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '"')
			buf_putc(b, '"');
		buf_putc(b, data[i]);
	}
	buf_putc(b, '"');
}

/* A spreadsheet runs a text that begins so as a formula, and names are strangers'. */
static bool is_formula(const struct sql_table *t, const struct sql_cell *v)
{
	return v->type == SQL_TEXT && v->len && strchr("=+-@\t\r", *sql_table_bytes(t, v));
}

static void write_csv(struct buf *b, const struct sql_table *t, bool terminal)
{
	int last = t->column_count - 1;

	for (int i = 0; i <= last; i++) {
		put_csv(b, sql_table_name(t, i), strlen(sql_table_name(t, i)), terminal);
		buf_puts(b, i == last ? "\r\n" : ",");
	}
	for (size_t row = 0; row < t->row_count; row++)
		for (int i = 0; i <= last; i++) {
			_cleanup_buf_ struct buf value = BUF_INIT(4 << 20);

			if (is_formula(t, sql_table_cell(t, row, i)))
				buf_putc(&value, '\'');
			put_value(&value, t, sql_table_cell(t, row, i), false);
			put_csv(b, buf_str(&value), value.len, terminal);
			buf_puts(b, i == last ? "\r\n" : ",");
		}
}

void sql_output_write(struct buf *b, const struct sql_table *t, enum sql_output form, bool terminal)
{
	switch (form) {
	case SQL_OUTPUT_TABLE: write_table(b, t); break;
	case SQL_OUTPUT_JSON: write_json(b, t); break;
	case SQL_OUTPUT_CSV: write_csv(b, t, terminal); break;
	}
}
