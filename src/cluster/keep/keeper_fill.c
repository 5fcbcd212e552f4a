/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_fill.c - the thread that fills the store from the journal.
 *
 * It takes entries in order and commits when there are enough rows, or when no entry waits. A store that
 * fails is tried again from where it says it is, each time later, up to RETRY_MAX_NS; nothing is skipped
 * but an entry that no store can take, which is logged with its position. */
#include <sys/resource.h>

#include "base/mutex.h"
#include "cluster/keep/keeper_private.h"
#include "base/log.h"
#include "cluster/keep/keeper.h"

#define FILL_NICE    5
#define COMMIT_BYTES (8u << 20) /* of batches, taken before a commit */
#define WAIT_NS      (200 * NS_PER_MS)
#define UPKEEP_NS    NS_PER_S
#define RETRY_MIN_NS (50 * NS_PER_MS)
#define RETRY_MAX_NS (2 * NS_PER_S)

struct filling { /* the thread's alone */
	struct keeper_fill *f;
	struct journal_reader *reader;
	uint64_t taken; /* position of the last entry since the commit; 0: none */
	size_t bytes;   /* since the commit */
	uint64_t upkeep_ns;
	uint64_t missing_rows; /* that were told */
	bool is_ahead;         /* so was the clock */
	uint64_t retry_ns;
};

static void set_why(struct keeper_fill *f, const char *why)
{
	MUTEX_HELD(&f->lock);

	if (*why && !*f->why)
		log_error("cannot write to the store: %s", why);
	snprintf(f->why, sizeof(f->why), "%s", why);
}

bool keeper_fill_why(struct keeper_fill *f, char *ret, size_t size)
{
	MUTEX_HELD(&f->lock);

	snprintf(ret, size, "%s", f->why);
	return *ret;
}

static void note_durable(struct keeper_fill *f)
{
	f->durable = store_durable(f->store);
}

/* lose - entries that were acknowledged, and can be read no more: the store knows of it before it goes on. */
static int lose(struct filling *x, const struct journal_entry *e, struct errinfo *reterr)
{
	const struct store_loss l = {.first = e->first,
		.last = e->position,
		.since_ns = e->since_ns,
		.until_ns = e->wall_ns ? e->wall_ns : wall_now().ns};
	int r = store_lose(x->f->store, &l, reterr);

	if (r < 0)
		return r;
	log_error(
		"entries %" PRIu64 " to %" PRIu64
		" of the journal were acknowledged and are damaged or gone: their requests are missing",
		e->first, e->position);
	journal_preserve(x->f->journal, e->position);
	x->f->lost += e->position - e->first + 1;
	return store_take(x->f->store, e->position, "", 0, reterr);
}

static int take_entry(struct filling *x, const struct journal_entry *e, struct errinfo *reterr)
{
	struct store *s = x->f->store;
	struct entry entry = {0};
	int r = entry_get(e->data, e->len, &entry);

	r = r ?: store_take(s, e->position, entry.batch, entry.len, reterr);
	if (r == -EBADMSG) {
		log_error("entry %" PRIu64 " of the journal holds no readable rows: it is skipped",
			e->position);
		r = store_take(s, e->position, "", 0, reterr);
	}
	return r;
}

static int take(struct filling *x, const struct journal_entry *e, struct errinfo *reterr)
{
	int r = e->data ? take_entry(x, e, reterr) : lose(x, e, reterr);

	if (r < 0)
		return r;
	x->taken = e->position;
	x->bytes += e->len;
	return 0;
}

static int commit(struct filling *x, struct errinfo *reterr)
{
	int r;

	if (!x->taken)
		return 0;
	r = store_commit(x->f->store, reterr);
	if (r < 0)
		return r;
	x->f->visible = x->taken;
	x->taken = 0;
	x->bytes = 0;
	x->retry_ns = 0;
	set_why(x->f, "");
	note_durable(x->f);
	return 0;
}

/* tell_store - what was found since, once. */
static void tell_store(struct filling *x)
{
	struct store_stats s = {0};

	x->f->store->ops->stats(x->f->store, &s);
	if (s.missing.rows > x->missing_rows)
		log_error(
			"%" PRIu64 " rows of %" PRIu64
			" parts of the store are missing, because they are damaged: `ingero-cluster echo verify` says which",
			s.missing.rows, s.missing.parts);
	if (s.ahead_ns && !x->is_ahead)
		log_warning(
			"the clock is %" PRIi64
			" s ahead of the time that has passed: retention is paused for a day, or until a start with --trust-clock",
			s.ahead_ns / (int64_t)NS_PER_S);
	x->missing_rows = s.missing.rows;
	x->is_ahead = s.ahead_ns != 0;
}

static int upkeep(struct filling *x, struct errinfo *reterr)
{
	uint64_t now = mono_now().ns;
	struct store *s = x->f->store;
	int r;

	if (now < x->upkeep_ns)
		return 0;
	r = s->ops->upkeep(s, wall_now().ns, reterr);
	x->upkeep_ns = r == 1 ? now : now + UPKEEP_NS;
	if (r < 0)
		return r;
	x->retry_ns = 0;
	set_why(x->f, "");
	note_durable(x->f);
	tell_store(x);
	return 0;
}

/* step - the next entry, or a commit if none waits. */
static int step(struct filling *x, struct errinfo *reterr)
{
	struct journal_entry e;
	int r = journal_next(x->reader, x->taken ? 0 : WAIT_NS, &e, reterr);

	if (r < 0)
		return r;
	if (r == 1) {
		r = take(x, &e, reterr);
		if (r < 0 || x->bytes < COMMIT_BYTES)
			return r;
	}
	r = commit(x, reterr);
	return r < 0 ? r : upkeep(x, reterr);
}

/* begin_again - after what the store says it has. */
static int begin_again(struct filling *x, struct errinfo *reterr)
{
	struct store_stats s;

	journal_reader_freep(&x->reader);
	x->reader = NULL;
	x->taken = 0;
	x->bytes = 0;
	x->f->store->ops->stats(x->f->store, &s);
	x->f->visible = s.visible;
	x->f->replay_until = journal_stats(x->f->journal).durable;
	return journal_reader_new(x->f->journal, s.visible, &x->reader, reterr);
}

/* wait_to_retry - longer each time; a stop ends it. */
static void wait_to_retry(struct filling *x)
{
	uint64_t until;

	x->retry_ns = x->retry_ns ? MIN(2 * x->retry_ns, RETRY_MAX_NS) : RETRY_MIN_NS;
	until = mono_now().ns + x->retry_ns;
	while (!x->f->stop && mono_now().ns < until)
		nanosleep(&(struct timespec){.tv_nsec = (long)(10 * NS_PER_MS)}, NULL);
}

static bool has_all(const struct keeper_fill *f)
{
	return f->finish && f->visible >= f->until;
}

static void finish(struct filling *x)
{
	struct keeper_fill *f = x->f;
	struct errinfo e = {0};

	int r = f->store->ops->seal(f->store, &e);

	if (r == -ECANCELED)
		log_info("%s: the next start reads the rest from the journal", e.text);
	else if (r < 0)
		set_why(f, e.text); /* the journal has it */
	note_durable(f);
}

static void *run(void *arg)
{
	struct filling x = {.f = arg};
	struct keeper_fill *f = x.f;
	bool is_nice = false;

	while (!f->stop && !has_all(f)) {
		struct errinfo e = {0};
		int r = x.reader ? 0 : begin_again(&x, &e);

		r = r ?: step(&x, &e);
		/* Who asks goes first, once there are answers: what is filled later is on disk already. */
		if (!is_nice && f->visible >= f->replay_until)
			is_nice = setpriority(PRIO_PROCESS, (id_t)gettid(), FILL_NICE) == 0;
		if (r >= 0)
			continue;
		if (r == -ECANCELED && f->stop)
			break;
		set_why(f, *e.text ? e.text : strerror(-r));
		if (f->finish)
			break;
		wait_to_retry(&x);
		journal_reader_freep(&x.reader);
		x.reader = NULL;
	}
	if (has_all(f))
		finish(&x);
	journal_reader_freep(&x.reader);
	if (f->finish)
		f->finished(f->arg);
	return NULL;
}

int keeper_fill_start(struct keeper_fill *f, struct errinfo *reterr)
{
	struct store_stats s;
	int r;

	f->store->ops->stats(f->store, &s);
	f->visible = s.visible;
	f->replay_until = journal_stats(f->journal).durable;
	note_durable(f);
	r = -pthread_create(&f->thread, NULL, run, f);
	f->has_thread = r == 0;
	return r < 0 ? errinfo_set(reterr, r, "cannot start the thread that fills the store: %s",
			       strerror(-r))
		     : 0;
}

void keeper_fill_stop(struct keeper_fill *f)
{
	if (!f->has_thread)
		return;
	f->stop = true;
	if (f->store->ops->hurry)
		f->store->ops->hurry(f->store);
	journal_wake(f->journal);
	pthread_join(f->thread, NULL);
	f->has_thread = false;
}

struct head {
	uint8_t kind, zero[3];
	uint32_t key_count;
	uint64_t covered;
};
STATIC_ASSERT(sizeof(struct head) == 16);

void entry_put(struct buf *b, enum entry_kind kind, uint64_t covered, size_t key_count)
{
	const struct head h = {
		.kind = (uint8_t)kind, .key_count = (uint32_t)key_count, .covered = covered};

	buf_append(b, &h, sizeof(h));
}

int entry_get(const void *data, size_t len, struct entry *ret)
{
	const char *at = data;
	struct head h;
	size_t keys;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, at, sizeof(h));
	at += sizeof(h);
	len -= sizeof(h);
	keys = h.key_count * sizeof(struct seen_key);
	if ((h.kind != ENTRY_ROWS && h.kind != ENTRY_SEEN) || keys > len)
		return -EBADMSG;
	*ret = (struct entry){.kind = h.kind,
		.covered = h.covered,
		.keys = (const struct seen_key *)at,
		.key_count = h.key_count,
		.batch = at + keys,
		.len = len - keys};
	return 0;
}
