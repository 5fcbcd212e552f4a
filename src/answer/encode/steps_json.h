/* SPDX-License-Identifier: Apache-2.0 */
/* steps_json.h - the account of steps as JSON: the one encoding of commands, API and tools. */
#pragma once

#include "answer/steps.h"

#define STEPS_ENTRIES_FEW 6 /* an entry beyond these says little */

enum steps_detail {
	STEPS_FEW,    /* lines and the entries that matter */
	STEPS_FULL,   /* all entries, and the course of time */
	STEPS_STACKS, /* and the frames of each entry's stack */
};

/* steps_put_account - one of them, an object. */
void steps_put_account(
	struct json_writer *w, const struct steps_row *row, enum steps_detail detail);

/* steps_put - the members "accounts" (no more than @limit), "truncated" and, where there is none,
 * "reason" of an open object. */
void steps_put(struct json_writer *w, const struct steps_answer *a, size_t limit,
	enum steps_detail detail);
