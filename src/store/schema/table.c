/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - see space.h. */
#include "store/schema/table.h"

#include <math.h>

#include "base/text.h"
#include "model/event.h"

/* Does @clause speak of the column itself? */
static bool has_name(const char *clause, const char *name)
{
	size_t len = strlen(name);

	for (const char *s = clause; (s = strstr(s, name)); s += len)
		if ((s[-1] == ' ' || s[-1] == '(') && strchr(" ,)", s[len]))
			return true;
	return false;
}

static void put_column(const struct column *c, struct buf *sql)
{
	bool is_text = c->kind == COLUMN_NODE || c->kind == COLUMN_TEXT || c->kind == COLUMN_JSON;
	bool is_constant =
		c->otherwise && strchr("'0123456789", *c->otherwise) && !strchr(c->otherwise, ' ');
	const char *type = is_text                  ? "TEXT"
			   : c->kind == COLUMN_REAL ? "REAL"
			   : c->kind == COLUMN_BLOB ? "BLOB"
						    : "INTEGER";

	if (c->kind == COLUMN_DECLARED) {
		buf_printf(sql, "%s %s", c->name, c->otherwise);
		return;
	}
	buf_printf(sql, "%s %s%s", c->name, type, c->may_lack ? "" : " NOT NULL");
	if (c->otherwise && !c->may_lack && c->kind != COLUMN_ID)
		buf_printf(sql, " DEFAULT %s", is_constant ? c->otherwise : is_text ? "''" : "0");
}

static const struct column *column_at(const struct table *t, size_t place)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->columns[i].place == place)
			return &t->columns[i];
	return &t->columns[place - 1];
}

void table_create(const struct table *t, bool merged, struct buf *sql)
{
	bool has_node = t->is_of_all, adds = false;

	for (size_t i = 0; i < t->count; i++)
		has_node = has_node || t->columns[i].kind == COLUMN_NODE;
	adds = merged && !has_node;
	buf_printf(sql, "CREATE TABLE %s (", t->name);
	for (size_t i = 1; i <= t->count; i++) {
		put_column(column_at(t, i), sql);
		buf_puts(sql, i < t->count ? ", " : "");
	}
	if (adds)
		buf_puts(sql, ", node TEXT NOT NULL DEFAULT ''");
	if (merged && t->merged)
		buf_printf(sql, ", %s", t->merged);
	else if (t->key)
		buf_printf(sql, ", PRIMARY KEY (%s%s)", t->key, adds ? ", node" : "");
	buf_puts(sql, !t->key || t->is_rowid || adds ? ");" : ") WITHOUT ROWID;");
}

void table_note(const struct table *t, const char *text, struct buf *out)
{
	buf_puts(out, text);
	for_each_column (c, t)
		if (c->meaning)
			buf_printf(out, "; %s: %s", c->name, c->meaning);
}

static void put_renewal(const struct table *t, struct buf *sql)
{
	const char *all = strstr(t->renew, " *"), *comma = "";

	if (!all) {
		buf_puts(sql, t->renew);
		return;
	}
	buf_append(sql, t->renew, (size_t)(all - t->renew));
	for_each_column (c, t) {
		if (has_name(t->renew, c->name))
			continue;
		buf_printf(sql, "%s %s = excluded.%s", comma, c->name, c->name);
		comma = ",";
	}
	buf_puts(sql, all + 2);
}

void table_insert(const struct table *t, struct buf *sql)
{
	bool is_clause = t->renew && *t->renew == ' ';
	const char *comma = "";

	buf_printf(sql, "INSERT %s%s INTO %s (", t->renew && !is_clause ? "OR " : "",
		t->renew && !is_clause ? t->renew : "", t->name);
	for_each_column (c, t) {
		buf_printf(sql, "%s%s", comma, c->name);
		comma = ", ";
	}
	buf_puts(sql, ") VALUES (");
	comma = "";
	for_each_column (c, t) {
		buf_printf(sql, "%s?", comma);
		comma = ",";
	}
	buf_puts(sql, ")");
	if (is_clause)
		put_renewal(t, sql);
}

/* ---- a row ---- */

static struct sql_value count_value(const struct column *c, uint64_t v)
{
	if (c->may_lack && !v)
		return SQL_NOTHING;
	return SQL_I(c->kind == COLUMN_COUNT ? MIN(v, (uint64_t)INT64_MAX) : v);
}

static struct sql_value signed_value(const struct column *c, int64_t v)
{
	return c->may_lack && v < 0 ? SQL_NOTHING : SQL_I(v);
}

struct sql_value table_rank(const struct placement *p, unsigned which)
{
	const int32_t values[] = {p->rank, p->local_rank, p->world_size};

	return p->known & 1u << which ? SQL_I(values[which]) : SQL_NOTHING;
}
STATIC_ASSERT(PLACEMENT_RANK == 1 && PLACEMENT_LOCAL_RANK == 2 && PLACEMENT_WORLD_SIZE == 4);

static struct sql_value value_of(const struct column *c, const void *row)
{
	const void *m = (const char *)row + c->offset;
	const char *text;

	switch (c->type) {
	case COLUMN_U8: return count_value(c, *(const uint8_t *)m);
	case COLUMN_U16: return count_value(c, *(const uint16_t *)m);
	case COLUMN_U32: return count_value(c, *(const uint32_t *)m);
	case COLUMN_U64: return count_value(c, *(const uint64_t *)m);
	case COLUMN_I32: return signed_value(c, *(const int32_t *)m);
	case COLUMN_I64: return signed_value(c, *(const int64_t *)m);
	case COLUMN_DOUBLE:
		return c->may_lack && *(const double *)m < 0 ? SQL_NOTHING
							     : SQL_R(*(const double *)m);
	case COLUMN_CHARS: return SQL_SN((const char *)m, c->size);
	case COLUMN_RANK: return table_rank(m, c->size);
	case COLUMN_POINTER: text = *(const char *const *)m; return SQL_S(text ? text : "");
	case COLUMN_GIVEN: break;
	}
	return SQL_NOTHING;
}

size_t table_values(const struct table *t, const char *node, const void *row,
	const struct sql_value *given, struct sql_value ret[TABLE_COLUMNS_MAX])
{
	size_t n = 0;

	for_each_column (c, t)
		ret[n++] = c->kind == COLUMN_NODE    ? SQL_S(node)
			   : c->type == COLUMN_GIVEN ? *given++
						     : value_of(c, row);
	return n;
}

int table_place(const struct table *t, const char *column)
{
	int n = 0;

	for_each_column (c, t) {
		if (column && !strcmp(c->name, column))
			break;
		n++;
	}
	return n;
}

/* ---- and back ---- */

#define TEXT_MOST (1u << 20) /* bytes: more cannot be meant */

bool table_copy_text(const struct sql_value *v, char *out, size_t size)
{
	if (v->type != SQL_TEXT || v->len > TEXT_MOST)
		return false;
	text_copy(out, size, v->p, strnlen(v->p, v->len));
	return true;
}

static bool read_real(const struct column *c, const struct sql_value *v, double *ret)
{
	double d = v->type == SQL_INT ? (double)v->i : v->type == SQL_REAL ? v->d : NAN;
	bool is_sound = isfinite(d);

	*ret = c->may_lack && !(is_sound && d >= 0) ? -1 : d;
	return is_sound || c->may_lack;
}

static void read_rank(const struct column *c, const struct sql_value *v, struct placement *p)
{
	int32_t *const values[] = {&p->rank, &p->local_rank, &p->world_size};

	if (v->type != SQL_INT || v->i < 0 || v->i > INT32_MAX)
		return;
	*values[c->size] = (int32_t)v->i;
	p->known |= 1u << c->size;
}

bool table_takes(const struct column *c, int64_t v)
{
	static const int64_t most[] = {[COLUMN_U8] = UINT8_MAX,
		[COLUMN_U16] = UINT16_MAX,
		[COLUMN_U32] = UINT32_MAX,
		[COLUMN_I32] = INT32_MAX,
		[COLUMN_U64] = INT64_MAX,
		[COLUMN_I64] = INT64_MAX};

	if (c->kind == COLUMN_INT)
		return c->type != COLUMN_I32 || v == (int32_t)v;
	return v >= 0 && v <= most[c->type] && (!c->max || v <= c->max);
}

static bool read_number(const struct column *c, const struct sql_value *v, void *m)
{
	bool is_lacking = c->may_lack && v->type == SQL_NULL;
	int64_t n = !is_lacking ? v->i : c->type == COLUMN_I32 || c->type == COLUMN_I64 ? -1 : 0;

	if (!is_lacking && (v->type != SQL_INT || !table_takes(c, n)))
		return false;
	switch (c->type) {
	case COLUMN_U8: *(uint8_t *)m = (uint8_t)n; break;
	case COLUMN_U16: *(uint16_t *)m = (uint16_t)n; break;
	case COLUMN_U32:
	case COLUMN_I32: *(uint32_t *)m = (uint32_t)n; break;
	default: *(int64_t *)m = n; break;
	}
	return true;
}

bool table_read(const struct table *t, const struct sql_value *values, void *row)
{
	for_each_column (c, t) {
		const struct sql_value *v = values++;
		void *m = (char *)row + c->offset;
		bool is_sound = true;

		switch (c->type) {
		case COLUMN_GIVEN: break;
		case COLUMN_CHARS: is_sound = table_copy_text(v, m, c->size); break;
		case COLUMN_DOUBLE: is_sound = read_real(c, v, m); break;
		case COLUMN_RANK: read_rank(c, v, m); break;
		default: is_sound = read_number(c, v, m);
		}
		if (!is_sound)
			return false;
	}
	return true;
}
