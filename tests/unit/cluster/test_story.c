/* SPDX-License-Identifier: Apache-2.0 */
/* test_story.c - one fault, one story: the API, the row that is kept, the alert and the stream say the same sentence
 * and have the same fields, and these have a meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alert/alert_body.h"
#include "base/macros.h"
#include "base/text.h"
#include "cluster/detect/fleet.h"
#include "cluster/notify/notify.h"
#include "wire/ids.h"

#define MS INT64_C(1000000)

static struct fleet_notice late_rank(void)
{
	struct fleet_notice n = {.kind = FLEET_NOTICE_BEGAN,
		.episode = {.problem = FLEET_STRAGGLER,
			.rank = 2,
			.stage = -1,
			.share = 0.28,
			.confidence = 0.9,
			.lag_ns = 57 * MS,
			.late = 611,
			.seen = 611,
			.period = 1,
			.waiting = 3,
			.waited_ns = 56 * MS,
			.comm = 0xfb8,
			.op = NCCL_ALL_REDUCE,
			.from_rank = -1,
			.to_rank = -1,
			.since_ns = 1794843164 * INT64_C(1000000000),
			.cost = {.priced = true,
				.is_middle = true,
				.is_guess = true,
				.gpu_hour = 7.11,
				.per_hour = 6.02,
				.currency = "USD",
				.symbol = "$"}}};
	struct fleet_episode *e = &n.episode;

	snprintf(e->cluster, sizeof(e->cluster), "train");
	snprintf(e->node, sizeof(e->node), "nodeA");
	snprintf(e->event, sizeof(e->event), "5f0c");
	snprintf(e->cause, sizeof(e->cause), "slow_augment() runs on the host in every step");
	snprintf(e->fix, sizeof(e->fix), "move slow_augment() to the loader's workers");
	snprintf(e->place, sizeof(e->place), "ddp.py:18 in slow_augment");
	fleet_sentence(e);
	return n;
}

static void test_the_sentence(void **state _unused_)
{
	struct fleet_notice n = late_rank();
	struct fleet_episode *e = &n.episode;

	assert_string_equal(e->text,
		"rank 2 on nodeA is 57 ms late in every step, for AllReduce; 3 ranks wait 56 ms each time; "
		"slow_augment() runs on the host in every step; 28 % of the job's time; that costs about "
		"$6.02/h at about $7.11 per GPU hour, provider unknown");
	e->period = 7;
	e->waiting = 1;
	e->cost = (struct fleet_cost){.priced = false, .unpriced = "NVIDIA Z9000"};
	fleet_sentence(e);
	assert_string_equal(e->text,
		"rank 2 on nodeA is 57 ms late in every 7th step, for AllReduce; 1 rank waits 56 ms each time; "
		"slow_augment() runs on the host in every step; 28 % of the job's time");
	e->provisional = true;
	e->comm = 0;
	e->cause[0] = 0;
	fleet_sentence(e);
	assert_string_equal(e->text, "rank 2 on nodeA was 57 ms late just now");
	e->provisional = false;
	e->problem = FLEET_HANG;
	e->comm = 0xfb8;
	e->seq = 1522;
	e->seen = 63;
	e->lag_ns = 56000 * MS;
	fleet_sentence(e);
	assert_string_equal(
		e->text, "63 ranks have waited 56 s for rank 2 on nodeA at AllReduce #1522");
}

/* Each field has a name, a meaning and, in a whole story, a value. */
static void test_fields(void **state _unused_)
{
	struct fleet_notice n = late_rank(), none = {.episode = {.rank = -1}};
	size_t known = 0;

	for (const struct fleet_field *f = fleet_fields; f->name; f++) {
		struct fleet_value v;

		assert_true(f->name[0] && f->meaning[0]);
		fleet_field_get(f, &n.episode, &v);
		known += v.known;
		fleet_field_get(f, &none.episode, &v);
		assert_false(v.known);
	}
	assert_int_equal(known, 11); /* all but pid and ranks */
}

static void assert_has(const char *json, const char *part)
{
	if (!strstr(json, part))
		fail_msg("no %s in %s", part, json);
}

static void test_alert_and_stream(void **state _unused_)
{
	static const char *const both[] = {"\"rank\":2", "\"lag_ns\":57000000",
		"\"waiting_ranks\":3", "\"waited_ns\":56000000", "\"problem\":\"straggler\"",
		"\"place\":\"ddp.py:18 in slow_augment\"",
		"\"fix\":\"move slow_augment() to the loader's workers\"",
		"\"summary\":\"rank 2 on nodeA is 57 ms late in every step, for AllReduce; 3 ranks wait"};
	_cleanup_buf_ struct buf line = BUF_INIT(65536), body = BUF_INIT(65536);
	struct fleet_notice n = late_rank();
	struct stream_message m;
	struct alert_notice a;

	notice_alert(&n, &a);
	alert_webhook(&body, &a);
	assert_true(notice_stream(&n, (wall_time){n.episode.since_ns}, &m));
	assert_int_equal(stream_message_line(&line, &m), 0);
	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		assert_has(buf_str(&body), both[i]);
		assert_has(buf_str(&line), both[i]);
	}
	assert_has(buf_str(&body), "\"op_type\":\"AllReduce\"");
	assert_has(buf_str(&body), "\"late_steps\":611");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_sentence),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_alert_and_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
