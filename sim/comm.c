// SPDX-License-Identifier: Apache-2.0
/* comm.c - communicators and their threads. Invariants, under a communicator's lock:
 * 1. batches are queued in the order of their calls, and numbered in it;
 * 2. the head is the batch being waited for; it leaves the queue before its gate is opened, after
 *    which only the driver touches it;
 * 3. no lock of this file is held while the driver is called; the driver calls batch_reached() and
 *    batch_placed() with a stream's lock held, and these take only the communicator's. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "coll_log.h"
#include "comm.h"
#include "knob.h"
#include "lane.h"
#include "tally.h"

uint64_t comm_hash(const void *words, size_t bytes)
{
	uint64_t h = 0x9e3779b97f4a7c15ULL, word;

	for (size_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {
		memcpy(&word, (const char *)words + at, sizeof(word));
		h ^= word;
		h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
		h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
		h ^= h >> 31;
	}
	return h;
}

static void unref(ncclComm_t c)
{
	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	meet_close(&c->meet);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c->sends);
	free(c->receives);
	free(c);
}

static void batch_reached(struct sim_gate *g)
{
	struct comm_batch *b = (struct comm_batch *)g;
	ncclComm_t c = b->comm;

	pthread_mutex_lock(&c->lock);
	b->is_reached = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void batch_placed(struct sim_gate *g)
{
	ncclComm_t c = ((struct comm_batch *)g)->comm;

	free(g);
	unref(c);
}

static void pairs_start(ncclComm_t c, const struct comm_batch *b, uint64_t at_ns)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct comm_call *call = &b->calls[i];

		if (call->op == COMM_SEND)
			meet_send(&c->meet, call->peer, call->number, at_ns);
		else if (call->op == COMM_RECV)
			meet_receive(&c->meet, call->peer, call->number, at_ns);
	}
}

/* True if another rank called something else at the same place; each such rank gets a line. */
static bool mismatch_report(ncclComm_t c, const struct comm_call *call, const struct meet_call *own)
{
	bool found = false;

	for (int r = 0; r < c->nranks; r++) {
		const struct meet_call *other = &meet_arrival_of(&c->meet, r, call->number)->call;

		if (other->op == own->op && other->count == own->count &&
			other->datatype == own->datatype && other->redop == own->redop &&
			other->root == own->root)
			continue;
		coll_log_mismatch(call, r, other);
		found = true;
	}
	return found;
}

/* Arrive, wait for the others; false if the communicator was aborted, or hangs for good. */
static bool collective_meet(
	ncclComm_t c, const struct comm_call *call, uint64_t at_ns, uint64_t *ret_last_ns)
{
	struct meet_call own = {
		.op = (int)call->op,
		.datatype = call->datatype,
		.redop = call->redop,
		.root = call->root,
		.count = call->count,
	};

	meet_arrive(&c->meet, call->number, at_ns, &own);
	if (!meet_all_arrived(&c->meet, call->number, ret_last_ns))
		return false;
	if (mismatch_report(c, call, &own) && knob_get()->nccl_mismatch_hangs) {
		pthread_mutex_lock(&c->lock);
		while (!c->stops)
			pthread_cond_wait(&c->changed, &c->lock);
		pthread_mutex_unlock(&c->lock);
		return false;
	}
	return true;
}

static bool call_meet(
	ncclComm_t c, const struct comm_call *call, uint64_t at_ns, uint64_t *ret_last_ns)
{
	switch (call->op) {
	case COMM_SEND: return meet_sent(&c->meet, call->peer, call->number, ret_last_ns);
	case COMM_RECV: return meet_received(&c->meet, call->peer, call->number, ret_last_ns);
	default: return collective_meet(c, call, at_ns, ret_last_ns);
	}
}

/* Sends and receives of a batch go over at the same time, collectives one after the other. Returns
 * the end in this process's clock; of an aborted batch: now. */
static uint64_t batch_meet(ncclComm_t c, const struct comm_batch *b)
{
	int64_t offset = meet_clock_offset_ns();
	uint64_t at_ns = b->gate.start_ns - (uint64_t)offset, end_ns = at_ns, chain_ns = at_ns;

	pairs_start(c, b, at_ns);
	for (size_t i = 0; i < b->count; i++) {
		const struct comm_call *call = &b->calls[i];
		uint64_t dur_ns = lane_transfer_ns(call->bytes, knob_get()->nccl_rate), last, end;

		if (!call_meet(c, call, at_ns, &last)) {
			coll_log_pending(call, at_ns, tally_now_ns() - (uint64_t)offset);
			end_ns = tally_now_ns() - (uint64_t)offset;
			continue;
		}
		coll_log_done(call, at_ns, last);
		end = last + dur_ns;
		if (call->op < COMM_SEND)
			end = chain_ns = (last > chain_ns ? last : chain_ns) + dur_ns;
		end_ns = end > end_ns ? end : end_ns;
	}
	return end_ns + (uint64_t)offset;
}

/* The next batch that its stream has come to, off the queue; NULL when it is time to stop. Stopping
 * takes the batches that are left one by one, come to or not. */
static struct comm_batch *batch_next(ncclComm_t c)
{
	struct comm_batch *b;

	pthread_mutex_lock(&c->lock);
	while (!c->stops && !(c->head && c->head->is_reached))
		pthread_cond_wait(&c->changed, &c->lock);
	b = c->head;
	pthread_mutex_unlock(&c->lock);
	return b;
}

static void batch_open(ncclComm_t c, struct comm_batch *b, uint64_t end_ns)
{
	pthread_mutex_lock(&c->lock);
	c->head = b->next;
	if (!c->head)
		c->tail = &c->head;
	pthread_mutex_unlock(&c->lock);
	sim_gate_open(&b->gate, end_ns);
	pthread_mutex_lock(&c->lock);
	pthread_cond_broadcast(&c->changed); /* for comm_flush() */
	pthread_mutex_unlock(&c->lock);
}

static void *thread_run(void *arg)
{
	ncclComm_t c = arg;
	struct comm_batch *b;
	bool joined;

	pthread_setname_np(pthread_self(), "sim-nccl");
	joined = meet_join(&c->meet);
	pthread_mutex_lock(&c->lock);
	c->state = joined ? COMM_READY : COMM_FAILED;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	while ((b = batch_next(c)) != NULL)
		batch_open(c, b, b->is_reached ? batch_meet(c, b) : tally_now_ns());
	unref(c);
	return NULL;
}

static int thread_start(ncclComm_t c)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&c->thread, NULL, thread_run, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -r;
}

int comm_new(uint64_t hash, int rank, int nranks, bool nonblocking, ncclComm_t *ret_comm)
{
	ncclComm_t c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	c->refs = 2; /* the handle's, and the thread's */
	c->tail = &c->head;
	c->hash = hash;
	c->rank = rank;
	c->nranks = nranks;
	c->nonblocking = nonblocking;
	c->start_magic = c->end_magic = COMM_MAGIC;
	r = nranks > 0 && nranks <= MEET_MAX_RANKS ? 0 : -EINVAL;
	if (r == 0) {
		c->sends = calloc((size_t)nranks, sizeof(*c->sends));
		c->receives = calloc((size_t)nranks, sizeof(*c->receives));
		r = c->sends && c->receives ? meet_open(&c->meet, hash, rank, nranks) : -ENOMEM;
	}
	if (r == 0 && cudaGetDevice(&c->device) != SIM_SUCCESS)
		r = -ENODEV;
	if (r == 0)
		r = thread_start(c);
	if (r < 0) {
		c->refs = 1;
		unref(c);
		return r;
	}
	*ret_comm = c;
	return 0;
}

static ncclResult_t state_result(enum comm_state s)
{
	return s == COMM_READY ? ncclSuccess : s == COMM_FAILED ? ncclSystemError : ncclInProgress;
}

ncclResult_t comm_state(ncclComm_t c)
{
	ncclResult_t r;

	pthread_mutex_lock(&c->lock);
	r = state_result(c->state);
	pthread_mutex_unlock(&c->lock);
	return r;
}

ncclResult_t comm_wait_ready(ncclComm_t c)
{
	ncclResult_t r;

	pthread_mutex_lock(&c->lock);
	while (c->state == COMM_JOINING)
		pthread_cond_wait(&c->changed, &c->lock);
	r = state_result(c->state);
	pthread_mutex_unlock(&c->lock);
	return r;
}

bool comm_is_valid(ncclComm_t c)
{
	return c && c->start_magic == COMM_MAGIC;
}

static struct comm_batch *batch_new(const struct comm_call *calls, size_t count)
{
	struct comm_batch *b = calloc(1, sizeof(*b) + count * sizeof(*calls));

	if (!b)
		return NULL;
	b->gate = (struct sim_gate){
		.magic = SIM_GATE_MAGIC,
		.reached = batch_reached,
		.placed = batch_placed,
	};
	b->comm = calls[0].comm;
	b->count = count;
	memcpy(b->calls, calls, count * sizeof(*calls));
	return b;
}

static void call_number(ncclComm_t c, struct comm_call *call)
{
	if (call->op == COMM_SEND)
		call->number = ++c->sends[call->peer];
	else if (call->op == COMM_RECV)
		call->number = ++c->receives[call->peer];
	else
		call->number = ++c->collectives;
}

struct plan { /* what one launch holds */
	int collectives;
};

/* Tracers that come late read from this code where the counter is: it has the real function's name, which is local. */
static void count_launched(ncclComm_t c, const struct plan *plan) __asm__(
	"_ZL14uploadProxyOpsP8ncclCommP14ncclKernelPlan");
static __attribute__((noinline)) void count_launched(ncclComm_t c, const struct plan *plan)
{
	c->launched += (uint64_t)plan->collectives;
}

static bool is_counted(const struct comm_call *call)
{
	return call->op <= COMM_REDUCE_SCATTER && call->count;
}

static bool pairs_fit(const struct comm_call *calls, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t alike = 0;

		if (calls[i].op < COMM_SEND)
			continue;
		for (size_t k = 0; k < count; k++)
			alike += calls[k].op == calls[i].op && calls[k].peer == calls[i].peer;
		if (alike > COMM_MAX_PAIR)
			return false;
	}
	return true;
}

ncclResult_t comm_submit(const struct comm_call *calls, size_t count)
{
	CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, calls[0].stream, NULL, 0};
	ncclComm_t c = calls[0].comm;
	struct plan plan = {0};
	struct comm_batch *b;

	if (!pairs_fit(calls, count))
		return ncclInvalidUsage;
	b = batch_new(calls, count);
	if (!b)
		return ncclSystemError;
	atomic_fetch_add(&c->refs, 1);
	if (cuLaunchKernelEx(&config, (CUfunction)(void *)&b->gate, NULL, NULL) != SIM_SUCCESS) {
		free(b);
		unref(c);
		return ncclUnhandledCudaError;
	}
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < count; i++) {
		call_number(c, &b->calls[i]);
		plan.collectives += is_counted(&b->calls[i]);
	}
	count_launched(c, &plan);
	*c->tail = b;
	c->tail = &b->next;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return ncclSuccess;
}

void comm_flush(ncclComm_t c)
{
	pthread_mutex_lock(&c->lock);
	while (c->head)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

void comm_free(ncclComm_t c, bool aborts)
{
	if (!aborts)
		comm_flush(c);
	pthread_mutex_lock(&c->lock);
	c->start_magic = 0;
	c->stops = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	meet_give_up(&c->meet);
	pthread_join(c->thread, NULL);
	unref(c);
}
