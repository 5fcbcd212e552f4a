/* SPDX-License-Identifier: Apache-2.0 */
/* test_pusher_counters.c - totals are exact however often the same buckets are read. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "node/push/pusher_recording.h"
#include "wire/ids.h"

#define S      ((int64_t)NS_PER_S)
#define BUCKET ((int64_t)NODEDB_BUCKET_FINE)

/* A recording: every bucket has so many launches of one process; the newest ones still grow. */
static void read_all(struct pusher_counters *c, int64_t first, int64_t now, uint64_t per_bucket)
{
	int64_t from = pusher_counters_begin(c);

	for (int64_t b = first; b <= now; b += BUCKET) {
		struct recent_calls row = {.bucket_ns = b,
			.source = SOURCE_CUDA,
			.op = CUDA_LAUNCH,
			.count = b + BUCKET <= now ? per_bucket : per_bucket / 2};

		if (b >= from)
			assert_int_equal(pusher_counters_add(c, &row, "g", now), 0);
	}
	pusher_counters_end(c, now);
}

/* Ten minutes of pushes: windows that were added up would be several times too much. */
static void test_no_bucket_counts_twice(void **state)
{
	static const int intervals[] = {1, 5, 7, 10, 30, 60};

	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++) {
		struct pusher_counters c;
		int64_t start = 1000 * BUCKET, now = start;
		uint64_t before = 0;

		pusher_counters_init(&c, start + S);
		assert_true(c.start_ns == start);
		while (now < start + 600 * S) {
			uint64_t done;

			now += intervals[i] * S;
			read_all(&c, start - 20 * BUCKET, now, 1000);
			done = (uint64_t)((now - start) / BUCKET) * 1000 + 500;
			assert_true(c.launches == done);
			assert_true(c.launches >= before);
			before = c.launches;
		}
		pusher_counters_done(&c);
	}
}

/* A snapshot may be visited again from its beginning. */
static void test_a_reading_that_starts_afresh(void **state)
{
	struct pusher_counters c;
	int64_t start = 1000 * BUCKET, now = start + 200 * S;

	pusher_counters_init(&c, start);
	for (int visit = 0; visit < 2; visit++) {
		int64_t from = pusher_counters_begin(&c);

		for (int64_t b = from; b < now; b += BUCKET) {
			struct recent_calls row = {.bucket_ns = b,
				.source = SOURCE_CUDA,
				.op = CUDA_LAUNCH,
				.count = 10};

			assert_int_equal(pusher_counters_add(&c, &row, "g", now), 0);
		}
	}
	pusher_counters_end(&c, now);
	assert_true(c.launches == 400);
	pusher_counters_done(&c);
}

/* The bucket in which a file is rolled over is in both files, a part in each. */
static void test_a_rolled_file(void **state)
{
	struct pusher_counters c;
	int64_t start = 1000 * BUCKET, now = start + 12 * S;

	pusher_counters_init(&c, start);
	read_all(&c, start, now, 100);
	assert_true(c.launches == 250);
	pusher_counters_roll(&c);
	read_all(&c, start + 2 * BUCKET, now, 60); /* the new file's half of it */
	assert_true(c.launches == 250 + 30);
	pusher_counters_done(&c);
}

static void test_directions_and_groups(void **state)
{
	static const struct recent_calls rows[] = {
		{.source = SOURCE_DRIVER, .op = DRIVER_MEMCPY_HTOD, .bytes = 1},
		{.source = SOURCE_DRIVER, .op = DRIVER_MEMCPY_DTOH_ASYNC, .bytes = 20},
		{.source = SOURCE_DRIVER, .op = DRIVER_MEMCPY_DTOD, .bytes = 300},
		{.source = SOURCE_CUDA, .op = CUDA_MEMCPY_PEER, .bytes = 4000},
		{.source = SOURCE_CUDA, .op = CUDA_MEMCPY_ASYNC, .bytes = 50000},
		{.source = SOURCE_DRIVER, .op = DRIVER_MEMCPY, .bytes = 7, .nested = true},
		{.source = SOURCE_CUDA, .op = CUDA_MEMCPY_BATCH, .bytes = 9},
	};
	struct push_counters *list;
	struct pusher_counters c;
	size_t count;

	pusher_counters_init(&c, 0);
	pusher_counters_begin(&c);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(pusher_counters_add(&c, &rows[i], "a", S), 0);
	assert_int_equal(pusher_counters_stall(&c, "b", 77), 0);
	pusher_counters_end(&c, S);
	assert_int_equal(pusher_counters_list(&c, &list, &count), 0);
	assert_int_equal(count, 2);
	assert_true(list[0].copied_bytes[0] == 0 && list[0].copied_bytes[1] == 1 &&
		    list[0].copied_bytes[2] == 20 && list[0].copied_bytes[3] == 4300 &&
		    list[0].copied_bytes[4] == 50000);
	assert_string_equal(list[1].cohort, "b");
	assert_true(list[1].stall_ns == 77);
	free(list);
	pusher_counters_done(&c);
}

static void test_too_many_groups_count_as_one(void **state)
{
	struct pusher_counters c;
	struct recent_calls row = {.source = SOURCE_CUDA, .op = CUDA_LAUNCH, .count = 1};

	pusher_counters_init(&c, 0);
	pusher_counters_begin(&c);
	for (int i = 0; i < 3000; i++) {
		char name[PUSH_HASH_MAX];

		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(pusher_counters_add(&c, &row, name, S), 0);
	}
	pusher_counters_end(&c, S);
	assert_int_equal(c.count, PUSHER_GROUPS_MAX);
	assert_true(c.launches == 3000);
	assert_string_equal(c.items[c.count - 1].name, PUSHER_GROUP_OTHERS);
	pusher_counters_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_bucket_counts_twice),
		cmocka_unit_test(test_a_reading_that_starts_afresh),
		cmocka_unit_test(test_a_rolled_file),
		cmocka_unit_test(test_directions_and_groups),
		cmocka_unit_test(test_too_many_groups_count_as_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
