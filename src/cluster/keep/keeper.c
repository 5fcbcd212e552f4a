/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - see keeper.h. Its life, and what is known of duplicates over restarts. What comes in is
 * keeper_take.c's.
 *
 * The journal is trimmed up to what the store has for good and an entry of the kind SEEN covers: so the keys of
 * all requests of the last KEEPER_SEEN_NS are always in it. */
#include "cluster/keep/keeper.h"

#include <sys/eventfd.h>

#include "cluster/keep/keeper_private.h"

#define TICK_NS NS_PER_S

/* ---- duplicates, over restarts ---- */

static void on_covered(void *arg, int err, uint64_t position)
{
	_cleanup_(pending_freep) struct pending *p = arg;
	struct keeper *k = p->keeper;

	if (!k)
		return;
	TAILQ_REMOVE(&k->pending, p, link);
	if (err == 0) {
		k->covered = k->covering;
		k->confirmed = position;
	}
	k->covering = 0;
}

/* cover - an entry that says all that entries up to the confirmed one say of duplicates. */
static void cover(struct keeper *k)
{
	_cleanup_buf_ struct buf keys = BUF_INIT(JOURNAL_ENTRY_MAX);
	_cleanup_buf_ struct buf entry = BUF_INIT(JOURNAL_ENTRY_MAX);
	_cleanup_(pending_freep) struct pending *p = pending_new(k, NULL, NULL);

	if (!p)
		return;
	seen_put(k->seen, &keys);
	entry_put(&entry, ENTRY_SEEN, k->confirmed, keys.len / SEEN_KEY);
	buf_append(&entry, keys.data, keys.len);
	if (keys.err || entry.err ||
		journal_append_beyond(k->journal, entry.data, entry.len, on_covered, p) < 0)
		return; /* the journal stays longer */
	k->covering = k->confirmed;
	TAILQ_INSERT_TAIL(&k->pending, p, link);
	TAKE(p);
}

static void on_tick(void *arg)
{
	struct keeper *k = arg;
	uint64_t durable = k->fill.durable;
	bool gains = journal_stats(k->journal).segments > 1 && durable > k->covered &&
		     k->rows_position > k->covered;

	seen_age(k->seen, mono_now().ns);
	if (gains && !k->covering)
		cover(k);
	journal_trim(k->journal, MIN(durable, k->covered));
	loop_timer_set(k->timer, TICK_NS);
}

/* learn - an entry that was written before the restart. Of one that cannot be read the keys are gone, too: its
 * request would be kept once more if it came again. */
static int learn(struct keeper *k, const struct journal_entry *e)
{
	struct entry entry;
	int r = e->data ? entry_get(e->data, e->len, &entry) : -EBADMSG;

	if (r < 0) {
		k->confirmed = k->rows_position = e->position;
		return 0; /* it is the filling thread's to say so */
	}
	for (size_t i = 0; r == 0 && i < entry.key_count; i++) {
		struct seen_key key;

		memcpy(&key, &entry.keys[i], sizeof(key));
		r = seen_set(k->seen, &key, SEEN_KEPT);
	}
	if (entry.kind == ENTRY_SEEN)
		k->covered = MAX(k->covered, entry.covered);
	else
		k->rows_position = e->position;
	k->confirmed = e->position;
	return r;
}

static int learn_all(struct keeper *k, struct errinfo *reterr)
{
	_cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
	struct journal_stats s = journal_stats(k->journal);
	struct journal_entry e;
	int r;

	k->confirmed = s.durable;
	if (!s.first)
		return 0;
	r = journal_reader_new(k->journal, s.first - 1, &reader, reterr);
	while (r >= 0 && (r = journal_next(reader, 0, &e, reterr)) == 1)
		r = learn(k, &e);
	return r;
}

/* ---- life ---- */

static void on_filled(void *arg)
{
	struct keeper *k = arg;
	ssize_t n = write(k->finished_fd, &(uint64_t){1}, sizeof(uint64_t));

	(void)n; /* it is the first and only one */
}

static void on_finished(void *arg)
{
	struct keeper *k = arg;
	uint64_t count;

	if (read(k->finished_fd, &count, sizeof(count)) == (ssize_t)sizeof(count))
		k->finished(k->finished_arg);
}

static void on_journal_finished(void *arg)
{
	struct keeper *k = arg;

	k->fill.until = journal_stats(k->journal).durable;
	k->fill.finish = true;
	journal_wake(k->journal);
}

void keeper_finish(struct keeper *k, loop_fn *done, void *arg)
{
	k->finishing = true;
	k->finished = done;
	k->finished_arg = arg;
	loop_timer_clear(k->timer);
	journal_finish(k->journal, on_journal_finished, k);
}

static int keeper_start(struct keeper *k, struct errinfo *reterr)
{
	int r = learn_all(k, reterr);

	if (r < 0)
		return r;
	k->finished_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->finished_fd < 0)
		return errinfo_set(reterr, -errno, "cannot start the keeper: %s", strerror(errno));
	r = loop_watch(k->loop, k->finished_fd, on_finished, k);
	r = r ?: loop_timer_new(k->loop, on_tick, k, &k->timer);
	r = r ?: keeper_fill_start(&k->fill, reterr);
	if (r == 0)
		loop_timer_set(k->timer, TICK_NS);
	return r;
}

int keeper_new(struct loop *l, const struct keeper_settings *s, struct keeper **ret,
	struct errinfo *reterr)
{
	_cleanup_(keeper_freep) struct keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	k->loop = l;
	k->journal = s->journal;
	k->store = s->store;
	k->backlog_max = s->backlog_max ? s->backlog_max : KEEPER_BACKLOG;
	k->clusters = CLUSTER_LIMIT_INIT;
	k->finished_fd = -1;
	TAILQ_INIT(&k->pending);
	TAILQ_INIT(&k->takings);
	k->fill = (struct keeper_fill){
		.journal = s->journal, .store = s->store, .finished = on_filled, .arg = k};
	pthread_mutex_init(&k->fill.lock, NULL);
	r = seen_new(KEEPER_SEEN_NS, &k->seen);
	r = r ?: aside_new(l, KEEPER_QUEUE, &k->aside);
	r = r ?: keeper_start(k, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(k);
	return 0;
}

void keeper_free(struct keeper *k)
{
	struct pending *p, *next;

	keeper_fill_stop(&k->fill);
	aside_freep(&k->aside);
	keeper_give_up(k);
	loop_timer_freep(&k->timer);
	if (k->finished_fd >= 0) {
		loop_watch(k->loop, k->finished_fd, NULL, NULL);
		close(k->finished_fd);
	}
	for (p = TAILQ_FIRST(&k->pending); p; p = next) {
		next = TAILQ_NEXT(p, link);
		p->keeper = NULL; /* the journal frees it */
		if (p->done)
			keeper_tell(p->done, p->arg, &p->result, -ECANCELED);
	}
	seen_freep(&k->seen);
	cluster_limit_done(&k->clusters);
	pthread_mutex_destroy(&k->fill.lock);
	free(k);
}

struct keeper_stats keeper_stats(struct keeper *k)
{
	struct keeper_stats s = k->stats;
	uint64_t visible = k->fill.visible;

	s.journal = journal_stats(k->journal);
	s.backlog = s.journal.durable > visible ? s.journal.durable - visible : 0;
	s.replaying = visible < k->fill.replay_until;
	s.lost = k->fill.lost;
	s.degraded = keeper_fill_why(&k->fill, s.why, sizeof(s.why));
	if (!s.degraded && s.journal.fault) {
		s.degraded = true;
		snprintf(s.why, sizeof(s.why), "the journal cannot be written: %s",
			s.journal.fault == -ENOENT ? "its folder or file was moved or removed"
						   : strerror(-s.journal.fault));
	}
	return s;
}

/* rows become an entry of the journal, and whoever sent them is told what became of it.
 * 
 * Invariant: a key is SEEN_PENDING from the append to its result, then SEEN_KEPT or forgotten: nobody is told
 * that a duplicate is kept while its first one may still fail. */

/* ---- results ---- */

static void tell(keeper_done *done, void *arg, struct keeper_result *r, int err, const char *why)
{
	r->err = err;
	if (err < 0)
		snprintf(r->why, sizeof(r->why), "%s", why);
	done(arg, r);
}

void keeper_refuse(struct keeper *k, keeper_done *done, void *arg, int err, const char *why)
{
	struct keeper_result r = {0};

	k->stats.refused++;
	tell(done, arg, &r, err, why);
}

const char *keeper_reason(int err)
{
	switch (err) {
	case -ENOSPC: return "the disk is full, or the journal has reached its limit: retry later";
	case -ENOBUFS: return "too much data waits for the disk: retry later";
	case -E2BIG: return "the request is too large for the journal: send it in parts";
	case -ENOMEM: return "out of memory for this request: retry later";
	case -ECANCELED: return "shutting down";
	default: return "the journal cannot be written: retry later";
	}
}

void keeper_tell(keeper_done *done, void *arg, struct keeper_result *r, int err)
{
	tell(done, arg, r, err, keeper_reason(err));
}

/* ---- appending ---- */

void pending_free(struct pending *p)
{
	free(p->keys);
	free(p);
}

static void set_keys(struct keeper *k, const struct pending *p, enum seen_state state)
{
	for (size_t i = 0; i < p->key_count; i++)
		seen_set(k->seen, &p->keys[i], state);
}

static void on_appended(void *arg, int err, uint64_t position)
{
	_cleanup_(pending_freep) struct pending *p = arg;
	struct keeper *k = p->keeper;

	if (!k)
		return;
	TAILQ_REMOVE(&k->pending, p, link);
	set_keys(k, p, err < 0 ? SEEN_NOT : SEEN_KEPT);
	if (err < 0) {
		k->stats.refused++;
	} else {
		k->confirmed = k->rows_position = position;
		k->stats.requests++;
		k->stats.points += p->result.taken;
		k->stats.rejected += p->result.rejected;
	}
	tell(p->done, p->arg, &p->result, err, keeper_reason(err));
}

int keeper_append(struct keeper *k, struct pending *p, const struct batch *b)
{
	_cleanup_buf_ struct buf entry = BUF_INIT(JOURNAL_ENTRY_MAX);
	int r = 0;

	entry_put(&entry, ENTRY_ROWS, 0, p->key_count);
	buf_append(&entry, p->keys, p->key_count * sizeof(*p->keys));
	buf_append(&entry, b->bytes.data, b->bytes.len);
	if (entry.err)
		return entry.err == -ENOBUFS ? -E2BIG : entry.err;
	for (size_t i = 0; r == 0 && i < p->key_count; i++)
		r = seen_set(k->seen, &p->keys[i], SEEN_PENDING);
	r = r ?: journal_append(k->journal, entry.data, entry.len, on_appended, p);
	if (r < 0) {
		set_keys(k, p, SEEN_NOT);
		return r;
	}
	TAILQ_INSERT_TAIL(&k->pending, p, link);
	return 0;
}

struct pending *pending_new(struct keeper *k, keeper_done *done, void *arg)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (p)
		*p = (struct pending){.keeper = k, .done = done, .arg = arg};
	return p;
}

void keeper_take_rows(struct keeper *k, const struct batch *b, keeper_done *done, void *arg)
{
	_cleanup_(pending_freep) struct pending *p = pending_new(k, done, arg);
	int r = -ENOMEM;

	if (p) {
		p->result.taken = b->row_count;
		r = b->bytes.err ? b->bytes.err : keeper_append(k, p, b);
	}
	if (r < 0)
		keeper_refuse(k, done, arg, r, keeper_reason(r));
	else
		TAKE(p);
}
