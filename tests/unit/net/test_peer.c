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

#include "net/server/peer.h"
#include "net/rate.h"

static union address of(const char *text)
{
	union address a;

	assert_int_equal(address_parse_host(text, &a), 0);
	return a;
}

static void test_connections(void **state)
{
	union address a = of("10.0.0.1"), b = of("10.0.0.2"), c = of("2001:db8::1"),
		      same = of("2001:db8::ffff"), other = of("2001:db8:0:1::1");
	struct peers *p;

	assert_int_equal(peers_new(&p), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(peers_enter(p, &a, 3), 0);
	assert_int_equal(peers_enter(p, &a, 3), -EAGAIN);
	assert_int_equal(peers_enter(p, &b, 3), 0);
	peers_leave(p, &a);
	assert_int_equal(peers_enter(p, &a, 3), 0);
	assert_int_equal(peers_enter(p, &a, 3), -EAGAIN);
	/* one network of IPv6 is one peer */
	assert_int_equal(peers_enter(p, &c, 1), 0);
	assert_int_equal(peers_enter(p, &same, 1), -EAGAIN);
	assert_int_equal(peers_enter(p, &other, 1), 0);
	peers_free(p);
}

static void test_failures(void **state)
{
	union address a = of("10.0.0.1"), b = of("10.0.0.2");
	uint64_t now = 1000 * NS_PER_S;
	struct peers *p;

	assert_int_equal(peers_new(&p), 0);
	assert_int_equal(peers_is_blocked(p, &a, now), 0);
	for (int i = 0; i < PEER_FAILURES_MAX; i++) {
		assert_int_equal(peers_is_blocked(p, &a, now), 0);
		peers_fail(p, &a, now);
	}
	assert_int_equal(peers_is_blocked(p, &a, now), 6); /* 60 s / 10 */
	assert_int_equal(peers_is_blocked(p, &b, now), 0);
	assert_int_equal(peers_is_blocked(p, &a, now + 5 * NS_PER_S), 1);
	assert_int_equal(peers_is_blocked(p, &a, now + 7 * NS_PER_S), 0);
	peers_fail(p, &a, now + 7 * NS_PER_S);
	assert_true(peers_is_blocked(p, &a, now + 7 * NS_PER_S) > 0);
	assert_int_equal(peers_is_blocked(p, &a, now + 200 * NS_PER_S), 0);
	peers_free(p);
}

/* More addresses than places: those with connections stay, and nothing breaks. */
static void test_many(void **state)
{
	union address kept = of("192.0.2.1"), a = of("10.0.0.0");
	unsigned refused = 0;
	struct peers *p;

	assert_int_equal(peers_new(&p), 0);
	assert_int_equal(peers_enter(p, &kept, 1), 0);
	for (uint32_t i = 0; i < 200000; i++) {
		a.v4.sin_addr.s_addr = htonl(0x0a000000 + i);
		peers_fail(p, &a, i * NS_PER_MS);
	}
	assert_int_equal(peers_enter(p, &kept, 1), -EAGAIN); /* it has not been forgotten */
	for (uint32_t i = 0; i < 12000; i++) {
		a.v4.sin_addr.s_addr = htonl(0x0b000000 + i);
		refused += peers_enter(p, &a, 64) < 0;
	}
	assert_true(refused < 240); /* 2 %: sets that happen to be full */
	peers_free(p);
}

static void test_rate(void **state)
{
	struct rate r = {0};
	uint64_t now = 5 * NS_PER_S;

	for (int i = 0; i < 4; i++)
		assert_true(rate_take(&r, now, 4, NS_PER_S));
	assert_false(rate_take(&r, now, 4, NS_PER_S));
	assert_true(rate_is_spent(&r, now, 4, NS_PER_S));
	assert_false(rate_take(&r, now + NS_PER_S - 1, 4, NS_PER_S));
	assert_true(rate_take(&r, now + NS_PER_S, 4, NS_PER_S));
	assert_false(rate_take(&r, now + NS_PER_S, 4, NS_PER_S));
	assert_false(
		rate_take(&r, now, 4, NS_PER_S)); /* a time that has passed gives nothing back */
	assert_true(rate_take(&r, now + 100 * NS_PER_S, 4, NS_PER_S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
