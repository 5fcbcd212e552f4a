/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - where the time of every unit of work of a process went, as data: what contrasts and chains
 * read instead of walking through the recording again.
 *
 * A unit is a step, or what stands for one (enum step_origin). Its parts add up to its length, to the
 * nanosecond. What parts have in common (line, owner, culprit, place, stacks) stands once, in the table of
 * keys; a part is a key and a time. */
#pragma once

#include "diagnose/accounts/compiler.h"
#include "diagnose/accounts/tally.h"
#include "diagnose/units/boundaries.h"
#include "base/idmap.h"

#define ACCOUNTS_MAX 64 /* processes */
/* Of one process. Beyond so many keys a part has only its line and owner, beyond so many parts a unit has
 * one a line. */
#define ACCOUNT_KEYS_MAX  (64u << 10) /* 7 MB */
#define ACCOUNT_PARTS_MAX (4u << 20)  /* 96 MB */

struct account_part {
	uint32_t key; /* in process_account.keys */
	/* The largest piece in one with the key's stack, and with its wait stack: which of several stacks of
	 * one place stands for it is decided by them. At most 4 s. */
	uint32_t stack_ns, wait_ns;
	uint64_t ns;
};

struct process_account {
	uint32_t pid, tid; /* tid: the thread whose units they are */
	char comm[COMM_LEN];
	enum step_origin origin;
	double confidence;       /* 0..1: that these are its units */
	bool is_derived;         /* made from calls and stays: the recording has no ledger */
	struct step_span *units; /* in order of time, one after the other */
	size_t unit_count;
	bool is_clocked;  /* a clock begins them: what one is late the next is shorter */
	size_t *part_end; /* by unit: its parts are those before this, from the last's on */
	struct account_part *parts; /* by unit */
	size_t part_count, part_room;
	struct tally_part *keys; /* their times are 0 */
	size_t key_count, key_room;
	struct idmap key_numbers; /* 1 + index in keys, while units are added */
};

struct account_set {
	struct process_account *items; /* by pid */
	size_t count;
	uint64_t overlapping, unfit; /* rows of the ledger that were left out, as in timeline.h */
};

/* account_make - the accounts of @rec's processes, released with account_set_done(), also after a failure.
 * A process that makes no calls, or of which too little is recorded, has none. Pure, as diagnose.h.
 * 0 or -ENOMEM. */
int account_make(const struct recording *rec, struct account_set *ret);
void account_set_done(struct account_set *s);
void process_account_done(struct process_account *a);

/* account_end_unit - the time of unit @unit, the one after the last that was ended, went where @t says: it
 * becomes parts. a->part_end has room for it. 0 or -ENOMEM. */
int account_end_unit(struct process_account *a, size_t unit, const struct tally *t);

/* account_read_stacks - what keys' stacks say: tells parts in which code is made from others of the same place,
 * which block there, and which are pauses: the program sleeps between units by a timetable of its own, until the
 * next is due or somebody asks for it. A sleep that is always as long is none: it costs each unit as much. 0 or -ENOMEM. */
int account_read_stacks(struct process_account *a, const struct stack_list *stacks);

/* account_pause_ns - the time of unit @unit that is a pause. */
uint64_t account_pause_ns(const struct process_account *a, size_t unit);

/* account_made_ns - adds the time of unit @unit to @ns, by how code is made in it. */
void account_made_ns(const struct process_account *a, size_t unit, uint64_t ns[MAKINGS]);

/* account_add - adds the parts of unit @unit to @out. 0 or -ENOMEM. */
int account_add(const struct process_account *a, size_t unit, struct tally *out);

/* account_lines - adds the time of unit @unit to @ns, by line; pauses are left out. */
void account_lines(const struct process_account *a, size_t unit, uint64_t ns[ACCOUNT_LINES]);
