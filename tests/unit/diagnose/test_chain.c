/* SPDX-License-Identifier: Apache-2.0 */
/* test_chain.c - what a process is called, and delays that lead nowhere. */
#include "chain_fixture.h"

static void test_words(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_CPU, false);
	char buf[PROCESS_WORDS_MAX];

	chain_home(s, 100, "python3", "train.py");
	chain_home(s, 200, "xz", "");
	assert_string_equal(process_words(&s->rec, 100, "pt_autograd_0", buf), "train.py");
	assert_string_equal(process_words(&s->rec, 200, "thread", buf), "xz");
	assert_string_equal(process_words(&s->rec, 300, "dd", buf), "dd");
	assert_string_equal(process_words(&s->rec, 300, NULL, buf), "");
	assert_string_equal(process_words(&s->rec, 0, "ingero-store", buf), "ingero");
	free(s);
}

static void test_a_delay_without_a_chain(void **state)
{
	struct chain_scene *s = chain_scene_new(DELAY_BY_HOST, true);

	s->delay.end = (struct resource_use){.resource = RESOURCE_LOCK, .who = "old"};
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	assert_string_equal(s->delay.end.who, "");
	s->delay.kind = DELAY_BY_LOADER; /* and no lead is kept */
	s->delay.lead = NULL;
	assert_int_equal(chain_end(s)->resource, RESOURCE_NONE);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_a_delay_without_a_chain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
