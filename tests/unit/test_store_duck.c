/* SPDX-License-Identifier: Apache-2.0 */
#include "store_duck_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

static void test_committed_rows_are_visible(void **state)
{
	struct scratch_store *s = *state;

	store_begin(s);
	assert_int_equal(take_entry(s->store, 1), 0);
	assert_int_equal(ask_number(s->store, NULL, "SELECT count(*) FROM {events}"), 0);
	assert_int_equal(store_commit(s->store, NULL), 0);
	assert_filled(s->store, 1);
	fill_up_to(s->store, 100);
	assert_filled(s->store, 100);
	assert_int_equal(store_durable(s->store), 0);
}

static void test_what_is_no_batch_changes_nothing(void **state)
{
	struct scratch_store *s = *state;
	struct batch b = {.bytes = BUF_INIT(1u << 20)};

	store_begin(s);
	assert_int_equal(store_take(s->store, 1, "xyz", 3, NULL), -EBADMSG);
	put_event(&b, "bad\xff name", "n", 1);
	assert_int_equal(take_batch(s->store, 1, &b), -EBADMSG);
	fill_up_to(s->store, 10);
	assert_filled(s->store, 10);
}

static void test_sealed_rows_survive(void **state)
{
	struct scratch_store *s = *state;
	struct store_stats st;

	store_begin(s);
	fill_up_to(s->store, 50);
	assert_int_equal(s->store->ops->seal(s->store, NULL), 0);
	fill_up_to(s->store, 80); /* these are not sealed: the journal still has them */
	assert_filled(s->store, 80);
	s->store->ops->stats(s->store, &st);
	assert_int_equal(st.visible, 80);
	assert_int_equal(st.durable, 50);
	assert_int_equal(st.parts, 2);
	assert_int_equal(st.rows[TABLE_EVENTS], 240);
	assert_int_equal(st.oldest_ns, T0 + (int64_t)NS_PER_S);
	assert_int_equal(st.fault, 0);
	store_end(s);

	store_begin(s);
	assert_filled(s->store, 50);
	for (uint64_t i = 40; i <= 80; i++) { /* from too early: nothing is there twice */
		assert_int_equal(take_entry(s->store, i), 0);
		assert_int_equal(store_commit(s->store, NULL), 0);
	}
	assert_filled(s->store, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
		T(test_committed_rows_are_visible),
		T(test_what_is_no_batch_changes_nothing),
		T(test_sealed_rows_survive),
#undef T
	};

	if (!duck_is_there())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
