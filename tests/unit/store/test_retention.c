/* SPDX-License-Identifier: Apache-2.0 */
/* test_retention.c - rolling over: nothing lost between the files, books that add up, a reader in the
 * way, and a folder that refuses. */
#include "store_fixture.h"

#include "store/write/retention.h"
#include "store/write/writer.h"

static void put(struct nodedb *db, int n)
{
	assert_int_equal(nodedb_batch_begin(db, NULL), 0);
	while (n--) {
		struct event e = {.start.ns = 1000, .pid = 7, .source = 1};

		assert_int_equal(nodedb_put_event(db, &e, NULL), 0);
	}
	assert_int_equal(nodedb_batch_commit(db, NULL), 0);
}

static struct nodedb *start(struct scratch *s, struct retention *u, uint64_t bytes, unsigned keep)
{
	struct nodedb *db = scratch_open(s->path);
	struct session session = {.started.ns = 1, .kernel = "6.1", .flags = "x"};
	struct retention_config config = {
		.rollover_bytes = bytes, .rollover_keep = keep, .session = &session};

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(retention_init(u, db, session.id, &config, NULL), 0);
	return db;
}

/* Calls @each with every rolled file, oldest first is not promised. */
static int for_rolled(struct scratch *s, int64_t (*each)(const char *), int64_t *sum)
{
	DIR *d = opendir(s->folder);
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[512];

		if (!rollover_is_name(s->path, e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", s->folder, e->d_name);
		*sum += each(path);
		n++;
	}
	closedir(d);
	return n;
}

static int64_t rows_of(const char *path)
{
	/* each file's books balance, and say what is in it */
	assert_int_equal(scratch_int(path, "SELECT hits = stored + aggregated + lost"
					   " FROM accounting WHERE source = 1"),
		1);
	assert_int_equal(scratch_int(path, "SELECT stored = (SELECT count(*) FROM events)"
					   " FROM accounting WHERE source = 1"),
		1);
	assert_int_equal(scratch_int(path, "SELECT count(*) FROM sessions WHERE stopped_at > 0"
					   " AND kernel = '6.1'"),
		1);
	return scratch_int(path, "SELECT count(*) FROM events");
}

static int64_t hits_of(const char *path)
{
	return scratch_int(path, "SELECT hits FROM accounting WHERE source = 1");
}

static void test_rolls_over_with_books(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0}, part;
	struct errinfo err = {0};
	int64_t rows = 0, hits = 0;
	struct retention u;
	struct nodedb *db = start(s, &u, 400000, 100);
	int rounds = 20;

	for (int i = 1; i <= rounds; i++) {
		put(db, 2000);
		run.source[1].stored += 2000;
		run.source[1].aggregated += 3;
		run.source[1].lost[LOSS_RING_FULL] += 2;
		run.source[1].hits = (uint64_t)i * 2005 + 7; /* seven are always under way */
		if (retention_step(&u, SIZE_MAX, &run, &err) < 0)
			fail_msg("%s", err.text);
	}
	assert_true(u.generation >= 3);
	run.source[1].hits = run.source[1].stored + run.source[1].aggregated + 40;
	retention_books(&u, &run, &part);
	assert_true(account_balances(&part.source[1]));
	assert_int_equal(nodedb_put_accounting(db, retention_session(&u), &part, &err), 0);
	assert_int_equal(nodedb_session_end(db, retention_session(&u), (wall_time){9}, &err), 0);
	retention_done(&u);
	scratch_close(db);
	assert_int_equal(for_rolled(s, rows_of, &rows), u.generation);
	for_rolled(s, hits_of, &hits);
	assert_int_equal(rows + rows_of(s->path), rounds * 2000);
	assert_int_equal(hits + hits_of(s->path), run.source[1].hits);
	/* ids go on from file to file, also in a later run */
	assert_int_equal(scratch_int(s->path, "SELECT coalesce(max(seq), 40000) FROM events"),
		rounds * 2000);
	assert_int_equal(scratch_files(s->folder, false), (int)u.generation + 1);
}

/* The log's rows too: SQLite leaves them there if the file has lost its name. */
static void test_goes_on_without_its_name(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	struct retention u;
	struct nodedb *db = start(s, &u, 0, 0);
	char moved[512], wal[512];

	snprintf(moved, sizeof(moved), "%s.moved", s->path);
	snprintf(wal, sizeof(wal), "%s-wal", s->path);
	for (int i = 0; i < 3; i++) {
		put(db, 100);
		run.source[1].stored += 100;
		run.source[1].hits += 100;
		u.look_ns = 0;
		assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
		assert_int_equal(u.generation, i); /* control: with its name nothing happens */
		u.look_ns = 0;
		if (i == 0)
			assert_int_equal(rename(s->path, moved), 0);
		if (i == 1) {
			assert_int_equal(unlink(s->path), 0);
			assert_int_equal(unlink(wal), 0);
		}
		if (i < 2)
			assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	}
	retention_books(&u, &run, &run);
	assert_int_equal(nodedb_put_accounting(db, retention_session(&u), &run, NULL), 0);
	assert_int_equal(nodedb_session_end(db, retention_session(&u), (wall_time){9}, NULL), 0);
	retention_done(&u);
	scratch_close(db);
	assert_int_equal(rows_of(moved), 100);
	assert_int_equal(rows_of(s->path), 100);
	assert_int_equal(scratch_int(s->path, "SELECT max(seq) FROM events"), 300);
	assert_int_equal(scratch_files(s->folder, false), 2);
}

/* Its log is not left behind while somebody reads it: nothing would find the rows there again. */
static void test_a_reader_of_a_file_without_its_name(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	sql_db *reader = NULL;
	char moved[512];
	struct retention u;
	struct nodedb *db = start(s, &u, 0, 0);
	int64_t n;

	put(db, 10);
	assert_int_equal(sql_open_read(s->path, true, &reader, NULL, NULL), 0);
	assert_int_equal(sql_exec(reader, "BEGIN", NULL), 0);
	assert_int_equal(sql_get_int(reader, "SELECT count(*) FROM events", &n, NULL), 0);
	put(db, 5);
	run.source[1].stored = run.source[1].hits = 15;
	snprintf(moved, sizeof(moved), "%s.moved", s->path);
	assert_int_equal(rename(s->path, moved), 0);
	u.look_ns = 0;
	assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	assert_int_equal(u.generation, 0);
	assert_int_equal(sql_close(reader), 0);
	u.look_ns = 0;
	assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	assert_int_equal(u.generation, 1);
	put(db, 3);
	retention_done(&u);
	scratch_close(db);
	assert_int_equal(rows_of(moved), 15);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), 3);
}

static void test_another_file_of_its_name_stays(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	struct retention u;
	struct nodedb *db = start(s, &u, 0, 0);
	char moved[512], text[8] = "";

	snprintf(moved, sizeof(moved), "%s.moved", s->path);
	assert_int_equal(rename(s->path, moved), 0);
	scratch_write(s->path, "mine", 5);
	put(db, 10);
	assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	assert_int_equal(u.generation, 0);
	assert_true(u.said_replaced);
	retention_done(&u);
	scratch_close(db);
	FILE *f = fopen(s->path, "re");
	assert_int_equal(fread(text, 1, sizeof(text), f), 5);
	fclose(f);
	assert_string_equal(text, "mine");
	assert_int_equal(scratch_int(moved, "SELECT count(*) FROM events"), 10);
}

/* A link that leads nowhere has the name: it is somebody's, and not removed. */
static void test_a_link_of_its_name_stays(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	struct retention u;
	struct nodedb *db = start(s, &u, 0, 0);
	char moved[512], text[16] = "";

	put(db, 10);
	snprintf(moved, sizeof(moved), "%s.moved", s->path);
	assert_int_equal(rename(s->path, moved), 0);
	assert_int_equal(symlink("/nowhere/x", s->path), 0);
	u.look_ns = 0;
	assert_true(retention_step(&u, SIZE_MAX, &run, NULL) < 0);
	assert_int_equal(readlink(s->path, text, sizeof(text) - 1), 10);
	assert_string_equal(text, "/nowhere/x");
	assert_int_equal(unlink(s->path), 0);
	u.look_ns = 0;
	assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0); /* control: without it */
	put(db, 3);
	retention_done(&u);
	scratch_close(db);
	assert_int_equal(scratch_int(moved, "SELECT count(*) FROM events"), 10);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), 3);
}

static void test_ids_go_on_in_an_empty_file(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	struct retention u;
	struct nodedb *db = start(s, &u, 1, 2);

	put(db, 11);
	run.source[1].stored = 11;
	assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	assert_int_equal(u.generation, 1);
	retention_done(&u);
	scratch_close(db);
	db = scratch_open(s->path);
	put(db, 1);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT seq FROM events"), 12);
}

static void test_keeps_only_so_many(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	int64_t sum = 0;
	struct retention u;
	struct nodedb *db = start(s, &u, 1, 2);

	for (int i = 0; i < 5; i++) {
		put(db, 10);
		run.source[1].stored += 10;
		assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	}
	assert_int_equal(u.generation, 5);
	assert_int_equal(for_rolled(s, rows_of, &sum), 2);
	assert_int_equal(sum, 20);
	retention_done(&u);
	scratch_close(db);
}

static void test_waits_for_a_reader(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	sql_db *reader = NULL;
	int64_t sum = 0, n;
	struct retention u;
	struct nodedb *db = start(s, &u, 1, 2);

	put(db, 10);
	assert_int_equal(sql_open_read(s->path, true, &reader, NULL, NULL), 0);
	assert_int_equal(sql_exec(reader, "BEGIN", NULL), 0);
	assert_int_equal(sql_get_int(reader, "SELECT count(*) FROM events", &n, NULL), 0);
	put(db, 5); /* is in the log, which the reader must not lose */
	run.source[1].stored = 15;
	assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	assert_int_equal(u.generation, 0);
	assert_int_equal(retention_session(&u), 1); /* still the same */
	assert_int_equal(sql_exec(reader, "COMMIT", NULL), 0);
	u.retry_ns = 0;
	assert_int_equal(retention_step(&u, SIZE_MAX, &run, NULL), 0);
	assert_int_equal(u.generation, 1);
	/* the reader goes on in the old file, the writer in the new */
	put(db, 3);
	assert_int_equal(sql_get_int(reader, "SELECT count(*) FROM events", &n, NULL), 0);
	assert_int_equal(n, 15);
	assert_int_equal(sql_close(reader), 0);
	assert_int_equal(for_rolled(s, rows_of, &sum), 1);
	assert_int_equal(sum, 15);
	retention_done(&u);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), 3);
}

/* The new name cannot be used: the store goes on in the old file, in a new session. */
static void test_a_failed_rename(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	char blocked[256];

	snprintf(blocked, sizeof(blocked), "%s/taken", s->folder);
	scratch_write(blocked, "x", 1);
	put(db, 10);
	assert_int_equal(nodedb_roll(db, blocked, &err), -EEXIST);
	assert_non_null(strstr(err.text, "cannot rename"));
	put(db, 5);
	scratch_close(db);
	assert_int_equal(
		scratch_int(s->path, "SELECT count(*) = max(seq) AND count(*) = 15 FROM events"),
		1);
}

static void test_prunes(void **state)
{
	struct scratch *s = *state;
	struct accounting run = {0};
	struct session session = {.started.ns = 1};
	struct retention_config config = {.max_bytes = PRUNE_LIMIT_MIN};
	struct nodedb *db = scratch_open(s->path);
	struct retention u;
	int r;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(retention_init(&u, db, session.id, &config, NULL), 0);
	put(db, 20000);
	while ((r = retention_step(&u, SIZE_MAX, &run, NULL)) > 0)
		continue;
	assert_int_equal(r, 0);
	retention_done(&u);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) + (SELECT rows FROM pruned WHERE"
					      " table_name = 'events') FROM events"),
		20000);
	assert_true(scratch_int(s->path, "PRAGMA page_count") * 4096 <= PRUNE_LIMIT_MIN);
}

static int64_t processes_of(const char *path)
{
	return scratch_int(path, "SELECT count(*) FROM processes WHERE pid = 7");
}

static const struct event call = {.start.ns = 1000, .pid = 7, .source = 1};
static const struct process caller = {.pid = 7, .start_ticks = 1, .identity.launcher = ""};

static struct store_writer *start_writer(struct scratch *s, bool renews)
{
	struct session session = {.started.ns = 1};
	struct store_writer_config config = {.queue_events = 30000,
		.batch_events = 500,
		.retention = {.rollover_bytes = 400000, .rollover_keep = 100, .session = &session},
		.renews = renews};
	struct nodedb *db = scratch_open(s->path);
	struct store_writer *w;

	assert_int_equal(nodedb_session_begin(db, &session, NULL), 0);
	assert_int_equal(store_writer_start(db, session.id, &config, &w, NULL), 0);
	assert_true(store_writer_push_process(w, &caller, NULL));
	return w;
}

/* The queue has many files' rows, and nobody says that a file has what is told once. */
static int rolled_of_a_full_queue(struct scratch *s, bool renews)
{
	struct store_writer *w = start_writer(s, renews);
	int64_t sum = 0;
	int n;

	for (int i = 0; i < 30000; i++)
		store_writer_push(w, &call);
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, NULL), 0);
	n = for_rolled(s, processes_of, &sum);
	assert_int_equal(sum, 1); /* in the first */
	return n;
}

static void test_a_file_is_not_rolled_before_it_is_complete(void **state)
{
	assert_int_equal(rolled_of_a_full_queue(*state, true), 1);
}

static void test_without_such_a_promise_it_is(void **state)
{
	assert_true(rolled_of_a_full_queue(*state, false) > 2);
}

static void test_rolled_files_have_what_is_told_once(void **state)
{
	struct store_writer *w = start_writer(*state, true);
	uint64_t told = 0;
	int64_t sum = 0;
	int n;

	while (told < 4) {
		uint64_t now = store_writer_generation(w);

		store_writer_push(w, &call); /* faster than it is written: then there is no room */
		if (now == told)
			continue;
		told = now;
		assert_true(store_writer_push_process(w, &caller, NULL));
		assert_true(store_writer_push_renewed(w, told));
	}
	assert_int_equal(store_writer_stop(w, NULL, NULL, (wall_time){9}, NULL), 0);
	n = for_rolled(*state, processes_of, &sum);
	assert_true(n >= 4);
	assert_int_equal(sum, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rolls_over_with_books),
		TEST(test_goes_on_without_its_name),
		TEST(test_a_reader_of_a_file_without_its_name),
		TEST(test_another_file_of_its_name_stays),
		TEST(test_a_link_of_its_name_stays),
		TEST(test_ids_go_on_in_an_empty_file),
		TEST(test_keeps_only_so_many),
		TEST(test_waits_for_a_reader),
		TEST(test_a_failed_rename),
		TEST(test_prunes),
		TEST(test_a_file_is_not_rolled_before_it_is_complete),
		TEST(test_without_such_a_promise_it_is),
		TEST(test_rolled_files_have_what_is_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
