/* SPDX-License-Identifier: Apache-2.0 */
/* tracer.h - one run of tracing: the agent's root, which joins the stages.
 *
 *   discover -> attach -> probes -> reader -> (sink, store)        totals -> (view, store)
 *
 * All of it runs on the caller's thread except the store's writer and the engine, which explains
 * the last minutes every five seconds (explainer.h). Life: tracer_start(), then tracer_step()
 * in a loop, tracer_view() whenever something is to be shown, tracer_stop(), tracer_free(). */
#pragma once

#include "record/probe/filter.h"
#include "record/discover/discover.h"
#include "diagnose/live/incident_tracker.h"
#include "record/gpu/sampler.h"
#include "record/trace/launch_watch.h"
#include "record/trace/process_table.h"
#include "record/trace/roster.h"
#include "record/stack/stacks.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "model/accounting.h"
#include "model/collective.h"
#include "model/event.h"
#include "model/sample.h"
#include "model/stack.h"
#include "stat/sketch.h"

#define TRACER_METHOD_AUTO (-1)

enum tracer_py_walker { TRACER_PY_AUTO, TRACER_PY_EBPF, TRACER_PY_USERSPACE };

struct tracer_settings {
	enum probe_filter filter;
	uint32_t uid;         /* FILTER_USER */
	const uint32_t *pids; /* FILTER_PIDS */
	size_t pid_count;
	/* One of @pids is the process command_pid, which has not run yet: its libraries are looked for beforehand. */
	const struct discover_command *command; /* NULL: none */
	uint32_t command_pid;
	const char *cuda_lib;         /* probe only this file; NULL: find them */
	const char *const *libraries; /* probe these from the start */
	size_t library_count;
	const char *nccl_lib;   /* of NCCL, probe only this file; NULL: find them */
	uint64_t gpu_period_ns; /* between readings of the GPUs */
	int method;             /* enum probe_method or TRACER_METHOD_AUTO */
	bool record_all;
	bool no_block, no_net, no_memory;
	bool old_kernel;            /* for tests */
	const char *refuse_program; /* likewise */
	uint32_t user_targets;      /* likewise */
	uint32_t ring_bytes;
	uint32_t sampling_rate;          /* of ordinary calls, one in so many is a row; 0: 256 */
	uint32_t sample_hz;              /* on-CPU samples a second and CPU; 0: none */
	bool no_stacks;                  /* calls are recorded without their call stack */
	enum tracer_py_walker py_walker; /* who walks Python's frames */
	uint32_t stack_samples;          /* ordinary rows per stack; more are aggregated. 0: all */
	double overhead_budget;          /* share of a process's time; 0: no limit */
	const char *db_path;             /* NULL: nothing is stored */
	const char *node;
	const char *flags_text;    /* for the session row */
	uint64_t max_db_bytes;     /* prune the store to this; 0: unlimited */
	uint64_t rollover_bytes;   /* or roll over at this; 0: never */
	unsigned rollover_keep;    /* rolled files to keep */
	const char *annotate_path; /* socket for annotations; NULL: none */
	int64_t annotate_gid;      /* group that may use it; -1: none */
	const char *stream_path;   /* socket of the caller's that goes at the end; NULL: none */
	double deadband_points;    /* see record/capture/host.h */
	uint64_t heartbeat_ns;
	/* Every record; @c for NCCL calls, else NULL; the id of its process's container or ""; its
	 * call stack or NULL, valid during the call. May be NULL. */
	void (*event_sink)(void *arg, const struct event *e, const struct collective *c,
		const char *container_id, const struct stack *stack);
	/* Every distinct stack once its names are known; its texts are valid during the call. */
	void (*stack_sink)(void *arg, const struct stack *s);
	roster_coverage_sink *coverage_sink; /* what is seen of a process; may be NULL */
	gpu_sampler_sink *gpu_sink;          /* every reading of a GPU; may be NULL */
	/* An incident that began, grew or was over; may be NULL. */
	void (*incident_sink)(void *arg, const struct incident *i, enum incident_change change);
	void *event_arg; /* of all */
	bool metrics;    /* keep what tracer_metrics() needs */
	bool confine;    /* see tracer_confine_begin() */
};

struct metric_set;

struct tracer_view {
	wall_time started, now;
	uint64_t ran_ns; /* between, by a clock that nobody sets */
	const char *method;
	size_t processes;   /* traced and alive */
	uint32_t first_pid; /* one of them */
	char first_comm[COMM_LEN];
	size_t libraries; /* files probed */
	char first_library[256];
	size_t runtime_probes, driver_probes;
	bool has_samples;                    /* what runs on the CPUs is sampled */
	const struct parts_missing *missing; /* of the kernel half; the tracer's */
	struct host_sample host;
	bool has_host;
	enum gpu_state gpu_state;
	char gpu_text[320];         /* the state as a sentence */
	bool has_driver;            /* an NVIDIA driver is loaded */
	const struct gpu_row *gpus; /* owned by the tracer, valid until its next step */
	size_t gpu_count;
	const struct cpu_losses *cpu_losses; /* the tracer's */
	struct accounting books;             /* so far; balances only after tracer_stop() */
	struct tracer_op *ops;               /* owned by the tracer, valid until its next call */
	size_t op_count;
	uint64_t db_bytes;
	char store_error[256]; /* "" while all writes succeed */
	uint32_t clock_steps;
	double overhead, overhead_budget;   /* of the busiest process's time */
	double overhead_low, overhead_high; /* the truth is between */
	uint64_t overhead_pairs;       /* windows compared; 0: reckoned, high is hits x hit_ns */
	double hit_ns;                 /* measured cost of one hit */
	double own_cpu_ns;             /* of this process, */
	uint64_t own_bytes;            /* and its resident memory */
	struct launch_sum launches;    /* how many, and how sure that is */
	const struct roster_gap *gaps; /* processes not seen completely; the tracer's, likewise */
	size_t gap_count;
	uint64_t gaps_more;  /* beyond the list */
	uint64_t names_lost; /* of kernels and NVTX ranges: no room in the kernel half or here */
	bool has_stacks;     /* the rest is set */
	struct stacks_report stacks;
};

struct tracer;

/* tracer_confine_begin - tracer_start() with @s shall have every thread give up what it does not
 * need (tracer_confine.c). To be called while there is one thread; the process begins no other
 * program afterwards. On failure @s is as before. */
int tracer_confine_begin(struct tracer_settings *s);

/* tracer_confine_metrics - the same for the thread that gives metrics away, called on it. */
void tracer_confine_metrics(void);

int tracer_start(const struct tracer_settings *s, struct tracer **ret, struct errinfo *reterr);

/* tracer_step - wait up to @timeout_ms for records, hand them on, and do what is due each second.
 * Returns 1 if a second has passed (the view is fresh), 0 if not, or a negative errno. */
int tracer_step(struct tracer *t, int timeout_ms, struct errinfo *reterr);

/* tracer_is_over - the processes that the settings name, and all that they forked, have ended some seconds ago: nothing
 * comes any more. Never so with another filter, or beside a command. */
bool tracer_is_over(const struct tracer *t);

void tracer_view(struct tracer *t, struct tracer_view *ret);

/* tracer_gpu_state - that part of the view alone. */
enum gpu_state tracer_gpu_state(const struct tracer *t, char *text, size_t size);

/* tracer_launches - tells @fn how many kernels each process has launched since the start, once for each function
 * that launches; totals are those of the last second. */
void tracer_launches(struct tracer *t,
	void (*fn)(void *arg, uint32_t pid, const char *comm, uint64_t count), void *arg);

/* tracer_metrics - a reading of everything as metrics, the caller's; NULL: no memory, or the
 * settings did not ask for it. Totals are those of the last second. */
struct metric_set *tracer_metrics(struct tracer *t);

/* tracer_stop - stop recording, read what is left, close the store. From then on tracer_view()
 * shows the final books, which balance. @at_once: somebody waits, so that names of functions that are not found
 * within 0.3 s are left out. A failure is one of the store. */
int tracer_stop(struct tracer *t, bool at_once, struct errinfo *reterr);
void tracer_free(struct tracer *t);
