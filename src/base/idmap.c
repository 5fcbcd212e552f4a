/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.c - open addressing with linear probing; at most 3/4 full; removal shifts later entries
 * back, so there are no tombstones. An empty slot has value NULL. */
#include "base/idmap.h"

#include <errno.h>
#include <stdlib.h>

struct idmap_slot {
	uint64_t id;
	void *value;
};

void idmap_done(struct idmap *m)
{
	free(m->slots);
	*m = IDMAP_INIT(m->max);
}

/* splitmix64's finisher: neighbouring ids (pids) must not form runs. */
static size_t slot_of(const struct idmap *m, uint64_t id)
{
	id ^= id >> 30;
	id *= 0xbf58476d1ce4e5b9ULL;
	id ^= id >> 27;
	id *= 0x94d049bb133111ebULL;
	id ^= id >> 31;
	return (size_t)id & (m->capacity - 1);
}

static struct idmap_slot *find(const struct idmap *m, uint64_t id)
{
	size_t i = slot_of(m, id);

	while (m->slots[i].value && m->slots[i].id != id)
		i = (i + 1) & (m->capacity - 1);
	return &m->slots[i];
}

void *idmap_get(const struct idmap *m, uint64_t id)
{
	return m->capacity ? find(m, id)->value : NULL;
}

static int grow(struct idmap *m)
{
	struct idmap bigger = {.max = m->max, .capacity = m->capacity ? m->capacity * 2 : 64};

	bigger.slots = calloc(bigger.capacity, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->capacity; i++)
		if (m->slots[i].value)
			*find(&bigger, m->slots[i].id) = m->slots[i];
	bigger.used = m->used;
	free(m->slots);
	*m = bigger;
	return 0;
}

int idmap_put(struct idmap *m, uint64_t id, void *value)
{
	struct idmap_slot *s;
	int r;

	if ((m->used + 1) * 4 > m->capacity * 3) {
		r = grow(m);
		if (r < 0)
			return r;
	}
	s = find(m, id);
	if (!s->value) {
		if (m->used >= m->max)
			return -ENOBUFS;
		m->used++;
	}
	*s = (struct idmap_slot){id, value};
	return 0;
}

void *idmap_remove(struct idmap *m, uint64_t id)
{
	struct idmap_slot *s;
	size_t hole, i;
	void *value;

	if (!m->capacity)
		return NULL;
	s = find(m, id);
	value = s->value;
	if (!value)
		return NULL;
	m->used--;
	hole = i = (size_t)(s - m->slots);
	for (;;) {
		size_t home;

		m->slots[hole].value = NULL;
		do {
			i = (i + 1) & (m->capacity - 1);
			if (!m->slots[i].value)
				return value;
			home = slot_of(m, m->slots[i].id);
			/* keep it where it is while its home lies cyclically in (hole, i] */
		} while (hole <= i ? hole < home && home <= i : hole < home || home <= i);
		m->slots[hole] = m->slots[i];
		hole = i;
	}
}

void *idmap_next(const struct idmap *m, size_t *cursor, uint64_t *ret_id)
{
	while (*cursor < m->capacity) {
		const struct idmap_slot *s = &m->slots[(*cursor)++];

		if (s->value) {
			if (ret_id)
				*ret_id = s->id;
			return s->value;
		}
	}
	return NULL;
}
