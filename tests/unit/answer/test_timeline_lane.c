/* SPDX-License-Identifier: Apache-2.0 */
/* test_timeline_lane.c - sums of a time line: exact to the nanosecond at every width, whatever comes in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "answer/timeline/timeline_index.h"
#include "base/macros.h"

#define ORIGIN INT64_C(1700000000000000000)

static const struct timeline_key key = {.pid = 17, .tid = 19, .kind = TIMELINE_CALLS};

struct sums {
	uint64_t busy_ns, count;
	size_t bins;
	int64_t last_bin;
	uint64_t by_bin[64];
	uint16_t names[64];
};

static int add_up(void *arg, const struct timeline_cell *c)
{
	struct sums *s = arg;

	assert_true((int64_t)c->bin > s->last_bin);
	s->last_bin = c->bin;
	s->busy_ns += c->busy_ns;
	s->count += c->count;
	if (c->bin < ARRAY_SIZE(s->by_bin)) {
		s->by_bin[c->bin] = c->busy_ns;
		s->names[c->bin] = c->name;
	}
	s->bins++;
	return 0;
}

static struct sums sum(const struct timeline_lanes *set, const struct timeline_lane *lane,
	int64_t from, int64_t to, unsigned shift)
{
	struct sums s = {.last_bin = -1};

	assert_int_equal(
		timeline_lane_sum(set, lane, ORIGIN + from, ORIGIN + to, shift, add_up, &s), 0);
	return s;
}

static uint64_t draw(uint64_t *state, uint64_t below)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 33) % below;
}

/* A slice lies in every bin that it touches, and is counted where it begins. */
static void test_edges(void **state)
{
	struct timeline_lanes set;
	struct timeline_lane *lane = NULL;
	struct sums s;

	(void)state;
	timeline_lanes_init(&set, ORIGIN, 1000);
	assert_int_equal(set.shift, 6); /* 64 ns */
	assert_int_equal(timeline_lane_find(&set, &key, &lane), 0);
	timeline_lane_add(&set, lane, ORIGIN + 0, 64, 1); /* a whole bin */
	timeline_lane_add(
		&set, lane, ORIGIN + 127, 2, 2); /* the last of one, the first of the next */
	timeline_lane_add(&set, lane, ORIGIN + 192, 0, 3); /* a moment */
	timeline_lane_add(&set, lane, ORIGIN - 10, 20, 4); /* begins before the origin */
	timeline_lanes_settle(&set);
	s = sum(&set, lane, 0, 1000, 6);
	assert_int_equal(s.by_bin[0], 64 + 20);
	assert_int_equal(s.by_bin[1], 1);
	assert_int_equal(s.by_bin[2], 1);
	assert_int_equal(s.by_bin[3], 0);
	assert_int_equal(s.names[0], 1);
	assert_int_equal(s.names[2], 2);
	assert_int_equal(s.bins, 4);
	assert_int_equal(s.count, 4);
	/* a view of a part has whole bins of it and no others */
	s = sum(&set, lane, 130, 200, 6);
	assert_int_equal(s.bins, 2);
	assert_int_equal(s.busy_ns, 1);
	s = sum(&set, lane, -500, -400, 6);
	assert_int_equal(s.bins, 0);
	timeline_lanes_done(&set);
}

/* Any width adds up to what was put in, and a wider bin is the sum of its parts. */
static void test_levels(void **state)
{
	struct timeline_lanes set;
	struct timeline_lane *lane = NULL;
	uint64_t rng = 7, ns = 0;
	struct sums fine = {0};

	(void)state;
	timeline_lanes_init(&set, ORIGIN, 4096);
	assert_int_equal(timeline_lane_find(&set, &key, &lane), 0);
	for (int i = 0; i < 1009; i++) {
		uint64_t start = draw(&rng, 4000), dur = draw(&rng, 300);

		assert_int_equal(timeline_lane_add(&set, lane, ORIGIN + (int64_t)start, dur, 5), 0);
		ns += dur;
	}
	timeline_lanes_settle(&set);
	assert_int_equal(lane->busy_ns, ns);
	for (unsigned shift = set.shift; shift < 16; shift++) {
		struct sums s = sum(&set, lane, 0, 100000, shift);

		assert_int_equal(s.busy_ns, ns);
		assert_int_equal(s.count, 1009);
		for (size_t i = 0; shift > set.shift && i < ARRAY_SIZE(s.by_bin) / 2; i++)
			assert_int_equal(s.by_bin[i], fine.by_bin[2 * i] + fine.by_bin[2 * i + 1]);
		fine = s;
	}
	timeline_lanes_done(&set);
}

/* Too many cells make wider bins; no nanosecond is lost. */
static void test_coarsening(void **state)
{
	struct timeline_lanes set;
	uint64_t rng = 3, ns[4] = {0};
	struct timeline_lane *lanes[4];
	unsigned shift;

	(void)state;
	timeline_lanes_init(&set, ORIGIN, 1 << 20);
	shift = set.shift;
	set.cells_max = 500;
	for (uint32_t i = 0; i < 4; i++) {
		struct timeline_key k = {.pid = 1, .tid = i, .kind = TIMELINE_CALLS};

		assert_int_equal(timeline_lane_find(&set, &k, &lanes[i]), 0);
	}
	for (int i = 0; i < 20011; i++) {
		uint64_t at = draw(&rng, 1 << 20), dur = draw(&rng, 5000);

		assert_int_equal(
			timeline_lane_add(&set, lanes[i & 3], ORIGIN + (int64_t)at, dur, 1), 0);
		assert_int_equal(timeline_lanes_row(&set, ORIGIN + (int64_t)at), 0);
		ns[i & 3] += dur;
	}
	timeline_lanes_settle(&set);
	assert_true(set.shift > shift);
	assert_true(set.cells <= 500);
	for (int i = 0; i < 4; i++)
		assert_int_equal(sum(&set, lanes[i], 0, 1 << 21, set.shift).busy_ns, ns[i]);
	assert_int_equal(timeline_lanes_rows(&set, ORIGIN, ORIGIN + (1 << 21)), 20011);
	timeline_lanes_done(&set);
}

/* A recording that becomes a thousand times longer than it was when the bins were chosen. */
static void test_growth(void **state)
{
	struct timeline_lanes set;
	struct timeline_lane *lane = NULL;

	(void)state;
	timeline_lanes_init(&set, ORIGIN, 1000);
	assert_int_equal(timeline_lane_find(&set, &key, &lane), 0);
	for (int64_t i = 0; i < 3001; i++) {
		timeline_lane_add(&set, lane, ORIGIN + i * 1000000, 7, 1);
		timeline_lanes_row(&set, ORIGIN + i * 1000000);
	}
	timeline_lanes_settle(&set);
	assert_true(set.bins <= TIMELINE_BINS_MAX);
	assert_int_equal(sum(&set, lane, 0, INT64_C(1) << 40, set.shift).busy_ns, 3001 * 7);
	assert_int_equal(timeline_lanes_rows(&set, ORIGIN, ORIGIN + (INT64_C(1) << 40)), 3001);
	timeline_lanes_done(&set);
}

/* Rows in the order of their end, or backwards, give the same sums as in order. */
static void test_any_order(void **state)
{
	struct timeline_lanes a, b;
	struct timeline_lane *x = NULL, *y = NULL;
	struct sums s, t;

	(void)state;
	timeline_lanes_init(&a, ORIGIN, 1 << 22);
	timeline_lanes_init(&b, ORIGIN, 1 << 22);
	assert_int_equal(timeline_lane_find(&a, &key, &x), 0);
	assert_int_equal(timeline_lane_find(&b, &key, &y), 0);
	for (int64_t i = 0; i < 40009; i++) {
		timeline_lane_add(&a, x, ORIGIN + i * 100, 60, 1);
		timeline_lane_add(&b, y, ORIGIN + (40008 - i) * 100, 60, 1);
	}
	timeline_lanes_settle(&a);
	timeline_lanes_settle(&b);
	assert_int_equal(a.cells, b.cells);
	for (unsigned shift = a.shift; shift < 24; shift += 3) {
		s = sum(&a, x, 0, 1 << 23, shift);
		t = sum(&b, y, 0, 1 << 23, shift);
		assert_int_equal(s.busy_ns, 40009 * 60);
		assert_memory_equal(&s.by_bin, &t.by_bin, sizeof(s.by_bin));
		assert_int_equal(s.bins, t.bins);
	}
	timeline_lanes_done(&a);
	timeline_lanes_done(&b);
}

/* A name that took more than half of a bin is the bin's, whatever else was in it. */
static void test_majority(void **state)
{
	struct timeline_lanes set;
	struct timeline_lane *lane = NULL;
	uint64_t rng = 11;

	(void)state;
	timeline_lanes_init(&set, ORIGIN, 1 << 20);
	assert_int_equal(timeline_lane_find(&set, &key, &lane), 0);
	for (int64_t i = 0; i < 1000; i++)
		timeline_lane_add(&set, lane, ORIGIN + i * 100, 50 + (i % 3 ? 40 : 0),
			i % 3 ? 42 : (uint16_t)(1 + draw(&rng, 20)));
	timeline_lanes_settle(&set);
	assert_int_equal(sum(&set, lane, 0, 100000, 30).names[0], 42);
	timeline_lanes_done(&set);
}

/* Slices as long as the recording, again and again, end in wider bins instead of in hours of work. */
static void test_hostile(void **state)
{
	struct timeline_lanes set;
	struct timeline_lane *lane = NULL;

	(void)state;
	timeline_lanes_init(&set, ORIGIN, INT64_C(1) << 24);
	assert_int_equal(timeline_lane_find(&set, &key, &lane), 0);
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(timeline_lane_add(&set, lane, ORIGIN, UINT64_C(1) << 24, 1), 0);
		timeline_lanes_long(&set, &(struct timeline_long){ORIGIN, UINT64_C(1) << 24, i});
	}
	timeline_lanes_settle(&set);
	assert_int_equal(
		sum(&set, lane, 0, INT64_C(1) << 25, set.shift).busy_ns, UINT64_C(20000) << 24);
	assert_int_equal(set.long_count, 20000);
	timeline_lanes_done(&set);
}

/* Long slices are kept one by one as far as there is room: then only the longer ones. */
static void test_longs(void **state)
{
	struct timeline_lanes set;

	(void)state;
	timeline_lanes_init(&set, ORIGIN, 1000);
	for (int64_t i = 0; i < TIMELINE_LONGS_MAX + 1000; i++)
		assert_int_equal(timeline_lanes_long(&set,
					 &(struct timeline_long){ORIGIN + i,
						 (uint64_t)set.long_ns * (i % 7 ? 1 : 100), i}),
			0);
	assert_true(set.long_count <= TIMELINE_LONGS_MAX);
	for (size_t i = 0; i < set.long_count; i++)
		assert_true(set.longs[i].dur_ns >= (uint64_t)set.long_ns);
	timeline_lanes_long(&set, &(struct timeline_long){ORIGIN, (uint64_t)set.long_ns - 1, 1});
	assert_true(set.longs[set.long_count - 1].dur_ns >= (uint64_t)set.long_ns);
	timeline_lanes_done(&set);
}

/* Ten thousand threads each have a lane; beyond the ceiling there is none. */
static void test_many(void **state)
{
	struct timeline_lanes set;
	struct timeline_lane *lane = NULL;

	(void)state;
	timeline_lanes_init(&set, ORIGIN, 1000);
	for (uint32_t i = 0; i < TIMELINE_LANES_MAX + 10; i++) {
		struct timeline_key k = {.pid = 1, .tid = i, .kind = TIMELINE_CALLS};

		assert_int_equal(timeline_lane_find(&set, &k, &lane), 0);
		assert_int_equal(lane != NULL, i < TIMELINE_LANES_MAX);
		if (lane)
			assert_int_equal(timeline_lane_add(&set, lane, ORIGIN, 1, 1), 0);
	}
	assert_int_equal(set.count, TIMELINE_LANES_MAX);
	assert_ptr_equal(timeline_lane_get(&set, &set.list[77]->key), set.list[77]);
	timeline_lanes_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_coarsening),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_majority),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_longs),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
