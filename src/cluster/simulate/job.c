/* SPDX-License-Identifier: Apache-2.0 */
/* questions.c - runs the programs of a made-up job's workers against each other.
 *
 * Each worker has a list of operations for the step it is in. It goes on until it must wait: for a
 * message that was not sent yet, or for the others of a collective; whoever ends that wait puts it back
 * into the queue. Two times are kept for each: the host's, and the GPU's. A host that does not run ahead
 * has one time for both. */
#include "cluster/simulate/job.h"

#include <math.h>

#include "base/array.h"
#include "base/hash.h"
#include "cluster/simulate/job_private.h"
#include "wire/ids.h"

#define CALL_NS          5000 /* a call that does not wait */
#define TRANSFER_NS      300000
#define TRANSFER_LASTING 0.1 /* lognormal, of each link */
#define TRANSFER_JITTER  0.2 /* likewise, of each transfer */
#define CALLS_MAX        (UINT32_C(1) << 27)

double job_draw(uint64_t *state)
{
	*state += UINT64_C(0x9e3779b97f4a7c15);
	return (double)(hash_number(*state) >> 11) / (double)(UINT64_C(1) << 53);
}

/* Lognormal with median 1. */
double job_draw_factor(uint64_t *state, double sigma)
{
	double u = job_draw(state) + 1e-12, v = job_draw(state);

	return sigma > 0 ? exp(sigma * sqrt(-2 * log(u)) * cos(2 * M_PI * v)) : 1;
}

const char *job_fault_id(enum job_fault f)
{
	return LIST_IDS(JOB_FAULTS)[f];
}

void job_trace_done(struct job_trace *t)
{
	free(t->workers);
	free(t->calls);
	*t = (struct job_trace){0};
}

static uint32_t first_pid(const struct job_spec *s)
{
	return s->first_pid ? s->first_pid : 1000;
}

static int emit(const struct run *r, struct worker *w, const struct push_call *c)
{
	int e = ARRAY_RESERVE(w->calls, w->room, w->count + 1, CALLS_MAX);

	if (e < 0)
		return e;
	w->calls[w->count] = *c;
	w->calls[w->count].pid = first_pid(r->spec) + w->rank;
	w->calls[w->count].world_rank = (int32_t)w->rank;
	w->calls[w->count].datatype = UINT16_MAX;
	w->count++;
	return 0;
}

static int64_t arrival(const struct worker *w)
{
	return MAX(w->host_ns, w->gpu_ns);
}

/* A call that began at @enter and whose communication ended at @end on the GPU. */
static int finish_call(
	struct run *r, struct worker *w, struct push_call *c, int64_t enter, int64_t end)
{
	c->enter_ns = enter;
	if (w->delayed)
		r->first_late_ns = MIN(r->first_late_ns, arrival(w));
	w->delayed = false;
	if (r->spec->async) {
		c->leave_ns = enter + CALL_NS;
		c->wait_ns = UINT64_MAX;
		w->host_ns = MAX(w->host_ns, enter + CALL_NS);
		w->gpu_ns = end;
		return emit(r, w, c);
	}
	c->leave_ns = MAX(end, enter + CALL_NS);
	c->wait_ns = r->spec->waits_unknown ? UINT64_MAX : (uint64_t)(c->leave_ns - enter);
	w->host_ns = w->gpu_ns = c->leave_ns;
	return emit(r, w, c);
}

static void wake(struct run *r, uint32_t worker)
{
	if (r->workers[worker].queued || r->workers[worker].ended)
		return;
	r->workers[worker].queued = true;
	r->queue[r->queue_tail++ % r->worker_count] = worker;
}

static void compute(struct run *r, struct worker *w, const struct op *o)
{
	double host_share = r->host_share;

	if ((r->spec->fault == JOB_GPU || r->spec->fault == JOB_EXPERT) && o->delays)
		host_share /= 1 + r->spec->amount; /* it is the GPU that is slow */
	w->posted_ns = w->host_ns;
	if (!r->spec->async) {
		w->host_ns += o->dur_ns;
		w->gpu_ns = w->host_ns;
		return;
	}
	w->gpu_ns = MAX(w->gpu_ns, w->host_ns) + o->dur_ns;
	w->host_ns += (int64_t)((double)o->dur_ns * host_share);
}

/* When the @count-th transfer of @id ends that begins at @at, @who being in it: some links are a bit slower than
 * others, and each takes another time. Drawn from what it is, so that it does not change what workers draw. */
static int64_t transfer_end(struct run *r, int64_t at, uint64_t id, uint64_t count, bool is_slow,
	const struct worker *who)
{
	uint64_t lasting = hash_number(id ^ r->spec->seed), now = hash_number(lasting + count);
	double ns = TRANSFER_NS * job_draw_factor(&lasting, TRANSFER_LASTING) *
		    job_draw_factor(&now, TRANSFER_JITTER);

	/* a worker is in the step before the one that it will begin next */
	if (is_slow && who->step > r->spec->from_step) {
		ns += (double)r->spec->link_ns * job_draw_factor(&now, TRANSFER_JITTER);
		r->first_late_ns = MIN(r->first_late_ns, at + (int64_t)ns);
	}
	return at + (int64_t)ns;
}

static int send(struct run *r, struct worker *w, const struct op *o)
{
	struct channel *ch = &r->channels[o->channel];
	struct push_call c = {.comm = ch->comm,
		.seq = r->spec->seq_per_comm ? w->pair_seq++ : ch->sent,
		.bytes = 1 << 20,
		.rank = (int32_t)w->rank,
		.nranks = (int32_t)r->worker_count,
		.peer = (int32_t)ch->to,
		.op = NCCL_SEND};
	int64_t ready =
		transfer_end(r, arrival(w), o->channel, ch->sent, o->channel == r->slow_channel, w);
	int e = ARRAY_RESERVE(ch->ready_ns, ch->room, ch->sent + 1, CALLS_MAX);

	e = e < 0 ? e : ARRAY_RESERVE(ch->calls, ch->call_room, ch->sent + 1, CALLS_MAX);
	if (e < 0)
		return e;
	ch->calls[ch->sent] = w->count;
	ch->ready_ns[ch->sent++] = ready;
	wake(r, ch->to);
	/* The sender does not wait for the receiver. */
	return finish_call(r, w, &c, w->host_ns, r->spec->async ? w->gpu_ns : w->host_ns + CALL_NS);
}

/* 1: it waits. */
static int receive(struct run *r, struct worker *w, const struct op *o)
{
	struct channel *ch = &r->channels[o->channel];
	struct push_call c = {.comm = ch->comm,
		.bytes = 1 << 20,
		.rank = (int32_t)w->rank,
		.nranks = (int32_t)r->worker_count,
		.peer = (int32_t)ch->from,
		.op = NCCL_RECV};
	int64_t enter, exposed;
	int e;

	if (ch->received == ch->sent)
		return 1;
	enter = job_has(r->spec, JOB_TRAIT_POSTED) && w->posted_ns ? w->posted_ns : w->host_ns;
	c.seq = r->spec->seq_per_comm ? w->pair_seq++ : ch->received;
	if (r->spec->sends_overlap && !r->spec->async) {
		struct push_call *sent = &r->workers[ch->from].calls[ch->calls[ch->received]];

		sent->leave_ns = MAX(arrival(w), ch->ready_ns[ch->received]);
		if (!r->spec->waits_unknown)
			sent->wait_ns = (uint64_t)(sent->leave_ns - sent->enter_ns);
	}
	exposed = w->host_ns;
	e = finish_call(r, w, &c, enter, MAX(arrival(w), ch->ready_ns[ch->received++]));
	if (e == 0 && enter < exposed && w->calls[w->count - 1].wait_ns != UINT64_MAX)
		w->calls[w->count - 1].wait_ns =
			(uint64_t)(w->calls[w->count - 1].leave_ns - exposed);
	return e;
}

/* How much later than the first the @i-th worker sees the end of @m: most are near, few far behind. */
static int64_t end_behind(const struct run *r, const struct comm *m, uint32_t i)
{
	uint64_t state = hash_number(m->id ^ m->seq) + i;
	double u = job_draw(&state);

	return r->spec->ends_ns ? (int64_t)(u * u * u * (double)r->spec->ends_ns) : 0;
}

/* All have come to what nobody records: hosts go on together. */
static void end_hidden(struct run *r, struct comm *m)
{
	int64_t end = 0;

	for (uint32_t i = 0; i < m->size; i++)
		end = MAX(end, r->workers[m->workers[i]].host_ns);
	for (uint32_t i = 0; i < m->size; i++) {
		struct worker *w = &r->workers[m->workers[i]];

		w->host_ns = end;
		w->at++;
		w->held = false;
		wake(r, m->workers[i]);
	}
	m->seq++;
	m->arrived = 0;
}

/* All have come: what each of them sees. */
static int end_collective(struct run *r, struct comm *m)
{
	int64_t end = 0;

	for (uint32_t i = 0; i < m->size; i++)
		end = MAX(end, m->arrived_ns[i]);
	end = transfer_end(r, end, m->id, m->seq, m - r->comms == (ptrdiff_t)r->slow_comm,
		&r->workers[m->workers[0]]);
	for (uint32_t i = 0; i < m->size; i++) {
		struct worker *w = &r->workers[m->workers[i]];
		struct push_call c = {.comm = m->id,
			.seq = m->seq,
			.bytes = w->ops[w->at].bytes,
			.rank = (int32_t)i,
			.nranks = (int32_t)m->size,
			.peer = -1,
			.op = w->ops[w->at].op};
		int e = 0;

		if (m->exchanges) { /* as a group of Sends and Recvs to everybody */
			int64_t enter = w->host_ns;

			for (uint32_t k = 0; e == 0 && k < 2 * m->size; k++) {
				if (k / 2 == i)
					continue;
				c.peer = (int32_t)(k / 2);
				c.op = k % 2 ? NCCL_RECV : NCCL_SEND;
				c.bytes = m->bytes[k % 2 ? i : k / 2];
				e = finish_call(r, w, &c, enter, end + end_behind(r, m, i));
			}
		} else {
			e = finish_call(r, w, &c, w->host_ns, end + end_behind(r, m, i));
		}
		if (e < 0)
			return e;
		w->at++;
		w->held = false;
		wake(r, m->workers[i]);
	}
	m->seq++;
	m->arrived = 0;
	return 0;
}

static int collective(struct run *r, struct worker *w, const struct op *o)
{
	struct comm *m = &r->comms[o->comm];
	uint32_t place = 0;

	while (m->workers[place] != w->rank)
		place++;
	m->arrived_ns[place] = arrival(w);
	m->bytes[place] = o->bytes;
	w->held = true;
	if (++m->arrived < m->size)
		return 1;
	if (o->op == HIDDEN_OP) {
		end_hidden(r, m);
		return 2;
	}
	return end_collective(r, m) < 0 ? -ENOMEM : 2;
}

/* The host waits for the GPU, and its last call is what it waited in. */
static void synchronise(struct worker *w)
{
	if (w->count && w->gpu_ns > w->host_ns) {
		struct push_call *c = &w->calls[w->count - 1];

		c->wait_ns = (uint64_t)(w->gpu_ns - w->host_ns);
		c->leave_ns = w->gpu_ns;
	}
	w->host_ns = w->gpu_ns = MAX(w->host_ns, w->gpu_ns);
}

/* One operation. 0: done; 1: it waits, 2: done and moved on already. */
static int perform(struct run *r, struct worker *w, const struct op *o)
{
	w->delayed |= o->delays;
	switch (o->what) {
	case OP_COMPUTE: compute(r, w, o); return 0;
	case OP_PAUSE: w->host_ns += o->dur_ns; return 0;
	case OP_SEND: return send(r, w, o);
	case OP_RECEIVE: return receive(r, w, o);
	case OP_COLLECTIVE: return collective(r, w, o);
	case OP_SYNC: synchronise(w); return 0;
	}
	return 0;
}

/* Until it waits or its steps are over. */
static int advance(struct run *r, struct worker *w)
{
	while (w->step < r->spec->steps || w->at < w->op_count) {
		int e;

		if (w->at == w->op_count) {
			w->at = w->op_count = 0;
			w->posted_ns = 0;
			if (r->spec->fault == JOB_HANG && w->step == r->spec->from_step &&
				w->rank == r->spec->faulty[0]) {
				w->ended = true;
				return 0;
			}
			e = job_program(r, w, w->step++);
			if (e < 0)
				return e;
			continue;
		}
		e = perform(r, w, &w->ops[w->at]);
		if (e < 0)
			return e;
		if (e == 1)
			return 0;
		w->at += e == 0;
	}
	w->ended = true;
	return 0;
}

static int collect(struct run *r, struct job_trace *ret)
{
	size_t n = 0, at = 0;
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (uint32_t i = 0; i < r->worker_count; i++)
		n += r->workers[i].count;
	ret->workers = calloc(r->worker_count, sizeof(*ret->workers));
	ret->calls = calloc(n + 1, sizeof(*ret->calls));
	if (!ret->workers || !ret->calls)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->worker_count; i++) {
		struct worker *w = &r->workers[i];
		int64_t skew = 0;

		if (r->spec->clock_error_ns)
			skew = (int64_t)((job_draw(&r->state) * 2 - 1) *
					 (double)r->spec->clock_error_ns);
		ret->workers[i] = (struct blame_worker){.rank = (int32_t)i,
			.node = "",
			.pid = first_pid(r->spec) + i,
			.error_ns = r->spec->clock_error_ns};
		for (size_t k = 0; k < w->count; k++) {
			first = MIN(first, w->calls[k].enter_ns);
			last = MAX(last, w->calls[k].leave_ns);
			ret->calls[at] = (struct blame_call){.worker = i, .c = w->calls[k]};
			ret->calls[at].c.enter_ns += skew;
			if (w->calls[k].leave_ns)
				ret->calls[at].c.leave_ns += skew;
			at++;
		}
	}
	ret->worker_count = r->worker_count;
	ret->call_count = n;
	ret->span_ns = n ? (uint64_t)(last - first) : 0;
	return 0;
}

/* The Sends and Recvs of one group: to and from everybody but itself, each like @c. */
static int emit_group(
	const struct run *r, struct worker *w, const struct comm *m, const struct push_call *like)
{
	struct push_call c = *like;
	int e = 0;

	for (uint32_t k = 0; e == 0 && k < 2 * m->size; k++) {
		if (k / 2 == (uint32_t)c.rank)
			continue;
		c.peer = (int32_t)(k / 2);
		c.op = k % 2 ? NCCL_RECV : NCCL_SEND;
		c.bytes = m->bytes[k % 2 ? (uint32_t)c.rank : k / 2];
		e = emit(r, w, &c);
	}
	return e;
}

/* Those who wait for the one that does not come are inside a call that has not ended. */
static int emit_open(struct run *r, struct worker *w)
{
	const struct op *o = &w->ops[w->at];
	struct push_call c = {.wait_ns = UINT64_MAX, .enter_ns = w->host_ns, .peer = -1};
	uint32_t place = 0;

	if (w->at >= w->op_count)
		return 0;
	if (o->what == OP_COLLECTIVE && o->op != HIDDEN_OP) {
		const struct comm *m = &r->comms[o->comm];

		while (m->workers[place] != w->rank)
			place++;
		c.comm = m->id;
		c.seq = m->seq;
		c.rank = (int32_t)place;
		c.nranks = (int32_t)m->size;
		c.op = o->op;
		c.bytes = o->bytes;
		if (m->exchanges)
			return emit_group(r, w, m, &c);
	} else if (o->what == OP_RECEIVE) {
		const struct channel *ch = &r->channels[o->channel];

		c.comm = ch->comm;
		c.seq = r->spec->seq_per_comm ? w->pair_seq : ch->received;
		c.rank = (int32_t)w->rank;
		c.nranks = (int32_t)r->worker_count;
		c.peer = (int32_t)ch->from;
		c.op = NCCL_RECV;
		c.bytes = 1 << 20;
	} else {
		return 0;
	}
	return emit(r, w, &c);
}

static void run_done(struct run *r)
{
	for (uint32_t i = 0; r->workers && i < r->worker_count; i++) {
		free(r->workers[i].calls);
		free(r->workers[i].ops);
	}
	for (uint32_t i = 0; i < r->comm_count; i++) {
		free(r->comms[i].workers);
		free(r->comms[i].arrived_ns);
		free(r->comms[i].bytes);
	}
	for (uint32_t i = 0; r->channels && i < r->channel_count; i++) {
		free(r->channels[i].ready_ns);
		free(r->channels[i].calls);
	}
	free(r->workers);
	free(r->queue);
	free(r->comms);
	free(r->channels);
}

int job_run(const struct job_spec *spec, struct job_trace *ret)
{
	_cleanup_(run_done) struct run r = {.spec = spec,
		.state = spec->seed,
		.host_share = spec->host_share > 0 ? spec->host_share : 0.3,
		.first_late_ns = INT64_MAX};
	_cleanup_(job_trace_done) struct job_trace t = {0};
	int e = job_layout(&r);

	for (uint32_t i = 0; e == 0 && i < r.worker_count; i++)
		wake(&r, i);
	while (e == 0 && r.queue_head != r.queue_tail) {
		struct worker *w = &r.workers[r.queue[r.queue_head++ % r.worker_count]];

		w->queued = false;
		if (!w->ended && !w->held) /* a message wakes nobody from a collective */
			e = advance(&r, w);
	}
	for (uint32_t i = 0; e == 0 && spec->fault == JOB_HANG && i < r.worker_count; i++)
		if (!r.workers[i].ended)
			e = emit_open(&r, &r.workers[i]);
	e = e < 0 ? e : collect(&r, &t);
	if (e < 0)
		return e;
	if (r.slow_comm != UINT32_MAX)
		t.link_comm = r.comms[r.slow_comm].id;
	if (r.slow_channel != UINT32_MAX) {
		t.link_from = r.channels[r.slow_channel].from;
		t.link_to = r.channels[r.slow_channel].to;
	}
	t.first_late_ns = r.first_late_ns == INT64_MAX ? -1 : r.first_late_ns;
	*ret = t;
	t = (struct job_trace){0};
	return 0;
}
