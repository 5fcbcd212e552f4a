/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_event.c - see fanout.h. A row that lacks what every event has, or holds numbers that
 * cannot be, is left out and counted: nodes are strangers. */
#include "fanout/fanout.h"

#include "base/search.h"

#define DURATION_MAX_NS (366LL * 24 * 3600 * (int64_t)NS_PER_S) /* a year */
#define NAMES_MAX       4096

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

/* ---- columns ---- */

enum column {
	START,
	DURATION,
	PID,
	TID,
	SOURCE,
	OP,
	NEEDED, /* those above must be there */
	GPU = NEEDED,
	ARG0,
	ARG1,
	RET,
	STACK,
	CGROUP,
	FLAGS,
	WEIGHT,
	STREAM,
	WAIT,
	PEER_PID,
	DEV,
	CPU,
	SEQ,
	NUMBERS, /* texts and ranks follow */
	RANK = NUMBERS,
	LOCAL_RANK,
	WORLD_SIZE,
	NODE,
	COMM,
	PEER_COMM,
	COLUMNS
};

static const struct {
	const char *name;
	int64_t min, max, other; /* of numbers; other: if the column is not there */
} columns[COLUMNS] = {
	[START] = {"start_ns", 1, WALL_NS_MAX, 0},
	[DURATION] = {"duration", 0, DURATION_MAX_NS, 0},
	[PID] = {"pid", 0, UINT32_MAX, 0},
	[TID] = {"tid", 0, UINT32_MAX, 0},
	[SOURCE] = {"source", 1, WIRE_SOURCE_MAX - 1, 0},
	[OP] = {"op", 0, WIRE_OP_MAX - 1, 0},
	[GPU] = {"gpu_id", INT32_MIN, INT32_MAX, 0},
	[ARG0] = {"arg0", INT64_MIN, INT64_MAX, 0},
	[ARG1] = {"arg1", INT64_MIN, INT64_MAX, 0},
	[RET] = {"ret_code", INT32_MIN, INT32_MAX, 0},
	[STACK] = {"stack_hash", INT64_MIN, INT64_MAX, 0},
	[CGROUP] = {"cgroup_id", INT64_MIN, INT64_MAX, 0},
	[FLAGS] = {"flags", 0, UINT16_MAX, 0},
	[WEIGHT] = {"weight", 0, UINT32_MAX, 1},
	[STREAM] = {"stream", INT64_MIN, INT64_MAX, 0},
	[WAIT] = {"wait_ns", INT64_MIN, INT64_MAX, 0},
	[PEER_PID] = {"peer_pid", 0, UINT32_MAX, 0},
	[DEV] = {"dev", 0, UINT32_MAX, 0},
	[CPU] = {"cpu", 0, UINT32_MAX, 0},
	[SEQ] = {"seq", 0, INT64_MAX, 0},
	[RANK] = {"rank", 0, INT32_MAX, 0},
	[LOCAL_RANK] = {"local_rank", 0, INT32_MAX, 0},
	[WORLD_SIZE] = {"world_size", 0, INT32_MAX, 0},
	[NODE] = {"node", 0, 0, 0},
	[COMM] = {"comm", 0, 0, 0},
	[PEER_COMM] = {"peer_comm", 0, 0, 0},
};

static int find_columns(const struct sql_table *t, int at[COLUMNS])
{
	for (int c = 0; c < COLUMNS; c++) {
		at[c] = -1;
		for (int i = 0; i < t->column_count && at[c] < 0; i++)
			if (!strcmp(sql_table_name(t, i), columns[c].name))
				at[c] = i;
		if (at[c] < 0 && c < NEEDED)
			return -EPROTO;
	}
	return 0;
}

/* ---- rows ---- */

static bool is_within(const struct sql_cell *c, int column)
{
	return c->type == SQL_INT && c->i >= columns[column].min && c->i <= columns[column].max;
}

static void copy_text(const struct sql_table *t, const struct sql_cell *c, char *out, size_t size)
{
	if (c->type == SQL_TEXT)
		snprintf(out, size, "%s", sql_table_bytes(t, c));
}

static bool read_numbers(
	const struct sql_table *t, size_t row, const int at[COLUMNS], int64_t values[NUMBERS])
{
	for (int c = 0; c < NUMBERS; c++) {
		if (at[c] < 0) {
			values[c] = columns[c].other;
			continue;
		}
		if (!is_within(sql_table_cell(t, row, at[c]), c))
			return false;
		values[c] = sql_table_cell(t, row, at[c])->i;
	}
	return true;
}

/* NULL is no rank. */
static struct placement read_place(const struct sql_table *t, size_t row, const int at[COLUMNS])
{
	struct placement p = {0};
	int32_t *const values[] = {&p.rank, &p.local_rank, &p.world_size};

	for (int i = 0; i < 3; i++) {
		const struct sql_cell *c =
			at[RANK + i] < 0 ? NULL : sql_table_cell(t, row, at[RANK + i]);

		if (!c || !is_within(c, RANK + i))
			continue;
		*values[i] = (int32_t)c->i;
		p.known |= 1u << i;
	}
	return p;
}
STATIC_ASSERT(PLACEMENT_RANK == 1 && PLACEMENT_LOCAL_RANK == 2 && PLACEMENT_WORLD_SIZE == 4);

static bool read_row(const struct sql_table *t, size_t row, const int at[COLUMNS], struct event *e)
{
	int64_t v[NUMBERS];

	if (!read_numbers(t, row, at, v))
		return false;
	*e = (struct event){
		.start.ns = v[START],
		.dur_ns = (uint64_t)v[DURATION],
		.seq = (uint64_t)v[SEQ],
		.pid = (uint32_t)v[PID],
		.tid = (uint32_t)v[TID],
		.source = (uint8_t)v[SOURCE],
		.op = (uint16_t)v[OP],
		.flags = (uint16_t)v[FLAGS],
		.cpu = (uint32_t)v[CPU],
		.weight = (uint32_t)v[WEIGHT],
		.ret = (int32_t)v[RET],
		.device = (int32_t)v[GPU],
		.arg0 = (uint64_t)v[ARG0],
		.arg1 = (uint64_t)v[ARG1],
		.stream = (uint64_t)v[STREAM],
		.cgroup_id = (uint64_t)v[CGROUP],
		.stack_hash = (uint64_t)v[STACK],
		.wait_ns = (uint64_t)v[WAIT],
		.peer_pid = (uint32_t)v[PEER_PID],
		.dev = (uint32_t)v[DEV],
		.place = read_place(t, row, at),
	};
	if (at[COMM] >= 0)
		copy_text(t, sql_table_cell(t, row, at[COMM]), e->comm, sizeof(e->comm));
	if (at[PEER_COMM] >= 0)
		copy_text(t, sql_table_cell(t, row, at[PEER_COMM]), e->peer_comm,
			sizeof(e->peer_comm));
	return true;
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

static const char *name_of(
	const struct sql_table *t, size_t row, const int at[COLUMNS], const char *other)
{
	const struct sql_cell *c = at[NODE] < 0 ? NULL : sql_table_cell(t, row, at[NODE]);

	return c && c->type == SQL_TEXT && c->len ? sql_table_bytes(t, c) : other;
}

int fanout_event_read(const struct sql_table *t, const char *name, struct fanout_events *l)
{
	int at[COLUMNS], r = find_columns(t, at);
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

		if (!read_row(t, row, at, &e->event)) {
			l->skipped++;
			continue;
		}
		r = find_name(l, name_of(t, row, at, name), &node);
		if (r < 0)
			return r;
		e->node = node;
		l->count++;
	}
	return 0;
}

void fanout_event_sort(struct fanout_events *l)
{
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), by_start);
}
