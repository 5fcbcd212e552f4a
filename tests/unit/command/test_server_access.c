/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/macros.h"
#include "command/server_access.h"
#include "net/server/token.h"

#define OLD "Bearer the-first-of-the-tokens"
#define NEW "Bearer another-of-the-tokens"

static const char *cannot(const struct tls_server_settings *s, const char *off)
{
	static struct errinfo e;

	e = (struct errinfo){0};
	assert_int_equal(server_tls_check(s, off, &e), -EINVAL);
	return e.text;
}

static void test_tls_flags_that_contradict_each_other(void **state)
{
	struct tls_server_settings none = {0}, half = {.cert = "c"}, ca = {.client_ca = "a"},
				   both = {.cert = "c", .key = "k"};
	struct errinfo e = {0};

	assert_string_equal(cannot(&half, NULL), "give both --tls-cert and --tls-key");
	assert_string_equal(cannot(&ca, "--plain"),
		"--plain cannot be combined with --tls-cert, --tls-key or --client-ca");
	assert_int_equal(server_tls_check(&none, "--plain", &e), 0);
	assert_int_equal(server_tls_check(&both, NULL, &e), 0);
	assert_int_equal(server_tls_check(&ca, NULL, &e), 0);
	assert_string_equal(e.text, "");
}

static void test_token_flags_that_contradict_each_other(void **state)
{
	struct server_access_options both = {
		.address = "127.0.0.1:0", .token_file = "t", .no_token = true};
	struct server_access_options far = {.address = "0.0.0.0:0", .no_token = true};
	struct errinfo e = {0};

	assert_int_equal(server_access_check(&both, &e), -EINVAL);
	assert_int_equal(server_access_check(&far, &e), -EINVAL);
	far.client_ca = "a";
	assert_int_equal(server_access_check(&far, &e), 0);
	both.no_token = false;
	assert_int_equal(server_access_check(&both, &e), 0);
}

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fchmod(fileno(f), 0600), 0);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void test_tokens_are_read_again_all_or_nothing(void **state)
{
	char dir[] = "/tmp/server-access-XXXXXX", path[64];
	struct server_access_options o = {.address = "127.0.0.1:0", .token_file = path};
	struct server_access a = {0};
	struct errinfo e = {0};

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/tokens", dir);
	put(path, OLD + strlen("Bearer "));
	assert_int_equal(server_access_open(&o, &a, &e), 0);
	assert_true(token_set_find(a.tokens, OLD) != 0);
	put(path, "short\n");
	assert_true(server_access_reload(&a, &o, NULL, &e) < 0);
	assert_true(e.text[0] != 0);
	assert_true(token_set_find(a.tokens, OLD) != 0);
	put(path, NEW + strlen("Bearer "));
	assert_int_equal(server_access_reload(&a, &o, NULL, &e), 0);
	assert_true(token_set_find(a.tokens, NEW) != 0);
	assert_true(token_set_find(a.tokens, OLD) == 0);
	server_access_done(&a);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tls_flags_that_contradict_each_other),
		cmocka_unit_test(test_token_flags_that_contradict_each_other),
		cmocka_unit_test(test_tokens_are_read_again_all_or_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
