/* SPDX-License-Identifier: Apache-2.0 */
/* prologue.c - the verified prologues, byte for byte.
 *
 *   x86-64  F3 0F 1E FA                   endbr64, then push: 5.4 us becomes 0.5 us
 *   x86-64  81 3D disp32 imm32            cmpl $imm, x(%rip) of the driver's entries, then je (74
 * or 0F 84): flags are set again by nobody before the je runs
 *
 * The je under the probe reads the flags of the cmpl in front of it: the kernel keeps them. On
 * arm64 no prologue has been verified, so nothing is moved. */
#include "record/attach/prologue.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

static bool is_push(const uint8_t *code)
{
	if ((code[0] & 0xf8) == 0x50)
		return true;
	return code[0] == 0x41 && (code[1] & 0xf8) == 0x50;
}

static bool is_je(const uint8_t *code)
{
	return code[0] == 0x74 || (code[0] == 0x0f && code[1] == 0x84);
}

unsigned prologue_skip(unsigned machine, const uint8_t code[PROLOGUE_BYTES])
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};

	if (machine != EM_X86_64)
		return 0;
	if (!memcmp(code, endbr64, sizeof(endbr64)) && is_push(code + 4))
		return 4;
	if (code[0] == 0x81 && code[1] == 0x3d && is_je(code + 10))
		return 10;
	return 0;
}
