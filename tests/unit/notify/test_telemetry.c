/* SPDX-License-Identifier: Apache-2.0 */
/* test_telemetry.c - the thread that gives metrics away, seen from the one that makes them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cmocka.h>

#include "notify/telemetry/telemetry.h"

static const struct metric_desc hits = {.otlp = "hits",
	.prometheus = "hits_total",
	.unit = "1",
	.kind = METRIC_COUNTER,
	.help = "hits"};

static struct metric_set *reading(int64_t value)
{
	struct metric_set *s = metric_set_new((wall_time){value});

	metric_put_int(s, &hits, (wall_time){1}, value, NULL);
	return s;
}

static int ask(const char *address)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	static const char request[] = "GET /metrics HTTP/1.1\r\nhost: localhost\r\n"
				      "connection: close\r\n\r\n";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(write(fd, request, sizeof(request) - 1), sizeof(request) - 1);
	return fd;
}

/* Everything up to the end of the connection. */
static void answer(int fd, char *out, size_t size)
{
	size_t used = 0;
	ssize_t n;

	while ((n = read(fd, out + used, size - 1 - used)) > 0)
		used += (size_t)n;
	out[used] = 0;
	close(fd);
}

static void wait_until_wanted(struct telemetry *t)
{
	const struct timespec wait_briefly = {.tv_nsec = NS_PER_MS};

	for (int i = 0; i < 20000 && !telemetry_wants(t); i++)
		nanosleep(&wait_briefly, NULL);
	assert_true(telemetry_wants(t));
}

static void test_a_scrape_is_what_asks_for_a_reading(void **state)
{
	struct telemetry_settings s = {.scrape = {.address = "127.0.0.1:0"}};
	struct telemetry *t = NULL;
	char text[8192];
	int fd;

	assert_int_equal(telemetry_start(&s, &t, NULL), 0);
	assert_false(telemetry_wants(t));
	fd = ask(telemetry_address(t));
	wait_until_wanted(t);
	telemetry_give(t, reading(7));
	answer(fd, text, sizeof(text));
	assert_non_null(strstr(text, "hits_total 7\n"));
	assert_non_null(strstr(text, "ingero_scrapes_total 0\n"));
	assert_false(telemetry_wants(t));
	assert_int_equal(telemetry_stop(t, reading(8)), 0);
}

static void test_who_waits_at_the_end_gets_the_last(void **state)
{
	struct telemetry_settings s = {.scrape = {.address = "127.0.0.1:0"}};
	struct telemetry *t = NULL;
	char text[8192];
	int fd;

	assert_int_equal(telemetry_start(&s, &t, NULL), 0);
	fd = ask(telemetry_address(t));
	wait_until_wanted(t);
	assert_int_equal(telemetry_stop(t, reading(9)), 0);
	answer(fd, text, sizeof(text));
	assert_non_null(strstr(text, "hits_total 9\n"));
}

/* A receiver that takes connections and says nothing: the end is reached all the same. */
static void test_the_end_has_a_limit(void **state)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	_cleanup_fd_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);
	struct endpoint_fields fields = {0};
	struct endpoint endpoint;
	struct telemetry_settings s = {.push = {.endpoint = &endpoint, .fields = &fields}};
	struct endpoint_options o = {.insecure = true};
	struct telemetry *t = NULL;
	char address[64];
	uint64_t began;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	o.text = address;
	assert_int_equal(endpoint_parse(&o, &endpoint, NULL), 0);
	assert_int_equal(telemetry_start(&s, &t, NULL), 0);
	assert_null(telemetry_address(t));
	began = mono_now().ns;
	assert_int_equal(telemetry_stop(t, reading(1)), 1); /* not delivered, and told */
	assert_in_range(mono_now().ns - began, TELEMETRY_FLUSH_NS / 2, 8 * TELEMETRY_FLUSH_NS);
}

static void test_without_a_reading(void **state)
{
	struct telemetry_settings s = {.scrape = {.address = "127.0.0.1:0"}};
	struct telemetry *t = NULL;

	assert_int_equal(telemetry_start(&s, &t, NULL), 0);
	telemetry_give(t, NULL); /* there was no memory for one */
	assert_int_equal(telemetry_stop(t, NULL), 0);
}

static void test_a_start_that_fails(void **state)
{
	struct telemetry_settings s = {.scrape = {.address = ":0"}};
	struct telemetry *t = NULL;
	struct errinfo e = {0};

	assert_int_equal(telemetry_start(&s, &t, &e), -EPERM);
	assert_null(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_scrape_is_what_asks_for_a_reading),
		cmocka_unit_test(test_who_waits_at_the_end_gets_the_last),
		cmocka_unit_test(test_the_end_has_a_limit),
		cmocka_unit_test(test_without_a_reading),
		cmocka_unit_test(test_a_start_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
