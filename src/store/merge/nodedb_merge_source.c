/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_source.c - the file at hand: its nodes, its sessions, and whether its times were
 * moved by an earlier merge. */

#include "base/array.h"
#include "base/search.h"
#include "store/lock.h"
#include "store/merge/nodedb_merge_private.h"
#include "store/schema/event_column.h"

/* Events into the merged file.
 *
 * An event's id is node:seq, and its row number is made of both, so that the same event from two
 * files (a copy, rolled files that overlap) meets itself there: it is a duplicate if its content is
 * the same too. Two recordings of one node each count from 1: what has the number of another event
 * is put on the next shelf, seq + 10^11, which is told. Shelves are tried from the first on, so
 * that duplicates are found wherever they stand. */

#define HOLD         100000000000LL /* 10^11 */
#define HOLDS_MAX    128
#define REPORT_EVERY 65536
_Static_assert(HOLD *(HOLDS_MAX + 1) < 1LL << MERGED_SEQ_BITS, "shelves fit");

/* Where a column's value is: the node's comes first. */
#define AT(NAME) (1 + COL_##NAME)
enum { AT_NODE, AT_ROW = COL_COUNT, AT_COUNT };
STATIC_ASSERT(COL_NODE == COL_COUNT - 1);

struct copier {
	struct merge *m;
	struct column columns[TABLE_COLUMNS_MAX];
	sql_stmt *get, *put, *find;
	struct sql_value values[AT_COUNT];
	struct sql_value bound[AT_COUNT]; /* what the statement holds */
};

/* Most columns of an event are the last one's: not to bind them again is 5 % of the time. A text
 * lives as long as its row, except a node's name. */
static bool is_bound(const struct copier *c, int i)
{
	const struct sql_value *v = &c->values[i], *b = &c->bound[i];

	if (v->type != b->type)
		return false;
	if (v->type == SQL_INT)
		return v->i == b->i;
	return v->type == SQL_NULL || (i == AT_NODE && v->p == b->p);
}

/* One row written; sql_changes() says whether. */
static int write_row(struct copier *c, struct errinfo *reterr)
{
	int r = 0;

	for (int i = 0; r == 0 && i <= AT_ROW; i++) {
		if (is_bound(c, i))
			continue;
		r = sql_bind_at(c->put, i + 1, &c->values[i], reterr);
		c->bound[i] = c->values[i];
	}
	return r < 0 ? r : sql_step(c->put, reterr);
}

/* Published files stamp some rows with their end, and have the child of a fork in arg1. */
static bool correct_published(struct sql_value *v)
{
	int64_t source = v[AT(SOURCE)].i, op = v[AT(OP)].i;

	if (source == SOURCE_IO || source == SOURCE_NET ||
		(source == SOURCE_HOST && op == HOST_SCHED_SWITCH))
		v[AT(TIMESTAMP)].i -= v[AT(DURATION)].i;
	if (source == SOURCE_HOST && op == HOST_PROCESS_FORK && v[AT(ARG1)].i >= 0 &&
		v[AT(ARG1)].i <= UINT32_MAX)
		v[AT(PEER_PID)].i = v[AT(ARG1)].i;
	return v[AT(TIMESTAMP)].i > 0;
}

static bool in_32_bits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

/* What the columns' kinds do not say, and what an older schema says differently. */
static bool settle(struct copier *c)
{
	struct sql_value *v = c->values;
	const char *name;

	if (!v[AT(SOURCE)].i || !in_32_bits(v[AT(GPU)].i) || !in_32_bits(v[AT(RET)].i))
		return false;
	if (c->m->source.reader.kind == SCHEMA_PUBLISHED && !correct_published(v))
		return false;
	if (v[AT(COMM)].len == 0) {
		name = reader_name_of(&c->m->source.names, (uint32_t)v[AT(PID)].i);
		if (name)
			v[AT(COMM)] = SQL_S(name);
	}
	return true;
}

/* Whether the event with the row number that @v wants is the one in @v: 1, 0, or an error. */
static int is_same(struct copier *c, struct errinfo *reterr)
{
	static const int compared[] = {
		AT(TIMESTAMP), AT(PID), AT(TID), AT(SOURCE), AT(OP), AT(DURATION)};
	int r = sql_bind(c->find, &c->values[AT_ROW], 1, reterr);
	bool same = true;

	r = r ?: sql_step(c->find, reterr);
	if (r <= 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(compared); i++)
		same = same && sql_column_int(c->find, (int)i) == c->values[compared[i]].i;
	sql_reset(c->find);
	return same;
}

static int put_event(struct copier *c, const struct merge_node *node, struct errinfo *reterr)
{
	struct merge_report *report = &c->m->source.report;
	int64_t seq = c->values[AT(ID)].i, hold = 0;
	int r;

	if (seq < 1 || seq >= HOLD) { /* no number that an ingero gave */
		seq = (int64_t)++c->m->odd_ids;
		hold = HOLDS_MAX;
	}
	for (; hold <= HOLDS_MAX; hold++) {
		c->values[AT(ID)].i = seq + hold * HOLD;
		c->values[AT_ROW] = SQL_I(node->number << MERGED_SEQ_BITS | c->values[AT(ID)].i);
		r = write_row(c, reterr);
		if (r < 0)
			return r;
		if (sql_changes(c->m->out)) {
			report->events.copied++;
			report->renumbered += hold > 0;
			return 0;
		}
		r = is_same(c, reterr);
		if (r < 0)
			return r;
		if (r > 0) {
			report->events.duplicates++;
			return 0;
		}
	}
	return errinfo_set(reterr, -EBADMSG,
		"%s: more than %d recordings of node %s use the same ids: merge fewer",
		c->m->source.reader.path, HOLDS_MAX, node->name);
}

static int copy(struct copier *c, struct errinfo *reterr)
{
	const struct merge_options *w = c->m->options;
	struct merge_node *node;
	uint64_t rows = 0;
	int r = 0;

	while (r >= 0 && (r = sql_step(c->get, reterr)) > 0) {
		if (++rows % REPORT_EVERY == 0 && w->report &&
			!w->report(w->arg, c->m->source_index, rows))
			return errinfo_set(reterr, -EINTR, "stopped: nothing was written");
		r = merge_row(c->m, c->columns, COL_COUNT, c->get, c->values, &node, reterr);
		if (r <= 0)
			continue;
		if (settle(c))
			r = put_event(c, node, reterr);
		else
			c->m->source.report.skipped++;
	}
	return r;
}

int merge_events(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL, *put = NULL, *find = NULL;
	struct copier c = {.m = m};
	int r = 0;

	merge_columns(&node_tables[TABLE_EVENTS], c.columns);
	if (!m->source.is_merged) /* there a process id alone names nobody */
		r = reader_load_names(&m->source.reader, &m->source.names, reterr);
	r = r ?: merge_select(m, "events", c.columns, COL_COUNT, &get, reterr);
	r = r ?: merge_insert(m, "events", c.columns, COL_COUNT, ", row", 1, &put, reterr);
	r = r
		    ?: sql_prepare(m->out,
			       "SELECT timestamp, pid, tid, source, op, duration FROM events"
			       " WHERE row = ?1",
			       &find, reterr);
	if (r < 0)
		return r;
	c.get = get;
	c.put = put;
	c.find = find;
	r = copy(&c, reterr);
	m->source.report.skipped += m->source.content.skipped_rows;
	m->source.content.skipped_rows = 0;
	m->source.is_copy = m->source.is_copy || m->source.report.events.duplicates;
	return r;
}

#define SESSIONS_MAX 65536
#define SHIFT_MAX    (366LL * 24 * 3600 * (int64_t)NS_PER_S)

int merge_node(struct merge *m, const char *name, size_t len, struct merge_node **ret,
	struct errinfo *reterr)
{
	struct merge_node *n = m->last_node;

	if (n && n->len == len && !memcmp(n->name, name, len)) {
		*ret = n;
		return 0;
	}
	for (size_t i = 0; i < m->node_count; i++)
		if (m->nodes[i]->len == len && !memcmp(m->nodes[i]->name, name, len)) {
			*ret = m->last_node = m->nodes[i];
			return 0;
		}
	if (m->node_count == MERGE_NODES_MAX)
		return errinfo_set(
			reterr, -ENOBUFS, "more than %d nodes: merge fewer files", MERGE_NODES_MAX);
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	memcpy(n->name, name, len);
	n->len = len;
	m->nodes[m->node_count++] = n;
	n->number = (int64_t)m->node_count;
	*ret = m->last_node = n;
	return 0;
}

/* The nodes that the sessions name: their number, and the last one. */
static int session_nodes(
	struct merge *m, size_t *ret_count, struct merge_node **ret, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	char name[MERGE_NODE_LEN];
	int res = reader_query(&m->source.reader, &reader_nodes, &stmt, reterr);

	*ret_count = 0;
	while (res >= 0 && stmt && (res = sql_step(stmt, reterr)) > 0) {
		if (!reader_text(stmt, 0, name, sizeof(name)) || !name[0])
			continue;
		res = merge_node(m, name, strlen(name), ret, reterr);
		*ret_count += 1;
	}
	return res;
}

/* Whether the first event says its node. */
static int events_say(struct merge *m, struct errinfo *reterr)
{
	static const struct reader_column node[] = {{"node", "''"}, {NULL, NULL}};
	static const struct reader_query first = {
		.table = "events", .columns = node, .rest = " LIMIT 1"};
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	char name[MERGE_NODE_LEN] = "x";
	int res = reader_query(&m->source.reader, &first, &stmt, reterr);

	if (res == 0 && stmt)
		res = sql_step(stmt, reterr);
	if (res <= 0)
		return res < 0 ? res : 1;
	return reader_text(stmt, 0, name, sizeof(name)) && name[0];
}

static int find_nodes(struct merge *m, struct errinfo *reterr)
{
	struct merge_source *s = &m->source;
	const char *forced = m->options->force_node;
	struct merge_node *node = NULL;
	size_t count;
	int r;

	if (forced) {
		r = merge_node(m, forced, strlen(forced), &s->only, reterr);
		return r < 0 || !s->is_merged
			       ? r
			       : errinfo_set(reterr, -EINVAL,
					 "%s has several named nodes: remove --force-node",
					 s->reader.path);
	}
	r = session_nodes(m, &count, &node, reterr);
	if (r < 0)
		return r;
	s->only = count == 1 ? node : NULL;
	r = count ? 1 : events_say(m, reterr);
	if (r == 0)
		return errinfo_set(reterr, -EINVAL,
			"%s has no node name: merge it alone with --force-node NAME, then merge the result with the others",
			s->reader.path);
	return MIN(r, 0);
}

/* Times that an earlier --align moved are moved back: offsets are found anew. */
static int read_moves(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *stmt = NULL;
	int r;

	for (size_t i = 0; i < m->node_count; i++)
		m->nodes[i]->undo_ns = 0;
	if (!m->source.is_merged)
		return 0;
	r = sql_prepare(m->source.reader.sql,
		"SELECT node, offset_ns FROM node_clocks WHERE applied = 1", &stmt, reterr);
	while (r >= 0 && (r = sql_step(stmt, reterr)) > 0) {
		struct merge_node *n;
		char name[MERGE_NODE_LEN];
		int64_t offset;

		if (!sql_column_is_int(stmt, 1, &offset) || offset < -SHIFT_MAX ||
			offset > SHIFT_MAX || !reader_text(stmt, 0, name, sizeof(name))) {
			m->source.report.skipped++;
			continue;
		}
		r = merge_node(m, name, strlen(name), &n, reterr);
		if (r == 0)
			n->undo_ns = offset;
	}
	return r;
}

int merge_source_open(struct merge *m, size_t index, sql_db **ret_sql, struct sql_stamp *ret_stamp,
	struct errinfo *reterr)
{
	static const struct nodedb_filter all;
	struct merge_source *s = &m->source;
	const char *path = m->options->sources[index];
	int r = sql_open_read(path, store_lock_holder(path) != 0, ret_sql, ret_stamp, reterr);

	*s = (struct merge_source){.reader = {.sql = *ret_sql, .path = path, .filter = &all}};
	s->reader.content = &s->content;
	m->source_index = index;
	r = r ?: schema_identify(s->reader.sql, path, &s->reader.kind, s->report.schema, reterr);
	if (r == 0 && s->reader.kind == SCHEMA_EMPTY)
		r = errinfo_set(reterr, -EBADMSG, "%s is empty: do not merge it", path);
	r = r ?: schema_is_merged(s->reader.sql, reterr);
	if (r >= 0) {
		s->is_merged = r > 0;
		r = sql_exec(s->reader.sql, "BEGIN", reterr); /* one moment of a live file */
	}
	r = r ?: find_nodes(m, reterr);
	return r < 0 ? r : read_moves(m, reterr);
}

void merge_source_close(struct merge *m)
{
	free(m->source.sessions);
	reader_names_done(&m->source.names);
	m->source.sessions = NULL;
	m->source.session_count = m->source.session_room = 0;
}

static int add_session(struct merge *m, int64_t from, int64_t to, struct errinfo *reterr)
{
	struct merge_source *s = &m->source;
	int r;

	if (s->session_count == SESSIONS_MAX)
		return errinfo_set(reterr, -EBADMSG, "%s has more than %d sessions", s->reader.path,
			SESSIONS_MAX);
	r = ARRAY_RESERVE(s->sessions, s->session_room, s->session_count + 1, SESSIONS_MAX);
	if (r < 0)
		return r;
	s->sessions[s->session_count++] = (struct merge_session){from, to};
	return 0;
}

int merge_session_id(struct merge *m, int64_t from, int64_t *ret)
{
	struct merge_source *s = &m->source;
	size_t at = LOWER_BOUND(i, s->session_count, s->sessions[i].from < from);
	int r;

	if (at == s->session_count || s->sessions[at].from != from) {
		/* Rows of a session that has none itself stay together, apart from others'. */
		r = add_session(m, from, --m->orphans, NULL);
		if (r < 0)
			return r;
		memmove(&s->sessions[at + 1], &s->sessions[at],
			(s->session_count - 1 - at) * sizeof(*s->sessions));
		s->sessions[at] = (struct merge_session){from, m->orphans};
	}
	*ret = s->sessions[at].to;
	return 0;
}

/* The session's id in the output. The same session of another file gives it, and its end. */
static int put_session(struct merge *m, sql_stmt *put, sql_stmt *find, sql_stmt *end,
	struct sql_value *values, size_t count, struct errinfo *reterr)
{
	struct merge_tally *t = &m->source.report.others;
	int64_t id = values[count].i;
	int r = sql_put(put, values, count, reterr);

	if (r < 0)
		return r;
	if (sql_changes(m->out)) {
		t->copied++;
		return add_session(m, id, sql_last_id(m->out), reterr);
	}
	t->duplicates++;
	m->source.is_copy = true;
	r = sql_bind(find, values, 2, reterr);
	r = r ?: sql_step(find, reterr);
	if (r <= 0)
		return r;
	r = add_session(m, id, sql_column_int(find, 0), reterr);
	sql_reset(find);
	return r < 0 ? r : sql_put(end, values, 3, reterr);
}

ORDER(by_from, struct merge_session, ASCENDING(from))

int merge_sessions(struct merge *m, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *get = NULL, *put = NULL, *find = NULL, *end = NULL;
	struct sql_value values[TABLE_COLUMNS_MAX];
	struct column columns[TABLE_COLUMNS_MAX];
	size_t count = merge_columns(&node_tables[TABLE_SESSIONS], columns);
	struct merge_node *node;
	int r;

	columns[count] = (struct column){.name = "id", .kind = COLUMN_INT};
	r = merge_select(m, "sessions", columns, count + 1, &get, reterr);
	r = r ?: merge_insert(m, "sessions", columns, count, "", 0, &put, reterr);
	r = r
		    ?: sql_prepare(m->out,
			       "SELECT id FROM sessions WHERE node = ?1 AND started_at = ?2", &find,
			       reterr);
	r = r
		    ?: sql_prepare(m->out,
			       "UPDATE sessions SET stopped_at = max(stopped_at, ?3)"
			       " WHERE node = ?1 AND started_at = ?2",
			       &end, reterr);
	while (r >= 0 && (r = sql_step(get, reterr)) > 0) {
		r = merge_row(m, columns, count + 1, get, values, &node, reterr);
		if (r > 0)
			r = put_session(m, put, find, end, values, count, reterr);
	}
	SORT(m->source.sessions, m->source.session_count, by_from);
	return r;
}
