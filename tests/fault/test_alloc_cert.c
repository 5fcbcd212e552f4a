/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while known nodes, fingerprints and a CA's index are read: -ENOMEM, and never the
 * sentence that the file is wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "net/pki/ca.h"
#include "net/pki/known_nodes.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int read_nodes(void *arg)
{
	static const char text[] = "a:1 " HEX "\nb:2 " HEX "\nc:3 " HEX "\n";
	struct known_nodes k = {0};
	struct errinfo e = {0};
	int r = known_nodes_parse("f", text, strlen(text), &k, &e);

	if (r < 0)
		assert_true(!k.count && strstr(e.text, "memory"));
	else
		assert_int_equal(k.count, 3);
	known_nodes_done(&k);
	return r;
}

static int read_pins(void *arg)
{
	struct tls_pins p = {0};
	int r = tls_pins_add(&p, HEX, NULL);

	if (r == 0)
		r = tls_pins_add(&p, "a=" HEX, NULL);
	tls_pins_done(&p);
	return r;
}

static int read_index(void *arg)
{
	static const char text[] = "# ingero certificates 1\n4a " HEX " 1 2 1 both a a,b\n4b " HEX
				   " 1 2 1 client c c\n";
	struct ca_index x = {0};
	struct errinfo e = {0};
	int r = ca_index_parse("f", text, strlen(text), &x, &e);

	if (r < 0)
		assert_true(!x.count && strstr(e.text, "memory"));
	else
		assert_int_equal(x.count, 2);
	ca_index_done(&x);
	return r;
}

static void known_nodes(void **state)
{
	assert_true(fault_torture(read_nodes, NULL) >= 3);
}

static void fingerprints(void **state)
{
	assert_true(fault_torture(read_pins, NULL) >= 2);
}

static void the_index(void **state)
{
	assert_true(fault_torture(read_index, NULL) >= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_nodes),
		cmocka_unit_test(fingerprints),
		cmocka_unit_test(the_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
