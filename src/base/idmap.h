/* SPDX-License-Identifier: Apache-2.0 */
/* idmap.h - a hash map from 64-bit ids to pointers, with a ceiling. Owns nothing it points to. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct idmap {
	struct idmap_slot *slots;
	size_t used, capacity, max;
};

#define IDMAP_INIT(max_entries) ((struct idmap){.max = (max_entries)})

void idmap_done(struct idmap *m);
void idmap_clear(struct idmap *m); /* keeps the memory */
void *idmap_get(const struct idmap *m, uint64_t id);

/* idmap_put - enter, or replace, which cannot fail; @value must not be NULL. -ENOBUFS at the ceiling, -ENOMEM. */
int idmap_put(struct idmap *m, uint64_t id, void *value);

/* idmap_remove - forget @id; returns what it pointed to, or NULL. */
void *idmap_remove(struct idmap *m, uint64_t id);

/* idmap_next - walk all entries: start with *cursor = 0, until NULL. No changes meanwhile but by
 * idmap_take(). */
void *idmap_next(const struct idmap *m, size_t *cursor, uint64_t *ret_id);

/* idmap_take - forget the entry that the walk has just returned, and return it. The walk goes on; what it has passed
 * already may come once more. */
void *idmap_take(struct idmap *m, size_t *cursor);

/* Each distinct text once, for as long as the pool lives. Born with a ceiling. */

struct intern {
	struct intern_slot *slots;
	size_t used, capacity;
	size_t bytes, max_bytes; /* of the texts */
	uint64_t refused;        /* texts beyond the ceiling */
};

#define INTERN_INIT(max) ((struct intern){.max_bytes = (max)})

void intern_done(struct intern *p);

/* intern - the pool's copy of @s (NULL stays NULL). Beyond the ceiling, or without memory: a fixed
 * text that says so, and the refusal is counted. */
const char *intern(struct intern *p, const char *s);
const char *intern_len(struct intern *p, const char *s, size_t len);
