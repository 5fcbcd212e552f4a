/* SPDX-License-Identifier: Apache-2.0 */
/* intern.h - each distinct text once, for as long as the pool lives. Born with a ceiling. */
#pragma once

#include <stddef.h>
#include <stdint.h>

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
