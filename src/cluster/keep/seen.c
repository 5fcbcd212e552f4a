/* SPDX-License-Identifier: Apache-2.0 */
/* seen.c - see seen.h. Keys are parts of SHA-256, so that nobody can make one that meets another's, and
 * their first bytes serve as the hash. */
#include "cluster/keep/seen.h"

#include "net/digest.h"

#define SLOTS_MIN 1024

enum { SLOT_FREE, SLOT_GONE, SLOT_PENDING, SLOT_KEPT };

struct generation {
	struct seen_key *keys;
	uint8_t *slots;
	size_t size; /* a power of two; 0: nothing was ever put */
	size_t used; /* slots that are not free */
};

struct seen {
	struct generation young, old;
	uint64_t keep_ns;
	uint64_t since_ns; /* of the young one; 0: seen_age() has not run */
};

static unsigned digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

int seen_key_of(const char *kind, const void *data, size_t len, struct seen_key *ret)
{
	char hex[DIGEST_HEX], text[2 * DIGEST_HEX];
	size_t n = strnlen(kind, sizeof(text) - sizeof(hex));
	/* The kind goes in with the digest of the rest: one way through the bytes, no copy. */
	int r = digest_sha256(data, len, hex);

	if (r < 0)
		return r;
	memcpy(text, kind, n);
	memcpy(text + n, hex, sizeof(hex));
	r = digest_sha256(text, n + sizeof(hex), hex);
	if (r < 0)
		return r;
	for (size_t i = 0; i < SEEN_KEY; i++)
		ret->bytes[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	return 0;
}

int seen_new(uint64_t keep_ns, struct seen **ret)
{
	struct seen *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->keep_ns = keep_ns;
	*ret = s;
	return 0;
}

static void generation_done(struct generation *g)
{
	free(g->keys);
	free(g->slots);
	*g = (struct generation){0};
}

void seen_free(struct seen *s)
{
	generation_done(&s->young);
	generation_done(&s->old);
	free(s);
}

/* find_slot - of @k, or the first free one for it. */
static size_t find_slot(const struct generation *g, const struct seen_key *k)
{
	size_t at;

	memcpy(&at, k->bytes, sizeof(at));
	for (at &= g->size - 1; g->slots[at] != SLOT_FREE; at = (at + 1) & (g->size - 1))
		if (memcmp(&g->keys[at], k, sizeof(*k)) == 0)
			break;
	return at;
}

static uint8_t state_in(const struct generation *g, const struct seen_key *k)
{
	return g->size ? g->slots[find_slot(g, k)] : SLOT_FREE;
}

enum seen_state seen_find(const struct seen *s, const struct seen_key *k)
{
	uint8_t a = state_in(&s->young, k), b = state_in(&s->old, k);
	uint8_t state = MAX(a, b);

	return state == SLOT_KEPT ? SEEN_KEPT : state == SLOT_PENDING ? SEEN_PENDING : SEEN_NOT;
}

static int generation_grow(struct generation *g, size_t size)
{
	struct generation grown = {
		.keys = malloc(size * sizeof(*grown.keys)), .slots = calloc(size, 1), .size = size};

	if (!grown.keys || !grown.slots) {
		generation_done(&grown);
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->size; i++) {
		size_t at;

		if (g->slots[i] != SLOT_PENDING && g->slots[i] != SLOT_KEPT)
			continue;
		at = find_slot(&grown, &g->keys[i]);
		grown.keys[at] = g->keys[i];
		grown.slots[at] = g->slots[i];
		grown.used++;
	}
	generation_done(g);
	*g = grown;
	return 0;
}

static void forget_old(struct seen *s)
{
	generation_done(&s->old);
	s->old = s->young;
	s->young = (struct generation){0};
}

static int put(struct seen *s, const struct seen_key *k, uint8_t slot)
{
	struct generation *g = &s->young;
	size_t at;
	int r;

	if (g->used >= SEEN_KEYS_MAX)
		forget_old(s);
	if (2 * (g->used + 1) > g->size) {
		r = generation_grow(g, MAX((size_t)SLOTS_MIN, 2 * g->size));
		if (r < 0)
			return r;
	}
	at = find_slot(g, k);
	g->used += g->slots[at] == SLOT_FREE;
	g->keys[at] = *k;
	g->slots[at] = slot;
	return 0;
}

static void forget(struct generation *g, const struct seen_key *k)
{
	size_t at = g->size ? find_slot(g, k) : 0;

	if (g->size && g->slots[at] != SLOT_FREE)
		g->slots[at] = SLOT_GONE;
}

int seen_set(struct seen *s, const struct seen_key *k, enum seen_state state)
{
	if (state != SEEN_NOT)
		return put(s, k, state == SEEN_KEPT ? SLOT_KEPT : SLOT_PENDING);
	forget(&s->young, k);
	forget(&s->old, k);
	return 0;
}

void seen_age(struct seen *s, uint64_t now_ns)
{
	s->since_ns = s->since_ns ?: now_ns;
	if (now_ns - s->since_ns < s->keep_ns)
		return;
	s->since_ns = now_ns;
	forget_old(s);
}

static void put_kept(const struct generation *g, struct buf *b)
{
	for (size_t i = 0; i < g->size; i++)
		if (g->slots[i] == SLOT_KEPT)
			buf_append(b, &g->keys[i], sizeof(g->keys[i]));
}

void seen_put(const struct seen *s, struct buf *b)
{
	put_kept(&s->young, b);
	put_kept(&s->old, b);
}
