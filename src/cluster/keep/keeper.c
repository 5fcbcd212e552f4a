/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - see keeper.h. What comes in, on the loop's thread: decoded, appended, answered.
 *
 * Invariants:
 *  1. A key is SEEN_PENDING from the append to its result, then SEEN_KEPT or forgotten: nobody is told that
 *     a duplicate is kept while its first one may still fail.
 *  2. The journal is trimmed up to what the store has for good and an entry of the kind SEEN covers: so the
 *     keys of all requests of the last KEEPER_SEEN_NS are always in it. */
#include "cluster/keep/keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "cluster/keep/keeper_private.h"
#include "cluster/keep/rows.h"

#define TICK_NS NS_PER_S

/* ---- results ---- */

static void tell(keeper_done *done, void *arg, struct keeper_result *r, int err, const char *why)
{
	r->err = err;
	if (err < 0)
		snprintf(r->why, sizeof(r->why), "%s", why);
	done(arg, r);
}

static void refuse(struct keeper *k, keeper_done *done, void *arg, int err, const char *why)
{
	struct keeper_result r = {0};

	k->stats.refused++;
	tell(done, arg, &r, err, why);
}

static const char *reason_of(int err)
{
	switch (err) {
	case -ENOSPC:
		return "the disk is full, or the journal as large as it may be: come again later";
	case -ENOBUFS: return "too much waits for the disk: come again later";
	case -E2BIG: return "the request is too large for the journal: send it in parts";
	case -ENOMEM: return "out of memory for this request: come again later";
	case -ECANCELED: return "shutting down";
	default: return "the journal cannot be written: come again later";
	}
}

/* ---- appending ---- */

static void pending_free(struct pending *p)
{
	free(p->keys);
	free(p);
}
DEFINE_CLEANUP(struct pending *, pending_free)

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
	tell(p->done, p->arg, &p->result, err, reason_of(err));
}

/* append - the rows and keys of a request become an entry. */
static int append(struct keeper *k, struct pending *p, const struct batch *b)
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
	if (r == 0)
		r = journal_append(k->journal, entry.data, entry.len, on_appended, p);
	if (r < 0) {
		set_keys(k, p, SEEN_NOT);
		return r;
	}
	TAILQ_INSERT_TAIL(&k->pending, p, link);
	return 0;
}

static struct pending *pending_new(struct keeper *k, keeper_done *done, void *arg)
{
	struct pending *p = calloc(1, sizeof(*p));

	if (p)
		*p = (struct pending){.keeper = k, .done = done, .arg = arg};
	return p;
}

/* ---- requests ---- */

/* not_now - why nothing is taken; NULL: nothing is in the way. */
static const char *not_now(struct keeper *k)
{
	uint64_t durable;

	if (k->finishing)
		return "shutting down";
	durable = journal_stats(k->journal).durable;
	if (durable > k->fill.visible && durable - k->fill.visible > k->backlog_max)
		return "the store lags behind: come again later";
	return NULL;
}

/* judge_rows - 0, or why the request as a whole is refused. */
static int judge_rows(const struct rows *r, struct keeper_result *ret)
{
	*ret = (struct keeper_result){.taken = r->taken, .rejected = r->rejected};
	snprintf(ret->why, sizeof(ret->why), "%s", r->why);
	if (r->waits) {
		snprintf(ret->why, sizeof(ret->why),
			"part of it is being written: come again later");
		return -EAGAIN;
	}
	if (r->taken || !r->rejected)
		return 0;
	return r->refused ? -EACCES : -EBADMSG;
}

static int add_key(struct rows *rows, struct pending *p, const struct seen_key *key)
{
	struct seen_key *keys;

	p->keys = rows->keys;
	p->key_count = rows->key_count;
	rows->keys = NULL;
	if (rows->untimed)
		return 0;
	keys = reallocarray(p->keys, p->key_count + 1, sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	p->keys = keys;
	keys[p->key_count++] = *key;
	return 0;
}

static void take_rows(struct keeper *k, struct rows *rows, const struct seen_key *key,
	const struct keeper_result *result, keeper_done *done, void *arg)
{
	_cleanup_(pending_freep) struct pending *p = pending_new(k, done, arg);
	int r = -ENOMEM;

	if (p) {
		p->result = *result;
		r = add_key(rows, p, key);
	}
	if (r == 0)
		r = append(k, p, &rows->batch);
	if (r < 0)
		refuse(k, done, arg, r, reason_of(r));
	else
		TAKE(p);
}

/* Of a request some of which its sender may not write, another one may write the rest: it is told by its
 * sender, too. */
static struct seen_key key_of_part(const struct keeper_request *q, const struct seen_key *whole)
{
	char text[SEEN_KEY + sizeof(q->sender)];

	memcpy(text, whole->bytes, SEEN_KEY);
	memcpy(text + SEEN_KEY, &q->sender, sizeof(q->sender));
	return seen_key_of("part", text, sizeof(text));
}

struct asked { /* who may write, and whether there is room for one more cluster */
	struct keeper *keeper;
	const struct keeper_request *request;
	uint64_t now_ns;
	bool is_full; /* there was none */
};

static bool may_write(void *arg, const char *cluster, size_t len)
{
	struct asked *a = arg;
	const struct keeper_request *q = a->request;
	bool has_room;

	if (q->may_write && !q->may_write(q->may_write_arg, cluster, len))
		return false;
	has_room = cluster_limit_take(&a->keeper->clusters, cluster, len, a->now_ns);
	a->is_full |= !has_room;
	return has_room;
}

/* read_rows - 0, or why the request as a whole is refused, in @ret. */
static int read_rows(struct keeper *k, const struct keeper_request *q, struct rows *rows,
	struct keeper_result *ret)
{
	struct asked asked = {.keeper = k, .request = q, .now_ns = mono_now().ns};
	struct keeper_request guarded = *q;
	struct errinfo e = {0};
	int r;

	guarded.may_write = may_write;
	guarded.may_write_arg = &asked;
	r = rows_read(&guarded, wall_now().ns, k->seen, rows, &e);
	if (r < 0) {
		snprintf(ret->why, sizeof(ret->why), "%s", *e.text ? e.text : reason_of(r));
		return r;
	}
	r = judge_rows(rows, ret);
	if (asked.is_full && r != -EAGAIN)
		snprintf(ret->why, sizeof(ret->why),
			"rows of more than %d clusters came within an hour: give clusters fewer names",
			CLUSTER_LIMIT);
	return asked.is_full && r == -EACCES ? -EBADMSG : r;
}

void keeper_take(struct keeper *k, const struct keeper_request *q, keeper_done *done, void *arg)
{
	_cleanup_(rows_done) struct rows rows = {.batch.bytes = BUF_INIT(ROWS_BYTES_MAX)};
	struct seen_key key = seen_key_of(otlp_signal_id(q->signal), q->data, q->len);
	struct seen_key part = key_of_part(q, &key);
	enum seen_state state = MAX(seen_find(k->seen, &key), seen_find(k->seen, &part));
	const char *why = not_now(k);
	struct keeper_result result = {0};
	int r;

	if (!why && state == SEEN_PENDING)
		why = "the same request is being written: come again later";
	if (why) {
		refuse(k, done, arg, -EAGAIN, why);
		return;
	}
	if (state == SEEN_KEPT) {
		k->stats.duplicates++;
		done(arg, &(struct keeper_result){.duplicate = true});
		return;
	}
	r = read_rows(k, q, &rows, &result);
	if (r < 0)
		refuse(k, done, arg, r, result.why);
	else if (!rows.batch.row_count)
		done(arg, &result);
	else
		take_rows(k, &rows, rows.refused ? &part : &key, &result, done, arg);
}

void keeper_take_rows(struct keeper *k, const struct batch *b, keeper_done *done, void *arg)
{
	_cleanup_(pending_freep) struct pending *p = pending_new(k, done, arg);
	int r = -ENOMEM;

	if (p) {
		p->result.taken = b->row_count;
		r = b->bytes.err ? b->bytes.err : append(k, p, b);
	}
	if (r < 0)
		refuse(k, done, arg, r, reason_of(r));
	else
		TAKE(p);
}

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

/* learn - an entry that was written before the restart. */
static int learn(struct keeper *k, const struct journal_entry *e)
{
	struct entry entry;
	int r = entry_get(e->data, e->len, &entry);

	if (r < 0)
		return 0; /* it is the filling thread's to say so */
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

/* check_journal - whether it has all that the store still needs. */
static int check_journal(struct keeper *k, struct errinfo *reterr)
{
	struct journal_stats j = journal_stats(k->journal);
	uint64_t durable = store_durable(k->store);

	if (!j.first || j.first <= durable + 1)
		return 0;
	return errinfo_set(reterr, -ENOENT,
		"the store ends at entry %" PRIu64 " and the journal begins at %" PRIu64
		": put the journal's older files back, or move its folder away to go on without them",
		durable, j.first);
}

static int keeper_start(struct keeper *k, struct errinfo *reterr)
{
	int r = check_journal(k, reterr);

	if (r == 0)
		r = learn_all(k, reterr);
	if (r < 0)
		return r;
	k->finished_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->finished_fd < 0)
		return errinfo_set(reterr, -errno, "cannot start the keeper: %s", strerror(errno));
	r = loop_watch(k->loop, k->finished_fd, on_finished, k);
	if (r == 0)
		r = loop_timer_new(k->loop, on_tick, k, &k->timer);
	if (r == 0)
		r = keeper_fill_start(&k->fill, reterr);
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
	k->fill = (struct keeper_fill){
		.journal = s->journal, .store = s->store, .finished = on_filled, .arg = k};
	pthread_mutex_init(&k->fill.lock, NULL);
	r = seen_new(KEEPER_SEEN_NS, &k->seen);
	if (r == 0)
		r = keeper_start(k, reterr);
	if (r < 0)
		return r;
	*ret = TAKE(k);
	return 0;
}

void keeper_free(struct keeper *k)
{
	struct pending *p, *next;

	keeper_fill_stop(&k->fill);
	if (k->timer)
		loop_timer_free(k->timer);
	if (k->finished_fd >= 0) {
		loop_watch(k->loop, k->finished_fd, NULL, NULL);
		close(k->finished_fd);
	}
	for (p = TAILQ_FIRST(&k->pending); p; p = next) {
		next = TAILQ_NEXT(p, link);
		p->keeper = NULL; /* the journal frees it */
		if (p->done)
			tell(p->done, p->arg, &p->result, -ECANCELED, reason_of(-ECANCELED));
	}
	if (k->seen)
		seen_free(k->seen);
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
	s.degraded = keeper_fill_why(&k->fill, s.why, sizeof(s.why));
	if (!s.degraded && s.journal.fault) {
		s.degraded = true;
		snprintf(s.why, sizeof(s.why), "the journal cannot be written: %s",
			strerror(-s.journal.fault));
	}
	return s;
}
