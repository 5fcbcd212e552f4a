/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c - the store's thread: takes events and messages off two bounded queues and writes them
 * in transactions of 5000 events or 100 ms.
 *
 * Queues: events in a ring (copied in and out under one mutex: 70 ns a push, no wake-up per event),
 * messages in a list with a ceiling in bytes, aggregates with their histogram already encoded.
 *
 * Invariants:
 *  1. An accepted event ends in exactly one of stored[] and failed[], counted after its commit.
 *  2. A transaction that failed for want of space or by a disk error is tried again every batch_ms
 *     as long as the queue has room for what comes meanwhile (at most half full); then its events
 *     are counted as failed. Messages are kept until they are written or the writer stops.
 *  3. A row the store refuses for itself is dropped and counted alone; the others go on.
 *  4. The store is touched by the thread only, from start to its end.
 *  5. Upkeep (upkeep.h) comes between transactions, in portions; while another batch waits already,
 *     a portion is no more than twice what was just written, so that it keeps up and no more. */
#include "agent/store/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define QUEUE_EVENTS    32768
#define BATCH_EVENTS    5000
#define BATCH_MS        100
#define MESSAGE_BYTES   (8u << 20)
#define MESSAGE_CMDLINE 4096
#define ACKS_MAX        16384 /* annotations whose fate nobody has asked for yet: 256 kB */
#define UPKEEP_ROWS     1000
#define UPKEEP_END_NS   (2 * NS_PER_S) /* for what is left to prune when tracing ends */

enum message_kind {
	MESSAGE_AGGREGATE,
	MESSAGE_SAMPLE,
	MESSAGE_COLLECTIVE,
	MESSAGE_GPU_SAMPLE,
	MESSAGE_GPU,
	MESSAGE_PROCESS,
	MESSAGE_CGROUP,
	MESSAGE_LAYERS,
	MESSAGE_PLACE,
	MESSAGE_CPU_LOSSES,
	MESSAGE_ACCOUNTING,
	MESSAGE_INCIDENT,
	MESSAGE_ANNOTATION,
};

struct message {
	struct message *next;
	size_t size;
	enum message_kind kind;
	union {
		struct {
			wall_time bucket;
			uint32_t pid;
			uint16_t op;
			uint8_t source, flags;
			uint64_t stored, sum_arg0, count, sum, min, max;
		} aggregate;
		struct host_sample sample;
		struct {
			struct event event;
			struct collective nccl;
		} collective;
		struct {
			uint32_t pid;
			uint64_t start_ticks;
		} owner; /* of the layers */
		struct placement place;
		wall_time detected;
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

struct store_writer {
	struct nodedb *db;
	size_t batch_max;
	unsigned batch_ms;

	pthread_t thread;
	pthread_mutex_t mutex; /* guards the queues, stopping and error */
	pthread_cond_t wake;
	struct event *ring;
	size_t ring_size, head, count; /* head: oldest */
	size_t wake_at;                /* the thread is woken when count reaches this */
	struct message *first, **end;
	size_t message_bytes; /* queued and pending */
	bool urgent;          /* somebody waits for a message to be stored */
	struct store_ack *acks;
	size_t ack_count, acks_due; /* told and not yet taken; promised */
	bool stopping;
	bool has_error;
	struct errinfo error;

	struct event *batch; /* the thread's own */
	size_t batch_count;
	struct message *pending, **pending_end;
	bool retrying;  /* batch could not be written yet */
	bool draining;  /* stopping, as the thread last saw it */
	bool busy;      /* another batch was waiting already when this one was taken */
	size_t written; /* events of the last transaction */
	struct upkeep upkeep;
	struct accounting books; /* the run's, as last pushed */

	_Atomic uint64_t stored[WIRE_SOURCE_MAX], failed[WIRE_SOURCE_MAX];
	_Atomic uint64_t unaggregated[WIRE_SOURCE_MAX];
	_Atomic uint64_t generation;
};

static unsigned slot_of(unsigned source)
{
	return source < WIRE_SOURCE_MAX ? source : 0;
}

/* ---- pushing ---- */

bool store_writer_push(struct store_writer *w, const struct event *e)
{
	bool wake = false, room;

	pthread_mutex_lock(&w->mutex);
	room = w->count < w->ring_size && !w->stopping;
	if (room) {
		w->ring[(w->head + w->count) % w->ring_size] = *e;
		wake = ++w->count == w->wake_at;
	}
	pthread_mutex_unlock(&w->mutex);
	if (wake)
		pthread_cond_signal(&w->wake);
	return room;
}

static struct message *message_new(enum message_kind kind, const void *data, size_t len)
{
	struct message *m = calloc(1, sizeof(*m) + len);

	if (!m)
		return NULL;
	m->size = sizeof(*m) + len;
	m->kind = kind;
	m->len = len;
	if (data)
		memcpy(m->data, data, len);
	return m;
}

static bool push_message(struct store_writer *w, struct message *m)
{
	bool room;

	if (!m)
		return false;
	pthread_mutex_lock(&w->mutex);
	room = !w->stopping && w->message_bytes + m->size <= MESSAGE_BYTES;
	if (room) {
		w->message_bytes += m->size;
		*w->end = m;
		w->end = &m->next;
	}
	pthread_mutex_unlock(&w->mutex);
	if (!room)
		free(m);
	return room;
}

bool store_writer_push_aggregate(struct store_writer *w, const struct aggregate *a)
{
	uint8_t blob[SKETCH_BLOB_MAX];
	struct message *m = message_new(MESSAGE_AGGREGATE, blob, sketch_encode(&a->sketch, blob));

	if (!m)
		return false;
	m->aggregate.bucket = a->bucket;
	m->aggregate.pid = a->pid;
	m->aggregate.op = a->op;
	m->aggregate.source = a->source;
	m->aggregate.flags = a->flags;
	m->aggregate.stored = a->stored;
	m->aggregate.sum_arg0 = a->sum_arg0;
	m->aggregate.count = a->sketch.count;
	m->aggregate.sum = a->sketch.sum;
	m->aggregate.min = a->sketch.min;
	m->aggregate.max = a->sketch.max;
	return push_message(w, m);
}

bool store_writer_push_sample(struct store_writer *w, const struct host_sample *s)
{
	struct message *m = message_new(MESSAGE_SAMPLE, NULL, 0);

	if (m)
		m->sample = *s;
	return push_message(w, m);
}

bool store_writer_push_gpu_sample(struct store_writer *w, const struct gpu_sample *s)
{
	return push_message(w, message_new(MESSAGE_GPU_SAMPLE, s, sizeof(*s)));
}

bool store_writer_push_gpu(
	struct store_writer *w, const char *model, const char *driver, const char *cuda)
{
	struct gpu_names names;

	snprintf(names.model, sizeof(names.model), "%s", model);
	snprintf(names.driver, sizeof(names.driver), "%s", driver);
	snprintf(names.cuda, sizeof(names.cuda), "%s", cuda);
	return push_message(w, message_new(MESSAGE_GPU, &names, sizeof(names)));
}

bool store_writer_push_collective(
	struct store_writer *w, const struct event *e, const struct collective *c)
{
	struct message *m = message_new(MESSAGE_COLLECTIVE, NULL, 0);

	if (m) {
		m->collective.event = *e;
		m->collective.nccl = *c;
	}
	return push_message(w, m);
}

bool store_writer_push_process(struct store_writer *w, const struct process *p, const char *cmdline)
{
	size_t len = cmdline ? strnlen(cmdline, MESSAGE_CMDLINE - 1) : 0;
	struct message *m = message_new(MESSAGE_PROCESS, NULL, sizeof(*p) + len + 1);

	if (!m)
		return false;
	memcpy(m->data, p, sizeof(*p));
	if (len)
		memcpy(m->data + sizeof(*p), cmdline, len);
	return push_message(w, m);
}

bool store_writer_push_cgroup(struct store_writer *w, const struct cgroup_row *c)
{
	return push_message(w, message_new(MESSAGE_CGROUP, c, sizeof(*c)));
}

bool store_writer_push_layers(
	struct store_writer *w, uint32_t pid, uint64_t start_ticks, const struct process_layers *l)
{
	struct message *m = message_new(MESSAGE_LAYERS, l, sizeof(*l));

	if (!m)
		return false;
	m->owner.pid = pid;
	m->owner.start_ticks = start_ticks;
	return push_message(w, m);
}

bool store_writer_push_place(struct store_writer *w, struct placement place)
{
	struct message *m = message_new(MESSAGE_PLACE, NULL, 0);

	if (m)
		m->place = place;
	return push_message(w, m);
}

bool store_writer_push_cpu_losses(struct store_writer *w, const struct cpu_losses *l)
{
	return push_message(w, message_new(MESSAGE_CPU_LOSSES, l, sizeof(*l)));
}

bool store_writer_push_incident(
	struct store_writer *w, const struct incident *i, wall_time detected)
{
	struct message *m = message_new(MESSAGE_INCIDENT, i, sizeof(*i));

	if (m)
		m->detected = detected;
	return push_message(w, m);
}

bool store_writer_push_accounting(struct store_writer *w, const struct accounting *a)
{
	return push_message(w, message_new(MESSAGE_ACCOUNTING, a, sizeof(*a)));
}

bool store_writer_push_annotation(
	struct store_writer *w, const struct annotation *a, uint64_t ticket)
{
	size_t len = offsetof(struct annotation, labels) + strnlen(a->labels, sizeof(a->labels));
	struct message *m;
	bool room;

	pthread_mutex_lock(&w->mutex);
	if (!w->acks)
		w->acks = calloc(ACKS_MAX, sizeof(*w->acks));
	room = w->acks && w->acks_due < ACKS_MAX;
	w->acks_due += room;
	pthread_mutex_unlock(&w->mutex);
	if (!room)
		return false;
	m = message_new(MESSAGE_ANNOTATION, a, len);
	if (m)
		m->annotation.ticket = ticket;
	room = push_message(w, m);
	pthread_mutex_lock(&w->mutex);
	w->acks_due -= !room;
	w->urgent = w->urgent || room;
	pthread_mutex_unlock(&w->mutex);
	pthread_cond_signal(&w->wake);
	return room;
}

size_t store_writer_take_acks(struct store_writer *w, struct store_ack *out, size_t max)
{
	size_t n;

	pthread_mutex_lock(&w->mutex);
	n = MIN(max, w->ack_count);
	if (n) {
		memcpy(out, w->acks, n * sizeof(*out));
		memmove(w->acks, w->acks + n, (w->ack_count - n) * sizeof(*out));
		w->ack_count -= n;
		w->acks_due -= n;
	}
	pthread_mutex_unlock(&w->mutex);
	return n;
}

/* ---- counters ---- */

uint64_t store_writer_generation(const struct store_writer *w)
{
	return atomic_load(&w->generation);
}

uint64_t store_writer_stored(const struct store_writer *w, unsigned source)
{
	return atomic_load(&w->stored[slot_of(source)]);
}

uint64_t store_writer_failed(const struct store_writer *w, unsigned source)
{
	return atomic_load(&w->failed[slot_of(source)]);
}

uint64_t store_writer_unaggregated(const struct store_writer *w, unsigned source)
{
	return atomic_load(&w->unaggregated[slot_of(source)]);
}

uint64_t store_writer_size(const struct store_writer *w)
{
	return nodedb_size(w->db);
}

bool store_writer_error(struct store_writer *w, struct errinfo *ret)
{
	bool has;

	pthread_mutex_lock(&w->mutex);
	has = w->has_error;
	if (has)
		*ret = w->error;
	pthread_mutex_unlock(&w->mutex);
	return has;
}

static void keep_error(struct store_writer *w, const struct errinfo *err)
{
	pthread_mutex_lock(&w->mutex);
	w->error = *err;
	w->has_error = true;
	pthread_mutex_unlock(&w->mutex);
}

/* ---- the thread ---- */

/* Reasons that lie in the disk and may pass, as against a row that is refused for itself. */
static bool may_pass(int r)
{
	return r == -ENOSPC || r == -EIO || r == -EBUSY || r == -ENOMEM || r == -EROFS ||
	       r == -EACCES;
}

static void count_row(_Atomic uint64_t *counters, unsigned source)
{
	atomic_fetch_add_explicit(&counters[slot_of(source)], 1, memory_order_relaxed);
}

/* One transaction for the batch. Rows the store refused have seq 0 afterwards. */
static int write_batch(struct store_writer *w, struct errinfo *reterr)
{
	int r = nodedb_batch_begin(w->db, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < w->batch_count; i++) {
		w->batch[i].seq = 0;
		r = nodedb_put_event(w->db, &w->batch[i], reterr);
		if (r < 0 && may_pass(r)) {
			nodedb_batch_rollback(w->db);
			return r;
		}
		if (r < 0)
			keep_error(w, reterr);
	}
	return nodedb_batch_commit(w->db, reterr);
}

static bool should_retry(struct store_writer *w)
{
	bool retry;

	pthread_mutex_lock(&w->mutex);
	retry = !w->draining && w->count <= w->ring_size / 2;
	pthread_mutex_unlock(&w->mutex);
	return retry;
}

static void flush_events(struct store_writer *w)
{
	struct errinfo err = {0};
	int r;

	if (!w->batch_count)
		return;
	r = write_batch(w, &err);
	w->retrying = r < 0;
	if (r < 0) {
		keep_error(w, &err);
		if (may_pass(r) && should_retry(w))
			return;
	}
	w->written = w->batch_count;
	for (size_t i = 0; i < w->batch_count; i++)
		count_row(r >= 0 && w->batch[i].seq ? w->stored : w->failed, w->batch[i].source);
	w->batch_count = 0;
}

static int write_aggregate(struct store_writer *w, const struct message *m, struct errinfo *reterr)
{
	struct aggregate a = {
		.bucket = m->aggregate.bucket,
		.pid = m->aggregate.pid,
		.source = m->aggregate.source,
		.flags = m->aggregate.flags,
		.op = m->aggregate.op,
		.stored = m->aggregate.stored,
		.sum_arg0 = m->aggregate.sum_arg0,
	};
	int r = sketch_decode(&a.sketch, m->data, m->len);

	if (r < 0)
		return r;
	a.sketch.count = m->aggregate.count;
	a.sketch.sum = m->aggregate.sum;
	a.sketch.min = m->aggregate.min;
	a.sketch.max = m->aggregate.max;
	r = nodedb_add_aggregate(w->db, false, &a, reterr);
	if (r < 0)
		return r;
	a.bucket.ns -= a.bucket.ns % (int64_t)NODEDB_BUCKET_COARSE;
	return nodedb_add_aggregate(w->db, true, &a, reterr);
}

/* Rows of a session. Without one they are let go: its successor is a new generation, for which they
 * are pushed again. */
static int write_of_session(struct store_writer *w, const struct message *m, struct errinfo *reterr)
{
	const struct gpu_names *g = (const void *)m->data;
	int64_t session = upkeep_session(&w->upkeep);

	if (!session)
		return 0;
	if (m->kind == MESSAGE_GPU)
		return nodedb_session_gpu(w->db, session, g->model, g->driver, g->cuda, reterr);
	if (m->kind == MESSAGE_CPU_LOSSES)
		return nodedb_put_cpu_losses(w->db, session, (const void *)m->data, reterr);
	if (m->kind == MESSAGE_PLACE)
		return nodedb_session_place(w->db, session, m->place, reterr);
	return nodedb_put_layers(
		w->db, session, m->owner.pid, m->owner.start_ticks, (const void *)m->data, reterr);
}

static int write_books(struct store_writer *w, const struct message *m, struct errinfo *reterr)
{
	struct accounting part;

	memcpy(&w->books, m->data, sizeof(w->books));
	if (!upkeep_session(&w->upkeep))
		return 0; /* the next ones will find a session */
	upkeep_books(&w->upkeep, &w->books, &part);
	return nodedb_put_accounting(w->db, upkeep_session(&w->upkeep), &part, reterr);
}

static int write_annotation(struct store_writer *w, struct message *m, struct errinfo *reterr)
{
	struct annotation a = {0};
	int r;

	memcpy(&a, m->data, MIN(m->len, sizeof(a) - 1));
	r = nodedb_put_annotation(w->db, &a, &m->annotation.id, reterr);
	if (r < 0)
		m->annotation.id = r;
	return r;
}

static int write_message(struct store_writer *w, struct message *m, struct errinfo *reterr)
{
	switch (m->kind) {
	case MESSAGE_AGGREGATE: return write_aggregate(w, m, reterr);
	case MESSAGE_SAMPLE: return nodedb_put_sample(w->db, &m->sample, reterr);
	case MESSAGE_COLLECTIVE:
		return nodedb_put_collective(
			w->db, &m->collective.event, &m->collective.nccl, reterr);
	case MESSAGE_GPU_SAMPLE: return nodedb_put_gpu_sample(w->db, (const void *)m->data, reterr);
	case MESSAGE_PROCESS:
		return nodedb_put_process(w->db, (const void *)m->data,
			(const char *)m->data + sizeof(struct process), reterr);
	case MESSAGE_CGROUP: return nodedb_put_cgroup(w->db, (const void *)m->data, reterr);
	case MESSAGE_GPU:
	case MESSAGE_LAYERS:
	case MESSAGE_CPU_LOSSES:
	case MESSAGE_PLACE: return write_of_session(w, m, reterr);
	case MESSAGE_ACCOUNTING: return write_books(w, m, reterr);
	case MESSAGE_INCIDENT:
		return nodedb_put_incident(w->db, (const void *)m->data, m->detected, reterr);
	case MESSAGE_ANNOTATION: return write_annotation(w, m, reterr);
	}
	return 0;
}

static void message_lost(struct store_writer *w, const struct message *m)
{
	if (m->kind == MESSAGE_AGGREGATE)
		atomic_fetch_add(&w->unaggregated[slot_of(m->aggregate.source)],
			m->aggregate.count - MIN(m->aggregate.stored, m->aggregate.count));
}

static void acknowledge(struct store_writer *w, uint64_t ticket, int64_t id)
{
	pthread_mutex_lock(&w->mutex);
	w->acks[w->ack_count++] = (struct store_ack){.ticket = ticket, .id = id};
	pthread_mutex_unlock(&w->mutex);
}

static void drop_pending(struct store_writer *w, bool lost)
{
	size_t bytes = 0;

	while (w->pending) {
		struct message *m = w->pending;

		w->pending = m->next;
		bytes += m->size;
		if (lost)
			message_lost(w, m);
		if (m->kind == MESSAGE_ANNOTATION)
			acknowledge(w, m->annotation.ticket, lost ? -EIO : m->annotation.id);
		free(m);
	}
	w->pending_end = &w->pending;
	pthread_mutex_lock(&w->mutex);
	w->message_bytes -= bytes;
	pthread_mutex_unlock(&w->mutex);
}

static int write_pending(struct store_writer *w, struct errinfo *reterr)
{
	int r = nodedb_batch_begin(w->db, reterr);

	if (r < 0)
		return r;
	for (struct message *m = w->pending; m; m = m->next) {
		r = write_message(w, m, reterr);
		if (r < 0 && may_pass(r)) {
			nodedb_batch_rollback(w->db);
			return r;
		}
		if (r < 0) {
			keep_error(w, reterr);
			message_lost(w, m);
		}
	}
	return nodedb_batch_commit(w->db, reterr);
}

static void flush_messages(struct store_writer *w)
{
	struct errinfo err = {0};
	int r;

	if (!w->pending)
		return;
	r = write_pending(w, &err);
	if (r < 0) {
		keep_error(w, &err);
		if (!w->draining)
			return;
	}
	drop_pending(w, r < 0);
}

static struct timespec deadline_in(unsigned ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	t.tv_sec += (time_t)(ms / 1000) + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

/* Waits for work and moves it to the thread's own hands. False: stopping and nothing is left. */
static bool take_work(struct store_writer *w)
{
	struct timespec deadline = deadline_in(w->batch_ms);
	bool go_on;
	int r = 0;

	pthread_mutex_lock(&w->mutex);
	while (!w->stopping && r == 0 && !w->urgent && (w->retrying || w->count < w->wake_at))
		r = pthread_cond_timedwait(&w->wake, &w->mutex, &deadline);
	while (w->count && w->batch_count < w->batch_max) {
		size_t n = MIN(w->count, w->batch_max - w->batch_count);

		n = MIN(n, w->ring_size - w->head);
		memcpy(&w->batch[w->batch_count], &w->ring[w->head], n * sizeof(*w->ring));
		w->head = (w->head + n) % w->ring_size;
		w->count -= n;
		w->batch_count += n;
	}
	if (w->first) {
		*w->pending_end = w->first;
		w->pending_end = w->end;
		w->first = NULL;
		w->end = &w->first;
	}
	w->urgent = false;
	w->busy = w->count >= w->wake_at;
	w->draining = w->stopping;
	go_on = !w->stopping || w->batch_count || w->pending;
	pthread_mutex_unlock(&w->mutex);
	return go_on;
}

/* Returns whether there is more to do at once. */
static bool keep_up(struct store_writer *w)
{
	size_t rows = w->busy ? MAX(2 * w->written, (size_t)UPKEEP_ROWS) : SIZE_MAX;
	struct accounting books = w->books;
	struct errinfo err = {0};
	int r;

	if (w->retrying)
		return false;
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++)
		books.source[s].stored = atomic_load(&w->stored[s]);
	r = upkeep_step(&w->upkeep, rows, &books, &err);
	if (r < 0)
		keep_error(w, &err);
	atomic_store(&w->generation, w->upkeep.generation);
	return r > 0;
}

static void *run(void *arg)
{
	struct store_writer *w = arg;
	uint64_t end;

	while (take_work(w)) {
		flush_events(w);
		flush_messages(w);
		keep_up(w);
	}
	end = mono_now().ns + UPKEEP_END_NS;
	w->busy = false;
	if (w->upkeep.prune)
		while (keep_up(w) && mono_now().ns < end)
			continue;
	return NULL;
}

/* ---- life ---- */

static void writer_free(struct store_writer *w)
{
	upkeep_done(&w->upkeep);
	free(w->ring);
	free(w->batch);
	free(w->acks);
	free(w);
}
DEFINE_CLEANUP(struct store_writer *, writer_free)

static int start_thread(struct store_writer *w)
{
	pthread_condattr_t attr;
	int r;

	r = pthread_condattr_init(&attr);
	if (r)
		return -r;
	r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (!r)
		r = pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (r)
		return -r;
	r = pthread_mutex_init(&w->mutex, NULL);
	if (!r)
		r = pthread_create(&w->thread, NULL, run, w);
	return -r;
}

int store_writer_start(struct nodedb *db, int64_t session, const struct store_writer_config *config,
	struct store_writer **ret_writer, struct errinfo *reterr)
{
	_cleanup_(writer_freep) struct store_writer *w = calloc(1, sizeof(*w));
	struct store_writer_config c = config ? *config : (struct store_writer_config){0};
	int r;

	if (!w)
		return -ENOMEM;
	w->ring_size = c.queue_events ? c.queue_events : QUEUE_EVENTS;
	w->batch_max =
		prune_batch_max(c.upkeep.max_bytes, c.batch_events ? c.batch_events : BATCH_EVENTS);
	w->batch_ms = c.batch_ms ? c.batch_ms : BATCH_MS;
	w->wake_at = MIN(w->batch_max, (w->ring_size + 1) / 2);
	w->ring = calloc(w->ring_size, sizeof(*w->ring));
	w->batch = calloc(w->batch_max, sizeof(*w->batch));
	if (!w->ring || !w->batch)
		return -ENOMEM;
	w->db = db;
	w->end = &w->first;
	w->pending_end = &w->pending;
	r = upkeep_init(&w->upkeep, db, session, &c.upkeep, reterr);
	if (r < 0)
		return r;
	r = start_thread(w);
	if (r < 0)
		return errinfo_set(reterr, r, "the store's thread cannot start: %s", strerror(-r));
	*ret_writer = TAKE(w);
	return 0;
}

static int finish(struct store_writer *w, store_writer_books *books, void *arg, wall_time stopped,
	struct errinfo *reterr)
{
	struct accounting final = {0}, part;
	int64_t session = upkeep_session(&w->upkeep);
	int r;

	if (books)
		books(w, &final, arg);
	if (!session)
		return errinfo_set(
			reterr, -EIO, "%s has no session for the books", nodedb_path(w->db));
	if (books) {
		upkeep_books(&w->upkeep, &final, &part);
		r = nodedb_put_accounting(w->db, session, &part, reterr);
		if (r < 0)
			return r;
	}
	return nodedb_session_end(w->db, session, stopped, reterr);
}

int store_writer_stop(struct store_writer *w, store_writer_books *books, void *arg,
	wall_time stopped, struct errinfo *reterr)
{
	int r, closed;

	pthread_mutex_lock(&w->mutex);
	w->stopping = true;
	pthread_mutex_unlock(&w->mutex);
	pthread_cond_signal(&w->wake);
	pthread_join(w->thread, NULL);

	r = finish(w, books, arg, stopped, reterr);
	upkeep_done(&w->upkeep);
	closed = nodedb_close(w->db, r < 0 ? NULL : reterr);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->mutex);
	writer_free(w);
	return r < 0 ? r : closed;
}
