/* SPDX-License-Identifier: Apache-2.0 */
/* metric_state.h - what metrics tell that nobody else in the agent keeps: waits of collectives, the last
 * collective of each kind, edges of throttling, open incidents, processes with NCCL.
 *
 * Filled by the tracer as things happen, on its thread; read when a reading of metrics is made.
 * Nothing here grows beyond its ceiling: what does not fit is counted in `cut`. Pure. */
#pragma once

#include "diagnose/live/incident_tracker.h"
#include "diagnose/live/step_counter.h"
#include "base/macros.h"
#include "model/collective.h"
#include "model/sample.h"
#include "model/problem.h"
#include "model/identity.h"
#include "stat/sketch.h"

#define METRIC_STATE_COLLECTIVES 256
#define METRIC_STATE_GPUS        64
#define METRIC_STATE_NCCL        256

/* X(NAME, bits of gpu_throttles): what may hold the clocks down, in the published groups. */
#define METRIC_STATE_THROTTLES(X)                                                                  \
	X(POWER, 4 | 128)                                                                          \
	X(THERMAL, 32 | 64)                                                                        \
	X(SW, 4 | 32)                                                                              \
	X(HW, 8 | 64 | 128)

enum metric_state_throttle {
#define X(NAME, bits) THROTTLE_##NAME,
	METRIC_STATE_THROTTLES(X)
#undef X
		THROTTLE_COUNT
};

struct metric_state_collective { /* the last of its communicator, rank, op, type and peer */
	uint32_t pid;
	uint16_t op;
	uint64_t dur_ns;
	struct collective c;
};

struct metric_state_gpu {
	char uuid[GPU_UUID_LEN];
	uint64_t throttle; /* the last reading's reasons */
	uint64_t edges[THROTTLE_COUNT];
};

struct metric_state_nccl { /* a process that has libnccl mapped */
	uint32_t pid;
	char comm[COMM_LEN];
	char path[TARGET_PATH_MAX];
};

struct metric_state_case {
	char id[sizeof(((struct incident *)0)->id)];
	uint8_t problem;
	enum severity severity;
};

struct metric_state {
	struct sketch *waits[WIRE_OP_MAX]; /* of collectives by op; NULL: none yet */
	double bus_bandwidth[WIRE_OP_MAX]; /* bytes/s, of the latest; 0: not known */
	struct metric_state_collective collectives[METRIC_STATE_COLLECTIVES];
	size_t collective_count;
	struct metric_state_gpu gpus[METRIC_STATE_GPUS];
	size_t gpu_count;
	struct metric_state_nccl nccl[METRIC_STATE_NCCL];
	size_t nccl_count; /* all of them; the first METRIC_STATE_NCCL are listed */
	bool has_nccl;     /* processes have been looked at */
	struct metric_state_case cases[INCIDENT_TRACKER_MAX]; /* open ones */
	size_t case_count;
	uint64_t found[PROBLEM_COUNT][SEVERITY_COUNT];
	uint32_t open[PROBLEM_COUNT][SEVERITY_COUNT];
	struct step_counter steps; /* as the explainer last said */
	uint64_t cut;
};

extern const uint64_t metric_state_throttle_bits[THROTTLE_COUNT];

struct metric_state *metric_state_new(void); /* NULL: no memory */
DECLARE_FREE(struct metric_state, metric_state_free)

/* metric_state_collective - @c with its wait, or -1 there if none was seen. */
void metric_state_collective(
	struct metric_state *f, const struct event *e, const struct collective *c);
void metric_state_gpu(struct metric_state *f, const struct gpu_sample *s);
void metric_state_incident(
	struct metric_state *f, const struct incident *i, enum incident_change change);

/* Processes with NCCL, anew at each look at all processes. */
void metric_state_nccl_begin(struct metric_state *f);
void metric_state_nccl_process(struct metric_state *f, const struct target_process *p);

/* metric_state_process_gone - the series of @pid end. */
void metric_state_process_gone(struct metric_state *f, uint32_t pid);

/* metric_state_nccl_version - the version in a library's file name: "2.21.5"; "" if it has none. */
const char *metric_state_nccl_version(const char *path);
