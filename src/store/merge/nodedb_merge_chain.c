/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_chain.c - stored verdicts: incidents, and the published causal_chains.
 *
 * Ids begin with the node; those of old files get it. What has the id of another verdict (another
 * recording of the node) is called id#2 and so on. The same incident seen later replaces itself: it
 * has more calls. */

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
		r = r ?: sql_step(c->find, reterr);
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
	r = r ?: sql.err ? sql.err : sql_prepare(m->out, buf_str(&sql), &later, reterr);
	c.find = find;
	c.later = later;
	return r < 0 ? r : copy(&c, "incidents", reterr);
}

/* call stacks, each hash once. A hash whose content differs (names were
 * found on one node and not on the other) keeps the one with more names. Python frames of published
 * files get the place that ours have. */

enum { STACK_COL_NODE, COL_HASH, COL_IPS, COL_FRAMES, COL_STOP, COL_COUNT };

STATIC_ASSERT(STACK_JSON_MAX == 64 << 10); /* as in tables.c */

struct stack_copier {
	struct merge *m;
	sql_stmt *put, *find, *replace;
	struct buf frames, stop;
};

static struct stack_row row_of(const struct sql_value *v)
{
	return (struct stack_row){.hash = (uint64_t)v[COL_HASH].i,
		.ips = v[COL_IPS].p,
		.ips_len = v[COL_IPS].len,
		.frames = v[COL_FRAMES].p,
		.frames_len = v[COL_FRAMES].len,
		.stop = v[COL_STOP].p,
		.stop_len = v[COL_STOP].len};
}

/* Checks the stack; of a published file puts its frames in order. 1, 0 if it makes no sense. */
static int settle(struct stack_copier *c, struct sql_value *v)
{
	struct stack_row row = row_of(v);
	_cleanup_free_ struct stack *s = NULL;
	int r = stack_json_read(&row, &s);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (c->m->source.reader.kind != SCHEMA_PUBLISHED || v[COL_FRAMES].len == 0)
		return 1;
	reader_stack_order(s);
	buf_clear(&c->frames);
	buf_clear(&c->stop);
	stack_json_frames(s, &c->frames, &c->stop);
	if (c->frames.err || c->stop.err)
		return c->frames.err ? c->frames.err : c->stop.err;
	v[COL_FRAMES] = SQL_S(buf_str(&c->frames));
	v[COL_STOP] = SQL_S(buf_str(&c->stop));
	return 1;
}

/* How many frames have names. */
static int names_in(const struct stack_row *row, size_t *ret)
{
	_cleanup_free_ struct stack *s = NULL;
	int r = stack_json_read(row, &s);

	*ret = 0;
	for (size_t i = 0; r == 0 && i < s->count; i++)
		*ret += s->frames[i].symbol || s->frames[i].py_func;
	return r == -ENOMEM ? r : 0;
}

static bool is_equal(sql_stmt *stmt, int column, const struct sql_value *v)
{
	size_t len;
	const char *text = sql_column_text(stmt, column, &len);

	return len == v->len && !memcmp(text, v->p, len);
}

/* The hash is there: the same stack, or one of the two is better. */
static int compare(struct stack_copier *c, const struct sql_value *v, struct errinfo *reterr)
{
	struct stack_row here = {0}, mine = row_of(v);
	size_t old_names, names;
	int r = sql_bind(c->find, &v[COL_HASH], 1, reterr);

	c->m->source.report.stacks.duplicates++;
	r = r ?: sql_step(c->find, reterr);
	if (r <= 0)
		return r;
	if (is_equal(c->find, 0, &v[COL_IPS]) && is_equal(c->find, 1, &v[COL_FRAMES])) {
		sql_reset(c->find);
		return 0;
	}
	c->m->source.report.differing_stacks++;
	here.hash = mine.hash;
	here.ips = sql_column_text(c->find, 0, &here.ips_len);
	here.frames = sql_column_text(c->find, 1, &here.frames_len);
	here.stop = sql_column_text(c->find, 2, &here.stop_len);
	r = names_in(&here, &old_names);
	r = r ?: names_in(&mine, &names);
	sql_reset(c->find);
	return r < 0 || names <= old_names ? r : sql_put(c->replace, v + COL_HASH, 4, reterr);
}

static int put_stack(struct stack_copier *c, struct sql_value *v, struct errinfo *reterr)
{
	int r = settle(c, v);

	if (r == 0)
		c->m->source.report.skipped++;
	if (r <= 0)
		return r;
	r = sql_put(c->put, v + COL_HASH, 4, reterr);
	if (r < 0)
		return r;
	if (!sql_changes(c->m->out))
		return compare(c, v, reterr);
	c->m->source.report.stacks.copied++;
	return 0;
}

static int prepare(struct stack_copier *c, sql_db *out, struct errinfo *reterr)
{
	int r = sql_prepare(out,
		"INSERT OR IGNORE INTO stack_traces (hash, ips, frames, stop) VALUES (?1,?2,?3,?4)",
		&c->put, reterr);

	r = r
		    ?: sql_prepare(out,
			       "SELECT ips, frames, stop FROM stack_traces WHERE hash = ?1",
			       &c->find, reterr);
	return r
		       ?: sql_prepare(out,
				  "UPDATE stack_traces SET ips = ?2, frames = ?3, stop = ?4 WHERE hash = ?1",
				  &c->replace, reterr);
}

static void copier_done(struct stack_copier *c)
{
	sql_finalize(c->put);
	sql_finalize(c->find);
	sql_finalize(c->replace);
	buf_done(&c->frames);
	buf_done(&c->stop);
}

int merge_stacks(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(copier_done) struct stack_copier c = {
		.m = m, .frames = BUF_INIT(STACK_JSON_MAX), .stop = BUF_INIT(4096)};
	_cleanup_(sql_finalizep) sql_stmt *get = NULL;
	struct sql_value values[COL_COUNT];
	struct column columns[TABLE_COLUMNS_MAX];
	size_t count = merge_columns(&node_tables[TABLE_STACKS], columns);
	uint64_t unplaced = m->source.report.unplaced;
	struct merge_node *node;
	int r = merge_select(m, "stack_traces", columns, count, &get, reterr);

	if (r < 0 || !get)
		return r;
	r = prepare(&c, m->out, reterr);
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(m, columns, count, get, values, &node, reterr);
		if (r > 0)
			r = put_stack(&c, values, reterr);
	}
	m->source.report.unplaced = unplaced; /* a stack is nobody's */
	return r;
}
