/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "net/client/client_private.h"

static const struct {
	const char *text;
	bool tls;
	const char *host;
	int port;         /* 0: refused */
	const char *says; /* then */
	const char *shown;
} cases[] = {
	{"gpu1:8080", true, "gpu1", 8080, NULL, "gpu1:8080"},
	{"gpu1", true, "gpu1", 7, NULL, "gpu1:7"},
	{"https://gpu1:8080", true, "gpu1", 8080, NULL, NULL},
	{"HTTPS://gpu1:8080/", true, "gpu1", 8080, NULL, NULL},
	{"http://gpu1", false, "gpu1", 7, NULL, NULL},
	{"http://[::1]:8080", false, "::1", 8080, NULL, "[::1]:8080"},
	{"[fe80::1]", true, "fe80::1", 7, NULL, "[fe80::1]:7"},
	{"::1", true, "::1", 7, NULL, "[::1]:7"},
	{"10.0.0.1:1", true, "10.0.0.1", 1, NULL, "10.0.0.1:1"},
	{"node-1.rack_2.example.com.:65535", true, "node-1.rack_2.example.com.", 65535, NULL, NULL},
	{"", true, NULL, 0, "no host", NULL},
	{":8080", true, NULL, 0, "no host", NULL},
	{"https://", true, NULL, 0, "no host", NULL},
	{"https:///", true, NULL, 0, "no host", NULL},
	{"gpu1:", true, NULL, 0, "port is not a number", NULL},
	{"gpu1:0", true, NULL, 0, "between 1 and 65535", NULL},
	{"gpu1:65536", true, NULL, 0, "between 1 and 65535", NULL},
	{"gpu1:-1", true, NULL, 0, "port is not a number", NULL},
	{"gpu1:+80", true, NULL, 0, "port is not a number", NULL},
	{"gpu1:80 ", true, NULL, 0, "port is not a number", NULL},
	{"gpu1:999999999999", true, NULL, 0, "port is not a number", NULL},
	{"gpu1:80/path", true, NULL, 0, "path", NULL},
	{"gpu1:80?q", true, NULL, 0, "path", NULL},
	{"https://gpu1#x", true, NULL, 0, "path", NULL},
	{"https://me:secret@gpu1:80", true, NULL, 0, "user name", NULL},
	{"ftp://gpu1:80", true, NULL, 0, "only http:// and https://", NULL},
	{"httpx://gpu1:80", true, NULL, 0, "only http:// and https://", NULL},
	{"gpu 1:80", true, NULL, 0, "character", NULL},
	{"gpu1\r\nX: y:80", true, NULL, 0, "':'", NULL},
	{"gpu\x1b[2J:80", true, NULL, 0, "character", NULL},
	{"gpu..x:80", true, NULL, 0, "empty", NULL},
	{".gpu:80", true, NULL, 0, "empty", NULL},
	{"[::1", true, NULL, 0, "missing ']'", NULL},
	{"[gpu1]:80", true, NULL, 0, "do not contain an IPv6 address", NULL},
	{"[::1]x", true, NULL, 0, "only a port", NULL},
	{"1:2:3", true, NULL, 0, "[::1]:8080", NULL},
	{"a2345678901234567890123456789012345678901234567890123456789012345:80", true, NULL, 0,
		"63", NULL},
};

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct http_endpoint p = {.port = 99}, before = p;
		struct errinfo e = {};
		char shown[CLIENT_ENDPOINT_TEXT];
		int r = http_endpoint_parse(cases[i].text, true, 7, &p, &e);

		if (!cases[i].port) {
			assert_int_equal(r, -EINVAL);
			assert_non_null(strstr(e.text, cases[i].says));
			assert_null(strpbrk(e.text, "\x1b\r\n"));
			assert_memory_equal(&p, &before, sizeof(p));
			continue;
		}
		assert_int_equal(r, 0);
		assert_int_equal(p.tls, cases[i].tls);
		assert_string_equal(p.host, cases[i].host);
		assert_int_equal(p.port, cases[i].port);
		if (cases[i].shown)
			assert_string_equal(client_endpoint_text(shown, &p), cases[i].shown);
	}
}

static void test_port_needed(void **state)
{
	struct http_endpoint p;
	struct errinfo e;

	(void)state;
	assert_int_equal(http_endpoint_parse("gpu1", false, 0, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "no port"));
	assert_int_equal(http_endpoint_parse("gpu1:1", false, 0, &p, &e), 0);
	assert_false(p.tls);
}

static void test_long(void **state)
{
	char text[2000];
	struct http_endpoint p;
	struct errinfo e;

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++)
		text[i] = i % 10 == 9 ? '.' : 'a';
	text[sizeof(text) - 1] = 0;
	assert_int_equal(http_endpoint_parse(text, true, 7, &p, &e), -EINVAL);
	text[254] = 0;
	assert_int_equal(http_endpoint_parse(text, true, 7, &p, &e), -EINVAL);
	assert_non_null(strstr(e.text, "253"));
	text[253] = 0;
	assert_int_equal(http_endpoint_parse(text, true, 7, &p, &e), 0);
}

static void test_equal(void **state)
{
	struct http_endpoint a = {.host = "GPU1", .port = 1}, b = {.host = "gpu1", .port = 1};

	(void)state;
	assert_true(client_endpoint_equal(&a, &b));
	b.tls = true;
	assert_false(client_endpoint_equal(&a, &b));
	b = (struct http_endpoint){.host = "gpu1", .port = 2};
	assert_false(client_endpoint_equal(&a, &b));
	b = (struct http_endpoint){.host = "gpu2", .port = 1};
	assert_false(client_endpoint_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_port_needed),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
