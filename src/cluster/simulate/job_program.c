/* SPDX-License-Identifier: Apache-2.0 */
/* job_program.c - what the workers of a made-up job do in a step, and the jobs that are made up. */
#include "cluster/simulate/job_private.h"

#include <math.h>

#include "base/array.h"
#include "base/hash.h"
#include "wire/ids.h"

#define OPS_MAX      (1 << 20)
#define CLIP_BYTES   4
#define BUCKET_BYTES (25 << 20)
#define LAYER_BYTES  (8 << 20)
#define EMBED_BYTES  (64 << 20)
#define BACKWARD     2.0  /* passes, of a forward pass */
#define OPTIMIZER    0.05 /* of a step */
#define EXPERT_PART  0.4  /* of a pass, where there are experts */
#define TOKEN_BYTES  (4 << 20)
#define ASIDE_SPREAD 0.3 /* lognormal, of what ranks take for a snapshot */

static int add_comm(struct run *r, uint64_t kind, uint32_t index, uint32_t size)
{
	struct comm *m = &r->comms[r->comm_count];

	m->workers = calloc(size, sizeof(*m->workers));
	m->arrived_ns = calloc(size, sizeof(*m->arrived_ns));
	m->bytes = calloc(size, sizeof(*m->bytes));
	r->comm_count++;
	m->size = size;
	m->id = hash_number(r->spec->seed * 31 + kind * 65537 + index + 1) | 1;
	return m->workers && m->arrived_ns && m->bytes ? 0 : -ENOMEM;
}

/* Communicators of one kind: @count of them, of @size workers each. */
static int add_comms(
	struct run *r, uint64_t kind, uint32_t count, uint32_t size, uint32_t *ret_first)
{
	*ret_first = r->comm_count;
	for (uint32_t i = 0; i < count; i++) {
		int e = add_comm(r, kind, i, size);

		if (e < 0)
			return e;
	}
	return 0;
}

static void fill_comms(struct run *r)
{
	const struct job_spec *s = r->spec;

	for (uint32_t i = 0; i < r->worker_count; i++) {
		struct worker *w = &r->workers[i];
		uint32_t data = w->stage * s->tensor + w->place;

		r->comms[r->tensor_comm + w->stage * s->data + w->replica].workers[w->place] = i;
		r->comms[r->data_comm + data].workers[w->replica] = i;
		r->comms[r->expert_comm + data].workers[w->replica] = i;
		r->comms[r->expert_comm + data].exchanges = true;
		r->comms[r->world_comm].workers[i] = i;
		r->comms[r->barrier_comm].workers[i] = i;
		if (w->stage == 0)
			r->comms[r->embedding_comm + w->replica * s->tensor + w->place].workers[0] =
				i;
		if (w->stage == s->pipeline - 1 && s->pipeline > 1)
			r->comms[r->embedding_comm + w->replica * s->tensor + w->place].workers[1] =
				i;
	}
}

static void place_workers(struct run *r)
{
	const struct job_spec *s = r->spec;
	uint64_t pairs = hash_number(s->seed ^ 77) | 1;

	for (uint32_t i = 0; i < r->worker_count; i++) {
		struct worker *w = &r->workers[i];
		uint32_t next = i + s->data * s->tensor;

		w->rank = i;
		w->place = i % s->tensor;
		w->replica = i / s->tensor % s->data;
		w->stage = i / s->tensor / s->data;
		w->state = hash_number(s->seed + (uint64_t)(i + 1) * UINT64_C(0x9e3779b97f4a7c15));
		w->factor = job_draw_factor(&w->state, s->lasting);
		if (w->stage + 1 < s->pipeline) {
			r->channels[2 * i] = (struct channel){.comm = pairs, .from = i, .to = next};
			r->channels[2 * i + 1] =
				(struct channel){.comm = pairs, .from = next, .to = i};
		}
	}
}

/* What is slow: a link from the faulty worker's stage to the next or back, else its tensors' collectives, else
 * its gradients'. */
static void place_slow_link(struct run *r)
{
	const struct job_spec *s = r->spec;
	const struct worker *w = &r->workers[s->faulty[0] % r->worker_count];
	uint32_t first = w->rank;

	r->slow_channel = r->slow_comm = UINT32_MAX;
	if (s->fault != JOB_LINK)
		return;
	if (s->pipeline > 1) {
		if (w->stage + 1 == s->pipeline)
			first -= s->data * s->tensor;
		r->slow_channel = 2 * first + s->link_back;
	} else if (s->tensor > 1) {
		r->slow_comm = r->tensor_comm + w->stage * s->data + w->replica;
	} else {
		r->slow_comm = r->data_comm + w->stage * s->tensor + w->place;
	}
}

int job_layout(struct run *r)
{
	const struct job_spec *s = r->spec;
	uint64_t n = (uint64_t)s->data * s->tensor * s->pipeline;
	uint32_t each = s->data * s->tensor;
	int e;

	if (!n || n > BLAME_WORKERS_MAX || !s->microbatches)
		return -EINVAL;
	r->worker_count = (uint32_t)n;
	r->channel_count = 2 * r->worker_count;
	r->workers = calloc(n, sizeof(*r->workers));
	r->queue = calloc(n, sizeof(*r->queue));
	r->channels = calloc(2 * n, sizeof(*r->channels));
	r->comms = calloc(4 * n + 2, sizeof(*r->comms));
	if (!r->workers || !r->queue || !r->channels || !r->comms)
		return -ENOMEM;
	e = add_comms(r, 1, s->pipeline * s->data, s->tensor, &r->tensor_comm);
	e = e < 0 ? e : add_comms(r, 2, s->pipeline * s->tensor, s->data, &r->data_comm);
	e = e < 0 ? e : add_comms(r, 3, s->pipeline * s->tensor, s->data, &r->expert_comm);
	e = e < 0 ? e : add_comms(r, 4, each, 2, &r->embedding_comm);
	e = e < 0 ? e : add_comms(r, 5, 1, r->worker_count, &r->world_comm);
	e = e < 0 ? e : add_comms(r, 6, 1, r->worker_count, &r->barrier_comm);
	if (e < 0)
		return e;
	place_workers(r);
	fill_comms(r);
	place_slow_link(r);
	return 0;
}

static int add_op(struct worker *w, struct op o)
{
	int e = ARRAY_RESERVE(w->ops, w->op_room, w->op_count + 1, OPS_MAX);

	if (e == 0)
		w->ops[w->op_count++] = o;
	return e;
}

static bool is_faulty(const struct job_spec *s, uint32_t rank)
{
	return EXISTS(i, s->faulty_count, s->faulty[i] == rank);
}

/* How much longer @w computes in @step, by its fault. */
static double fault_factor(const struct job_spec *s, const struct worker *w, uint32_t step)
{
	if (step < s->from_step)
		return 1;
	if (s->fault == JOB_STAGE)
		return w->stage == (uint32_t)s->stage ? 1 + s->amount : 1;
	if (!is_faulty(s, w->rank))
		return 1;
	if (s->fault == JOB_SLOW || s->fault == JOB_GPU)
		return 1 + s->amount;
	return s->fault == JOB_DRIFT ? 1 + s->amount * (step - s->from_step) / s->steps : 1;
}

/* Sequences of a step, and of each of its micro-batches: the same for all stages of a replica. */
static double load_of(
	const struct job_spec *s, const struct worker *w, uint32_t step, uint32_t batch)
{
	uint64_t of_step =
		hash_number(s->seed ^ ((uint64_t)step << 40 | (uint64_t)w->replica << 20));
	uint64_t of_batch = hash_number(of_step + batch + 1);

	if (s->fault != JOB_MOVING || step < s->from_step)
		return 1;
	return job_draw_factor(&of_step, s->amount / 2) * job_draw_factor(&of_batch, s->amount / 2);
}

/* What the expert of @w is sent in a pass, of what it would be if all were sent the same. */
static double tokens_of(
	const struct job_spec *s, const struct worker *w, uint32_t step, uint32_t pass)
{
	uint64_t state = hash_number(
		s->seed ^ hash_number((uint64_t)step << 40 | (uint64_t)pass << 20 | w->rank));
	bool is_hot = s->fault == JOB_EXPERT && step >= s->from_step && is_faulty(s, w->rank);

	return job_draw_factor(&state, s->routing) * (is_hot ? 1 + s->amount : 1);
}

/* One pass over the layers of a stage. */
static int add_pass(struct run *r, struct worker *w, uint32_t step, uint32_t batch, double passes)
{
	const struct job_spec *s = r->spec;
	uint32_t parts = s->tensor > 1 ? MAX(s->layers, 1U) : 1;
	double ns = (double)s->step_ns * passes / (1 + BACKWARD) / s->microbatches;
	bool is_delayed = fault_factor(s, w, step) > 1;
	double tokens = s->experts ? tokens_of(s, w, step, 2 * batch + (passes > 1)) : 1;
	int e = 0;

	is_delayed |= s->fault == JOB_EXPERT && step >= s->from_step && is_faulty(s, w->rank);
	ns *= 1 + EXPERT_PART * (tokens - 1);

	ns *= w->factor * fault_factor(s, w, step) * load_of(s, w, step, batch);
	ns *= w->stage == 0 ? 1 + s->first_extra : 1;
	ns *= w->stage + 1 == s->pipeline ? 1 + s->last_extra : 1;
	if (s->tail > 0 && job_draw(&w->state) < s->tail)
		ns *= 1 + job_draw(&w->state);
	for (uint32_t i = 0; e == 0 && i < parts; i++) {
		e = add_op(w, (struct op){.what = OP_COMPUTE,
				      .delays = is_delayed,
				      .dur_ns = (int64_t)(ns / parts *
							  job_draw_factor(&w->state, s->jitter))});
		if (e == 0 && s->tensor > 1)
			e = add_op(
				w, (struct op){.what = OP_COLLECTIVE,
					   .comm = r->tensor_comm + w->stage * s->data + w->replica,
					   .op = NCCL_ALL_REDUCE,
					   .bytes = LAYER_BYTES});
	}
	if (e == 0 && s->experts && s->data > 1)
		e = add_op(w, (struct op){.what = OP_COLLECTIVE,
				      .comm = r->expert_comm + w->stage * s->tensor + w->place,
				      .bytes = (uint64_t)(TOKEN_BYTES * tokens)});
	return e;
}

static int add_forward(struct run *r, struct worker *w, uint32_t step, uint32_t batch)
{
	uint32_t each = r->spec->data * r->spec->tensor;
	int e = 0;

	if (w->stage > 0)
		e = add_op(w, (struct op){.what = OP_RECEIVE, .channel = 2 * (w->rank - each)});
	e = e < 0 ? e : add_pass(r, w, step, batch, 1);
	if (e == 0 && w->stage + 1 < r->spec->pipeline)
		e = add_op(w, (struct op){.what = OP_SEND, .channel = 2 * w->rank});
	return e;
}

static int add_backward(struct run *r, struct worker *w, uint32_t step, uint32_t batch)
{
	uint32_t each = r->spec->data * r->spec->tensor;
	int e = 0;

	if (w->stage + 1 < r->spec->pipeline)
		e = add_op(w, (struct op){.what = OP_RECEIVE, .channel = 2 * w->rank + 1});
	e = e < 0 ? e : add_pass(r, w, step, batch, BACKWARD);
	if (e == 0 && w->stage > 0)
		e = add_op(w, (struct op){.what = OP_SEND, .channel = 2 * (w->rank - each) + 1});
	return e;
}

static int add_batches(struct run *r, struct worker *w, uint32_t step)
{
	const struct job_spec *s = r->spec;
	uint32_t ahead = MIN(s->pipeline - w->stage - 1, s->microbatches), forward = 0,
		 backward = 0;
	int e = 0;

	ahead = s->fill_first ? s->microbatches : ahead;
	while (e == 0 && forward < ahead)
		e = add_forward(r, w, step, forward++);
	while (e == 0 && backward < s->microbatches) {
		if (forward < s->microbatches)
			e = add_forward(r, w, step, forward++);
		e = e < 0 ? e : add_backward(r, w, step, backward++);
	}
	return e;
}

/* Gradients: data-parallel buckets, the common embedding, clipping. */
static int add_reductions(struct run *r, struct worker *w)
{
	const struct job_spec *s = r->spec;
	uint32_t data = w->stage * s->tensor + w->place;
	int e = 0;

	for (uint32_t i = 0; e == 0 && s->data > 1 && i < s->buckets; i++)
		e = add_op(w, (struct op){.what = OP_COLLECTIVE,
				      .comm = r->data_comm + data,
				      .op = NCCL_ALL_REDUCE,
				      .bytes = BUCKET_BYTES + i * 4096});
	if (e == 0 && s->pipeline > 1 && (w->stage == 0 || w->stage + 1 == s->pipeline))
		e = add_op(w, (struct op){.what = OP_COLLECTIVE,
				      .comm = r->embedding_comm + w->replica * s->tensor + w->place,
				      .op = NCCL_ALL_REDUCE,
				      .bytes = EMBED_BYTES});
	if (e == 0 && s->clips)
		e = add_op(w, (struct op){.what = OP_COLLECTIVE,
				      .comm = r->world_comm,
				      .op = NCCL_ALL_REDUCE,
				      .bytes = CLIP_BYTES});
	return e;
}

static int add_evaluation(struct run *r, struct worker *w)
{
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < 3; i++) {
		e = add_op(w,
			(struct op){.what = OP_COMPUTE, .dur_ns = (int64_t)r->spec->step_ns / 4});
		e = e < 0 ? e
			  : add_op(w, (struct op){.what = OP_COLLECTIVE,
					      .comm = r->world_comm,
					      .op = NCCL_ALL_GATHER,
					      .bytes = 1024});
	}
	return e;
}

/* What ranks do apart from training: nobody's fault. */
static int add_aside(const struct job_spec *s, struct worker *w, uint32_t step)
{
	bool alone = job_has(s, JOB_TRAIT_ALONE);
	double ns = s->aside * (double)s->step_ns;

	if (!s->aside_every || step % s->aside_every != s->aside_every - 1 ||
		(alone && w->rank != 0))
		return 0;
	ns *= alone ? 1 : job_draw_factor(&w->state, ASIDE_SPREAD);
	return add_op(w, (struct op){.what = OP_PAUSE, .dur_ns = (int64_t)ns});
}

int job_program(struct run *r, struct worker *w, uint32_t step)
{
	const struct job_spec *s = r->spec;
	int64_t optimizer =
		(int64_t)((double)s->step_ns * OPTIMIZER * job_draw_factor(&w->state, s->jitter));
	int e = 0;

	if (s->fault == JOB_LATE && is_faulty(s, w->rank) && step >= s->from_step &&
		step % s->period == s->seed % s->period)
		e = add_op(w,
			(struct op){
				.what = OP_PAUSE, .delays = true, .dur_ns = (int64_t)s->late_ns});
	e = e < 0 ? e : add_batches(r, w, step);
	e = e < 0 ? e : add_reductions(r, w);
	if (e == 0 && s->evaluate_every && step % s->evaluate_every == s->evaluate_every - 1)
		e = add_evaluation(r, w);
	if (e == 0 && s->async)
		e = add_op(w, (struct op){.what = OP_SYNC});
	e = e < 0 ? e : add_aside(s, w, step);
	if (e == 0 && job_has(s, JOB_TRAIT_BARRIER))
		e = add_op(w,
			(struct op){
				.what = OP_COLLECTIVE, .comm = r->barrier_comm, .op = HIDDEN_OP});
	return e < 0 ? e : add_op(w, (struct op){.what = OP_COMPUTE, .dur_ns = optimizer});
}
