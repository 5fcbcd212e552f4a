/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

static void test_write_settings(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_db *db = NULL;
	int64_t v;

	scratch_write(s->path, "", 0);
	assert_int_equal(sql_open_write(s->path, &db, &err), 0);
	assert_int_equal(sql_exec(db, "CREATE TABLE t(a)", &err), 0);
	assert_int_equal(sql_get_int(db, "PRAGMA auto_vacuum", &v, &err), 0);
	assert_int_equal(v, 2);
	assert_int_equal(sql_get_int(db, "PRAGMA synchronous", &v, &err), 0);
	assert_int_equal(v, 1);
	assert_int_equal(sql_get_int(db, "PRAGMA secure_delete", &v, &err), 0);
	assert_int_equal(v, 0);
	assert_int_equal(sql_get_int(db, "PRAGMA trusted_schema", &v, &err), 0);
	assert_int_equal(v, 0);
	assert_int_equal(sql_get_int(db, "PRAGMA busy_timeout", &v, &err), 0);
	assert_int_equal(v, 5000);
	assert_int_equal(
		sql_get_int(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &v, &err),
		0);
	assert_int_equal(v, 1);
	assert_int_equal(sql_close(db), 0);
	assert_int_equal(scratch_files(s->folder, false), 1); /* no -wal, no -shm left */
}

static void test_fresh(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_db *db = NULL;
	int64_t v;

	assert_int_equal(sql_open_fresh(s->path, &db, &err), -ENOENT);
	scratch_write(s->path, "", 0);
	assert_int_equal(sql_open_fresh(s->path, &db, &err), 0);
	assert_int_equal(
		sql_exec(db, "BEGIN; CREATE TABLE t(a); INSERT INTO t VALUES (1)", &err), 0);
	assert_int_equal(scratch_files(s->folder, false), 1); /* no journal */
	assert_int_equal(sql_exec(db, "COMMIT", &err), 0);
	assert_int_equal(sql_get_int(db, "PRAGMA trusted_schema", &v, &err), 0);
	assert_int_equal(v, 0);
	assert_int_equal(sql_close(db), 0);
	assert_int_equal(scratch_int(s->path, "SELECT a FROM t"), 1);
}

static void test_read_is_read_only_and_leaves_nothing(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct sql_stamp stamp;
	size_t before_len, after_len;
	char *before, *after;
	sql_db *db = NULL;
	int64_t v;

	scratch_sql(s->path, "CREATE TABLE t(a); INSERT INTO t VALUES (5)");
	before = scratch_bytes(s->path, &before_len);
	assert_int_equal(sql_open_read(s->path, false, &db, &stamp, &err), 0);
	assert_true(stamp.frozen);
	assert_int_equal(sql_get_int(db, "SELECT a FROM t", &v, &err), 0);
	assert_int_equal(v, 5);
	assert_int_equal(scratch_files(s->folder, false), 1);
	assert_true(sql_exec(db, "INSERT INTO t VALUES (6)", &err) < 0);
	assert_true(sql_exec(db, "WITH x AS (SELECT 1) DELETE\tFROM t", &err) < 0);
	assert_true(sql_exec(db, "ATTACH ':memory:' AS x", &err) < 0);
	assert_int_equal(sql_close(db), 0);
	assert_false(sql_stamp_changed(s->path, &stamp));
	after = scratch_bytes(s->path, &after_len);
	assert_int_equal(before_len, after_len);
	assert_memory_equal(before, after, before_len);
	free(before);
	free(after);
	/* the same statements succeed without the guard */
	scratch_sql(s->path, "INSERT INTO t VALUES (6); WITH x AS (SELECT 1) DELETE\tFROM t");
	assert_true(sql_stamp_changed(s->path, &stamp));
}

static void test_live_writer_is_seen(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct sql_stamp stamp;
	sql_db *writer = NULL, *reader = NULL;
	int64_t v;

	scratch_write(s->path, "", 0);
	assert_int_equal(sql_open_write(s->path, &writer, &err), 0);
	assert_int_equal(sql_exec(writer, "CREATE TABLE t(a); INSERT INTO t VALUES (1)", &err), 0);
	assert_int_equal(sql_open_read(s->path, false, &reader, &stamp, &err), 0);
	assert_false(stamp.frozen);
	assert_int_equal(sql_get_int(reader, "SELECT count(*) FROM t", &v, &err), 0);
	assert_int_equal(v, 1);
	assert_int_equal(sql_exec(writer, "INSERT INTO t VALUES (2)", &err), 0);
	assert_int_equal(sql_get_int(reader, "SELECT count(*) FROM t", &v, &err), 0);
	assert_int_equal(v, 2);
	assert_int_equal(sql_close(reader), 0);
	assert_int_equal(sql_close(writer), 0);
}

static void test_foreign_triggers_and_views_do_not_run(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_db *db = NULL;
	int64_t v;

	scratch_sql(s->path,
		"CREATE TABLE t(a); CREATE TABLE hits(a);"
		"CREATE VIEW v AS SELECT 1 AS a;"
		"CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO hits VALUES (1); END;");
	assert_int_equal(sql_open_write(s->path, &db, &err), 0);
	assert_int_equal(sql_exec(db, "INSERT INTO t VALUES (1)", &err), 0);
	assert_int_equal(sql_get_int(db, "SELECT count(*) FROM hits", &v, &err), 0);
	assert_int_equal(v, 0);
	assert_int_equal(sql_get_int(db, "SELECT count(*) FROM t", &v, &err), 0);
	assert_int_equal(v, 1);
	assert_true(sql_get_int(db, "SELECT a FROM v", &v, &err) < 0);
	assert_int_equal(sql_close(db), 0);
}

static void test_refusals(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_db *db = NULL;
	int64_t v;

	assert_int_equal(sql_open_read(s->path, false, &db, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, s->path));
	assert_int_equal(sql_open_read(s->folder, false, &db, NULL, &err), -EISDIR);
	assert_int_equal(sql_open_write(s->path, &db, &err), -ENOENT);
	assert_int_equal(mkfifo(s->path, 0600), 0); /* must not wait for a writer */
	assert_int_equal(sql_open_read(s->path, false, &db, NULL, &err), -EBADMSG);
	unlink(s->path);
	scratch_write(s->path, "this is a text and no database, whatever its name says", 54);
	assert_null(db);
	if (sql_open_read(s->path, false, &db, NULL, &err) == 0) {
		assert_int_equal(
			sql_get_int(db, "SELECT count(*) FROM sqlite_schema", &v, &err), -EBADMSG);
		assert_int_equal(sql_close(db), 0);
	}
}

/* A journal can name a file that SQLite removes once it has undone the change: reading leaves both alone, and says so. */
static void test_a_journal_is_not_undone(void **state)
{
	static const unsigned char magic[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
	struct scratch *s = *state;
	struct errinfo err = {0};
	char path[128], victim[128];
	unsigned char journal[1024] = {0}, *p = journal + 512;
	uint32_t sum = 0, len;
	sql_db *db = NULL;
	int64_t v;

	snprintf(path, sizeof(path), "%s-journal", s->path);
	snprintf(victim, sizeof(victim), "%s/victim", s->folder);
	scratch_sql(s->path, "CREATE TABLE t(a); INSERT INTO t VALUES (5)");
	for (int trusting = 0; trusting < 2; trusting++) {
		scratch_write(victim, "precious", 8);
		/* no pages; then the journal that is above this one, as SQLite's "super-journal" */
		memcpy(journal, magic, 8);
		journal[19] = 3;    /* pages of the database */
		journal[22] = 2;    /* 512 bytes a sector */
		journal[26] = 0x10; /* 4,096 a page */
		len = (uint32_t)strlen(victim);
		p = journal + 512;
		memcpy(p, (unsigned char[]){0x00, 0x04, 0x00, 0x01},
			4); /* the page that holds the lock */
		memcpy(p + 4, victim, len);
		sum = 0;
		for (uint32_t i = 0; i < len; i++)
			sum += (uint32_t)victim[i];
		p += 4 + len;
		for (int i = 0; i < 4; i++) {
			p[i] = (unsigned char)(len >> (24 - 8 * i));
			p[4 + i] = (unsigned char)(sum >> (24 - 8 * i));
		}
		memcpy(p + 8, magic, 8);
		scratch_write(path, (char *)journal, (size_t)(p + 16 - journal));
		if (trusting) { /* control: who may write undoes it */
			scratch_sql(s->path, "INSERT INTO t VALUES (6)");
			assert_int_equal(access(victim, F_OK), -1);
			continue;
		}
		assert_int_equal(sql_open_read(s->path, false, &db, NULL, &err), 0);
		assert_int_equal(sql_get_int(db, "SELECT count(*) FROM t", &v, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "-journal"));
		assert_int_equal(sql_close(db), 0);
		assert_int_equal(access(victim, F_OK), 0);
		assert_int_equal(access(path, F_OK), 0);
	}
}

static void test_odd_names(void **state)
{
	static const char *const names[] = {
		"a b?mode=memory#x.db", "100%25.db", "file:x.db", ":memory:", "ü\x01.db"};
	struct scratch *s = *state;
	char home[512], path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->folder, names[i]);
		scratch_sql(path, "CREATE TABLE t(a); INSERT INTO t VALUES (3)");
		assert_int_equal(access(path, F_OK), 0);
		assert_int_equal(scratch_int(path, "SELECT a FROM t"), 3);
		assert_int_equal(scratch_files(s->folder, false), (int)i + 1);
	}
	/* relative, and a leading double slash */
	assert_non_null(getcwd(home, sizeof(home)));
	assert_int_equal(chdir(s->folder), 0);
	assert_int_equal(scratch_int(":memory:", "SELECT a FROM t"), 3);
	assert_int_equal(scratch_int("file:x.db", "SELECT a FROM t"), 3);
	assert_int_equal(chdir(home), 0);
	snprintf(path, sizeof(path), "/%s/%s", s->folder, names[1]);
	assert_int_equal(scratch_int(path, "SELECT a FROM t"), 3);
}

/* A copy that was broken off is told from a file whose bytes are wrong. */
static void test_cut_short(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct sql_stamp stamp;
	sql_db *db = NULL;
	int64_t v;
	int r;

	scratch_sql(s->path,
		"CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100000)); CREATE TABLE u(a);");
	assert_int_equal(truncate(s->path, 8192), 0);
	r = sql_open_read(s->path, false, &db, &stamp, &err);
	if (r == 0)
		r = sql_get_int(db, "SELECT count(*) FROM t", &v, &err);
	assert_int_equal(r, -EBADMSG);
	assert_non_null(strstr(err.text, " is cut short: it has 8192 of "));
	if (db)
		sql_close(db);
}

/* Whether this process has a lock on the file: the question of another one. */
static bool is_locked(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open(path, O_RDWR);

		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 ? 2 : lock.l_type != F_UNLCK);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_in_range(WEXITSTATUS(status), 0, 1);
	return WEXITSTATUS(status) == 1;
}

/* To find out why a file cannot be read costs no other connection of this process its locks. */
static void test_cut_short_while_it_is_locked(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_db *held = NULL, *db = NULL;
	int64_t v;

	scratch_sql(s->path,
		"CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100000)); CREATE TABLE u(a);");
	assert_false(is_locked(s->path));
	assert_int_equal(sql_open_read(s->path, true, &held, NULL, &err), 0);
	assert_int_equal(sql_exec(held, "BEGIN", &err), 0);
	assert_int_equal(sql_get_int(held, "SELECT count(*) FROM u", &v, &err), 0);
	assert_true(is_locked(s->path));
	assert_int_equal(truncate(s->path, 8192), 0);
	assert_int_equal(sql_open_read(s->path, true, &db, NULL, &err), 0);
	assert_int_equal(sql_get_int(db, "SELECT count(*) FROM t", &v, &err), -EBADMSG);
	assert_non_null(strstr(err.text, " is cut short: it has 8192 of "));
	assert_true(is_locked(s->path));
	sql_close(db);
	sql_close(held);
}

/* A number of pages that an old SQLite left behind says nothing of the file. */
static void test_size_that_does_not_count(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	sql_db *db = NULL;
	int64_t v;
	int fd;

	scratch_sql(s->path, "CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100000));");
	assert_int_equal(truncate(s->path, 8192), 0);
	fd = open(s->path, O_WRONLY);
	assert_int_equal(pwrite(fd, "\xff\xff\xff\xff", 4, 92), 4);
	close(fd);
	assert_int_equal(sql_open_read(s->path, false, &db, NULL, &err), 0);
	assert_int_equal(sql_get_int(db, "SELECT max(hex(a)) FROM t", &v, &err), -EBADMSG);
	assert_non_null(strstr(err.text, " is damaged ("));
	sql_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_write_settings),
		TEST(test_fresh),
		TEST(test_read_is_read_only_and_leaves_nothing),
		TEST(test_live_writer_is_seen),
		TEST(test_foreign_triggers_and_views_do_not_run),
		TEST(test_cut_short),
		TEST(test_cut_short_while_it_is_locked),
		TEST(test_size_that_does_not_count),
		TEST(test_refusals),
		TEST(test_a_journal_is_not_undone),
		TEST(test_odd_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
