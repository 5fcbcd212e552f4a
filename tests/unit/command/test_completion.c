/* SPDX-License-Identifier: Apache-2.0 */
/* test_completion.c - what values can be; the scripts themselves are tried in their shells by
 * tests/integration/92-completion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "cli/commands.h"
#include "cluster/cli/commands.h"
#include "command/program.h"

static enum completion_kind value(const char *command, const struct option_row *o, const char *want)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);
	enum completion_kind kind = completion_value(&ingero_program, command, o, &b);

	if (want && !strstr(buf_str(&b), want))
		fail_msg("%s is not in: %.200s", want, buf_str(&b));
	return kind;
}

static void test_values(void **state)
{
	struct option_row path = {.name = "db", .value_name = "PATH"},
			  op = {.name = "op", .value_name = "NAME"},
			  format = {.name = "format", .value_name = "NAME"},
			  flag = {.name = "json"}, number = {.name = "limit", .value_name = "N"};

	assert_int_equal(value("trace", &path, NULL), COMPLETION_FILES);
	assert_int_equal(value("query", &op, "cudaMemcpyAsync"), COMPLETION_WORDS);
	assert_int_equal(value("export", &format, "perfetto-proto"), COMPLETION_WORDS);
	assert_int_equal(value("trace", &format, NULL), COMPLETION_NOTHING);
	assert_int_equal(value("trace", &flag, NULL), COMPLETION_NOTHING);
	assert_int_equal(value("query", &number, NULL), COMPLETION_NOTHING);
}

static void test_arguments(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 16);

	assert_int_equal(completion_argument(&ingero_program, "merge", &b), COMPLETION_FILES);
	assert_int_equal(completion_argument(&ingero_program, "trace", &b), COMPLETION_NOTHING);
	assert_int_equal(b.len, 0);
	assert_int_equal(completion_argument(&ingero_program, "demo", &b), COMPLETION_WORDS);
	assert_non_null(strstr(buf_str(&b), "cold-start"));
}

static const struct program *const programs[] = {&ingero_program, &cluster_program};

/* Names go into shells' scripts without quotes: they must be plain. */
static size_t check_names(const struct program *p)
{
	size_t flags = 0;

	for (const struct command *const *c = p->commands; *c; c++) {
		assert_int_equal(
			strspn((*c)->name, "abcdefghijklmnopqrstuvwxyz-"), strlen((*c)->name));
		for (const struct option_row *o = (*c)->options; o && o->name; o++, flags++) {
			assert_int_equal(strspn(o->name, "abcdefghijklmnopqrstuvwxyz0123456789-"),
				strlen(o->name));
			assert_true(!o->letter || isalpha((unsigned char)o->letter));
			assert_non_null(o->help);
			assert_null(strpbrk(o->help, "\t\n"));
		}
	}
	return flags;
}

static void test_plain_names(void **state)
{
	assert_true(check_names(&ingero_program) > 50);
	assert_true(check_names(&cluster_program) > 0);
}

static void test_scripts(void **state)
{
	static const char *const shells[] = {"bash", "zsh", "fish"};
	_cleanup_buf_ struct buf b = BUF_INIT(1 << 20);

	for (size_t i = 0; i < ARRAY_SIZE(shells) * ARRAY_SIZE(programs); i++) {
		const struct program *p = programs[i % ARRAY_SIZE(programs)];

		buf_clear(&b);
		assert_int_equal(completion_script(&b, p, shells[i / ARRAY_SIZE(programs)]), 0);
		assert_int_equal(b.err, 0);
		assert_null(strpbrk(buf_str(&b), COMPLETION_NAME COMPLETION_ID));
		for (const struct command *const *c = p->commands; *c; c++)
			assert_non_null(strstr(buf_str(&b), (*c)->name));
	}
	assert_int_equal(completion_script(&b, &ingero_program, "sh"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_plain_names),
		cmocka_unit_test(test_scripts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
