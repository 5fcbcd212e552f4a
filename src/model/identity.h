/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - whom a traced process works for: its place in a distributed job, the job, the
 * container and the pod. Read by record/discover from the process itself, never from the agent.
 *
 * All texts came from a traced process or its container runtime: whoever prints them escapes. An
 * unknown text is "". */
#pragma once

#include "base/clock.h"
#include "model/event.h"

/* What an interpreter runs, by its command line: "train.py" says more than "python3". */

#define SCRIPT_MAX 64
#define SCRIPT_SPAWNED                                                                             \
	"multiprocessing." /* what the name of a worker of Python's begins with that was not forked */

/* script_of - the script or module that the arguments of a process name, without its folder; "" if the program is no
 * interpreter, or runs no file; "multiprocessing.spawn" for a worker of Python's that was not forked. Nothing else of a command line is kept. @args: ended by NUL each, as /proc has
 * them, or by spaces, as the store has them. Returns @out. */
const char *script_of(const char *args, size_t len, char out[SCRIPT_MAX]);

/* script_is_runner - whether @comm is what an interpreter calls every process that runs a script: "python3". */
bool script_is_runner(const char *comm);

/* Processes that use CUDA and the library files they map: what discover finds, attach
 * probes and check shows. A library is a file, known by (dev, inode); its path is only a name. */

#define TARGET_PATH_MAX    1024
#define TARGET_COMM_MAX    16
#define TARGET_CMDLINE_MAX 4096

/* X(NAME, stem): a file called stem.so*, or stem-HASH.so* as wheels rename their private copies. The
 * runtime and NCCL are also found in files of other names (discover/embedded.h). */
#define TARGET_LIBRARIES(X)                                                                        \
	X(CUDART, "libcudart")                                                                     \
	X(CUDA, "libcuda")                                                                         \
	X(NCCL, "libnccl")                                                                         \
	X(TORCH_CUDA, "libtorch_cuda")                                                             \
	X(TORCH_CPU, "libtorch_cpu")                                                               \
	X(XLA_CUDA, "xla_cuda_plugin")                                                             \
	X(JAX, "libjax_common")                                                                    \
	X(TORCH_PYTHON, "libtorch_python")                                                         \
	X(NVTX, "libnvToolsExt")                                                                   \
	X(NVTX_INTEROP, "libnvtx3interop")                                                         \
	X(NVTX_INJECTED, "libingero-nvtx")

enum target_library_kind {
#define X(NAME, stem) TARGET_##NAME,
	TARGET_LIBRARIES(X)
#undef X
		TARGET_LIBRARY_KINDS,
	TARGET_EXECUTABLE = TARGET_LIBRARY_KINDS, /* a program that may hold the runtime itself */
	TARGET_PYTHON /* a program or library that may hold an interpreter */
};

/* target_kind_is_cuda - does a file of @kind make its process one that uses CUDA? The others are
 * looked at in such processes only. */
static inline bool target_kind_is_cuda(enum target_library_kind kind)
{
	return kind <= TARGET_TORCH_CUDA || kind == TARGET_EXECUTABLE;
}

/* target_kind_has_nvtx - may a file of @kind hold functions of NVTX? */
static inline bool target_kind_has_nvtx(enum target_library_kind kind)
{
	return kind >= TARGET_TORCH_PYTHON && kind <= TARGET_NVTX_INJECTED;
}

struct target_library {
	enum target_library_kind kind;
	uint64_t dev; /* as stat(2) gives it */
	uint64_t inode;
	uint64_t map_start, map_end; /* of the executable mapping; 0 for a file found on disk */
	bool deleted;                /* no longer in the file system under this path */
	bool embedded;               /* known by its symbols: another library's file holds it */
	char path[TARGET_PATH_MAX];  /* as the process sees it; "" if it was longer than this */
};

struct target_process {
	uint32_t pid;
	uint32_t uid;
	uint64_t start_ticks; /* since boot; with the pid it names the process */
	char comm[TARGET_COMM_MAX];
	struct target_library *libraries; /* at least one */
	size_t library_count;
};

#define IDENTITY_JOB_MAX       128
#define IDENTITY_CONTAINER_MAX 80  /* 64 hexadecimal digits; ECS on Fargate: 32 and a number */
#define IDENTITY_UID_MAX       40  /* a UUID */
#define IDENTITY_NAME_MAX      254 /* a DNS name, RFC 1123 */
#define IDENTITY_GPUS_MAX      256 /* six UUIDs; a longer list is not kept */

struct identity {
	struct placement place;
	const char *launcher;       /* who said so: "torchrun", "slurm", …; never freed; or "" */
	char job[IDENTITY_JOB_MAX]; /* "slurm:4711", "ecs:TASK", … */
	char container_id[IDENTITY_CONTAINER_MAX];
	char pod_uid[IDENTITY_UID_MAX]; /* with dashes, whatever the cgroup's name has */
	char pod[IDENTITY_NAME_MAX];
	char namespace[IDENTITY_NAME_MAX];
	char cgroup_path[TARGET_PATH_MAX]; /* as the agent sees it; its end if longer */
	char cpu_group
		[TARGET_PATH_MAX]; /* likewise of cgroup v1, where that limits CPUs; "": none but the root */
	char memory_group[TARGET_PATH_MAX]; /* likewise memory */
	char exe[TARGET_PATH_MAX];
	char visible_gpus[IDENTITY_GPUS_MAX]; /* CUDA_VISIBLE_DEVICES; "": not set, or not known */
	bool environ_unreadable;              /* so that rank and job are not known */
	bool environ_cut; /* longer than what is read: rank and job may be missing */
};

struct process { /* a row of `processes` */
	uint32_t pid;
	uint64_t start_ticks;
	wall_time seen;
	char comm[COMM_LEN];
	char script[SCRIPT_MAX]; /* that an interpreter runs; "": it is none, or not known */
	uint32_t cpus;           /* that its first thread may run on; 0: not known */
	struct identity identity;
};

struct process_home { /* of a row of `processes`: who it is and where it lives */
	uint32_t pid;
	char comm[COMM_LEN];
	char script[SCRIPT_MAX]; /* as in struct process */
	uint32_t cpus;           /* likewise */
	int32_t rank;            /* in the job; -1: not known */
	char container_id[IDENTITY_CONTAINER_MAX];
	char visible_gpus[IDENTITY_GPUS_MAX];
	char pod[64];          /* cut */
	char cgroup_path[128]; /* its end if longer */
};

struct cgroup_row { /* a row of `cgroup_metadata` */
	uint64_t id;
	char container_id[IDENTITY_CONTAINER_MAX];
	char path[TARGET_PATH_MAX];
	char pod[IDENTITY_NAME_MAX];
	char namespace[IDENTITY_NAME_MAX];
};

/* One run of `ingero trace`: where and how it recorded. */

struct session {
	int64_t id;
	wall_time started, stopped; /* stopped.ns == 0: still running, or killed */
	char node[256];
	char gpu_model[128], gpu_driver[64], cuda_version[32];
	char cpu_model[128], kernel[128], os_release[128], python_version[32];
	uint32_t cpu_cores;
	uint64_t mem_total_mb;
	char ingero_version[64];
	char pid_filter[256];
	char flags[512];
	char missing[2048]; /* what the kernel could not do: "part: why", one a line */
};

/* What of a process is seen: for each layer of calls whether it is covered, and if not,
 * why. Judged by record/attach, stored as `coverage`, shown by check, the live table and JSON. */

/* X(NAME, name, calls): the name is stored; calls are how sentences speak of it. */
#define LAYERS(X)                                                                                  \
	X(RUNTIME, "runtime", "runtime calls")                                                     \
	X(DRIVER, "driver", "driver calls")                                                        \
	X(NCCL, "nccl", "NCCL calls")                                                              \
	X(MARKS, "marks", "PyTorch's steps")                                                       \
	X(COLLECTOR, "collector", "garbage collections")                                           \
	X(IDENTITY, "identity", "rank and job") /* not calls, but what is said of them */

enum layer {
#define X(NAME, ...) LAYER_##NAME,
	LAYERS(X)
#undef X
		LAYER_COUNT
};

enum layer_state {
	LAYER_ABSENT,    /* the process does not use it, as far as is known */
	LAYER_COVERED,   /* every call is seen from `since` on */
	LAYER_UNCOVERED, /* it is there, or may be, and is not seen */
	LAYER_FAILED,    /* it is there and could not be probed */
};

#define LAYER_DETAIL_MAX 512

struct layer_row {
	enum layer_state state;
	wall_time since;               /* covered: when the file was probed */
	char detail[LAYER_DETAIL_MAX]; /* by what it is covered, or why not; raw names in it */
};

struct process_layers {
	struct layer_row rows[LAYER_COUNT];
};

const char *layer_name(enum layer l);             /* "runtime" */
const char *layer_state_name(enum layer_state s); /* "covered" */

/* layer_is_gap - something happens there that is not seen. */
bool layer_is_gap(const struct layer_row *r);
bool layer_has_gap(const struct process_layers *p);

/* layer_same - nothing that would be reported has changed. */
bool layer_same(const struct process_layers *a, const struct process_layers *b);

/* layer_sentence - "runtime calls are not covered: …"; "" for an absent layer. Names in it are raw:
 * printing escapes. Returns @out. */
const char *layer_sentence(enum layer l, const struct layer_row *r, char *out, size_t size);
#define LAYER_SENTENCE_MAX (LAYER_DETAIL_MAX + 64)
