/* SPDX-License-Identifier: Apache-2.0 */
/* test_perfmap.c - a JIT's map: what is found where, which line wins, and lines that are none. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "record/symbol/names.h"

static int file_with(const void *text, size_t len)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	return fd;
}

static struct perfmap *map_of(const char *text)
{
	_cleanup_fd_ int fd = file_with(text, strlen(text));
	struct perfmap *p = NULL;

	assert_int_equal(perfmap_read(fd, &p), 0);
	return p;
}

static void assert_at(const struct perfmap *p, uint64_t address, const char *name, uint64_t from)
{
	uint64_t from_start = UINT64_MAX;
	const char *found = perfmap_at(p, address, &from_start);

	if (!name) {
		assert_null(found);
		assert_int_equal(from_start, UINT64_MAX);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, name);
	assert_int_equal(from_start, from);
}

static void entries_are_found(void **state)
{
	_cleanup_(perfmap_freep) struct perfmap *p =
		map_of("7f0000001000 20 LazyCompile:*run /a/b c.js:12\n"
		       "0x7f0000002000 0x10 py::f:/x.py\r\n"
		       "7F0000000FF0 8 before\n"
		       "\n"
		       "ffffffffffff0000 ffff last");

	assert_int_equal(perfmap_count(p), 4);
	assert_int_equal(perfmap_bad_lines(p), 0);
	assert_at(p, 0x7f0000001000, "LazyCompile:*run /a/b c.js:12", 0);
	assert_at(p, 0x7f000000101f, "LazyCompile:*run /a/b c.js:12", 0x1f);
	assert_at(p, 0x7f0000001020, NULL, 0);
	assert_at(p, 0x7f0000000fff, NULL, 0);
	assert_at(p, 0x7f0000000ff7, "before", 7);
	assert_at(p, 0x7f0000000fef, NULL, 0);
	assert_at(p, 0x7f0000002000, "py::f:/x.py", 0);
	assert_at(p, 0xffffffffffff0001, "last", 1);
	assert_at(p, UINT64_MAX, NULL, 0);
	assert_at(p, 0, NULL, 0);
}

static void later_lines_win(void **state)
{
	_cleanup_(perfmap_freep) struct perfmap *p = map_of("1000 100 wide\n"
							    "1040 20 inside\n"
							    "10f0 20 over the end\n"
							    "1050 8 deeper\n"
							    "2000 10 old\n"
							    "2000 10 new\n"
							    "3000 10 hidden\n"
							    "2ff0 40 covers\n");

	assert_int_equal(perfmap_count(p), 8);
	assert_at(p, 0x103f, "wide", 0x3f);
	assert_at(p, 0x1040, "inside", 0);
	assert_at(p, 0x104f, "inside", 0xf);
	assert_at(p, 0x1050, "deeper", 0);
	assert_at(p, 0x1058, "inside", 0x18);
	assert_at(p, 0x1060, "wide", 0x60);
	assert_at(p, 0x10f0, "over the end", 0);
	assert_at(p, 0x110f, "over the end", 0x1f);
	assert_at(p, 0x1110, NULL, 0);
	assert_at(p, 0x2008, "new", 8);
	assert_at(p, 0x3004, "covers", 0x14);
	assert_at(p, 0x302f, "covers", 0x3f);
}

static void bad_lines_are_counted(void **state)
{
	_cleanup_(perfmap_freep) struct perfmap *p = map_of("1000 10 good\n"
							    "1010 10\n"
							    "1020 10 \n"
							    "1030 0 empty\n"
							    "xyz 10 f\n"
							    "10g0 10 f\n"
							    "1040 -1 f\n"
							    "fffffffffffffff0 11 f\n"
							    "10000000000000000 1 f\n"
							    " 1050 10 f\n"
							    "1060\t10\ttabs\n");

	assert_int_equal(perfmap_count(p), 2);
	assert_int_equal(perfmap_bad_lines(p), 9);
	assert_at(p, 0x1000, "good", 0);
	assert_at(p, 0x1030, NULL, 0);
	assert_at(p, 0x1060, "tabs", 0);
}

static void no_entries(void **state)
{
	static const char *const texts[] = {"", "\n\n", "nothing\n", "\n"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(perfmap_freep) struct perfmap *p = map_of(texts[i]);

		assert_int_equal(perfmap_count(p), 0);
		assert_at(p, 0x1000, NULL, 0);
	}
}

static void unreadable_files(void **state)
{
	_cleanup_fd_ int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct perfmap *p = NULL;

	assert_true(folder >= 0);
	assert_int_equal(perfmap_read(folder, &p), -EISDIR);
	assert_int_equal(perfmap_read(-1, &p), -EBADF);
	assert_null(p);
}

/* A file beyond the ceiling is read up to there; the line it cuts is not taken. */
static void long_files(void **state)
{
	_cleanup_(perfmap_freep) struct perfmap *p = NULL;
	char filler[4096];
	_cleanup_fd_ int fd = file_with("1000 10 first\n", 14);
	const char *cut = "2000 10 a_name_that_is_cut\n3000 10 behind\n";

	memset(filler, '\n', sizeof(filler));
	for (size_t at = 14; at < PERFMAP_BYTES_MAX; at += sizeof(filler))
		assert_int_equal(pwrite(fd, filler, sizeof(filler), (off_t)at), sizeof(filler));
	assert_int_equal(pwrite(fd, cut, strlen(cut), (off_t)PERFMAP_BYTES_MAX - 12), strlen(cut));
	assert_int_equal(perfmap_read(fd, &p), 0);
	assert_int_equal(perfmap_count(p), 1);
	assert_at(p, 0x1001, "first", 1);
	assert_at(p, 0x2000, NULL, 0);
	assert_at(p, 0x3000, NULL, 0);
}

/* Random entries and garbage, against the plain rule: the last line that holds the address. */
static void agrees_with_the_rule(void **state)
{
	enum { LINES = 300, SPACE = 512 };
	uint64_t seed = 7;

	for (unsigned round = 0; round < 50; round++) {
		_cleanup_(perfmap_freep) struct perfmap *p = NULL;
		uint32_t start[LINES], size[LINES];
		char text[LINES * 24];
		size_t len = 0;

		for (unsigned i = 0; i < LINES; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			start[i] = (uint32_t)(seed >> 33) % SPACE;
			size[i] = (uint32_t)(seed >> 24) % (round + 2) + 1;
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%x %x n%u\n",
				start[i], size[i], i);
		}
		p = map_of(text);
		for (unsigned address = 0; address < SPACE + 64; address++) {
			char name[16];
			int owner = -1;

			for (int i = 0; i < LINES; i++)
				if (address >= start[i] && address - start[i] < size[i])
					owner = i;
			snprintf(name, sizeof(name), "n%d", owner);
			assert_at(p, address, owner < 0 ? NULL : name,
				owner < 0 ? 0 : address - start[owner]);
		}
	}
}

static void garbage(void **state)
{
	uint64_t seed = 11;
	uint8_t bytes[4096];

	for (unsigned round = 0; round < 200; round++) {
		_cleanup_fd_ int fd = -1;
		_cleanup_(perfmap_freep) struct perfmap *p = NULL;
		uint64_t from;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[i] =
				round % 2
					? (uint8_t)(seed >> 40)
					: (uint8_t) "0123456789abcdef \n\n x\0"[(seed >> 40) % 23];
		}
		fd = file_with(bytes, sizeof(bytes));
		assert_int_equal(perfmap_read(fd, &p), 0);
		assert_true(perfmap_count(p) + perfmap_bad_lines(p) > 0);
		for (uint64_t address = 0; address < 4096; address += 13)
			perfmap_at(p, address, &from);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_found),
		cmocka_unit_test(later_lines_win),
		cmocka_unit_test(bad_lines_are_counted),
		cmocka_unit_test(no_entries),
		cmocka_unit_test(unreadable_files),
		cmocka_unit_test(long_files),
		cmocka_unit_test(agrees_with_the_rule),
		cmocka_unit_test(garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
