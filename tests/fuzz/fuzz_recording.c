/* SPDX-License-Identifier: Apache-2.0 */
/* A recording that somebody changed, read by what answers from it: no crash, the same answer twice,
 * JSON that is JSON, and the file itself stays as it is.
 *
 * The input changes a small recording that is made once. First byte 0: bytes of the file, as a
 * broken disk or an enemy would (offset, length, bytes); else: values of its tables, of any type. */
#include <fcntl.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>

#include "../unit/scene.h"
#include "answer/explain.h"
#include "answer/encode/report.h"
#include "answer/encode/report_json.h"
#include "answer/answer.h"
#include "store/nodedb.h"
#include "base/file.h"
#include "fuzz.h"

#define COLUMNS_MAX 512
#define CHANGES_MAX 16
#define ANSWERS     8

static struct buf base = {.max = 16 << 20};
static char columns[COLUMNS_MAX][2][64]; /* table, column */
static size_t column_count;

static void put_scene(struct nodedb *db, struct errinfo *e)
{
	static const char frames[] = "[{\"s\":\"sync\",\"f\":\"a.c\",\"l\":3},"
				     "{\"pf\":\"train.py\",\"pfn\":\"step\",\"pl\":9}]";
	const struct stack_row row = {77, "", frames, "", 0, strlen(frames), 0};
	struct scene s = {.seed = 1};

	for (int i = 0; i < 60; i++)
		scene_call(&s, CUDA_STREAM_SYNC, i * 50000, 1000);
	for (int i = 60; i < 120; i++) {
		scene_call(&s, CUDA_STREAM_SYNC, i * 50000, 20000)->stack_hash = 77;
		scene_stay(&s, VICTIM, i * 50000 + 500, 19000, 19000, WIRE_PREEMPTED, HOG, "hog");
	}
	scene_aggregate(&s);
	scene_sample(&s, 0, 50);
	MUST(nodedb_batch_begin(db, e) == 0);
	for (size_t i = 0; i < s.event_count; i++)
		MUST(nodedb_put_event(db, &s.events[i], e) == 0);
	for (size_t i = 0; i < s.aggregate_count; i++)
		MUST(nodedb_add_aggregate(db, false, &s.aggregates[i], e) == 0);
	MUST(nodedb_put(db, &s.samples[0], e) == 0);
	MUST(nodedb_put_stack(db, &row, e) == 0);
	MUST(nodedb_batch_commit(db, e) == 0);
	scene_done(&s);
}

static void put_rest(struct nodedb *db, struct errinfo *e)
{
	struct session session = {.started.ns = SCENE_T0_NS, .node = "n1"};
	struct incident i = {.id = "i1",
		.severity = SEVERITY_HIGH,
		.pid = VICTIM,
		.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.summary = "slow",
		.step_count = 1};
	struct event call = {.start.ns = SCENE_T0_NS, .source = SOURCE_NCCL, .op = NCCL_ALL_REDUCE};
	const struct collective c = {.comm_hash = 5, .seq = 1, .rank = 1, .nranks = 2};
	const struct gpu_sample g = {.time.ns = SCENE_T0_NS};
	const struct container_sample group = {.time.ns = SCENE_T0_NS, .cgroup_id = 5};
	const struct ledger_row row = {.start.ns = SCENE_T0_NS,
		.dur_ns = 50000,
		.ns[LEDGER_RUN] = 20000,
		.ns[LEDGER_PIPE] = 30000,
		.pid = VICTIM,
		.tid = VICTIM,
		.mark = MARK_STAY,
		.stay_line = LEDGER_PIPE,
		.stay_ns = 30000,
		.stack_hash = 77};
	_cleanup_free_ struct annotation *a = calloc(1, sizeof(*a));
	int64_t id;

	MUST(a);
	a->time.ns = SCENE_T0_NS;
	snprintf(a->labels, sizeof(a->labels), "{\"step\":\"1\"}");
	MUST(nodedb_session_begin(db, &session, e) == 0);
	MUST(nodedb_put_incident(db, &i, (wall_time){SCENE_T0_NS}, e) == 0);
	MUST(nodedb_put_event(db, &call, e) == 0);
	MUST(nodedb_put_collective(db, &call, &c, e) == 0);
	MUST(nodedb_put(db, &g, e) == 0);
	MUST(nodedb_put(db, &group, e) == 0);
	MUST(nodedb_put_ledger(db, &row, e) == 0);
	MUST(nodedb_put_annotation(db, a, &id, e) == 0);
}

static void list_columns(const char *path)
{
	static const char sql[] = "SELECT m.name, c.name FROM sqlite_master m, "
				  "pragma_table_info(m.name) c WHERE m.type = 'table'";
	sqlite3_stmt *stmt;
	sqlite3 *db;

	MUST(sqlite3_open(path, &db) == SQLITE_OK);
	MUST(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW && column_count < COLUMNS_MAX) {
		for (int i = 0; i < 2; i++)
			snprintf(columns[column_count][i], sizeof(columns[0][0]), "%s",
				(const char *)sqlite3_column_text(stmt, i));
		column_count++;
	}
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

static void make_base(void)
{
	struct nodedb *db = NULL;
	struct errinfo e = {0};
	char path[128];

	snprintf(path, sizeof(path), "%s/base.db", fuzz_folder());
	MUST(nodedb_open(path, "n1", &db, &e) == 0);
	put_scene(db, &e);
	put_rest(db, &e);
	MUST(nodedb_close(db, &e) == 0);
	list_columns(path);
	MUST(column_count > 50);
	MUST(file_read(path, base.max - 1, &base) == 0);
	unlink(path);
}

static void change_bytes(struct fuzz_input *in, uint8_t *file, size_t size)
{
	for (int i = 0; i < CHANGES_MAX && in->size; i++) {
		size_t at = fuzz_u32(in) % size, len = 1 + fuzz_u8(in) % 16;

		for (size_t k = 0; k < len && at + k < size; k++)
			file[at + k] = fuzz_u8(in);
	}
}

static void change_value(struct fuzz_input *in, sqlite3 *db)
{
	size_t n = (fuzz_u8(in) | (size_t)fuzz_u8(in) << 8) % column_count;
	unsigned rows = fuzz_u8(in) % 8, kind = fuzz_u8(in) % 6;
	char text[48], sql[256];
	sqlite3_stmt *stmt = NULL;
	size_t len;

	snprintf(sql, sizeof(sql), "UPDATE OR IGNORE \"%s\" SET \"%s\" = ?1 WHERE rowid %% 8 %s %u",
		columns[n][0], columns[n][1], rows & 4 ? "=" : ">=", rows & 3);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return; /* a table without rowids */
	len = fuzz_u8(in) % sizeof(text);
	for (size_t i = 0; i < len; i++)
		text[i] = (char)fuzz_u8(in);
	if (kind == 1)
		sqlite3_bind_int64(stmt, 1, (int64_t)fuzz_u64(in));
	else if (kind == 2)
		sqlite3_bind_double(stmt, 1, (double)(int64_t)fuzz_u64(in) * 1e300);
	else if (kind == 3)
		sqlite3_bind_text(stmt, 1, text, (int)len, SQLITE_STATIC);
	else if (kind == 4)
		sqlite3_bind_blob(stmt, 1, text, (int)len, SQLITE_STATIC);
	else if (kind == 5)
		sqlite3_bind_int64(stmt, 1, fuzz_u8(in));
	sqlite3_step(stmt);
	sqlite3_finalize(stmt);
}

static void change_values(struct fuzz_input *in, const char *path)
{
	sqlite3 *db;

	MUST(sqlite3_open(path, &db) == SQLITE_OK);
	sqlite3_exec(
		db, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN", NULL, NULL, NULL);
	for (int i = 0; i < CHANGES_MAX && in->size; i++)
		change_value(in, db);
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
}

static void must_be_json(const struct buf *b)
{
	json_t *doc = json_loadb(buf_str(b), b->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

	MUST(b->err || doc);
	json_decref(doc);
}

/* explain - what `ingero explain` says, as text and as JSON; -errno or 0. */
static int explain(const char *path, struct buf *json)
{
	struct nodedb_filter f = {.labels = true, .ledger = true, .stacks = NODEDB_STACKS_USED};
	_cleanup_(nodedb_content_done) struct nodedb_content c = {0};
	_cleanup_buf_ struct buf text = BUF_INIT(16 << 20);
	struct query_view view = {.content = &c, .labels = true};
	struct explanation found = {0};
	struct errinfo e = {0};
	int r = nodedb_read(path, &f, &c, &e);

	MUST(r >= 0 || e.text[0]);
	if (r < 0)
		return r;
	explain_sort_chains(&c);
	if (explain_find(&c, true, &found, &e) == 0) {
		report_json(json, found.incidents, found.count, &found.scope);
		must_be_json(json);
		report_text(&text, found.incidents, found.count, &found.scope, false);
		explanation_done(&found);
	}
	query_list(&text, &view);
	stored_incidents_text(&text, &c);
	/* Names in a recording are foreign: none of them may act on a terminal. */
	MUST(!memchr(buf_str(&text), '\033', text.len));
	return 0;
}

/* thin - read without its ordinary calls, from the pages if they are plain: the same rows as with all of
 * them, unless bytes were changed and the table and its index disagree. */
static void thin(const char *path, bool raw)
{
	struct nodedb_filter f = {.thin = NODEDB_THIN_NEVER};
	_cleanup_(nodedb_content_done) struct nodedb_content all = {0}, few = {0};
	struct errinfo e = {0};
	int r = nodedb_read(path, &f, &all, &e);

	f.thin = NODEDB_THIN_ALWAYS;
	if (nodedb_read(path, &f, &few, &e) < 0 || r < 0 || raw)
		return;
	MUST(few.event_count + few.thinned_rows + few.skipped_rows ==
		all.event_count + all.skipped_rows);
}

/* answer_some - every ANSWERS-th answer of the API, from @which on: all of them take too long. */
static void answer_some(const char *path, size_t which)
{
	static answer_fn *const fns[] = {overview_json, nodes_json, sessions_json, processes_json,
		ops_json, series_json, graph_metrics_json, graph_events_json, chains_json,
		collectives_json, stacks_json, flame_json, snapshots_json, gpus_json, losses_json,
		overhead_json};

	for (size_t i = which % ANSWERS; i < ARRAY_SIZE(fns); i += ANSWERS) {
		_cleanup_buf_ struct buf b = BUF_INIT(16 << 20);
		const struct answer_request request = {.all = true, .stacks = true};
		struct errinfo e = {0};

		if (answer_run(path, &request, fns[i], 0, &b, &e) == 0)
			must_be_json(&b);
		else
			MUST(e.text[0]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf first = BUF_INIT(16 << 20), second = BUF_INIT(16 << 20);
	_cleanup_buf_ struct buf before = BUF_INIT(32 << 20), after = BUF_INIT(32 << 20);
	_cleanup_free_ uint8_t *file = NULL;
	struct fuzz_input in = {data, size};
	const char *path;
	bool raw = fuzz_u8(&in) == 0;

	if (!base.len)
		make_base();
	file = malloc(base.len);
	MUST(file);
	memcpy(file, base.data, base.len);
	if (raw)
		change_bytes(&in, file, base.len);
	path = fuzz_place("recording.db", file, base.len);
	if (!raw)
		change_values(&in, path);
	MUST(file_read(path, 16 << 20, &before) == 0);
	MUST(explain(path, &first) == explain(path, &second));
	MUST(first.len == second.len && strcmp(buf_str(&first), buf_str(&second)) == 0);
	thin(path, raw);
	answer_some(path, size ? data[size - 1] : 0);
	MUST(file_read(path, 16 << 20, &after) == 0);
	MUST(before.len == after.len && memcmp(before.data, after.data, before.len) == 0);
	return 0;
}
