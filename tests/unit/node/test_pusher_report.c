/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_report.c - what the cluster is told as the cause of an incident. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/macros.h"
#include "node/push/pusher_private.h"

/* Its sentence begins with who is late and for what: a cause does not say so again. */
static void test_cause(void **state)
{
	static const struct {
		const char *summary, *root_cause, *sent;
	} rows[] = {
		{"Sleeping in step (a.c:51): rank 2 (pid 7) keeps 3 ranks waiting: 50ms late",
			"The thread sleeps; rank 2 (pid 7) was late in 33 of 37 steps: its thread was asleep",
			"Sleeping in step (a.c:51)"},
		{"rank 2 (pid 7) keeps 3 ranks waiting: 50ms late",
			"rank 2 (pid 7) was late in 33 of 37 steps: its thread was asleep for 100 % of that",
			"its thread was asleep for 100 % of that"},
		{"rank 2 (pid 7) keeps 3 ranks waiting", "rank 2 (pid 7) was late",
			"rank 2 (pid 7) was late"},
		{"Disk busy: steps take 60 ms", "The job's requests queue: vda, writes 538 MB/s",
			"The job's requests queue: vda, writes 538 MB/s"},
		{"Disk busy: steps take 60 ms", "", "Disk busy: steps take 60 ms"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct recent_incident inc = {0};
		char sent[256];

		snprintf(inc.summary, sizeof(inc.summary), "%s", rows[i].summary);
		snprintf(inc.root_cause, sizeof(inc.root_cause), "%s", rows[i].root_cause);
		pusher_report_cause(&inc, sent, sizeof(sent));
		assert_string_equal(sent, rows[i].sent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_cause)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
