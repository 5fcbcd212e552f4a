/* SPDX-License-Identifier: Apache-2.0 */
/* incident.h - an explained slowdown: what got slow, by how much, because of whom, how sure.
 *
 * Made by diagnose from recorded events; stored as `incidents` and, in the published shape, as
 * `causal_chains`; printed by explain. All texts are ready to print, but hold names that came from
 * traced processes: whoever prints escapes them (base/text.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/event.h"

enum severity { SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH, SEVERITY_CRITICAL, SEVERITY_COUNT };

/* X(NAME, name, layer): what a piece of the lost time was spent on. */
#define CAUSES(X)                                                                                  \
	X(PREEMPTED, "cpu_preempted", "HOST") /* another thread took the CPU */                    \
	X(RUN_QUEUE, "cpu_run_queue", "HOST") /* woken, none was free */                           \
	X(BLOCK_IO, "block_io", "IO")         /* or a file system */                               \
	X(UNEXPLAINED, "unexplained", "CUDA") /* nothing recorded overlaps */                      \
	/* Only of pauses between calls: */                                                        \
	X(NETWORK, "network_wait", "NET")    /* in a send or receive */                            \
	X(RECLAIM, "memory_reclaim", "HOST") /* as the kernel made it do */                        \
	X(ASLEEP, "asleep", "HOST")          /* waited for something no probe covers */            \
	X(HOST_CODE, "host_code", "HOST")    /* the thread was running */                          \
	/* Only of steps: */                                                                       \
	X(CUDA_CALL, "cuda_call", "CUDA") /* waiting, copying, allocating */

enum cause {
#define X(NAME, ...) CAUSE_##NAME,
	CAUSES(X)
#undef X
		CAUSE_COUNT
};

#define INCIDENT_CAUSES   16
#define INCIDENT_TIMELINE 12
#define INCIDENT_EVIDENCE 16
#define INCIDENT_FIXES    4
#define INCIDENT_STACKS   16
#define INCIDENT_PIDS     16

struct incident_cause {
	enum cause cause;
	uint32_t culprit_pid;   /* 0: nobody in particular */
	char culprit[COMM_LEN]; /* "" likewise */
	uint64_t culprit_home;  /* its container or control group (home.h); 0: not known */
	double culprit_share;   /* of ns: the part this culprit had, 0..1 */
	uint64_t ns;            /* excess it accounts for */
	uint32_t calls;         /* slow calls it touched */
	bool is_many;           /* of several culprits, too many to list; culprit_pid is 0 */
};

struct incident_stack { /* from where slow calls were made */
	uint64_t hash;  /* of the call stack */
	uint64_t ns;    /* their excess */
	uint32_t calls; /* slow ones */
};

struct incident_launch { /* of a kernel, known by its number in the process */
	uint64_t function;
	uint32_t calls;
};

struct incident_step { /* one line of the timeline */
	wall_time time;
	uint64_t dur_ns;
	char layer[8]; /* SYSTEM HOST IO CUDA DRIVER */
	char op[24];
	char detail[200];
};

struct incident {
	char id[96];     /* stable: same data, same id */
	uint8_t problem; /* enum problem (model/problem.h) */
	enum severity severity;
	uint32_t pid;
	char comm[COMM_LEN];
	uint8_t source;
	uint16_t op;
	wall_time first, last; /* of its slow calls */
	uint64_t calls;        /* all calls of the op by the process */
	uint64_t slow_calls;
	uint64_t baseline_ns;    /* ordinary duration: the median outside the slow stretch */
	uint64_t p50_ns, p99_ns; /* over all calls */
	uint64_t slow_p50_ns;    /* median of the slow calls */
	double tail_ratio;       /* slow_p50 / baseline */
	uint64_t excess_ns;      /* sum over slow calls of duration - baseline */
	double explained;        /* 0..1 of excess_ns, all causes but UNEXPLAINED */
	double confidence;       /* 0..1, see diagnose.c */
	double completeness;     /* 0..1: share of hits that are in the data; -1: not known */
	/* What has no slow calls of one op (an idle gap, a hang, a leak) has slow_calls 0,
	 * excess_ns the time it cost (0: not a matter of time) and `unit`, what count counts. */
	uint64_t count;
	/* Of several processes: the first ones that had it, `pid` first, and how many had it. 0: only
	 * `pid`. */
	uint32_t pids[INCIDENT_PIDS];
	int pid_count;
	uint32_t pid_total;
	bool is_willed;   /* the end of a process that somebody wanted: not stored, and no crash */
	const char *unit; /* "gaps", "failed calls"; NULL: slow calls */
	int32_t culprit_rank;     /* of a job; -1: none */
	char culprit_node[64];    /* where it runs; "": not known */
	uint32_t period_steps;    /* it comes every so many steps; 0: not periodic */
	double period_confidence; /* 0..1 */
	wall_time since;          /* a change that lasts since then; 0: none */
	/* What a unit of work (a step, a request) takes now, and without this: about, and the range. 0: not
	 * known. */
	uint64_t unit_ns, fixed_ns, fixed_least_ns, fixed_most_ns;
	char place
		[160]; /* the user's own line that it comes from: "train.py:71 (step)"; "": none */
	wall_time resolved; /* followed live: when it was over; 0: it is not, or not known */
	struct incident_cause causes[INCIDENT_CAUSES]; /* largest first */
	int cause_count;
	struct incident_step timeline[INCIDENT_TIMELINE];
	int step_count;
	struct incident_stack stacks[INCIDENT_STACKS]; /* most excess first */
	int stack_count;
	uint32_t stack_total;                 /* different ones; may be more than are kept */
	uint64_t stack_ns;                    /* excess of all slow calls that have a stack */
	uint64_t evidence[INCIDENT_EVIDENCE]; /* seq of the rows that prove it, worst first */
	int evidence_count;
	int unnumbered; /* further rows that prove it and have no number yet: it is live */
	struct incident_launch launches[INCIDENT_EVIDENCE]; /* among those rows, most first */
	int launch_count;
	char summary[256];
	char root_cause[256];
	char explanation[1024];
	char fixes[INCIDENT_FIXES][200];
	int fix_count;
	char evidence_sql[1024];
};

const char *severity_name(enum severity s);     /* "HIGH" */
const char *confidence_word(double confidence); /* "likely" */
const char *cause_name(enum cause c);           /* "cpu_run_queue" */
const char *cause_layer(enum cause c);
