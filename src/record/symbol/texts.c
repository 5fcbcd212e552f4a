/* SPDX-License-Identifier: Apache-2.0 */
/* texts.c - see texts.h. A hash table with open addressing over blocks that only grow.
 *
 * Invariants: at most half of the slots are taken; a slot without a text is free. */
#include "record/symbol/texts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "demangle/cut_text.h"
#include "demangle/demangle.h"
#include "record/symbol/names.h"

#define BLOCK_BYTES (64u << 10)
#define KEY_MAX     (9u << 10) /* longer names are told by their front: nothing demangles them */
#define SLOTS_FIRST 1024

struct block {
	struct block *next;
	size_t used;
	char data[BLOCK_BYTES];
};

struct slot {
	uint64_t hash;
	const char *key;
	const char *text;
	uint32_t key_len;
	bool is_demangled; /* the text was made from the key, else it is the key */
};

struct texts {
	struct block *blocks;
	size_t bytes; /* in blocks */
	struct slot *slots;
	size_t used, cap; /* cap is a power of two */
};

int texts_new(struct texts **ret)
{
	struct texts *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cap = SLOTS_FIRST;
	t->slots = calloc(t->cap, sizeof(*t->slots));
	if (!t->slots) {
		free(t);
		return -ENOMEM;
	}
	*ret = t;
	return 0;
}

void texts_free(struct texts *t)
{
	while (t->blocks) {
		struct block *next = t->blocks->next;

		free(t->blocks);
		t->blocks = next;
	}
	free(t->slots);
	free(t);
}

static const char *store(struct texts *t, const char *s, size_t len)
{
	char *place;

	if (!t->blocks || t->blocks->used + len + 1 > BLOCK_BYTES) {
		struct block *b;

		if (t->bytes + BLOCK_BYTES > TEXTS_BYTES_MAX)
			return NULL;
		b = malloc(sizeof(*b));
		if (!b)
			return NULL;
		b->next = t->blocks;
		b->used = 0;
		t->blocks = b;
		t->bytes += BLOCK_BYTES;
	}
	place = t->blocks->data + t->blocks->used;
	memcpy(place, s, len);
	place[len] = 0;
	t->blocks->used += len + 1;
	return place;
}

/* Eight bytes at a time: mangled names have hundreds, and every answer looks up several. */
static uint64_t hash_of(const char *s, size_t len)
{
	uint64_t h = len, word;

	for (; len >= sizeof(word); s += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, s, sizeof(word));
		h = (h ^ word) * 0x9e3779b97f4a7c15;
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, s, len);
	h = (h ^ word) * 0x9e3779b97f4a7c15;
	return h ^ h >> 32;
}

/* The slot of the key, or the free one where it belongs. */
static struct slot *slot_of(
	const struct texts *t, uint64_t hash, const char *s, size_t len, bool is_demangled)
{
	for (size_t i = hash;; i++) {
		struct slot *slot = &t->slots[i & (t->cap - 1)];

		if (!slot->text || (slot->hash == hash && slot->is_demangled == is_demangled &&
					   slot->key_len == len && memcmp(slot->key, s, len) == 0))
			return slot;
	}
}

static int grow(struct texts *t)
{
	struct slot *old = t->slots;
	size_t old_cap = t->cap;
	struct slot *slots = calloc(old_cap * 2, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	t->slots = slots;
	t->cap = old_cap * 2;
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].text)
			*slot_of(t, old[i].hash, old[i].key, old[i].key_len, old[i].is_demangled) =
				old[i];
	free(old);
	return 0;
}

static const char *look_up(struct texts *t, const char *s, size_t len, bool is_demangled)
{
	uint64_t hash;
	struct slot *slot;
	const char *key, *text;
	char made[NAMES_TEXT_MAX];

	len = MIN(len, (size_t)KEY_MAX);
	hash = hash_of(s, len);
	slot = slot_of(t, hash, s, len, is_demangled);
	if (slot->text)
		return slot->text;
	if ((t->used + 1) * 2 > t->cap) {
		if (grow(t) < 0)
			return NULL;
		slot = slot_of(t, hash, s, len, is_demangled);
	}
	key = store(t, s, len);
	if (!key)
		return NULL;
	if (is_demangled) {
		demangle(key, made, sizeof(made));
	} else {
		struct cut_text cut = cut_text_on(made, sizeof(made));

		cut_text_put(&cut, s, len);
	}
	text = strcmp(made, key) == 0 ? key : store(t, made, strlen(made));
	if (!text)
		return NULL;
	*slot = (struct slot){.hash = hash,
		.key = key,
		.text = text,
		.key_len = (uint32_t)len,
		.is_demangled = is_demangled};
	t->used++;
	return text;
}

const char *texts_keep(struct texts *t, const char *s, size_t len)
{
	return look_up(t, s, len, false);
}

const char *texts_demangled(struct texts *t, const char *mangled, size_t len)
{
	return look_up(t, mangled, len, true);
}
