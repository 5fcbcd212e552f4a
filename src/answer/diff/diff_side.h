/* SPDX-License-Identifier: Apache-2.0 */
/* diff_side.h - one of the two times that are compared: all that is needed of its recording, so that the
 * comparison itself (diff.c) reads no file. */
#pragma once

#include "answer/diff/diff.h"
#include "answer/gpus.h"
#include "answer/incidents.h"
#include "answer/ops.h"
#include "answer/steps.h"

struct diff_calls { /* of one operation in one bucket */
	uint8_t source;
	uint16_t op;
	bool nested;
	int64_t bucket;
	double calls, ns, squares; /* sums of durations and of their squares */
};

struct diff_samples { /* of one operation */
	uint8_t source;
	uint16_t op;
	bool nested;
	struct compare_set calls; /* every call, of the histogram */
	double *dur;              /* mean duration of each bucket that has calls */
	double *per_s;            /* calls a second of each bucket that is mostly in the time */
	size_t dur_count, per_s_count;
	struct diff_calls *buckets; /* while they are added up */
	size_t bucket_count, capacity;
};

struct diff_account {
	const struct step_account *account;
	int64_t rank; /* -1: not known */
	char places[ACCOUNT_ENTRIES][DIFF_PLACE];
};

struct diff_stack_row {
	uint8_t source;
	uint16_t op;
	uint64_t key;   /* of the operation and all frames */
	uint64_t loose; /* the same without lines */
	double ns, rows;
	struct stack *stack;
};

struct diff_side {
	struct diff_time time;
	uint64_t ops_ns; /* the time that calls were counted in */
	struct ops_answer ops;
	struct diff_samples *samples;
	size_t sample_count;
	struct steps_answer steps;
	struct diff_account *accounts; /* in the order of steps.rows */
	struct diff_stack_row *stacks; /* by key, each once */
	size_t stack_count;
	struct gpus_answer gpus;
	struct diff_fact *facts; /* of[0] alone */
	size_t fact_count;
	struct incident *incidents; /* of A alone: what they promise */
	size_t incident_count;
	bool truncated;
};

int diff_side_load(const struct question *q, struct diff_side *ret, struct errinfo *reterr);
void diff_side_done(struct diff_side *s);

/* diff_side_explain - its incidents. */
int diff_side_explain(const struct question *q, struct diff_side *s, struct errinfo *reterr);

/* ---- parts of it, which tests try by themselves ---- */

/* diff_samples_add - those of one bucket come together. -ENOMEM. */
int diff_samples_add(struct diff_side *s, const struct diff_calls *c);

/* diff_samples_finish - after the last. Buckets of @width_ns, of which @span was seen. */
int diff_samples_finish(struct diff_side *s, int64_t width_ns, const struct nodedb_range *span);

/* diff_stack_key - of the texts of all frames; without lines if @loose. */
uint64_t diff_stack_key(const struct stack *s, unsigned source, unsigned op, bool loose);

/* diff_stacks_join - puts stacks in order, rows with one key become one. */
void diff_stacks_join(struct diff_side *s);

/* ---- the comparison ---- */

/* diff_compare - @ret points into @sides, which stay the caller's. */
int diff_compare(const struct diff_side sides[2], struct diff_answer *ret);

int diff_compare_steps(const struct diff_side sides[2], struct diff_answer *ret);
int diff_compare_stacks(const struct diff_side sides[2], struct diff_answer *ret);

/* diff_compare_promises - after the steps are compared. */
void diff_compare_promises(const struct diff_side sides[2], struct diff_answer *ret);
