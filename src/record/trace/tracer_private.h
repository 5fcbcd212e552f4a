/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_private.h - one run's state, shared by the files that make up the tracer: tracer.c (start,
 * step, stop), tracer_targets.c (their lives), tracer_targets.c (which of them, and libraries),
 * tracer_maps.c (new mappings), tracer_second.c (what is due each second), tracer_maps.c (stacks),
 * tracer_second.c (what threads spent their time on), tracer_name.c (kernels and ranges),
 * tracer_second.c (annotations), tracer_view.c (explaining while tracing), tracer_view.c and
 * tracer_metric.c. Nobody else includes it. */
#pragma once

#include "base/socket_path.h"
#include "record/annotate/annotate.h"
#include "record/attach/uprobe.h"
#include "record/attach/coverage.h"
#include "record/attach/feature.h"
#include "record/capture/host.h"
#include "record/capture/waits.h"
#include "record/capture/group_folder.h"
#include "record/capture/reader.h"
#include "record/capture/totals.h"
#include "record/discover/discover.h"
#include "record/discover/identity.h"
#include "record/discover/maps.h"
#include "record/trace/explainer.h"
#include "record/trace/metric_state.h"
#include "record/trace/governor.h"
#include "record/trace/kernel_table.h"
#include "record/trace/launch_watch.h"
#include "record/trace/neighbours.h"
#include "record/trace/process_table.h"
#include "record/probe/probe.h"
#include "record/probe/sample/sample.h"
#include "record/stack/stacks.h"
#include "store/nodedb.h"
#include "store/write/writer.h"
#include "base/idmap.h"
#include "base/log.h"
#include "config.h"
#include "record/trace/tracer.h"

#define MAPPINGS_MAX 64  /* new mappings that are looked at together */
#define LATE_MAX     256 /* processes that map files whose probes are coming */

struct tracer {
	struct tracer_settings settings;
	struct clock_map clock;
	wall_time started;
	mono_time began; /* the same */
	struct probe *probe;
	struct coverage *coverage;
	struct discover_scanner *scanner;
	wall_time enabled;      /* since when calls are recorded */
	wall_time scanned;      /* when the last scan began */
	mono_time rescanned;    /* when one was last made for want of room */
	struct map_watch *maps; /* NULL: new mappings are found by scans only */
	bool files_changed;     /* probes have gone from files that were written to */
	bool maps_lost;         /* records of mappings are missing: a scan must do */
	size_t said_dropped, said_libraries_dropped; /* by a scan, for want of room */
	bool said_quota;                             /* somebody's share of targets is used up */
	unsigned map_wakes;                          /* in this second */
	struct map_watch_mapping mappings[MAPPINGS_MAX];
	size_t mapping_count;
	struct late_file { /* whose probes are coming */
		uint32_t pid;
		struct target_library library;
		wall_time mapped;
	} late[LATE_MAX];
	size_t late_count;
	struct gap_log gaps;         /* reported */
	uint64_t own_dev, own_inode; /* of this program: its processes are never targets */
	struct reader *reader;
	struct totals *totals;
	struct waits *waits;
	struct host_reader host;
	struct host_sample host_now;
	bool has_host;
	struct gpu_sampler *gpu;
	bool gpu_named; /* the session's row has the GPU's name */
	struct deadband deadband;
	struct store_writer *store;
	uint64_t store_generation; /* the store's when rows reported once were last pushed */
	bool renewed_due;          /* it does not know that they were */
	struct annotate_server *annotate;
	struct explainer *explainer;
	struct process_table *processes;
	unsigned deserted_s; /* since all of them have ended */
	struct waited_for waited_for;
	struct roster *roster;
	struct group_folders *group_folders;
	struct neighbours *neighbours;
	struct disks disks;
	struct sample_clocks *samples; /* NULL: none are taken */
	struct stacks *stacks;         /* NULL: not taken */
	struct tracer_names *names;    /* of kernels and ranges */
	struct idmap stack_rows;       /* hash -> rows stored of it, for --stack-samples */
	uint64_t stacks_unstored;      /* the store had no room */
	uint64_t stacks_ns;            /* time spent walking that the governor knows of */
	uint64_t hook_runs;            /* likewise, of marks and names of hook_pid */
	uint32_t hook_pid;
	struct stacks_report stack_report; /* after tracer_stop() */
	bool admit_due;                    /* new targets: give their threads state */
	uint64_t op_counts[WIRE_SOURCE_MAX][WIRE_OP_MAX]; /* records received */
	struct governor governor;
	struct cost_trial trial;
	struct cost_load load, load_now; /* of the busiest process: since the start, lately */
	mono_time overhead_at;           /* when the cost was last written down */
	uint64_t overhead_cpu_ns;
	struct launch_watch *launches;
	enum launch_phase launch_phase;
	mono_time govern_at;   /* when the cost was last reckoned */
	struct accounting own; /* what this side dropped or folded */
	struct cpu_losses cpu_losses;
	struct accounting final;           /* the books after tracer_stop() */
	struct metric_state *metric_state; /* NULL: no metrics are wanted */
	uint64_t pruned_rows;
	uint64_t db_bytes;
	char store_error[256];
	bool stopped;
	int64_t second, bucket; /* wall second and 5 s bucket being filled */
	struct live_ops ops;
};

/* tracer_targets.c */
int tracer_open_processes(struct tracer *t);
void tracer_close_processes(struct tracer *t);
void tracer_follow(struct tracer *t, const struct event *e); /* a fork, exec, exit or find */
void tracer_sweep_totals(struct tracer *t); /* of processes that ended unseen; once a minute */

/* tracer_targets.c */
int tracer_scan(struct tracer *t);
/* tracer_target_add - as probe_target_add(). */
int tracer_target_add(struct tracer *t, uint32_t pid);
void tracer_enter_children(struct tracer *t, uint32_t pid, wall_time at);
void tracer_enter_waker(struct tracer *t, const struct ledger_row *stay); /* if it is worth it */
int tracer_cover_disk(struct tracer *t);
int tracer_cover_named(struct tracer *t, const char *path, struct errinfo *reterr);
int tracer_cover_nccl(
	struct tracer *t, struct errinfo *reterr); /* that file and no other of NCCL */
int tracer_enter_pids(struct tracer *t, struct errinfo *reterr);
int tracer_check_pids(const struct tracer_settings *s, struct errinfo *reterr);

/* tracer_maps.c */
void tracer_open_maps(struct tracer *t);
int tracer_maps_fd(struct tracer *t); /* readable when a library was mapped; -1: do not wait */
int tracer_poll_maps(struct tracer *t);
/* tracer_scan_gaps - what of @p was not seen, found by a scan: mapped at @from at the earliest. */
void tracer_scan_gaps(struct tracer *t, const struct target_process *p, wall_time from);

/* tracer_judge - say what is seen of @p, unless the probes of one of its files are coming.
 * tracer_settle - do so for those whose probes have come, and write down since when; @is_last: no more are waited
 * for. */
void tracer_judge(struct tracer *t, const struct target_process *p);
void tracer_settle(struct tracer *t, bool is_last);
bool tracer_is_own_program(const struct tracer *t, uint32_t pid);

/* tracer_second.c */
int tracer_second(struct tracer *t, wall_time now);
int tracer_read_totals(struct tracer *t);
int tracer_flush_rest(struct tracer *t);
void tracer_books(struct tracer *t, struct accounting *ret);
void tracer_cpu_losses(struct tracer *t);
void tracer_poll_gpu(struct tracer *t);
void tracer_renew_rows(struct tracer *t);

/* tracer_overhead.c */
int tracer_turn_launches(struct tracer *t, wall_time now);
int tracer_wait_ms(
	const struct tracer *t, int timeout_ms);       /* how long to wait for records, at most */
void tracer_govern(struct tracer *t, mono_time now);   /* totals were just read */
void tracer_overhead(struct tracer *t, wall_time now); /* writes it down */
void tracer_last_overhead(struct tracer *t);
/* tracer_launch_weight - what a launch of the process stands for that was counted in the last second. */
unsigned tracer_launch_weight(const struct tracer *t, uint32_t pid);
/* tracer_cost - what tracing costs the busiest process. Returns how many pairs of windows with and without
 * probes say so; 0: too few yet, it is reckoned from hits and waits, since the start or @lately. */
uint64_t tracer_cost(const struct tracer *t, bool lately, struct cost_felt *ret);
uint64_t tracer_own_cpu_ns(void); /* of this process, */
uint64_t tracer_own_bytes(void);  /* and its resident memory */

/* tracer_maps.c */
int tracer_open_stacks(struct tracer *t);
void tracer_close_stacks(struct tracer *t);
void tracer_poll_stacks(struct tracer *t);
void tracer_finish_stacks(struct tracer *t, bool at_once);
uint64_t tracer_stacks_ns(const struct tracer *t);
void tracer_view_stacks(const struct tracer *t, struct tracer_view *v);
/* tracer_take_stack - the stack of @e if its names are known already. False: @e is not to be a row
 * of its own, because its stack has enough of them. */
bool tracer_take_stack(struct tracer *t, struct event *e, const struct stack **ret);

/* tracer_second.c */
void tracer_ledger(struct tracer *t, const struct ledger_row *row);

/* tracer_name.c */
int tracer_open_names(struct tracer *t);
void tracer_close_names(struct tracer *t);
void tracer_take_name(void *arg, const struct name_record *n);
const char *tracer_kernel_name(void *arg, uint32_t pid, uint64_t function); /* a kernel_namer */
bool tracer_take_symbol(struct tracer *t, const struct stack *s); /* false: it was not asked for */
void tracer_read_kernels(struct tracer *t);                       /* counts, from the kernel half */
void tracer_read_few_kernels(struct tracer *t); /* likewise, if that costs next to nothing */
void tracer_flush_kernels(struct tracer *t);    /* to the store */
uint64_t tracer_names_lost(const struct tracer *t);
void tracer_kernels_gone(struct tracer *t, uint32_t pid);
void tracer_sweep_registered(struct tracer *t);
void tracer_renew_names(struct tracer *t);

/* tracer_view.c */
int tracer_open_explainer(struct tracer *t);
void tracer_explain_look(struct tracer *t);    /* a bucket is complete */
void tracer_poll_explainer(struct tracer *t);  /* hands on what was found */
void tracer_close_explainer(struct tracer *t); /* waits for its last look */

/* tracer_confine.c: what the calling thread gives up; nothing if the settings do not ask for it. */
void tracer_confine_main(const struct tracer_settings *s, enum probe_method method);
void tracer_confine_explainer(void *arg); /* struct tracer_settings */
void tracer_confine_store(void *arg);     /* likewise */

/* tracer_second.c */
void tracer_serve_annotations(struct tracer *t);
int tracer_open_annotations(struct tracer *t, struct errinfo *reterr);
void tracer_close_annotations(struct tracer *t);
