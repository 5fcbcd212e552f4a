/* SPDX-License-Identifier: Apache-2.0 */
/* test_delay_sentence.c - every row of the table can be said, with all values and with none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/macros.h"
#include "diagnose/sentences/advice.h"
#include "diagnose/sentences/delay_sentence.h"

#define TITLE 256

static void assert_well_formed(const char *text)
{
	if (!text[0] || strpbrk(text, "{}[]") || strstr(text, "  ") || text[0] == ' ' ||
		text[strlen(text) - 1] == ' ' || text[strlen(text) - 1] == '.')
		fail_msg("not well formed: \"%s\"", text);
}

static void each_row_fills(void **state)
{
	struct delay_values none = {.units = "steps", .unit = "step"}, full;
	char text[TITLE];

#define X(name) snprintf(full.name, sizeof(full.name), "(%s)", #name);
	DELAY_VALUES(X)
#undef X
	for (const struct delay_sentence *s = delay_sentences; s->head; s++) {
		const char *texts[] = {s->head, s->why};

		for (int k = 0; k < 2; k++) {
			delay_sentence_fill(texts[k], &full, text, sizeof(text));
			assert_well_formed(text);
			assert_true(strlen(text) < 200);
			if (!strchr(texts[k], '{') || strchr(texts[k], '[')) {
				delay_sentence_fill(texts[k], &none, text, sizeof(text));
				assert_true(text[0]);
				assert_null(strpbrk(text, "{}[]"));
			}
		}
		assert_string_not_equal(s->head, s->why);
	}
}

/* Whatever a chain leads to, and whatever is known, there is a sentence of the kind. */
static void each_kind_has_one(void **state)
{
	for (int k = 0; k < DELAY_KINDS; k++)
		for (int r = 0; r < RESOURCE_COUNT; r++)
			for (unsigned bit = 0; bit < 32; bit++)
				assert_int_equal(delay_sentence_find((enum delay_kind)k,
							 (enum resource)r, 1u << bit)
							 ->kind,
					k);
}

static void brackets_go_with_what_is_not_known(void **state)
{
	struct delay_values v = {.who = "xz", .at = ""};
	char text[TITLE];

	delay_sentence_fill("by {who}[ {at}][, {detail}]", &v, text, sizeof(text));
	assert_string_equal(text, "by xz");
	snprintf(v.at, sizeof(v.at), "in f (a.py:1)");
	delay_sentence_fill("by {who}[ {at}][, {detail}]", &v, text, sizeof(text));
	assert_string_equal(text, "by xz in f (a.py:1)");
	delay_sentence_fill(
		"{nobody}[x", &v, text, sizeof(text)); /* a row that is wrong does no harm */
	assert_string_equal(text, "x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_fills),
		cmocka_unit_test(each_kind_has_one),
		cmocka_unit_test(brackets_go_with_what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
