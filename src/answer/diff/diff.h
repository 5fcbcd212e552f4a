/* SPDX-License-Identifier: Apache-2.0 */
/* diff.h - what is different between two times: of one recording, or of two. The first is called A, the second
 * B; differences are B - A.
 *
 * A difference counts if it is more than noise (stat/compare.h) and more than DIFF_SHARE of A's value: runs of
 * one program are never quite the same. Of an operation, the mean durations of calls and the calls a second of
 * each bucket are compared (5 s, or minutes), of steps the bars of the account, of GPUs the readings. */
#pragma once

#include "answer/answer.h"
#include "answer/incidents.h"
#include "answer/ops.h"
#include "answer/steps.h"
#include "model/stack.h"
#include "model/step_account.h"
#include "stat/compare.h"

#define DIFF_SHARE   0.05
#define DIFF_STACKS  10
#define DIFF_JOBS    64
#define DIFF_PLACE   256
#define DIFF_SUMMARY 1024

struct diff_time { /* what one side is about */
	int64_t from_ns, to_ns;
	uint64_t calls, rows; /* that were counted, and of them stored */
};

struct diff_op {
	uint8_t source;
	uint16_t op;
	bool nested;
	struct op_stat of[2];            /* calls is 0 where there are none */
	double calls_s[2], ns_s[2];      /* a second */
	double lost_ns_s;                /* B's ns_s - A's */
	enum compare_verdict dur, calls; /* of a call; of calls a second */
};

struct diff_line {
	enum account_line line; /* ACCOUNT_LINES: the whole step */
	double ns[2];           /* of a step */
	enum compare_verdict verdict;
	char place[DIFF_PLACE]; /* where most of the difference is; "" if not known */
};

struct diff_job { /* the steps of a process and those of its counterpart */
	uint32_t pid[2];
	int64_t rank; /* -1: none */
	char comm[COMM_LEN];
	uint32_t steps[2], slow_steps[2];
	struct diff_line step;
	struct diff_line lines[ACCOUNT_LINES]; /* largest difference first */
	int line_count;
};

struct diff_stack {
	uint8_t source;
	uint16_t op;
	double ns_s[2];
	bool moved;                /* found by its functions: the lines differ */
	const struct stack *stack; /* B's if it has it; valid as long as the answer */
	char place[DIFF_PLACE];    /* the program's own line; without one the library's */
};

/* X(column, title, unit, divisor) */
#define DIFF_GAUGES(X)                                                                             \
	X("sm_clock_mhz", "SM clock", "MHz", 1)                                                    \
	X("power_mw", "power", "W", 1000)                                                          \
	X("util_gpu_pct", "utilization", "%", 1)                                                   \
	X("mem_used_bytes", "memory used", "GiB", 1073741824)                                      \
	X("temperature_c", "temperature", "°C", 1)

struct diff_gauge {
	int64_t gpu;
	const char *column, *title, *unit;
	double mean[2]; /* in the unit */
	enum compare_verdict verdict;
};

#define DIFF_FACT_MAX 128
struct diff_fact { /* about the recordings themselves */
	const char *name;
	char of[2][DIFF_FACT_MAX]; /* "": not known */
};

/* X(NAME, id, what is said of it) */
#define DIFF_OUTCOMES(X)                                                                           \
	X(KEPT, "kept", "as predicted")                                                            \
	X(MORE, "more", "more than predicted")                                                     \
	X(PART, "part", "less than predicted")                                                     \
	X(NOTHING, "nothing", "no gain")

enum diff_outcome {
#define X(NAME, ...) DIFF_##NAME,
	DIFF_OUTCOMES(X)
#undef X
};

struct diff_promise {     /* an incident of A, and what became of it; means of a step */
	char what[256];   /* its summary */
	uint32_t pid;     /* in A */
	double before_ns; /* A's */
	double promised_ns, least_ns, most_ns;
	double given_ns; /* B's */
	enum diff_outcome outcome;
};
#define DIFF_PROMISES 8

struct diff_side;

struct diff_answer {
	char summary[DIFF_SUMMARY]; /* one sentence */
	bool different;             /* something is, beyond noise */
	struct diff_time time[2];
	struct diff_op *ops; /* GPU calls first, of them the largest difference a second */
	size_t op_count;
	struct diff_job *jobs; /* longest time in A's steps first */
	size_t job_count;
	struct diff_stack stacks[DIFF_STACKS]; /* largest growth first */
	size_t stack_count;
	struct diff_gauge *gauges;
	size_t gauge_count;
	struct diff_fact *facts;
	size_t fact_count;
	struct diff_promise promises[DIFF_PROMISES]; /* the worst incident first */
	size_t promise_count;
	bool truncated;          /* there was more than is looked at */
	struct diff_side *sides; /* what the rest points into */
};

/* answer_diff - @a and @b may be questions to one file. -ESRCH with a sentence if there is nothing in one of the times.
 * diff_answer_done() releases it. */
int answer_diff(const struct question *a, const struct question *b, struct diff_answer *ret,
	struct errinfo *reterr);
void diff_answer_done(struct diff_answer *a);

/* One of the two times that are compared: all that is needed of its recording, so that the
 * comparison itself (diff.c) reads no file. */

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
	uint64_t lines; /* of the operation and the Python frames alone; 0: it has none */
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
/* diff_stack_lines - of its Python lines alone; 0: there are none. */
uint64_t diff_stack_lines(const struct stack *s, unsigned source, unsigned op);

/* diff_stacks_join - puts stacks in order, rows with one key become one. */
void diff_stacks_join(struct diff_side *s);

/* ---- the comparison ---- */

/* diff_compare - @ret points into @sides, which stay the caller's. */
int diff_compare(const struct diff_side sides[2], struct diff_answer *ret);

int diff_compare_steps(const struct diff_side sides[2], struct diff_answer *ret);
int diff_compare_stacks(const struct diff_side sides[2], struct diff_answer *ret);

/* diff_compare_promises - after the steps are compared. */
void diff_compare_promises(const struct diff_side sides[2], struct diff_answer *ret);
