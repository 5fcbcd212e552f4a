/* SPDX-License-Identifier: Apache-2.0 */
/* test_unwind_table.c - which rows are kept and where they begin; ceilings; real and random damage.
 * Whether the rules are right is tests/unit/record/test_unwind_oracle.c's question. */
#include "elf_fixture.h"

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "record/symbol/unwind_table.h"

#define _cleanup_image_ _cleanup_(image_closep)
#define _cleanup_table_ _cleanup_(unwind_table_done)

#define BL  0x94000000u
#define NOP 0xd503201fu

struct scene {
	unsigned machine;
	struct bytes text, eh;
	struct fixture f;
	struct image *image;
	struct unwind_table table;
	uint64_t first; /* where the program begins; 0: it is a library */
};

static void scene_init(struct scene *s, unsigned machine)
{
	*s = (struct scene){.machine = machine};
	put_cie(&s->eh, machine);
}

static void scene_done(struct scene *s)
{
	bytes_done(&s->text);
	bytes_done(&s->eh);
	fixture_done(&s->f);
	image_closep(&s->image);
	unwind_table_done(&s->table);
}
#define _cleanup_scene_ _cleanup_(scene_done)

static void words(struct scene *s, unsigned count, uint32_t word)
{
	while (count--)
		put_u32(&s->text, word);
}

/* An entry over the code from @start on. */
static void entry(struct scene *s, uint32_t start, uint32_t size, const char *program, size_t len)
{
	put_fde(&s->eh, 0, FIXTURE_TEXT + start, size, program, len);
}
#define ENTRY(s, start, size, program) entry(s, start, size, program, sizeof(program) - 1)

static int build(struct scene *s)
{
	fixture_done(&s->f);
	image_closep(&s->image);
	s->image = NULL;
	unwind_table_done(&s->table);
	fixture_make(&s->f, s->machine, &s->text, &s->eh);
	s->f.header->e_entry = s->first;
	assert_int_equal(image_open_memory(s->f.file.data, s->f.file.size, &s->image, NULL), 0);
	return unwind_table_build(s->image, &s->table, NULL);
}

struct expected_row {
	uint32_t at; /* in the code */
	uint8_t cfa;
	int32_t offset;
};

static void assert_rows(const struct scene *s, const struct expected_row *rows, uint32_t count)
{
	const struct unwind_table *t = &s->table;

	for (uint32_t k = 0; k < MIN(count, t->count); k++) {
		const struct unwind_rule *rule = &t->rules[t->rule[k]];

		if (t->address[k] != FIXTURE_TEXT_OFFSET + rows[k].at || rule->cfa != rows[k].cfa ||
			rule->cfa_offset != rows[k].offset)
			fail_msg("row %u: %#x cfa %u%+d, not %#x cfa %u%+d", k,
				t->address[k] - FIXTURE_TEXT_OFFSET, rule->cfa, rule->cfa_offset,
				rows[k].at, rows[k].cfa, rows[k].offset);
	}
	assert_int_equal(t->count, count);
}
#define ASSERT_ROWS(s, ...)                                                                        \
	assert_rows(s, (const struct expected_row[]){__VA_ARGS__},                                 \
		ARRAY_SIZE(((const struct expected_row[]){__VA_ARGS__})))
#define NONE UNWIND_CFA_NONE
#define SP   UNWIND_CFA_SP
#define OUT  UNWIND_CFA_OUTERMOST

/* What holds of every table. */
static void assert_sound(const struct unwind_table *t)
{
	assert_true(t->rule_count >= 1 && t->rule_count <= UNWIND_TABLE_RULES_MAX);
	assert_int_equal(t->rules[0].cfa, UNWIND_CFA_NONE);
	assert_true(t->count <= UNWIND_TABLE_ROWS_MAX);
	for (uint32_t k = 0; k < t->count; k++) {
		assert_true(t->rule[k] < t->rule_count);
		assert_true(k == 0 || t->address[k] > t->address[k - 1]);
		assert_true(k == 0 || t->rule[k] != t->rule[k - 1]);
		assert_true(t->address[k] != UNWIND_END);
	}
	for (uint32_t k = 1; k < t->rule_count; k++)
		assert_true(t->rules[k].cfa != UNWIND_CFA_NONE);
}

/* ---- which rows ---- */

static void test_prologue_and_epilogue_are_dropped(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 2, NOP); /* CFA is sp, then sp + 32 */
	words(&s, 1, BL);
	words(&s, 1, NOP); /* sp again */
	words(&s, 4, NOP); /* behind the function */
	ENTRY(&s, 0, 16, "\x41\x0e\x20\x9d\x04\x9e\x03\x42\x0e\0\xdd\xde");
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 32}, {16, NONE, 0});
	assert_int_equal(s.table.entries, 1);
	assert_int_equal(s.table.skipped, 0);
	assert_int_equal(s.table.inexpressible, 0);
	assert_false(s.table.cut);
	assert_sound(&s.table);
}

/* The same function on x86-64: push; call; pop; ret. */
static void test_x86(void **state)
{
	static const uint8_t code[] = {0x55, 0xe8, 0, 0, 0, 0, 0x5d, 0xc3};
	_cleanup_scene_ struct scene s;
	const struct unwind_rule *rule;

	scene_init(&s, EM_X86_64);
	put(&s.text, code, sizeof(code));
	put_zeros(&s.text, 8);
	ENTRY(&s, 0, 8, "\x41\x0e\x10\x86\x02\x46\x0e\x08\xc6");
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {8, NONE, 0});
	rule = unwind_table_find(&s.table, FIXTURE_TEXT_OFFSET + 5);
	assert_int_equal(rule->fp, UNWIND_AT_CFA);
	assert_int_equal(rule->fp_offset, -16);
	assert_int_equal(rule->ra, UNWIND_AT_CFA);
	assert_int_equal(rule->ra_offset, -8);
}

/* A call that ends in the next row is none of this row: instructions do not straddle rows. */
static void test_calls_are_whole(void **state)
{
	static const uint8_t code[] = {0xe8, 0, 0, 0, 0, 0xff, 0xd0, 0xc3};
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_X86_64);
	put(&s.text, code, sizeof(code));
	ENTRY(&s, 0, 8, "\x44\x0e\x10\x41\x0e\x18\x43\x0e\x20");
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 24}, {8, NONE, 0});
}

static void test_leaves_and_padding_vanish(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 4, BL);
	words(&s, 2, NOP); /* padding */
	words(&s, 4, NOP); /* a leaf */
	words(&s, 4, BL);  /* the first one's rule */
	words(&s, 4, BL);  /* code that nothing is known of */
	words(&s, 4, BL);
	ENTRY(&s, 0, 16, "\x0e\x10");
	ENTRY(&s, 24, 16, "\x0e\x20");
	ENTRY(&s, 40, 16, "\x0e\x10");
	ENTRY(&s, 72, 16, "\x0e\x10");
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {56, NONE, 0}, {72, SP, 16}, {88, NONE, 0});
	assert_int_equal(s.table.entries, 4);
}

static void test_long_rows_are_kept(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 64, NOP);
	words(&s, 65, NOP);
	words(&s, 65, NOP); /* in no entry */
	words(&s, 1, BL);
	ENTRY(&s, 0, 256, "\x0e\x10");
	ENTRY(&s, 256, 260, "\x0e\x20");
	ENTRY(&s, 776, 4, "\x0e\x30");
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {256, SP, 32}, {516, NONE, 0}, {776, SP, 48}, {780, NONE, 0});
}

/* A thread's first function has no caller, and that is known at any place in it. */
static void test_outermost_is_kept(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 1, BL);
	words(&s, 2, NOP);
	words(&s, 1, BL);
	ENTRY(&s, 0, 4, "\x0e\x10");
	ENTRY(&s, 4, 12, "\x41\x07\x1e\x41\x08\x1e\x0e\x20");
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {4, OUT, 0}, {12, SP, 32}, {16, NONE, 0});
}

/* The code that a signal's handler returns to holds no call, and is met all the same. */
static void test_signal_is_kept(void **state)
{
	static const uint8_t cie[] = {1, 'z', 'R', 'S', 0, 4, 0x78, 30, 1, 0x1b, 0x0c, 29, 0};
	static const uint8_t program[] = {0x9d, 0, 0x9e, 0x7f}; /* the pair that the kernel left */
	_cleanup_scene_ struct scene s;
	size_t at;

	scene_init(&s, EM_AARCH64);
	words(&s, 1, BL);
	words(&s, 3, NOP);
	ENTRY(&s, 0, 4, "\x0e\x10");
	at = record_begin(&s.eh, 0);
	put(&s.eh, cie, sizeof(cie));
	record_end(&s.eh, at);
	put_fde(&s.eh, at, FIXTURE_TEXT + 4, 8, program, sizeof(program));
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {4, UNWIND_CFA_SIGNAL, 0}, {12, NONE, 0});
	assert_int_equal(s.table.inexpressible, 0);
}

/* Where a program begins is the end of stacks, whether or not it is described. */
static void test_first_function(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 64, BL);
	ENTRY(&s, 0, 4, "\x0e\x10");
	ENTRY(&s, 40, 4, "\x0e\x20");
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {4, NONE, 0}, {40, SP, 32}, {44, NONE, 0});
	s.first = FIXTURE_TEXT + 8;
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {4, NONE, 0}, {8, OUT, 0}, {40, SP, 32}, {44, NONE, 0});
	s.first = FIXTURE_TEXT + 44; /* behind the last, and not without end */
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {4, NONE, 0}, {40, SP, 32}, {44, OUT, 0}, {172, NONE, 0});
	s.first = FIXTURE_TEXT + 40;
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {4, NONE, 0}, {40, SP, 32}, {44, NONE, 0});
	s.first = 8; /* nowhere */
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {4, NONE, 0}, {40, SP, 32}, {44, NONE, 0});
	assert_sound(&s.table);
}

static void test_order_and_overlap(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 32, BL);
	ENTRY(&s, 64, 64, "\x0e\x50"); /* out of order; its start is taken already */
	ENTRY(&s, 16, 16, "\x0e\x20"); /* inside another one */
	ENTRY(&s, 0, 80, "\x0e\x10");
	ENTRY(&s, 0, 80, "\x0e\x40"); /* the same code once more */
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {80, SP, 80}, {128, NONE, 0});
	assert_int_equal(s.table.entries, 4);
	assert_int_equal(s.table.skipped, 2);
}

static void test_bad_entries_are_skipped(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 12, BL);
	ENTRY(&s, 0, 16, "\x0e\x10");
	ENTRY(&s, 16, 16, "\x0e\x20\x41\x0e\x30\x17"); /* rows, then nonsense */
	ENTRY(&s, 32, 16, "\x0c\x05\x10");             /* by a register that is not followed */
	ENTRY(&s, 4096, 16, "");                       /* not in the code */
	ENTRY(&s, 40, 16, "");                         /* out of it */
	assert_int_equal(build(&s), 0);
	ASSERT_ROWS(&s, {0, SP, 16}, {16, NONE, 0});
	assert_int_equal(s.table.entries, 5);
	assert_int_equal(s.table.skipped, 3);
	assert_int_equal(s.table.inexpressible, 1);
}

static void test_find(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 12, BL);
	ENTRY(&s, 16, 16, "\x0e\x10");
	assert_int_equal(build(&s), 0);
	assert_null(unwind_table_find(&s.table, FIXTURE_TEXT_OFFSET + 15));
	assert_int_equal(unwind_table_find(&s.table, FIXTURE_TEXT_OFFSET + 16)->cfa_offset, 16);
	assert_int_equal(unwind_table_find(&s.table, FIXTURE_TEXT_OFFSET + 31)->cfa_offset, 16);
	assert_int_equal(unwind_table_find(&s.table, FIXTURE_TEXT_OFFSET + 32)->cfa, NONE);
	assert_int_equal(unwind_table_find(&s.table, UINT64_MAX)->cfa, NONE);
}

static void test_nothing(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, 4, BL);
	assert_int_equal(build(&s), 0); /* a section without entries */
	assert_int_equal(s.table.count, 0);
	assert_int_equal(s.table.rule_count, 1);
	assert_null(unwind_table_find(&s.table, 0));
	unwind_table_done(&s.table);
	s.f.sections[FIXTURE_SECTION_EH_FRAME].sh_type = SHT_NULL;
	s.f.segments[FIXTURE_EH_FRAME_HDR].p_type = PT_NULL;
	assert_int_equal(unwind_table_build(s.image, &s.table, NULL), 0);
	assert_int_equal(s.table.count, 0);
}

static void test_leads_nowhere(void **state)
{
	_cleanup_scene_ struct scene s;
	struct unwind_table untouched = {.count = 7};
	struct errinfo err = {0};

	scene_init(&s, EM_AARCH64);
	words(&s, 4, BL);
	ENTRY(&s, 0, 16, "\x0e\x10");
	assert_int_equal(build(&s), 0);
	s.f.sections[FIXTURE_SECTION_EH_FRAME].sh_size = UINT64_MAX;
	assert_int_equal(unwind_table_build(s.image, &untouched, &err), -EBADMSG);
	assert_int_equal(untouched.count, 7);
	assert_string_not_equal(err.text, "");
	s.eh.data[3] = 0x7f; /* the first record is longer than all */
	assert_int_equal(build(&s), -EBADMSG);
	s.eh.data[3] = 0;
	put_u32(&s.eh, 0x7fffffff); /* the third is: the second stays */
	assert_int_equal(build(&s), 0);
	assert_int_equal(s.table.count, 2);
	assert_int_equal(s.table.skipped, 1);
}

/* ---- ceilings ---- */

static void put_offset(struct bytes *b, uint64_t offset)
{
	put(b, "\x41\x0e", 2);
	put_uleb(b, offset);
}

static void test_too_many_rules(void **state)
{
	const uint32_t rows = UNWIND_TABLE_RULES_MAX + 100;
	_cleanup_bytes_ struct bytes program = {0};
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, rows + 1, BL);
	for (uint32_t k = 1; k <= rows; k++)
		put_offset(&program, k);
	put_fde(&s.eh, 0, FIXTURE_TEXT, 4 * (rows + 1), program.data, program.size);
	assert_int_equal(build(&s), 0);
	assert_sound(&s.table);
	assert_int_equal(s.table.rule_count, UNWIND_TABLE_RULES_MAX);
	/* of one rule more than fit the place is known */
	assert_int_equal(s.table.inexpressible, rows + 1 - (UNWIND_TABLE_RULES_MAX - 1));
	assert_int_equal(s.table.rules[s.table.rule[s.table.count - 1]].cfa, NONE);
	assert_false(s.table.cut);
}

static void test_too_many_rows(void **state)
{
	const uint32_t rows = UNWIND_TABLE_ROWS_MAX + 100;
	_cleanup_bytes_ struct bytes program = {0};
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, rows + 1, BL);
	for (uint32_t k = 1; k <= rows; k++)
		put_offset(&program, k % 2);
	put_fde(&s.eh, 0, FIXTURE_TEXT, 4 * (rows + 1), program.data, program.size);
	assert_int_equal(build(&s), 0);
	assert_true(s.table.cut);
	assert_int_equal(s.table.count, UNWIND_TABLE_ROWS_MAX);
	assert_int_equal(s.table.rule[s.table.count - 1], 0);
	assert_int_equal(s.table.rule_count, 3);
}

static void test_too_many_entries(void **state)
{
	_cleanup_scene_ struct scene s;

	scene_init(&s, EM_AARCH64);
	words(&s, UNWIND_TABLE_ENTRIES_MAX + 1, BL);
	for (uint32_t k = 0; k <= UNWIND_TABLE_ENTRIES_MAX; k++)
		ENTRY(&s, 4 * k, 4, "\x0e\x10");
	assert_int_equal(build(&s), 0);
	assert_true(s.table.cut);
	ASSERT_ROWS(&s, {0, SP, 16}, {4 * UNWIND_TABLE_ENTRIES_MAX, NONE, 0});
}

/* ---- real files, and damage to them ---- */

/* The path of the library whose name begins with @arg->name. */
struct wanted {
	const char *name;
	char path[512];
};

static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct wanted *w = arg;
	const char *base = strrchr(info->dlpi_name, '/');

	if (!base || strncmp(base + 1, w->name, strlen(w->name)) != 0)
		return 0;
	snprintf(w->path, sizeof(w->path), "%s", info->dlpi_name);
	return 1;
}

static uint8_t *read_library(const char *name, size_t *ret_size)
{
	struct wanted w = {.name = name};
	struct stat st;
	uint8_t *data;
	int fd;

	assert_int_equal(dl_iterate_phdr(find_library, &w), 1);
	fd = open(w.path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	data = malloc((size_t)st.st_size);
	assert_non_null(data);
	assert_int_equal(read(fd, data, (size_t)st.st_size), st.st_size);
	close(fd);
	*ret_size = (size_t)st.st_size;
	return data;
}

/* Reached through its segments, the table is the same. */
static void test_real_library_without_sections(void **state)
{
	size_t size;
	_cleanup_free_ uint8_t *data = read_library("libc.so", &size);
	Elf64_Ehdr *h = (Elf64_Ehdr *)data;
	_cleanup_image_ struct image *with = NULL, *without = NULL;
	_cleanup_table_ struct unwind_table a = {0}, b = {0};

	assert_int_equal(image_open_memory(data, size, &with, NULL), 0);
	assert_int_equal(unwind_table_build(with, &a, NULL), 0);
	assert_sound(&a);
	assert_true(a.entries > 1000 && a.count > 100); /* with frame pointers, rules repeat */
	assert_int_equal(a.skipped, 0);
	assert_false(a.cut);
	h->e_shoff = h->e_shnum = h->e_shstrndx = 0;
	assert_int_equal(image_open_memory(data, size, &without, NULL), 0);
	assert_int_equal(unwind_table_build(without, &b, NULL), 0);
	assert_int_equal(a.count, b.count);
	assert_int_equal(a.entries, b.entries);
	assert_memory_equal(a.address, b.address, a.count * sizeof(*a.address));
	assert_memory_equal(a.rule, b.rule, a.count * sizeof(*a.rule));
}

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Damage within one of these parts of the file. */
struct part {
	size_t at, size;
};

static unsigned damage_once(uint8_t *data, size_t size, const struct part *parts, size_t part_count,
	uint64_t *seed, unsigned *tables)
{
	struct {
		size_t at;
		uint8_t was;
	} flips[16];
	unsigned count = 1 + (unsigned)(random_next(seed) % ARRAY_SIZE(flips)), changed = 0;
	_cleanup_image_ struct image *i = NULL;
	_cleanup_table_ struct unwind_table t = {0};
	uint8_t id[IMAGE_BUILD_ID_MAX];

	for (unsigned k = 0; k < count; k++) {
		const struct part *p = &parts[random_next(seed) % part_count];

		flips[k].at = p->at + random_next(seed) % p->size;
		flips[k].was = data[flips[k].at];
		data[flips[k].at] = (uint8_t)random_next(seed);
		changed += data[flips[k].at] != flips[k].was;
	}
	if (image_open_memory(data, size, &i, NULL) == 0) {
		image_build_id(i, id);
		if (unwind_table_build(i, &t, NULL) == 0) {
			assert_sound(&t);
			(*tables)++;
		}
	}
	for (unsigned k = count; k-- > 0;)
		data[flips[k].at] = flips[k].was;
	return changed;
}

static void test_random_damage(void **state)
{
	size_t size;
	_cleanup_free_ uint8_t *data = read_library("libcmocka.so", &size);
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)data;
	_cleanup_image_ struct image *i = NULL;
	_cleanup_table_ struct unwind_table before = {0}, after = {0};
	unsigned rounds = 0, changed = 0, tables = 0;
	struct timespec start, now;
	struct image_range eh;
	struct part parts[4] = {{0, sizeof(*h)}, {h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr)},
		{h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr)}};
	uint64_t seed = 20240607;

	assert_int_equal(image_open_memory(data, size, &i, NULL), 0);
	assert_int_equal(unwind_table_build(i, &before, NULL), 0);
	assert_true(before.count > 10);
	assert_int_equal(image_eh_frame(i, &eh), 0);
	parts[3] = (struct part){(size_t)(eh.data - data), eh.size};
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		/* headers are few bytes and decide much; most rounds are for the section */
		changed += rounds % 4 ? damage_once(data, size, &parts[3], 1, &seed, &tables)
				      : damage_once(data, size, parts, 4, &seed, &tables);
		rounds++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (rounds < 8000 && now.tv_sec - start.tv_sec < 5);
	printf("# %u rounds, %u bytes changed, %u tables built\n", rounds, changed, tables);
	assert_true(changed > rounds);
	assert_true(tables > rounds / 4);
	assert_int_equal(unwind_table_build(i, &after, NULL), 0); /* all was undone */
	assert_int_equal(before.count, after.count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prologue_and_epilogue_are_dropped),
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_calls_are_whole),
		cmocka_unit_test(test_leaves_and_padding_vanish),
		cmocka_unit_test(test_long_rows_are_kept),
		cmocka_unit_test(test_outermost_is_kept),
		cmocka_unit_test(test_signal_is_kept),
		cmocka_unit_test(test_first_function),
		cmocka_unit_test(test_order_and_overlap),
		cmocka_unit_test(test_bad_entries_are_skipped),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_leads_nowhere),
		cmocka_unit_test(test_too_many_rules),
		cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_too_many_entries),
		cmocka_unit_test(test_real_library_without_sections),
		cmocka_unit_test(test_random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
