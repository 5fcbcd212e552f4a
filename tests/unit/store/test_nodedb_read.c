/* SPDX-License-Identifier: Apache-2.0 */
#include "published_fixture.h"
#include "store_fixture.h"

static void assert_refused(const char *path, int expected)
{
	struct nodedb_content c = {.event_count = 12345};
	struct errinfo err = {0};

	assert_int_equal(nodedb_read(path, NULL, &c, &err), expected);
	assert_int_equal(c.event_count, 12345); /* untouched */
	assert_non_null(strstr(err.text, path));
}

static void test_refusals(void **state)
{
	struct scratch *s = *state;
	char garbage[8192];

	assert_refused(s->path, -ENOENT);
	assert_refused(s->folder, -EISDIR);
	scratch_write(s->path, "", 0);
	assert_refused(s->path, -EBADMSG);
	memset(garbage, 'g', sizeof(garbage));
	scratch_write(s->path, garbage, sizeof(garbage));
	assert_refused(s->path, -EBADMSG);
	unlink(s->path);
	scratch_sql(s->path, "CREATE TABLE notes(a)");
	assert_refused(s->path, -EBADMSG);
	unlink(s->path);
	scratch_close(scratch_open(s->path));
	scratch_sql(s->path, "PRAGMA user_version = 99");
	assert_refused(s->path, -EBADMSG);
	assert_int_equal(scratch_files(s->folder, false), 1);
}

static void test_missing_columns(void **state)
{
	struct scratch *s = *state;

	scratch_sql(s->path, PUBLISHED_REST "CREATE TABLE events(id INTEGER, timestamp INTEGER);"
					    "CREATE TABLE sessions(id INTEGER);"
					    "INSERT INTO schema_info VALUES ('version', '0.8')");
	assert_refused(s->path, -EBADMSG);
}

static void test_damaged_files_never_crash(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	int opened = 0, refused = 0;
	uint32_t random = 1;
	size_t len;
	char *good;

	assert_int_equal(nodedb_batch_begin(db, &err), 0);
	for (int i = 0; i < 500; i++) {
		struct event e = {.start.ns = 1000 + i,
			.pid = 7,
			.tid = 7,
			.source = 1,
			.op = 3,
			.comm = "python3"};

		assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	}
	assert_int_equal(nodedb_batch_commit(db, &err), 0);
	scratch_close(db);
	good = scratch_bytes(s->path, &len);
	for (int i = 0; i < 300; i++) {
		struct nodedb_content c;
		size_t at;
		char old[8];
		int r;

		random = random * 1103515245 + 12345;
		at = (random >> 4) % (len - sizeof(old));
		if (i % 3 == 0)
			at %= 4096; /* the header and the schema more often */
		memcpy(old, good + at, sizeof(old));
		for (size_t k = 0; k < sizeof(old); k++)
			good[at + k] = (char)(random >> (k + 8));
		scratch_write(s->path, good, i % 10 == 9 ? len / 2 : len);
		memcpy(good + at, old, sizeof(old));
		r = nodedb_read(s->path, NULL, &c, &err);
		if (r == 0) {
			opened++;
			nodedb_content_done(&c);
		} else {
			refused++;
			assert_true(err.text[0]);
		}
	}
	free(good);
	assert_true(opened > 0 && refused > 0);
}

static void test_reads_beside_a_writer(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct event e = {.start.ns = 1000, .pid = 7, .tid = 7, .source = 1, .op = 3};
	struct nodedb_content c;

	for (size_t i = 1; i <= 3; i++) {
		assert_int_equal(nodedb_put_event(db, &e, &err), 0);
		assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
		assert_int_equal(c.event_count, i);
		nodedb_content_done(&c);
	}
	scratch_close(db);
}

/* Its owner lets others read the store. */
static void let_read(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		assert_int_equal(chmod(name, 0644), 0);
	}
}

/* A store that root is writing, read by somebody who may not write beside it. */
static void test_reads_beside_a_writer_without_rights(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	struct event e = {.start.ns = 1000, .pid = 7, .tid = 7, .source = 1, .op = 3};
	struct nodedb_content c;
	int status;
	pid_t pid;

	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	assert_int_equal(chmod(s->folder, 0755), 0);
	let_read(s->path);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(2);
		if (nodedb_read(s->path, NULL, &c, &err) < 0) {
			fprintf(stderr, "%s\n", err.text);
			_exit(1);
		}
		_exit(c.event_count == 1 ? 0 : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	scratch_close(db);
}

static void test_read_sql(void **state)
{
	struct nodedb_content c;
	struct errinfo err = {0};

	assert_int_equal(nodedb_read_sql(PUBLISHED_8
				 "INSERT INTO events(timestamp,pid,tid,source,op,duration) VALUES"
				 " (1000, 7, 7, 1, 3, 100), (1500, 7, 7, 5, 1, 200)",
				 NULL, &c, &err),
		0);
	assert_int_equal(c.event_count, 2);
	assert_int_equal(c.events[1].start.ns, 1300);
	nodedb_content_done(&c);
	assert_int_equal(nodedb_read_sql("CREATE TABLE x(", NULL, &c, &err), -EINVAL);
	assert_int_equal(nodedb_read_sql("", NULL, &c, &err), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_refusals),
		TEST(test_missing_columns),
		TEST(test_damaged_files_never_crash),
		TEST(test_reads_beside_a_writer),
		TEST(test_reads_beside_a_writer_without_rights),
		cmocka_unit_test(test_read_sql),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
