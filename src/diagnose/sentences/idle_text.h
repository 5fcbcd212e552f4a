/* SPDX-License-Identifier: Apache-2.0 */
/* idle_text.h - the pauses of one process that were spent on the same thing, and how they are told. */
#pragma once

#include "diagnose/compose/detector.h"
#include "diagnose/calls/gap.h"
#include "diagnose/units/period.h"

struct idle_row {         /* how a kind of pause is told */
	const char *what; /* ends "…, 85 % of the time: " */
	const char *root_cause;
	const char *layer;
	double seen; /* how much of it is recorded fact */
};

extern const struct idle_row idle_rows[IDLE_COUNT];

struct idle_group { /* the pauses of one process and kind */
	const struct detector_input *s;
	const struct gap_list *gaps;
	const struct step_list *steps; /* NULL: not known */
	size_t *members;               /* indices of gaps */
	size_t count;
	enum idle idle;
	uint32_t pid;
	uint64_t excess_ns, span_ns, bytes;
	uint64_t typical_ns; /* median length */
	double share;        /* of the observed time */
	struct periodicity period;
	bool is_periodic;
	bool is_even; /* the pauses have about the same length */
};

/* idle_share - the part of @inc's excess that causes of kind @idle have. */
double idle_share(const struct incident *inc, enum idle idle);

/* idle_describe - summary, root_cause and explanation; the figures and causes of @inc must be set. 0 or
 * -ENOMEM. */
int idle_describe(const struct idle_group *g, struct incident *inc);
