/* SPDX-License-Identifier: Apache-2.0 */
/* chain_step.h - the timeline of a stored verdict, step by step. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chain_step { /* texts end where their length says */
	const char *layer, *detail;
	size_t layer_len, detail_len;
	bool has_us;
	uint64_t us; /* UINT64_MAX: more than that */
};

/* chain_step_next - reads one step from the lines of struct incident_row; returns what follows it,
 * NULL if there was none. */
const char *chain_step_next(const char *lines, struct chain_step *ret);
