/* SPDX-License-Identifier: Apache-2.0 */
/* accessor.c - looks for a 32-bit load from [register + offset] whose value is stored, within a few
 * instructions, to [another register].
 *
 * x86-64:  8B /r mod 10      mov  r32, [r64 + disp32]      then  89 /r mod 00   mov [r64], r32
 *          where r12 takes a SIB byte, and r13 and rbp are stored to by mod 01 with an offset of 0
 * arm64:   add xN, xM, #imm, lsl 12 (for offsets past 16 KiB)
 *          ldr wT, [xN, #imm]                              then  str wT, [xK]
 *
 * And for a constant that is stored likewise:
 *
 * x86-64:  C7 /0 mod 00 imm32   movl $imm, [r64]
 * arm64:   movz wT, #imm                                   then  str wT, [xK]
 *
 * And for a 64-bit counter that something is added to, past 1 << 12 of a structure:
 *
 * x86-64:  REX.W 01 /r mod 10   add [r64 + disp32], r64    or  REX.W 83 /0 mod 10 imm8   addq $imm, [r64 + disp32]
 * arm64:   add xN, xM, #imm, lsl 12
 *          ldr xT, [xN, #imm]       add xT, xT, …          then  str xT, [xN, #imm]
 *
 * Offsets below MIN_OFFSET are not taken: they are saved registers and small structures of the
 * logging around the access. The code is a stranger's: nothing is executed, only matched. */
#include "record/attach/accessor.h"

#include <elf.h>

#define MIN_OFFSET 64
#define MAX_OFFSET (64 << 20)
#define X86_WINDOW 16 /* bytes between load and store */
#define ARM_WINDOW 4  /* instructions likewise */
#define X86_LOAD   6  /* bytes of a load without prefix and SIB: opcode, ModRM, offset of four */
#define REX_W      8  /* 64 bits */
#define REX_R      4  /* the upper half for the value's register */
#define REX_X      2  /* for the index */
#define REX_B      1  /* for the base */

struct search { /* the first match counts: the bytes may reach into the next function */
	uint32_t offset;
	bool found;
};

static void found_at(struct search *s, uint32_t offset)
{
	if (s->found || offset < MIN_OFFSET || offset > MAX_OFFSET)
		return;
	s->found = true;
	s->offset = offset;
}

/* The REX prefix in front of an instruction says which half of the registers is meant; 0: none. */
static unsigned rex_before(const uint8_t *code, size_t at)
{
	return at && (code[at - 1] & 0xf0) == 0x40 ? code[at - 1] & 0xf : 0;
}

/* What follows the ModRM byte of the instruction at @at; behind the end, no byte that means anything
 * here. */
static unsigned after_modrm(const uint8_t *code, size_t at, size_t len)
{
	return at + 2 < len ? code[at + 2] : 0xff;
}

/* Does the address of the instruction at @at need a SIB byte? 0: the ModRM byte names the register;
 * 1: it takes one to say r12; -1: it is the stack pointer, or registers are added up. */
static int x86_sib(const uint8_t *code, size_t at, size_t len)
{
	if ((code[at + 1] & 7) != 4)
		return 0;
	return after_modrm(code, at, len) == 0x24 &&
			       (rex_before(code, at) & (REX_X | REX_B)) == REX_B
		       ? 1
		       : -1;
}

static unsigned x86_value(const uint8_t *code, size_t at)
{
	return (code[at + 1] >> 3 & 7) | (rex_before(code, at) & REX_R ? 8 : 0);
}

static bool x86_is_store(const uint8_t *code, size_t at, size_t len)
{
	unsigned mod = code[at + 1] >> 6, rm = code[at + 1] & 7;

	if (code[at] != 0x89 || rex_before(code, at) & REX_W)
		return false;
	if (rm == 5)
		return mod == 1 && after_modrm(code, at, len) == 0;
	return mod == 0 && x86_sib(code, at, len) >= 0;
}

static bool x86_stores(const uint8_t *code, size_t from, size_t to, unsigned reg)
{
	for (size_t i = from; i + 2 <= to; i++)
		if (x86_is_store(code, i, to) && x86_value(code, i) == reg)
			return true;
	return false;
}

static void search_x86(struct search *s, const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + X86_LOAD <= len; i++) {
		uint32_t disp;
		size_t end;
		int sib;

		if (code[i] != 0x8b || code[i + 1] >> 6 != 2 || rex_before(code, i) & REX_W)
			continue;
		sib = x86_sib(code, i, len);
		if (sib < 0 || i + X86_LOAD + (size_t)sib > len)
			continue;
		end = i + X86_LOAD + (size_t)sib;
		memcpy(&disp, code + end - sizeof(disp), sizeof(disp));
		if (x86_stores(code, end, MIN(end + X86_WINDOW, len), x86_value(code, i)))
			found_at(s, disp);
	}
}

/* The constant that the instruction at @at stores to [register]. */
static bool x86_constant(const uint8_t *code, size_t at, size_t len, uint32_t *ret)
{
	unsigned mod = code[at + 1] >> 6, rm = code[at + 1] & 7;
	size_t imm = at + 2;

	if (code[at] != 0xc7 || (code[at + 1] >> 3 & 7) != 0 || rex_before(code, at) & REX_W)
		return false;
	if (rm == 5 ? mod != 1 || after_modrm(code, at, len) != 0 : mod != 0)
		return false;
	if (rm == 5)
		imm++;
	else if (rm == 4) {
		if (x86_sib(code, at, len) < 0)
			return false;
		imm++;
	}
	if (imm + sizeof(*ret) > len)
		return false;
	memcpy(ret, code + imm, sizeof(*ret));
	return true;
}

static uint32_t arm_word(const uint8_t *code, size_t i)
{
	uint32_t w;

	memcpy(&w, code + 4 * i, sizeof(w));
	return w;
}

/* What a recent `add xN, x?, #imm, lsl 12` put on top of register @reg; 0 if there is none. */
static uint32_t arm_high_part(const uint8_t *code, size_t at, unsigned reg)
{
	for (size_t back = 1; back <= ARM_WINDOW && back <= at; back++) {
		uint32_t w = arm_word(code, at - back);

		if ((w & 0xffc00000) == 0x91400000 && (w & 31) == reg)
			return (w >> 10 & 0xfff) << 12;
	}
	return 0;
}

int accessor_field(unsigned machine, const uint8_t *code, size_t len, uint32_t *ret)
{
	struct search s = {0};

	if (machine == EM_X86_64)
		search_x86(&s, code, len);
	else if (machine == EM_AARCH64) {
		size_t n = len / 4;

		for (size_t i = 0; i < n; i++) {
			uint32_t load = arm_word(code, i);
			unsigned base = load >> 5 & 31, value = load & 31;

			if ((load & 0xffc00000) != 0xb9400000 || base == 31)
				continue;
			for (size_t k = i + 1; k < n && k <= i + ARM_WINDOW; k++) {
				uint32_t store = arm_word(code, k);

				if ((store & 0xfffffc00) == 0xb9000000 && (store & 31) == value &&
					(store >> 5 & 31) != 31)
					found_at(&s, arm_high_part(code, i, base) +
							     ((load >> 10 & 0xfff) << 2));
			}
		}
	}
	if (!s.found)
		return -ENOENT;
	*ret = s.offset;
	return 0;
}

/* The constant that the instruction at @at puts into a register, if one of the next stores that to [register]. */
static bool arm_constant(const uint8_t *code, size_t at, size_t n, uint32_t *ret)
{
	uint32_t move = arm_word(code, at);

	if ((move & 0xffe00000) != 0x52800000)
		return false;
	for (size_t k = at + 1; k < n && k <= at + ARM_WINDOW; k++) {
		uint32_t store = arm_word(code, k);

		if ((store & 0xfffffc00) == 0xb9000000 && (store & 31) == (move & 31)) {
			*ret = move >> 5 & 0xffff;
			return true;
		}
	}
	return false;
}

struct counters { /* that code adds to, within a range of offsets */
	uint32_t min, max;
	uint32_t offset;
	size_t distinct;
};

static void counter_at(struct counters *c, uint32_t offset)
{
	if (offset < c->min || offset > c->max || offset % 8 ||
		(c->distinct && offset == c->offset))
		return;
	c->offset = offset;
	c->distinct++;
}

static void counters_x86(struct counters *c, const uint8_t *code, size_t len)
{
	for (size_t i = 1; i + X86_LOAD <= len; i++) {
		bool adds_register = code[i] == 0x01;
		bool adds_constant = code[i] == 0x83 && (code[i + 1] >> 3 & 7) == 0;
		uint32_t disp;
		int sib;

		if ((!adds_register && !adds_constant) || code[i + 1] >> 6 != 2 ||
			!(rex_before(code, i) & REX_W))
			continue;
		sib = x86_sib(code, i, len);
		if (sib < 0 || i + X86_LOAD + (size_t)sib > len)
			continue;
		memcpy(&disp, code + i + 2 + sib, sizeof(disp));
		counter_at(c, disp);
	}
}

/* What register @reg has more than another, by the last `add xN, x?, #imm, lsl 12` before @at. */
static uint32_t arm_page(const uint8_t *code, size_t at, unsigned reg)
{
	while (at-- > 0) {
		uint32_t w = arm_word(code, at);

		if ((w & 0xffc00000) == 0x91400000 && (w & 31) == reg)
			return (w >> 10 & 0xfff) << 12;
	}
	return 0;
}

/* Is the value that instruction @at loads added to and stored where it was? */
static bool arm_adds(const uint8_t *code, size_t at, size_t n)
{
	uint32_t load = arm_word(code, at);
	unsigned value = load & 31;
	bool is_added = false;

	for (size_t k = at + 1; k < n && k <= at + ARM_WINDOW; k++) {
		uint32_t w = arm_word(code, k);

		/* add xT, xT, xM and add xT, xM, xT; add xT, xT, #imm */
		if ((w & 0xffe0fc00) == 0x8b000000 && (w & 31) == value &&
			((w >> 5 & 31) == value || (w >> 16 & 31) == value))
			is_added = true;
		if ((w & 0xffc00000) == 0x91000000 && (w & 31) == value && (w >> 5 & 31) == value)
			is_added = true;
		if (w == (load & ~UINT32_C(0x00400000)) && is_added)
			return true;
	}
	return false;
}

int accessor_counter(unsigned machine, const uint8_t *code, size_t len, uint32_t min, uint32_t max,
	uint32_t *ret)
{
	struct counters c = {.min = min, .max = max};

	if (machine == EM_X86_64)
		counters_x86(&c, code, len);
	else if (machine == EM_AARCH64) {
		size_t n = len / 4;

		for (size_t i = 0; i < n; i++) {
			uint32_t load = arm_word(code, i);

			if ((load & 0xffc00000) == 0xf9400000 && arm_adds(code, i, n))
				counter_at(&c, arm_page(code, i, load >> 5 & 31) +
						       ((load >> 10 & 0xfff) << 3));
		}
	}
	if (c.distinct != 1)
		return -ENOENT;
	*ret = c.offset;
	return 0;
}

int accessor_constant(unsigned machine, const uint8_t *code, size_t len, uint32_t min, uint32_t max,
	uint32_t *ret)
{
	size_t step = machine == EM_AARCH64 ? 4 : 1;
	uint32_t value;

	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return -ENOENT;
	for (size_t i = 0; i + 4 <= len; i += step) {
		bool is_stored = machine == EM_X86_64 ? x86_constant(code, i, len, &value)
						      : arm_constant(code, i / 4, len / 4, &value);

		if (is_stored && value >= min && value <= max) {
			*ret = value;
			return 0;
		}
	}
	return -ENOENT;
}

#define VERSION_BYTES 128   /* of ncclGetVersion() */
#define NAMED_SINCE   21800 /* commHash stands before rank */
#define MAGIC_SINCE   22105 /* startMagic is the first word */
#define NEIGHBOURS    64    /* bytes between fields that belong together */
#define COUNTER_NEAR  1024  /* the counter of collectives is so far behind rank, at most */
#define COUNTER_BYTES                                                                              \
	512 /* of the function that advances it: it does so soon, and none was seen that is shorter */
#define COPIES_MAX 8

/* A field of the communicator, by the code of the function that returns it; 0 if it cannot be told. */
static uint32_t field_of(struct elfsym *elf, const char *function)
{
	uint8_t code[ACCESSOR_BYTES];
	uint64_t offset;
	uint32_t at;

	if (elfsym_offset(elf, function, &offset) < 0 ||
		elfsym_read(elf, offset, code, sizeof(code)) < 0 ||
		accessor_field(elfsym_machine(elf), code, sizeof(code), &at) < 0)
		return 0;
	return at;
}

/* 22809 for 2.28.9; 0 if it cannot be told. Until 2.8 the code was 2804 for 2.8.4. */
static uint32_t version_of(struct elfsym *elf)
{
	uint8_t code[VERSION_BYTES];
	uint64_t offset;
	uint32_t version;

	if (elfsym_offset(elf, "ncclGetVersion", &offset) < 0 ||
		elfsym_read(elf, offset, code, sizeof(code)) < 0 ||
		accessor_constant(elfsym_machine(elf), code, sizeof(code), 2000, 99999, &version) <
			0)
		return 0;
	return version;
}

/* The counter of launched collectives, by the code that advances it, which may be a copy that the compiler made. */
static uint32_t counter_of(struct elfsym *elf, uint32_t rank_at)
{
	static const char *const functions[] = {
		"_ZL14uploadProxyOpsP8ncclCommP14ncclKernelPlan",
		"_ZL18hostStreamPlanTaskP8ncclCommP14ncclKernelPlan", /* where the other is part of it */
	};
	uint64_t offsets[COPIES_MAX];
	uint32_t which[COPIES_MAX], at;
	uint8_t code[COUNTER_BYTES];
	int n = elfsym_search(elf, functions, ARRAY_SIZE(functions), offsets, which, COPIES_MAX);

	for (int i = 0; i < n; i++)
		if (elfsym_read(elf, offsets[i], code, sizeof(code)) == 0 &&
			accessor_counter(elfsym_machine(elf), code, sizeof(code), rank_at + 8,
				rank_at + COUNTER_NEAR, &at) == 0)
			return at;
	return 0;
}

void nccl_layout_read(struct elfsym *elf, struct wire_nccl_layout *ret)
{
	uint32_t version = version_of(elf);
	struct wire_nccl_layout l = {
		.rank_at = field_of(elf, "ncclCommUserRank"),
		.size_at = field_of(elf, "ncclCommCount"),
		.device_at = field_of(elf, "ncclCommCuDevice"),
	};

	/* rank and size are neighbours in every version; offsets far apart are a wrong guess */
	l.valid = l.rank_at && l.size_at &&
		  MAX(l.rank_at, l.size_at) - MIN(l.rank_at, l.size_at) <= NEIGHBOURS;
	if (l.device_at < l.rank_at || l.device_at - l.rank_at > NEIGHBOURS)
		l.device_at = 0;
	/* An identity is believed only where all three accessors show the structure that has one. */
	if (version >= NAMED_SINCE && l.size_at == l.rank_at + 4 && l.device_at == l.rank_at + 8) {
		l.hash_at = l.rank_at - 8;
		l.has_magic = version >= MAGIC_SINCE;
		l.count_at = counter_of(elf, l.rank_at);
	}
	*ret = l;
}
