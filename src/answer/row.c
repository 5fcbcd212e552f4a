/* SPDX-License-Identifier: Apache-2.0 */
/* row.c - see row.h. */
#include "answer/row.h"

#include "base/text.h"
#include "wire/names.h"

/* The member as it is: a number or a text. */
static struct json_member read_member(const struct row_field *f, const void *row)
{
	const void *m = (const char *)row + f->offset;

	switch ((enum row_type)f->type) {
	case ROW_U8: return JSON_U(f->key, *(const uint8_t *)m);
	case ROW_U16: return JSON_U(f->key, *(const uint16_t *)m);
	case ROW_U32: return JSON_U(f->key, *(const uint32_t *)m);
	case ROW_U64: return JSON_U(f->key, *(const uint64_t *)m);
	case ROW_I32: return JSON_I(f->key, *(const int32_t *)m);
	case ROW_I64: return JSON_I(f->key, *(const int64_t *)m);
	case ROW_REAL: return JSON_R(f->key, *(const double *)m);
	case ROW_BOOL: return JSON_B(f->key, *(const bool *)m);
	case ROW_TEXT: return JSON_S(f->key, *(const char *const *)m);
	case ROW_CHARS: break;
	}
	return JSON_S(f->key, m);
}

static double number_of(const struct json_member *v)
{
	return v->type == JSON_MEMBER_REAL  ? v->d
	       : v->type == JSON_MEMBER_INT ? (double)v->i
					    : (double)v->u;
}

static bool is_left_out(const struct row_field *f, const struct json_member *v)
{
	if (v->type == JSON_MEMBER_TEXT)
		return f->groups & ROW_SET && (!v->s || !v->s[0]);
	return (f->groups & ROW_SET && (v->type == JSON_MEMBER_BOOL ? !v->b : !v->u)) ||
	       (f->groups & ROW_KNOWN && number_of(v) < 0);
}

static const char *name_of(
	const struct row_field *f, const void *row, const struct json_member *v, char scratch[32])
{
	if (f->form == ROW_NAME)
		return f->name((unsigned)v->u);
	return wire_op_name(((const uint8_t *)row)[f->source], (unsigned)v->u, scratch);
}

void row_json(struct json_writer *w, const struct row_field *f, const void *row, uint32_t leave_out)
{
	for (; f->key; f++) {
		struct json_member v = read_member(f, row);
		char scratch[32];

		if (f->groups & leave_out || is_left_out(f, &v))
			continue;
		if (f->groups & ROW_NULLS && number_of(&v) < 0)
			v.type = JSON_MEMBER_NULL;
		else if (f->form == ROW_US)
			v = JSON_R(f->key, number_of(&v) / (double)NS_PER_US);
		else if (f->form == ROW_PERCENT)
			v = JSON_R(f->key, 100 * number_of(&v));
		else if (f->form >= ROW_NAME)
			v = JSON_S(f->key, name_of(f, row, &v, scratch));
		JSON_PUT(w, v);
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
			struct json_member v = read_member(f, row);
			char text[32];

			if (f->form == ROW_COUNT)
				buf_puts(&cell, TEXT_COUNT(v.u));
			else if (f->form == ROW_US)
				buf_puts(&cell, TEXT_DURATION(v.u));
			else if (f->form == ROW_PERCENT)
				buf_printf(&cell, "%.1f%%", 100 * number_of(&v));
			else if (f->form >= ROW_NAME || v.type == JSON_MEMBER_TEXT)
				text_escape_terminal(&cell, v.type == JSON_MEMBER_TEXT
								    ? v.s
								    : name_of(f, row, &v, text));
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
