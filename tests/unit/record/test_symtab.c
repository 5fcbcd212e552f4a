/* SPDX-License-Identifier: Apache-2.0 */
/* test_symtab.c - which function an address belongs to, in a library whose symbols are known
 * (names_fixture.c) and in damaged copies of it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/symbol/names.h"
#include "symbol_fixture.h"

struct scene {
	uint8_t *data;
	size_t size;
	struct image *image;
	struct symtab *table;
};

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->data = fixture_read(NAMES_FIXTURE, &s->size);
	assert_int_equal(image_open_memory(s->data, s->size, &s->image, NULL), 0);
	assert_int_equal(symtab_new(s->image, NULL, &s->table), 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	symtab_free(s->table);
	image_close(s->image);
	free(s->data);
	free(s);
	return 0;
}

static uint64_t vaddr_of(const struct scene *s, const char *name)
{
	uint64_t vaddr = 0, size;

	assert_int_equal(symtab_find(s->table, name, &vaddr, &size), 0);
	return vaddr;
}

/* @name NULL: none is to be found. */
static void assert_function(const struct scene *s, uint64_t vaddr, const char *name, uint64_t from)
{
	struct symtab_function f;
	char found[64];

	if (!name) {
		assert_false(symtab_at(s->table, vaddr, &f));
		return;
	}
	assert_true(symtab_at(s->table, vaddr, &f));
	snprintf(found, sizeof(found), "%.*s", (int)f.name_len, f.name);
	assert_string_equal(found, name);
	assert_int_equal(vaddr - f.vaddr, from);
}

static void sizes_are_respected(void **state)
{
	const struct scene *s = *state;
	uint64_t sized = vaddr_of(s, "sized"), enclosing = vaddr_of(s, "enclosing");
	uint64_t unsized = vaddr_of(s, "unsized");

	assert_function(s, sized, "sized", 0);
	assert_function(s, sized + 7, "sized", 7);
	assert_int_equal(vaddr_of(s, "mark_gap"), sized + 8);
	assert_function(s, sized + 8, NULL, 0);
	assert_function(s, sized + 15, NULL, 0);
	assert_function(s, enclosing, "enclosing", 0);
	assert_function(s, enclosing + 16, "enclosed", 0);
	assert_function(s, enclosing + 23, "enclosed", 7);
	assert_function(s, enclosing + 24, "enclosing", 24);
	assert_function(s, unsized + 15, "unsized", 15);
	assert_function(s, vaddr_of(s, "versioned_1"), "versioned_1", 0);
}

static void the_better_name_is_kept(void **state)
{
	const struct scene *s = *state;

	assert_int_equal(vaddr_of(s, "weak_alias"), vaddr_of(s, "__global_alias"));
	assert_function(s, vaddr_of(s, "weak_alias"), "__global_alias", 0);
	assert_function(s, vaddr_of(s, "mark_local"), "local_function",
		vaddr_of(s, "mark_local") - vaddr_of(s, "local_function"));
}

static void symbols_by_name(void **state)
{
	const struct scene *s = *state;
	uint64_t vaddr = 1, size = 2;

	assert_int_equal(symtab_find(s->table, "fixture_number", &vaddr, &size), 0);
	assert_int_equal(size, sizeof(int));
	assert_function(s, vaddr, NULL, 0); /* data is no function */
	vaddr = 1;
	assert_int_equal(symtab_find(s->table, "fixture_numbe", &vaddr, &size), -ENOENT);
	assert_int_equal(symtab_find(s->table, "fixture_number_", &vaddr, &size), -ENOENT);
	assert_int_equal(symtab_find(s->table, "ixture_number", &vaddr, &size), -ENOENT);
	assert_int_equal(symtab_find(s->table, "", &vaddr, &size), -ENOENT);
	assert_int_equal(vaddr, 1);
}

static void nothing_outside_code(void **state)
{
	const struct scene *s = *state;

	assert_function(s, 0, NULL, 0);
	assert_function(s, UINT64_MAX, NULL, 0);
	assert_function(s, 1ull << 56, NULL, 0);
	assert_true(symtab_count(s->table) >= 15);
}

/* A call's first landing is no part of the function that happens to stand before it. */
static void jump_tables_have_no_function(void **state)
{
	const struct scene *s = *state;
	struct image_range plt;

	if (image_section(s->image, ".plt", &plt) < 0 || plt.size == 0) {
		print_message("# skip: this linker made no .plt\n");
		skip();
	}
	assert_function(s, plt.vaddr + plt.size / 2, NULL, 0);
}

/* Nor are constants part of the last function, where the linker put them into the segment of the code. */
static void constants_have_no_function(void **state)
{
	const struct scene *s = *state;
	struct image_range constants;

	assert_int_equal(image_section(s->image, ".eh_frame", &constants), 0);
	assert_true(constants.size > 0);
	assert_function(s, constants.vaddr + constants.size / 2, NULL, 0);
}

/* The same symbols from a separate debug file. */
static void symbols_of_a_debug_file(void **state)
{
	const struct scene *s = *state;
	size_t size, debug_size;
	_cleanup_free_ uint8_t *data = fixture_read(NAMES_STRIPPED, &size);
	_cleanup_free_ uint8_t *debug_data = fixture_read(NAMES_DEBUG, &debug_size);
	_cleanup_(image_closep) struct image *image = NULL, *debug = NULL;
	_cleanup_(symtab_freep) struct symtab *bare = NULL, *both = NULL;
	uint64_t local = vaddr_of(s, "local_function");
	struct symtab_function f;

	assert_int_equal(image_open_memory(data, size, &image, NULL), 0);
	assert_int_equal(image_open_memory(debug_data, debug_size, &debug, NULL), 0);
	assert_int_equal(symtab_new(image, NULL, &bare), 0);
	assert_int_equal(symtab_new(image, debug, &both), 0);
	assert_false(symtab_at(bare, local, &f));
	assert_true(symtab_at(bare, vaddr_of(s, "outermost"), &f));
	assert_true(symtab_at(both, local, &f));
	assert_int_equal(f.name_len, strlen("local_function"));
	assert_memory_equal(f.name, "local_function", f.name_len);
	assert_int_equal(symtab_count(both), symtab_count(s->table));
}

/* Where in the file section @name stands, for damage that hits. */
static void section_place(const struct scene *s, const char *name, size_t *ret_at, size_t *ret_size)
{
	struct image_range range;

	assert_int_equal(image_section(s->image, name, &range), 0);
	*ret_at = (size_t)(range.data - s->data);
	*ret_size = range.size;
}

static void damaged_tables(void **state)
{
	static const char *const sections[] = {".symtab", ".strtab", ".dynsym", ".dynstr", NULL};
	const struct scene *s = *state;
	uint8_t *copy = malloc(s->size);
	uint64_t seed = 5, opened = 0, text = vaddr_of(s, "outermost");

	assert_non_null(copy);
	for (unsigned round = 0; round < 4000; round++) {
		const char *section = sections[round % ARRAY_SIZE(sections)];
		size_t at = 0, size = s->size;
		_cleanup_(image_closep) struct image *image = NULL;
		_cleanup_(symtab_freep) struct symtab *table = NULL;
		struct symtab_function f;
		uint64_t vaddr, symbol_size;

		memcpy(copy, s->data, s->size);
		if (section)
			section_place(s, section, &at, &size);
		else if (round % 2)
			at = s->size - 4096, size = 4096; /* section headers */
		fixture_damage(copy, at, size, &seed);
		if (round % 7 == 0)
			memset(copy + at, 'x', size / 2);
		if (image_open_memory(copy, s->size, &image, NULL) < 0)
			continue;
		opened++;
		assert_int_equal(symtab_new(image, round % 3 ? image : NULL, &table), 0);
		for (int step = -64; step < 64; step++)
			if (symtab_at(table, text + (uint64_t)(step * 4), &f))
				assert_true(f.name_len > 0 && strnlen(f.name, f.name_len) > 0);
		symtab_find(table, "mark_inner", &vaddr, &symbol_size);
	}
	assert_true(opened > 1000);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sizes_are_respected, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_better_name_is_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(symbols_by_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_outside_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(jump_tables_have_no_function, set_up, tear_down),
		cmocka_unit_test_setup_teardown(constants_have_no_function, set_up, tear_down),
		cmocka_unit_test_setup_teardown(symbols_of_a_debug_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_tables, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
