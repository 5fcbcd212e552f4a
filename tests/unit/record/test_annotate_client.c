/* SPDX-License-Identifier: Apache-2.0 */
/* test_annotate_client.c - the client against the real server, which a thread runs. */
#include "annotate_fixture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "record/annotate/annotate.h"
#include "base/buf.h"

struct party {
	struct annotate_bench bench;
	atomic_bool stop;
	int leave_after; /* answers nothing from this many lines on, and hangs up; 0: stays */
};

static void *serve(void *arg)
{
	struct party *p = arg;

	while (!atomic_load(&p->stop)) {
		annotate_server_poll(p->bench.server);
		if (p->leave_after && p->bench.count >= (size_t)p->leave_after) {
			annotate_server_free(TAKE(p->bench.server));
			return NULL;
		}
		bench_ack(&p->bench);
	}
	return NULL;
}

static int input_of(const char *text)
{
	int fd = memfd_create("input", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int exchange(
	struct party *p, const char *text, struct annotate_result *ret, struct errinfo *err)
{
	int input = input_of(text), fd, r;
	pthread_t thread;

	assert_int_equal(annotate_client_connect(p->bench.path, &fd, err), 0);
	assert_int_equal(pthread_create(&thread, NULL, serve, p), 0);
	r = annotate_client_send(fd, input, ret, err);
	atomic_store(&p->stop, true);
	pthread_join(thread, NULL);
	close(fd);
	close(input);
	return r;
}

static void test_all_are_stored(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 20);
	struct annotate_result result;
	struct errinfo err = {0};
	struct party p = {0};

	bench_start(*state, &p.bench);
	for (int i = 0; i < 499; i++) /* more than the window */
		buf_printf(&text, "{\"labels\":{\"step\":\"%d\"}}%s", i, i < 498 ? "\n" : "");
	if (exchange(&p, buf_str(&text), &result, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(result.sent, 499);
	assert_int_equal(result.stored, 499);
	assert_int_equal(result.refused, 0);
	assert_int_equal(p.bench.count, 499);
	annotate_server_free(p.bench.server);
}

static void test_bad_lines_are_named(void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT(1 << 20);
	struct annotate_result result;
	struct errinfo err = {0};
	struct party p = {0};

	bench_start(*state, &p.bench);
	buf_puts(&text, "{\"labels\":{\"a\":\"1\"}}\r\n\n  "
			"\n{\"labels\":{\"a\":\"2\"},\"pid\":4194304}\nnonsense\n");
	for (int i = 0; i < 70000; i++)
		buf_putc(&text, 'x');
	buf_puts(&text, "\n{\"labels\":{\"a\":\"3\"}}\n");
	assert_int_equal(exchange(&p, buf_str(&text), &result, &err), 0);
	assert_int_equal(result.stored, 2);
	assert_int_equal(result.sent, 3);
	assert_int_equal(result.refused, 3);
	assert_true(result.first_line == 4 || result.first_line == 5);
	annotate_server_free(p.bench.server);
}

static void test_a_tracer_that_goes_away(void **state)
{
	struct annotate_result result;
	struct errinfo err = {0};
	struct party p = {.leave_after = 2};

	bench_start(*state, &p.bench);
	p.leave_after = 2;
	assert_true(exchange(&p, "{\"labels\":{\"a\":\"1\"}}\n{\"labels\":{\"a\":\"2\"}}\n",
			    &result, &err) < 0);
	assert_non_null(strstr(err.text, "closed the connection"));
	assert_int_equal(err.exit_code, EXIT_TRY_AGAIN);
	assert_true(result.stored < 2);
}

static void test_nobody_listens(void **state)
{
	struct scratch *s = *state;
	struct errinfo err = {0};
	struct party p = {0};
	int fd;

	assert_int_equal(annotate_client_connect(s->path, &fd, &err), -ENOENT);
	assert_int_equal(err.exit_code, EXIT_NO_FEATURE);
	bench_start(s, &p.bench);
	annotate_server_free(p.bench.server);
	assert_int_equal(annotate_client_connect(p.bench.path, &fd, &err), -ECONNREFUSED);
	assert_int_equal(err.exit_code, EXIT_NO_FEATURE);
	assert_non_null(strstr(err.text, "ingero trace --annotate"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_are_stored),
		TEST(test_bad_lines_are_named),
		TEST(test_a_tracer_that_goes_away),
		TEST(test_nobody_listens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
