/* SPDX-License-Identifier: Apache-2.0 */
/* accessor.c - looks for a 32-bit load from [register + offset] whose value is stored, within a few
 * instructions, to [another register].
 *
 * x86-64:  8B /r mod 10      mov  r32, [r64 + disp32]      then  89 /r mod 00   mov [r64], r32
 * arm64:   add xN, xM, #imm, lsl 12 (for offsets past 16 KiB)
 *          ldr wT, [xN, #imm]                              then  str wT, [xK]
 *
 * Offsets below MIN_OFFSET are not taken: they are saved registers and small structures of the
 * logging around the access. The code is a stranger's: nothing is executed, only matched. */
#include "agent/attach/accessor.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define MIN_OFFSET 64
#define MAX_OFFSET (64 << 20)
#define X86_WINDOW 16 /* bytes between load and store */
#define ARM_WINDOW 4  /* instructions likewise */

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

/* A REX prefix in front of an instruction says which half of the registers is meant. */
static unsigned rex_before(const uint8_t *code, size_t at, unsigned bit)
{
	return at && (code[at - 1] & 0xf0) == 0x40 ? (code[at - 1] >> bit & 1) << 3 : 0;
}

static bool x86_stores(const uint8_t *code, size_t from, size_t to, unsigned reg)
{
	for (size_t i = from; i + 1 < to; i++)
		if (code[i] == 0x89 && code[i + 1] >> 6 == 0 && (code[i + 1] & 7) != 4 &&
			(code[i + 1] & 7) != 5 &&
			((code[i + 1] >> 3 & 7) | rex_before(code, i, 2)) == reg)
			return true;
	return false;
}

static void search_x86(struct search *s, const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 6 <= len; i++) {
		unsigned modrm = code[i + 1], reg;
		uint32_t disp;

		if (code[i] != 0x8b || modrm >> 6 != 2 || (modrm & 7) == 4)
			continue;
		if (i && (code[i - 1] & 0xf8) == 0x48)
			continue; /* REX.W: a 64-bit load */
		reg = (modrm >> 3 & 7) | rex_before(code, i, 2);
		memcpy(&disp, code + i + 2, sizeof(disp));
		if (x86_stores(
			    code, i + 6, i + 6 + X86_WINDOW < len ? i + 6 + X86_WINDOW : len, reg))
			found_at(s, disp);
	}
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

static void search_arm(struct search *s, const uint8_t *code, size_t len)
{
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
				found_at(s,
					arm_high_part(code, i, base) + ((load >> 10 & 0xfff) << 2));
		}
	}
}

int accessor_field(unsigned machine, const uint8_t *code, size_t len, uint32_t *ret)
{
	struct search s = {0};

	if (machine == EM_X86_64)
		search_x86(&s, code, len);
	else if (machine == EM_AARCH64)
		search_arm(&s, code, len);
	if (!s.found)
		return -ENOENT;
	*ret = s.offset;
	return 0;
}
