/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge_event.c - events into the merged file.
 *
 * An event's id is node:seq, and its row number is made of both, so that the same event from two
 * files (a copy, rolled files that overlap) meets itself there: it is a duplicate if its content is
 * the same too. Two recordings of one node each count from 1: what has the number of another event
 * is put on the next shelf, seq + 10^11, which is told. Shelves are tried from the first on, so
 * that duplicates are found wherever they stand. */
#include <errno.h>

#include "store/schema/event_column.h"
#include "store/merge/nodedb_merge_private.h"

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

	if (r == 0)
		r = sql_step(c->find, reterr);
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
	if (r == 0)
		r = merge_select(m, "events", c.columns, COL_COUNT, &get, reterr);
	if (r == 0)
		r = merge_insert(m, "events", c.columns, COL_COUNT, ", row", 1, &put, reterr);
	if (r == 0)
		r = sql_prepare(m->out,
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
