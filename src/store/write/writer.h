/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h - the thread that owns the store while tracing.
 *
 * Others push; nobody waits: a push that finds no room returns false and the caller counts the
 * loss (LOSS_QUEUE_FULL). Pushing is safe from several threads. What was accepted is stored, or
 * counted as failed, exactly; the counters below may be read at any time from any thread. */
#pragma once

#include "store/nodedb.h"
#include "store/write/retention.h"

struct store_writer;

struct store_writer_config { /* 0: the default */
	size_t queue_events; /* default 32768: 6 MB, and 0.1 s at 300,000 events/s */
	size_t batch_events; /* per transaction; default 5000 */
	unsigned batch_ms;   /* longest time an event waits for its transaction; default 100 */
	struct retention_config retention; /* 0: the store grows without limit */
	bool renews;              /* a new generation is answered by store_writer_push_renewed() */
	void (*begin)(void *arg); /* the thread calls it before anything else */
	void *begin_arg;
};

/* store_writer_start - takes over @db, whose session @session has begun, and starts the thread.
 * On failure @db is still the caller's. */
int store_writer_start(struct nodedb *db, int64_t session, const struct store_writer_config *config,
	struct store_writer **ret_writer, struct errinfo *reterr);

bool store_writer_push(struct store_writer *w, const struct event *e);

/* store_writer_push_aggregate - the gain of a 5 s bucket; its minute gets it in the same
 * transaction. */
bool store_writer_push_aggregate(struct store_writer *w, const struct aggregate *a);

/* store_writer_push_row - a row of nodedb_put(). Texts have the room that stacks have. */
#define store_writer_push_row(w, row) store_writer_push_of(w, NODEDB_ROW(row), row, sizeof(*(row)))
bool store_writer_push_of(
	struct store_writer *w, enum nodedb_row which, const void *row, size_t bytes);

/* store_writer_push_ledger - a record of source HOST: it ends in store_writer_stored() or _failed()
 * like an event. Together with stacks it gets half of the room that messages have. */
bool store_writer_push_ledger(struct store_writer *w, const struct ledger_row *row);

/* store_writer_push_gpu - what the driver says of itself, for the session's row. */
bool store_writer_push_gpu(
	struct store_writer *w, const char *model, const char *driver, const char *cuda);
bool store_writer_push_collective(
	struct store_writer *w, const struct event *e, const struct collective *c);
bool store_writer_push_process(
	struct store_writer *w, const struct process *p, const char *cmdline);

/* store_writer_push_stack - its texts are copied. Stacks get half of the room that messages have,
 * so that a flood of them cannot displace counts. */
bool store_writer_push_stack(struct store_writer *w, const struct stack *s);

/* store_writer_push_kernel - its name and how many more launches it had, with the room that stacks have. */
bool store_writer_push_kernel(struct store_writer *w, const struct kernel_row *k);
bool store_writer_push_layers(
	struct store_writer *w, uint32_t pid, uint64_t start_ticks, const struct process_layers *l);
bool store_writer_push_place(struct store_writer *w, struct placement place); /* of the session */
bool store_writer_push_call_gap(struct store_writer *w, const struct call_gap *g);
bool store_writer_push_cpu_losses(struct store_writer *w, const struct cpu_losses *l);
bool store_writer_push_incident(
	struct store_writer *w, const struct incident *i, wall_time detected);

/* The books so far; the final ones are written by store_writer_stop(). */
bool store_writer_push_accounting(struct store_writer *w, const struct accounting *a);

/* store_writer_push_annotation - its fate is told under @ticket by store_writer_take_acks(), after
 * the commit: a process that is killed from then on does not lose it. */
bool store_writer_push_annotation(
	struct store_writer *w, const struct annotation *a, uint64_t ticket);

struct store_ack {
	uint64_t ticket;
	int64_t id; /* of the row; negative errno: it could not be stored */
};
size_t store_writer_take_acks(struct store_writer *w, struct store_ack *out, size_t max);

/* store_writer_generation - changes whenever rows that are pushed only once (processes, stacks) may
 * not be in the file any more, because it is a new one or they were pruned: push them again. */
uint64_t store_writer_generation(const struct store_writer *w);

/* store_writer_push_renewed - all of them have been pushed again for @generation. Where that was
 * promised (config.renews), a file is not rolled over before: it would lack them. */
bool store_writer_push_renewed(struct store_writer *w, uint64_t generation);

uint64_t store_writer_stored(const struct store_writer *w, unsigned source); /* committed */
uint64_t store_writer_failed(const struct store_writer *w, unsigned source); /* LOSS_WRITE_FAILED */

/* store_writer_unaggregated - calls that only an aggregate stood for (5 s buckets, count - stored - estimated)
 * which could not be written: they are no longer `aggregated` but LOSS_WRITE_FAILED too. */
uint64_t store_writer_unaggregated(const struct store_writer *w, unsigned source);

/* store_writer_error - the sentence of the newest failure. False: none yet. */
bool store_writer_error(struct store_writer *w, struct errinfo *ret);

uint64_t store_writer_size(const struct store_writer *w); /* bytes on disk, see nodedb_size() */

/* store_writer_pruned - rows deleted to keep the store within its size. */
uint64_t store_writer_pruned(const struct store_writer *w);

/* Fills in the final books; called once nothing is under way, so that the counters are final. */
typedef void store_writer_books(const struct store_writer *w, struct accounting *ret, void *arg);

/* store_writer_stop - writes all that was pushed, then the final books, ends the session,
 * checkpoints and closes the store. Frees @w in any case. Returns 0, or the first failure of these
 * last steps (failed events are in the books, not here). */
int store_writer_stop(struct store_writer *w, store_writer_books *books, void *arg,
	wall_time stopped, struct errinfo *reterr);
