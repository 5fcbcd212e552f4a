/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_mark.c - what was delivered is known after a restart, whatever the writer was doing when it ended. */
#include "store_fixture.h"

#include <unistd.h>

#include "node/push/pusher_private.h"

static char *on_disk; /* what a power cut leaves: all that was written before the last sync */
static size_t on_disk_len;
static unsigned folder_syncs;

int fdatasync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	on_disk_len = (size_t)st.st_size;
	on_disk = realloc(on_disk, on_disk_len + 1);
	assert_true(pread(fd, on_disk, on_disk_len, 0) == st.st_size);
	return 0;
}

int fsync(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	folder_syncs += S_ISDIR(st.st_mode);
	return 0;
}

static struct pusher_note note(uint64_t number)
{
	return (struct pusher_note){.stream = 7,
		.number = number,
		.count = 3 * number,
		.chain_ns = 11,
		.at = {.dev = 1, .ino = 2, .row = (int64_t)(100 * number), .row_ns = 5}};
}

static void write_note(struct pusher_mark *m, uint64_t number, const char *batch)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1000);
	const struct pusher_note n = note(number);

	buf_puts(&b, batch);
	assert_int_equal(pusher_mark_write(m, &n, *batch ? &b : NULL), 0);
}

/* As the next agent finds it. */
static void expect(const char *path, uint64_t number, const char *batch)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PUSHER_MARK_SLOT);
	struct pusher_note got, want = note(number);
	struct pusher_mark m;

	assert_int_equal(pusher_mark_open(&m, path, 0, &got, &b, NULL), number != 0);
	if (number)
		assert_memory_equal(&got, &want, sizeof(got));
	assert_string_equal(buf_str(&b), batch);
	pusher_mark_close(&m);
}

static void open_new(struct pusher_mark *m, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(PUSHER_MARK_SLOT);
	struct pusher_note n;

	assert_int_equal(pusher_mark_open(m, path, 0, &n, &b, NULL), 0);
	assert_false(m->has_note);
}

static void survives(void **state)
{
	struct scratch *s = *state;
	struct pusher_mark m;
	struct pusher_note n;
	struct stat st;

	assert_int_equal(pusher_mark_peek(s->path, &n, NULL), 0);
	open_new(&m, s->path);
	assert_int_equal(stat(s->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	write_note(&m, 1, "the first");
	pusher_mark_close(&m);
	expect(s->path, 1, "the first");
}

/* A path that was mistyped: what is there stays. */
static void other_files_stay(void **state)
{
	static const char text[] = "SQLite format 3, or somebody's thesis";
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct scratch *s = *state;
	struct errinfo e = {0};
	struct pusher_mark m;
	struct pusher_note n;
	size_t len;
	char *now;

	scratch_write(s->path, text, sizeof(text));
	assert_int_equal(pusher_mark_open(&m, s->path, 0, &n, &b, &e), -EEXIST);
	assert_non_null(strstr(e.text, "another file"));
	assert_int_equal(pusher_mark_write(&m, &(struct pusher_note){0}, NULL), 0); /* nowhere */
	now = scratch_bytes(s->path, &len);
	assert_int_equal(len, sizeof(text));
	assert_memory_equal(now, text, len);
	free(now);
	scratch_write(s->path, "", 0); /* control */
	open_new(&m, s->path);
	pusher_mark_close(&m);
}

static void newest_counts(void **state)
{
	struct scratch *s = *state;
	struct pusher_mark m;
	struct pusher_note n;

	open_new(&m, s->path);
	for (uint64_t i = 1; i < 6; i++) {
		write_note(&m, i, "under way");
		write_note(&m, i, "");
	}
	assert_int_equal(pusher_mark_peek(s->path, &n, NULL), 1);
	assert_true(n.number == 5);
	pusher_mark_close(&m);
	expect(s->path, 5, "");
}

static void one_at_a_time(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct pusher_mark m, second;
	struct errinfo e = {0};
	struct pusher_note n;

	open_new(&m, s->path);
	assert_int_equal(pusher_mark_open(&second, s->path, 1, &n, &b, &e), -EBUSY);
	assert_non_null(strstr(e.text, "another fleet-push"));
	pusher_mark_close(&m);
	open_new(&second, s->path); /* control: it was the first one */
	pusher_mark_close(&second);
}

/* Each byte of the newest slot in turn: the note before it counts. */
static void damage(void **state)
{
	struct scratch *s = *state;
	struct pusher_mark m;
	char byte, start[16];
	int fd;

	open_new(&m, s->path);
	write_note(&m, 1, "first"); /* slot 1 */
	write_note(&m, 2, "last");  /* slot 0 */
	pusher_mark_close(&m);
	fd = open(s->path, O_RDWR | O_CLOEXEC);
	for (off_t at = 0; at < 100; at++) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		expect(s->path, 1, "first");
		byte ^= 4;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	expect(s->path, 2, "last"); /* control */
	assert_int_equal(pread(fd, start, sizeof(start), 0), sizeof(start));
	assert_int_equal(pwrite(fd, "no mark begins so", sizeof(start), 0), sizeof(start));
	expect(s->path, 1, "first"); /* the other slot is whole */
	assert_int_equal(pwrite(fd, start, sizeof(start), 0), sizeof(start));
	assert_int_equal(ftruncate(fd, 50), 0);
	expect(s->path, 0, "");
	close(fd);
}

static void cut_power(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_true(fwrite(on_disk, 1, on_disk_len, f) == on_disk_len);
	fclose(f);
}

/* A batch is known before anybody could have sent it; that it was answered need not be. */
static void power_cut(void **state)
{
	struct scratch *s = *state;
	struct pusher_mark m;

	folder_syncs = 0;
	open_new(&m, s->path);
	assert_true(folder_syncs > 0);
	write_note(&m, 1, "first");
	write_note(&m, 1, "");
	write_note(&m, 2, "second");
	pusher_mark_close(&m);
	cut_power(s->path);
	expect(s->path, 2, "second");

	assert_int_equal(unlink(s->path), 0);
	open_new(&m, s->path);
	write_note(&m, 1, "first");
	write_note(&m, 1, "");
	pusher_mark_close(&m);
	expect(s->path, 1, ""); /* control: with power */
	cut_power(s->path);
	expect(s->path, 1, "first");
	free(on_disk);
	on_disk = NULL;
}

static void no_stranger_is_followed(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(100);
	struct pusher_note n;
	struct pusher_mark m;
	char link[128];

	snprintf(link, sizeof(link), "%s/link", s->folder);
	assert_int_equal(symlink(s->path, link), 0);
	assert_int_equal(pusher_mark_open(&m, link, 0, &n, &b, NULL), -ELOOP);
	assert_true(access(s->path, F_OK) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(survives, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(other_files_stay, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(newest_counts, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(one_at_a_time, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(damage, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(power_cut, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			no_stranger_is_followed, scratch_setup, scratch_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
