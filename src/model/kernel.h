/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - a kernel that a process launched, by the function or handle that launches name; and
 * texts that are stored once. */
#pragma once

#include <stddef.h>

#include "base/clock.h"

#define KERNEL_NAME_MAX 2048
#define RANGE_NAME_MAX  128

/* X(NAME, name, what): where the name comes from; the name is stored. */
#define KERNEL_ORIGINS(X)                                                                          \
	X(UNKNOWN, "unknown", "unknown")                                                           \
	X(REGISTERED, "registered", "the program registered the kernel")                           \
	X(HANDLE, "handle", "the driver was asked for the kernel by name")                         \
	X(SYMBOL, "symbol", "the function that launches it is called so in its file")

enum kernel_origin {
#define X(NAME, ...) KERNEL_##NAME,
	KERNEL_ORIGINS(X)
#undef X
};

struct kernel_row {
	uint32_t pid;
	uint64_t function; /* arg0 of launches */
	wall_time
		since; /* 0: as long as the process is known; else the handle was another's before */
	wall_time first;   /* it came within some seconds before; 0: not known */
	uint64_t launches; /* about so many more */
	enum kernel_origin origin;
	bool is_cut; /* the name is longer */
	char name
		[KERNEL_NAME_MAX]; /* as the program has it, mangled; unknown: where the function is */
};

struct text_row { /* what events refer to by a hash */
	uint64_t hash;
	char text[RANGE_NAME_MAX];
};

struct kernel_use { /* a kernel of a recording, and how often it was launched in all of it */
	uint32_t pid;
	uint64_t function;
	wall_time since, first; /* as above */
	uint64_t launches;
	const char *name; /* for people; NULL: nobody told it */
};

/* kernel_use_find - what @function of @pid was at @ns; @rows are in order of pid, function and since.
 * NULL: it is not among them. */
const struct kernel_use *kernel_use_find(
	const struct kernel_use *rows, size_t count, uint32_t pid, uint64_t function, int64_t ns);
