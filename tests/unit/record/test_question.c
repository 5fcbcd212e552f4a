/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record/symbol/exchange.h"

static struct question *numbered(uint64_t number)
{
	struct question *q = question_new(NULL, PROTOCOL_FRAMES, 7, 3, 48);

	assert_non_null(q);
	assert_int_equal(q->ticket, 7);
	assert_int_equal(q->count, 3);
	assert_int_equal(q->body_bytes, 48);
	assert_int_equal((uintptr_t)q->body % 8, 0);
	q->number = number;
	return q;
}

static void take_and_compare(struct question_list *l, uint64_t number)
{
	struct question *q = question_take(l);

	assert_non_null(q);
	assert_int_equal(q->number, number);
	free(q);
}

static void test_first_in_first_out(void **state)
{
	struct question_list l = {0};

	assert_null(question_take(&l));
	for (uint64_t i = 1; i <= 3; i++)
		question_append(&l, numbered(i));
	assert_int_equal(l.count, 3);
	take_and_compare(&l, 1);
	take_and_compare(&l, 2);
	take_and_compare(&l, 3);
	assert_int_equal(l.count, 0);
	assert_null(question_take(&l));
}

static void test_put_back_goes_first(void **state)
{
	struct question_list l = {0};

	question_put_back(&l, numbered(2)); /* into an empty list: the tail must be right */
	question_append(&l, numbered(3));
	question_put_back(&l, numbered(1));
	assert_int_equal(l.count, 3);
	take_and_compare(&l, 1);
	take_and_compare(&l, 2);
	take_and_compare(&l, 3);
	question_append(&l, numbered(4));
	question_free_all(&l);
	assert_int_equal(l.count, 0);
	assert_null(question_take(&l));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_in_first_out),
		cmocka_unit_test(test_put_back_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
