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

#include "net/address.h"
#include "net/server/server.h"

static void test_parse(void **state)
{
	static const struct {
		const char *text, *formatted; /* NULL: refused */
		bool loopback, any;
	} rows[] = {
		{"127.0.0.1:8080", "127.0.0.1:8080", true, false},
		{"127.9.9.9:0", "127.9.9.9:0", true, false},
		{"localhost:80", "127.0.0.1:80", true, false},
		{"8080", "127.0.0.1:8080", true, false},
		{"[::1]:80", "[::1]:80", true, false},
		{"[::ffff:127.0.0.1]:80", "127.0.0.1:80", true, false},
		{":8080", "[::]:8080", false, true},
		{"[::]:8080", "[::]:8080", false, true},
		{"0.0.0.0:8080", "0.0.0.0:8080", false, true},
		{"10.1.2.3:65535", "10.1.2.3:65535", false, false},
		{"[2001:db8::1]:443", "[2001:db8::1]:443", false, false},
		{"10.1.2.3:65536", NULL, false, false},
		{"10.1.2.3", NULL, false, false},
		{"10.1.2.3:", NULL, false, false},
		{"10.1.2.3:+1", NULL, false, false},
		{"10.1.2.3: 1", NULL, false, false},
		{"10.1.2:80", NULL, false, false},
		{"::1:80", NULL, false, false},
		{"[::1:80", NULL, false, false},
		{"[]:80", NULL, false, false},
		{"gpu1:80", NULL, false, false},
		{"", NULL, false, false},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1", NULL, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct errinfo e = {0};
		char text[ADDRESS_TEXT_MAX];
		union address a;
		int r = address_parse(rows[i].text, &a, &e);

		if ((r == 0) != (rows[i].formatted != NULL))
			print_error("%s\n", rows[i].text);
		assert_int_equal(r, rows[i].formatted ? 0 : -EINVAL);
		assert_int_equal(address_text_is_loopback(rows[i].text), rows[i].loopback);
		if (r < 0) {
			assert_true(strlen(e.text) > 20);
			continue;
		}
		address_format(&a, text);
		assert_string_equal(text, rows[i].formatted);
		assert_int_equal(address_is_loopback(&a), rows[i].loopback);
		assert_int_equal(address_is_any(&a), rows[i].any);
	}
}

static void test_equal(void **state)
{
	union address v4, mapped, other, v6;

	assert_int_equal(address_parse_host("10.0.0.1", &v4), 0);
	memset(&mapped, 0, sizeof(mapped));
	mapped.v6.sin6_family = AF_INET6;
	mapped.v6.sin6_addr.s6_addr[10] = mapped.v6.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.v6.sin6_addr.s6_addr[12], &v4.v4.sin_addr, 4);
	assert_int_equal(address_parse_host("10.0.0.2", &other), 0);
	assert_int_equal(address_parse_host("::a00:1", &v6), 0);
	assert_true(address_host_equal(&v4, &mapped));
	assert_false(address_host_equal(&v4, &other));
	assert_false(address_host_equal(&v4, &v6));
	assert_true(address_host_equal(&v6, &v6));
	assert_int_equal(address_parse_host("gpu1", &v6), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
