/* SPDX-License-Identifier: Apache-2.0 */
/* A power cut takes what was not synced: not what its sender was told is stored. */
#include "store_run.h"
#include "store_vfs.h"

#define LABELS 7

static struct { /* what a power cut left */
	char folder[80], path[96];
} cut;

static void begin_cut(const struct scratch *s)
{
	snprintf(cut.folder, sizeof(cut.folder), "%s/cut", s->folder);
	snprintf(cut.path, sizeof(cut.path), "%s/ingero.db", cut.folder);
	assert_int_equal(mkdir(cut.folder, 0700), 0);
	store_vfs_keep(cut.folder);
}

static int64_t labels_in(const char *path)
{
	return scratch_int(path, "SELECT count(*) FROM annotations");
}

static void test_acknowledged_annotations_outlast_a_power_cut(void **state)
{
	struct scratch *s = *state;
	struct annotation a = {.time.ns = 5, .labels = "{\"epoch\":\"7\"}"};
	struct store_ack acks[LABELS];
	struct run run;
	size_t n = 0;

	begin_cut(s);
	assert_true(run_start(&run, s->path));
	run_push(&run, 100);
	for (uint64_t i = 0; i < LABELS; i++)
		assert_true(store_writer_push_annotation(run.writer, &a, i));
	while (n < LABELS)
		n += store_writer_take_acks(run.writer, acks + n, LABELS - n);
	store_vfs_keep(NULL); /* here the power goes */
	for (size_t i = 0; i < LABELS; i++)
		assert_true(acks[i].id > 0);
	assert_int_equal(labels_in(cut.path), LABELS);
	assert_true(run_file_holds(cut.path));
	assert_int_equal(run_stop(&run), 0);
}

/* The control: the same rows, committed without the sync, are gone. */
static void put_label(struct nodedb *db, bool durable)
{
	struct annotation a = {.time.ns = 5, .labels = "{\"epoch\":\"7\"}"};
	int64_t id;

	assert_int_equal(
		durable ? nodedb_batch_begin_durable(db, NULL) : nodedb_batch_begin(db, NULL), 0);
	assert_int_equal(nodedb_put_annotation(db, &a, &id, NULL), 0);
	assert_int_equal(nodedb_batch_commit(db, NULL), 0);
}

static void test_only_durable_commits_outlast_it(void **state)
{
	struct scratch *s = *state;
	struct nodedb *db = NULL;

	begin_cut(s);
	assert_int_equal(nodedb_open(s->path, "n1", &db, NULL), 0);
	put_label(db, false);
	put_label(db, false);
	assert_int_equal(labels_in(cut.path), 0);
	assert_int_equal(labels_in(s->path), 2);
	put_label(db, true); /* and with it all before */
	assert_int_equal(labels_in(cut.path), 3);
	put_label(db, false); /* durability ends with its batch */
	assert_int_equal(labels_in(cut.path), 3);
	store_vfs_keep(NULL);
	assert_int_equal(nodedb_close(db, NULL), 0);
}

/* A sync that fails is no acknowledgement. */
static void test_a_failed_sync_is_not_acknowledged(void **state)
{
	struct scratch *s = *state;
	struct annotation a = {.time.ns = 5, .labels = "{\"epoch\":\"7\"}"};
	struct store_ack ack;
	struct errinfo err = {0};
	struct run run;

	assert_true(run_start(&run, s->path));
	store_vfs_set(0, 1, SQLITE_IOERR_FSYNC, true);
	assert_true(store_writer_push_annotation(run.writer, &a, 1));
	while (!store_writer_error(run.writer, &err))
		;
	assert_int_equal(store_writer_take_acks(run.writer, &ack, 1), 0);
	store_vfs_set(0, 0, 0, false); /* the disk is well again */
	while (!store_writer_take_acks(run.writer, &ack, 1))
		;
	assert_true(ack.id > 0);
	assert_int_equal(run_stop(&run), 0);
	assert_int_equal(labels_in(s->path), 1);
}

static int setup(void **state)
{
	store_vfs_set(0, 0, 0, false);
	return scratch_setup(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_acknowledged_annotations_outlast_a_power_cut, setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			test_only_durable_commits_outlast_it, setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_failed_sync_is_not_acknowledged, setup, scratch_teardown),
	};

	return cmocka_run_group_tests(tests, store_vfs_install, NULL);
}
