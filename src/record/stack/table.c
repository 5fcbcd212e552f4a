/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - turns a file's flat table into chunks and its rules into the shared ones.
 *
 * Chunks: first the root, then the second level if there is one, then the leaves. */
#include "record/stack/space.h"

#include <errno.h>
#include <string.h>

#include "base/idmap.h"

#define POOL_CHUNKS 1024u /* 3 MB */

struct pool {
	uint32_t capacity; /* 0: not made yet */
	uint32_t used;     /* chunks handed out; they come back together, when none is in use */
	uint32_t live;     /* of these, in use */
	int fd;
};

struct stack_tables {
	struct probe *probe;
	struct pool pools[UNWIND_POOLS_MAX]; /* from 1 on */
	uint64_t bytes;                      /* of all pools */
	uint32_t rule_count;
	struct unwind_rule rules[UNWIND_RULES_MAX];
	uint16_t same[UNWIND_RULES_MAX]; /* rules with the same hash; 0: the last */
	struct idmap by_hash;            /* -> &rules[i] */
};

int stack_tables_new(struct probe *p, struct stack_tables **ret)
{
	struct stack_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->probe = p;
	t->rule_count = 1; /* 0: none */
	t->by_hash = IDMAP_INIT(UNWIND_RULES_MAX);
	*ret = t;
	return 0;
}

void stack_tables_free(struct stack_tables *t)
{
	for (int i = 1; i < UNWIND_POOLS_MAX; i++)
		if (t->pools[i].capacity)
			close(t->pools[i].fd);
	idmap_done(&t->by_hash);
	free(t);
}

uint64_t stack_tables_bytes(const struct stack_tables *t)
{
	uint64_t chunks = 0;

	for (int i = 1; i < UNWIND_POOLS_MAX; i++)
		chunks += t->pools[i].live;
	return chunks * sizeof(struct unwind_chunk);
}

static uint64_t rule_hash(const struct unwind_rule *r)
{
	uint64_t w[2];

	memcpy(w, r, sizeof(w));
	return (w[0] * 0x9e3779b97f4a7c15ULL) ^ (w[1] * 0xc2b2ae3d27d4eb4fULL) ^ (w[0] >> 29);
}

/* The number of a rule equal to @r; 0 if there is no room for another. */
static uint16_t rule_number(struct stack_tables *t, const struct unwind_rule *r)
{
	uint64_t hash = rule_hash(r);
	struct unwind_rule *first = idmap_get(&t->by_hash, hash);
	uint32_t id;

	if (r->cfa == UNWIND_CFA_NONE)
		return 0;
	for (id = first ? (uint32_t)(first - t->rules) : 0; id; id = t->same[id])
		if (memcmp(&t->rules[id], r, sizeof(*r)) == 0)
			return (uint16_t)id;
	id = t->rule_count;
	if (id == UNWIND_RULES_MAX || probe_unwind_rule(t->probe, id, r) < 0)
		return 0;
	t->rules[id] = *r;
	t->same[id] = first ? (uint16_t)(first - t->rules) : 0;
	if (idmap_put(&t->by_hash, hash, &t->rules[id]) < 0)
		return 0;
	t->rule_count++;
	return (uint16_t)id;
}

static uint32_t up(uint32_t n)
{
	return (n + UNWIND_CHUNK_ROWS - 1) / UNWIND_CHUNK_ROWS;
}

/* A level that lists where each of @count chunks at @of begins. */
static void fill_index(struct unwind_chunk *level, const struct unwind_chunk *of, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		level[i / UNWIND_CHUNK_ROWS].address[i % UNWIND_CHUNK_ROWS] = of[i].address[0];
}

int stack_chunks(const struct symbol_unwind *u, const uint16_t *rules, struct unwind_chunk **ret,
	uint32_t *ret_indexes)
{
	uint32_t leaves = up(u->count);
	uint32_t indexes = leaves > UNWIND_CHUNK_ROWS ? up(leaves) : 0;
	uint32_t total = 1 + indexes + leaves;
	struct unwind_chunk *chunks, *leaf;

	if (indexes > UNWIND_CHUNK_ROWS)
		return -E2BIG;
	chunks = calloc(total, sizeof(*chunks));
	if (!chunks)
		return -ENOMEM;
	for (uint32_t i = 0; i < total; i++)
		memset(chunks[i].address, 0xff, sizeof(chunks[i].address)); /* UNWIND_END */
	leaf = chunks + 1 + indexes;
	for (uint32_t i = 0; i < u->count; i++) {
		leaf[i / UNWIND_CHUNK_ROWS].address[i % UNWIND_CHUNK_ROWS] = u->address[i];
		leaf[i / UNWIND_CHUNK_ROWS].rule[i % UNWIND_CHUNK_ROWS] = rules[u->rule[i]];
	}
	if (indexes) {
		fill_index(chunks + 1, leaf, leaves);
		fill_index(chunks, chunks + 1, indexes);
	} else {
		fill_index(chunks, leaf, leaves);
	}
	*ret = chunks;
	*ret_indexes = indexes;
	return (int)total;
}

/* A pool with room for @count chunks; made if need be. Returns its number; -ENOSPC. */
static int pool_for(struct stack_tables *t, uint32_t count)
{
	uint32_t capacity = MAX(count, POOL_CHUNKS);
	int r;

	for (int i = 1; i < UNWIND_POOLS_MAX; i++) {
		struct pool *p = &t->pools[i];

		if (p->capacity && p->capacity - p->used >= count)
			return i;
		if (p->capacity)
			continue;
		if (t->bytes + (uint64_t)capacity * sizeof(struct unwind_chunk) >
			STACK_TABLES_BYTES)
			return -ENOSPC;
		r = probe_unwind_pool(t->probe, (uint32_t)i, capacity, &p->fd);
		if (r < 0)
			return r;
		p->capacity = capacity;
		t->bytes += (uint64_t)capacity * sizeof(struct unwind_chunk);
		return i;
	}
	return -ENOSPC;
}

void stack_tables_drop(struct stack_tables *t, const struct stack_table *table)
{
	struct pool *p = &t->pools[table->pool];

	if (!table->pool)
		return;
	p->live -= table->chunks;
	if (!p->live)
		p->used = 0;
}

int stack_tables_add(struct stack_tables *t, const struct symbol_unwind *u, struct stack_table *ret)
{
	_cleanup_free_ struct unwind_chunk *chunks = NULL;
	_cleanup_free_ uint16_t *rules = calloc(u->rule_count + 1, sizeof(*rules));
	struct stack_table table;
	struct pool *pool;
	int n, r, id;

	if (!rules)
		return -ENOMEM;
	if (!u->count)
		return -ENODATA;
	for (uint32_t i = 0; i < u->rule_count; i++)
		rules[i] = rule_number(t, &u->rules[i]);
	n = stack_chunks(u, rules, &chunks, &table.indexes);
	if (n < 0)
		return n;
	id = pool_for(t, (uint32_t)n);
	if (id < 0)
		return id;
	pool = &t->pools[id];
	table.pool = (uint16_t)id;
	table.base = pool->used;
	table.chunks = (uint32_t)n;
	r = probe_unwind_fill(pool->fd, table.base, chunks, table.chunks);
	if (r < 0)
		return r;
	pool->used += table.chunks;
	pool->live += table.chunks;
	*ret = table;
	return 0;
}
