/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_instance.c - the DuckDB instance: opened with every part, replaced when DuckDB gives it up.
 *
 * It has no file of its own: what it holds besides the parts can be read again from the journal. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cluster/store/store_duck_private.h"

static int open_duck(struct store_duck *s, struct errinfo *reterr)
{
	char memory[32], threads[16], spill[STORE_PATH_MAX];
	const struct duck_setting settings[] = {
		{"memory_limit", memory},
		{"threads", threads},
		{"temp_directory", spill},
		{"preserve_insertion_order", "false"},
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_community_extensions", "false"},
		{"allow_persistent_secrets", "false"},
		{NULL, NULL},
	};
	int r;

	snprintf(memory, sizeof(memory), "%" PRIu64 "MiB", s->settings.memory_bytes >> 20);
	snprintf(threads, sizeof(threads), "%d", s->settings.threads);
	snprintf(spill, sizeof(spill), "%s/spill", s->folder);
	r = duck_open(NULL, settings, &s->duck, reterr);
	if (r == 0)
		r = duck_connect(s->duck, &s->fill, reterr);
	return r == 0 ? duck_connect(s->duck, &s->write, reterr) : r;
}

/* A damaged part is moved away, with a name that says what it was. */
static void move_away(struct store_duck *s, const struct part *p)
{
	char path[STORE_PATH_MAX], to[STORE_PATH_MAX + 64];

	if (part_path(s, p, "", path, NULL) < 0)
		return;
	snprintf(to, sizeof(to), "%s/" STORE_DAMAGED_NAME, s->folder);
	mkdir(to, 0700);
	part_damaged_path(s, p, to);
	rename(path, to); /* what stays is no part all the same */
}

int part_quarantine(struct store_duck *s, struct part *p, const char *why, struct errinfo *reterr)
{
	struct part *missing = part_copy(p);
	struct change change = {.remove = &p, .remove_count = 1, .missing = missing};
	int r;

	if (!missing)
		return -ENOMEM;
	snprintf(missing->why, sizeof(missing->why), "%s", why);
	r = set_change(s, &change, reterr);
	if (r < 0) {
		part_free(missing);
		return r;
	}
	move_away(s, p);
	return 0;
}

/* What cannot be opened though it is whole (no memory, no descriptors, a newer format) is not set aside. */
static int attach_part(struct store_duck *s, struct part *p, struct errinfo *reterr)
{
	char path[STORE_PATH_MAX], why[PART_WHY_MAX];
	struct errinfo e = {0};
	struct stat st;
	int r = part_path(s, p, "", path, reterr), damaged;

	if (r < 0)
		return r;
	if (stat(path, &st) == 0 && (uint64_t)st.st_size == p->bytes) {
		r = part_attach(s, s->write, p, &e);
		if (r == 0 || r == -ENOMEM)
			return r;
	}
	damaged = part_check(s, p, why);
	if (damaged == 1)
		return part_quarantine(s, p, why, reterr);
	return errinfo_set(reterr, damaged < 0 ? damaged : r, "%s cannot be opened: %.200s", path,
		damaged < 0 ? strerror(-damaged) : e.text);
}

int instance_open(struct store_duck *s, struct errinfo *reterr)
{
	int r = open_duck(s, reterr);

	for (size_t i = 0; r == 0 && i < s->parts.count; i++)
		if (!s->parts.items[i]->gone)
			r = attach_part(s, s->parts.items[i], reterr);
	if (r == 0)
		r = generation_new(s, s->fill, s->next_id++, &s->current, reterr);
	if (r == 0)
		set_sweep(s);
	return r;
}

void instance_close(struct store_duck *s)
{
	if (s->asking)
		asking_disconnect(s);
	duck_disconnectp(&s->fill);
	duck_disconnectp(&s->write);
	duck_closep(&s->duck);
	s->fill = s->write = NULL;
	s->duck = NULL;
	pthread_mutex_lock(&s->set_mutex);
	while (s->retired_count)
		free(s->retired[--s->retired_count]);
	free(TAKE(s->current));
	free(TAKE(s->frozen));
	pthread_mutex_unlock(&s->set_mutex);
	parts_done(&s->sealed); /* their files: see open */
}

int instance_use(struct store_duck *s, struct errinfo *reterr)
{
	pthread_rwlock_rdlock(&s->instance);
	if (s->duck)
		return 0;
	pthread_rwlock_unlock(&s->instance);
	return errinfo_set(reterr, -EIO, "DuckDB failed and cannot be restarted");
}

void instance_leave(struct store_duck *s)
{
	pthread_rwlock_unlock(&s->instance);
}

static bool is_alive(struct store_duck *s)
{
	bool alive;

	if (instance_use(s, NULL) < 0)
		return false;
	pthread_mutex_lock(&s->fill_mutex);
	alive = duck_exec(s->fill, "SELECT 1", NULL) == 0;
	pthread_mutex_unlock(&s->fill_mutex);
	instance_leave(s);
	return alive;
}

static void replace(struct store_duck *s)
{
	struct errinfo why = {0};
	int r;

	pthread_rwlock_wrlock(&s->instance);
	pthread_mutex_lock(&s->fill_mutex);
	instance_close(s);
	pthread_mutex_lock(&s->set_mutex);
	s->visible = s->durable;
	s->lost = true;
	pthread_mutex_unlock(&s->set_mutex);
	r = instance_open(s, &why);
	if (r < 0) {
		instance_close(s);
		store_fault(s, r, &why);
	}
	pthread_mutex_unlock(&s->fill_mutex);
	pthread_rwlock_unlock(&s->instance);
}

void instance_check(struct store_duck *s, bool write_held)
{
	if (is_alive(s))
		return;
	if (!write_held)
		pthread_mutex_lock(&s->write_mutex);
	if (!is_alive(s))
		replace(s);
	if (!write_held)
		pthread_mutex_unlock(&s->write_mutex);
}
