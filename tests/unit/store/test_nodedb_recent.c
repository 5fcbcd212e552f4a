/* SPDX-License-Identifier: Apache-2.0 */
/* test_nodedb_recent.c - what a recording gained is read by the numbers of rows, each row once. */
#include "store_fixture.h"

#include "model/problem.h"

#include "store/read/nodedb_recent.h"

struct seen {
	int64_t rows[16];
	uint64_t seqs[16];
	int count, damaged;
	int64_t after, chains_ns, times[3];
	size_t max;
	struct recent_readings readings;
	struct recent_incident incident;
	struct sql_table chains;
	int found;
	int64_t row, last;
	uint64_t points;
};

static int take(void *arg, int64_t row, const struct collective_row *c)
{
	struct seen *s = arg;

	s->rows[s->count] = row;
	s->seqs[s->count++] = c ? c->c.seq : 0;
	s->damaged += !c;
	return 0;
}

static int take_points(void *arg, const struct recent_points *p)
{
	struct seen *s = arg;

	if (p->is_send && p->peer == 0)
		s->points = p->count;
	return 0;
}

/* The text in a column of the first row; NULL: there is none. */
static const char *told(const struct sql_table *t, const char *name)
{
	for (int i = 0; i < t->column_count; i++) {
		const struct sql_cell *c = sql_table_cell(t, 0, i);

		if (!strcmp(sql_table_name(t, i), name))
			return c->type == SQL_TEXT ? sql_table_bytes(t, c) : NULL;
	}
	return NULL;
}

static int look(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct seen *s = arg;
	int r;

	s->count = s->damaged = 0;
	r = nodedb_recent_collectives(l, s->after, s->max, take, s, reterr);
	if (r == 0)
		r = nodedb_recent_row(l, "collectives", 25, &s->row, reterr);
	if (r == 0)
		r = nodedb_recent_last_row(l, "collectives", &s->last, reterr);
	for (int i = 0; r == 0 && i < 3; i++)
		r = nodedb_recent_row_time(
			l, "collectives", (const int64_t[]){1, 2, 99}[i], &s->times[i], reterr);
	if (r == 0)
		r = nodedb_recent_points(l, 100, take_points, s, reterr);
	if (r == 0)
		r = nodedb_recent_readings(l, 0, &s->readings, reterr);
	if (r == 0)
		s->found = nodedb_recent_incident(l, 0, &s->incident, reterr);
	sql_table_done(&s->chains);
	s->chains = (struct sql_table){0};
	if (r == 0)
		r = nodedb_recent_chains(l, s->chains_ns, 10, &s->chains, reterr);
	return r < 0 ? r : MIN(s->found, 0);
}

static void put(struct nodedb *db, int64_t start, uint64_t seq, uint16_t op)
{
	const struct event e = {
		.start.ns = start, .pid = 7, .tid = 7, .source = SOURCE_NCCL, .op = op};
	const struct collective c = {.comm_hash = 1,
		.seq = seq,
		.rank = 0,
		.nranks = 2,
		.peer = op == NCCL_SEND ? 0 : -1,
		.wait_ns = -1};
	struct errinfo err = {0};

	assert_int_equal(nodedb_put_collective(db, &e, &c, &err), 0);
}

static void rows_come_once(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct seen seen = {.max = 2};
	struct errinfo err = {0};

	for (int i = 1; i <= 3; i++)
		put(db, 10 * i, (uint64_t)i, NCCL_ALL_REDUCE);
	put(db, 40, 0, NCCL_SEND);
	put(db, 50, 0, NCCL_SEND);
	scratch_close(db);
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.rows[1], 2);
	assert_true(seen.seqs[1] == 2);
	assert_int_equal(seen.row, 2);
	assert_int_equal(seen.last, 5);
	assert_true(seen.times[0] == 10 && seen.times[1] == 20 && seen.times[2] == -1);
	assert_true(seen.points == 2);
	seen.after = 2;
	seen.max = 10;
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.rows[0], 3);
	scratch_sql(s->path, "UPDATE collectives SET bytes = 'x' WHERE rowid = 4");
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.damaged, 1);
	sql_table_done(&seen.chains);
}

static void readings_and_incidents(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = scratch_open(s->path);
	struct incident i = {.severity = SEVERITY_HIGH,
		.problem = PROBLEM_PCIE,
		.pid = 7,
		.last.ns = 100,
		.baseline_ns = 5,
		.slow_p50_ns = 50,
		.slow_calls = 3,
		.excess_ns = 90,
		.confidence = 0.8,
		.cause_count = 1,
		.causes = {{.cause = CAUSE_BLOCK_IO, .ns = 90}},
		.fix_count = 1};
	struct seen seen = {.max = 1};
	struct errinfo err = {0};

	snprintf(i.id, sizeof(i.id), "one");
	snprintf(i.root_cause, sizeof(i.root_cause), "a disk is busy");
	snprintf(i.fixes[0], sizeof(i.fixes[0]), "move it");
	assert_int_equal(nodedb_put_incident(db, &i, (wall_time){100}, &err), 0);
	scratch_close(db);
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.found, 1);
	assert_int_equal(seen.incident.pid, 7);
	assert_string_equal(seen.incident.root_cause, "a disk is busy");
	assert_string_equal(seen.incident.cause, "block_io");
	assert_true(seen.incident.cause_ns == 90 && seen.incident.slow_count == 3);
	assert_string_equal(seen.incident.fix, "move it");
	assert_int_equal(seen.chains.row_count, 1);
	assert_int_equal(sql_table_cell(&seen.chains, 0, 0)->i, 100);
	assert_int_equal(sql_table_cell(&seen.chains, 0, 1)->i, 0);
	assert_string_equal(told(&seen.chains, "id"), seen.incident.id);
	assert_string_equal(told(&seen.chains, "severity"), "HIGH");
	assert_string_equal(told(&seen.chains, "root_cause"), "a disk is busy");
	assert_string_equal(told(&seen.chains, "recommendations"), "[\"move it\"]");
	assert_string_equal(told(&seen.chains, "problem"), "pcie");
	/* It goes on: the same row, seen later. One that ended before is not asked for. */
	assert_int_equal(sql_table_cell(&seen.chains, 0, 0)->i, 100);
	seen.chains_ns = 101;
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.chains.row_count, 0);
	scratch_sql(s->path, "UPDATE incidents SET last_seen = 200");
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.chains.row_count, 1);
	/* Too long is nothing, as is a field of which the recording is too old. */
	scratch_sql(s->path, "UPDATE causal_chains SET summary = printf('%.4097c', 'x');"
			     "ALTER TABLE incidents DROP COLUMN problem");
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.chains.row_count, 1);
	assert_null(told(&seen.chains, "summary"));
	assert_null(told(&seen.chains, "problem"));
	assert_string_equal(told(&seen.chains, "severity"), "HIGH");
	sql_table_done(&seen.chains);
	assert_true(seen.incident.ordinary_ns == 5 && seen.incident.slow_ns == 50);
	assert_true(seen.readings.cpu_pct == -1 && seen.readings.gpu_busy_pct == -1);
	assert_true(seen.readings.failed_allocs == 0 && seen.readings.gpus == 0);
}

static void an_empty_one(void **state)
{
	struct scratch *s = *state;
	struct seen seen = {.max = 10};
	struct errinfo err = {0};

	scratch_close(scratch_open(s->path));
	assert_int_equal(nodedb_snapshot_read(s->path, look, &seen, &err), 0);
	assert_int_equal(seen.count, 0);
	assert_int_equal(seen.row, 0);
	assert_int_equal(seen.last, 0);
	assert_int_equal(seen.found, 0);
	sql_table_done(&seen.chains);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_come_once, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			readings_and_incidents, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(an_empty_one, scratch_setup, scratch_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
