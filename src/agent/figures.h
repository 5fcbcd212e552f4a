/* SPDX-License-Identifier: Apache-2.0 */
/* figures.h - what metrics tell that nobody else in the agent keeps: waits of collectives, the last
 * collective of each kind, edges of throttling, open incidents, processes with NCCL.
 *
 * Filled by the tracer as things happen, on its thread; read when a reading of metrics is made.
 * Nothing here grows beyond its ceiling: what does not fit is counted in `cut`. Pure. */
#pragma once

#include "agent/correlate/casebook.h"
#include "base/macros.h"
#include "model/collective.h"
#include "model/gpu_sample.h"
#include "model/problem.h"
#include "model/target.h"
#include "stat/sketch.h"

#define FIGURES_COLLECTIVES 256
#define FIGURES_GPUS        64
#define FIGURES_NCCL        256

/* X(NAME, name, bits of gpu_throttles): what may hold the clocks down, in the published groups. */
#define FIGURES_THROTTLES(X)                                                                       \
	X(POWER, "power", 4 | 128)                                                                 \
	X(THERMAL, "thermal", 32 | 64)                                                             \
	X(SW, "sw", 4 | 32)                                                                        \
	X(HW, "hw", 8 | 64 | 128)

enum figures_throttle {
#define X(NAME, ...) THROTTLE_##NAME,
	FIGURES_THROTTLES(X)
#undef X
		THROTTLE_COUNT
};

struct figures_collective { /* the last of its communicator, rank, op, type and peer */
	uint32_t pid;
	uint16_t op;
	uint64_t dur_ns;
	struct collective c;
};

struct figures_gpu {
	char uuid[GPU_UUID_LEN];
	uint64_t throttle; /* the last reading's reasons */
	uint64_t edges[THROTTLE_COUNT];
};

struct figures_nccl { /* a process that has libnccl mapped */
	uint32_t pid;
	char comm[COMM_LEN];
	char path[TARGET_PATH_MAX];
};

struct figures_case {
	char id[sizeof(((struct incident *)0)->id)];
	uint8_t problem;
	enum severity severity;
};

struct figures {
	struct sketch *waits[WIRE_OP_MAX]; /* of collectives by op; NULL: none yet */
	struct figures_collective collectives[FIGURES_COLLECTIVES];
	size_t collective_count;
	struct figures_gpu gpus[FIGURES_GPUS];
	size_t gpu_count;
	struct figures_nccl nccl[FIGURES_NCCL];
	size_t nccl_count; /* all of them; the first FIGURES_NCCL are listed */
	bool has_nccl;     /* processes have been looked at */
	struct figures_case cases[CASEBOOK_MAX]; /* open ones */
	size_t case_count;
	uint64_t found[PROBLEM_COUNT][SEVERITY_COUNT];
	uint32_t open[PROBLEM_COUNT][SEVERITY_COUNT];
	uint64_t cut;
};

extern const char *const figures_throttle_names[THROTTLE_COUNT];
extern const uint64_t figures_throttle_bits[THROTTLE_COUNT];

struct figures *figures_new(void); /* NULL: no memory */
void figures_free(struct figures *f);
DEFINE_CLEANUP(struct figures *, figures_free)

/* figures_collective - @c with its wait, or -1 there if none was seen. */
void figures_collective(struct figures *f, const struct event *e, const struct collective *c);
void figures_gpu(struct figures *f, const struct gpu_sample *s);
void figures_incident(struct figures *f, const struct incident *i, enum case_change change);

/* Processes with NCCL, anew at each look at all processes. */
void figures_nccl_begin(struct figures *f);
void figures_nccl_process(struct figures *f, const struct target_process *p);

/* figures_process_gone - the series of @pid end. */
void figures_process_gone(struct figures *f, uint32_t pid);

/* figures_nccl_version - the version in a library's file name: "2.21.5"; "" if it has none. */
const char *figures_nccl_version(const char *path);
