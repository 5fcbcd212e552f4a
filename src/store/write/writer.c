/* SPDX-License-Identifier: Apache-2.0 */
/* writer.c - the store's thread: takes events and messages off two bounded queues and writes them
 * in transactions of 5000 events or 100 ms.
 *
 * Queues: events in a ring (copied in and out under one mutex: 70 ns a push, no wake-up per event),
 * messages in a list with a ceiling in bytes, aggregates with their histogram already encoded.
 *
 * Invariants:
 *  1. An accepted event or ledger row ends in exactly one of stored[] and failed[], counted after
 *     its commit. The
 *     books are written in the transaction of the rows they count, so that also those of a killed
 *     process hold for its file; what they cannot say is what was on its way.
 *  2. A transaction that failed for want of space or by a disk error is tried again every batch_ms
 *     as long as the queue has room for what comes meanwhile (at most half full); then its events
 *     are counted as failed. Messages are kept until they are written or the writer stops.
 *  3. A row the store refuses for itself is dropped and counted alone, once its transaction is
 *     over; the others go on.
 *  4. The store is touched by the thread only, from start to its end, with the rights of whoever
 *     may change its path (base/path_user.h).
 *  5. Upkeep (retention.h) comes between transactions, in portions; while another batch waits already,
 *     a portion is no more than twice what was just written, so that it keeps up and no more.
 *  6. A rolled file has the rows that are pushed once for each file: it is not rolled before they
 *     have come, however fast the queue fills it. */
#include "store/write/writer.h"

#include <time.h>

#include "base/mutex.h"
#include "store/write/writer_private.h"
#include "base/courtesy.h"
#include "base/path_user.h"

#define QUEUE_EVENTS     32768
#define BATCH_EVENTS     5000
#define BATCH_MS         100
#define RETENTION_ROWS   1000
#define RETENTION_END_NS (2 * NS_PER_S) /* for what is left to prune when tracing ends */

static void keep_error(struct store_writer *w, const struct errinfo *err)
{
	MUTEX_HELD(&w->mutex);

	w->error = *err;
	w->has_error = true;
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
	atomic_fetch_add_explicit(&counters[writer_slot(source)], 1, memory_order_relaxed);
}

/* What the file holds, with the hits known by now: those that are in neither column are on their
 * way. */
static void file_books(const struct store_writer *w, struct accounting *ret)
{
	*ret = w->books;
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		ret->source[s].stored = atomic_load(&w->stored[s]);
		ret->source[s].aggregated = w->aggregated[s];
	}
}

/* Writes @books, those of the whole run, inside the open transaction. */
static int put_books(struct store_writer *w, struct accounting *books, struct errinfo *reterr)
{
	struct accounting part = {0};

	if (!w->has_books || !retention_session(&w->retention))
		return 0; /* the next ones will find a session */
	for (unsigned s = 0; s < WIRE_SOURCE_MAX; s++) {
		struct account *a = &books->source[s];

		/* Rows may be here before the tracer's next reading of the hits. */
		a->hits = MAX(a->hits, a->stored + a->aggregated + account_lost(a));
	}
	retention_books(&w->retention, books, &part);
	return nodedb_put_accounting(w->db, retention_session(&w->retention), &part, reterr);
}

/* Ends the transaction: with @r as it is, or by commit. */
static int end_batch(
	struct store_writer *w, struct accounting *books, int r, struct errinfo *reterr)
{
	if (r >= 0)
		r = put_books(w, books, reterr);
	if (r < 0) {
		nodedb_batch_rollback(w->db);
		return r;
	}
	return nodedb_batch_commit(w->db, reterr);
}

/* One transaction for the batch. Rows the store refused have seq 0 afterwards. */
static int write_batch(struct store_writer *w, struct errinfo *reterr)
{
	struct accounting books;
	int r = nodedb_batch_begin(w->db, reterr);

	if (r < 0)
		return r;
	file_books(w, &books);
	for (size_t i = 0; i < w->batch_count; i++) {
		struct event *e = &w->batch[i];

		e->seq = 0;
		r = nodedb_put_event(w->db, e, reterr);
		if (r < 0 && may_pass(r))
			return end_batch(w, &books, r, reterr);
		if (r < 0)
			keep_error(w, reterr);
		else
			books.source[writer_slot(e->source)].stored++;
	}
	return end_batch(w, &books, 0, reterr);
}

static bool should_retry(struct store_writer *w)
{
	MUTEX_HELD(&w->mutex);

	return !w->draining && w->count <= w->ring_size / 2;
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

static void drop_pending(struct store_writer *w, bool lost)
{
	size_t bytes = 0;

	while (w->pending) {
		struct message *m = w->pending;

		w->pending = m->next;
		bytes += m->size;
		if (m->kind == MESSAGE_AGGREGATE && (lost || m->refused))
			atomic_fetch_add(&w->unaggregated[writer_slot(m->aggregate.source)],
				writer_message_calls(m));
		else if (m->kind == MESSAGE_AGGREGATE)
			w->aggregated[writer_slot(m->aggregate.source)] += writer_message_calls(m);
		if (m->kind == MESSAGE_LEDGER)
			count_row(lost || m->refused ? w->failed : w->stored, SOURCE_HOST);
		if (m->kind == MESSAGE_ANNOTATION) {
			pthread_mutex_lock(&w->mutex);
			w->acks[w->ack_count++] = (struct store_ack){.ticket = m->annotation.ticket,
				.id = lost ? -EIO : m->annotation.id};
			pthread_mutex_unlock(&w->mutex);
		}
		if (m->kind == MESSAGE_RENEWED)
			w->renewed = m->generation;
		free(m);
	}
	w->pending_end = &w->pending;
	pthread_mutex_lock(&w->mutex);
	w->message_bytes -= bytes;
	pthread_mutex_unlock(&w->mutex);
}

/* Whether somebody is told that what he sent is stored: then it must outlast a power cut. All that
 * waits by then shares one sync of the disk. */
static bool must_last(const struct store_writer *w)
{
	for (const struct message *m = w->pending; m; m = m->next)
		if (m->kind == MESSAGE_ANNOTATION)
			return true;
	return false;
}

static int write_pending(struct store_writer *w, struct errinfo *reterr)
{
	struct accounting books;
	int r = must_last(w) ? nodedb_batch_begin_durable(w->db, reterr)
			     : nodedb_batch_begin(w->db, reterr);

	if (r < 0)
		return r;
	for (struct message *m = w->pending; m; m = m->next) {
		r = writer_message_write(w, m, reterr);
		if (r < 0 && may_pass(r))
			return end_batch(w, &w->books, r, reterr);
		m->refused = r < 0;
		if (r < 0)
			keep_error(w, reterr);
	}
	file_books(w, &books);
	for (const struct message *m = w->pending; m; m = m->next) {
		if (m->kind == MESSAGE_AGGREGATE && !m->refused)
			books.source[writer_slot(m->aggregate.source)].aggregated +=
				writer_message_calls(m);
		if (m->kind == MESSAGE_LEDGER && !m->refused)
			books.source[SOURCE_HOST].stored++;
	}
	return end_batch(w, &books, 0, reterr);
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
	int r = 0;

	MUTEX_HELD(&w->mutex);
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
	return !w->stopping || w->batch_count || w->pending;
}

/* Returns whether there is more to do at once. */
static bool keep_up(struct store_writer *w)
{
	size_t rows = w->busy ? MAX(2 * w->written, (size_t)RETENTION_ROWS) : SIZE_MAX;
	struct accounting books;
	struct errinfo err = {0};
	int r;

	if (w->retrying)
		return false;
	file_books(w, &books);
	w->retention.hold = w->renews && w->renewed != w->retention.generation;
	r = retention_step(&w->retention, rows, &books, &err);
	if (r < 0)
		keep_error(w, &err);
	atomic_store(&w->generation, w->retention.generation);
	atomic_store(&w->pruned, nodedb_pruned(w->db));
	return r > 0;
}

/* The final books and the session's end, in one transaction. A full disk may have room once the
 * log is in the file; without it the session stays open, and its books are those of the last rows. */
static int finish(struct store_writer *w, const struct writer_end *e)
{
	int r;

	if (!retention_session(&w->retention))
		return errinfo_set(e->reterr, -EIO, "%s has no session for the accounting",
			nodedb_path(w->db));
	r = retention_end(&w->retention, e->books, e->stopped, e->reterr);
	if (r < 0 && may_pass(r) && nodedb_checkpoint(w->db, NULL) == 0)
		r = retention_end(&w->retention, e->books, e->stopped, e->reterr);
	return r;
}

/* The final books are made by whoever stops the writer, once everything is stored or has failed. */
static struct writer_end *wait_for_books(struct store_writer *w)
{
	MUTEX_HELD(&w->mutex);

	w->drained = true;
	pthread_cond_signal(&w->is_drained);
	while (!w->end_due)
		pthread_cond_wait(&w->wake, &w->mutex);
	return w->end_due;
}

static void *run(void *arg)
{
	struct store_writer *w = arg;
	uint64_t end;
	struct writer_end *e;
	int closed;

	(void)pthread_setname_np(pthread_self(), "ingero-store");
	courtesy_begin();
	if (w->begin)
		w->begin(w->begin_arg);
	while (take_work(w)) {
		flush_events(w);
		flush_messages(w);
		keep_up(w);
	}
	end = mono_now().ns + RETENTION_END_NS;
	w->busy = false;
	if (w->retention.prune)
		while (keep_up(w) && mono_now().ns < end)
			continue;
	e = wait_for_books(w);
	e->result = finish(w, e);
	retention_done(&w->retention);
	closed = nodedb_close(TAKE(w->db), e->result < 0 ? NULL : e->reterr);
	if (e->result == 0)
		e->result = closed;
	return NULL;
}

/* ---- life ---- */

static void writer_free(struct store_writer *w)
{
	retention_done(&w->retention);
	free(w->ring);
	free(w->batch);
	free(w->acks);
	free(w);
}
DEFINE_CLEANUP(struct store_writer *, writer_free)

static int start_thread(struct store_writer *w)
{
	pthread_condattr_t attr;
	int r = pthread_condattr_init(&attr);

	if (r)
		return -r;
	r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	r = r ?: pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	r = r ?: pthread_cond_init(&w->is_drained, NULL);
	if (r)
		return -r;
	r = pthread_mutex_init(&w->mutex, NULL);
	r = r ?: pthread_create(&w->thread, NULL, run, w);
	return -r;
}

/* The thread has the rights that this one has when it starts it. */
static int start_as_path_user(struct store_writer *w, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(nodedb_path(w->db), &before, reterr);

	if (r < 0)
		return r;
	r = start_thread(w);
	return r < 0 ? errinfo_set(reterr, r, "cannot start the store's thread: %s", strerror(-r))
		     : 0;
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
	w->batch_max = prune_batch_max(
		c.retention.max_bytes, c.batch_events ? c.batch_events : BATCH_EVENTS);
	w->batch_ms = c.batch_ms ? c.batch_ms : BATCH_MS;
	w->wake_at = MIN(w->batch_max, (w->ring_size + 1) / 2);
	w->ring = calloc(w->ring_size, sizeof(*w->ring));
	w->batch = calloc(w->batch_max, sizeof(*w->batch));
	if (!w->ring || !w->batch)
		return -ENOMEM;
	w->db = db;
	w->begin = c.begin;
	w->begin_arg = c.begin_arg;
	w->renews = c.renews;
	w->end = &w->first;
	w->pending_end = &w->pending;
	r = retention_init(&w->retention, db, session, &c.retention, reterr);
	if (r < 0)
		return r;
	r = start_as_path_user(w, reterr);
	if (r < 0)
		return r;
	*ret_writer = TAKE(w);
	return 0;
}

int store_writer_stop(struct store_writer *w, store_writer_books *books, void *arg,
	wall_time stopped, struct errinfo *reterr)
{
	struct accounting final = {0};
	struct writer_end end = {
		.books = books ? &final : NULL, .stopped = stopped, .reterr = reterr};

	pthread_mutex_lock(&w->mutex);
	w->stopping = true;
	pthread_cond_signal(&w->wake);
	while (!w->drained)
		pthread_cond_wait(&w->is_drained, &w->mutex);
	pthread_mutex_unlock(&w->mutex);
	if (books)
		books(w, &final, arg);
	pthread_mutex_lock(&w->mutex);
	w->end_due = &end;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->mutex);
	pthread_join(w->thread, NULL);
	pthread_cond_destroy(&w->wake);
	pthread_cond_destroy(&w->is_drained);
	pthread_mutex_destroy(&w->mutex);
	writer_free(w);
	return end.result;
}
