/* SPDX-License-Identifier: Apache-2.0 */
#include "store_fixture.h"

#include "store/write/retention.h"

#define GOOD "ingero.20240229T235959.000000007Z-00c0ffee.db"

static void test_names(void **state)
{
	wall_time t = {1709251199000000007};
	char out[256];

	assert_int_equal(rollover_name("/a.b/ingero.db", t, 0xc0ffee, out, sizeof(out)), 0);
	assert_string_equal(out, "/a.b/" GOOD);
	assert_int_equal(rollover_name("x", t, 1, out, sizeof(out)), 0);
	assert_string_equal(out, "x.20240229T235959.000000007Z-00000001.db");
	assert_int_equal(rollover_name("x", t, 1, out, 40), -ENAMETOOLONG);
}

static void test_only_exact_names_match(void **state)
{
	static const char *const others[] = {"ingero.db", "ingero.db-wal", GOOD "-wal", GOOD "x",
		"x" GOOD, "other.20240229T235959.000000007Z-00c0ffee.db",
		"ingero.20240229T235959.000000007Z-00C0FFEE.db",
		"ingero.20240229T235959.00000000Z-00c0ffee.db",
		"ingero.2024O229T235959.000000007Z-00c0ffee.db",
		"ingero.20240229T235959.000000007Z-00c0ffee", "ingero.", "",
		"ingero.20240229T235959.000000007Z-00c0ffeg.db"};

	assert_true(rollover_is_name("/x/ingero.db", GOOD));
	assert_true(rollover_is_name("ingero.db", GOOD));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (rollover_is_name("/x/ingero.db", others[i]))
			fail_msg("%s matches", others[i]);
}

static void test_trim_deletes_the_oldest_and_nothing_else(void **state)
{
	struct scratch *s = *state;
	static const char *const names[] = {"ingero.20230101T000000.000000000Z-ffffffff.db",
		"ingero.20230101T000000.000000000Z-ffffffff.db-wal",
		"ingero.20240101T000000.000000000Z-00000000.db",
		"ingero.20240101T000000.000000001Z-00000000.db",
		"ingero.20100101T000000.000000000Z-00000000.db.bak", "other.db", "ingero.db"};
	struct rollover_list list = {0};
	char path[256], link[256];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", s->folder, names[i]);
		scratch_write(path, "x", 1);
	}
	/* a link of a rolled file's name, older than all, is not ours to delete */
	snprintf(link, sizeof(link), "%s/ingero.20000101T000000.000000000Z-00000000.db", s->folder);
	assert_int_equal(symlink("other.db", link), 0);
	assert_int_equal(rollover_list(s->path, &list, NULL), 0);
	assert_int_equal(list.count, 3); /* not the link, not what only looks like one */
	for (size_t i = 0; i < list.count; i++) {
		static const int order[] = {0, 2, 3};

		snprintf(path, sizeof(path), "%s/%s", s->folder, names[order[i]]);
		assert_string_equal(list.paths[i], path);
	}
	rollover_list_done(&list);
	assert_int_equal(rollover_trim(s->path, 2, NULL), 1);
	assert_int_equal(scratch_files(s->folder, false), 6);
	snprintf(path, sizeof(path), "%s/%s", s->folder, names[0]);
	assert_int_equal(lstat(path, &st), -1);
	assert_int_equal(lstat(link, &st), 0);
	assert_int_equal(rollover_trim(s->path, 2, NULL), 0);
	assert_int_equal(rollover_trim(s->path, 0, NULL), 2);
	assert_int_equal(rollover_trim("/nowhere/at/all.db", 2, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_names),
		TEST(test_only_exact_names_match),
		TEST(test_trim_deletes_the_oldest_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
