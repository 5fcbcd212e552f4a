/* SPDX-License-Identifier: Apache-2.0 */
/* program_sum.h - sums by program, over all processes of that name: "48 × xz", not one of them. */
#pragma once

#include "diagnose/chains/chain.h"

#define PROGRAMS_MAX     64
#define PROGRAM_PIDS_MAX 256 /* further ones are not told apart */

struct program {
	char name[PROCESS_WORDS_MAX];
	uint32_t pids[PROGRAM_PIDS_MAX];
	uint32_t pid_count;
	uint32_t first_pid;                /* of the process with the first row */
	uint64_t ns[2], bytes[2], work[2]; /* of two sides, as the caller names them */
};

struct program_sums {
	struct program items[PROGRAMS_MAX];
	int count;
};

/* program_get - the sums of the program that @pid runs; NULL: there are too many programs. */
struct program *program_get(
	const struct recording *rec, struct program_sums *s, uint32_t pid, const char *comm);

/* program_name - fills @ret's who, count and pid from @p. */
void program_name(const struct program *p, struct resource_use *ret);
