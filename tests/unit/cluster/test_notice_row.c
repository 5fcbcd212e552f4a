/* SPDX-License-Identifier: Apache-2.0 */
/* test_notice_row.c - what the fleet finds, as a row of incidents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "cluster/notify/notify.h"

#define S 1000000000LL

static struct fleet_notice notice(enum fleet_notice_kind kind)
{
	struct fleet_notice n = {.kind = kind,
		.episode = {.problem = FLEET_STRAGGLER,
			.rank = 5,
			.share = 0.25,
			.confidence = 0.9,
			.since_ns = 100 * S,
			.until_ns = kind == FLEET_NOTICE_ENDED ? 140 * S : 0,
			.cost = {.priced = true, .total = 1.5}}};

	snprintf(n.episode.cluster, sizeof(n.episode.cluster), "prod");
	snprintf(n.episode.node, sizeof(n.episode.node), "node-1");
	snprintf(n.episode.event, sizeof(n.episode.event), "id-1");
	snprintf(n.episode.text, sizeof(n.episode.text), "rank 5 is late");
	return n;
}

static struct batch_row row_of(struct batch *b, const struct fleet_notice *n, int64_t now_ns)
{
	struct batch_reader r;
	struct batch_row row;

	buf_clear(&b->bytes);
	notice_row(b, n, now_ns);
	r = (struct batch_reader){.data = (const uint8_t *)b->bytes.data, .len = b->bytes.len};
	assert_int_equal(batch_next(&r, &row), 1);
	assert_int_equal(row.table, TABLE_INCIDENTS);
	return row;
}

static void assert_text(const struct batch_row *row, int column, const char *text)
{
	const struct sql_value *v = &row->cells[column];

	assert_int_equal(v->type, SQL_TEXT);
	assert_int_equal(v->len, strlen(text));
	assert_memory_equal(v->p, text, v->len);
}

static void test_began(void **state _unused_)
{
	struct batch b = {.bytes = BUF_INIT(4096)};
	struct fleet_notice n = notice(FLEET_NOTICE_BEGAN);
	struct batch_row row = row_of(&b, &n, 120 * S);

	assert_int_equal(row.cells[INCIDENTS_TS].i, 120 * S);
	assert_text(&row, INCIDENTS_CLUSTER, "prod");
	assert_text(&row, INCIDENTS_NODE, "node-1");
	assert_text(&row, INCIDENTS_ID, "id-1");
	assert_text(&row, INCIDENTS_SOURCE, "fleet");
	assert_text(&row, INCIDENTS_KIND, "straggler");
	assert_text(&row, INCIDENTS_SUMMARY, "rank 5 is late");
	assert_int_equal(row.cells[INCIDENTS_RANK].i, 5);
	assert_int_equal(row.cells[INCIDENTS_LOST].i, 5 * S); /* a quarter of 20 s */
	assert_true(row.cells[INCIDENTS_COST].d == 1.5);
	assert_int_equal(row.cells[INCIDENTS_RESOLVED].i, 0);
	buf_done(&b.bytes);
}

/* The whole story of a fault, in columns that model/episode_field.h names. */
static void test_fields(void **state _unused_)
{
	struct batch b = {.bytes = BUF_INIT(8192)};
	struct fleet_notice n = notice(FLEET_NOTICE_BEGAN);
	struct batch_row row;

	n.episode.lag_ns = 57;
	n.episode.late = 11;
	n.episode.seen = 12;
	n.episode.period = 7;
	n.episode.waiting = 3;
	n.episode.waited_ns = 56;
	n.episode.comm = 0xabc;
	n.episode.op = NCCL_ALL_REDUCE;
	snprintf(n.episode.place, sizeof(n.episode.place), "ddp.py:18 in slow_augment");
	row = row_of(&b, &n, 120 * S);
	assert_int_equal(row.cells[INCIDENTS_LAG].i, 57);
	assert_int_equal(row.cells[INCIDENTS_LATE].i, 11);
	assert_int_equal(row.cells[INCIDENTS_SEEN].i, 12);
	assert_int_equal(row.cells[INCIDENTS_PERIOD].i, 7);
	assert_int_equal(row.cells[INCIDENTS_WAITING].i, 3);
	assert_int_equal(row.cells[INCIDENTS_WAITED].i, 56);
	assert_int_equal(row.cells[INCIDENTS_SINCE].i, 100 * S);
	assert_true(row.cells[INCIDENTS_SHARE].d == 0.25);
	assert_text(&row, INCIDENTS_OP, "AllReduce");
	assert_text(&row, INCIDENTS_COMM, "0000000000000abc");
	assert_text(&row, INCIDENTS_PLACE, "ddp.py:18 in slow_augment");
	assert_int_equal(
		row.cells[INCIDENTS_RANKS].type, SQL_NULL); /* one rank, not all of a node */
	buf_done(&b.bytes);
}

static void test_ended(void **state _unused_)
{
	struct batch b = {.bytes = BUF_INIT(4096)};
	struct fleet_notice n = notice(FLEET_NOTICE_ENDED);
	struct batch_row row = row_of(&b, &n, 200 * S);

	assert_int_equal(row.cells[INCIDENTS_LOST].i, 10 * S); /* of its 40 s */
	assert_int_equal(row.cells[INCIDENTS_RESOLVED].i, 1);
	buf_done(&b.bytes);
}

/* What is not known is NULL; of the cluster as a whole the node's name is empty. */
static void test_unknown(void **state _unused_)
{
	struct batch b = {.bytes = BUF_INIT(4096)};
	struct fleet_notice n = notice(FLEET_NOTICE_BEGAN);
	struct batch_row row;

	n.episode.rank = -1;
	n.episode.node[0] = 0;
	n.episode.cost.priced = false;
	row = row_of(&b, &n, 50 * S); /* a clock that is behind: nothing is lost */
	assert_int_equal(row.cells[INCIDENTS_RANK].type, SQL_NULL);
	assert_int_equal(row.cells[INCIDENTS_COST].type, SQL_NULL);
	assert_text(&row, INCIDENTS_NODE, "");
	assert_int_equal(row.cells[INCIDENTS_LOST].i, 0);
	buf_done(&b.bytes);
}

static void rows_while_it_lasts(void **state)
{
	const struct fleet_episode e = {.since_ns = 1000};
	int64_t rows = 0;

	(void)state;
	for (int64_t t = 0; t < 600 * 4; t++) /* of ten minutes, looked at every 250 ms */
		rows += notice_row_is_due(&e, 1000 + t * 250000000, 1000 + (t + 1) * 250000000);
	assert_int_equal(rows, 6 + 10);
	assert_true(notice_row_is_due(&e, 1000, 1000 + INT64_C(1000000000)));
	assert_false(notice_row_is_due(&e, 0, 1000)); /* its beginning is a row anyway */
	assert_false(
		notice_row_is_due(&e, 1000 + INT64_C(70000000000), 1000 + INT64_C(119000000000)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_began),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_ended),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(rows_while_it_lasts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
