/* SPDX-License-Identifier: Apache-2.0 */
/* test_alerter.c - which looks at an incident are told, and that a receiver that is away costs nothing
 * but its notices. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "notify/alert/alerter.h"

struct scene {
	struct alert_file *file;
	struct alerter *alerter;
};

/* A port at which nobody listens: bound, but not open. */
static int deaf_port(int *ret_fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	*ret_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*ret_fd, (struct sockaddr *)&a, sizeof(a)), 0);
	getsockname(*ret_fd, (struct sockaddr *)&a, &len);
	return ntohs(a.sin_port);
}

static void begin(struct scene *s, const char *least)
{
	struct alerter_settings settings = {.node = "n"};
	char text[256];
	struct errinfo e = {0};
	int fd, port = deaf_port(&fd);

	snprintf(text, sizeof(text),
		"min_severity: %s\nalerts:\n  - type: webhook\n    url: http://127.0.0.1:%d/\n",
		least, port);
	assert_int_equal(alert_file_read("n.yaml", text, strlen(text), &s->file, &e), 0);
	settings.file = s->file;
	assert_int_equal(alerter_start(&settings, &s->alerter, &e), 0);
	close(fd);
}

static void tell(struct scene *s, const char *id, enum severity severity, const char *cause,
	int64_t resolved)
{
	struct incident i = {
		.severity = severity, .first = {1}, .resolved = {resolved}, .culprit_rank = -1};

	snprintf(i.id, sizeof(i.id), "%s", id);
	snprintf(i.root_cause, sizeof(i.root_cause), "%s", cause);
	alerter_tell(s->alerter, &i);
}

static struct alerter_stats end(struct scene *s)
{
	struct alerter_stats stats = alerter_stop(s->alerter);

	alert_file_free(s->file);
	return stats;
}

static void one_notice_a_change(void **state)
{
	struct scene s;

	begin(&s, "MEDIUM");
	tell(&s, "a", SEVERITY_LOW, "x", 0); /* not bad enough */
	tell(&s, "a", SEVERITY_MEDIUM, "x", 0);
	for (int i = 0; i < 50; i++) /* it lasts */
		tell(&s, "a", SEVERITY_MEDIUM, "x", 0);
	tell(&s, "a", SEVERITY_HIGH, "x", 0);
	tell(&s, "a", SEVERITY_HIGH, "y", 0);
	tell(&s, "a", SEVERITY_HIGH, "y", 9);
	tell(&s, "a", SEVERITY_HIGH, "y", 9); /* over already */
	tell(&s, "b", SEVERITY_LOW, "x", 9);  /* nobody was told that it began */
	assert_int_equal(end(&s).notices, 4); /* began, two changes, ended */
	begin(&s, "HIGH");
	tell(&s, "a", SEVERITY_MEDIUM, "x", 0);
	tell(&s, "a", SEVERITY_MEDIUM, "x", 9);
	assert_int_equal(end(&s).notices, 0);
}

static void what_lasts_is_ended_with_the_trace(void **state)
{
	struct alerter_stats stats;
	struct scene s;

	begin(&s, "LOW");
	tell(&s, "a", SEVERITY_LOW, "x", 0);
	tell(&s, "b", SEVERITY_HIGH, "x", 0);
	tell(&s, "b", SEVERITY_HIGH, "x", 9);
	stats = end(&s);
	assert_int_equal(stats.notices, 4);
	assert_int_equal(stats.sent, 0);
	assert_true(stats.waiting > 0); /* said, not hidden */
}

static void what_there_is_no_room_for_is_counted(void **state)
{
	struct alerter_stats stats;
	struct scene s;
	char id[16];

	begin(&s, "LOW");
	for (int i = 0; i < 2 * ALERTER_OPEN_MAX; i++) {
		snprintf(id, sizeof(id), "%d", i);
		tell(&s, id, SEVERITY_HIGH, "x", 0);
	}
	stats = end(&s);
	assert_true(stats.lost >= ALERTER_OPEN_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_notice_a_change),
		cmocka_unit_test(what_lasts_is_ended_with_the_trace),
		cmocka_unit_test(what_there_is_no_room_for_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
