/* SPDX-License-Identifier: Apache-2.0 */
/* writer_private.h - the store's writer, shared by the files that make it up: writer_push.c (what
 * others call), writer_message.c (messages become rows) and writer.c (the thread). Nobody else
 * includes it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "store/write/writer.h"

#define WRITER_MESSAGE_BYTES (8u << 20)
#define WRITER_BULK_BYTES    (WRITER_MESSAGE_BYTES / 2) /* stacks and ledger leave room for counts */
#define WRITER_ACKS_MAX      16384 /* annotations whose fate nobody has asked for yet: 256 kB */

enum message_kind {
	MESSAGE_AGGREGATE,
	MESSAGE_ROW, /* of nodedb_put() */
	MESSAGE_COLLECTIVE,
	MESSAGE_LEDGER,
	MESSAGE_GPU,
	MESSAGE_PROCESS,
	MESSAGE_STACK,
	MESSAGE_KERNEL,
	MESSAGE_LAYERS,
	MESSAGE_CALL_GAP,
	MESSAGE_PLACE,
	MESSAGE_CPU_LOSSES,
	MESSAGE_ACCOUNTING,
	MESSAGE_INCIDENT,
	MESSAGE_ANNOTATION,
	MESSAGE_RENEWED,
};

struct message {
	struct message *next;
	size_t size;
	enum message_kind kind;
	bool refused; /* by the store, for itself, in the present transaction */
	union {
		struct {
			wall_time bucket;
			uint32_t pid;
			uint16_t op;
			uint8_t source, flags;
			uint64_t stored, estimated, sum_arg0, count, sum, min, max;
		} aggregate;
		enum nodedb_row row;
		struct {
			struct event event;
			struct collective nccl;
		} collective;
		struct {
			uint32_t pid;
			uint64_t start_ticks;
		} owner; /* of the layers */
		struct {
			uint64_t hash;
			size_t ips_len, frames_len, stop_len; /* in data, each with a NUL */
		} stack;
		struct placement place;
		wall_time detected;
		uint64_t generation;
		struct {
			uint64_t ticket;
			int64_t id; /* of its row, or why there is none */
		} annotation;
	};
	size_t len;
	_Alignas(16) unsigned char data[]; /* what the kind says */
};

struct gpu_names {
	char model[128], driver[64], cuda[32];
};

struct writer_end {                     /* what is left to do when everything is written */
	const struct accounting *books; /* the final ones; NULL: none */
	wall_time stopped;
	struct errinfo *reterr;
	int result;
};

struct store_writer {
	struct nodedb *db;
	size_t batch_max;
	unsigned batch_ms;
	void (*begin)(void *arg);
	void *begin_arg;

	pthread_t thread;
	pthread_mutex_t mutex; /* guards the queues, stopping and error */
	pthread_cond_t wake, is_drained;
	struct event *ring;
	size_t ring_size, head, count; /* head: oldest */
	size_t wake_at;                /* the thread is woken when count reaches this */
	struct message *first, **end;
	size_t message_bytes; /* queued and pending */
	bool urgent;          /* somebody waits for a message to be stored */
	struct store_ack *acks;
	size_t ack_count, acks_due; /* told and not yet taken; promised */
	bool stopping, drained;
	struct writer_end *end_due; /* NULL: not yet */
	bool has_error;
	struct errinfo error;

	struct event *batch; /* the thread's own */
	size_t batch_count;
	struct message *pending, **pending_end;
	bool retrying;  /* batch could not be written yet */
	bool draining;  /* stopping, as the thread last saw it */
	bool busy;      /* another batch was waiting already when this one was taken */
	size_t written; /* events of the last transaction */
	struct retention retention;
	bool renews;
	uint64_t renewed;        /* the generation whose rows are all in the file */
	struct accounting books; /* the run's, as last pushed */
	bool has_books;
	uint64_t aggregated[WIRE_SOURCE_MAX]; /* calls in the file by aggregates alone */

	_Atomic uint64_t stored[WIRE_SOURCE_MAX], failed[WIRE_SOURCE_MAX];
	_Atomic uint64_t unaggregated[WIRE_SOURCE_MAX];
	_Atomic uint64_t generation;
	_Atomic uint64_t pruned;
};
static inline unsigned writer_slot(unsigned source)
{
	return source < WIRE_SOURCE_MAX ? source : 0;
}

/* writer_message.c: writes @m inside the open batch. */
int writer_message_write(struct store_writer *w, struct message *m, struct errinfo *reterr);

/* writer_message_calls - the calls that only this aggregate stands for. */
uint64_t writer_message_calls(const struct message *m);
