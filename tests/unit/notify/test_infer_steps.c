/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "notify/remediate/remediate.h"
#include "base/macros.h"
#include "wire/ids.h"

#define MS ((int64_t)NS_PER_MS)

static const struct infer_settings settings = {.warmup = 30, .ratio = 3};
static struct infer_steps s;
static struct infer_outlier found;

static int setup(void **state)
{
	infer_init(&s, &settings);
	return 0;
}

static int teardown(void **state)
{
	infer_done(&s);
	return 0;
}

/* A wait on @stream of @pid that ends at @end_ns. */
static bool wait_ends(uint32_t pid, uint64_t stream, int64_t end_ns)
{
	const struct event e = {.source = SOURCE_CUDA,
		.op = CUDA_STREAM_SYNC,
		.pid = pid,
		.arg0 = stream,
		.start = {end_ns - 1000},
		.dur_ns = 1000};

	return infer_take(&s, &e, &found);
}

/* @count steps of @step_ns from @from_ns on; returns where they end. */
static int64_t run(uint32_t pid, uint64_t stream, int64_t from_ns, int64_t step_ns, int count)
{
	wait_ends(pid, stream, from_ns);
	for (int i = 1; i <= count; i++)
		assert_false(wait_ends(pid, stream, from_ns + i * step_ns));
	return from_ns + count * step_ns;
}

static void test_buckets_exclude_each_other(void **state)
{
	static const struct {
		int64_t step_ms;
		enum infer_bucket want;
	} rows[] = {{14, INFER_ORDINARY}, {15, INFER_1_5X}, {19, INFER_1_5X}, {20, INFER_2X},
		{29, INFER_2X}, {30, INFER_RATIO}, {500, INFER_RATIO}};
	int64_t at = run(1, 7, 1000 * MS, 10 * MS, 100);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		at += rows[i].step_ms * MS;
		assert_int_equal(wait_ends(1, 7, at), rows[i].want != INFER_ORDINARY);
		if (rows[i].want != INFER_ORDINARY) {
			assert_int_equal(found.bucket, rows[i].want);
			assert_int_equal(found.step_ns, rows[i].step_ms * MS);
			assert_int_equal(found.of->p95_ns, 10 * MS); /* outliers are not learned */
		}
	}
	assert_int_equal(s.outliers[INFER_1_5X], 2);
	assert_int_equal(s.outliers[INFER_2X], 2);
	assert_int_equal(s.outliers[INFER_RATIO], 2);
}

static void test_the_warm_up_judges_nothing(void **state)
{
	int64_t at = run(1, 7, 1000 * MS, 10 * MS, 28);

	at += 100 * MS;
	assert_false(wait_ends(1, 7, at)); /* the 29th is learned */
	at = run(1, 7, at, 10 * MS, 100);
	assert_true(wait_ends(1, 7, at + 100 * MS));
}

static void test_streams_and_processes_are_apart(void **state)
{
	run(1, 7, 1000 * MS, 10 * MS, 50);
	run(1, 8, 1000 * MS, 100 * MS, 50);
	run(2, 7, 1000 * MS, 100 * MS, 50);
	assert_true(wait_ends(1, 7, 1000 * MS + 500 * MS + 100 * MS));
	assert_false(wait_ends(1, 8, 1000 * MS + 5000 * MS + 100 * MS));
	assert_false(wait_ends(2, 7, 1000 * MS + 5000 * MS + 100 * MS));
}

static void test_pauses_and_long_silences_are_no_steps(void **state)
{
	int64_t at = run(1, 7, 1000 * MS, 10 * MS, 50);

	at += 61000 * MS;
	assert_false(wait_ends(1, 7, at));
	infer_pause(&s, 1, (wall_time){at + 1000 * MS});
	at += 100 * MS;
	assert_false(wait_ends(1, 7, at));
	assert_int_equal(s.ignored, 2);
	at += 1000 * MS; /* the pause is over */
	assert_true(wait_ends(1, 7, at));
}

static void test_only_waits_of_the_program_itself(void **state)
{
	struct event e = {.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .pid = 1, .start = {1}};

	assert_false(infer_take(&s, &e, &found));
	e.op = CUDA_STREAM_SYNC;
	e.flags = WIRE_NESTED;
	assert_false(infer_take(&s, &e, &found));
	assert_int_equal(s.streams.used, 0);
	run(1, 7, 1000 * MS, 10 * MS, 2);
	assert_int_equal(s.streams.used, 1);
	e = (struct event){.source = SOURCE_HOST, .op = HOST_PROCESS_EXIT, .pid = 1};
	assert_false(infer_take(&s, &e, &found));
	assert_int_equal(s.streams.used, 0);
}

static void test_the_ceiling_forgets_the_oldest(void **state)
{
	for (uint64_t i = 0; i <= INFER_STREAMS; i++)
		wait_ends(1, i + 1, 1000 * MS + (int64_t)i);
	assert_int_equal(s.streams.used, INFER_STREAMS);
	wait_ends(1, 1, 2000 * MS); /* was forgotten: no step */
	assert_int_equal(s.steps, 0);
	wait_ends(1, INFER_STREAMS + 1, 2000 * MS);
	assert_int_equal(s.steps, 1);
}

static void test_names_of_buckets(void **state)
{
	char name[INFER_NAME_MAX];

	assert_string_equal(infer_bucket_name(&s, INFER_1_5X, name), "1.5x");
	assert_string_equal(infer_bucket_name(&s, INFER_2X, name), "2x");
	assert_string_equal(infer_bucket_name(&s, INFER_RATIO, name), "3x");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_buckets_exclude_each_other),
		TEST(test_the_warm_up_judges_nothing),
		TEST(test_streams_and_processes_are_apart),
		TEST(test_pauses_and_long_silences_are_no_steps),
		TEST(test_only_waits_of_the_program_itself),
		TEST(test_the_ceiling_forgets_the_oldest),
		TEST(test_names_of_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
