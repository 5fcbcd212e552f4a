/* SPDX-License-Identifier: Apache-2.0 */
#include "store_duck_fixture.h"

/* ---- copies ---- */

static void test_a_backup_is_verified_and_restored(void **state)
{
	struct scratch_store *s = *state;
	char backup[96], restored[96];
	struct store_report report = {0};
	struct errinfo err = {0};

	snprintf(backup, sizeof(backup), "%s/backup", s->root);
	snprintf(restored, sizeof(restored), "%s/restored", s->root);
	store_begin(s);
	fill_up_to(s->store, 40);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 50); /* not durable: not in the backup */
	assert_int_equal(store_duck_backup(s->store, backup, NULL), 0);
	assert_int_equal(store_duck_backup(s->store, backup, &err), -EEXIST);
	assert_int_equal(store_duck_verify(s->folder, &report, &err), -EAGAIN); /* it is in use */
	store_end(s);
	assert_int_equal(store_duck_verify(s->folder, &report, NULL), 0);
	assert_int_equal(store_duck_verify(backup, &report, NULL), 0);
	assert_int_equal(store_duck_restore(backup, restored, NULL), 0);
	assert_int_equal(store_duck_restore(backup, restored, NULL), -EEXIST);

	s->settings.folder = restored;
	store_begin(s);
	assert_int_equal(store_durable(s->store), 40);
	assert_filled(s->store, 40);
	fill_up_to(s->store, 50);
	assert_filled(s->store, 50);
	store_end(s);

	damage_part_in(backup, false);
	assert_int_equal(store_duck_verify(backup, &report, &err), -EBADMSG);
	assert_int_equal(report.findings, 1);
	snprintf(restored, sizeof(restored), "%s/second", s->root);
	assert_int_equal(store_duck_restore(backup, restored, NULL), -EBADMSG);
	assert_int_equal(access(restored, F_OK), -1);
}

static void test_rows_are_exported_as_parquet(void **state)
{
	struct scratch_store *s = *state;
	static const char *const names[] = {"blue"};
	struct store_scope blue = {.clusters = names, .cluster_count = 1};
	char path[96], question[200];
	uint64_t rows = 0;

	snprintf(path, sizeof(path), "%s/events.parquet", s->root);
	store_begin(s);
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 30);
	assert_int_equal(store_duck_export(s->store, TABLE_EVENTS, &blue, path, &rows, NULL), 0);
	assert_int_equal(rows, 30);
	assert_int_equal(
		store_duck_export(s->store, TABLE_EVENTS, &blue, path, &rows, NULL), -EEXIST);
	snprintf(question, sizeof(question),
		"SELECT sum(value_int) FROM '%s' WHERE cluster_id = 'blue'", path);
	assert_int_equal(ask_number(s->store, NULL, question), 30 * 31 / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_a_backup_is_verified_and_restored),
		T(test_rows_are_exported_as_parquet),
#undef T
	};

	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
