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
	uint64_t h = mix(1, p->line | (uint64_t)p->owner << 8), name[2] = {0};

	memcpy(name, p->culprit, sizeof(p->culprit));
	h = mix(mix(h, p->pid), p->place);
	return mix(mix(h, name[0]), name[1]);
}

STATIC_ASSERT(COMM_LEN == 2 * sizeof(uint64_t));

static size_t find(const struct tally *t, uint64_t id) /* + 1; 0: there is none */
{
	return (size_t)(uintptr_t)idmap_get(&t->numbers, id);
}

const struct tally_part *tally_find(const struct tally *t, const struct tally_part *p)
{
	size_t at = find(t, hash_of(p));

	return at ? &t->parts[at - 1] : NULL;
}

int tally_merge(struct tally *t, const struct tally_part *p)
{
	struct tally_part plain = *p, *to;
	uint64_t id = hash_of(p);
	size_t at = find(t, id);

	if (!p->ns)
		return 0;
	if (!at && t->count >= TALLY_PARTS_MAX) {
		plain.place = plain.stack_hash = 0;
		plain.culprit_pid = 0;
		memset(plain.culprit, 0, COMM_LEN);
		id = hash_of(&plain);
		at = find(t, id);
	}
	if (!at) {
		at = t->count + 1;
		t->numbers.max = RECORDING_ROWS_MAX;
		if (ARRAY_RESERVE(t->parts, t->room, at, RECORDING_ROWS_MAX) < 0 ||
			idmap_put(&t->numbers, id, (void *)(uintptr_t)at) < 0)
			return -ENOMEM;
		t->parts[t->count] = plain;
		t->parts[t->count].ns = t->parts[t->count].stack_ns = t->parts[t->count].wait_ns =
			0;
		t->count = at;
	}
	to = &t->parts[at - 1];
	to->ns += p->ns;
	to->blocks |= p->blocks;
	to->by_clock &= p->by_clock;
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
	idmap_clear(&t->numbers);
	memset(t->ns, 0, sizeof(t->ns));
}

void tally_done(struct tally *t)
{
	free(t->parts);
	idmap_done(&t->numbers);
	*t = (struct tally){0};
}
