/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include <signal.h>
#include <sys/resource.h>

static struct event full_event(void)
{
	return (struct event){
		.start.ns = 1700000000000000001,
		.dur_ns = 123456789,
		.pid = 4194304,
		.tid = UINT32_MAX,
		.source = SOURCE_DRIVER,
		.op = 18,
		.flags = UINT16_MAX,
		.cpu = 191,
		.weight = 77,
		.ret = -5,
		.device = -1,
		.arg0 = UINT64_MAX,
		.arg1 = 1ULL << 63,
		.stream = 0xffff800012345678,
		.cgroup_id = UINT64_MAX - 3,
		.stack_hash = 0x8000000000000001,
		.wait_ns = 42,
		.peer_pid = 9,
		.dev = 0xfff00001,
		.comm = "\x01\x1b[31m\xff\xc3\xbc'\"",
		.peer_comm = "123456789012345",
	};
}

static void test_every_field_round_trips(void **state)
{
	struct scratch *s = *state;
	struct event e = full_event();
	struct nodedb_content c;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);
	char *id;

	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	assert_int_equal(e.seq, 1);
	scratch_close(db);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0);
	assert_int_equal(c.event_count, 1);
	assert_int_equal(c.skipped_rows, 0);
	assert_string_equal(c.schema, "0.11");
	assert_memory_equal(&c.events[0].comm, e.comm, COMM_LEN);
	assert_memory_equal(&c.events[0].peer_comm, e.peer_comm, COMM_LEN);
#define SAME(field) assert_true(c.events[0].field == e.field)
	SAME(start.ns);
	SAME(dur_ns);
	SAME(seq);
	SAME(pid);
	SAME(tid);
	SAME(source);
	SAME(op);
	SAME(flags);
	SAME(cpu);
	SAME(weight);
	SAME(ret);
	SAME(device);
	SAME(arg0);
	SAME(arg1);
	SAME(stream);
	SAME(cgroup_id);
	SAME(stack_hash);
	SAME(wait_ns);
	SAME(peer_pid);
	SAME(dev);
#undef SAME
	nodedb_content_done(&c);
	id = scratch_text(s->path, "SELECT id FROM events WHERE stack_ips = '' AND rank IS NULL");
	assert_string_equal(id, "n1:1");
	free(id);
}

static void test_seq_goes_on_and_survives_rollback(void **state)
{
	struct scratch *s = *state;
	struct event e = full_event();
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);

	assert_int_equal(nodedb_batch_begin(db, &err), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	assert_int_equal(nodedb_batch_commit(db, &err), 0);
	assert_int_equal(e.seq, 5);
	assert_int_equal(nodedb_batch_begin(db, &err), 0);
	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	nodedb_batch_rollback(db);
	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	assert_int_equal(e.seq, 6);
	assert_true(nodedb_size(db) > 4096);
	scratch_close(db);
	assert_int_equal(scratch_files(s->folder, false), 1); /* no -wal, -shm, .lock */
	db = scratch_open(s->path);
	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	assert_int_equal(e.seq, 7);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), 7);
}

static void test_sessions(void **state)
{
	struct scratch *s = *state;
	struct session a = {.started.ns = 100, .kernel = "6.18", .cpu_cores = 4, .flags = "x"},
		       b = a;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path);

	assert_int_equal(nodedb_session_begin(db, &a, &err), 0);
	assert_int_equal(nodedb_session_begin(db, &b, &err), 0);
	assert_true(b.id > a.id && a.id > 0);
	assert_int_equal(nodedb_session_end(db, a.id, (wall_time){200}, &err), 0);
	scratch_close(db);
	assert_int_equal(scratch_int(s->path, "SELECT stopped_at FROM sessions WHERE id = 1"), 200);
	assert_int_equal(scratch_int(s->path, "SELECT stopped_at FROM sessions WHERE id = 2"), 0);
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM sessions WHERE node = 'n1' AND"
					      " kernel = '6.18' AND cpu_cores = 4"),
		2);
}

static void test_second_writer_is_refused(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = scratch_open(s->path), *other = NULL;

	assert_int_equal(nodedb_open(s->path, "n1", &other, &err), -EBUSY);
	assert_null(other);
	assert_non_null(strstr(err.text, "process"));
	scratch_close(db);
	scratch_close(scratch_open(s->path)); /* free again */
}

/* Opening must fail with @expected and leave the folder and the file as they are. */
static void assert_refused(struct scratch *s, int expected)
{
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	size_t before_len, after_len;
	char *before = scratch_bytes(s->path, &before_len), *after;
	int files = scratch_files(s->folder, false);

	assert_int_equal(nodedb_open(s->path, "n1", &db, &err), expected);
	assert_null(db);
	assert_non_null(strstr(err.text, s->path));
	after = scratch_bytes(s->path, &after_len);
	assert_int_equal(before_len, after_len);
	assert_memory_equal(before, after, before_len);
	assert_int_equal(scratch_files(s->folder, false), files);
	free(before);
	free(after);
}

static void test_refusals_change_nothing(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	char garbage[5000];

	memset(garbage, 'x', sizeof(garbage));
	scratch_write(s->path, garbage, sizeof(garbage));
	assert_refused(s, -EBADMSG);
	unlink(s->path);

	scratch_close(scratch_open(s->path)); /* positive control, then a newer one */
	scratch_sql(s->path, "PRAGMA user_version = 99");
	assert_refused(s, -EBADMSG);
	unlink(s->path);

	scratch_sql(s->path, "CREATE TABLE other(a)");
	assert_refused(s, -EBADMSG);
	unlink(s->path);

	scratch_sql(s->path, "CREATE TABLE events(id INTEGER PRIMARY KEY);"
			     "CREATE TABLE schema_info(key, value); CREATE TABLE sessions(a);"
			     "CREATE TABLE causal_chains(a); CREATE TABLE system_snapshots(a);"
			     "INSERT INTO schema_info VALUES ('version', '0.10');"
			     "PRAGMA user_version = 10");
	assert_refused(s, -EBADMSG);

	assert_int_equal(nodedb_open(s->folder, "n1", &db, &err), -EISDIR);
	snprintf(s->path, sizeof(s->path), "%s/a/b/c.db", s->folder);
	assert_int_equal(nodedb_open(s->path, "n1", &db, &err), -ENOENT);
}

/* Runs @body as an ordinary user in a child; true if it returned true. */
static bool as_somebody(struct scratch *s, bool (*body)(struct scratch *))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(2);
		_exit(body(s) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool open_is_denied(struct scratch *s)
{
	struct errinfo err = {0};
	struct nodedb *db = NULL;

	return nodedb_open(s->path, "n1", &db, &err) == -EACCES && strstr(err.text, s->folder);
}

static bool read_works(struct scratch *s)
{
	struct nodedb_content c;
	struct errinfo err = {0};

	if (nodedb_read(s->path, NULL, &c, &err) < 0 || c.event_count != 1)
		return false;
	nodedb_content_done(&c);
	return true;
}

static void test_read_only_folder(void **state)
{
	struct scratch *s = *state;
	struct event e = full_event();
	struct errinfo err = {0};
	struct nodedb *db;

	assert_int_equal(chmod(s->folder, 0555), 0);
	assert_true(as_somebody(s, open_is_denied)); /* cannot create */
	assert_int_equal(chmod(s->folder, 0755), 0);
	assert_int_equal(scratch_files(s->folder, false), 0);
	db = scratch_open(s->path);
	assert_int_equal(nodedb_put_event(db, &e, &err), 0);
	scratch_close(db);
	assert_int_equal(chmod(s->path, 0444), 0);
	assert_int_equal(chmod(s->folder, 0555), 0);
	assert_true(as_somebody(s, open_is_denied)); /* cannot write */
	assert_true(as_somebody(s, read_works));     /* but read */
	assert_int_equal(chmod(s->folder, 0755), 0);
	assert_int_equal(scratch_files(s->folder, false), 1);
}

/* With no room for the tables (a file may not exceed @bytes), opening leaves nothing. */
static bool full_disk(struct scratch *s, rlim_t bytes)
{
	struct rlimit limit = {bytes, RLIM_INFINITY};
	struct errinfo err = {0};
	struct nodedb *db = NULL;
	int r;

	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &limit) < 0)
		return false;
	r = nodedb_open(s->path, "n1", &db, &err);
	return r == -ENOSPC && strstr(err.text, "no space");
}

static bool new_on_full_disk(struct scratch *s)
{
	return full_disk(s, 8192) && scratch_files(s->folder, false) == 0 && full_disk(s, 0) &&
	       scratch_files(s->folder, false) == 0;
}

static bool empty_on_full_disk(struct scratch *s)
{
	struct stat st;

	return full_disk(s, 8192) && scratch_files(s->folder, false) == 1 &&
	       stat(s->path, &st) == 0 && st.st_size == 0;
}

static void test_full_disk_leaves_nothing_partial(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(chmod(s->folder, 01777), 0);
	assert_true(as_somebody(s, new_on_full_disk));
	assert_int_equal(scratch_files(s->folder, false), 0);
	scratch_write(s->path, "", 0);
	assert_int_equal(chmod(s->path, 0666), 0);
	assert_true(as_somebody(s, empty_on_full_disk));
	scratch_close(scratch_open(s->path)); /* an empty file is taken when there is room */
	assert_int_equal(scratch_int(s->path, "PRAGMA user_version"), 11);
}

static void test_killed_writer_loses_only_its_open_batch(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct errinfo err = {0};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct event e = full_event();
		struct nodedb *db = NULL;
		int r = nodedb_open(s->path, "n1", &db, &err);

		r = r < 0 ? r : nodedb_batch_begin(db, &err);
		for (int i = 0; r >= 0 && i < 100; i++)
			r = nodedb_put_event(db, &e, &err);
		r = r < 0 ? r : nodedb_batch_commit(db, &err);
		r = r < 0 ? r : nodedb_batch_begin(db, &err);
		for (int i = 0; r >= 0 && i < 50; i++)
			r = nodedb_put_event(db, &e, &err);
		kill(getpid(), r < 0 ? SIGABRT : SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(nodedb_read(s->path, NULL, &c, &err), 0); /* from the -wal */
	assert_int_equal(c.event_count, 100);
	nodedb_content_done(&c);
	scratch_close(scratch_open(s->path));
	assert_int_equal(scratch_int(s->path, "SELECT count(*) FROM events"), 100);
	assert_int_equal(scratch_files(s->folder, false), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_field_round_trips),
		TEST(test_seq_goes_on_and_survives_rollback),
		TEST(test_sessions),
		TEST(test_second_writer_is_refused),
		TEST(test_refusals_change_nothing),
		TEST(test_read_only_folder),
		TEST(test_full_disk_leaves_nothing_partial),
		TEST(test_killed_writer_loses_only_its_open_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
