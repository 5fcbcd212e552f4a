/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations fail while this program's own file is read: its functions, names and unwind table. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "record/discover/elfsym.h"
#include "demangle/demangle.h"
#include "record/symbol/image.h"
#include "record/symbol/names.h"
#include "record/symbol/unwind_table.h"
#include "fault.h"

static int use_elfsym(void *arg)
{
	const char *const names[] = {"main", "no_such_function"};
	uint64_t offsets[] = {7, 7};
	struct elfsym *e = NULL;
	struct errinfo err = {0};
	int r = elfsym_open("/proc/self/exe", &e, &err);

	if (r < 0) {
		assert_null(e);
		return r;
	}
	r = elfsym_offsets(e, names, 2, offsets);
	if (r < 0)
		assert_int_equal(offsets[0], 7); /* untouched */
	else
		assert_true(r == 1 && offsets[0] && !offsets[1]);
	elfsym_close(e);
	return r < 0 ? r : 0;
}

static void functions_by_name(void **state)
{
	assert_true(fault_torture(use_elfsym, NULL) > 3);
}

static int use_image(void *arg)
{
	struct unwind_table t = {0};
	struct image *i = NULL;
	struct symtab *names = NULL;
	struct symtab_function f;
	struct errinfo err = {0};
	int r, fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t vaddr, size;

	r = image_open(fd, &i, &err);
	if (r == 0)
		r = symtab_new(i, NULL, &names);
	if (r == 0 && symtab_find(names, "main", &vaddr, &size) == 0)
		assert_true(symtab_at(names, vaddr, &f));
	if (r == 0)
		r = unwind_table_build(i, &t, &err);
	if (r == 0)
		assert_true(t.count > 10);
	unwind_table_done(&t);
	if (names)
		symtab_free(names);
	if (i)
		image_close(i);
	close(fd);
	return r;
}

static void names_and_unwind_tables(void **state)
{
	assert_true(fault_torture(use_image, NULL) > 5);
}

static int use_perfmap(void *arg)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	struct perfmap *p = NULL;
	int r;

	for (int i = 0; i < 300; i++)
		dprintf(fd, "%x 10 name%d\n", 0x1000 + i * 16, i);
	lseek(fd, 0, SEEK_SET);
	r = perfmap_read(fd, &p);
	close(fd);
	if (r < 0) {
		assert_null(p);
		return r;
	}
	assert_int_equal(perfmap_count(p), 300);
	perfmap_free(p);
	return 0;
}

static void maps_of_generated_code(void **state)
{
	assert_true(fault_torture(use_perfmap, NULL) > 1);
}

static int use_texts(void *arg)
{
	static const char name[] = "_ZNSt6vectorIiSaIiEE9push_backEOi";
	struct texts *t = NULL;
	const char *kept, *plain;
	int r = texts_new(&t);

	if (r < 0)
		return r;
	kept = texts_demangled(t, name, strlen(name));
	plain = texts_keep(t, "plain", 5);
	r = kept && plain ? 0 : -ENOMEM;
	if (plain)
		assert_string_equal(plain, "plain");
	texts_free(t);
	return r;
}

static void demangled_names(void **state)
{
	assert_true(fault_torture(use_texts, NULL) >= 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_by_name),
		cmocka_unit_test(names_and_unwind_tables),
		cmocka_unit_test(maps_of_generated_code),
		cmocka_unit_test(demangled_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
