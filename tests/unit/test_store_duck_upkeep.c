/* SPDX-License-Identifier: Apache-2.0 */
#include "store_duck_fixture.h"

/* ---- upkeep ---- */

/* Red has an old part and blue, which came later, fills the store: whose parts are left. */
static void fill_by_one(struct scratch_store *s, const struct store_share *shares, size_t count,
	int64_t *ret_red, int64_t *ret_blue)
{
	struct store_stats st;
	uint64_t n = 0;

	s->settings.bytes_max = 0;
	store_begin(s);
	for (int part = 0; part < 6; part++) {
		struct batch b = {.bytes = BUF_INIT(1u << 20)};

		for (int i = 0; i < 10; i++)
			put_event(&b, part ? "blue" : "red", "n1", (int64_t)++n);
		assert_int_equal(take_batch(s->store, (uint64_t)part + 1, &b), 0);
		assert_int_equal(store_commit(s->store, NULL), 0);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 6);
	((struct store_duck *)s->store)->settings.bytes_max =
		st.bytes * 7 / 12; /* three and a half */
	assert_int_equal(store_share(s->store, shares, count), 0);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 3);
	assert_int_equal(st.dropped_rows, 30);
	*ret_red = ask_number(
		s->store, NULL, "SELECT count(*) FROM {events} WHERE cluster_id = 'red'");
	*ret_blue = ask_number(
		s->store, NULL, "SELECT count(*) FROM {events} WHERE cluster_id = 'blue'");
}

static void test_who_fills_the_store_loses_its_own(void **state)
{
	static const struct store_share shares[] = {{"red", 1, 0}, {"blue", 2, 0}};
	int64_t red, blue;

	fill_by_one(*state, shares, 2, &red, &blue);
	assert_int_equal(red, 10);
	assert_int_equal(blue, 20);
}

static void test_a_cluster_that_several_list(void **state)
{
	static const struct store_share shares[] = {{"red", 3, 90}, {"red", 1, 5}, {"green", 2, 0}};
	int64_t red, blue;

	fill_by_one(
		*state, shares, 3, &red, &blue); /* it is the lowest owner's, who has too much */
	assert_int_equal(red, 0);
	assert_int_equal(blue, 30);
}

static void test_control_one_owner_loses_the_oldest(void **state)
{
	static const struct store_share shares[] = {{"red", 1, 0}, {"blue", 1, 0}};
	int64_t red, blue;

	fill_by_one(*state, shares, 2, &red, &blue);
	assert_int_equal(red, 0);
	assert_int_equal(blue, 30);
}

static void test_a_share_that_is_too_small(void **state)
{
	static const struct store_share shares[] = {{"red", 1, 1}, {"blue", 2, 99}};
	int64_t red, blue;

	fill_by_one(*state, shares, 2, &red, &blue);
	assert_int_equal(red, 0);
	assert_int_equal(blue, 30);
}

static void test_merging_keeps_the_rows(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	for (uint64_t n = 4; n <= 32; n += 4) {
		fill_up_to(s->store, n);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 16);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		assert_filled(s->store, 32);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 2);
	assert_int_equal(st.dropped_rows, 0);
	store_end(s);
	store_begin(s);
	assert_filled(s->store, 32);
}

static void test_retention_drops_the_oldest(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	s->settings.retention_ns = 100 * NS_PER_S;
	store_begin(s);
	for (uint64_t n = 50; n <= 200; n += 50) {
		fill_up_to(s->store, n);
		assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	}
	while (s->store->ops->upkeep(s->store, T0 + 210 * (int64_t)NS_PER_S, NULL) > 0)
		;
	/* Parts with rows 101 to 150 and 151 to 200 stay, of each cluster. */
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 300);
	assert_int_equal(ask_number(s->store, NULL, "SELECT min(value_int) FROM {events}"), 101);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 4);
	assert_int_equal(st.dropped_rows, 310);
	assert_int_equal(st.durable, 200);
	store_end(s);

	s->settings.retention_ns = 0;
	s->settings.bytes_max = st.bytes - 1;
	store_begin(s);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.parts, 3);
	assert_true(st.bytes <= s->settings.bytes_max);
}

/* ---- damage ---- */

static void test_a_part_that_is_cut_is_moved_away(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	fill_up_to(s->store, 30);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	damage_part_in(s->folder, true);
	for (int i = 0; i < 2; i++) { /* it is moved once */
		store_begin(s);
		assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 30);
		s->store->ops->stats(s->store, &st);
		assert_int_equal(st.fault, i == 0 ? -EBADMSG : 0);
		assert_int_equal(st.parts, 1);
		store_end(s);
		assert_int_equal(access(part_file, F_OK), -1);
	}
}

static void test_a_part_that_cannot_be_read_is_moved_away(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;
	struct sql_table t;

	store_begin(s);
	fill_up_to(s->store, 30);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	store_end(s);
	damage_part_in(s->folder, false);
	store_begin(s);
	if (store_select(s->store, NULL, "SELECT sum(value_int) FROM {events}", &STORE_LIMITS, &t,
		    NULL) == 0)
		sql_table_done(&t);
	while (s->store->ops->upkeep(s->store, T0, NULL) > 0)
		;
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 30);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.fault, -EBADMSG);
	assert_non_null(strstr(st.fault_text, "cluster red is damaged"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_who_fills_the_store_loses_its_own),
		T(test_control_one_owner_loses_the_oldest),
		T(test_a_cluster_that_several_list),
		T(test_a_share_that_is_too_small),
		T(test_merging_keeps_the_rows),
		T(test_retention_drops_the_oldest),
		T(test_a_part_that_is_cut_is_moved_away),
		T(test_a_part_that_cannot_be_read_is_moved_away),
#undef T
	};

	if (!duck_fixture_has())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
