/* SPDX-License-Identifier: Apache-2.0 */
/* call_site.h - can a call instruction lie in these bytes of code?
 *
 * Exact on arm64, whose instructions are words. On x86-64 instructions are not told apart: any
 * byte that could begin a call counts, so the answer "no" is sure and "yes" is not. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Code longer than this is said to hold one without being read: such code nearly always does (of
 * libcublasLt's rows, 5 % fewer would be kept without this limit, and 3 % more with one of 64). */
#define CALL_SITE_SCAN_MAX 256

/* call_site_possible - of @machine (EM_X86_64 or EM_AARCH64), whole inside the @size bytes at
 * @code; @vaddr is their address. */
bool call_site_possible(unsigned machine, const uint8_t *code, uint64_t vaddr, uint64_t size);
