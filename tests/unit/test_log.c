/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define AT(s) ((mono_time){(uint64_t)(s)*NS_PER_S})

static void bursts_then_trickles(void **state)
{
	struct log_site site = {0};
	uint32_t suppressed = 99;

	for (int i = 0; i < 10; i++) {
		assert_true(log_admit(&site, AT(100), &suppressed));
		assert_int_equal(suppressed, 0);
	}
	for (int i = 0; i < 7; i++)
		assert_false(log_admit(&site, AT(100 + i), &suppressed));
	assert_false(log_admit(&site, AT(129), &suppressed));
	assert_true(log_admit(&site, AT(131), &suppressed));
	assert_int_equal(suppressed, 8);
	assert_false(log_admit(&site, AT(132), &suppressed));
	assert_true(log_admit(&site, AT(161), &suppressed));
	assert_int_equal(suppressed, 1);
	for (int i = 0; i < 10; i++) /* after a long silence the whole burst is back */
		assert_true(log_admit(&site, AT(10000), &suppressed));
	assert_false(log_admit(&site, AT(10000), &suppressed));
}

static size_t capture(char *out, size_t size, void (*speak)(void))
{
	FILE *f = tmpfile();
	int saved = dup(STDERR_FILENO);
	size_t n;

	dup2(fileno(f), STDERR_FILENO);
	speak();
	dup2(saved, STDERR_FILENO);
	close(saved);
	rewind(f);
	n = fread(out, 1, size - 1, f);
	out[n] = 0;
	fclose(f);
	return n;
}

static void speak_levels(void)
{
	log_warning("disk \x1b[2J%s", "a\nforged: line");
	log_info("not shown");
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("shown");
	log_set_level(LOG_LEVEL_WARNING);
}

static void lines_are_filtered_and_escaped(void **state)
{
	char out[1024];

	unsetenv("JOURNAL_STREAM");
	assert_true(capture(out, sizeof(out), speak_levels) > 0);
	assert_non_null(strstr(out, "Z warning: disk \\x1b[2Ja\\nforged: line\n"));
	assert_null(strstr(out, "not shown"));
	assert_non_null(strstr(out, "debug: shown\n"));
	setenv("JOURNAL_STREAM", "1:2", 1);
	capture(out, sizeof(out), speak_levels);
	assert_memory_equal(out, "<4>warning: disk", 16);
}

static void lines_go_to_a_file_too(void **state)
{
	FILE *f = tmpfile();
	char out[1024], kept[1024];
	size_t n;

	setenv("JOURNAL_STREAM", "1:2", 1);
	log_set_file(fileno(f));
	capture(out, sizeof(out), speak_levels);
	log_set_file(-1);
	rewind(f);
	n = fread(kept, 1, sizeof(kept) - 1, f);
	kept[n] = 0;
	assert_non_null(strstr(kept, "Z warning: disk \\x1b[2Ja\\nforged: line\n"));
	assert_non_null(strstr(kept, "debug: shown\n"));
	assert_non_null(strstr(kept, "info: not shown\n")); /* but kept */
	assert_null(strstr(out, "not shown"));
	assert_non_null(strstr(out, "debug: shown\n"));
	capture(out, sizeof(out), speak_levels);
	assert_int_equal(ftell(f), n); /* nothing more came */
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_then_trickles),
		cmocka_unit_test(lines_go_to_a_file_too),
		cmocka_unit_test(lines_are_filtered_and_escaped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
