/* SPDX-License-Identifier: Apache-2.0 */
/* test_incidents.c - the whole report on made recordings, word for word as in incidents.txt: who is
 * named, how often, where and when, and in what words.
 *
 * After a change that is meant, INGERO_GOLDEN=write writes the file anew, for review. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <time.h>

#include "../unit/scene.h"
#include "answer/encode/report.h"
#include "diagnose/compose/diagnose.h"

#define TEXT_BYTES (1 << 20)

static void put_report(struct buf *b, const char *title, struct scene *s)
{
	_cleanup_free_ struct incident *list = NULL;
	struct report_scope scope = {.node = "gpu-1", .events = s->event_count};
	struct recording rec;
	size_t n;

	scene_aggregate(s);
	rec = scene_recording(s);
	assert_int_equal(diagnose_run(&rec, &list, &n), 0);
	buf_printf(b, "==== %s\n", title);
	report_text(b, list, n, &scope, false);
}

static void test_reports(void **state)
{
	_cleanup_(scene_done) struct scene writer = {.seed = 1}, forks = {.seed = 1},
					   refused = {.seed = 1};
	_cleanup_buf_ struct buf got = BUF_INIT(TEXT_BYTES);
	const char *root = getenv("INGERO_SOURCE_ROOT"), *write = getenv("INGERO_GOLDEN");
	_cleanup_free_ char *want = NULL;
	char path[512];
	FILE *f;

	scene_writer(&writer);
	put_report(&got, "one culprit of disk and CPU", &writer);
	scene_forks(&forks, 40);
	put_report(&got, "CUDA used after fork", &forks);
	scene_fail(&refused, PARENT, CUDA_FREE, 0, 1);
	put_report(&got, "one refused call", &refused);
	assert_int_equal(got.err, 0);

	snprintf(path, sizeof(path), "%s/tests/golden/incidents.txt", root ? root : ".");
	if (write && !strcmp(write, "write")) {
		f = fopen(path, "w");
		assert_non_null(f);
		assert_true(fputs(buf_str(&got), f) >= 0);
		assert_int_equal(fclose(f), 0);
	}
	f = fopen(path, "r");
	assert_non_null(f);
	want = calloc(1, TEXT_BYTES);
	assert_non_null(want);
	assert_true(fread(want, 1, TEXT_BYTES - 1, f) > 0);
	fclose(f);
	if (strcmp(buf_str(&got), want) != 0) {
		fputs(buf_str(&got), stdout); /* whole: cmocka's messages are cut */
		fail_msg("the report is not that of %s", path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
