/* SPDX-License-Identifier: Apache-2.0 */
/* store_fixture.c - one store, driven by lines of JSON: what tests/integration/82-engines asks of every
 * engine in the same words.
 *
 *   store-fixture duckdb FOLDER RETENTION_NS
 *   store-fixture clickhouse CLUSTER DATABASE RETENTION_NS SETTLE_NS URL…
 *
 * A line is an object with "op"; the answer is a line with "err" (0 or a negative errno) and "text". */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cluster/answer/tool.h"
#include "cluster/store/store_clickhouse.h"
#include "cluster/store/store_duck.h"
#include "duck/duck_worker.h"

#define CLUSTERS_MAX 16

static struct store *store;

/* ---- rows ---- */

static enum store_table table_of(const char *name)
{
	enum store_table t = 0;

	while (t < TABLE_COUNT && strcmp(store_tables[t].name, name) != 0)
		t++;
	return t;
}

/* The columns in the table's order, whatever theirs is in the object. */
static void put_row(struct batch *b, const json_t *row)
{
	enum store_table t = table_of(json_string_value(json_array_get(row, 0)));
	const json_t *cells = json_array_get(row, 1);

	batch_row(b, t);
	for (int i = 0; i < store_tables[t].column_count; i++) {
		const json_t *v = json_object_get(cells, store_tables[t].columns[i].name);

		if (json_is_string(v))
			batch_text(b, i, json_string_value(v), json_string_length(v));
		else if (json_is_number(v) && store_tables[t].columns[i].type == COLUMN_REAL)
			batch_real(b, i, json_number_value(v));
		else if (json_is_integer(v))
			batch_int(b, i, json_integer_value(v));
	}
}

/* "rows": [[table, {column: value}], …], each "times" times, with "step_ns" between them. */
static int op_take(const json_t *q, json_t *answer _unused_, struct errinfo *e)
{
	struct batch b = {.bytes = BUF_INIT(48u << 20)};
	json_int_t times = json_integer_value(json_object_get(q, "times"));
	json_t *rows = json_object_get(q, "rows"), *row;
	size_t i;
	int r;

	for (json_int_t n = 0; n < MAX(times, (json_int_t)1); n++)
		json_array_foreach (rows, i, row) {
			const char *time =
				store_tables[table_of(json_string_value(json_array_get(row, 0)))]
					.columns[0]
					.name;
			json_t *cells = json_array_get(row, 1);
			json_int_t at = json_integer_value(json_object_get(cells, time));

			put_row(&b, row);
			if (times && at)
				json_object_set_new(cells, time,
					json_integer(at + json_integer_value(
								  json_object_get(q, "step_ns"))));
		}
	if (json_object_get(q, "damaged"))
		b.bytes.len--;
	r = b.bytes.err ? b.bytes.err
			: store_take(store,
				  (uint64_t)json_integer_value(json_object_get(q, "position")),
				  b.bytes.data, b.bytes.len, e);
	buf_done(&b.bytes);
	return r;
}

/* ---- questions ---- */

static struct store_scope scope_of(const json_t *q, const char *names[CLUSTERS_MAX])
{
	const json_t *clusters = json_object_get(q, "clusters");
	struct store_scope s = {
		.since_ns = json_integer_value(json_object_get(q, "since")),
		.until_ns = json_integer_value(json_object_get(q, "until")),
	};

	if (!json_is_array(clusters))
		return s;
	s.clusters = names;
	for (; s.cluster_count < json_array_size(clusters); s.cluster_count++)
		names[s.cluster_count] =
			json_string_value(json_array_get(clusters, s.cluster_count));
	return s;
}

static json_t *cell_json(const struct sql_table *t, const struct sql_cell *c)
{
	switch (c->type) {
	case SQL_INT: return json_integer(c->i);
	case SQL_REAL: return json_real(c->d);
	case SQL_TEXT: return json_stringn_nocheck(sql_table_bytes(t, c), c->len);
	default: return json_null();
	}
}

static void put_table(json_t *answer, const struct sql_table *t)
{
	json_t *names = json_array(), *rows = json_array();

	for (int i = 0; i < t->column_count; i++)
		json_array_append_new(names, json_string(sql_table_name(t, i)));
	for (size_t row = 0; row < t->row_count; row++) {
		json_t *cells = json_array();

		for (int i = 0; i < t->column_count; i++)
			json_array_append_new(cells, cell_json(t, sql_table_cell(t, row, i)));
		json_array_append_new(rows, cells);
	}
	json_object_set_new(answer, "columns", names);
	json_object_set_new(answer, "rows", rows);
	json_object_set_new(answer, "truncated", json_boolean(t->truncated));
}

static int ask(const json_t *q, json_t *answer, struct errinfo *e,
	int (*fn)(struct store *, const struct store_scope *, const char *,
		const struct store_limits *, struct sql_table *, struct errinfo *))
{
	_cleanup_(sql_table_done) struct sql_table t = {0};
	const char *names[CLUSTERS_MAX];
	struct store_scope scope = scope_of(q, names);
	struct store_limits limits = STORE_LIMITS;
	const json_t *rows = json_object_get(q, "rows_max"), *ms = json_object_get(q, "timeout_ms");
	int r;

	if (rows)
		limits.rows_max = (size_t)json_integer_value(rows);
	if (ms)
		limits.timeout_ns = (uint64_t)json_integer_value(ms) * NS_PER_MS;
	r = fn(store, &scope, json_string_value(json_object_get(q, "text")), &limits, &t, e);
	if (r == 0)
		put_table(answer, &t);
	return r;
}

static int op_select(const json_t *q, json_t *answer, struct errinfo *e)
{
	return ask(q, answer, e, store->ops->select);
}

static int op_sql(const json_t *q, json_t *answer, struct errinfo *e)
{
	return ask(q, answer, e, store->ops->sql);
}

/* One of the cluster's tools, or without a name the list of them. */
static int op_tool(const json_t *q, json_t *answer, struct errinfo *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1u << 20);
	const char *name = json_string_value(json_object_get(q, "name"));
	const struct tool *t = name ? tool_find(name) : NULL;
	struct tool_call c = {
		.store = store,
		.now_ns = json_integer_value(json_object_get(q, "now")),
		.arguments = json_object_get(q, "arguments"),
	};
	json_t *names = json_array(), *data = NULL;
	int r = 0;

	for (const struct tool *i = cluster_tools; i->name; i++)
		json_array_append_new(names, json_string(i->name));
	if (t)
		r = tool_run(t, &c, &data, &text, e);
	json_object_set_new(answer, "names", names);
	if (r == 0 && data)
		json_object_set_new(answer, "data", data);
	json_object_set_new(answer, "said", json_string(buf_str(&text)));
	return r;
}

/* ---- the rest ---- */

static int op_commit(const json_t *q _unused_, json_t *answer _unused_, struct errinfo *e)
{
	return store_commit(store, e);
}

static int op_seal(const json_t *q _unused_, json_t *answer _unused_, struct errinfo *e)
{
	return store->ops->seal(store, e);
}

static int op_upkeep(const json_t *q, json_t *answer _unused_, struct errinfo *e)
{
	return store->ops->upkeep(store, json_integer_value(json_object_get(q, "now")), e);
}

static int op_stats(const json_t *q _unused_, json_t *answer, struct errinfo *e _unused_)
{
	json_t *rows = json_object();
	struct store_stats s = {0};

	store->ops->stats(store, &s);
	for (int t = 0; t < TABLE_COUNT; t++)
		json_object_set_new(
			rows, store_tables[t].name, json_integer((json_int_t)s.rows[t]));
	json_object_set_new(answer, "rows", rows);
	json_object_set_new(answer, "ahead", json_integer((json_int_t)s.ahead_ns));
	json_object_set_new(answer, "visible", json_integer((json_int_t)s.visible));
	json_object_set_new(answer, "durable", json_integer((json_int_t)store_durable(store)));
	json_object_set_new(answer, "dropped", json_integer((json_int_t)s.dropped_rows));
	json_object_set_new(answer, "bytes", json_integer((json_int_t)s.bytes));
	json_object_set_new(answer, "fault", json_integer(s.fault));
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const json_t *q, json_t *answer, struct errinfo *e);
} ops[] = {
	{"take", op_take},
	{"commit", op_commit},
	{"seal", op_seal},
	{"upkeep", op_upkeep},
	{"select", op_select},
	{"sql", op_sql},
	{"stats", op_stats},
	{"tool", op_tool},
};

static void say(json_t *answer, int err, const struct errinfo *e)
{
	json_object_set_new(answer, "err", json_integer(err));
	json_object_set_new(answer, "text", json_string(err < 0 ? e->text : ""));
	json_dumpf(answer, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17));
	putchar('\n');
	fflush(stdout);
	json_decref(answer);
}

static void serve(void)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		json_t *q = json_loads(line, JSON_ALLOW_NUL, NULL), *answer = json_object();
		const char *name = json_string_value(json_object_get(q, "op"));
		struct errinfo e = {0};
		int r = -ENOSYS;

		for (size_t i = 0; name && i < ARRAY_SIZE(ops); i++)
			if (!strcmp(name, ops[i].name))
				r = ops[i].run(q, answer, &e);
		say(answer, r, &e);
		json_decref(q);
	}
}

static int open_clickhouse(int argc, char **argv, struct errinfo *e)
{
	struct store_clickhouse_settings s = {
		.cluster = *argv[2] ? argv[2] : NULL,
		.database = argv[3],
		.retention_ns = strtoull(argv[4], NULL, 10),
		.settle_ns = strtoull(argv[5], NULL, 10),
		.shards = (const char *const *)argv + 6,
		.shard_count = (size_t)argc - 6,
		.user = getenv("STORE_USER"),
		.password = getenv("STORE_PASSWORD"),
		.reader = getenv("STORE_READER"),
		.reader_password = getenv("STORE_READER_PASSWORD"),
	};

	return store_clickhouse_open(&s, &store, e);
}

int main(int argc, char **argv)
{
	struct errinfo e = {0};
	int r = -EINVAL;

	if (duck_worker_is_meant(argc, argv))
		duck_worker_main();
	if (argc == 4 && !strcmp(argv[1], "duckdb"))
		r = store_duck_open(
			&(struct store_duck_settings){
				.folder = argv[2],
				.threads = 1,
				.retention_ns = strtoull(argv[3], NULL, 10),
			},
			&store, &e);
	else if (argc > 6 && !strcmp(argv[1], "clickhouse"))
		r = open_clickhouse(argc, argv, &e);
	say(json_object(), r, &e);
	if (r < 0)
		return 1;
	serve();
	store_free(store);
	return 0;
}
