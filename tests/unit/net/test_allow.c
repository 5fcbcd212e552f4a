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

#include "net/server/allow.h"

/* What a server on port 8443 answers to, with and without TLS. The connection came to 10.0.0.5. */
static const char *const names[] = {
	"gpu1", "Node7.Example", "fwd.example:9443", "https://dash.example", "2001:db8::7", NULL};

struct row {
	const char *text;
	bool tls, plain; /* allowed on such a server */
};

static const struct row hosts[] = {
	{"localhost", true, true},
	{"localhost:8443", true, true},
	{"LOCALHOST:8443", true, true},
	{"127.0.0.1", true, true},
	{"127.0.0.1:8443", true, true},
	{"[::1]", true, true},
	{"[::1]:8443", true, true},
	{"10.0.0.5", true, true},
	{"10.0.0.5:8443", true, true},
	{"gpu1", true, true},
	{"gpu1:8443", true, true},
	{"GPU1:8443", true, true},
	{"node7.example:8443", true, true},
	{"fwd.example:9443", true, true},
	{"dash.example", true, true},
	{"[2001:db8::7]:8443", true, true},
	{"[2001:DB8::7]", true, true},
	{"2001:db8::7", false, false},
	{"localhost:8080", false, false},
	{"localhost:", false, false},
	{"localhost:8443x", false, false},
	{"localhost:84430", false, false},
	{"localhost:-1", false, false},
	{"localhost.", false, false},
	{"localhost.evil.example", false, false},
	{"evil.localhost", false, false},
	{"xlocalhost", false, false},
	{" localhost", false, false},
	{"localhost/", false, false},
	{"user@localhost", false, false},
	{"127.0.0.2", false, false},
	{"127.1", false, false},
	{"2130706433", false, false},
	{"0x7f.0.0.1", false, false},
	{"0.0.0.0:8443", false, false},
	{"10.0.0.6:8443", false, false},
	{"[::2]:8443", false, false},
	{"[::1", false, false},
	{"::1", false, false},
	{"gpu1:9443", false, false},
	{"gpu1.evil.example", false, false},
	{"gpu11", false, false},
	{"fwd.example", false, false},
	{"fwd.example:8443", false, false},
	{"dash.example:8443", false, false},
	{"evil.example", false, false},
	{"evil.example:8443", false, false},
	{"", false, false},
	{":8443", false, false},
	{"*", false, false},
};

static const struct row origins[] = {
	{"https://localhost:8443", true, false},
	{"http://localhost:8443", false, true},
	{"HTTPS://LOCALHOST:8443", true, false},
	{"https://127.0.0.1:8443", true, false},
	{"http://127.0.0.1:8443", false, true},
	{"https://[::1]:8443", true, false},
	{"https://10.0.0.5:8443", true, false},
	{"https://gpu1:8443", true, false},
	{"http://gpu1:8443", false, true},
	{"https://fwd.example:9443", true, false},
	{"http://fwd.example:9443", false, true},
	{"https://dash.example", true, true},
	{"https://Dash.Example", true, true},
	{"null", false, false},
	{"", false, false},
	{"https://localhost", false, false},
	{"http://localhost", false, false},
	{"http://localhost:3000", false, false},
	{"https://localhost:443", false, false},
	{"https://localhost:8443/", false, false},
	{"https://localhost:8443.evil.example", false, false},
	{"https://localhost@evil.example:8443", false, false},
	{"https://evil.example", false, false},
	{"https://evil.example:8443", false, false},
	{"http://dash.example", false, false},
	{"https://dash.example:8443", false, false},
	{"https://dash.example.evil.example", false, false},
	{"https://gpu1", false, false},
	{"https://fwd.example", false, false},
	{"ftp://localhost:8443", false, false},
	{"file://", false, false},
	{"localhost:8443", false, false},
	{"https://", false, false},
	{"chrome-extension://abcdef", false, false},
};

static struct allow *make(bool tls, uint16_t port, bool beyond)
{
	struct allow_settings s = {
		.names = names, .tls = tls, .port = port, .beyond_loopback = beyond};
	struct allow *a = NULL;

	assert_int_equal(allow_new(&s, &a, NULL), 0);
	return a;
}

static void test_table(void **state)
{
	struct allow *tls = make(true, 8443, false), *plain = make(false, 8443, false);
	union address local;
	size_t n = 0;

	assert_int_equal(address_parse("10.0.0.5:8443", &local, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++, n++) {
		if (allow_host(tls, hosts[i].text, &local) != hosts[i].tls)
			print_error("Host: %s\n", hosts[i].text);
		assert_int_equal(allow_host(tls, hosts[i].text, &local), hosts[i].tls);
		assert_int_equal(allow_host(plain, hosts[i].text, &local), hosts[i].plain);
	}
	for (size_t i = 0; i < ARRAY_SIZE(origins); i++, n++) {
		if (allow_origin(tls, origins[i].text, &local) != origins[i].tls ||
			allow_origin(plain, origins[i].text, &local) != origins[i].plain)
			print_error("Origin: %s\n", origins[i].text);
		assert_int_equal(allow_origin(tls, origins[i].text, &local), origins[i].tls);
		assert_int_equal(allow_origin(plain, origins[i].text, &local), origins[i].plain);
	}
	assert_true(n >= 80);
	allow_free(tls);
	allow_free(plain);
}

static void test_default_ports(void **state)
{
	struct allow *tls = make(true, 443, false), *plain = make(false, 80, false);

	assert_true(allow_origin(tls, "https://localhost", NULL));
	assert_false(allow_origin(tls, "http://localhost", NULL));
	assert_true(allow_origin(plain, "http://localhost", NULL));
	assert_false(allow_origin(plain, "https://localhost", NULL));
	allow_free(tls);
	allow_free(plain);
}

static void test_own_name(void **state)
{
	struct allow *here = make(true, 8443, false), *beyond = make(true, 8443, true);
	char name[256] = "";

	assert_int_equal(gethostname(name, sizeof(name) - 1), 0);
	if (strcmp(name, "localhost") != 0)
		assert_false(allow_host(here, name, NULL));
	assert_true(allow_host(beyond, name, NULL));
	allow_free(here);
	allow_free(beyond);
}

static void test_bad_names(void **state)
{
	static const char *const bad[] = {"", "a:b", "https://", "x:123456", "[::1"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *const list[] = {bad[i], NULL};
		struct allow_settings s = {.names = list};
		struct allow *a = NULL;
		struct errinfo e = {0};

		assert_int_equal(allow_new(&s, &a, &e), -EINVAL);
		assert_non_null(strstr(e.text, "not a valid host name"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_default_ports),
		cmocka_unit_test(test_own_name),
		cmocka_unit_test(test_bad_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
