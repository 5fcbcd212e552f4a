/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
}

static void speak_often(void)
{
	log_set_level(LOG_LEVEL_DEBUG);
	for (int i = 0; i < 100; i++) {
		log_info("often");
		log_debug("each");
	}
	log_set_level(LOG_LEVEL_WARNING);
}

static unsigned count(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

static void debug_lines_are_never_held_back(void **state)
{
	static char out[1 << 16];

	assert_true(capture(out, sizeof(out), speak_often) > 0);
	assert_int_equal(count(out, "debug: each\n"), 100);
	assert_in_range(count(out, "info: often\n"), 1, 50); /* control */
}

static void speak_to_journal(void)
{
	char stream[64];
	struct stat st;

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_set_level(LOG_LEVEL_DEBUG);
	log_error("a");
	log_warning("b\n<0>c");
	log_info("d");
	log_debug("e");
	fprintf(stderr, "%sf\n", log_mark(LOG_LEVEL_ERROR));
	log_set_level(LOG_LEVEL_WARNING);
}

static void the_journal_gets_priorities(void **state)
{
	char out[1024];

	capture(out, sizeof(out), speak_to_journal);
	assert_string_equal(
		out, "<3>error: a\n<4>warning: b\\n<0>c\n<6>info: d\n<7>debug: e\n<3>f\n");
	unsetenv("JOURNAL_STREAM");
}

/* The variable is inherited by what redirects stderr: a file gets times, not priorities. */
static void another_stream_is_not_the_journal(void **state)
{
	static const char *const wrong[] = {"1:2", "", "8", "8:", ":9", "8:9x", "x"};
	char out[1024];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		setenv("JOURNAL_STREAM", wrong[i], 1);
		assert_true(capture(out, sizeof(out), speak_levels) > 0);
		assert_null(strstr(out, "<4>"));
		assert_non_null(strstr(out, "debug: shown\n"));
	}
	unsetenv("JOURNAL_STREAM");
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
	unsetenv("JOURNAL_STREAM");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bursts_then_trickles),
		cmocka_unit_test(lines_go_to_a_file_too),
		cmocka_unit_test(lines_are_filtered_and_escaped),
		cmocka_unit_test(debug_lines_are_never_held_back),
		cmocka_unit_test(the_journal_gets_priorities),
		cmocka_unit_test(another_stream_is_not_the_journal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
