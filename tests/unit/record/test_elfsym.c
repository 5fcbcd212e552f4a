/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

/* FIXTURE_LIBRARY is the path of fixture.c's library; its real addresses come from dlopen(). */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>

#include "record/discover/elfsym.h"
#include "base/buf.h"
#include "base/file.h"
#include "tree.h"

/* The bytes at a function's file offset are those at its address. */
static void offsets_lead_to_the_code(void **state)
{
	static const char *const names[] = {"fixture_add", "no_such", "fixture_add_twice",
		"prefix_fixture_add", "fixture_add", "fixture_data", "fixture_indirect"};
	_cleanup_(elfsym_closep) struct elfsym *e = NULL;
	uint64_t offsets[ARRAY_SIZE(names)];
	void *library = dlopen(FIXTURE_LIBRARY, RTLD_NOW);

	assert_non_null(library);
	assert_int_equal(elfsym_open(FIXTURE_LIBRARY, &e, NULL), 0);
	assert_int_equal(elfsym_offsets(e, names, ARRAY_SIZE(names), offsets), 4);
	assert_int_equal(offsets[1], 0);
	assert_int_equal(offsets[5], 0); /* data */
	assert_int_equal(offsets[6], 0); /* IFUNC */
	assert_int_equal(offsets[4], offsets[0]);
	for (size_t i = 0; i < 4; i++) {
		unsigned char code[8];

		if (i == 1)
			continue;
		assert_int_equal(elfsym_read(e, offsets[i], code, sizeof(code)), 0);
		assert_memory_equal(code, dlsym(library, names[i]), sizeof(code));
	}
	assert_true(offsets[0] != offsets[2] && offsets[0] != offsets[3]);
	dlclose(library);
}

static void local_functions_come_from_symtab(void **state)
{
	_cleanup_(elfsym_closep) struct elfsym *e = NULL;
	uint64_t offset = 1;

	assert_int_equal(elfsym_open(FIXTURE_LIBRARY, &e, NULL), 0);
	assert_int_equal(elfsym_offset(e, "fixture_local", &offset), 0);
	assert_true(offset > 1);
	offset = 1;
	assert_int_equal(elfsym_offset(e, "fixture_loca", &offset), -ENOENT);
	assert_int_equal(elfsym_offset(e, "", &offset), -EINVAL);
	assert_int_equal(offset, 1);
}

static void machine(void **state)
{
	_cleanup_(elfsym_closep) struct elfsym *e = NULL;

	assert_int_equal(elfsym_open(FIXTURE_LIBRARY, &e, NULL), 0);
#ifdef __x86_64__
	assert_int_equal(elfsym_machine(e), EM_X86_64);
#else
	assert_int_equal(elfsym_machine(e), EM_AARCH64);
#endif
}

/* Everything a caller may do with a file; the results must only be sane. */
static int use_all(const char *path)
{
	static const char *const names[] = {"fixture_add", "fixture_local", "prefix_fixture_add"};
	_cleanup_(elfsym_closep) struct elfsym *e = NULL;
	uint64_t offsets[3] = {0};
	struct stat st;
	int r = elfsym_open(path, &e, NULL);

	if (r < 0) {
		assert_int_equal(r, -EBADMSG);
		return 0;
	}
	r = elfsym_offsets(e, names, 3, offsets);
	assert_true(r >= 0 || r == -EBADMSG);
	stat(path, &st);
	for (int i = 0; i < 3; i++)
		assert_true(offsets[i] < (uint64_t)st.st_size);
	return r == 3;
}

static void damaged_files_are_survived(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	_cleanup_free_ char *copy = NULL;
	char root[TREE_MAX], path[512];
	uint64_t seed = 20240607;
	int intact = 0;

	tree_init(root);
	snprintf(path, sizeof(path), "%s/f", root);
	assert_int_equal(file_read(FIXTURE_LIBRARY, 4 << 20, &b), 0);
	copy = malloc(b.len);
	tree_write_len(root, "/f", b.data, b.len);
	assert_int_equal(use_all(path), 1); /* the control */
	for (int i = 0; i < 1000; i++) {
		size_t len = b.len;

		memcpy(copy, b.data, b.len);
		for (int flips = 0; flips < 1 + i % 8; flips++) {
			size_t where;

			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			where = (size_t)(seed >> 20);
			/* half of the damage goes to the headers at both ends */
			where %= i % 2 ? len : 1024;
			if (i % 4 == 0)
				where = len - 1 - where % MIN(len, (size_t)2048);
			copy[where] = (char)(copy[where] ^ (1 << (seed >> 60) % 8));
			if (i % 3 == 0)
				copy[where] = (char)0xff;
		}
		if (i % 5 == 0)
			len = (size_t)(seed >> 17) % len;
		tree_write_len(root, "/f", copy, len);
		intact += use_all(path);
	}
	assert_in_range(intact, 10, 900); /* both fates were met */
	tree_done(root);
}

static void foreign_files_are_refused(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT(4 << 20);
	static const struct {
		size_t at;
		char byte;
	} changes[] = {{EI_CLASS, ELFCLASS32}, {EI_DATA, ELFDATA2MSB}, {0, 'x'}, {16, ET_REL}};
	struct elfsym *e = NULL;
	struct errinfo err;
	char root[TREE_MAX], path[512];

	tree_init(root);
	snprintf(path, sizeof(path), "%s/f", root);
	assert_int_equal(file_read(FIXTURE_LIBRARY, 4 << 20, &b), 0);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		char was = b.data[changes[i].at];

		b.data[changes[i].at] = changes[i].byte;
		tree_write_len(root, "/f", b.data, b.len);
		assert_int_equal(elfsym_open(path, &e, &err), -EBADMSG);
		assert_non_null(strstr(err.text, "/f: not a 64-bit little-endian ELF library"));
		b.data[changes[i].at] = was;
	}
	tree_write(root, "/f", "");
	assert_int_equal(elfsym_open(path, &e, NULL), -EBADMSG);
	assert_int_equal(elfsym_open(root, &e, NULL), -EBADMSG);
	assert_int_equal(elfsym_open("/none", &e, &err), -ENOENT);
	assert_null(e);
	tree_done(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offsets_lead_to_the_code),
		cmocka_unit_test(local_functions_come_from_symtab),
		cmocka_unit_test(machine),
		cmocka_unit_test(damaged_files_are_survived),
		cmocka_unit_test(foreign_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
