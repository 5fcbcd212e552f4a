/* SPDX-License-Identifier: Apache-2.0 */
/* comm.h - a communicator of the stand-in libnccl: one rank of it.
 *
 * The host's call only puts a batch (what one call or group asks of one communicator and stream) on
 * the stream, as a gate. The communicator's own thread then takes batches in order: when the stream
 * comes to one, it tells the other ranks, waits for them, and opens the gate with the time at which
 * the last has come and the bytes have gone over. */
#pragma once

#include <pthread.h>

#include "meet.h"
#include "nccl_sim.h"

#define COMM_MAGIC    0x0280028002800280ULL
#define COMM_MAX_PAIR 16 /* sends, and receives, of one batch with one peer: half the ring */

enum comm_op {
	COMM_ALL_REDUCE,
	COMM_REDUCE,
	COMM_BROADCAST,
	COMM_ALL_GATHER,
	COMM_REDUCE_SCATTER,
	COMM_ALL_TO_ALL,
	COMM_GATHER,
	COMM_SCATTER,
	COMM_SEND,
	COMM_RECV,
};

/* One call. root, peer and redop are -1 where the call has none. */
struct comm_call {
	enum comm_op op;
	ncclComm_t comm;
	cudaStream_t stream;
	uint64_t count, bytes;
	int datatype, redop, root, peer;
	uint64_t number; /* of the collective, or of the send or receive with this peer; from 1 */
};

struct comm_batch {
	struct sim_gate gate; /* first: the driver knows the batch by it */
	struct comm_batch *next;
	ncclComm_t comm;
	bool is_reached;
	size_t count;
	struct comm_call calls[];
};

enum comm_state { COMM_JOINING, COMM_READY, COMM_FAILED };

struct ncclComm {
	uint64_t start_magic;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	atomic_uint refs; /* the handle, the thread, each batch */
	bool stops;
	enum comm_state state;
	struct comm_batch *head, **tail;
	struct meet meet;
	uint64_t collectives, splits; /* so far */
	uint64_t *sends, *receives;   /* so far, by peer */
	bool nonblocking;
	uint64_t
		hash; /* from here on as in the real one: the order, and what the accessors and the counter show */
	int rank, nranks, device;
	uint64_t
		launched; /* collectives, but for those that the real one makes of sends and receives */
	uint64_t end_magic;
};

/* comm_new - this rank of the communicator called @hash; the thread waits for the others, the
 * caller does not. 0 or -errno. */
int comm_new(uint64_t hash, int rank, int nranks, bool nonblocking, ncclComm_t *ret_comm);

/* comm_wait_ready - ncclSuccess when all ranks have come. */
ncclResult_t comm_wait_ready(ncclComm_t c);
ncclResult_t comm_state(ncclComm_t c); /* the same without waiting: ncclInProgress */

/* comm_is_valid - a communicator that lives, as far as its magic tells. */
bool comm_is_valid(ncclComm_t c);

/* comm_submit - put calls of one communicator and stream on the stream. */
ncclResult_t comm_submit(const struct comm_call *calls, size_t count);

/* comm_flush - wait until every batch has been opened. */
void comm_flush(ncclComm_t c);

/* comm_free - the handle is dead. @aborts: batches that wait are opened as they are; else they are
 * waited for first. */
void comm_free(ncclComm_t c, bool aborts);

/* comm_hash - of a unique id, or any words: the splitmix64 finaliser folded over them. */
uint64_t comm_hash(const void *words, size_t bytes);
