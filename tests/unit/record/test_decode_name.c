/* SPDX-License-Identifier: Apache-2.0 */
/* test_decode_name.c - records of names, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "record/capture/reader.h"

struct record {
	struct wire_name n;
	char text[NAME_SHORT];
};

static struct clock_map clock_now;

static struct record good(void)
{
	struct record r = {.n = {.h = {.size = sizeof(r),
					 .version = WIRE_VERSION,
					 .source = SOURCE_CUDA,
					 .pid = 7},
				   .key = 0x10,
				   .kind = NAME_OF_FUNCTION}};

	strcpy(r.text, "_Z3addv");
	return r;
}

static void test_a_name(void **state)
{
	struct record r = good();
	struct name_record n;

	clock_map_init(&clock_now);
	assert_int_equal(decode_name(&r, sizeof(r), &clock_now, &n), 0);
	assert_string_equal(n.text, "_Z3addv");
	assert_int_equal(n.pid, 7);
	assert_int_equal(n.key, 0x10);
	r.n.kind = NAME_ALIAS;
	r.n.h.size = sizeof(r.n);
	r.n.other = 0x20;
	assert_int_equal(decode_name(&r, sizeof(r.n), &clock_now, &n), 0);
	assert_string_equal(n.text, "");
	assert_int_equal(n.other, 0x20);
}

static void test_what_is_none(void **state)
{
	struct name_record n = {.pid = 99};
	struct record r = good();

	assert_int_equal(decode_name(&r, sizeof(r.n) - 1, &clock_now, &n), -EBADMSG);
	assert_int_equal(decode_name(&r, sizeof(r) - 1, &clock_now, &n), -EBADMSG);
	r.n.h.version++;
	assert_int_equal(decode_name(&r, sizeof(r), &clock_now, &n), -EBADMSG);
	r = good();
	memset(r.text, 'x', sizeof(r.text)); /* no end */
	assert_int_equal(decode_name(&r, sizeof(r), &clock_now, &n), -EBADMSG);
	r = good();
	r.n.kind = 0;
	assert_int_equal(decode_name(&r, sizeof(r), &clock_now, &n), -EBADMSG);
	r.n.kind = NAME_TEXT + 1;
	assert_int_equal(decode_name(&r, sizeof(r), &clock_now, &n), -EBADMSG);
	r.n.kind = NAME_ALIAS; /* with a text */
	assert_int_equal(decode_name(&r, sizeof(r), &clock_now, &n), -EBADMSG);
	assert_int_equal(n.pid, 99); /* untouched */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_name),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
