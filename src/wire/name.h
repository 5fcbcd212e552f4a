/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* name.h - texts that the kernel half reads in a process and sends once: names of kernels and of NVTX
 * ranges. Freestanding, like record.h.
 *
 * They have a ring of their own and are not in the books: a name is no event. One that is lost is
 * counted by itself, and what it belongs to is then shown without it. */
#pragma once

#include "wire/record.h"

#define NAME_SHORT 192  /* bytes of the usual record's text */
#define NAME_LONG  2048 /* of the one for names that do not fit; longer ones are cut */
#define NAME_RANGE 128  /* of a range's name, its end included */

/* Launches whose function is counted: one in NAME_SAMPLED on average. The gap to the next is drawn
 * evenly from 1 to NAME_GAP, so that no rhythm of the program can hide a kernel; its mean is
 * NAME_SAMPLED_X2 / 2. */
#define NAME_GAP        32
#define NAME_SAMPLED_X2 (NAME_GAP + 1)

enum wire_name_kind {
	NAME_OF_FUNCTION = 1, /* key: the function that launches name; the text is its name */
	NAME_ALIAS,           /* key: another handle of the function @other */
	NAME_TEXT,            /* key: the hash by which events refer to the text */
};

struct wire_name {
	struct wire_header h; /* of pid, tid, start_ns and the source */
	__u64 key;
	__u64 other;
	__u32 kind; /* enum wire_name_kind */
	__u32 is_cut;
	char text[]; /* NAME_SHORT or NAME_LONG bytes, ended by a NUL; NAME_ALIAS: none */
};

/* A launched function of a process: the key of the kernel half's counts. */
struct wire_function {
	__u64 function;
	__u32 pid;
	__u32 pad;
};

_Static_assert(sizeof(struct wire_name) == 88, "wire_name");
_Static_assert(sizeof(struct wire_function) == 16, "wire_function");
