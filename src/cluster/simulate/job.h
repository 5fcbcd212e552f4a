/* SPDX-License-Identifier: Apache-2.0 */
/* job.h - a distributed training job made up at the level of its communications, with a known fault:
 * what blame is tried on. The same description gives the same calls. Pure.
 *
 * Dependencies are kept: a Recv waits for its Send, a collective for all its ranks; everything else
 * follows from that. Rank = (stage * data + replica) * tensor + place in the tensor group. */
#pragma once

#include "blame/blame.h"
#include "base/macros.h"

/* X(NAME, id) */
#define JOB_FAULTS(X)                                                                                       \
	X(NONE, "none")                                                                                     \
	X(SLOW, "slow")     /* workers that compute slower by @amount */                                    \
	X(LATE, "late")     /* late by @late_ns in every @period-th step */                                 \
	X(DRIFT, "drift")   /* slower and slower, by @amount at the end */                                  \
	X(STAGE, "stage")   /* all workers of @stage slower by @amount */                                   \
	X(MOVING, "moving") /* the load moves: sequences of uneven length, @amount */                       \
	X(HANG, "hang")     /* never comes to the communications of step @from_step */                      \
	X(LINK, "link") /* messages between two stages take @link_ns longer; without stages a collective */ \
	X(GPU, "gpu") /* a GPU slower by @amount behind a host that runs ahead; only of hard jobs */        \
	X(EXPERT, "expert") /* a rank is sent @amount more tokens than the others, likewise */

enum job_fault {
#define X(NAME, ...) JOB_##NAME,
	JOB_FAULTS(X)
#undef X
};

#define JOB_FAULTY_MAX 8

/* What makes a job harder to judge than made-up ones usually are. X(NAME, id) */
#define JOB_TRAITS(X)                                                                              \
	X(AHEAD, "host ahead") /* also in pipelines: calls at once, one wait in a step */          \
	X(POSTED, "Recvs under compute") /* posted before the work that they are not needed for */ \
	X(BARRIER, "hidden barriers")    /* at the end of steps, and nobody records them */        \
	X(ENDS, "ends over 2 ms apart")                                                            \
	X(LONG, "steps over 5 s")                                                                  \
	X(MET_LATE, "met late")      /* agents came while it ran, each at its own time */          \
	X(NAMELESS, "nameless")      /* likewise, and without communicators */                     \
	X(ONE_EACH, "one a node")    /* workers */                                                 \
	X(BESIDE, "shared nodes")    /* with another job of the same ranks */                      \
	X(ALONE, "rank 0 evaluates") /* now and then, for some steps, while the others wait */     \
	X(SNAPSHOT, "snapshots")     /* of all ranks at once, each of which takes its own time */  \
	X(ROUTED, "uneven routing")  /* experts get more and fewer tokens in turn */

enum job_trait {
#define X(NAME, ...) JOB_TRAIT_##NAME,
	JOB_TRAITS(X)
#undef X
		JOB_TRAIT_COUNT
};

struct job_spec {
	uint64_t seed;
	uint32_t data, tensor, pipeline; /* sizes; 1: none */
	bool experts;       /* all-to-all of Sends and Recvs in each data-parallel group */
	bool fill_first;    /* all forward passes, then all backward (GPipe); else 1F1B */
	bool clips;         /* gradients: a small collective of all workers */
	bool async;         /* the host runs ahead of the GPU, and waits once in a step */
	bool waits_unknown; /* calls do not say how long they waited */
	bool sends_overlap; /* a Send lasts until it is received, beside other work */
	bool seq_per_comm;  /* Send and Recv are counted per communicator */
	uint32_t microbatches, layers, buckets; /* layers: tensor-parallel collectives in a pass */
	uint32_t steps;
	uint32_t first_pid;             /* 0: 1000 */
	uint64_t step_ns;               /* of computing, about */
	double jitter;                  /* lognormal, of each computation */
	double lasting;                 /* likewise of each worker */
	double first_extra, last_extra; /* stages with embeddings compute so much longer */
	uint32_t evaluate_every;        /* steps; 0: never */
	uint64_t clock_error_ns;        /* clocks are that far apart, and said to be */
	enum job_fault fault;
	uint32_t faulty[JOB_FAULTY_MAX]; /* workers */
	uint32_t faulty_count;
	int32_t stage;
	double amount;
	uint64_t late_ns;
	uint32_t period, from_step;
	uint64_t link_ns;
	bool link_back; /* from the later stage to the earlier one */
	/* Of hard jobs; 0: none of it. */
	uint32_t traits;   /* bits of enum job_trait */
	uint32_t per_node; /* workers; 0: as usual */
	double host_share; /* of a computation that the host needs to start it, if it runs ahead */
	double tail;       /* share of the computations that take up to twice as long */
	uint64_t ends_ns;  /* ends of a collective are up to so far apart */
	uint64_t met_ns;   /* agents came this long after the job's beginning, and up to ... */
	uint64_t met_for_ns;   /* ... this much later, node by node */
	uint32_t aside_every;  /* steps, with ALONE and SNAPSHOT, that last @aside of a step */
	double aside, routing; /* routing: lognormal, of what an expert is sent */
};

struct job_trace {
	struct blame_worker *workers; /* by rank */
	size_t worker_count;
	struct blame_call *calls; /* by worker and time */
	size_t call_count;
	uint64_t span_ns;
	uint64_t link_comm;          /* LINK: the communicator, of a collective */
	uint32_t link_from, link_to; /* likewise the workers, of messages */
	int64_t first_late_ns; /* a faulty worker came to the first communication after its fault had
				* begun; -1: never */
};

/* job_run - 0, -ENOMEM or -EINVAL (a size of 0, more than BLAME_WORKERS_MAX workers). *ret is
 * released with job_trace_done(). */
int job_run(const struct job_spec *spec, struct job_trace *ret);
void job_trace_done(struct job_trace *t);

/* job_spec_random - some job of the kinds that occur, with @fault; a fault that its shape cannot have
 * becomes another: see spec->fault. */
struct job_spec job_spec_random(uint64_t seed, enum job_fault fault);
/* job_spec_stretch - the same, but that a step lasts @times as long, and what is late or slow likewise. */
void job_spec_stretch(struct job_spec *s, uint32_t times);
/* job_spec_harden - the same job as it is met in reality: traits drawn by its seed. */
void job_spec_harden(struct job_spec *s);
static inline bool job_has(const struct job_spec *s, enum job_trait t)
{
	return s->traits >> t & 1;
}
const char *job_trait_id(enum job_trait t);
/* job_trace_meet - what agents that came late have seen of it: see MET_LATE and NAMELESS. */
void job_trace_meet(struct job_trace *t, const struct job_spec *s, uint32_t per_node);
const char *job_fault_id(enum job_fault f);
