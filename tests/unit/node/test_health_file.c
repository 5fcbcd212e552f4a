/* SPDX-License-Identifier: Apache-2.0 */
/* test_health_file.c - a baseline comes back from its file, and what becomes of a file that is not one.
 */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "node/health/health_baseline.h"
#include "base/file.h"

static const struct health_baseline_settings *const S = &health_baseline_defaults;
static const wall_time NOW = {1800000000 * (int64_t)NS_PER_S + 123456789};
static char folder[64], path[128];

static int begin(void **state)
{
	strcpy(folder, "/tmp/ingero-health-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/state/baseline.json", folder);
	return 0;
}

/* How many files in the folder begin with @prefix; deletes them. */
static int count(const char *prefix)
{
	char name[512];
	DIR *d;
	int n = 0;

	snprintf(name, sizeof(name), "%s/state", folder);
	d = opendir(name);
	for (struct dirent *e; d && (e = readdir(d));)
		if (!strncmp(e->d_name, prefix, strlen(prefix))) {
			snprintf(name, sizeof(name), "%s/state/%s", folder, e->d_name);
			unlink(name);
			n++;
		}
	if (d)
		closedir(d);
	return n;
}

static int end(void **state)
{
	char name[128];

	count("baseline");
	snprintf(name, sizeof(name), "%s/state", folder);
	rmdir(name);
	return rmdir(folder);
}

static struct health_baseline warm(void)
{
	struct health_baseline b = {0};
	const double sample[] = {1234.5, 0.8, 0.9, 0.7};

	for (int i = 0; i < 40; i++)
		health_baseline_add(&b, S, sample);
	return b;
}

static void test_comes_back(void **state)
{
	struct health_baseline b = warm(), got = {0};
	struct errinfo e = {0};
	struct stat st;

	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, NOW, &got), HEALTH_LOAD_MISSING);
	assert_int_equal(health_file_save(path, &b, S, NOW, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, NOW, &got), HEALTH_LOAD_FRESH);
	assert_memory_equal(&b, &got, sizeof(b));
	assert_int_equal(health_file_save(path, &b, S, NOW, &e), 0);
	assert_int_equal(count("baseline.json"), 1); /* and no temporary file */
}

static void test_is_not_saved_before_it_is_warm(void **state)
{
	struct health_baseline b = {.samples = 29};
	struct errinfo e = {0};

	assert_int_equal(health_file_save(path, &b, S, NOW, &e), -EAGAIN);
	assert_non_null(strstr(e.text, "29 of the 30"));
	b.samples = 30;
	assert_int_equal(health_file_save(path, &b, S, NOW, &e), 0);
}

static void test_stale_ones_are_deleted(void **state)
{
	struct health_baseline b = warm(), got;
	wall_time then = NOW;

	assert_int_equal(health_file_save(path, &b, S, NOW, NULL), 0);
	then.ns += 600 * (int64_t)NS_PER_S;
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, then, &got), HEALTH_LOAD_FRESH);
	then.ns += 1000;
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, then, &got), HEALTH_LOAD_STALE);
	assert_true(access(path, F_OK) < 0);
	assert_int_equal(health_file_save(path, &b, S, NOW, NULL), 0);
	then.ns = NOW.ns + 30 * (int64_t)NS_PER_S; /* the age is the caller's to say */
	assert_int_equal(
		health_file_load(path, S, 31 * (int64_t)NS_PER_S, then, &got), HEALTH_LOAD_FRESH);
	assert_int_equal(
		health_file_load(path, S, 29 * (int64_t)NS_PER_S, then, &got), HEALTH_LOAD_STALE);
	assert_int_equal(health_file_save(path, &b, S, NOW, NULL), 0);
	then.ns = NOW.ns - 1000000; /* saved in the future */
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, then, &got), HEALTH_LOAD_STALE);
	assert_true(access(path, F_OK) < 0);
}

static void put(const char *text)
{
	assert_int_equal(file_write_atomic(path, text, strlen(text), 0644), 0);
}

#define GOOD                                                                                       \
	"\"schema_version\":1,\"saved_at\":\"2027-01-15T08:00:00Z\",\"sample_count\":40,"          \
	"\"fast_alpha\":0.1,\"floor_alpha\":0.001,"
#define EMAS                                                                                       \
	"\"fast_ema\":{\"Throughput\":1,\"Compute\":1,\"Memory\":1,\"CPU\":1},"                    \
	"\"hard_floor\":{\"Throughput\":1,\"Compute\":1,\"Memory\":1,\"CPU\":1}"

static void test_corrupt_ones_are_moved_aside(void **state)
{
	static const char *const bad[] = {"", "{", "[]", "{}", "{" GOOD EMAS "} x",
		"{" GOOD "\"fast_ema\":{\"Throughput\":-1,\"Compute\":1,\"Memory\":1,\"CPU\":1},"
		"\"hard_floor\":{\"Throughput\":1,\"Compute\":1,\"Memory\":1,\"CPU\":1}}",
		"{" GOOD "\"fast_ema\":{\"Throughput\":1e999,\"Compute\":1,\"Memory\":1,\"CPU\":1},"
		"\"hard_floor\":{\"Throughput\":1,\"Compute\":1,\"Memory\":1,\"CPU\":1}}",
		"{\"schema_version\":0,\"saved_at\":\"2027-01-15T08:00:00Z\",\"sample_count\":40,"
		"\"fast_alpha\":0.1,\"floor_alpha\":0.001," EMAS "}",
		"{\"schema_version\":1,\"saved_at\":\"2027-01-15T08:00:00Z\",\"sample_count\":-1,"
		"\"fast_alpha\":0.1,\"floor_alpha\":0.001," EMAS "}",
		"{\"schema_version\":1,\"saved_at\":\"yesterday\",\"sample_count\":40,"
		"\"fast_alpha\":0.1,\"floor_alpha\":0.001," EMAS "}"};
	struct health_baseline b = warm(), got = {0};

	assert_int_equal(health_file_save(path, &b, S, NOW, NULL), 0);
	put("{" GOOD EMAS ",\"more\":[1]}"); /* the control */
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, NOW, &got), HEALTH_LOAD_FRESH);
	assert_true(got.samples == 40 && got.fast[HEALTH_CPU] == 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(bad[i]);
		if (health_file_load(path, S, HEALTH_FILE_AGE_NS, NOW, &got) != HEALTH_LOAD_CORRUPT)
			fail_msg("%s", bad[i]);
		assert_true(access(path, F_OK) < 0);
	}
	assert_int_equal(count("baseline.json.corrupt-"), sizeof(bad) / sizeof(bad[0]));
}

static void test_too_large_is_corrupt(void **state)
{
	struct health_baseline b = warm(), got;
	size_t len = HEALTH_FILE_BYTES + 1;
	char *text = malloc(len);

	assert_int_equal(health_file_save(path, &b, S, NOW, NULL), 0);
	memset(text, ' ', len);
	assert_int_equal(file_write_atomic(path, text, len, 0644), 0);
	free(text);
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, NOW, &got), HEALTH_LOAD_CORRUPT);
}

static void test_others_are_left_alone(void **state)
{
	struct health_baseline_settings other = *S;
	struct health_baseline b = warm(), got;

	assert_int_equal(health_file_save(path, &b, S, NOW, NULL), 0);
	other.fast_alpha = 0.2;
	assert_int_equal(
		health_file_load(path, &other, HEALTH_FILE_AGE_NS, NOW, &got), HEALTH_LOAD_OTHER);
	put("{\"schema_version\":2,\"all\":\"is different\"}");
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, NOW, &got), HEALTH_LOAD_NEWER);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	assert_int_equal(mkdir(path, 0755), 0); /* not to be read as a file */
	assert_int_equal(
		health_file_load(path, S, HEALTH_FILE_AGE_NS, NOW, &got), HEALTH_LOAD_UNREADABLE);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_comes_back, begin, end),
		cmocka_unit_test_setup_teardown(test_is_not_saved_before_it_is_warm, begin, end),
		cmocka_unit_test_setup_teardown(test_stale_ones_are_deleted, begin, end),
		cmocka_unit_test_setup_teardown(test_corrupt_ones_are_moved_aside, begin, end),
		cmocka_unit_test_setup_teardown(test_too_large_is_corrupt, begin, end),
		cmocka_unit_test_setup_teardown(test_others_are_left_alone, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
