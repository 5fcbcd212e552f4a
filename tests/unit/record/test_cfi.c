/* SPDX-License-Identifier: Apache-2.0 */
/* test_cfi.c - every instruction on both machines, by the rule it leads to. */
#include "elf_fixture.h"

#include "record/symbol/eh_frame.h"

#define SP(off)       .cfa = UNWIND_CFA_SP, .cfa_offset = (off)
#define FP(off)       .cfa = UNWIND_CFA_FP, .cfa_offset = (off)
#define FP_DEREF(off) .cfa = UNWIND_CFA_FP_DEREF, .cfa_offset = (off)
#define PLT           .cfa = UNWIND_CFA_PLT
#define OUTERMOST     .cfa = UNWIND_CFA_OUTERMOST
#define NONE          .cfa = UNWIND_CFA_NONE
#define RET           .ra = UNWIND_AT_CFA, .ra_offset = -8 /* where x86-64 always has it */
#define RA(off)       .ra = UNWIND_AT_CFA, .ra_offset = (off)
#define FP_AT(off)    .fp = UNWIND_AT_CFA, .fp_offset = (off)
#define FP_AT_FP(off) .fp = UNWIND_AT_FP, .fp_offset = (off)

struct program {
	struct bytes b;
	struct eh_frame frame;
	struct eh_entry entry;
	struct cfi cfi;
};

static inline void program_done(struct program *p)
{
	bytes_done(&p->b);
}
#define _cleanup_program_ _cleanup_(program_done)

/* An entry of 0x100 bytes. */
static int program_begin(struct program *p, unsigned machine, const void *bytes, size_t size)
{
	size_t cie;
	uint64_t record;

	p->b.size = 0;
	cie = put_cie(&p->b, machine);
	put_fde(&p->b, cie, FIXTURE_TEXT, 0x100, bytes, size);
	p->frame = eh_frame_of(
		&(struct image_range){.data = p->b.data, .size = p->b.size, .vaddr = FIXTURE_REST});
	assert_int_equal(eh_frame_next(&p->frame, &record), 1);
	assert_int_equal(eh_frame_entry(&p->frame, record, &p->entry), 0);
	return cfi_begin(&p->cfi, machine, &p->frame, &p->entry);
}

static void assert_rule(const char *name, const struct unwind_rule *a, const struct unwind_rule *b)
{
	if (memcmp(a, b, sizeof(*a)) != 0)
		fail_msg("%s: cfa %u%+d fp %u%+d ra %u%+d, not cfa %u%+d fp %u%+d ra %u%+d", name,
			a->cfa, a->cfa_offset, a->fp, a->fp_offset, a->ra, a->ra_offset, b->cfa,
			b->cfa_offset, b->fp, b->fp_offset, b->ra, b->ra_offset);
}

/* Programs without a change of place: one row. */
struct one_row {
	const char *name;
	unsigned machine;
	uint8_t size;
	uint8_t bytes[24];
	struct unwind_rule rule;
};
#define BYTES(...)                                                                                 \
	sizeof((uint8_t[]){__VA_ARGS__}),                                                          \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void check_rows(const struct one_row *cases, size_t count)
{
	_cleanup_program_ struct program p = {0};
	struct cfi_row row;

	for (size_t k = 0; k < count; k++) {
		assert_int_equal(
			program_begin(&p, cases[k].machine, cases[k].bytes, cases[k].size), 0);
		if (cfi_next(&p.cfi, &row) != 1)
			fail_msg("%s: no row", cases[k].name);
		assert_rule(cases[k].name, &row.rule, &cases[k].rule);
		assert_int_equal(row.start, FIXTURE_TEXT);
		assert_int_equal(row.end, FIXTURE_TEXT + 0x100);
		assert_int_equal(cfi_next(&p.cfi, &row), 0);
	}
}

static void test_x86_cfa(void **state)
{
	static const struct one_row cases[] = {
		{"entry", EM_X86_64, BYTES(0), {SP(8), RET}},
		{"def_cfa_offset", EM_X86_64, BYTES(0x0e, 0x90, 0x01), {SP(144), RET}},
		{"def_cfa rbp", EM_X86_64, BYTES(0x0c, 6, 16, 0x86, 2), {FP(16), FP_AT(-16), RET}},
		{"def_cfa_register", EM_X86_64, BYTES(0x0d, 6), {FP(8), RET}},
		{"def_cfa_sf", EM_X86_64, BYTES(0x12, 7, 0x7e), {SP(16), RET}},
		{"def_cfa_offset_sf", EM_X86_64, BYTES(0x13, 0x7d), {SP(24), RET}},
		{"def_cfa r10", EM_X86_64, BYTES(0x0c, 10, 0), {NONE}},
		{"rsp + 8", EM_X86_64, BYTES(0x0f, 2, 0x77, 8), {SP(8), RET}},
		{"realigned", EM_X86_64, BYTES(0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0),
			{FP_DEREF(-8), FP_AT_FP(0), RET}},
		{"deref of rsp", EM_X86_64, BYTES(0x0f, 3, 0x77, 8, 0x06), {NONE}},
		{"deref and more", EM_X86_64, BYTES(0x0f, 5, 0x76, 8, 0x06, 0x23, 8), {NONE}},
		{"plt", EM_X86_64,
			BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22),
			{PLT, RET}},
		{"other plt", EM_X86_64,
			BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22),
			{NONE}},
		{"offset of 2^31", EM_X86_64, BYTES(0x0e, 0x80, 0x80, 0x80, 0x80, 8), {NONE}},
		{"offset of 2^31 - 1", EM_X86_64, BYTES(0x0e, 0xff, 0xff, 0xff, 0xff, 7),
			{SP(0x7fffffff), RET}},
	};

	check_rows(cases, ARRAY_SIZE(cases));
}

static void test_x86_registers(void **state)
{
	static const struct one_row cases[] = {
		{"offset", EM_X86_64, BYTES(0x0e, 16, 0x86, 2), {SP(16), FP_AT(-16), RET}},
		{"offset_extended", EM_X86_64, BYTES(0x05, 6, 3), {SP(8), FP_AT(-24), RET}},
		{"offset_extended_sf", EM_X86_64, BYTES(0x11, 6, 0x7f), {SP(8), FP_AT(8), RET}},
		{"negative_offset", EM_X86_64, BYTES(0x2f, 6, 2), {SP(8), FP_AT(16), RET}},
		{"same_value", EM_X86_64, BYTES(0x86, 2, 0x08, 6), {SP(8), RET}},
		{"restore", EM_X86_64, BYTES(0x86, 2, 0xc6), {SP(8), RET}},
		{"restore_extended", EM_X86_64, BYTES(0x86, 2, 0x06, 6), {SP(8), RET}},
		{"restore of ra", EM_X86_64, BYTES(0x90, 5, 0xd0), {SP(8), RET}},
		{"ra elsewhere", EM_X86_64, BYTES(0x90, 2), {NONE}},
		{"ra in a register", EM_X86_64, BYTES(0x09, 16, 0), {NONE}},
		{"ra undefined", EM_X86_64, BYTES(0x07, 16), {OUTERMOST}},
		{"fp undefined", EM_X86_64, BYTES(0x86, 2, 0x07, 6), {SP(8), RET}},
		{"fp in a register", EM_X86_64, BYTES(0x09, 6, 0), {NONE}},
		{"fp a value", EM_X86_64, BYTES(0x14, 6, 1), {NONE}},
		{"fp a value, sf", EM_X86_64, BYTES(0x15, 6, 0x7f), {NONE}},
		{"fp at fp", EM_X86_64, BYTES(0x10, 6, 2, 0x76, 0x70), {SP(8), FP_AT_FP(-16), RET}},
		{"fp at sp", EM_X86_64, BYTES(0x10, 6, 2, 0x77, 8), {NONE}},
		{"fp through fp", EM_X86_64, BYTES(0x10, 6, 3, 0x76, 8, 0x06), {NONE}},
		{"fp an expression", EM_X86_64, BYTES(0x16, 6, 2, 0x76, 0), {NONE}},
		{"sp an expression", EM_X86_64, BYTES(0x10, 7, 2, 0x77, 8), {NONE}},
		{"others do not matter", EM_X86_64,
			BYTES(0x83, 3, 0x10, 3, 1, 0x30, 0x09, 1, 2, 0x07, 12, 0x16, 2, 0),
			{SP(8), RET}},
		{"args_size", EM_X86_64, BYTES(0x2e, 0x80, 1, 0x0e, 16), {SP(16), RET}},
	};

	check_rows(cases, ARRAY_SIZE(cases));
}

static void test_arm64(void **state)
{
	static const struct one_row cases[] = {
		{"entry", EM_AARCH64, BYTES(0), {SP(0)}},
		{"frame", EM_AARCH64, BYTES(0x0e, 32, 0x9d, 4, 0x9e, 3),
			{SP(32), FP_AT(-32), RA(-24)}},
		{"by fp", EM_AARCH64, BYTES(0x0c, 29, 16, 0x9d, 2, 0x9e, 1),
			{FP(16), FP_AT(-16), RA(-8)}},
		{"restored", EM_AARCH64, BYTES(0x9d, 4, 0x9e, 3, 0xdd, 0xde), {SP(0)}},
		{"offset_extended", EM_AARCH64, BYTES(0x05, 30, 1), {SP(0), RA(-8)}},
		{"signed", EM_AARCH64, BYTES(0x2d, 0x9e, 1), {SP(0), RA(-8)}},
		{"signed with the address", EM_AARCH64, BYTES(0x2c, 0x9e, 1), {SP(0), RA(-8)}},
		{"outermost", EM_AARCH64, BYTES(0x07, 30), {OUTERMOST}},
		{"deref", EM_AARCH64, BYTES(0x0f, 3, 0x8d, 8, 0x06), {FP_DEREF(8)}},
		{"ra at fp", EM_AARCH64, BYTES(0x10, 30, 2, 0x8d, 8),
			{SP(0), .ra = UNWIND_AT_FP, .ra_offset = 8}},
		{"sp + 16", EM_AARCH64, BYTES(0x0f, 2, 0x8f, 16), {SP(16)}},
		{"no plt here", EM_AARCH64,
			BYTES(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22),
			{NONE}},
		{"vector lengths", EM_AARCH64,
			BYTES(0x0f, 8, 0x8f, 16, 0x92, 46, 0, 0x40, 0x1e, 0x22), {NONE}},
		{"x16 holds it", EM_AARCH64, BYTES(0x09, 30, 16), {NONE}},
	};

	check_rows(cases, ARRAY_SIZE(cases));
}

static void test_places(void **state)
{
	static const uint8_t bytes[] = {0x41, 0x0e, 16, /* + 1 */
		0x02, 2, 0x0e, 24,                      /* + 2 */
		0x03, 3, 0, 0x0a, 0x0e, 32,             /* + 3, remembered with 24 */
		0x04, 4, 0, 0, 0, 0x0b,                 /* + 4, 24 again */
		0x40, 0x42, 0x0e, 40,                   /* + 0 + 2 */
		0x1d, 6, 0, 0, 0, 0, 0, 0, 0, 0x0e, 48};
	static const struct {
		uint32_t start;
		int32_t offset;
	} expected[] = {
		{0, 8}, {1, 16}, {3, 24}, {6, 32}, {10, 24}, {12, 40}, {18, 48}, {0x100, 0}};
	_cleanup_program_ struct program p = {0};
	struct cfi_row row;

	assert_int_equal(program_begin(&p, EM_X86_64, bytes, sizeof(bytes)), 0);
	for (size_t k = 0; k + 1 < ARRAY_SIZE(expected); k++) {
		assert_int_equal(cfi_next(&p.cfi, &row), 1);
		assert_int_equal(row.start, FIXTURE_TEXT + expected[k].start);
		assert_int_equal(row.end, FIXTURE_TEXT + expected[k + 1].start);
		assert_int_equal(row.rule.cfa_offset, expected[k].offset);
	}
	assert_int_equal(cfi_next(&p.cfi, &row), 0);
	/* arm64 counts in words */
	assert_int_equal(program_begin(&p, EM_AARCH64, "\x43\x0e\x10", 3), 0);
	assert_int_equal(cfi_next(&p.cfi, &row), 1);
	assert_int_equal(row.end, FIXTURE_TEXT + 12);
}

/* An address in the program, encoded as those of entries are. */
static void test_set_loc(void **state)
{
	_cleanup_program_ struct program p = {0};
	uint8_t bytes[] = {0x01, 0, 0, 0, 0, 0x0e, 16};
	struct cfi_row row;
	uint32_t distance;

	assert_int_equal(program_begin(&p, EM_X86_64, bytes, sizeof(bytes)), 0);
	distance = FIXTURE_TEXT + 0x20 -
		   (FIXTURE_REST + (uint32_t)(p.entry.program.at + 1 - p.b.data));
	memcpy(bytes + 1, &distance, sizeof(distance));
	assert_int_equal(program_begin(&p, EM_X86_64, bytes, sizeof(bytes)), 0);
	assert_int_equal(cfi_next(&p.cfi, &row), 1);
	assert_int_equal(row.end, FIXTURE_TEXT + 0x20);
	assert_int_equal(cfi_next(&p.cfi, &row), 1);
	assert_int_equal(row.rule.cfa_offset, 16);
	assert_int_equal(row.end, FIXTURE_TEXT + 0x100);
	distance -= 0x21; /* backwards */
	memcpy(bytes + 1, &distance, sizeof(distance));
	assert_int_equal(program_begin(&p, EM_X86_64, bytes, sizeof(bytes)), 0);
	assert_int_equal(cfi_next(&p.cfi, &row), -EBADMSG);
}

/* What lies behind the entry's end is left out. */
static void test_leaving(void **state)
{
	_cleanup_program_ struct program p = {0};
	struct cfi_row row;

	assert_int_equal(program_begin(&p, EM_X86_64, "\x03\0\x02\x0e\x10\x41\x0e\x18", 8), 0);
	assert_int_equal(cfi_next(&p.cfi, &row), 1);
	assert_int_equal(row.end, FIXTURE_TEXT + 0x100);
	assert_int_equal(row.rule.cfa_offset, 8);
	assert_int_equal(cfi_next(&p.cfi, &row), 0);
}

static int first_row(unsigned machine, const void *bytes, size_t size)
{
	_cleanup_program_ struct program p = {0};
	struct cfi_row row;

	assert_int_equal(program_begin(&p, machine, bytes, size), 0);
	return cfi_next(&p.cfi, &row);
}
#define FIRST_ROW(machine, text) first_row(machine, text, sizeof(text) - 1)

static void test_bad_programs(void **state)
{
	static const char deep[] = "\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a";

	assert_int_equal(FIRST_ROW(EM_X86_64, "\x0a\x0b"), 1);
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x0b"), -EBADMSG); /* nothing was remembered */
	assert_int_equal(first_row(EM_X86_64, deep, CFI_REMEMBER_MAX), 1);
	assert_int_equal(first_row(EM_X86_64, deep, CFI_REMEMBER_MAX + 1), -EBADMSG);
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x17"), -EBADMSG);         /* no such instruction */
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x2d"), -EBADMSG);         /* not of this machine */
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x0e\x80\x80"), -EBADMSG); /* cut */
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x0f\x7f\x77\x08"), -EBADMSG); /* too long */
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x10\x06\x7f\x77\x08"), -EBADMSG);
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x0f\x01\x30\x0e\x08"), -EBADMSG); /* was no sum */
	/* factors that overflow: offsets, places */
	assert_int_equal(
		FIRST_ROW(EM_X86_64, "\x05\x06\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), -EBADMSG);
	assert_int_equal(
		FIRST_ROW(EM_X86_64, "\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -EBADMSG);
	assert_int_equal(FIRST_ROW(EM_AARCH64, "\x1d\xff\xff\xff\xff\xff\xff\xff\xff"), -EBADMSG);
	assert_int_equal(FIRST_ROW(EM_X86_64, "\x1d\xff\xff\xff\xff\xff\xff\xff\xff"), -EBADMSG);
}

/* A CIE moves to no place and restores nothing; its return register is the machine's. */
static void test_bad_cie(void **state)
{
	_cleanup_program_ struct program p = {0};
	struct cfi_row row;

	assert_int_equal(program_begin(&p, EM_X86_64, "", 0), 0);
	p.entry.cie.program = cursor_of((const uint8_t *)"\x41", 1);
	assert_int_equal(cfi_begin(&p.cfi, EM_X86_64, &p.frame, &p.entry), -EBADMSG);
	p.entry.cie.program = cursor_of((const uint8_t *)"\xc6", 1);
	assert_int_equal(cfi_begin(&p.cfi, EM_X86_64, &p.frame, &p.entry), -EBADMSG);
	p.entry.cie.program = cursor_of((const uint8_t *)"\x90\x01", 2);
	assert_int_equal(cfi_begin(&p.cfi, EM_X86_64, &p.frame, &p.entry), 0);
	assert_int_equal(cfi_next(&p.cfi, &row), 1);
	assert_int_equal(row.rule.cfa, UNWIND_CFA_NONE); /* the CFA was never defined */
	p.entry.cie.program = cursor_of((const uint8_t *)"\x0c\x07\x08\x90\x01", 5);
	assert_int_equal(cfi_begin(&p.cfi, EM_X86_64, &p.frame, &p.entry), 0);
	assert_int_equal(cfi_next(&p.cfi, &row), 1);
	assert_int_equal(row.rule.cfa, UNWIND_CFA_SP);
	p.entry.cie.return_register = 17;
	assert_int_equal(cfi_begin(&p.cfi, EM_X86_64, &p.frame, &p.entry), 0);
	assert_int_equal(cfi_next(&p.cfi, &row), 1);
	assert_int_equal(row.rule.cfa, UNWIND_CFA_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_cfa),
		cmocka_unit_test(test_x86_registers),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_set_loc),
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_bad_programs),
		cmocka_unit_test(test_bad_cie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
