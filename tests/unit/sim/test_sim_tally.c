// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "tally.h"

#define THREADS 7
#define CALLS   10007 /* of each thread; a prime, as all counts here */

static const char *const names[] = {"first", "second"};
const struct tally_library tally_library = {".test", names, 2};

static void test_path(void **state)
{
	char path[16];

	assert_int_equal(tally_path("a%p.%p", 42, ".x", path, sizeof(path)), 0);
	assert_string_equal(path, "a42.42.x");
	assert_int_equal(tally_path("100%", 42, "", path, sizeof(path)), 0);
	assert_string_equal(path, "100%");
	assert_int_equal(tally_path("0123456789abcdef", 1, "", path, sizeof(path)), -ENAMETOOLONG);
	assert_int_equal(tally_path("0123456789abc", 1, ".xy", path, sizeof(path)), -ENAMETOOLONG);
}

static void *count(void *arg)
{
	for (int i = 0; i < CALLS; i++) {
		struct tally_call c = tally_begin(1, i % 2);

		if (i % 3 != 2) /* every third is never ended */
			tally_end(&c, i % 5 == 0, 11);
	}
	return NULL;
}

static void test_threads_lose_nothing(void **state)
{
	uint64_t ended = 0, errors = 0;
	pthread_t t[THREADS];
	struct tally_sum s;

	for (int i = 0; i < CALLS; i++) {
		ended += i % 3 != 2;
		errors += i % 3 != 2 && i % 5 == 0;
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, count, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	tally_sum(1, &s);
	assert_int_equal(s.calls, THREADS * CALLS);
	assert_int_equal(s.nested, THREADS * (CALLS / 2));
	assert_int_equal(s.returned, THREADS * ended);
	assert_int_equal(s.errors, THREADS * errors);
	assert_int_equal(s.bytes, THREADS * ended * 11);
	assert_true(s.max_ns <= s.total_ns);
	tally_sum(0, &s);
	assert_int_equal(s.calls, 0);
}

static void test_file(void **state)
{
	char line[256], path[256];
	unsigned long long calls, unreturned;
	FILE *f;

	assert_int_equal(tally_write(), 0);
	snprintf(path, sizeof(path), "%s.test", getenv("SIM_TALLY"));
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(
		line, "# symbol calls errors bytes total_ns max_ns nested unreturned\n");
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "first 0 0 0 0 0 0 0\n");
	assert_int_equal(fscanf(f, "second %llu %*u %*u %*u %*u %*u %llu", &calls, &unreturned), 2);
	assert_int_equal(calls, THREADS * CALLS);
	assert_int_equal(unreturned, THREADS * (CALLS / 3));
	fclose(f);
	tally_is_on = false; /* the file is not wanted again at exit */
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_threads_lose_nothing),
		cmocka_unit_test(test_file),
	};
	char path[64];

	snprintf(path, sizeof(path), "/tmp/test_sim_tally.%d", getpid());
	setenv("SIM_TALLY", path, 1);
	tally_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
