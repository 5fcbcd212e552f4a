/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_event.c - see fanout.h. A row that lacks what every event has, or holds numbers that
 * cannot be, is left out and counted: nodes are strangers. */
#include "fanout/fanout.h"

#include "base/search.h"
#include "store/schema/event_column.h"
#include "store/schema/table.h"

#define NAMES_MAX 4096

/* Files of the published agent (schema below 0.11) stamp block I/O, socket and sched_switch rows
 * with their end. */
void fanout_event_sql(struct buf *b, const struct fanout_event_request *w)
{
	const char *word = "WHERE";

	buf_printf(b,
		"SELECT CASE WHEN (SELECT CAST(substr(value, 3) AS INTEGER) FROM schema_info "
		"WHERE key = 'version') < 11 AND (source IN (%d, %d) OR (source = %d AND op = %d)) "
		"THEN timestamp - duration ELSE timestamp END AS start_ns, * FROM events",
		SOURCE_IO, SOURCE_NET, SOURCE_HOST, HOST_SCHED_SWITCH);
	if (w->since_ns) {
		buf_printf(b, " %s timestamp >= (SELECT max(timestamp) FROM events) - %llu", word,
			(unsigned long long)w->since_ns);
		word = "AND";
	}
	if (w->pid_count)
		buf_printf(b, " %s pid IN (", word);
	for (size_t i = 0; i < w->pid_count; i++)
		buf_printf(b, "%s%u", i ? ", " : "", w->pids[i]);
	buf_puts(b, w->pid_count ? ")" : "");
	buf_puts(b, " ORDER BY timestamp DESC");
}

void fanout_events_done(struct fanout_events *l)
{
	for (size_t i = 0; i < l->name_count; i++)
		free(l->names[i]);
	free(l->names);
	free(l->items);
	*l = (struct fanout_events){0};
}

/* ---- rows: columns of `events`, found by name; the start comes under one of its own ---- */

static const struct table *const events = &node_tables[TABLE_EVENTS];

static int find_columns(const struct sql_table *t, int at[COL_COUNT])
{
	for (int c = 0; c < COL_COUNT; c++) {
		const char *name = c == COL_TIMESTAMP ? "start_ns" : events->columns[c].name;

		at[c] = -1;
		for (int i = 0; i < t->column_count && at[c] < 0; i++)
			if (!strcmp(sql_table_name(t, i), name))
				at[c] = i;
		if (at[c] < 0 && !events->columns[c].otherwise)
			return -EPROTO;
	}
	return 0;
}

static struct sql_value value_of(
	const struct sql_table *t, size_t row, int at, const struct column *c)
{
	const struct sql_cell *cell = at < 0 ? NULL : sql_table_cell(t, row, at);

	if (c->kind == COLUMN_TEXT || c->kind == COLUMN_NODE)
		return cell && cell->type == SQL_TEXT ? SQL_SN(sql_table_bytes(t, cell), cell->len)
						      : SQL_S("");
	if (cell)
		return (struct sql_value){.type = cell->type, .i = cell->i};
	return c->may_lack ? SQL_NOTHING : SQL_I(atoi(c->otherwise));
}

static bool read_row(const struct sql_table *t, size_t row, const int at[COL_COUNT],
	struct event *e, const char **ret_node)
{
	struct sql_value v[COL_COUNT];

	for (int c = 0; c < COL_COUNT; c++)
		v[c] = value_of(t, row, at[c], &events->columns[c]);
	*e = (struct event){0};
	if (!table_read(events, v, e) || !e->source || e->start.ns < 1 ||
		e->start.ns > WALL_NS_MAX || v[COL_ID].type != SQL_INT || v[COL_ID].i < 0)
		return false;
	e->seq = (uint64_t)v[COL_ID].i;
	*ret_node = v[COL_NODE].p;
	return table_copy_text(&v[COL_PEER_COMM], e->peer_comm, sizeof(e->peer_comm));
}

/* ---- nodes ---- */

/* The index of @name; *ret comes in as that of the row before, which most rows share. */
static int find_name(struct fanout_events *l, const char *name, size_t *ret)
{
	char **p;

	if (*ret < l->name_count && !strcmp(l->names[*ret], name))
		return 0;
	for (size_t i = 0; i < l->name_count; i++)
		if (!strcmp(l->names[i], name)) {
			*ret = i;
			return 0;
		}
	if (l->name_count == NAMES_MAX)
		return -EPROTO;
	p = realloc(l->names, (l->name_count + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	l->names = p;
	p[l->name_count] = strdup(name);
	if (!p[l->name_count])
		return -ENOMEM;
	*ret = l->name_count++;
	return 0;
}

ORDER(by_start, struct fanout_event,
	ASCENDING(event.start.ns) ?: ASCENDING(node) ?: ASCENDING(event.seq))

int fanout_event_read(const struct sql_table *t, const char *name, struct fanout_events *l)
{
	int at[COL_COUNT], r = find_columns(t, at);
	struct fanout_event *p;
	size_t node = 0;

	if (r < 0)
		return r;
	p = realloc(l->items, (l->count + t->row_count + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	l->items = p;
	for (size_t row = 0; row < t->row_count; row++) {
		struct fanout_event *e = &l->items[l->count];
		const char *own;

		if (!read_row(t, row, at, &e->event, &own)) {
			l->skipped++;
			continue;
		}
		r = find_name(l, own[0] ? own : name, &node);
		if (r < 0)
			return r;
		e->node = node;
		l->count++;
	}
	return 0;
}

void fanout_event_sort(struct fanout_events *l)
{
	SORT(l->items, l->count, by_start);
}
