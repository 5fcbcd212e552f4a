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
	assert_int_equal(store_duck_backup(s->folder, backup, NULL), 0);
	assert_int_equal(store_duck_backup(s->folder, backup, &err), -EEXIST);
	/* what a copy that was killed has left: it may be one that is being made */
	snprintf(restored, sizeof(restored), "%s/again.partial", s->root);
	assert_int_equal(mkdir(restored, 0700), 0);
	snprintf(restored, sizeof(restored), "%s/again", s->root);
	assert_int_equal(store_duck_backup(s->folder, restored, &err), -EEXIST);
	assert_non_null(strstr(err.text, "again.partial"));
	assert_non_null(strstr(err.text, "remove it"));
	snprintf(restored, sizeof(restored), "%s/restored", s->root);
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

/* A store that is in use is read through a second one of the same files, which goes without a trace. */
static void test_a_second_store_of_the_same_files(void **state)
{
	struct scratch_store *s = *state;
	struct store_duck_settings settings = s->settings;
	struct store *second = NULL;
	char linked[96];

	snprintf(linked, sizeof(linked), "%s/linked", s->root);
	settings.folder = linked;
	store_begin(s);
	fill_up_to(s->store, 20);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 30);
	assert_int_equal(store_duck_link(s->folder, linked, NULL), 0);
	assert_int_equal(store_duck_link(s->folder, linked, NULL), -EEXIST);
	assert_int_equal(store_duck_open(&settings, &second, NULL), 0);
	assert_int_equal(ask_number(second, NULL, "SELECT count(*) FROM {events}"), 3 * 20);
	store_free(second);
	store_duck_unlink(linked);
	assert_int_equal(access(linked, F_OK), -1);
	assert_filled(s->store, 30);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	store_begin(s);
	assert_filled(s->store, 30);
}

/* Entries of the journal, as they were taken, as far as it still has them. */
static int rows_again(
	void *arg, const char *cluster, uint64_t first, uint64_t last, struct buf *ret)
{
	uint64_t trimmed = *(uint64_t *)arg;

	for (uint64_t p = first; p <= last; p++) {
		struct batch b = {.bytes = BUF_INIT(1u << 20)};
		char node[32];

		if (p <= trimmed)
			return -ENODATA;
		snprintf(node, sizeof(node), "n%d", (int)(p % 3));
		assert_string_equal(cluster, "red");
		put_event(&b, "red", node, (int64_t)p);
		put_event(&b, "red", "n9", (int64_t)p);
		if (p % 10 == 0) {
			batch_row(&b, TABLE_CHAINS);
			batch_int(&b, CHAINS_TS, T0 + (int64_t)p);
			batch_text_of(&b, CHAINS_CLUSTER, "red");
			batch_text_of(&b, CHAINS_NODE, node);
			batch_text_of(&b, CHAINS_ID, "chain");
		}
		buf_append(ret, b.bytes.data, b.bytes.len);
		buf_done(&b.bytes);
	}
	return 0;
}

/* Of a part that was merged since, the backup has the first pieces and the journal the rest, or not. */
static void repair_merged(struct scratch_store *s, uint64_t trimmed, int64_t red, int err)
{
	static const char *const names[] = {"red"};
	struct store_scope scope = {.clusters = names, .cluster_count = 1};
	struct store_report report = {0};
	struct store_missing m;
	char backup[96];

	snprintf(backup, sizeof(backup), "%s/saved", s->root);
	store_begin(s);
	for (uint64_t n = 4; n <= 32; n += 4) {
		fill_up_to(s->store, n);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
		if (n == 20)
			assert_int_equal(store_duck_backup(s->folder, backup, NULL), 0);
	}
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	store_end(s);
	damage_part_in(s->folder, false);
	store_begin(s);
	assert_int_equal(
		store_duck_repair(s->store, backup, rows_again, &trimmed, &report, NULL), err);
	assert_int_equal(ask_number(s->store, &scope, "SELECT count(*) FROM {events}"), red);
	assert_int_equal(
		ask_number(s->store, &scope, "SELECT sum(count) FROM {node_metrics}"), red);
	store_missing(s->store, &scope, &m);
	assert_int_equal(m.rows, err < 0 ? 24 + 1 : 0); /* events 21 to 32, and chain 30 */
	store_end(s);
	if (err == 0)
		assert_int_equal(store_duck_verify(s->folder, &report, NULL), 0);
	store_begin(s); /* what is gone is still known */
	store_missing(s->store, &scope, &m);
	assert_int_equal(m.parts, err < 0);
	assert_int_equal(ask_number(s->store, &scope, "SELECT count(*) FROM {events}"), red);
}

static void test_pieces_of_backup_and_journal_are_put_together(void **state)
{
	repair_merged(*state, 20, 64, 0);
}

static void test_what_neither_has_stays_missing(void **state)
{
	repair_merged(*state, 24, 40, -EBADMSG);
}

/* ---- files that another has written ---- */

/* rewrite_part - @sql is run on the newest part of red, and the manifest has the new sum: nothing but what the file
 * holds tells that it is none of ours. */
static void rewrite_part(const char *folder, const char *const *sql)
{
	struct manifest m = {0};
	struct duck *d;
	struct duck_connection *c;
	struct part *p = NULL;
	struct stat st;

	find_newest_part(folder);
	assert_int_equal(duck_open(part_file, NULL, &d, NULL), 0);
	assert_int_equal(duck_connect(d, &c, NULL), 0);
	for (; *sql; sql++)
		assert_int_equal(duck_exec(c, *sql, NULL), 0);
	duck_disconnect(c);
	duck_close(d);
	assert_int_equal(manifest_read(folder, &m, NULL), 0);
	for (size_t i = 0; i < m.parts.count; i++)
		if (strstr(part_file, m.parts.items[i]->folder))
			p = m.parts.items[i];
	assert_non_null(p);
	assert_int_equal(stat(part_file, &st), 0);
	p->bytes = (uint64_t)st.st_size;
	assert_int_equal(digest_sha256_file(part_file, p->sha256), 0);
	assert_int_equal(manifest_write(folder, &m, NULL), 0);
	manifest_done(&m);
}

static void assert_refused(struct scratch_store *s, const char *const *sql, bool refused)
{
	static const char *const names[] = {"red"};
	struct store_scope red = {.clusters = names, .cluster_count = 1};
	struct store_report report = {0};
	struct store_missing m;

	snprintf(s->folder, sizeof(s->folder), "%s/store%p", s->root, (const void *)sql);
	store_begin(s);
	fill_up_to(s->store, 9);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	rewrite_part(s->folder, sql);
	assert_int_equal(store_duck_verify(s->folder, &report, NULL), refused ? -EBADMSG : 0);
	assert_int_equal(report.findings, refused);
	store_begin(s);
	store_missing(s->store, &red, &m);
	assert_int_equal(m.rows, refused ? 18 : 0);
	assert_int_equal(
		ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), refused ? 9 : 27);
	assert_int_equal(ask_number(s->store, NULL,
				 "SELECT count(*) FROM {events} WHERE metric_name LIKE '%root%'"),
		0);
	store_end(s);
}

static void test_a_stranger_s_sql_in_a_part_is_not_run(void **state)
{
	static const char *const view[] = {"ALTER TABLE events RENAME TO real",
		"CREATE VIEW events AS SELECT * REPLACE ((SELECT content FROM read_text('/etc/passwd')) AS metric_name) FROM real",
		NULL};
	static const char *const computed[] = {
		"CREATE TABLE more (a INT, b INT GENERATED ALWAYS AS (a + 1))", NULL};
	static const char *const control[] = {"CREATE TABLE more (a INT, b INT)", NULL};

	assert_refused(*state, view, true);
	assert_refused(*state, computed, true);
	assert_refused(*state, control, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_a_backup_is_verified_and_restored),
		T(test_rows_are_exported_as_parquet),
		T(test_a_second_store_of_the_same_files),
		T(test_pieces_of_backup_and_journal_are_put_together),
		T(test_what_neither_has_stays_missing),
		T(test_a_stranger_s_sql_in_a_part_is_not_run),
#undef T
	};

	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
