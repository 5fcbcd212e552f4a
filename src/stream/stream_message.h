/* SPDX-License-Identifier: Apache-2.0 */
/* stream_message.h - the messages of the remediation stream, one JSON object a line. Pure.
 *
 * Keys and types are published: those marked optional are left out where they are not known, all
 * others are always there. rank and world_size are known from 0 on: -1 and 0 say that they are not.
 * Every line also has "contract_version"; who reads ignores types and keys that he does not know. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"

#define STREAM_CONTRACT   1
#define STREAM_LINE_MAX   (64u << 10) /* bytes of a line with its newline: readers take no more */
#define STREAM_PREEMPTORS 64
#define STREAM_THROTTLES  16
#define STREAM_ALLOCS     16
#define STREAM_NOT_A_RANK (-1)

/* X(NAME, id) */
#define STREAM_TYPES(X)                                                                            \
	X(MEMORY, "memory")                                                                        \
	X(STRAGGLE, "straggle")                                                                    \
	X(STRAGGLER_STATE, "straggler_state")                                                      \
	X(STRAGGLER_RESOLVED, "straggler_resolved")                                                \
	X(INFERENCE_OUTLIER, "inference_outlier")                                                  \
	X(INFERENCE_SAMPLER_DEGRADED, "inference_sampler_degraded")

enum stream_type {
#define X(NAME, ...) STREAM_##NAME,
	STREAM_TYPES(X)
#undef X
		STREAM_TYPE_COUNT
};

const char *stream_type_id(enum stream_type t);

/* A GPU's memory is nearly used up. */
struct stream_memory {
	uint32_t pid, gpu_id;
	uint64_t allocated_bytes, total_vram, last_alloc_size;
	double utilization_pct;
	const char *comm; /* NULL: not known */
	uint64_t timestamp_ns;
};

/* A process launches less than it used to because others run on its CPUs. */
struct stream_straggle {
	uint32_t pid;
	double throughput_drop_pct;
	uint64_t sched_switch_count;
	uint32_t preempting_pids[STREAM_PREEMPTORS];
	size_t preempting_count;
	uint64_t timestamp_ns;
	bool sustained;
	const char *comm, *event_id; /* NULL: not known */
	int32_t rank;
	uint32_t world_size;
};

struct stream_node { /* what the other messages have in common */
	const char *node_id, *cluster_id;
	wall_time time;
	const char *event_id; /* the same from an episode's begin to its end; NULL: not known */
	int32_t rank;
	uint32_t world_size;
};

struct stream_straggler_state {
	struct stream_node node;
	double score, threshold;
	const char *detection_mode, *dominant_signal;
	/* What the cluster says of it, as in alerts; NULL and 0: not told. */
	const char *problem, *summary, *cause, *fix, *place;
	uint64_t lag_ns, period_steps, waiting_ranks, waited_ns;
};

struct stream_straggler_resolved {
	struct stream_node node;
};

struct stream_inference { /* of a stream of steps; NULL and 0: not known */
	uint32_t pid;
	const char *bucket;
	const char *cgroup_path_hash, *phase;
	uint64_t stream_handle;
};

struct stream_inference_outlier {
	struct stream_node node;
	struct stream_inference of;
	uint64_t step_duration_ns, baseline_p95_ns;
	uint64_t baseline_mean_ns; /* optional from here on: 0, or none */
	uint64_t memfrag_events_in_step;
	const char *throttle_reasons[STREAM_THROTTLES];
	size_t throttle_count;
	uint32_t min_sm_clock_mhz;
	uint64_t kv_cache_top_alloc_ages_ms[STREAM_ALLOCS];
	size_t alloc_count;
};

struct stream_inference_sampler_degraded {
	struct stream_node node;
	struct stream_inference of;
	const char *cause;
	wall_time cooldown_end;
};

struct stream_message {
	enum stream_type type;
	union {
		struct stream_memory memory;
		struct stream_straggle straggle;
		struct stream_straggler_state state;
		struct stream_straggler_resolved resolved;
		struct stream_inference_outlier outlier;
		struct stream_inference_sampler_degraded degraded;
	};
};

/* stream_message_line - appends the line with its newline. -EINVAL if a text that must be there is
 * not, or a number is not finite; -ENOBUFS, -ENOMEM. On failure @b holds what it held. */
int stream_message_line(struct buf *b, const struct stream_message *m);
