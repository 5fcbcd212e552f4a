/* SPDX-License-Identifier: Apache-2.0 */
/* test_texts.c - a text is kept once, stays where it is, and the store has an end. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "record/symbol/names.h"

static const char *keep(struct texts *t, const char *s)
{
	return texts_keep(t, s, strlen(s));
}

static void each_text_once(void **state)
{
	_cleanup_(texts_freep) struct texts *t = NULL;
	const char *plain, *name, *cxx;

	assert_int_equal(texts_new(&t), 0);
	plain = keep(t, "main.c");
	assert_string_equal(plain, "main.c");
	assert_ptr_equal(keep(t, "main.c"), plain);
	assert_ptr_equal(texts_keep(t, "main.cpp", 6), plain);
	assert_ptr_not_equal(keep(t, "main.cpp"), plain);
	cxx = texts_demangled(t, "_Z1fi", 5);
	assert_string_equal(cxx, "f(int)");
	assert_ptr_equal(texts_demangled(t, "_Z1fi@@V1", 5), cxx);
	/* The same bytes as a text are another thing than as a name. */
	assert_string_equal(keep(t, "_Z1fi"), "_Z1fi");
	name = texts_demangled(t, "run", 3);
	assert_string_equal(name, "run");
	assert_string_equal(keep(t, ""), "");
}

static void long_texts_are_cut(void **state)
{
	_cleanup_(texts_freep) struct texts *t = NULL;
	static char longest[20000];
	const char *kept;

	memset(longest, 'a', sizeof(longest) - 1);
	assert_int_equal(texts_new(&t), 0);
	kept = texts_keep(t, longest, NAMES_TEXT_MAX - 1);
	assert_int_equal(strlen(kept), NAMES_TEXT_MAX - 1);
	for (size_t len = NAMES_TEXT_MAX; len < sizeof(longest); len += 1000) {
		kept = len % 2 ? texts_keep(t, longest, len) : texts_demangled(t, longest, len);
		assert_int_equal(strlen(kept), NAMES_TEXT_MAX - 1);
		assert_string_equal(kept + NAMES_TEXT_MAX - 4, "…");
	}
}

static void texts_stay_where_they_are(void **state)
{
	_cleanup_(texts_freep) struct texts *t = NULL;
	static const char *kept[20000];
	char s[32];

	assert_int_equal(texts_new(&t), 0);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		snprintf(s, sizeof(s), "name_%zu", i);
		kept[i] = keep(t, s);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		snprintf(s, sizeof(s), "name_%zu", i);
		assert_string_equal(kept[i], s);
		assert_ptr_equal(keep(t, s), kept[i]);
	}
}

/* Beyond the ceiling there is nothing new, and what there was is still found. */
static void the_store_has_an_end(void **state)
{
	_cleanup_(texts_freep) struct texts *t = NULL;
	static char s[8000];
	const char *first;
	size_t count = 0;

	assert_int_equal(texts_new(&t), 0);
	first = keep(t, "first");
	memset(s, 'x', sizeof(s) - 1);
	for (; count < 100000; count++) {
		snprintf(s, 16, "%015zu", count);
		s[15] = 'x';
		if (!keep(t, s))
			break;
	}
	assert_in_range(count, TEXTS_BYTES_MAX / 12000, TEXTS_BYTES_MAX / 8000);
	assert_ptr_equal(keep(t, "first"), first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_text_once),
		cmocka_unit_test(long_texts_are_cut),
		cmocka_unit_test(texts_stay_where_they_are),
		cmocka_unit_test(the_store_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
