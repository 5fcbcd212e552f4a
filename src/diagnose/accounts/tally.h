/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - sums of time by line, owner, culprit and place. */
#pragma once

#include "base/idmap.h"
#include "diagnose/recording.h"
#include "model/step_account.h"

#define TALLY_PARTS_MAX 4096u /* beyond them, time goes to the line's part without a culprit */

struct tally_part {
	uint8_t line;  /* enum account_line */
	uint8_t owner; /* enum account_owner */
	uint32_t pid;
	char comm[COMM_LEN];
	uint32_t culprit_pid;
	char culprit[COMM_LEN];
	uint8_t making;  /* enum code_making (compiler.h); goes with the place */
	bool by_clock;   /* asleep until a time of its own choice; goes with the line */
	bool is_pause;   /* none of the work's time (account_read_stacks()); goes with the place */
	uint32_t blocks; /* lines on which it blocks there (place_blocks()); goes with the stack */
	uint64_t place;  /* place.h; 0: none */
	uint64_t stack_hash; /* a stack of that place, of the most time seen at once */
	uint64_t stack_ns;
	uint64_t
		wait_hash; /* of another's time: where the thread of the steps waited for it; 0: not known */
	uint64_t wait_ns;
	uint64_t ns;
};

struct tally {
	struct tally_part *parts;
	size_t count, room;
	struct idmap numbers; /* 1 + index in parts */
	uint64_t ns[ACCOUNT_LINES];
};

/* tally_add - adds @p->ns to the part with the same line, owner, process, culprit and place. 0 or
 * -ENOMEM. */
int tally_add(struct tally *t, const struct tally_part *p);

/* tally_merge - likewise, of a part that was summed before: @p->stack_ns and @p->wait_ns are the largest
 * pieces in it. */
int tally_merge(struct tally *t, const struct tally_part *p);

/* tally_find - the part of @t like @p; NULL: none. */
const struct tally_part *tally_find(const struct tally *t, const struct tally_part *p);

void tally_clear(struct tally *t); /* keeps the memory */
void tally_done(struct tally *t);
