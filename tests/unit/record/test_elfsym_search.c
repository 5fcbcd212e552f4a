/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "record/discover/elfsym.h"
#include "base/buf.h"
#include "base/file.h"
#include "tree.h"

#define FOUND_MAX 8

static uint64_t offsets[FOUND_MAX];
static uint32_t patterns[FOUND_MAX];

static int search(struct elfsym *e, const char *pattern)
{
	return elfsym_search(e, &pattern, 1, offsets, patterns, FOUND_MAX);
}

static bool has(struct elfsym *e, int count, const char *name)
{
	uint64_t offset;

	assert_int_equal(elfsym_offset(e, name, &offset), 0);
	for (int i = 0; i < count; i++)
		if (offsets[i] == offset)
			return true;
	return false;
}

static int open_fixture(void **state)
{
	return elfsym_open(FIXTURE_LIBRARY, (struct elfsym **)state, NULL);
}

static int close_fixture(void **state)
{
	elfsym_close(*state);
	return 0;
}

static void beginnings_of_exported_names(void **state)
{
	int n = search(*state, "fixture_add*");

	assert_int_equal(n, 2);
	assert_true(has(*state, n, "fixture_add") && has(*state, n, "fixture_add_twice"));
	assert_int_equal(search(*state, "prefix_*"), 1);
	assert_true(has(*state, 1, "prefix_fixture_add"));
	assert_int_equal(search(*state, "fixture_lo*"), 0); /* not exported */
	assert_int_equal(search(*state, "fixture_local**"), 1);
	assert_int_equal(search(*state, "**"), -EINVAL);
	assert_int_equal(search(*state, "fixture_da*"), 0); /* data */
	assert_int_equal(search(*state, "no_such*"), 0);
}

static void whole_names_and_their_copies(void **state)
{
	assert_int_equal(search(*state, "fixture_local"), 1);
	assert_int_equal(search(*state, "fixture_loca"), 0);
	assert_int_equal(search(*state, "fixture_copied"), 1);
	assert_true(has(*state, 1, "fixture_copied.isra.0"));
	assert_int_equal(search(*state, "fixture_add"), 1); /* in both tables, once */
}

static void several_patterns(void **state)
{
	static const char *const three[] = {"fixture_local", "no_such", "fixture_add_*"};
	int n = elfsym_search(*state, three, 3, offsets, patterns, FOUND_MAX);

	assert_int_equal(n, 2);
	assert_int_equal(patterns[0], 2); /* exported ones first */
	assert_int_equal(patterns[1], 0);
	assert_int_equal(elfsym_search(*state, three, 3, offsets, patterns, 1), 1);
}

static void bad_patterns(void **state)
{
	static const char *many[ELFSYM_PATTERNS_MAX + 1];
	char longer[ELFSYM_NAME_MAX + 3];

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = 0;
	assert_int_equal(search(*state, ""), -EINVAL);
	assert_int_equal(search(*state, "*"), -EINVAL);
	assert_int_equal(search(*state, longer), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = "x";
	assert_int_equal(
		elfsym_search(*state, many, ARRAY_SIZE(many), offsets, patterns, FOUND_MAX),
		-EINVAL);
}

/* Whatever is damaged: an answer or -EBADMSG, and offsets inside the file. */
static void damaged_files_are_survived(void **state)
{
	static const char *const both[] = {"fixture_add*", "fixture_copied"};
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	_cleanup_free_ char *copy = NULL;
	char root[TREE_MAX], path[512];
	uint64_t seed = 7;

	tree_init(root);
	snprintf(path, sizeof(path), "%s/f", root);
	assert_int_equal(file_read(FIXTURE_LIBRARY, 4 << 20, &b), 0);
	copy = malloc(b.len);
	for (int i = 0; i < 400; i++) {
		_cleanup_(elfsym_closep) struct elfsym *e = NULL;
		int n;

		memcpy(copy, b.data, b.len);
		for (int k = 0; k < 1 + i % 6; k++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			copy[(seed >> 20) % (i % 2 ? b.len : 1024)] = (char)(seed >> 56);
		}
		tree_write_len(root, "/f", copy, b.len);
		if (elfsym_open(path, &e, NULL) < 0)
			continue;
		n = elfsym_search(e, both, 2, offsets, patterns, FOUND_MAX);
		assert_true(n == -EBADMSG || (n >= 0 && n <= FOUND_MAX));
		for (int k = 0; k < n; k++)
			assert_true(offsets[k] < b.len && patterns[k] < 2);
	}
	tree_done(root);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_fixture, close_fixture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(beginnings_of_exported_names),
		TEST(whole_names_and_their_copies),
		TEST(several_patterns),
		TEST(bad_patterns),
		cmocka_unit_test(damaged_files_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
