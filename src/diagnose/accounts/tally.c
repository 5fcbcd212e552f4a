/* SPDX-License-Identifier: Apache-2.0 */
#include "diagnose/accounts/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/macros.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

/* Culprits of one name are one: 48 hogs are a crowd, not 48 causes. */
static uint64_t hash_of(const struct tally_part *p)
{
	uint64_t h = mix(p->line, p->owner), name[2] = {0};

	memcpy(name, p->culprit, sizeof(p->culprit));
	h = mix(mix(h, p->pid), p->place);
	return mix(mix(h, name[0]), name[1]);
}

static bool is_same(const struct tally_part *a, const struct tally_part *b)
{
	return a->line == b->line && a->owner == b->owner && a->pid == b->pid &&
	       a->place == b->place && !memcmp(a->culprit, b->culprit, COMM_LEN);
}

STATIC_ASSERT(COMM_LEN == 2 * sizeof(uint64_t));

static size_t slot_of(const struct tally *t, const struct tally_part *p)
{
	size_t i = hash_of(p) & (t->slot_count - 1);

	while (t->slots[i] && !is_same(&t->parts[t->slots[i] - 1], p))
		i = (i + 1) & (t->slot_count - 1);
	return i;
}

static int grow(struct tally *t)
{
	size_t n = t->slot_count ? t->slot_count * 2 : 64;
	uint32_t *slots;

	if (t->count * 2 < t->slot_count)
		return 0;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->slot_count = n;
	for (size_t i = 0; i < t->count; i++)
		t->slots[slot_of(t, &t->parts[i])] = (uint32_t)i + 1;
	return 0;
}

const struct tally_part *tally_find(const struct tally *t, const struct tally_part *p)
{
	size_t slot;

	if (!t->slot_count)
		return NULL;
	slot = slot_of(t, p);
	return t->slots[slot] ? &t->parts[t->slots[slot] - 1] : NULL;
}

int tally_merge(struct tally *t, const struct tally_part *p)
{
	struct tally_part plain = *p, *to;
	size_t slot;

	if (!p->ns)
		return 0;
	if (grow(t) < 0)
		return -ENOMEM;
	slot = slot_of(t, &plain);
	if (!t->slots[slot] && t->count >= TALLY_PARTS_MAX) {
		plain.place = plain.stack_hash = 0;
		plain.culprit_pid = 0;
		memset(plain.culprit, 0, COMM_LEN);
		slot = slot_of(t, &plain);
	}
	if (!t->slots[slot]) {
		if (ARRAY_RESERVE(t->parts, t->room, t->count + 1, RECORDING_ROWS_MAX) < 0)
			return -ENOMEM;
		t->parts[t->count] = plain;
		t->parts[t->count].ns = t->parts[t->count].stack_ns = t->parts[t->count].wait_ns =
			0;
		t->slots[slot] = (uint32_t)++t->count;
	}
	to = &t->parts[t->slots[slot] - 1];
	to->ns += p->ns;
	to->blocks |= p->blocks;
	if (p->stack_hash && p->stack_ns > to->stack_ns) {
		to->stack_hash = p->stack_hash;
		to->stack_ns = p->stack_ns;
	}
	if (p->wait_hash && p->wait_ns > to->wait_ns) {
		to->wait_hash = p->wait_hash;
		to->wait_ns = p->wait_ns;
	}
	t->ns[p->line] += p->ns;
	return 0;
}

int tally_add(struct tally *t, const struct tally_part *p)
{
	struct tally_part piece = *p;

	piece.stack_ns = MAX(p->stack_ns, p->ns);
	piece.wait_ns = p->ns;
	return tally_merge(t, &piece);
}

void tally_clear(struct tally *t)
{
	t->count = 0;
	if (t->slots)
		memset(t->slots, 0, t->slot_count * sizeof(*t->slots));
	memset(t->ns, 0, sizeof(t->ns));
}

void tally_done(struct tally *t)
{
	free(t->parts);
	free(t->slots);
	*t = (struct tally){0};
}
