/* SPDX-License-Identifier: Apache-2.0 */
/* simulation.h - agents of a cluster that does not exist: what they push and when it arrives, with
 * faults. Deterministic: the same settings give the same messages. Virtual time, no I/O.
 *
 * The calls of the ranks come from the caller (job.h makes them); agents send them every second, each at
 * its own time, or sooner if a rank was held up (push.h), and the health of their node every
 * push_ns. */
#pragma once

#include "base/macros.h"
#include "push/push.h"

enum simulation_fault_kind {   /* what goes wrong with a node, its agent or its network */
	SIMULATION_SLOW,       /* the node works at @value of its speed, and its signals say so */
	SIMULATION_SILENCE,    /* the agent sends nothing */
	SIMULATION_RESTART,    /* the agent begins anew at from_ns: another boot, calibrating */
	SIMULATION_DUPLICATES, /* a share @value of the messages arrives twice */
	SIMULATION_REORDER,    /* messages take up to @value seconds longer */
	SIMULATION_CLOCK_STEP, /* from from_ns on its clock is @value seconds ahead */
	SIMULATION_LYING,      /* the score is @value whatever is the case; NaN is a lie, too */
	SIMULATION_PARTITION,  /* what it sends arrives after to_ns */
	SIMULATION_GPU_CLOCK,  /* the clock of its GPUs is @value of what it should be */
	SIMULATION_LAUNCHES,   /* it launches @value times as many kernels */
};

struct simulation_fault {
	enum simulation_fault_kind kind;
	uint32_t node; /* UINT32_MAX: all */
	int64_t from_ns, to_ns;
	double value;
};

struct simulation_rank { /* a process and its calls, ascending by leave_ns; the caller's */
	uint32_t node;
	const struct push_call *calls;
	size_t count;
};

struct simulation_settings {
	uint64_t seed;
	const char *cluster;
	uint32_t nodes, gpus_per_node;
	const char *gpu_model, *provider;
	int64_t start_ns, end_ns;
	uint64_t push_ns;  /* of health; 0: none is sent */
	uint64_t batch_ns; /* of calls; 0: a second */
	uint64_t latency_ns;
	double sm_clock_hz;                    /* of healthy GPUs; 0: not told */
	double score;                          /* of a healthy node; 0: 0.94 */
	const struct simulation_fault *faults; /* the caller's */
	size_t fault_count;
	const struct simulation_rank *ranks; /* likewise, by node */
	size_t rank_count;
	const struct push_report *reports; /* what agents say about their ranks, at its sent_ns */
	size_t report_count;
};

struct simulation_message {
	int64_t at_ns; /* it arrives, by the cluster's clock */
	uint32_t node;
	enum { SIMULATION_HEALTH, SIMULATION_CALLS, SIMULATION_REPORT } kind;
	union { /* valid until the next message */
		const struct push_health *health;
		const struct push_calls *calls;
		const struct push_report *report;
	};
};

struct simulation;
int simulation_new(const struct simulation_settings *s, struct simulation **ret);
DECLARE_FREE(struct simulation, simulation_free)

/* simulation_next - 1 and the next message in the order of arrival, 0 at the end, or -ENOMEM. */
int simulation_next(struct simulation *s, struct simulation_message *ret);
