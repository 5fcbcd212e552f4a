/* SPDX-License-Identifier: Apache-2.0 */
/* incident_table.c - see incident_table.h.
 *
 * Invariant: a column of the first fields is never NULL; one that was added later is NULL where there is no
 * value, and in rows of before it. */
#include "store/schema/incident_table.h"

#include "json/writer.h"

#define LISTS_MAX (256 << 10) /* bytes of all of an incident's lists */

/* The fields that have a column: @f runs over them. */
#define for_each_column(f)                                                                         \
	for (const struct incident_field *f = incident_fields;                                     \
		f < incident_fields + INCIDENT_FIELD_COUNT; f++)                                   \
		if (f->column)

static const char *type_of(const struct incident_field *f)
{
	switch (f->form) {
	case INCIDENT_FORM_U32:
	case INCIDENT_FORM_U64:
	case INCIDENT_FORM_I32:
	case INCIDENT_FORM_TIME:
	case INCIDENT_FORM_SOURCE:
	case INCIDENT_FORM_OP:
	case INCIDENT_FORM_COUNT: return "INTEGER";
	case INCIDENT_FORM_REAL:
	case INCIDENT_FORM_SHARE: return "REAL";
	case INCIDENT_FORM_TEXT:
	case INCIDENT_FORM_SEVERITY:
	case INCIDENT_FORM_PROBLEM:
	case INCIDENT_FORM_UNIT:
	case INCIDENT_FORM_LIST:
	case INCIDENT_FORM_GIVEN: break;
	}
	return f == &incident_fields[INCIDENT_F_DETECTED] ? "INTEGER" : "TEXT";
}

void incident_table_create(struct buf *sql)
{
	const char *comma = "";

	buf_puts(sql, "CREATE TABLE incidents (");
	for_each_column (f) {
		const char *type = type_of(f);

		buf_printf(sql, "%s%s %s", comma, f->column, type);
		if (f == &incident_fields[INCIDENT_F_ID])
			buf_puts(sql, " PRIMARY KEY");
		else if (!f->is_added)
			buf_printf(sql, " NOT NULL DEFAULT %s", *type == 'T' ? "''" : "0");
		comma = ", ";
	}
	buf_puts(sql, "); CREATE INDEX idx_incidents_last_seen ON incidents(last_seen);");
}

void incident_table_note(struct buf *text)
{
	buf_puts(text, "what explain found; causal_chains has the same in the published shape");
	for_each_column (f) {
		size_t len = strlen(f->column), unit = strlen(f->unit);
		bool says = unit < len && !strcmp(f->column + len - unit, f->unit); /* p50_ns */

		buf_printf(text, "; %s: %s", f->column, f->meaning);
		if (unit && !says)
			buf_printf(text, " (%s)", f->unit);
		buf_puts(text, f->is_added ? "; NULL: unknown" : "");
	}
}

static void put_update(struct buf *sql, const struct incident_field *f)
{
	static const char *const names[] = {
		[INCIDENT_LEAST] = "min", [INCIDENT_MOST] = "max", [INCIDENT_LATEST] = ""};
	bool both = f->renew != INCIDENT_LATEST;

	buf_printf(sql, "%s = %s(%s%sexcluded.%s)", f->column, names[f->renew],
		both ? f->column : "", both ? ", " : "", f->column);
}

void incident_table_insert(struct buf *sql)
{
	const char *comma = "";

	buf_puts(sql, "INSERT INTO incidents (");
	for_each_column (f) {
		buf_printf(sql, "%s%s", comma, f->column);
		comma = ", ";
	}
	buf_puts(sql, ") VALUES (");
	comma = "";
	for_each_column (f) {
		buf_printf(sql, "%s?", comma);
		comma = ",";
	}
	buf_puts(sql, ") ON CONFLICT (id) DO UPDATE SET ");
	comma = "";
	for_each_column (f) {
		if (f->renew == INCIDENT_KEEP)
			continue;
		buf_puts(sql, comma);
		put_update(sql, f);
		comma = ", ";
	}
}

/* ---- a row ---- */

static struct sql_value sql_of(
	const struct incident_field *f, const struct incident *i, const struct incident_origin *o)
{
	struct incident_value v;

	switch (f - incident_fields) {
	case INCIDENT_F_ID: return SQL_S(o->id);
	case INCIDENT_F_NODE: return SQL_S(o->node);
	case INCIDENT_F_DETECTED: return SQL_I(o->detected.ns);
	}
	incident_field_get(f, i, false, &v);
	switch (v.type) {
	case INCIDENT_UINT: return SQL_I(v.u);
	case INCIDENT_INT: return SQL_I(v.i);
	case INCIDENT_REAL: return SQL_R(v.d);
	case INCIDENT_TEXT:
		return f->form == INCIDENT_FORM_TEXT ? SQL_SN(v.s, f->size) : SQL_S(v.s);
	case INCIDENT_NOTHING: break;
	}
	return SQL_NOTHING;
}

int incident_table_put(sql_stmt *stmt, const struct incident *i, const struct incident_origin *o,
	struct errinfo *reterr)
{
	_cleanup_buf_ struct buf lists = BUF_INIT(LISTS_MAX);
	struct sql_value values[INCIDENT_FIELD_COUNT];
	size_t count = 0, begin = 0;

	for_each_column (f)
		if (f->form == INCIDENT_FORM_LIST) {
			switch (f - incident_fields) {
			case INCIDENT_F_CAUSES: incident_json_causes(i, &lists); break;
			case INCIDENT_F_EVIDENCE: incident_json_evidence(i, o->node, &lists); break;
			case INCIDENT_F_FIXES: incident_json_fixes(i, &lists); break;
			case INCIDENT_F_TIMELINE: incident_json_timeline(i, &lists); break;
			}
			buf_putc(&lists, 0);
		}
	if (lists.err)
		return lists.err;
	for_each_column (f) {
		values[count] = sql_of(f, i, o);
		if (f->form == INCIDENT_FORM_LIST) {
			values[count] = SQL_S(lists.data + begin);
			begin += values[count].len + 1;
		}
		count++;
	}
	return sql_put(stmt, values, count, reterr);
}

/* Names of traced processes are inside, so any byte may
 * occur; the writer makes valid JSON of it. */

/* A column holds the array alone, without the newline that ends a document. */
static void finish(struct json_writer *w, struct buf *out)
{
	json_end_array(w);
	if (json_finish(w) == 0 && out->len)
		out->data[--out->len] = 0;
}

static struct json_writer begin(struct buf *out)
{
	struct json_writer w = json_writer_to_buf(out);

	json_begin_array(&w);
	return w;
}

void incident_json_causes(const struct incident *i, struct buf *out)
{
	struct json_writer w = begin(out);

	for (int n = 0; n < i->cause_count; n++) {
		const struct incident_cause *c = &i->causes[n];

		json_begin_object(&w);
		JSON_PUT(&w, JSON_S("cause", cause_name(c->cause)),
			JSON_S("layer", cause_layer(c->cause)), JSON_U("ns", c->ns),
			JSON_U("calls", c->calls));
		if (c->culprit_pid || c->culprit[0])
			JSON_PUT(&w, JSON_U("culprit_pid", c->culprit_pid),
				JSON_S("culprit", c->culprit),
				JSON_R("culprit_share", c->culprit_share));
		json_end_object(&w);
	}
	finish(&w, out);
}

void incident_json_evidence(const struct incident *i, const char *node, struct buf *out)
{
	struct json_writer w = begin(out);

	for (int n = 0; n < i->evidence_count; n++) {
		json_put_string(&w, FORMATTED(320, "%s:%" PRIu64, node, i->evidence[n]));
	}
	finish(&w, out);
}

void incident_json_timeline(const struct incident *i, struct buf *out)
{
	struct json_writer w = begin(out);

	for (int n = 0; n < i->step_count; n++) {
		const struct incident_step *s = &i->timeline[n];

		json_begin_object(&w);
		JSON_PUT(&w, JSON_S("layer", s->layer), JSON_S("op", s->op),
			JSON_S("detail", s->detail));
		if (s->dur_ns)
			json_uint_member(&w, "dur_us", s->dur_ns / NS_PER_US);
		json_int_member(&w, "timestamp", s->time.ns);
		json_end_object(&w);
	}
	finish(&w, out);
}

void incident_json_fixes(const struct incident *i, struct buf *out)
{
	struct json_writer w = begin(out);

	for (int n = 0; n < i->fix_count; n++)
		json_put_string(&w, i->fixes[n]);
	finish(&w, out);
}
