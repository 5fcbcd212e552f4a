/* SPDX-License-Identifier: Apache-2.0 */
/* job_private.h - a running job: questions.c moves time, job_program.c says what workers do. */
#pragma once

#include "cluster/simulate/job.h"

enum op_what { OP_COMPUTE, OP_PAUSE, OP_SEND, OP_RECEIVE, OP_COLLECTIVE, OP_SYNC };

#define HIDDEN_OP UINT16_MAX /* a collective that is not recorded */

struct op {
	enum op_what what;
	bool delays; /* it takes longer than without the fault */
	int64_t dur_ns;
	uint32_t channel, comm;
	uint64_t bytes;
	uint16_t op;
};

struct comm {
	uint64_t id, seq;
	uint32_t *workers;
	int64_t *arrived_ns;
	uint64_t *bytes; /* that each is sent, of one that exchanges */
	uint32_t size, arrived;
	bool exchanges;
};

struct channel { /* messages from one worker to another */
	uint64_t comm;
	uint32_t from, to;
	int64_t *ready_ns;
	size_t *calls; /* of the sender, for each message */
	size_t sent, received, room, call_room;
};

struct worker {
	uint32_t rank, stage, replica, place;
	double factor;  /* its lasting speed */
	uint64_t state; /* of its chance */
	int64_t host_ns, gpu_ns;
	int64_t posted_ns; /* before its last computation in this step: when the next Recv was posted; 0: none */
	struct op *ops; /* of the step it is in */
	size_t op_count, op_room, at;
	uint32_t step;
	uint64_t pair_seq;
	struct push_call *calls;
	size_t count, room;
	bool queued, ended;
	bool held; /* in a collective */
	bool delayed; /* it has computed or paused longer than without its fault, since its last call */
};

struct run {
	const struct job_spec *spec;
	uint64_t state;
	double host_share; /* of a computation that the host needs to start it */
	int64_t first_late_ns;
	struct worker *workers;
	uint32_t worker_count;
	uint32_t *queue;
	size_t queue_head, queue_tail;
	struct comm *comms;
	uint32_t comm_count;
	struct channel *channels; /* [worker * 2]: forward, [worker * 2 + 1]: backward */
	uint32_t channel_count;
	uint32_t slow_channel, slow_comm; /* LINK; UINT32_MAX: none */
	uint32_t tensor_comm, data_comm, expert_comm, embedding_comm, world_comm,
		barrier_comm; /* the first of each */
};

/* job_layout - workers and communicators. -ENOMEM, -EINVAL. */
int job_layout(struct run *r);
/* job_program - what @w does in @step, appended to its operations. */
int job_program(struct run *r, struct worker *w, uint32_t step);

double job_draw(uint64_t *state); /* 0..1 */
double job_draw_factor(uint64_t *state, double sigma);
