/* SPDX-License-Identifier: Apache-2.0 */
/* health_baseline.h - what is ordinary for this node: two moving averages of each signal, one that
 * follows within some ten samples and one that remembers a thousand. Pure.
 *
 * Averages start at 0 and are read with that start taken out: s / (1 - (1 - alpha)^samples).
 * Throughput is kept in launches a second, the others as shares.
 *
 * Throughput is the sum of what each program does, and so is its average, since averaging is linear: a program's
 * part goes when the program does. Otherwise a neighbour that ends would leave a node that looks slow. */
#pragma once

#include "base/clock.h"
#include "base/errinfo.h"

/* How well a node is doing, as one number of 0 to 1 made from four. Pure.
 *
 * score = sum of weight x value, halved where the worst value is at most penalty_floor, whole where it
 * is at least degradation_zone, in between in proportion: one input that has collapsed must show,
 * however good the others are. */

/* The inputs, each 0 to 1 with 1 healthy. X(NAME, id, key in the baseline's file, weight) */
#define HEALTH_SIGNALS(X)                                                                          \
	X(THROUGHPUT, "throughput", "Throughput", 0.40)                                            \
	X(COMPUTE, "compute", "Compute", 0.25)                                                     \
	X(MEMORY, "memory", "Memory", 0.20)                                                        \
	X(CPU, "cpu", "CPU", 0.15)

enum health_signal {
#define X(NAME, ...) HEALTH_##NAME,
	HEALTH_SIGNALS(X)
#undef X
		HEALTH_SIGNAL_COUNT
};

const char *health_signal_id(enum health_signal s); /* "throughput" */

struct health_score_settings {
	double weight[HEALTH_SIGNAL_COUNT];     /* each over 0; sum 1 */
	double penalty_floor, degradation_zone; /* 0 <= floor < zone <= 1 */
};
extern const struct health_score_settings health_score_defaults;

/* health_score_check - -EINVAL with a sentence. */
int health_score_check(const struct health_score_settings *s, struct errinfo *reterr);

struct health_anomalies { /* values that were no numbers and count as 0; bits by enum health_signal */
	uint8_t nan, infinite;
};

/* health_score - values are cut to 0..1. @ret_anomalies may be NULL. */
double health_score(const struct health_score_settings *s, const double values[HEALTH_SIGNAL_COUNT],
	struct health_anomalies *ret_anomalies);

struct health_baseline_settings {
	double fast_alpha, floor_alpha; /* 0 < floor_alpha < fast_alpha < 1 */
	double warning_ratio;           /* 0 < x <= 1 */
	double floor_warmth_min;        /* 0 <= x < 1: signals below it are not warned about */
	uint32_t warmup;                /* samples before a warning */
};
extern const struct health_baseline_settings health_baseline_defaults;

/* health_baseline_check - -EINVAL with a sentence. */
int health_baseline_check(const struct health_baseline_settings *s, struct errinfo *reterr);

#define HEALTH_PROGRAMS_MAX 64 /* what further ones do is part of no program */

struct health_program { /* processes of one kind that are there, or were in the time of a reading */
	uint64_t id;
	double rate;  /* launches a second */
	bool is_over; /* none of them runs any more */
};

struct health_baseline {
	double fast[HEALTH_SIGNAL_COUNT], floor[HEALTH_SIGNAL_COUNT]; /* raw sums */
	uint64_t samples;
	struct health_part {
		uint64_t id;
		double fast, floor; /* of throughput's */
	} parts[HEALTH_PROGRAMS_MAX];
	uint32_t part_count;
};

/* Corrected for the start; 0 without samples. */
double health_baseline_fast(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal);
double health_baseline_floor(
	const struct health_baseline *b, const struct health_baseline_settings *s, int signal);

/* health_baseline_ratio - @raw against the fast average of @signal; 0 where that is 0. A sample is
 * judged against what was before it: add it afterwards. */
double health_baseline_ratio(const struct health_baseline *b,
	const struct health_baseline_settings *s, int signal, double raw);

void health_baseline_add(struct health_baseline *b, const struct health_baseline_settings *s,
	const double sample[HEALTH_SIGNAL_COUNT]);

/* health_baseline_keep - takes out the parts of programs that are not among @list. What an earlier run has left is
 * theirs, as their rates are. */
void health_baseline_keep(
	struct health_baseline *b, const struct health_program *list, size_t count);
/* health_baseline_add_programs - beside health_baseline_add(), whose throughput is the sum of their rates. */
void health_baseline_add_programs(struct health_baseline *b,
	const struct health_baseline_settings *s, const struct health_program *list, size_t count);

/* health_baseline_degraded - some signal has fallen below warning_ratio of its long average. */
bool health_baseline_degraded(
	const struct health_baseline *b, const struct health_baseline_settings *s);

/* The baseline in a file, so that a restart of the agent need not calibrate again.
 *
 * One JSON object: schema_version, saved_at (RFC 3339), sample_count, fast_alpha, floor_alpha,
 * fast_ema and hard_floor, each with Throughput, Compute, Memory and CPU. */
#define HEALTH_FILE_BYTES   (1u << 20)
#define HEALTH_FILE_AGE_NS  (600 * (int64_t)NS_PER_S) /* by default, older ones tell nothing */
#define HEALTH_FILE_DEFAULT "/var/lib/ingero/health-baseline.json"

/* X(NAME, id) */
#define HEALTH_LOADS(X)                                                                            \
	X(MISSING, "missing")                                                                      \
	X(FRESH, "fresh")           /* *ret is filled in */                                        \
	X(STALE, "stale")           /* too old, or saved in the future: deleted */                 \
	X(CORRUPT, "corrupt")       /* moved aside to NAME.corrupt-TIME */                         \
	X(UNREADABLE, "unreadable") /* left alone */                                               \
	X(NEWER, "newer_version")   /* left alone, for the version that wrote it */                \
	X(OTHER, "other_settings")  /* averages of another alpha: left alone */

enum health_load {
#define X(NAME, ...) HEALTH_LOAD_##NAME,
	HEALTH_LOADS(X)
#undef X
};
const char *health_load_id(enum health_load l);

/* health_file_load - one older than @age_ns is stale. */
enum health_load health_file_load(const char *path, const struct health_baseline_settings *s,
	int64_t age_ns, wall_time now, struct health_baseline *ret);

/* health_file_save - replaces the file, so that a reader sees the old one or the new; makes its folder.
 * Nothing is written before the baseline is warm: -EAGAIN. */
int health_file_save(const char *path, const struct health_baseline *b,
	const struct health_baseline_settings *s, wall_time now, struct errinfo *reterr);
