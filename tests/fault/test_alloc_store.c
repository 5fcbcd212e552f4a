/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while a recording is made and read, SQLite's own among them. What is refused is
 * refused with ENOMEM; what was committed is there. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "../unit/scene.h"
#include "../unit/store_fixture.h"
#include "fault.h"

#define ROWS 5

static void remove_recording(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock"};
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		unlink(name);
	}
}

static int write_rows(struct nodedb *db, struct errinfo *err)
{
	struct event e = {
		.start.ns = SCENE_T0_NS, .dur_ns = 5, .pid = 7, .source = SOURCE_CUDA, .op = 2};
	const struct stack_row row = {
		77, "", "[{\"s\":\"f\"}]", "", 0, strlen("[{\"s\":\"f\"}]"), 0};
	static struct aggregate a = {
		.bucket.ns = SCENE_T0_NS, .pid = 7, .source = SOURCE_CUDA, .op = 2};
	const struct ledger_row spent = {
		.start.ns = SCENE_T0_NS, .dur_ns = 5, .ns[LEDGER_RUN] = 5, .stack_hash = 77};
	const struct container_sample group = {.time.ns = SCENE_T0_NS, .cgroup_id = 5};
	int r = nodedb_batch_begin(db, err);

	for (int i = 0; r == 0 && i < ROWS; i++)
		r = nodedb_put_event(db, &e, err);
	if (r == 0)
		r = nodedb_put_stack(db, &row, err);
	if (r == 0)
		r = nodedb_add_aggregate(db, false, &a, err);
	if (r == 0)
		r = nodedb_put_ledger(db, &spent, err);
	if (r == 0)
		r = nodedb_put(db, &group, err);
	if (r == 0)
		return nodedb_batch_commit(db, err);
	nodedb_batch_rollback(db);
	return r;
}

/* A new file each time. After a failed write all rows are in it, or none. */
static int use_writing(void *arg)
{
	const char *path = arg;
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	int64_t rows;
	int r, closed;

	r = nodedb_open(path, "n1", &db, &err);
	if (r < 0) {
		assert_null(db);
		remove_recording(path);
		return r;
	}
	r = write_rows(db, &err);
	closed = nodedb_close(db, &err);
	fault_suspend();
	rows = scratch_int(path, "SELECT count(*) FROM events");
	assert_true(rows == 0 || rows == ROWS);
	if (r == 0)
		assert_int_equal(rows, ROWS);
	remove_recording(path);
	return r < 0 ? r : closed;
}

static void writing(void **state)
{
	struct scratch *s = *state;

	assert_true(fault_torture(use_writing, s->path) > 100);
}

static int use_reading(void *arg)
{
	const struct nodedb_filter f = {
		.labels = true, .ledger = true, .stacks = NODEDB_STACKS_USED};
	struct nodedb_content c = {.event_count = 12345};
	struct errinfo err = {0};
	int r = nodedb_read(arg, &f, &c, &err);

	if (r < 0) {
		assert_int_equal(c.event_count, 12345); /* untouched */
		return r;
	}
	fault_suspend();
	assert_int_equal(c.event_count, ROWS);
	assert_int_equal(c.ledger_count, 1);
	assert_int_equal(c.container_count, 1);
	nodedb_content_done(&c);
	return 0;
}

static void reading(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);

	assert_int_equal(write_rows(db, &err), 0);
	scratch_close(db);
	assert_true(fault_torture(use_reading, s->path) > 50);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), ROWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(writing),
		TEST(reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
