/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_chain.c - stored verdicts: incidents, and the published causal_chains.
 *
 * Ids begin with the node; those of old files get it. What has the id of another verdict (another
 * recording of the node) is called id#2 and so on. The same incident seen later replaces itself: it
 * has more calls. */
#include <errno.h>
#include <stdio.h>

#include "store/schema/incident_table.h"
#include "store/merge/nodedb_merge_private.h"

#define TEXT_MOST  4096
#define JSON_MOST  (64 << 10)
#define ID_MOST    384
#define NAMES_MOST 64 /* of one id */

enum {
	COL_NODE,
	COL_ID,
	COL_DETECTED,
	COL_SAME
}; /* what both tables begin with; of a chain COL_SAME is severity */

static struct column column_of(const struct incident_field *f)
{
	struct column c = {.name = f->column, .may_lack = f->is_added};

	switch (f->form) {
	case INCIDENT_FORM_TIME: c.kind = COLUMN_TIME_OR_0; break;
	case INCIDENT_FORM_I32: c.kind = COLUMN_INT; break;
	case INCIDENT_FORM_U32:
		c.kind = COLUMN_COUNT;
		c.max = UINT32_MAX;
		break;
	case INCIDENT_FORM_U64:
	case INCIDENT_FORM_COUNT:
	case INCIDENT_FORM_SOURCE:
	case INCIDENT_FORM_OP: c.kind = COLUMN_COUNT; break;
	case INCIDENT_FORM_REAL:
	case INCIDENT_FORM_SHARE: c.kind = COLUMN_REAL; break;
	case INCIDENT_FORM_LIST:
		c.kind = COLUMN_JSON;
		c.max = JSON_MOST;
		break;
	case INCIDENT_FORM_TEXT:
	case INCIDENT_FORM_SEVERITY:
	case INCIDENT_FORM_PROBLEM:
	case INCIDENT_FORM_UNIT:
	case INCIDENT_FORM_GIVEN:
		c.kind = COLUMN_TEXT;
		c.max = f == &incident_fields[INCIDENT_F_COMM] ? COMM_LEN - 1 : TEXT_MOST;
		break;
	}
	c.otherwise = f->is_added ? "NULL" : c.kind < COLUMN_TEXT ? "0" : "''";
	return c;
}

/* Those that both tables begin with, then the others in their order. */
static size_t incident_columns(struct column ret[TABLE_COLUMNS_MAX])
{
	size_t count = COL_SAME + 1;

	STATIC_ASSERT(INCIDENT_FIELD_COUNT <= TABLE_COLUMNS_MAX);
	merge_columns(&node_tables[TABLE_CHAINS], ret);
	ret[COL_SAME] = column_of(&incident_fields[INCIDENT_F_FIRST]);
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++)
		if (incident_fields[n].column && n != INCIDENT_F_NODE && n != INCIDENT_F_ID &&
			n != INCIDENT_F_DETECTED && n != INCIDENT_F_FIRST)
			ret[count++] = column_of(&incident_fields[n]);
	return count;
}

/* The row of an incident that was seen until later, which has more calls. */
static void put_later(struct buf *sql, const struct column *columns, size_t count)
{
	const char *comma = "";
	size_t calls = 0;

	buf_puts(sql, "UPDATE incidents SET ");
	for (size_t c = COL_SAME + 1; c < count; c++) {
		const struct incident_field *f = incident_field_of_column(columns[c].name);

		if (f == &incident_fields[INCIDENT_F_CALLS])
			calls = c;
		if (f->renew == INCIDENT_KEEP)
			continue;
		buf_printf(sql, "%s%s = ?%zu", comma, f->column, c + 1);
		comma = ", ";
	}
	buf_printf(sql, " WHERE id = ?%d AND calls < ?%zu", COL_ID + 1, calls + 1);
}

struct copier {
	struct merge *m;
	const struct column *columns;
	size_t count;
	sql_stmt *put, *find, *later;
	struct merge_tally *tally;
};

static bool has_prefix(const struct sql_value *id, const struct merge_node *n)
{
	const char *text = id->p;

	return id->len > n->len && !memcmp(text, n->name, n->len) && text[n->len] == ':';
}

static int put_verdict(struct copier *c, struct sql_value *v, const struct merge_node *node,
	struct errinfo *reterr)
{
	bool named = !node->len || has_prefix(&v[COL_ID], node);
	char base[ID_MOST], id[ID_MOST + 8];
	int r;

	snprintf(base, sizeof(base), "%s%s%.*s", named ? "" : node->name, named ? "" : ":",
		(int)v[COL_ID].len, (const char *)v[COL_ID].p);
	for (int n = 1; n <= NAMES_MOST; n++) {
		snprintf(id, sizeof(id), n > 1 ? "%s#%d" : "%s", base, n);
		v[COL_ID] = SQL_S(id);
		r = sql_put(c->put, v, c->count, reterr);
		if (r < 0)
			return r;
		if (sql_changes(c->m->out)) {
			c->tally->copied++;
			return 0;
		}
		/* The same one began, or was found, at the same moment. */
		r = SQL_BIND(c->find, reterr, v[COL_ID], v[COL_DETECTED], v[COL_SAME]);
		if (r == 0)
			r = sql_step(c->find, reterr);
		if (r > 0) {
			c->tally->duplicates++;
			sql_reset(c->find);
			return c->later ? sql_put(c->later, v, c->count, reterr) : 0;
		}
		if (r < 0)
			return r;
	}
	c->m->source.report.skipped++;
	return 0;
}

static int copy(struct copier *c, const char *table, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL, *put = NULL;
	struct sql_value values[TABLE_COLUMNS_MAX];
	struct merge_node *node;
	int r = merge_select(c->m, table, c->columns, c->count, &get, reterr);

	if (r < 0 || !get)
		return r;
	r = merge_insert(c->m, table, c->columns, c->count, "", 0, &put, reterr);
	c->put = put;
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(c->m, c->columns, c->count, get, values, &node, reterr);
		if (r > 0)
			r = put_verdict(c, values, node, reterr);
	}
	return r;
}

int merge_chains(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *find = NULL;
	struct column columns[TABLE_COLUMNS_MAX];
	struct copier c = {.m = m,
		.columns = columns,
		.count = merge_columns(&node_tables[TABLE_CHAINS], columns),
		.tally = &m->source.report.chains};
	int r = sql_prepare(m->out,
		"SELECT 1 FROM causal_chains WHERE id = ?1 AND detected_at = ?2 AND severity = ?3",
		&find, reterr);

	c.find = find;
	return r < 0 ? r : copy(&c, "causal_chains", reterr);
}

int merge_incidents(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *find = NULL, *later = NULL;
	_cleanup_buf_ struct buf sql = BUF_INIT(INCIDENT_TABLE_TEXT);
	struct column columns[TABLE_COLUMNS_MAX];
	struct copier c = {.m = m,
		.columns = columns,
		.count = incident_columns(columns),
		.tally = &m->source.report.others};
	int r = sql_prepare(m->out,
		"SELECT 1 FROM incidents WHERE id = ?1 AND (detected_at = ?2 OR first_seen = ?3)",
		&find, reterr);

	put_later(&sql, columns, c.count);
	if (r == 0)
		r = sql.err ? sql.err : sql_prepare(m->out, buf_str(&sql), &later, reterr);
	c.find = find;
	c.later = later;
	return r < 0 ? r : copy(&c, "incidents", reterr);
}
