/* SPDX-License-Identifier: Apache-2.0 */
/* test_mcp_stdio.c - lines over descriptors: pieces, lines without end, an end without a line. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/wait.h>

#include "serve/mcp/mcp_registry.h"
#include "mcp_fixture.h"

/* What is answered to @len bytes of @text that come in pieces of @piece; the caller frees it. */
static char *dispatcher_to(const char *text, size_t len, size_t piece)
{
	_cleanup_(dispatcher_freep) struct dispatcher *t = fixture_talk();
	struct buf b = BUF_INIT(1 << 22);
	int in[2], out[2];
	char part[4096];
	pid_t child;
	ssize_t n;

	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	child = fork();
	if (child == 0) {
		close(in[1]);
		close(out[0]);
		_exit(mcp_stdio_run(t, in[0], out[1], NULL) < 0);
	}
	close(in[0]);
	close(out[1]);
	for (size_t i = 0; i < len; i += piece)
		assert_true(write(in[1], text + i, MIN(piece, len - i)) > 0);
	close(in[1]);
	while ((n = read(out[0], part, sizeof(part))) > 0)
		buf_append(&b, part, (size_t)n);
	close(out[0]);
	waitpid(child, NULL, 0);
	return buf_take(&b);
}

static size_t lines(const char *s)
{
	size_t n = 0;

	for (; s && *s; s++)
		n += *s == '\n';
	return n;
}

static void messages_may_come_in_pieces(void **state)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n\r\n"
				   "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}\r\n"
				   "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}";

	for (size_t piece = 1; piece < 60; piece += 7) {
		_cleanup_free_ char *got = dispatcher_to(text, strlen(text), piece);

		assert_int_equal(lines(got), 3);
		assert_non_null(strstr(got, "\"id\":3"));
	}
}

static void a_line_without_end_is_answered_and_forgotten(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8u << 20);
	_cleanup_free_ char *got = NULL;

	for (size_t i = 0; i < 3u << 20; i += 16)
		buf_puts(&b, "aaaaaaaaaaaaaaaa");
	buf_puts(&b, "\nno json\n{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n");
	got = dispatcher_to(b.data, b.len, 65536);
	assert_int_equal(lines(got), 3);
	assert_non_null(strstr(got, "more than 1048576 bytes"));
	assert_non_null(strstr(got, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n"));
}

static void nothing_comes_of_nothing(void **state)
{
	assert_null(dispatcher_to("", 0, 1));
	assert_null(dispatcher_to("\n\n", 2, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_may_come_in_pieces),
		cmocka_unit_test(a_line_without_end_is_answered_and_forgotten),
		cmocka_unit_test(nothing_comes_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
