// SPDX-License-Identifier: Apache-2.0
/* call_site.c - see call_site.h. */
#include "record/symbol/call_site.h"

#include <elf.h>
#include <string.h>

/* BL; BLR and the forms of it that authenticate the address (BLRAA, BLRAB, BLRAAZ, BLRABZ). */
static bool is_call_arm64(uint32_t word)
{
	return (word & 0xfc000000) == 0x94000000 || (word & 0xfefff000) == 0xd63f0000;
}

/* call rel32, five bytes; call through a register or memory, two at least. Prefixes do not matter:
 * the bytes behind them are looked at too. */
static bool is_call_x86(const uint8_t *code, uint64_t size)
{
	return (code[0] == 0xe8 && size >= 5) ||
	       (code[0] == 0xff && size >= 2 && (code[1] >> 3 & 7) == 2);
}

bool call_site_possible(unsigned machine, const uint8_t *code, uint64_t vaddr, uint64_t size)
{
	uint64_t at = 0;

	if (size > CALL_SITE_SCAN_MAX)
		return true;
	if (machine == EM_X86_64) {
		for (; at < size; at++)
			if (is_call_x86(code + at, size - at))
				return true;
		return false;
	}
	for (at = -vaddr & 3; at + 4 <= size; at += 4) {
		uint32_t word;

		memcpy(&word, code + at, sizeof(word));
		if (is_call_arm64(word))
			return true;
	}
	return false;
}
