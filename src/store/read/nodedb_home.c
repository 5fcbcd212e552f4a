/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_home.c - where the processes of a store live: container, pod and cgroup, by pid. Of a pid
 * that two processes had in turn the later one counts. */
#include <ctype.h>
#include <strings.h>

#include "base/search.h"
#include "base/array.h"
#include "store/read/nodedb_reader.h"

static bool read_home(sql_stmt *stmt, void *arg, void *row)
{
	struct process_home *h = row;
	char path[TARGET_PATH_MAX], command[TARGET_CMDLINE_MAX];
	int64_t pid = sql_column_int(stmt, 0), rank, cpus;
	size_t len;

	*h = (struct process_home){0};
	if (sql_column_type(stmt, 0) != SQL_INT || pid <= 0 || pid > UINT32_MAX ||
		!reader_text(stmt, 1, h->container_id, sizeof(h->container_id)) ||
		!reader_text(stmt, 2, h->pod, sizeof(h->pod)) ||
		!reader_text(stmt, 3, path, sizeof(path)) ||
		!reader_text(stmt, 5, h->comm, sizeof(h->comm)) ||
		!reader_text(stmt, 6, h->script, sizeof(h->script)) ||
		!reader_text(stmt, 7, command, sizeof(command)) ||
		!reader_text(stmt, 9, h->visible_gpus, sizeof(h->visible_gpus)))
		return false;
	if (!h->script[0]) /* of a file from before it was kept */
		script_of(command, strlen(command), h->script);
	h->cpus = sql_column_is_int(stmt, 8, &cpus) && cpus > 0 && cpus <= UINT16_MAX
			  ? (uint32_t)cpus
			  : 0;
	h->pid = (uint32_t)pid;
	h->rank = sql_column_is_int(stmt, 4, &rank) && rank >= 0 && rank <= INT32_MAX
			  ? (int32_t)rank
			  : -1;
	len = strlen(path);
	memcpy(h->cgroup_path,
		path + (len < sizeof(h->cgroup_path) ? 0 : len - sizeof(h->cgroup_path) + 1),
		MIN(len + 1, sizeof(h->cgroup_path)));
	return true;
}

int reader_load_homes(struct reader *r, struct errinfo *reterr)
{
	static const struct reader_column columns[] = {{"pid", NULL}, {"container_id", "''"},
		{"pod", "''"}, {"cgroup_path", "''"}, {"rank", "NULL"}, {"comm", "''"},
		{"script", "''"}, {"cmdline", "''"}, {"cpus", "NULL"}, {"visible_gpus", "''"},
		{NULL, NULL}};
	struct nodedb_content *c = r->content;
	size_t kept = 0;
	int res = r->kind != SCHEMA_OURS
			  ? 0
			  : reader_load(r,
				    &(struct reader_query){.table = "processes",
					    .columns = columns,
					    .rest = " ORDER BY pid, last_seen"},
				    &(struct reader_rows){READER_INTO(c->homes, c->home_count),
					    .max = NODEDB_HOMES_MAX, .read = read_home,
					    .skipped = &c->skipped_rows},
				    reterr);

	for (size_t i = 0; i < c->home_count; i++) {
		kept -= kept && c->homes[kept - 1].pid == c->homes[i].pid;
		c->homes[kept++] = c->homes[i];
	}
	c->home_count = kept;
	return res;
}

/* ---- which kernels the processes of a recording launched, and how often ---- */

#define KERNELS_MAX 65536
#define NAMES_BYTES (16u << 20)

static bool read_kernel(sql_stmt *stmt, void *names, void *row)
{
	char name[KERNEL_NAME_MAX];
	bool is_named = reader_text(stmt, 4, name, sizeof(name)) && name[0];

	*(struct kernel_use *)row = (struct kernel_use){.pid = (uint32_t)sql_column_int(stmt, 0),
		.function = (uint64_t)sql_column_int(stmt, 1),
		.since.ns = sql_column_int(stmt, 2),
		.launches = (uint64_t)MAX(sql_column_int(stmt, 3), INT64_C(0)),
		.first.ns = sql_column_int(stmt, 5),
		.name = is_named ? intern(names, name) : NULL};
	return true;
}

/* The order is that of numbers without a sign. */
ORDER(by_function, struct kernel_use, ASCENDING(pid) ?: ASCENDING(function) ?: ASCENDING(since.ns))

int reader_load_kernels(struct reader *r, struct errinfo *reterr)
{
	static const struct reader_column columns[] = {{"pid", NULL}, {"function", NULL},
		{"since", NULL}, {"launches", NULL},
		{"", "CASE origin WHEN 'unknown' THEN '' ELSE name END"}, {"first_launch", "0"},
		{NULL, NULL}};
	struct nodedb_content *c = r->content;
	int res;

	if (!r->filter->kernels)
		return 0;
	c->kernel_names = INTERN_INIT(NAMES_BYTES);
	res = reader_load(r,
		&(struct reader_query){.table = "kernels", .columns = columns, .by.pid = "pid"},
		&(struct reader_rows){READER_INTO(c->kernels, c->kernel_count), .max = KERNELS_MAX,
			.read = read_kernel, .arg = &c->kernel_names},
		reterr);
	SORT(c->kernels, c->kernel_count, by_function);
	return res;
}

/* loads annotations, one row a label, and what was pruned. Both are tables that
 * other files may lack; then nothing is loaded. */

static bool read_label(sql_stmt *stmt, void *arg, void *row)
{
	struct annotation_label *l = row;
	int64_t pid = sql_column_int(stmt, 3);

	*l = (struct annotation_label){0};
	if (EXISTS(i, 5, sql_column_type(stmt, i) != SQL_INT))
		return false;
	l->time_ns = sql_column_int(stmt, 0);
	l->span_start_ns = sql_column_int(stmt, 1);
	l->span_end_ns = sql_column_int(stmt, 2);
	l->pid = (uint32_t)pid;
	l->start_time = (uint64_t)sql_column_int(stmt, 4);
	return pid >= 0 && pid <= UINT32_MAX && l->span_end_ns >= l->span_start_ns &&
	       reader_text(stmt, 5, l->key, sizeof(l->key)) && l->key[0] &&
	       reader_text(stmt, 6, l->value, sizeof(l->value));
}

ORDER(by_time, struct annotation_label, ASCENDING(time_ns))

/* Does the name of a range say that it is a step of the program's loop? */
static bool is_step_name(const char *name)
{
	static const char *const words[] = {
		"step", "iteration", "iter", "train_step", "training_step", "ProfilerStep"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t len = strlen(words[i]);

		if (strncasecmp(name, words[i], len) == 0 && !isalpha((unsigned char)name[len]))
			return true;
	}
	return false;
}

static bool read_range(sql_stmt *stmt, void *arg, void *row)
{
	struct annotation_label *l = row;

	if (!read_label(stmt, arg, row))
		return false;
	if (is_step_name(l->value))
		snprintf(l->key, sizeof(l->key), "step");
	return true;
}

/* NVTX ranges are labels of their process while they last: "nvtx", or "step" if their name says so. */
static int load_ranges(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;
	size_t first = c->label_count;
	char rest[160];
	int res = r->kind == SCHEMA_OURS ? schema_has_table(r->sql, "names", reterr) : 0;
	int64_t ranges = 0;

	/* rows have no index by source: where the books know of none, none is looked for */
	if (res > 0)
		res = sql_get_int(r->sql,
			"SELECT CAST(total(hits) AS INTEGER) FROM accounting WHERE source = 10",
			&ranges, reterr);
	if (res < 0 || ranges <= 0)
		return res < 0 ? res : 0;
	snprintf(rest, sizeof(rest),
		" AND source = %d AND op = %d AND duration > 0 ORDER BY timestamp DESC",
		SOURCE_NVTX, NVTX_RANGE);
	res = reader_load(r,
		&(struct reader_query){.table = "events",
			.select =
				"SELECT timestamp, timestamp, timestamp + duration, pid, 0, 'nvtx',"
				" (SELECT name FROM names WHERE hash = arg1)",
			.by = {.time = "timestamp", .pid = "pid"},
			.rest = rest},
		&(struct reader_rows){READER_INTO(c->labels, c->label_count),
			.max = MIN(first + NODEDB_LABELS_MAX / 2, (size_t)NODEDB_LABELS_MAX),
			.read = read_range},
		reterr);
	if (c->label_count > first)
		SORT(c->labels, c->label_count, by_time);
	return res;
}

int reader_load_labels(struct reader *r, struct errinfo *reterr)
{
	struct nodedb_content *c = r->content;
	/* No lower bound: a label holds until it is set again. */
	struct scope until = {.to_ns = r->filter->scope.to_ns, .node = r->filter->scope.node};
	int res;

	if (!r->filter->labels)
		return 0;
	res = reader_load(r,
		&(struct reader_query){.table = "annotations",
			.beside = ", json_each(CASE WHEN json_valid(labels) AND json_type(labels) ="
				  " 'object' THEN labels ELSE '{}' END) j",
			.select = "SELECT timestamp, span_start, span_end, pid, start_time, j.key,"
				  " CAST(j.value AS TEXT)",
			.scope = &until,
			.by.time = "timestamp",
			.rest = " ORDER BY timestamp DESC, annotations.rowid DESC"},
		&(struct reader_rows){READER_INTO(c->labels, c->label_count),
			.max = NODEDB_LABELS_MAX, .read = read_label, .skipped = &c->skipped_rows,
			.older = &c->older_labels},
		reterr);
	reader_reverse(c->labels, c->label_count, sizeof(*c->labels));
	return res < 0 ? res : load_ranges(r, reterr);
}

int reader_load_pruned(struct reader *r, struct errinfo *reterr)
{
	int64_t rows, newest;
	int res = r->kind == SCHEMA_OURS ? schema_has_table(r->sql, "pruned", reterr) : 0;

	if (res <= 0)
		return res;
	res = sql_get_int(r->sql,
		"SELECT CAST(total(rows) AS INTEGER) FROM pruned WHERE table_name = 'events'"
		" AND typeof(rows) = 'integer' AND rows > 0",
		&rows, reterr);
	if (res < 0)
		return res;
	res = sql_get_int(r->sql,
		"SELECT coalesce(max(newest_ns), 0) FROM pruned WHERE table_name = 'events'"
		" AND typeof(newest_ns) = 'integer'",
		&newest, reterr);
	if (res < 0)
		return res;
	if (rows > 0 && newest > 0 && newest < INT64_MAX) {
		r->content->pruned_rows = (uint64_t)rows;
		r->content->pruned_before = newest + 1;
	}
	return 0;
}
