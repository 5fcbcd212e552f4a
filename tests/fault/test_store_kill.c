/* SPDX-License-Identifier: Apache-2.0 */
/* A tracer that is killed leaves a file that says what it holds, and that its end is not known. */
#include "store_run.h"

#include <signal.h>

#include "answer/explain.h"
#include "answer/encode/report.h"
#include "base/buf.h"

#define EVENTS 20000

/* The child pushes and dies once something of it is stored, or stops in order. */
static void record(const char *path, bool killed)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct run run;

		if (!run_start(&run, path))
			_exit(1);
		run_push(&run, EVENTS);
		while (store_writer_stored(run.writer, 1) < 1000)
			;
		if (killed)
			raise(SIGKILL);
		_exit(run_stop(&run) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(killed ? WTERMSIG(status) : WEXITSTATUS(status), killed ? SIGKILL : 0);
}

static void report_of(const char *path, struct buf *b, struct accounting *ret_books)
{
	struct nodedb_content c;
	struct report_scope scope = {0};

	assert_int_equal(nodedb_read(path, NULL, &c, NULL), 0);
	assert_true(c.has_books);
	*ret_books = c.books;
	scope.completeness = completeness_of(ret_books);
	report_text(b, NULL, 0, &scope, false);
	nodedb_content_done(&c);
}

static void test_a_killed_recording_does_not_claim_to_be_complete(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct accounting books;

	record(s->path, true);
	assert_true(run_file_holds(s->path));
	report_of(s->path, &b, &books);
	assert_int_equal(books.unclean, 1);
	assert_true(books.unclean_ns >= 1000 && books.unclean_ns < 1000 + EVENTS);
	assert_non_null(strstr(buf_str(&b), "ended without a clean stop"));
	assert_non_null(strstr(buf_str(&b), "completeness unknown"));
	assert_null(strstr(buf_str(&b), "events lost"));
}

static void test_a_clean_stop_says_that_nothing_was_lost(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct accounting books;

	record(s->path, false);
	assert_true(run_file_holds(s->path));
	report_of(s->path, &b, &books);
	assert_int_equal(books.unclean, 0);
	assert_non_null(strstr(buf_str(&b), "none of "));
	assert_null(strstr(buf_str(&b), "clean stop"));
}

/* Nor once somebody has recorded into the same file in order. */
static void test_a_later_session_does_not_hide_it(void **state)
{
	struct scratch *s = *state;
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	struct accounting books;

	record(s->path, true);
	record(s->path, false);
	report_of(s->path, &b, &books);
	assert_int_equal(books.unclean, 1);
	assert_non_null(strstr(buf_str(&b), "ended without a clean stop"));
}

/* A recording under way is not over, so its end is not unclean. */
static void test_a_running_recording_is_not_unclean(void **state)
{
	struct scratch *s = *state;
	struct nodedb_content c;
	struct run run;

	assert_true(run_start(&run, s->path));
	run_push(&run, 1000);
	while (store_writer_stored(run.writer, 1) < 100)
		;
	assert_int_equal(nodedb_read(s->path, NULL, &c, NULL), 0);
	assert_int_equal(c.books.unclean, 0);
	nodedb_content_done(&c);
	assert_int_equal(run_stop(&run), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_a_killed_recording_does_not_claim_to_be_complete, scratch_setup,
			scratch_teardown),
		cmocka_unit_test_setup_teardown(test_a_clean_stop_says_that_nothing_was_lost,
			scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_later_session_does_not_hide_it, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_running_recording_is_not_unclean, scratch_setup, scratch_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
