/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/accounting.h"

static struct call_gap gap(uint32_t pid, uint64_t ms)
{
	struct call_gap g = {.pid = pid,
		.comm = "train",
		.from = {43200 * (int64_t)NS_PER_S},
		.to = {43200 * (int64_t)NS_PER_S + (int64_t)(ms * NS_PER_MS)}};

	call_gap_set_file(&g, "/opt/lib/libcudart.so.12");
	return g;
}

static void none_has_no_sentence(void **state)
{
	struct call_gap_sum s = {0};
	char text[CALL_GAP_SENTENCE_MAX] = "x";

	assert_string_equal(call_gap_sentence(&s, text, sizeof(text)), "");
}

static void one_says_who_until_when_and_why(void **state)
{
	struct call_gap g = gap(123, 37);
	struct call_gap_sum s = {0};
	char text[CALL_GAP_SENTENCE_MAX];

	call_gap_sum_add(&s, &g, true);
	assert_string_equal(call_gap_sentence(&s, text, sizeof(text)),
		"calls of PID 123 (train) before 12:00:00.037 were not traced (37ms; "
		"libcudart.so.12 found only then)");
	g.comm[0] = 0;
	g.reason = CALL_GAP_ENDED;
	s = (struct call_gap_sum){0};
	call_gap_sum_add(&s, &g, true);
	assert_string_equal(call_gap_sentence(&s, text, sizeof(text)),
		"calls of PID 123 before 12:00:00.037 were not traced (37ms; libcudart.so.12 the process exited before it could be probed)");
}

static void of_several_processes_the_longest_is_told(void **state)
{
	struct call_gap_sum s = {0};
	char text[CALL_GAP_SENTENCE_MAX];

	for (uint32_t i = 1; i <= 3; i++) {
		struct call_gap g = gap(i, 40 - i);

		call_gap_sum_add(&s, &g, true);
		call_gap_sum_add(&s, &g, false); /* its second library */
	}
	assert_int_equal(s.processes, 3);
	assert_string_equal(call_gap_sentence(&s, text, sizeof(text)),
		"first calls of 3 processes were not traced; longest: PID 1 (train) before "
		"12:00:00.039 (39ms; libcudart.so.12 found only then)");
}

static void a_long_path_keeps_its_end(void **state)
{
	char path[2000];
	struct call_gap g;

	memset(path, 'a', sizeof(path));
	strcpy(path + 1900, "/libcuda.so.1");
	call_gap_set_file(&g, path);
	assert_int_equal(strlen(g.file), CALL_GAP_FILE_MAX - 1);
	assert_string_equal(strrchr(g.file, '/'), "/libcuda.so.1");
}

static void reasons_have_names(void **state)
{
	for (int i = 0; i < CALL_GAP_REASON_COUNT; i++)
		assert_int_equal(
			call_gap_reason_find(call_gap_reason_name((enum call_gap_reason)i)), i);
	assert_int_equal(call_gap_reason_find("nonsense"), CALL_GAP_FIRST_SEEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_has_no_sentence),
		cmocka_unit_test(one_says_who_until_when_and_why),
		cmocka_unit_test(of_several_processes_the_longest_is_told),
		cmocka_unit_test(a_long_path_keeps_its_end),
		cmocka_unit_test(reasons_have_names),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
