/* SPDX-License-Identifier: Apache-2.0 */
/* prologue.h - where in a function's first bytes a probe costs least and is still right.
 *
 * The kernel emulates a few instructions under a probe (push, nop, jumps); any other it runs out of
 * line by single steps, which costs several microseconds in a virtual machine. Some functions begin
 * with one that changes neither stack nor arguments and is followed by one that is emulated: there
 * the probe may sit behind it. Only exact matches of bytes are moved; everything else stays at the
 * start, because a return probe behind the first change of the stack overwrites a wrong slot. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define PROLOGUE_BYTES 16 /* as many first bytes are looked at */

/* prologue_skip - bytes to move the probe by: 0, or the length of the harmless first instruction.
 */
unsigned prologue_skip(unsigned machine, const uint8_t code[PROLOGUE_BYTES]);
