/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - see row.h. */
#include "answer/row.h"

#include "base/text.h"
#include "wire/names.h"

/* The member as it is: a number or a text. */
static void read_member(const struct row_field *f, const void *row, struct row_value *v)
{
	const void *m = (const char *)row + f->offset;

	v->type = f->type;
	switch ((enum row_type)f->type) {
	case ROW_U8: v->u = *(const uint8_t *)m; break;
	case ROW_U16: v->u = *(const uint16_t *)m; break;
	case ROW_U32: v->u = *(const uint32_t *)m; break;
	case ROW_U64: v->u = *(const uint64_t *)m; break;
	case ROW_I32: v->i = *(const int32_t *)m; break;
	case ROW_I64: v->i = *(const int64_t *)m; break;
	case ROW_REAL: v->d = *(const double *)m; break;
	case ROW_BOOL: v->u = *(const bool *)m; break;
	case ROW_TEXT: v->s = *(const char *const *)m; break;
	case ROW_CHARS: v->s = m; break;
	}
	v->type = f->type < ROW_U64      ? ROW_U64
		  : f->type == ROW_I32   ? ROW_I64
		  : f->type == ROW_CHARS ? ROW_TEXT
					 : v->type;
}

static double number_of(const struct row_value *v)
{
	return v->type == ROW_REAL ? v->d : v->type == ROW_I64 ? (double)v->i : (double)v->u;
}

static bool is_left_out(const struct row_field *f, const struct row_value *v)
{
	if (v->type == ROW_TEXT)
		return f->groups & ROW_SET && (!v->s || !v->s[0]);
	return (f->groups & ROW_SET && !v->u) || (f->groups & ROW_KNOWN && number_of(v) < 0);
}

static const char *name_of(const struct row_field *f, const void *row, struct row_value *v)
{
	if (f->form == ROW_NAME)
		return f->name((unsigned)v->u);
	return wire_op_name(((const uint8_t *)row)[f->source], (unsigned)v->u, v->scratch);
}

/* row_get - the value of a field; false: it is left out. */
static bool row_get(
	const struct row_field *f, const void *row, uint32_t leave_out, struct row_value *v)
{
	read_member(f, row, v);
	if (f->groups & leave_out || is_left_out(f, v))
		return false;
	if (f->groups & ROW_NULLS && number_of(v) < 0) {
		v->s = NULL;
		v->type = ROW_TEXT;
	} else if (f->form == ROW_US || f->form == ROW_PERCENT) {
		v->d = f->form == ROW_US ? number_of(v) / (double)NS_PER_US : 100 * number_of(v);
		v->type = ROW_REAL;
	} else if (f->form >= ROW_NAME) {
		v->s = name_of(f, row, v);
		v->type = ROW_TEXT;
	}
	return true;
}

void row_json(struct json_writer *w, const struct row_field *f, const void *row, uint32_t leave_out)
{
	struct row_value v;

	for (; f->key; f++) {
		if (!row_get(f, row, leave_out, &v))
			continue;
		switch (v.type) {
		case ROW_I64: json_int_member(w, f->key, v.i); break;
		case ROW_REAL: json_double_member(w, f->key, v.d); break;
		case ROW_BOOL: json_bool_member(w, f->key, v.u); break;
		case ROW_TEXT: json_string_member(w, f->key, v.s); break;
		default: json_uint_member(w, f->key, v.u);
		}
	}
}

void row_json_list(struct json_writer *w, const char *key, const struct row_field *f,
	const void *rows, size_t size, size_t count, uint32_t leave_out)
{
	if (key)
		json_key(w, key);
	json_begin_array(w);
	for (size_t i = 0; i < count; i++) {
		json_begin_object(w);
		row_json(w, f, (const char *)rows + i * size, leave_out);
		json_end_object(w);
	}
	json_end_array(w);
}

/* ---- text ---- */

static void put_cell(struct buf *b, const char *text, int width)
{
	int pad = MAX(abs(width) - text_columns(text), 0);

	buf_printf(b, " %*s%s%*s", width > 0 ? pad : 0, "", text, width < 0 ? pad : 0, "");
}

void row_text(
	struct buf *b, const struct row_field *f, const void *row, uint32_t leave_out, int columns)
{
	for (; f->key && columns > 0; f++) {
		if (!f->title)
			continue;
		columns--;
		if (f->groups & leave_out)
			put_cell(b, "-", f->width);
		else {
			_cleanup_buf_ struct buf cell = BUF_INIT(1 << 12);
			struct row_value v;

			read_member(f, row, &v);
			if (f->form == ROW_COUNT)
				buf_puts(&cell, TEXT_COUNT(v.u));
			else if (f->form == ROW_US)
				buf_puts(&cell, TEXT_DURATION(v.u));
			else if (f->form == ROW_PERCENT)
				buf_printf(&cell, "%.1f%%", 100 * number_of(&v));
			else if (f->form >= ROW_NAME || v.type == ROW_TEXT)
				text_escape_terminal(
					&cell, v.type == ROW_TEXT ? v.s : name_of(f, row, &v));
			else
				buf_printf(&cell, "%" PRId64, v.i);
			put_cell(b, buf_str(&cell), f->width);
		}
	}
}

void row_titles(struct buf *b, const struct row_field *f)
{
	for (; f->key; f++)
		if (f->title)
			put_cell(b, f->title, f->width);
}
