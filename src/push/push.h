/* SPDX-License-Identifier: Apache-2.0 */
/* push.h - what an agent tells the cluster, as structs: the health of its node, its collectives, its
 * reports. Both programs speak through these; how they look as bytes is in push_wire.h.
 *
 * Texts are the sender's words: bounded, valid UTF-8, never trusted. Times are CLOCK_REALTIME of the
 * sender unless the name says otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PUSH_ID_MAX    128 /* bytes of a cluster's or node's name with its NUL */
#define PUSH_MODEL_MAX 96  /* of a GPU model */
#define PUSH_WORD_MAX  32  /* of providers, states, workload types, modes, signals */
#define PUSH_HASH_MAX  17  /* 16 hex digits */
#define PUSH_EVENT_MAX 40  /* UUID */
#define PUSH_TEXT_MAX  512 /* of a sentence */

/* X(NAME, id) */
#define PUSH_STATES(X)                                                                             \
	X(CALIBRATING, "calibrating")                                                              \
	X(ACTIVE, "active")                                                                        \
	X(IDLE, "idle")                                                                            \
	X(STALE, "stale") /* never sent */

enum push_state {
#define X(NAME, ...) PUSH_##NAME,
	PUSH_STATES(X)
#undef X
		PUSH_STATE_COUNT
};

/* Raw signals that are compared with peers; -1: not known. X(NAME, metric, unit, more_is_better) */
#define PUSH_SIGNALS(X)                                                                            \
	X(LAUNCH_RATE, "ingero.node.launch_rate", "{launch}/s", true)                              \
	X(STEP, "ingero.node.step_seconds", "s", false)                                            \
	X(GPU_BUSY, "ingero.node.gpu_busy_ratio", "1", true)                                       \
	X(SM_CLOCK, "ingero.node.sm_clock_hz", "Hz", true)                                         \
	X(OWN_TIME, "ingero.node.own_seconds_per_step", "s",                                       \
		false) /* step less its waits for ranks */

enum push_signal {
#define X(NAME, ...) PUSH_SIGNAL_##NAME,
	PUSH_SIGNALS(X)
#undef X
		PUSH_SIGNAL_COUNT
};

struct push_who { /* resource attributes */
	char cluster[PUSH_ID_MAX];
	char node[PUSH_ID_MAX];
	char provider[PUSH_WORD_MAX]; /* "": not known */
	int32_t rank;                 /* -1: not told. 0 is a rank */
	uint32_t world_size;          /* 0: not known */
	uint64_t boot;                /* of this run of the agent; 0: not told */
};

struct push_health {
	struct push_who who;
	int64_t sent_ns;
	enum push_state state;
	double score;                            /* 0..1, as throughput and the three below */
	double throughput, compute, memory, cpu; /* one that is not sent: 1, no loss */
	bool degraded;
	char cohort[PUSH_HASH_MAX]; /* cgroup_path_hash; "": cluster-wide */
	char workload[PUSH_WORD_MAX];
	char gpu_model[PUSH_MODEL_MAX]; /* "": not told */
	uint32_t gpu_count;
	double signals[PUSH_SIGNAL_COUNT]; /* -1: not known */
};

struct push_straggler { /* a node's own verdict on itself */
	char event[PUSH_EVENT_MAX];
	char mode[PUSH_WORD_MAX], dominant[PUSH_WORD_MAX];
	double threshold, score;
	bool resolved;
};

struct push_span { /* an episode of a node, for who shows traces */
	struct push_who who;
	bool is_straggler; /* else it was degraded: a signal below half of its long average */
	int64_t start_ns, end_ns;
	bool resolved; /* it was over; false: the agent ended before */
	char event[PUSH_EVENT_MAX];
	char workload[PUSH_WORD_MAX], cohort[PUSH_HASH_MAX], gpu_model[PUSH_MODEL_MAX];
	uint8_t trace[16], id[8]; /* random */
};

/* A communication of one process: as model/collective.h has it, with a common clock. */
struct push_call {
	uint64_t comm; /* comm_hash: the same on all ranks; 0: not known */
	uint64_t
		seq; /* (comm, seq) names a collective; of a Send or Recv it counts the calls to @peer. As a signed number
			* negative: the rank's own count, of a communicator whose earlier calls its agent has not seen
			* (blame/comm_join.h brings these together) */
	uint64_t bytes;
	int64_t enter_ns; /* the call began */
	int64_t leave_ns; /* the process got past it: the end of the call or of the wait that followed.
			   * 0: it is still inside, told after a second; the same call comes again,
			   * complete, when it has left */
	uint64_t wait_ns; /* of that, waiting; UINT64_MAX: not known */
	int32_t rank;     /* in the communicator */
	int32_t nranks;
	int32_t peer;       /* of a Send or Recv, in the communicator; else -1 */
	int32_t world_rank; /* in the job; -1: not known */
	uint32_t pid;
	uint16_t op;       /* SOURCE_NCCL's */
	uint16_t datatype; /* NCCL's; UINT16_MAX: not known */
};

/* push_call_is_numbered - do all ranks know it by communicator and number? */
static inline bool push_call_is_numbered(const struct push_call *c)
{
	return c->comm && c->seq <= INT64_MAX;
}

struct push_calls {
	struct push_who who;
	uint64_t batch; /* counts from 1 for each boot: a batch that comes twice counts once */
	int64_t sent_ns;
	uint64_t lost; /* calls that the agent had to leave out since the last batch */
	struct push_call *items;
	size_t count;
};

/* What a rank of a communicator is doing, told every second while it has one: how a hang is told from
 * a long pause. X(NAME, id) */
#define PUSH_DOINGS(X)                                                                             \
	X(UNKNOWN, "unknown")                                                                      \
	X(RUNNING, "running")       /* host code */                                                \
	X(GPU, "gpu")               /* waiting for its own GPU */                                  \
	X(COLLECTIVE, "collective") /* in a collective, waiting for others */                      \
	X(BLOCKED, "blocked")       /* disk, network, lock, asleep */                              \
	X(STOPPED, "stopped")       /* by a signal or debugger */                                  \
	X(GONE, "gone")             /* the process has ended */

enum push_doing {
#define X(NAME, ...) PUSH_DOING_##NAME,
	PUSH_DOINGS(X)
#undef X
};

/* The agent's own account of why its rank is slow: its step and its top incident. */
struct push_report {
	struct push_who who;
	int64_t sent_ns;
	uint32_t pid;
	int32_t world_rank;
	enum push_doing doing;
	char doing_where[PUSH_TEXT_MAX]; /* "train.py:41 in load"; "": not known */
	uint64_t step_ns, ordinary_ns;   /* median of slow and of ordinary steps; 0: not known */
	char line
		[PUSH_WORD_MAX]; /* account line that grew most: "disk"; "": none; or of an incident of the whole job: */
#define PUSH_LINE_LATE "late" /* others wait for this rank, or for its GPU */
#define PUSH_LINE_LOAD "load" /* load moves from rank to rank */
#define PUSH_LINE_LINK                                                                             \
	"link" /* all ranks are in time with the same work: what carries their collectives is slow */
	uint64_t line_ns; /* by so much in a slow step */
	char cause
		[PUSH_TEXT_MAX]; /* "its loader reads from a disk that rsync keeps busy (train.py:41)" */
	char fix[PUSH_TEXT_MAX];
	char place
		[PUSH_TEXT_MAX]; /* line of code that the cause is at: "train.py:41 (load)"; "": not known */
	char incident[PUSH_ID_MAX]; /* id of the top incident on the node; "": none */
	double confidence;          /* 0..1 */
};

/* An incident that the agent has explained: what the recording says of it, under the names of the cluster's
 * causal_chains. Texts are the caller's. */
struct push_attribute {
	const char *key;
	enum { PUSH_TEXT, PUSH_INT, PUSH_REAL } kind;
	union {
		const char *text; /* "": not known, as is 0 */
		int64_t i;
		double d;
	};
};
#define PUSH_ATTRIBUTES_MAX                                                                        \
	48 /* a record has room for those, the id once more and some of who it is */
struct push_chain {
	int64_t detected_ns;
	const char *id, *summary;
	struct push_attribute attributes[PUSH_ATTRIBUTES_MAX];
	size_t attribute_count;
};

const char *push_state_id(enum push_state s);
const char *push_signal_metric(enum push_signal s); /* "ingero.node.launch_rate" */
bool push_signal_more_is_better(enum push_signal s);
const char *push_doing_id(enum push_doing d);
/* push_X_parse - false: no such word. */
bool push_state_parse(const char *s, enum push_state *ret);
bool push_doing_parse(const char *s, enum push_doing *ret);

/* ---- when calls are worth sending before their second is over: a rank was held up for far
 * longer than its steps usually take, so somebody is late and the cluster can say who. One for each rank.
 * Pure. */

#define PUSH_HASTE_NS                                                                              \
	200000000 /* agents look so often for new calls, and send them each second or in haste */
#define PUSH_HASTE_KINDS 16

struct push_haste_kind { /* of calls: one communicator, operation and peer */
	uint64_t key;    /* 0: none */
	int64_t longest_ns
		[2]; /* from the end before it to its own: in this epoch, in the one before */
	int64_t epoch_end_ns;
	uint32_t calls;
};

struct push_haste { /* begins as 0 */
	struct push_haste_kind kinds[PUSH_HASTE_KINDS];
	int64_t left_ns, hasty_until_ns;
	int64_t spent_ns; /* of the time in which haste is allowed again, so much is used up */
	uint32_t calls;
};

/* push_haste_take - the rank's next call. True: it is to be sent soon. */
bool push_haste_take(struct push_haste *h, const struct push_call *c);
