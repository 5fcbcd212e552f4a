/* SPDX-License-Identifier: Apache-2.0 */
/* test_metric.c - points and their attributes, ceilings, and histograms out of sketches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/metric.h"

static const struct metric_desc gauge = {.otlp = "g",
	.prometheus = "g",
	.unit = "1",
	.help = "a gauge",
	.keys = {{"text", "text"}, {"number", "number"}}};
static const struct metric_desc plain = {.otlp = "p", .prometheus = "p", .unit = "1", .help = "p"};
static const struct metric_desc counter = {.otlp = "c",
	.prometheus = "c_total",
	.unit = "1",
	.kind = METRIC_COUNTER,
	.help = "a counter"};
static const struct metric_desc seconds = {.otlp = "h",
	.prometheus = "h_seconds",
	.unit = "s",
	.kind = METRIC_HISTOGRAM,
	.unit_ns = 1e9,
	.help = "a histogram"};

static void test_points_in_order_of_first_use(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){42});
	const struct metric *m;

	metric_put_int(s, &plain, (wall_time){0}, 1, NULL);
	metric_put_int(
		s, &gauge, (wall_time){0}, 2, METRIC_OF(METRIC_TEXT("a"), METRIC_NUMBER(-7)));
	metric_put_int(s, &plain, (wall_time){0}, 3, NULL);
	metric_put_int(s, &gauge, (wall_time){0}, 4, METRIC_OF(METRIC_NONE, METRIC_NUMBER(8)));
	assert_int_equal(metric_set_time(s).ns, 42);
	assert_int_equal(metric_set_points(s), 4);
	m = metric_first(s);
	assert_ptr_equal(m->desc, &plain);
	assert_int_equal(m->count, 2);
	assert_int_equal(m->first->value.i, 1);
	assert_int_equal(m->first->next->value.i, 3);
	m = m->next;
	assert_ptr_equal(m->desc, &gauge);
	assert_string_equal(m->first->attributes[0].text, "a");
	assert_int_equal(m->first->attributes[1].number, -7);
	assert_true(m->first->next->attributes[0].is_absent);
	assert_null(m->next);
}

static void test_texts_are_copied_clean_and_short(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){1});
	char text[1000], *euros = text;
	const struct metric_point *p;

	snprintf(text, sizeof(text), "a\xff\xc0\xaf\xed\xa0\x80z\n");
	p = metric_put_int(s, &gauge, (wall_time){0}, 1, METRIC_OF(METRIC_TEXT(text), METRIC_NONE));
	memset(text, 'x', sizeof(text));
	assert_string_equal(p->attributes[0].text,
		"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\n");
	for (int i = 0; i < 300; i++, euros += 3)
		memcpy(euros, "\xe2\x82\xac", 4);
	p = metric_put_int(s, &gauge, (wall_time){0}, 1, METRIC_OF(METRIC_TEXT(text), METRIC_NONE));
	assert_int_equal(strlen(p->attributes[0].text), 255 / 3 * 3); /* whole characters */
}

static void test_starts(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){9});

	assert_int_equal(metric_put_int(s, &plain, (wall_time){5}, 1, NULL)->start.ns, 0);
	assert_int_equal(metric_put_int(s, &counter, (wall_time){5}, 1, NULL)->start.ns, 5);
}

static void test_what_is_too_much_is_cut_and_counted(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){1});
	struct metric_desc many[16];
	size_t put = 0;

	for (int i = 0; i < METRIC_SERIES_MAX + 3; i++)
		metric_put_int(
			s, &gauge, (wall_time){0}, i, METRIC_OF(METRIC_NUMBER(i), METRIC_NONE));
	assert_int_equal(metric_set_points(s), METRIC_SERIES_MAX);
	assert_int_equal(metric_set_cut(s), 3);
	for (int k = 0; k < 16; k++) {
		many[k] = counter;
		for (int i = 0; i < METRIC_SERIES_MAX; i++)
			put += metric_put_int(s, &many[k], (wall_time){1}, i, NULL) != NULL;
	}
	assert_int_equal(metric_set_points(s), METRIC_POINTS_MAX);
	assert_int_equal(put, METRIC_POINTS_MAX - METRIC_SERIES_MAX);
	assert_int_equal(metric_set_cut(s), 3 + 16 * METRIC_SERIES_MAX - put);
}

static void test_an_arena_has_an_end(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){1});
	static struct metric_desc descs[8];
	char text[METRIC_TEXT_MAX];
	size_t put = 0;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	for (int d = 0; d < 8; d++) {
		descs[d] = gauge;
		for (int k = 0; k < METRIC_KEYS_MAX; k++)
			descs[d].keys[k] = (struct metric_key){"k", "k"};
		for (int i = 0; i < METRIC_SERIES_MAX; i++) {
			struct metric_attribute all[METRIC_KEYS_MAX];

			for (int k = 0; k < METRIC_KEYS_MAX; k++)
				all[k] = METRIC_TEXT(text);
			put += metric_put_int(s, &descs[d], (wall_time){0}, i, all) != NULL;
		}
	}
	assert_in_range(put, 3000, 4000); /* 8 MiB of 2.3 kB each */
	assert_int_equal(metric_set_cut(s), 8 * METRIC_SERIES_MAX - put);
}

/* A call of exactly a bound's length is in that bound's bucket, one of a nanosecond more is not. */
static void test_no_call_is_in_the_wrong_bucket(void **state)
{
	for (unsigned i = 0; i < METRIC_BOUNDS; i++) {
		_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){1});
		uint64_t edge = (UINT64_C(1) << (METRIC_FIRST_BITS + i)) - 1;
		const struct metric_histogram *h;
		struct sketch k = {0};

		sketch_add(&k, edge, 3);
		sketch_add(&k, edge + 1, 5);
		h = metric_put_sketch(s, &seconds, (wall_time){1}, &k, NULL)->value.h;
		assert_int_equal(h->buckets[i], 3);
		assert_int_equal(h->buckets[i + 1], 5);
		assert_int_equal(h->count, 8);
		assert_true(metric_bound(&seconds, i) == (double)edge / 1e9);
		assert_true(h->sum == (double)(3 * edge + 5 * (edge + 1)) / 1e9);
		assert_true(h->min == (double)edge / 1e9 && h->max == (double)(edge + 1) / 1e9);
	}
}

static void test_the_ends_of_a_histogram(void **state)
{
	_cleanup_(metric_set_freep) struct metric_set *s = metric_set_new((wall_time){1});
	const struct metric_histogram *h;
	struct sketch k = {0}, none = {0};

	sketch_add(&k, 0, 2);
	sketch_add(&k, UINT64_MAX / 4, 1);
	h = metric_put_sketch(s, &seconds, (wall_time){1}, &k, NULL)->value.h;
	assert_int_equal(h->buckets[0], 2);
	assert_int_equal(h->buckets[METRIC_BOUNDS], 1);
	h = metric_put_sketch(s, &seconds, (wall_time){1}, &none, NULL)->value.h;
	assert_int_equal(h->count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points_in_order_of_first_use),
		cmocka_unit_test(test_texts_are_copied_clean_and_short),
		cmocka_unit_test(test_starts),
		cmocka_unit_test(test_what_is_too_much_is_cut_and_counted),
		cmocka_unit_test(test_an_arena_has_an_end),
		cmocka_unit_test(test_no_call_is_in_the_wrong_bucket),
		cmocka_unit_test(test_the_ends_of_a_histogram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
