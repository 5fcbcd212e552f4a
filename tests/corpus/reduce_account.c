/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "reduce.h"
#include "stat/robust.h"

#define KEYS_KEPT   160  /* those with most time */
#define PARTS_KEPT  9000 /* of all units; at least UNIT_PARTS of each */
#define UNIT_PARTS  6
#define UNIT_QUANTA 200 /* of the usual unit; of many units half */
#define UNITS_MANY  2000

struct rank {
	uint64_t ns;
	uint32_t key;
};

static int by_time(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static uint32_t key_add(struct corpus *c, size_t first, const struct tally_part *key)
{
	struct corpus_list *l = &c->tables[CORPUS_KEY];
	const struct tally_part *keys = l->rows;
	struct tally_part *made;

	for (size_t i = first; i < l->count; i++)
		if (!memcmp(&keys[i], key, sizeof(*key)))
			return (uint32_t)(i - first);
	made = corpus_add(c, CORPUS_KEY);
	if (!made)
		return UINT32_MAX;
	memcpy(made, key, sizeof(*key));
	return (uint32_t)(l->count - 1 - first);
}

static void plain_of(const struct tally_part *key, struct tally_part *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->line = key->line;
	ret->owner = key->owner;
	ret->pid = key->pid;
	memcpy(ret->comm, key->comm, COMM_LEN);
}

static int map_keys(
	const struct process_account *a, struct corpus *c, uint32_t *to, uint32_t *plain_to)
{
	_cleanup_free_ struct rank *ranks = calloc(a->key_count + 1, sizeof(*ranks));
	size_t first = c->tables[CORPUS_KEY].count;

	if (!ranks)
		return -ENOMEM;
	for (size_t i = 0; i < a->key_count; i++)
		ranks[i].key = (uint32_t)i;
	for (size_t i = 0; i < a->part_count; i++)
		ranks[a->parts[i].key].ns += a->parts[i].ns;
	qsort(ranks, a->key_count, sizeof(*ranks), by_time);
	for (size_t i = 0; i < a->key_count; i++) {
		const struct tally_part *key = &a->keys[ranks[i].key];
		struct tally_part plain;

		plain_of(key, &plain);
		to[ranks[i].key] = i < KEYS_KEPT ? key_add(c, first, key) : UINT32_MAX;
		plain_to[ranks[i].key] = key_add(c, first, &plain);
		if (i >= KEYS_KEPT)
			to[ranks[i].key] = plain_to[ranks[i].key];
		if (to[ranks[i].key] == UINT32_MAX || plain_to[ranks[i].key] == UINT32_MAX)
			return -ENOMEM;
	}
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct account_part *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static int by_ns(const void *a, const void *b)
{
	const struct account_part *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return by_key(a, b);
}

static size_t merge_same(struct account_part *parts, size_t n)
{
	size_t kept = 0;

	qsort(parts, n, sizeof(*parts), by_key);
	for (size_t i = 0; i < n; i++) {
		if (!kept || parts[kept - 1].key != parts[i].key) {
			parts[kept++] = parts[i];
			continue;
		}
		parts[kept - 1].ns += parts[i].ns;
		parts[kept - 1].stack_ns = MAX(parts[kept - 1].stack_ns, parts[i].stack_ns);
		parts[kept - 1].wait_ns = MAX(parts[kept - 1].wait_ns, parts[i].wait_ns);
	}
	return kept;
}

/* Times in quanta; the largest part has what is left of the unit's @length. Parts without any are left out. */
static size_t round_parts(
	struct account_part *parts, size_t n, uint64_t quantum_ns, uint64_t length)
{
	uint64_t left = length;
	size_t largest = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		parts[i].ns = (parts[i].ns + quantum_ns / 2) / quantum_ns;
		if (!parts[i].ns)
			continue;
		parts[kept] = parts[i];
		largest = parts[kept].ns > parts[largest].ns ? kept : largest;
		kept++;
	}
	for (size_t i = 0; i < kept; i++) {
		parts[i].ns = i == largest ? parts[i].ns : MIN(parts[i].ns, left);
		left -= i == largest ? 0 : parts[i].ns;
	}
	if (kept)
		parts[largest].ns = left;
	return kept;
}

struct reduction {
	const struct process_account *a;
	struct corpus *c;
	uint32_t *to,
		*plain_to; /* by key: its new number, and that of its line, owner and process */
	size_t first_key;  /* in the corpus */
	bool *has_twin;    /* by new key: another differs from it by its stacks alone */
	uint64_t quantum_ns;
	int64_t end; /* of the last unit, in quanta since the first */
};

static bool is_twin(const struct tally_part *a, const struct tally_part *b)
{
	return a->line == b->line && a->owner == b->owner && a->pid == b->pid &&
	       a->place == b->place && !memcmp(a->culprit, b->culprit, COMM_LEN);
}

static int find_twins(struct reduction *r)
{
	const struct tally_part *keys =
		(const struct tally_part *)r->c->tables[CORPUS_KEY].rows + r->first_key;
	size_t n = r->c->tables[CORPUS_KEY].count - r->first_key;

	r->has_twin = calloc(n + 1, sizeof(*r->has_twin));
	if (!r->has_twin)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n && !r->has_twin[i]; k++)
			r->has_twin[i] = i != k && is_twin(&keys[i], &keys[k]);
	return 0;
}

static uint64_t in_quanta(const struct reduction *r, uint64_t ns)
{
	return (ns + r->quantum_ns / 2) / r->quantum_ns;
}

static int add_parts(struct reduction *r, size_t unit, struct corpus_unit *u)
{
	const struct process_account *a = r->a;
	size_t first = unit ? a->part_end[unit - 1] : 0, n = a->part_end[unit] - first;
	size_t most = MAX(PARTS_KEPT / a->unit_count, (size_t)UNIT_PARTS);
	_cleanup_free_ struct account_part *parts = calloc(n + 1, sizeof(*parts));

	if (!parts)
		return -ENOMEM;
	memcpy(parts, a->parts + first, n * sizeof(*parts));
	if (n)
		qsort(parts, n, sizeof(*parts), by_ns);
	for (size_t i = 0; i < n; i++)
		parts[i].key = i < most ? r->to[parts[i].key] : r->plain_to[parts[i].key];
	n = n ? merge_same(parts, n) : 0;
	n = round_parts(parts, n, r->quantum_ns, u->length);
	u->parts = (uint32_t)n;
	for (size_t i = 0; i < n; i++) {
		struct corpus_part *p = corpus_add(r->c, CORPUS_PART);
		bool has_twin = r->has_twin[parts[i].key];

		if (!p)
			return -ENOMEM;
		*p = (struct corpus_part){.key = parts[i].key,
			.length = (uint32_t)parts[i].ns,
			.stack = has_twin ? (uint32_t)in_quanta(r, parts[i].stack_ns) : 0,
			.wait = has_twin ? (uint32_t)in_quanta(r, parts[i].wait_ns) : 0};
	}
	return 0;
}

static int add_unit(struct reduction *r, size_t unit)
{
	const struct step_span *s = &r->a->units[unit];
	int64_t zero = r->a->units[0].start_ns;
	int64_t start = (int64_t)in_quanta(r, (uint64_t)(s->start_ns - zero));
	int64_t end = (int64_t)in_quanta(r, (uint64_t)(s->end_ns - zero));
	struct corpus_unit *u = corpus_add(r->c, CORPUS_UNIT), made;
	size_t at = r->c->tables[CORPUS_UNIT].count - 1;

	if (!u)
		return -ENOMEM;
	start = MAX(start, r->end);
	end = MAX(end, start);
	made = (struct corpus_unit){.gap = (uint32_t)(start - r->end),
		.length = (uint32_t)(end - start),
		.probed = (uint32_t)in_quanta(r, s->probed_ns),
		.open = (uint32_t)in_quanta(r, s->open_ns),
		.launches = s->launches,
		.copy_bytes = s->copy_bytes,
		.waits = s->waits,
		.launches_off = s->launches_off,
		.backwards = s->backwards,
		.executes = s->executes,
		.loads = s->loads};
	r->end = end;
	if (add_parts(r, unit, &made) < 0)
		return -ENOMEM;
	((struct corpus_unit *)r->c->tables[CORPUS_UNIT].rows)[at] = made;
	return 0;
}

/* A small part of the usual unit, in microseconds. */
static int find_quantum(struct reduction *r)
{
	size_t n = r->a->unit_count;
	_cleanup_free_ uint64_t *lengths = calloc(n + 1, sizeof(*lengths));

	if (!lengths)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		lengths[i] = (uint64_t)(r->a->units[i].end_ns - r->a->units[i].start_ns);
	robust_sort(lengths, n);
	r->quantum_ns =
		robust_median(lengths, n) / (n > UNITS_MANY ? UNIT_QUANTA / 2 : UNIT_QUANTA);
	r->quantum_ns = MAX(r->quantum_ns / NS_PER_US, (uint64_t)1) * NS_PER_US;
	return 0;
}

static int reduce_all(struct reduction *r)
{
	int result = find_quantum(r);

	if (result == 0)
		result = map_keys(r->a, r->c, r->to, r->plain_to);
	if (result == 0)
		result = find_twins(r);
	for (size_t i = 0; result == 0 && i < r->a->unit_count; i++)
		result = add_unit(r, i);
	return result;
}

int reduce_account(const struct process_account *a, struct corpus *c)
{
	struct reduction r = {.a = a, .c = c, .first_key = c->tables[CORPUS_KEY].count};
	struct corpus_account *row = corpus_add(c, CORPUS_ACCOUNT);
	size_t at = c->tables[CORPUS_ACCOUNT].count - 1;
	int result = -ENOMEM;

	r.to = calloc(a->key_count + 1, sizeof(*r.to));
	r.plain_to = calloc(a->key_count + 1, sizeof(*r.plain_to));
	if (row && r.to && r.plain_to)
		result = reduce_all(&r);
	free(r.to);
	free(r.plain_to);
	free(r.has_twin);
	if (result < 0)
		return result;
	row = (struct corpus_account *)c->tables[CORPUS_ACCOUNT].rows + at;
	*row = (struct corpus_account){.start_ns = a->units[0].start_ns,
		.quantum_ns = r.quantum_ns,
		.pid = a->pid,
		.tid = a->tid,
		.origin = a->origin,
		.confidence = a->confidence,
		.is_derived = a->is_derived,
		.units = (uint32_t)a->unit_count,
		.keys = (uint32_t)(c->tables[CORPUS_KEY].count - r.first_key)};
	memcpy(row->comm, a->comm, COMM_LEN);
	return 0;
}
