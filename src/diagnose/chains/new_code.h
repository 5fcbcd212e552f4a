/* SPDX-License-Identifier: Apache-2.0 */
/* new_code.h - which function of a program began to run when something else began. */
#pragma once

#include "diagnose/recording.h"

struct new_code {
	const struct stack_frame *frame; /* of the recording's stacks; NULL: none */
	uint64_t rows;                   /* whose stacks show it */
};

/* new_code_find - the function of the program's own files that stacks of @pid show since @since_ns
 * and never before. None, if several are as new as each other, or if the process was seen less before
 * than since. 0 or -ENOMEM. */
int new_code_find(
	const struct recording *rec, uint32_t pid, int64_t since_ns, struct new_code *ret);
