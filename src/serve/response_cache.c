/* SPDX-License-Identifier: Apache-2.0 */
/* response_cache.c - see serve_private.h.
 *
 * Invariant: a slot that somebody is making is neither given away nor taken for another key; it is
 * made by one caller, who calls response_cache_end(). */
#include "serve/serve_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/macros.h"

#define RESPONSE_CACHE_NS      (5 * NS_PER_S)
#define RESPONSE_CACHE_SAME_NS (60 * NS_PER_S) /* files unchanged: only the clock goes on */

struct file_mark file_mark(const char *path)
{
	static const char *const suffixes[] = {"", "-wal"};
	struct file_mark m = {{0}};
	char name[4200];

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		struct stat st;

		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		if (stat(name, &st) < 0)
			continue;
		m.value[3 * i] = (uint64_t)st.st_ino;
		m.value[3 * i + 1] = (uint64_t)st.st_size;
		m.value[3 * i + 2] =
			(uint64_t)st.st_mtim.tv_sec * NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
	}
	return m;
}

bool file_mark_same(const struct file_mark *a, const struct file_mark *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool file_mark_is_of(const struct file_mark *a, const struct file_mark *b)
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

static bool is_good(
	const struct response_cache_slot *s, const struct file_mark *now, uint64_t age_ns)
{
	return age_ns < RESPONSE_CACHE_NS ||
	       (age_ns < RESPONSE_CACHE_SAME_NS && file_mark_same(&s->mark, now));
}

static struct response_cache_slot *find(struct response_cache *k, const char *key)
{
	for (size_t i = 0; i < RESPONSE_CACHE_SLOTS; i++)
		if (!strcmp(k->slots[i].key, key))
			return &k->slots[i];
	return NULL;
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
	pthread_mutex_lock(&k->mutex);
	while ((s = find(k, key)) && s->being_made)
		pthread_cond_wait(&k->made, &k->mutex);
	if (s) {
		*ret_age_ns = mono_now().ns - s->made_ns;
		hit = is_good(s, &now, *ret_age_ns);
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
	pthread_mutex_unlock(&k->mutex);
	return hit;
}

void response_cache_end(
	struct response_cache *k, struct response_cache_slot *slot, const struct buf *made)
{
	if (!slot)
		return;
	pthread_mutex_lock(&k->mutex);
	buf_done(&slot->answer);
	slot->answer = BUF_INIT(BYTES_MAX);
	if (made)
		buf_append(&slot->answer, buf_str(made), made->len);
	if (!made || slot->answer.err)
		slot->key[0] = 0;
	slot->made_ns = mono_now().ns;
	slot->being_made = false;
	pthread_cond_broadcast(&k->made);
	pthread_mutex_unlock(&k->mutex);
}
