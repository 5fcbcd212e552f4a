/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h - the state of the GPUs once a second, or as often as is said, from a child process that asks NVML (child.h).
 *
 * Nothing here blocks. A driver that does not answer for 3 s makes the state "unknown since …"; the
 * child is then ended and begun anew after 1 s, 2 s, … up to 60 s. A machine without NVML is
 * "absent" with the reason, which is no error. There is never more than one child: one that cannot
 * be ended (a call stuck in the kernel) is waited for. */
#pragma once

#include "base/clock.h"
#include "model/sample.h"

enum gpu_state {
	GPU_STARTING, /* no answer yet, and none is overdue */
	GPU_ABSENT,   /* no NVML, no driver or no GPU */
	GPU_KNOWN,
	GPU_NO_ANSWER, /* unknown since a time */
};

struct gpu_identity {
	char model[GPU_NAME_LEN]; /* of the first GPU */
	char driver[64], cuda[32];
	unsigned count;
};

struct gpu_row {
	struct gpu_sample sample;
	char error[64]; /* "" or what sample.nvml_error means */
};

struct gpu_sampler;
typedef void gpu_sampler_sink(void *arg, const struct gpu_sample *s);

/* gpu_sampler_library - $INGERO_NVML_LIB; NULL: not set. */
const char *gpu_sampler_library(void);

/* gpu_sampler_start - begin sampling. @path: this library and no other; NULL: $INGERO_NVML_LIB,
 * else where drivers put it. @period_ns: between two readings. *ret is the caller's, released with gpu_sampler_free(). Fails only for
 * want of memory: everything else is a state. */
#define GPU_SAMPLER_PERIOD_NS NS_PER_S
int gpu_sampler_start(struct gpu_sampler **ret, const char *path, uint64_t period_ns);

/* gpu_sampler_poll - hand on what has come and look after the child. To be called often. */
void gpu_sampler_poll(struct gpu_sampler *s, gpu_sampler_sink *sink, void *arg);

/* gpu_sampler_state - and its sentence, cut to @size: "8 GPUs", "absent: there is no …", "unknown
 * since 12:01:33 (NVML does not respond)". */
enum gpu_state gpu_sampler_state(const struct gpu_sampler *s, char *text, size_t size);
const char *gpu_state_name(enum gpu_state state);

/* gpu_sampler_rows - the newest reading of each GPU; the sampler's, valid until its next call. */
const struct gpu_row *gpu_sampler_rows(const struct gpu_sampler *s, size_t *ret_count);

/* gpu_sampler_identity - NULL until the first GPU has been read. */
const struct gpu_identity *gpu_sampler_identity(const struct gpu_sampler *s);

/* gpu_sampler_stop - end the child, within half a second; the state and rows stay. */
void gpu_sampler_stop(struct gpu_sampler *s);
void gpu_sampler_free(struct gpu_sampler *s);

/* gpu_sampler_backoff_ns - how long to wait after the @failures-th failure in a row (from 1). */
uint64_t gpu_sampler_backoff_ns(unsigned failures);

/* gpu_sampler_patience_ns - how long a child may take to send its first record, after @slow_starts
 * in a row that were ended for it: a driver without persistence mode initialises each GPU anew,
 * seconds apiece. */
uint64_t gpu_sampler_patience_ns(unsigned slow_starts);
