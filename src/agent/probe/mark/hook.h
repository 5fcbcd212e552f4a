/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hook.h - what a place is at which the program mark_hit runs: its attach cookie. Freestanding, for
 * both halves. */
#pragma once

enum mark_hook {
	HOOK_NONE,
	HOOK_NAMED, /* a range of PyTorch's profiler begins; its name says what */
	HOOK_BACKWARD,
	HOOK_COLLECT_BEGIN,
	HOOK_COLLECT_END,
};
