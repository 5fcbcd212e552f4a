/* SPDX-License-Identifier: Apache-2.0 */
/* test_alert_queue.c - one incident an episode, whatever waits, whatever is lost. */
#include "alert_fixture.h"

#include "alert/alert.h"

static void put_of(struct alert_queue *q, enum alert_kind kind, uint64_t id, int cluster)
{
	struct alert_notice n = notice(kind, id);

	snprintf(n.matter.cluster, sizeof(n.matter.cluster), "c%d", cluster);
	alert_queue_put(q, &n);
}

/* Clusters of few incidents each. */
static void put(struct alert_queue *q, enum alert_kind kind, uint64_t id)
{
	put_of(q, kind, id, (int)(id / 16));
}

static void expect(struct alert_queue *q, int kind, uint64_t id)
{
	struct alert_item *i = alert_queue_take(q);

	if (kind < 0) {
		assert_null(i);
		return;
	}
	assert_non_null(i);
	assert_int_equal(i->notice.kind, kind);
	assert_int_equal(i->notice.matter.id, id);
	free(i);
}
#define BEGAN   ALERT_BEGAN
#define CHANGED ALERT_CHANGED
#define ENDED   ALERT_ENDED

static void test_in_order(void **state)
{
	struct alert_queue q = ALERT_QUEUE_INIT;

	put(&q, BEGAN, 1);
	put(&q, BEGAN, 2);
	expect(&q, BEGAN, 1);
	put(&q, CHANGED, 1);
	put(&q, ENDED, 2); /* had begun and was not told: nothing to resolve */
	expect(&q, CHANGED, 1);
	put(&q, CHANGED, 1);
	put(&q, ENDED, 1); /* replaces the change */
	expect(&q, ENDED, 1);
	expect(&q, -1, 0);
	put(&q, ENDED, 1); /* a second end */
	put(&q, ENDED, 99);
	expect(&q, -1, 0);
	assert_int_equal(q.merged, 1);
	assert_int_equal(q.brief, 4);
	assert_int_equal(q.open.used, 0);
	alert_queue_done(&q);
}

static void test_labels_of_the_first(void **state)
{
	struct alert_queue q = ALERT_QUEUE_INIT;
	struct alert_notice n = notice(BEGAN, 1);
	const struct alert_open *open;
	struct alert_item *i;
	size_t cursor = 0;

	put(&q, BEGAN, 1);
	expect(&q, BEGAN, 1);
	n.kind = CHANGED;
	snprintf(n.matter.node, sizeof(n.matter.node), "other");
	alert_queue_put(&q, &n);
	i = alert_queue_take(&q);
	assert_string_equal(i->first.node, "node-3");
	assert_string_equal(i->notice.matter.node, "other");
	free(i);
	open = alert_queue_open(&q, &cursor);
	assert_string_equal(open->first.node, "node-3");
	assert_string_equal(open->now.node, "other");
	assert_null(alert_queue_open(&q, &cursor));
	alert_queue_done(&q);
}

static void test_ends_are_not_lost(void **state)
{
	struct alert_queue q = ALERT_QUEUE_INIT;

	for (uint64_t id = 1; id <= 10; id++) {
		put(&q, BEGAN, id);
		expect(&q, BEGAN, id);
	}
	for (uint64_t id = 100; id < 100 + ALERT_WAITING_MAX + 5; id++)
		put(&q, BEGAN, id);
	assert_int_equal(q.lost, 5);
	for (uint64_t id = 1; id <= 10; id++)
		put(&q, ENDED, id);
	assert_int_equal(q.count, ALERT_WAITING_MAX);
	assert_int_equal(q.lost, 15); /* the oldest begins made room */
	expect(&q, BEGAN, 110);
	put(&q, CHANGED, 100); /* its begin was lost: it is told as one */
	for (size_t n = 0; n < ALERT_WAITING_MAX - 11; n++)
		expect(&q, BEGAN, 111 + n);
	for (uint64_t id = 1; id <= 10; id++)
		expect(&q, ENDED, id);
	expect(&q, BEGAN, 100);
	expect(&q, -1, 0);
	alert_queue_done(&q);
}

static void test_what_cannot_be_remembered_is_not_told(void **state)
{
	struct alert_queue q = ALERT_QUEUE_INIT;

	for (uint64_t id = 1; id <= ALERT_OPEN_MAX; id++) {
		put(&q, BEGAN, id);
		expect(&q, BEGAN, id);
	}
	put(&q, BEGAN, 5000);
	expect(&q, -1, 0);
	assert_int_equal(q.lost, 1);
	put(&q, ENDED, 7);
	expect(&q, ENDED, 7);
	put(&q, BEGAN, 5001);
	expect(&q, BEGAN, 5001);
	alert_queue_done(&q);
}

/* One cluster has more incidents than there is room for: another's are told all the same. */
static void test_a_cluster_with_many(void **state)
{
	struct alert_queue q = ALERT_QUEUE_INIT;
	size_t told = 0;

	for (uint64_t id = 1; id <= 2 * ALERT_WAITING_MAX; id++)
		put_of(&q, BEGAN, id, 1);
	assert_int_equal(q.count, ALERT_WAITING_MAX / 4 * 3);
	assert_int_equal(q.count + q.lost, 2 * ALERT_WAITING_MAX);
	for (uint64_t id = 1; id <= ALERT_FEW + 1; id++)
		put_of(&q, BEGAN, 10000 + id, 2);
	assert_int_equal(q.count, ALERT_WAITING_MAX / 4 * 3 + ALERT_FEW);
	for (struct alert_item *i; (i = alert_queue_take(&q)); told++)
		free(i);
	assert_int_equal(told, ALERT_OPEN_MAX / 4 * 3 + ALERT_FEW);
	put_of(&q, BEGAN, 20000, 1);
	expect(&q, -1, 0);
	put_of(&q, BEGAN, 20001, 3);
	expect(&q, BEGAN, 20001);
	alert_queue_done(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_labels_of_the_first),
		cmocka_unit_test(test_ends_are_not_lost),
		cmocka_unit_test(test_what_cannot_be_remembered_is_not_told),
		cmocka_unit_test(test_a_cluster_with_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
