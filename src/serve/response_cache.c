/* SPDX-License-Identifier: Apache-2.0 */
/* response_cache.c - see serve_private.h.
 *
 * Invariant: a slot that somebody is making is neither given away nor taken for another key; it is
 * made by one caller, who calls response_cache_end(). */
#include "base/mutex.h"
#include "serve/serve_private.h"

#include <sys/stat.h>
#include <time.h>

#include "base/macros.h"
#include "store/lock.h"

#define RESPONSE_CACHE_NS      (5 * NS_PER_S)
#define RESPONSE_CACHE_SAME_NS (60 * NS_PER_S) /* files unchanged: only the clock goes on */

static struct file_mark file_mark(const char *path)
{
	static const char *const suffixes[] = {"", "-wal"};
	struct file_mark m = {{0}};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		struct stat st;

		if (stat(FORMATTED(4200, "%s%s", path, suffixes[i]), &st) < 0)
			continue;
		m.value[3 * i] = (uint64_t)st.st_ino;
		m.value[3 * i + 1] = (uint64_t)st.st_size;
		m.value[3 * i + 2] =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	}
	return m;
}

static bool file_mark_same(const struct file_mark *a, const struct file_mark *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Both are of one file, whatever was written into it meanwhile. */
static bool file_mark_is_of(const struct file_mark *a, const struct file_mark *b)
{
	return a->value[0] && a->value[0] == b->value[0];
}

#define KEY_MAX   512
#define BYTES_MAX (8u << 20)

struct response_cache_slot {
	char key[KEY_MAX]; /* "": free */
	bool being_made;
	uint64_t made_ns;
	struct file_mark mark;
	struct buf answer;
};

struct response_cache {
	pthread_mutex_t mutex;
	pthread_cond_t made;
	struct response_cache_slot slots[RESPONSE_CACHE_SLOTS];
};

int response_cache_new(struct response_cache **ret)
{
	struct response_cache *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->mutex, NULL);
	pthread_cond_init(&k->made, NULL);
	*ret = k;
	return 0;
}

void response_cache_free(struct response_cache *k)
{
	for (size_t i = 0; i < RESPONSE_CACHE_SLOTS; i++)
		buf_done(&k->slots[i].answer);
	pthread_cond_destroy(&k->made);
	pthread_mutex_destroy(&k->mutex);
	free(k);
}

static struct response_cache_slot *find(struct response_cache *k, const char *key)
{
	return FIND(x, k->slots, RESPONSE_CACHE_SLOTS, !strcmp(x->key, key));
}

/* A free one, or the oldest. */
static struct response_cache_slot *take_slot(struct response_cache *k)
{
	struct response_cache_slot *oldest = NULL;

	for (size_t i = 0; i < RESPONSE_CACHE_SLOTS; i++) {
		struct response_cache_slot *s = &k->slots[i];

		if (!s->being_made && (!oldest || s->made_ns < oldest->made_ns))
			oldest = s;
	}
	return oldest;
}

bool response_cache_begin(struct response_cache *k, const char *path, const char *key,
	struct buf *out, uint64_t *ret_age_ns, struct response_cache_slot **ret_slot)
{
	struct file_mark now = file_mark(path);
	struct response_cache_slot *s = NULL;
	bool hit = false;

	*ret_slot = NULL;
	if (!key[0] || strlen(key) >= KEY_MAX)
		return false;
	MUTEX_HELD(&k->mutex);
	while ((s = find(k, key)) && s->being_made)
		pthread_cond_wait(&k->made, &k->mutex);
	if (s) {
		*ret_age_ns = mono_now().ns - s->made_ns;
		hit = *ret_age_ns < RESPONSE_CACHE_NS ||
		      (*ret_age_ns < RESPONSE_CACHE_SAME_NS && file_mark_same(&s->mark, &now));
	}
	if (hit) {
		buf_append(out, buf_str(&s->answer), s->answer.len);
	} else {
		s = s ? s : take_slot(k);
		if (s) {
			snprintf(s->key, sizeof(s->key), "%s", key);
			s->being_made = true;
			s->mark = now;
			*ret_slot = s;
		}
	}
	return hit;
}

void response_cache_end(
	struct response_cache *k, struct response_cache_slot *slot, const struct buf *made)
{
	if (!slot)
		return;
	MUTEX_HELD(&k->mutex);
	buf_done(&slot->answer);
	slot->answer = BUF_INIT(BYTES_MAX);
	if (made)
		buf_append(&slot->answer, buf_str(made), made->len);
	if (!made || slot->answer.err)
		slot->key[0] = 0;
	slot->made_ns = mono_now().ns;
	slot->being_made = false;
	pthread_cond_broadcast(&k->made);
}

/* See serve_private.h.
 *
 * Invariants:
 *  1. One thread makes and extends; whoever answers holds the lock for reading.
 *  2. An index that could not be made is tried again after PAUSE_NS, not at every question.
 *  3. Extending takes no more than a sixth of the time. */

#define PAUSE_NS NS_PER_S
#define STEPS_NS (15 * NS_PER_S)
#define WAIT_MS  600
#define NICE     5
#define LARGE    200000 /* rows: more take longer than one waits for an answer */

struct timeline_keeper {
	const char *path;
	struct pool *pool;
	struct pool_job job;
	pthread_rwlock_t lock; /* of ix */
	struct timeline_index *ix;
	pthread_mutex_t mutex; /* of the following */
	pthread_cond_t made;
	bool is_working;
	uint64_t next_ns;       /* not before */
	uint64_t steps_next_ns; /* the thread's own */
	struct file_mark mark;
	atomic_uint progress;
};

static void publish(struct timeline_keeper *k, struct timeline_index *ix)
{
	struct timeline_index *old;

	pthread_rwlock_wrlock(&k->lock);
	old = k->ix;
	k->ix = ix;
	pthread_rwlock_unlock(&k->lock);
	if (old)
		timeline_index_done(old);
	free(old);
}

/* An index with or without the rows of events. */
static int make(
	struct timeline_keeper *k, struct nodedb_snapshot *l, bool rows, struct errinfo *reterr)
{
	struct timeline_index *ix = calloc(1, sizeof(*ix));
	int r = ix ? timeline_index_load(ix, l, rows, &k->progress, reterr) : -ENOMEM;

	if (r == 0) {
		publish(k, ix);
		return 0;
	}
	if (ix)
		timeline_index_done(ix);
	free(ix);
	return r;
}

static int load(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr)
{
	struct timeline_keeper *k = arg;
	struct nodedb_totals totals = {0};
	int r;

	if (k->ix && k->ix->has_rows) { /* this thread alone changes it */
		pthread_rwlock_wrlock(&k->lock);
		r = timeline_index_load(k->ix, l, true, NULL, reterr);
		pthread_rwlock_unlock(&k->lock);
		return r;
	}
	r = nodedb_snapshot_totals(l, &totals, reterr);
	if (r == 0 && totals.events > LARGE)
		r = make(k, l, false, reterr); /* something to look at meanwhile */
	return r ?: make(k, l, true, reterr);
}

/* Steps of training: costly, so that those who ask are not kept waiting for them, and not at every
 * second of a recording that grows. */
static void find_steps(struct timeline_keeper *k)
{
	uint64_t began = mono_now().ns;
	struct timeline_steps steps = {0};

	if (!k->ix || began < k->steps_next_ns)
		return;
	if (timeline_steps_load(k->ix, k->path, &steps, NULL) == 0) {
		pthread_rwlock_wrlock(&k->lock);
		timeline_index_steps(k->ix, &steps);
		pthread_rwlock_unlock(&k->lock);
	}
	k->steps_next_ns = mono_now().ns + MAX(STEPS_NS, 20 * (mono_now().ns - began));
}

/* On the pool's thread. */
static bool work(void *arg, bool brief)
{
	struct timeline_keeper *k = arg;
	uint64_t began = mono_now().ns;
	struct file_mark mark = file_mark(k->path);
	bool grows = store_lock_holder(k->path) != 0 && file_mark_is_of(&mark, &k->mark);
	int r;

	(void)brief;
	atomic_store(&k->progress, 0);
	if (!grows) {
		publish(k, NULL);
		k->steps_next_ns = 0;
	}
	r = nodedb_snapshot_read(k->path, load, k, NULL);
	if (r < 0)
		publish(k, NULL);
	pthread_mutex_lock(&k->mutex);
	k->mark = mark;
	k->next_ns = mono_now().ns + MAX(PAUSE_NS, 5 * (mono_now().ns - began));
	pthread_cond_broadcast(&k->made);
	pthread_mutex_unlock(&k->mutex);
	if (r == 0)
		find_steps(k);
	pthread_mutex_lock(&k->mutex);
	k->is_working = false;
	pthread_cond_broadcast(&k->made);
	pthread_mutex_unlock(&k->mutex);
	return true;
}

int timeline_keeper_new(const char *path, struct timeline_keeper **ret)
{
	struct timeline_keeper *k = calloc(1, sizeof(*k));
	int r = k ? pool_new(&(struct pool_settings){.threads = 1, .nice = NICE, .queue_max = 2},
			    &k->pool)
		  : -ENOMEM;

	if (r < 0) {
		free(k);
		return r;
	}
	k->path = path;
	k->job = (struct pool_job){.fn = work, .arg = k};
	pthread_rwlock_init(&k->lock, NULL);
	pthread_mutex_init(&k->mutex, NULL);
	pthread_cond_init(&k->made, NULL);
	*ret = k;
	return 0;
}

void timeline_keeper_free(struct timeline_keeper *k)
{
	pool_free(k->pool);
	publish(k, NULL);
	pthread_cond_destroy(&k->made);
	pthread_mutex_destroy(&k->mutex);
	pthread_rwlock_destroy(&k->lock);
	free(k);
}

static bool is_there(struct timeline_keeper *k)
{
	bool there;

	pthread_rwlock_rdlock(&k->lock);
	there = k->ix != NULL;
	pthread_rwlock_unlock(&k->lock);
	return there;
}

static void start(struct timeline_keeper *k, bool there)
{
	struct file_mark now = file_mark(k->path);

	if (k->is_working || mono_now().ns < k->next_ns)
		return;
	if (there && file_mark_same(&now, &k->mark))
		return;
	k->is_working = pool_push(k->pool, &k->job) == 0;
}

const struct timeline_index *timeline_keeper_begin(
	struct timeline_keeper *k, unsigned *ret_progress)
{
	bool there = is_there(k);
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += WAIT_MS * (long)NS_PER_MS;
	until.tv_sec += until.tv_nsec / (long)NS_PER_S;
	until.tv_nsec %= (long)NS_PER_S;
	pthread_mutex_lock(&k->mutex);
	start(k, there);
	while (!there && !(there = is_there(k)) && k->is_working)
		if (pthread_cond_timedwait(&k->made, &k->mutex, &until) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&k->mutex);
	*ret_progress = atomic_load(&k->progress);
	pthread_rwlock_rdlock(&k->lock);
	return k->ix;
}

void timeline_keeper_end(struct timeline_keeper *k)
{
	pthread_rwlock_unlock(&k->lock);
}
