/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.c - open addressing with linear probing; at most 3/4 full; removal shifts later entries
 * back, so there are no tombstones. An empty slot has value NULL. */
#include "base/idmap.h"

#include "base/hash.h"
#include "base/macros.h"

/* Open addressing over pointers to single allocations. The table is at most half full. */

#define FIRST_CAPACITY 256

struct intern_slot {
	uint64_t hash;
	char *text; /* NULL: free */
};

static const char refusal[] = "(no room for names)";

void intern_done(struct intern *p)
{
	for (size_t i = 0; i < p->capacity; i++)
		free(p->slots[i].text);
	free(p->slots);
	*p = (struct intern){.max_bytes = p->max_bytes};
}

static struct intern_slot *intern_slot_of(
	struct intern_slot *slots, size_t capacity, uint64_t hash, const char *s, size_t len)
{
	size_t i = (size_t)(hash ^ (hash >> 32)) & (capacity - 1);

	while (slots[i].text && !(slots[i].hash == hash && strlen(slots[i].text) == len &&
					memcmp(slots[i].text, s, len) == 0))
		i = (i + 1) & (capacity - 1);
	return &slots[i];
}

static int intern_grow(struct intern *p)
{
	size_t capacity = p->capacity ? 2 * p->capacity : FIRST_CAPACITY;
	struct intern_slot *slots = calloc(capacity, sizeof(*slots));

	if (!slots)
		return -1;
	for (size_t i = 0; i < p->capacity; i++)
		if (p->slots[i].text)
			*intern_slot_of(slots, capacity, p->slots[i].hash, p->slots[i].text,
				strlen(p->slots[i].text)) = p->slots[i];
	free(p->slots);
	p->slots = slots;
	p->capacity = capacity;
	return 0;
}

const char *intern_len(struct intern *p, const char *s, size_t len)
{
	struct intern_slot *slot;
	uint64_t hash;

	if (!s)
		return NULL;
	len = strnlen(s, len);
	hash = hash_name(s, len);
	if (2 * p->used >= p->capacity && intern_grow(p) < 0 && p->used + 1 >= p->capacity) {
		p->refused++;
		return refusal;
	}
	slot = intern_slot_of(p->slots, p->capacity, hash, s, len);
	if (slot->text)
		return slot->text;
	if (p->bytes + len + 1 > p->max_bytes || !(slot->text = strndup(s, len))) {
		p->refused++;
		return refusal;
	}
	slot->hash = hash;
	p->used++;
	p->bytes += len + 1;
	return slot->text;
}

const char *intern(struct intern *p, const char *s)
{
	return s ? intern_len(p, s, strlen(s)) : NULL;
}

struct idmap_slot {
	uint64_t id;
	void *value;
};

void idmap_done(struct idmap *m)
{
	free(m->slots);
	*m = IDMAP_INIT(m->max);
}

void idmap_clear(struct idmap *m)
{
	if (m->used)
		memset(m->slots, 0, m->capacity * sizeof(*m->slots));
	m->used = 0;
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
	struct idmap_slot *s = m->capacity ? find(m, id) : NULL;
	int r;

	if (!s || !s->value) {
		if (m->used >= m->max)
			return -ENOBUFS;
		r = (m->used + 1) * 4 > m->capacity * 3 ? grow(m) : 0;
		if (r < 0)
			return r;
		s = find(m, id);
		m->used++;
	}
	*s = (struct idmap_slot){id, value};
	return 0;
}

static void *remove_at(struct idmap *m, size_t i)
{
	void *value = m->slots[i].value;
	size_t hole = i;

	m->used--;
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

void *idmap_remove(struct idmap *m, uint64_t id)
{
	const struct idmap_slot *s = m->capacity ? find(m, id) : NULL;

	return s && s->value ? remove_at(m, (size_t)(s - m->slots)) : NULL;
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

void *idmap_take(struct idmap *m, size_t *cursor)
{
	return remove_at(m, --*cursor); /* what follows may move there */
}
