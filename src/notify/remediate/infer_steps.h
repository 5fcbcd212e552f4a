/* SPDX-License-Identifier: Apache-2.0 */
/* infer_steps.h - steps of inference and those that took much longer than is usual. Pure.
 *
 * A step is the time between the ends of two waits for the GPU on the same stream of a process, up to a
 * minute. Its baseline is that stream's own: a moving average (a twentieth of the newest) and the p95 of the
 * last INFER_WINDOW steps. After the warm-up a step beyond 1.5, 2 or ratio times that p95 is an outlier, and
 * no part of the baseline. Nothing is learned, and nothing found, while an incident of the process that
 * explains it lasts (infer_pause()). */
#pragma once

#include "base/idmap.h"
#include "model/event.h"

#define INFER_STREAMS 1024 /* that are followed; the one longest without a step goes */
#define INFER_WINDOW  128

struct infer_settings {
	unsigned warmup; /* steps, at least 1 */
	double ratio;    /* of the largest bucket, over 2 */
};

enum infer_bucket { INFER_ORDINARY, INFER_1_5X, INFER_2X, INFER_RATIO };

struct infer_stream {
	uint32_t pid;
	uint64_t stream, cgroup_id;
	struct placement place;
	int64_t last_ns; /* end of the last wait */
	uint64_t count;  /* steps that were learned */
	double mean_ns;
	uint64_t window[INFER_WINDOW]; /* the newest, by turns */
	uint64_t p95_ns;
};

struct infer_steps {
	struct infer_settings settings;
	struct idmap streams;    /* hash of pid and stream -> struct infer_stream */
	struct idmap paused;     /* pid -> struct infer_pause */
	uint64_t outliers[4];    /* by enum infer_bucket */
	uint64_t steps, ignored; /* seen; longer than a minute, or while paused */
};

void infer_init(struct infer_steps *s, const struct infer_settings *settings);
void infer_done(struct infer_steps *s);

struct infer_outlier {
	const struct infer_stream *of;
	enum infer_bucket bucket;
	uint64_t step_ns;
	wall_time end;
};

/* infer_take - a call, or the end of a process. True: it ended a step that is an outlier, *ret. */
bool infer_take(struct infer_steps *s, const struct event *e, struct infer_outlier *ret);

/* infer_pause - nothing is learned of @pid until @until. */
void infer_pause(struct infer_steps *s, uint32_t pid, wall_time until);

/* infer_bucket_name - "1.5x", "2x", "3x": of the last, the ratio as it was set. */
#define INFER_NAME_MAX 24
const char *infer_bucket_name(
	const struct infer_steps *s, enum infer_bucket b, char out[INFER_NAME_MAX]);
