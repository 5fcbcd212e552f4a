/* SPDX-License-Identifier: Apache-2.0 */
/* test_losses.c - how complete a recording is, in numbers and in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "answer/losses.h"

static void assert_words(const struct completeness *c, const char *words)
{
	_cleanup_buf_ struct buf b = BUF_INIT(256);

	completeness_text(&b, c);
	assert_string_equal(buf_str(&b), words);
}

static void test_completeness(void **state)
{
	struct accounting books = {.source[SOURCE_CUDA] = {.hits = 900, .stored = 90},
		.source[SOURCE_NCCL] = {.hits = 100, .lost[LOSS_RING_FULL] = 10}};
	struct completeness c = completeness_of(&books);

	assert_true(c.known && c.hits == 1000 && c.stored == 90 && c.lost == 10);
	assert_true(completeness_share(&c) == 0.9); /* what is on its way does not count */
	assert_words(&c, "10 of 1,000 events lost");
	c.lost = 0;
	assert_words(&c, "none of 1,000 events lost");
	books.unseen.processes = 1;
	books.unseen.longest = (struct call_gap){.pid = 7, .comm = "a\x1b[2J", .to.ns = 5000000};
	c = completeness_of(&books);
	{
		_cleanup_buf_ struct buf b = BUF_INIT(1024);

		completeness_text(&b, &c);
		assert_non_null(strstr(buf_str(&b), "events lost; calls of PID 7"));
		assert_null(strchr(buf_str(&b), '\x1b'));
	}
	books.unclean = 1; /* then nothing is known of what was on its way */
	c = completeness_of(&books);
	assert_true(c.known && completeness_share(&c) < 0);
	c = completeness_of(NULL);
	assert_false(c.known);
	assert_true(completeness_share(&c) < 0);
	assert_words(&c, "losses unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_completeness)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
