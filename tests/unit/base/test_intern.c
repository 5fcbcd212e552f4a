/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/idmap.h"

static void same_text_same_pointer(void **state)
{
	struct intern p = INTERN_INIT(1 << 20);
	char text[] = "forward";
	const char *a = intern(&p, text);

	assert_string_equal(a, "forward");
	assert_ptr_not_equal(a, text);
	assert_ptr_equal(intern(&p, "forward"), a);
	assert_ptr_equal(intern_len(&p, "forwards", 7), a);
	assert_ptr_not_equal(intern(&p, "forwards"), a);
	assert_null(intern(&p, NULL));
	assert_int_equal(p.used, 2);
	intern_done(&p);
}

static void many_survive_growth(void **state)
{
	struct intern p = INTERN_INIT(1 << 20);
	const char *at[5003];
	char text[32];

	for (int i = 0; i < 5003; i++) {
		snprintf(text, sizeof(text), "function_%d", i);
		at[i] = intern(&p, text);
	}
	for (int i = 0; i < 5003; i++) {
		snprintf(text, sizeof(text), "function_%d", i);
		assert_ptr_equal(intern(&p, text), at[i]);
	}
	assert_int_equal(p.used, 5003);
	assert_int_equal(p.refused, 0);
	intern_done(&p);
}

static void ceiling_refuses_and_counts(void **state)
{
	struct intern p = INTERN_INIT(10);
	const char *kept = intern(&p, "12345");

	assert_string_equal(intern(&p, "6789a"), "(no room for names)");
	assert_int_equal(p.refused, 1);
	assert_ptr_equal(intern(&p, "12345"), kept);
	assert_string_equal(intern(&p, "abc"), "abc");
	intern_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_text_same_pointer),
		cmocka_unit_test(many_survive_growth),
		cmocka_unit_test(ceiling_refuses_and_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
