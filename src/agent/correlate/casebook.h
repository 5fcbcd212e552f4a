/* SPDX-License-Identifier: Apache-2.0 */
/* casebook.h - incidents over time: what one look at the last minutes found is, as a rule, what the
 * look before found too, grown. Pure: the caller brings the time.
 *
 * Life of a case: found (new); found again with later calls (grown); quiet for CASEBOOK_QUIET_NS in
 * CASEBOOK_LOOKS looks in a row, or not found in as many (resolved). Its id, its beginning and its
 * worst figures stay; nothing is ever taken back. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/incident.h"

#define CASEBOOK_MAX      128                        /* 1 MB; beyond, the longest resolved goes */
#define CASEBOOK_QUIET_NS ((int64_t)(30 * NS_PER_S)) /* the pause that ends a stretch: detect.c */
#define CASEBOOK_LOOKS    2

enum case_change { CASE_NEW, CASE_GROWN, CASE_RESOLVED };

struct case_entry {
	struct incident incident; /* .resolved is set once it is over */
	wall_time detected;
	unsigned quiet_looks;
	bool was_found; /* by the present look */
};

struct casebook {
	struct case_entry *entries; /* in the order in which they were found */
	size_t count, room;
	uint64_t left_out; /* new ones for which there was no room */
};

typedef void casebook_sink(
	void *arg, const struct incident *i, wall_time detected, enum case_change change);

/* casebook_look - enters what one look found. Unexplained slowness (LOW) opens no case. Resolved
 * cases are forgotten when they ended before @forget_before. 0 or -ENOMEM. */
int casebook_look(struct casebook *b, const struct incident *found, size_t count, wall_time now,
	wall_time forget_before, casebook_sink *sink, void *arg);
void casebook_done(struct casebook *b);

const char *case_change_name(enum case_change c); /* "new" */
