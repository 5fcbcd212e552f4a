/* SPDX-License-Identifier: Apache-2.0 */
/* intern.c - open addressing over pointers to single allocations. The table is at most half full.
 */
#include "base/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/macros.h"

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

static struct intern_slot *slot_of(
	struct intern_slot *slots, size_t capacity, uint64_t hash, const char *s, size_t len)
{
	size_t i = (size_t)(hash ^ (hash >> 32)) & (capacity - 1);

	while (slots[i].text && !(slots[i].hash == hash && strlen(slots[i].text) == len &&
					memcmp(slots[i].text, s, len) == 0))
		i = (i + 1) & (capacity - 1);
	return &slots[i];
}

static int grow(struct intern *p)
{
	size_t capacity = p->capacity ? 2 * p->capacity : FIRST_CAPACITY;
	struct intern_slot *slots = calloc(capacity, sizeof(*slots));

	if (!slots)
		return -1;
	for (size_t i = 0; i < p->capacity; i++)
		if (p->slots[i].text)
			*slot_of(slots, capacity, p->slots[i].hash, p->slots[i].text,
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
	hash = hash_bytes(s, len);
	if (2 * p->used >= p->capacity && grow(p) < 0 && p->used + 1 >= p->capacity) {
		p->refused++;
		return refusal;
	}
	slot = slot_of(p->slots, p->capacity, hash, s, len);
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
