/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/discover/maps.h"

static bool parse(const char *line, struct maps_entry *ret)
{
	return maps_parse(line, strlen(line), ret);
}

static void fields_are_told_apart(void **state)
{
	struct maps_entry e;

	assert_true(parse("7f00a000-7f00b000 r-xp 00002000 fe:01 1234    /usr/lib/a b.so", &e));
	assert_int_equal(e.start, 0x7f00a000);
	assert_int_equal(e.end, 0x7f00b000);
	assert_int_equal(e.offset, 0x2000);
	assert_int_equal(e.dev, makedev(0xfe, 1));
	assert_int_equal(e.inode, 1234);
	assert_true(e.executable);
	assert_false(e.deleted);
	assert_int_equal(e.path_len, strlen("/usr/lib/a b.so"));
	assert_memory_equal(e.path, "/usr/lib/a b.so", e.path_len);
}

static void deleted_files_lose_the_word(void **state)
{
	struct maps_entry e;

	assert_true(parse("1000-2000 r--p 00000000 00:01 7 /memfd:x (deleted)", &e));
	assert_true(e.deleted);
	assert_false(e.executable);
	assert_int_equal(e.path_len, strlen("/memfd:x"));
}

static void anonymous_and_special_ones(void **state)
{
	struct maps_entry e;

	assert_true(parse("1000-2000 rwxp 00000000 00:00 0 ", &e));
	assert_int_equal(e.path_len, 0);
	assert_true(parse("1000-2000 r-xp 00000000 00:00 0   [vdso]", &e));
	assert_int_equal(e.path_len, 6);
}

static void nonsense_is_refused(void **state)
{
	struct maps_entry e;

	assert_false(parse("", &e));
	assert_false(parse("1000-", &e));
	assert_false(parse("1000-2000 r-xp", &e));
	assert_false(parse("zz-2000 r-xp 0 00:00 0 ", &e));
	assert_false(parse("11111111111111111-2000 r-xp 00000000 00:00 0 ", &e));
}

struct own {
	uint64_t sought;
	bool found;
	uint64_t last;
};

static bool snapshot(void *arg, const struct maps_entry *e)
{
	struct own *o = arg;

	assert_true(e->start >= o->last);
	o->last = e->end;
	o->found |= e->executable && e->inode && o->sought >= e->start && o->sought < e->end;
	return true;
}

static void our_own_code_is_found(void **state)
{
	struct own o = {.sought = (uint64_t)(uintptr_t)our_own_code_is_found};

	assert_int_equal(maps_read("", (uint32_t)getpid(), snapshot, &o), 0);
	assert_true(o.found);
	assert_true(maps_read("", 0x7fffffff, snapshot, &o) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fields_are_told_apart),
		cmocka_unit_test(deleted_files_lose_the_word),
		cmocka_unit_test(anonymous_and_special_ones),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(our_own_code_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
