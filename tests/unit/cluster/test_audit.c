/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cluster/tenant/audit.h"
#include "net/server/token.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char dir[64], path[80], older[84];

static int make_folder(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/test-audit-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/audit.log", dir);
	snprintf(older, sizeof(older), "%s.1", path);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int remove_files(void **state)
{
	(void)state;
	unlink(path);
	unlink(older);
	return 0;
}

static struct audit *open_file(void)
{
	struct audit *a = NULL;
	struct errinfo e = {0};

	if (audit_open(path, &a, &e) < 0)
		fail_msg("%s", e.text);
	return a;
}

static int say(struct audit *a, const char *text)
{
	return audit_write(a, &(struct audit_entry){.wall_ns = 1774360124500000000,
				      .key_name = "training",
				      .credential = token_number(TOKEN, strlen(TOKEN)),
				      .peer = "127.0.0.1",
				      .action = "sql",
				      .text = text,
				      .status = 200,
				      .rows = 3,
				      .bytes = 120,
				      .ns = 4500000});
}

static void write_three(void)
{
	_cleanup_(audit_freep) struct audit *a = open_file();

	assert_int_equal(say(a, "SELECT 1"), 0);
	assert_int_equal(say(a, "SELECT\n\"2\" \x1b[2J \xff"), 0);
	assert_int_equal(say(a, NULL), 0);
}

static struct audit_span verify(const char *file)
{
	struct audit_span s = {0};
	struct errinfo e = {0};

	if (audit_verify(file, NULL, &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

static void load(struct buf *b)
{
	buf_clear(b);
	assert_int_equal(file_read(path, 1 << 20, b), 0);
}

static void store(const void *data, size_t len)
{
	assert_int_equal(file_write_atomic(path, data, len, 0600), 0);
}

static void test_lines(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct audit_span s;
	struct stat st;

	(void)state;
	write_three();
	s = verify(path);
	assert_int_equal(s.first, 1);
	assert_int_equal(s.last, 3);
	assert_false(s.is_torn);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, s.bytes);
	load(&b);
	assert_non_null(strstr(b.data,
		"{\"seq\":1,\"time\":\"2026-03-24T13:48:44.500000000Z\",\"bearer_key_name\":\"training\",\"bearer_hash\":\"a8ae6e6e\",\"peer\":\"127.0.0.1\","));
	assert_non_null(strstr(b.data, "\"text\":\"SELECT 1\",\"status\":200,\"rows\":3,"));
	assert_null(strstr(b.data, TOKEN));
	assert_null(strstr(b.data, "\x1b"));
	/* it goes on where it ended */
	write_three();
	assert_int_equal(verify(path).last, 6);
}

/* Whatever byte is changed: the chain breaks there, or its head is another. */
static void test_changed_bytes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct audit_span s, changed;
	size_t third;
	int seen = 0;

	(void)state;
	write_three();
	s = verify(path);
	assert_int_equal(audit_verify(path, s.head, &changed, NULL), 0);
	assert_true(changed.has_noted);
	load(&b);
	third = (size_t)((char *)memrchr(b.data, '\n', b.len - 1) - b.data) + 1;
	for (size_t i = 0; i < b.len; i++) {
		int r;

		b.data[i] ^= 1;
		store(b.data, b.len);
		b.data[i] ^= 1;
		r = audit_verify(path, s.head, &changed, NULL);
		assert_true(r == -EBADMSG || (r == 0 && !changed.has_noted));
		assert_true(r == -EBADMSG || i >= third);
		seen += r == -EBADMSG;
	}
	assert_true(seen > (int)third);
}

static void test_moved_lines(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	static const char *const orders[] = {
		"023", "032", "0213", "01123", "13", "2", "21", "0123"};
	const char *line[4];
	size_t len[4];
	struct errinfo e = {0};
	struct audit_span s;

	(void)state;
	write_three();
	{
		_cleanup_(audit_freep) struct audit *a = open_file();

		assert_int_equal(say(a, "SELECT 4"), 0);
	}
	load(&b);
	for (size_t i = 0, at = 0; i < 4; i++) {
		line[i] = b.data + at;
		len[i] = strcspn(line[i], "\n") + 1;
		at += len[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		int r;

		buf_clear(&out);
		for (const char *p = orders[i]; *p; p++)
			buf_append(&out, line[*p - '0'], len[*p - '0']);
		store(out.data, out.len);
		r = audit_verify(path, NULL, &s, &e);
		if (!strcmp(orders[i], "2")) { /* a file may be the rest of another: it says so */
			assert_int_equal(r, 0);
			assert_int_equal(s.first, 3);
		} else if (!strcmp(orders[i], "0123")) { /* the control */
			assert_int_equal(r, 0);
		} else {
			assert_int_equal(r, -EBADMSG);
			assert_non_null(strstr(e.text, "line "));
		}
	}
	store("hello\n", 6);
	assert_int_equal(audit_verify(path, NULL, &s, &e), -EBADMSG);
	assert_int_equal(audit_open(path, &(struct audit *){NULL}, &e), -EBADMSG);
	assert_int_equal(e.exit_code, EXIT_BAD_DATA);
}

static void test_torn_tail(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	size_t second;

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	write_three();
	load(&b);
	second = (size_t)((char *)memrchr(b.data, '\n', b.len - 1) - b.data) + 1;
	for (size_t n = second; n < b.len; n++) {
		struct audit *a;

		store(b.data, n);
		assert_int_equal(verify(path).is_torn, n > second);
		a = open_file();
		assert_int_equal(say(a, "SELECT 5"), 0);
		audit_free(a);
		assert_int_equal(verify(path).last, 3);
	}
	log_set_level(LOG_LEVEL_WARNING);
}

static void test_long_texts(void **state)
{
	_cleanup_(audit_freep) struct audit *a = open_file();
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	static char text[100000];

	(void)state;
	memset(text, 1, sizeof(text) - 1);
	assert_int_equal(say(a, text), 0);
	load(&b);
	assert_true(b.len < 6 * AUDIT_TEXT_MAX + 1000);
	assert_non_null(strstr(b.data, "\"text_bytes\":99999,\"text_sha256\":\""));
	assert_int_equal(verify(path).last, 1);
	assert_int_equal(audit_write(a, &(struct audit_entry){.action = text, .peer = text}), 0);
	assert_int_equal(verify(path).last, 2);
}

static void test_one_writer(void **state)
{
	_cleanup_(audit_freep) struct audit *a = open_file();
	struct audit *second = NULL;
	struct errinfo e = {0};

	(void)state;
	assert_int_equal(audit_open(path, &second, &e), -EAGAIN);
	assert_non_null(strstr(e.text, "another process"));
	assert_int_equal(symlink("/dev/null", older), 0);
	assert_int_equal(audit_open(older, &second, &e), -ELOOP);
}

/* A full disk: nothing is torn, and the next line that can be written says what is missing. */
static void test_no_room(void **state)
{
	_cleanup_(audit_freep) struct audit *a = open_file();
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);
	struct rlimit old, small;
	static char text[3000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(say(a, "SELECT 1"), 0);
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 2000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_true(say(a, text) < 0);
	assert_true(say(a, text) < 0);
	assert_int_equal(verify(path).last, 1);
	assert_false(verify(path).is_torn);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(say(a, "SELECT 2"), 0);
	assert_int_equal(verify(path).last, 2);
	load(&b);
	assert_non_null(strstr(b.data, "\"lost\":2,\"prev\""));
}

static void test_next_file(void **state)
{
	struct audit *a = open_file();
	struct audit_span first, second;
	static char text[AUDIT_TEXT_MAX + 1];
	uint64_t bytes = 0;

	(void)state;
	memset(text, 1, sizeof(text) - 1);
	for (; bytes <= AUDIT_BYTES_MAX; bytes += 6 * AUDIT_TEXT_MAX)
		assert_int_equal(say(a, text), 0);
	audit_free(a);
	first = verify(older);
	assert_int_equal(first.first, 1);
	a = open_file();
	assert_int_equal(say(a, "SELECT 1"), 0);
	audit_free(a);
	second = verify(path);
	assert_int_equal(second.first, first.last + 1);
	assert_string_equal(second.before, first.head);
}

static void *write_many(void *arg)
{
	for (int i = 0; i < 500; i++)
		assert_int_equal(say(arg, "SELECT 1"), 0);
	return NULL;
}

static void test_threads(void **state)
{
	struct audit *a = open_file();
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, a), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	audit_free(a);
	assert_int_equal(verify(path).last, 2000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, remove_files, remove_files)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lines),
		TEST(test_changed_bytes),
		TEST(test_moved_lines),
		TEST(test_torn_tail),
		TEST(test_long_texts),
		TEST(test_one_writer),
		TEST(test_no_room),
		TEST(test_next_file),
		TEST(test_threads),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
