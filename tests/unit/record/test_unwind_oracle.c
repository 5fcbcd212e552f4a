/* SPDX-License-Identifier: Apache-2.0 */
/* test_unwind_oracle.c - unwind tables of real files against libdw, which runs the same programs
 * with code that is not ours: at every call of a file both must find the caller's registers at the
 * same places. On x86-64, where calls cannot be told from other bytes without decoding all of them,
 * at every byte that may begin one. */
#include "elf_fixture.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>

#include "record/symbol/unwind_table.h"

#define _cleanup_image_ _cleanup_(image_closep)
#define _cleanup_table_ _cleanup_(unwind_table_done)

struct registers {
	int sp, fp, ra;
};

struct tally {
	unsigned calls, differing;
	unsigned described; /* of the calls, those that an entry covers; the rest is data */
	unsigned unknown, outermost, deref;
};

static struct registers registers_of(unsigned machine)
{
	return machine == EM_X86_64 ? (struct registers){7, 6, 16} : (struct registers){31, 29, 30};
}

/* ---- libdw's answer as a rule; false: it has none in the table's terms ---- */

static bool is_base(const Dwarf_Op *op, int *ret_number, int64_t *ret_offset)
{
	if (op->atom == DW_OP_bregx) {
		*ret_number = (int)op->number;
		*ret_offset = (int64_t)op->number2;
	} else if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*ret_number = op->atom - DW_OP_breg0;
		*ret_offset = (int64_t)op->number;
	} else {
		return false;
	}
	return true;
}

static bool is_plt(const Dwarf_Op *ops, size_t count)
{
	static const uint8_t atoms[] = {DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and,
		DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus};

	for (size_t k = 0; k < sizeof(atoms); k++)
		if (count != sizeof(atoms) || ops[k].atom != atoms[k])
			return false;
	return ops[0].number == 8 && ops[1].number == 0;
}

static bool cfa_of(Dwarf_Frame *frame, const struct registers *reg, struct unwind_rule *rule)
{
	Dwarf_Op *ops;
	size_t count;
	int number;
	int64_t offset;

	assert_int_equal(dwarf_frame_cfa(frame, &ops, &count), 0);
	if (is_plt(ops, count)) {
		rule->cfa = UNWIND_CFA_PLT;
		return true;
	}
	if (count < 1 || count > 2 || !is_base(&ops[0], &number, &offset))
		return false;
	rule->cfa_offset = (int32_t)offset;
	if (count == 2) {
		rule->cfa = UNWIND_CFA_FP_DEREF;
		return number == reg->fp && ops[1].atom == DW_OP_deref;
	}
	rule->cfa = number == reg->sp ? UNWIND_CFA_SP : UNWIND_CFA_FP;
	return number == reg->sp || number == reg->fp;
}

static bool register_of(Dwarf_Frame *frame, int number, const struct registers *reg, uint8_t *ret,
	int32_t *ret_offset, bool *ret_undefined)
{
	Dwarf_Op memory[3], *ops;
	int64_t offset = 0;
	size_t count;
	int base;

	*ret_undefined = false;
	assert_int_equal(dwarf_frame_register(frame, number, memory, &ops, &count), 0);
	if (count == 0) {
		*ret_undefined = ops != NULL;
		*ret = UNWIND_SAME;
		return true;
	}
	/* the CFA is on the stack before anything else; an expression may leave it there */
	if (ops[0].atom != DW_OP_call_frame_cfa || count > 2)
		return false;
	if (count == 2 && is_base(&ops[1], &base, &offset)) {
		*ret = UNWIND_AT_FP;
		*ret_offset = (int32_t)offset;
		return base == reg->fp;
	}
	*ret = UNWIND_AT_CFA;
	*ret_offset = count == 2 ? (int32_t)ops[1].number : 0;
	return count == 1 || ops[1].atom == DW_OP_plus_uconst;
}

/* @ra: which register the return address is in; hand-written code on arm64 takes others than x30, which no rule says. */
static struct unwind_rule expected_rule(Dwarf_Frame *frame, unsigned machine, int ra)
{
	struct registers reg = registers_of(machine);
	struct unwind_rule rule = {0}, none = {.cfa = UNWIND_CFA_NONE};
	bool fp_undefined, ra_undefined, expressible;

	expressible = register_of(frame, reg.ra, &reg, &rule.ra, &rule.ra_offset, &ra_undefined);
	if (ra_undefined)
		return (struct unwind_rule){.cfa = UNWIND_CFA_OUTERMOST};
	expressible &= register_of(frame, reg.fp, &reg, &rule.fp, &rule.fp_offset, &fp_undefined);
	expressible &= cfa_of(frame, &reg, &rule) && ra == reg.ra;
	if (machine == EM_X86_64)
		expressible &= rule.ra == UNWIND_AT_CFA && rule.ra_offset == -8;
	return expressible ? rule : none;
}

/* ---- calls ---- */

/* Length of the call at @code, 0 if there is none; on x86-64, of one that may be there. */
static uint64_t call_length(unsigned machine, const uint8_t *code, uint64_t left)
{
	uint32_t word;

	if (machine == EM_X86_64) {
		if (left >= 5 && code[0] == 0xe8)
			return 5;
		return left >= 2 && code[0] == 0xff && (code[1] & 0x38) == 0x10 ? 2 : 0;
	}
	if (left < 4)
		return 0;
	memcpy(&word, code, sizeof(word));
	if (word >> 26 == 0x25) /* BL */
		return 4;
	/* BLR; BLRAAZ, BLRABZ; BLRAA, BLRAB */
	return (word & 0xfffffc1f) == 0xd63f0000 || (word & 0xfffff81f) == 0xd63f081f ||
			       (word & 0xfffff800) == 0xd73f0800
		       ? 4
		       : 0;
}

static void compare_call(const struct image *i, const struct unwind_table *t, Dwarf_CFI *cfi,
	uint64_t vaddr, uint64_t length, struct tally *tally)
{
	struct unwind_rule expected = {.cfa = UNWIND_CFA_NONE};
	const struct unwind_rule *found;
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr start = 0, end = 0;
	uint64_t offset;
	bool is_signal;

	assert_int_equal(image_offset(i, vaddr + length - 1, &offset), 0);
	found = unwind_table_find(t, offset);
	if (dwarf_cfi_addrframe(cfi, vaddr, &frame) == 0) {
		int ra = dwarf_frame_info(frame, &start, &end, &is_signal);

		if (end - vaddr < length) { /* two rows: it was no call */
			free(frame);
			return;
		}
		expected = is_signal ? (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL}
				     : expected_rule(frame, image_machine(i), ra);
		free(frame);
		tally->described++;
		tally->unknown += expected.cfa == UNWIND_CFA_NONE;
	}
	tally->calls++;
	tally->outermost += expected.cfa == UNWIND_CFA_OUTERMOST;
	tally->deref += expected.cfa == UNWIND_CFA_FP_DEREF;
	if (!found && expected.cfa == UNWIND_CFA_NONE)
		return;
	if (!found || memcmp(found, &expected, sizeof(expected)) != 0) {
		tally->differing++;
		if (tally->differing <= 5 && found)
			printf("# %#lx: cfa %u%+d fp %u%+d ra %u%+d, libdw: cfa %u%+d fp %u%+d ra "
			       "%u%+d\n",
				vaddr, found->cfa, found->cfa_offset, found->fp, found->fp_offset,
				found->ra, found->ra_offset, expected.cfa, expected.cfa_offset,
				expected.fp, expected.fp_offset, expected.ra, expected.ra_offset);
	}
}

static struct tally compare_calls(
	const struct image *i, const struct unwind_table *t, Dwarf_CFI *cfi)
{
	unsigned machine = image_machine(i), step = machine == EM_X86_64 ? 1 : 4;
	struct tally tally = {0};
	struct image_range text;

	for (unsigned n = 0; image_text(i, n, &text) == 0; n++)
		for (uint64_t at = 0; at < text.size; at += step) {
			uint64_t length = call_length(machine, text.data + at, text.size - at);

			if (length)
				compare_call(i, t, cfi, text.vaddr + at, length, &tally);
		}
	return tally;
}

/* ---- files ---- */

struct file {
	int fd;
	Elf *elf;
	Dwarf_CFI *cfi;
	struct image *image;
	struct unwind_table table;
};

static bool file_open(struct file *f, const char *path)
{
	struct errinfo err = {0};

	*f = (struct file){.fd = open(path, O_RDONLY | O_CLOEXEC)};
	if (f->fd < 0)
		return false;
	elf_version(EV_CURRENT);
	if (image_open(f->fd, &f->image, &err) < 0 ||
		unwind_table_build(f->image, &f->table, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	f->elf = elf_begin(f->fd, ELF_C_READ_MMAP, NULL);
	f->cfi = dwarf_getcfi_elf(f->elf);
	assert_non_null(f->cfi);
	return true;
}

static void file_close(struct file *f)
{
	dwarf_cfi_end(f->cfi);
	elf_end(f->elf);
	image_close(f->image);
	unwind_table_done(&f->table);
	close(f->fd);
}

static struct tally compare_file(const char *path)
{
	struct tally tally;
	struct file f;

	if (!file_open(&f, path))
		return (struct tally){0};
	tally = compare_calls(f.image, &f.table, f.cfi);
	printf("# %s: %u calls, %u described, %u of them without a rule, %u outermost, %u "
	       "realigned; %u rows\n",
		path, tally.calls, tally.described, tally.unknown, tally.outermost, tally.deref,
		f.table.count);
	if (tally.differing > 0)
		fail_msg("%s: %u of %u calls differ", path, tally.differing, tally.calls);
	assert_true(tally.described > 0);
	assert_int_equal(f.table.skipped, 0);
	file_close(&f);
	return tally;
}

static void test_this_program(void **state)
{
	struct tally tally = compare_file("/proc/self/exe");

	assert_true(tally.described > 1000);
	assert_true(tally.outermost > 0); /* _start calls main's caller and has none itself */
	assert_int_equal(tally.unknown, 0);
}

/* The libraries of one machine, wherever Debian and its cross compilers put them. */
static void compare_libraries(const char *triplet)
{
	static const char *const names[] = {"libc.so.6", "libstdc++.so.6", "libm.so.6",
		"libcrypto.so.3", "libsqlite3.so.0", "libitm.so.1" /* has realigned stacks */};
	unsigned found = 0;
	char folder[128], path[256];

	for (size_t n = 0; n < 2 * ARRAY_SIZE(names); n++) {
		snprintf(folder, sizeof(folder),
			n < ARRAY_SIZE(names) ? "/usr/lib/%s" : "/usr/%s/lib", triplet);
		snprintf(path, sizeof(path), "%s/%s", folder, names[n % ARRAY_SIZE(names)]);
		found += compare_file(path).calls > 0;
	}
	if (found == 0) {
		printf("# skip: no library of %s is installed\n", triplet);
		skip();
	}
}

static void test_arm64_libraries(void **state)
{
	compare_libraries("aarch64-linux-gnu");
}

static void test_x86_64_libraries(void **state)
{
	compare_libraries("x86_64-linux-gnu");
}

static void test_python(void **state)
{
	if (access("/usr/bin/python3", R_OK) < 0) {
		printf("# skip: no /usr/bin/python3\n");
		skip();
	}
	assert_true(compare_file("/usr/bin/python3").calls > 0);
}

/* A table that is wrong is found out: one rule changed, and one row moved by a word. */
static void test_differences_are_seen(void **state)
{
	struct unwind_table *t;
	struct file f;

	assert_true(file_open(&f, "/proc/self/exe"));
	t = &f.table;
	assert_int_equal(compare_calls(f.image, t, f.cfi).differing, 0);
	t->rules[t->rule_count / 2].cfa_offset += 8;
	assert_true(compare_calls(f.image, t, f.cfi).differing > 0);
	t->rules[t->rule_count / 2].cfa_offset -= 8;
	for (uint32_t k = 0; k < t->count; k++)
		t->address[k] += 0x100;
	assert_true(compare_calls(f.image, t, f.cfi).differing > 0);
	file_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_program),
		cmocka_unit_test(test_arm64_libraries),
		cmocka_unit_test(test_x86_64_libraries),
		cmocka_unit_test(test_python),
		cmocka_unit_test(test_differences_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
