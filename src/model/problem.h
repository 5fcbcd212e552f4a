/* SPDX-License-Identifier: Apache-2.0 */
/* problem.h - the catalogue: what can be wrong with a GPU job, as a table.
 *
 * A row says how the problem is called, how bad it is at worst, what is looked at to find it, and
 * what that cannot see. Detectors (diagnose) name the row they found; fixes that need no
 * figures of the case stand here. docs/detections.md is written from this table and a test compares
 * the two. */
#pragma once

#include "model/incident.h"

/* X(NAME, number, id, worst severity, title): the numbers are those of the published catalogue. */
#define PROBLEMS(X)                                                                                \
	X(SLOW_CALL, "", "slow-call", HIGH, "calls slower than usual")                             \
	X(NCCL_HANG, "1", "nccl-hang", CRITICAL, "collective that hangs")                          \
	X(STARVATION, "2", "starvation", CRITICAL, "idle GPU")                                     \
	X(GPU_MEMORY, "3", "gpu-memory", CRITICAL, "out of GPU memory, fragmentation")             \
	X(CORRUPTION, "4", "silent-corruption", CRITICAL, "silent data corruption")                \
	X(AGENT_COST, "5", "agent-cost", CRITICAL, "inefficient inference for agents")             \
	X(KV_CACHE, "6", "kv-cache", CRITICAL, "KV cache pressure")                                \
	X(GRAPH_RECAPTURE, "6b", "graph-recapture", HIGH, "CUDA graphs captured repeatedly")       \
	X(HARDWARE_DRIFT, "7", "hardware-drift", HIGH, "failing hardware")                         \
	X(CPU_CONTENTION, "8", "cpu-contention", HIGH, "the GPU waits for the CPU")                \
	X(TOOL_CALLS, "9", "tool-calls", HIGH, "idle while waiting for the network")               \
	X(MEMORY_LEAK, "10", "memory-leak", HIGH, "GPU memory leak")                               \
	X(AMP, "11", "amp-instability", HIGH, "unstable mixed precision")                          \
	X(GOODPUT, "12", "goodput", HIGH, "steps slower than they were")                           \
	X(ORCHESTRATION, "13", "orchestration", HIGH, "killed, restarted, evicted")                \
	X(MODEL_SWAP, "14", "model-swap", HIGH, "model loaded while others wait")                  \
	X(DEVICE_ASSERT, "15", "device-error", MEDIUM, "errors on the device")                     \
	X(VERSION_MISMATCH, "16", "version-mismatch", MEDIUM, "driver and CUDA mismatch")          \
	X(THROTTLE, "17", "throttle", HIGH, "clocks lowered")                                      \
	X(NOISY_NEIGHBOUR, "18", "noisy-neighbour", HIGH, "another container takes the CPU")       \
	X(COLD_START, "19", "cold-start", MEDIUM, "slow first calls")                              \
	X(STRAGGLER, "20", "straggler", HIGH, "ranks that wait for one of them")                   \
	X(GPU_SHARING, "21", "gpu-sharing", HIGH, "another process on the GPU")                    \
	X(CHECKPOINT, "22", "checkpoint", HIGH, "training stops to write a checkpoint")            \
	X(PCIE, "23", "pcie", HIGH, "copies to and from the GPU")                                  \
	X(LOSS_SPIKE, "24", "loss-spike", LOW, "loss spikes")                                      \
	X(KERNEL_COMPILER, "25", "kernel-compiler", HIGH, "kernels that fail or are rebuilt")

enum problem {
#define X(NAME, ...) PROBLEM_##NAME,
	PROBLEMS(X)
#undef X
		PROBLEM_COUNT
};

struct problem_text {
	const char *seen_by; /* what is looked at */
	const char *limits;  /* what that cannot tell; "" if nothing */
	const char *fixes[INCIDENT_FIXES + 1];
	const char *hint; /* for an assistant: what to ask next */
};

struct problem_row {
	const char *number, *id, *title; /* number "": not in the published catalogue */
	enum severity worst;
	const struct problem_text *text;
};

const struct problem_row *problem_row(enum problem p);
