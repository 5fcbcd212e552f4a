/* SPDX-License-Identifier: Apache-2.0 */
/* store_duck_set.c - changes of the set of parts: first on disk, then in memory, and what is gone is
 * removed when the last question that reads it is done. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "cluster/store/store_duck_private.h"

static bool is_among(const struct part *p, struct part *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (list[i] == p)
			return true;
	return false;
}

/* The parts that the next manifest names; they stay whose they are. */
static int next_parts(const struct store_duck *s, const struct change *c, struct parts *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->parts.count; i++) {
		struct part *p = s->parts.items[i];

		if (!p->gone && !is_among(p, c->remove, c->remove_count))
			r = parts_add(ret, p);
	}
	for (size_t i = 0; r == 0 && c->add && i < c->add->count; i++)
		r = parts_insert(ret, c->add->items[i]);
	return r;
}

/* There is room: it was made before the manifest was written. */
static void apply(struct store_duck *s, const struct change *c)
{
	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; i < c->remove_count; i++)
		c->remove[i]->gone = true;
	for (size_t i = 0; c->add && i < c->add->count; i++)
		parts_insert(&s->parts, c->add->items[i]);
	if (c->durable)
		s->durable = c->durable;
	s->dropped_rows += c->dropped_rows;
	if (c->found) {
		size_t i = 0;

		while (s->missing.items[i] != c->found)
			i++;
		s->missing.items[i] = s->missing.items[--s->missing.count];
	}
	if (c->missing)
		s->missing.items[s->missing.count++] = c->missing;
	if (c->durable && s->frozen) {
		s->retired[s->retired_count++] = s->frozen;
		s->frozen = NULL;
	}
	pthread_mutex_unlock(&s->set_mutex);
	if (c->add)
		c->add->count = 0;
}

static int make_room(struct store_duck *s, size_t count)
{
	int r;

	pthread_mutex_lock(&s->set_mutex);
	r = ARRAY_RESERVE(s->parts.items, s->parts.room, s->parts.count + count, STORE_PARTS_MAX);
	if (r == 0)
		r = ARRAY_RESERVE(
			s->missing.items, s->missing.room, s->missing.count + 1, STORE_PARTS_MAX);
	pthread_mutex_unlock(&s->set_mutex);
	return r;
}

/* The missing ones of the next manifest. */
static int next_missing(const struct store_duck *s, const struct change *c, struct parts *ret)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->missing.count; i++)
		if (s->missing.items[i] != c->found)
			r = parts_add(ret, s->missing.items[i]);
	return r == 0 && c->missing ? parts_add(ret, c->missing) : r;
}

int set_change(struct store_duck *s, const struct change *c, struct errinfo *reterr)
{
	struct manifest m = {.durable = c->durable ? c->durable : s->durable,
		.next_id = s->next_id,
		.dropped_rows = s->dropped_rows + c->dropped_rows,
		.losses = s->losses,
		.clock_ns = s->clock.now_ns};
	int r = make_room(s, c->add ? c->add->count : 0);

	memcpy(m.id, s->id, sizeof(m.id));
	if (r == 0)
		r = next_parts(s, c, &m.parts);
	if (r == 0)
		r = next_missing(s, c, &m.missing);
	if (r == 0) {
		store_duck_at("before the manifest");
		r = manifest_write(s->folder, &m, reterr);
		store_duck_at("after the manifest");
	}
	free(m.parts.items);
	free(m.missing.items);
	if (r == 0)
		apply(s, c);
	return r;
}

/* ---- removing ---- */

static void detach(struct store_duck *s, const char *alias)
{
	char text[STORE_ALIAS_MAX + 16];

	snprintf(text, sizeof(text), "DETACH %s", alias);
	duck_exec(s->write, text, NULL);
}

static struct generation *next_generation(struct store_duck *s)
{
	struct generation *g = NULL;

	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; !g && i < s->retired_count; i++)
		if (s->retired[i]->users == 0) {
			g = s->retired[i];
			s->retired[i] = s->retired[--s->retired_count];
		}
	pthread_mutex_unlock(&s->set_mutex);
	return g;
}

static struct part *next_gone(struct store_duck *s)
{
	struct part *p = NULL;

	pthread_mutex_lock(&s->set_mutex);
	for (size_t i = 0; !p && i < s->parts.count; i++)
		if (s->parts.items[i]->gone && s->parts.items[i]->users == 0) {
			p = s->parts.items[i];
			memmove(&s->parts.items[i], &s->parts.items[i + 1],
				(--s->parts.count - i) * sizeof(*s->parts.items));
		}
	pthread_mutex_unlock(&s->set_mutex);
	return p;
}

void set_sweep(struct store_duck *s)
{
	char alias[STORE_ALIAS_MAX], path[STORE_PATH_MAX];
	struct generation *g;
	struct part *p;

	while ((g = next_generation(s))) {
		detach(s, generation_alias(g, alias));
		free(g);
	}
	while ((p = next_gone(s))) {
		detach(s, part_alias(p, alias));
		if (part_path(s, p, "", path, NULL) == 0)
			unlink(path); /* one that stays is removed when the store is opened */
		part_free(p);
	}
}
