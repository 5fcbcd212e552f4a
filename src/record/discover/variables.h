/* SPDX-License-Identifier: Apache-2.0 */
/* variables.h - the few wanted variables of another process's environment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VARIABLES_MAX       64
#define VARIABLE_VALUE_MAX  256       /* bytes; a longer one is none of those we want */
#define VARIABLES_BYTES_MAX (1 << 20) /* of an environment that are read */

struct variables {
	const char *const *keys;
	size_t count;
	bool found[VARIABLES_MAX];
	char values[VARIABLES_MAX][VARIABLE_VALUE_MAX];
	bool cut;   /* the environment is longer than VARIABLES_BYTES_MAX */
	bool whole; /* it was read to its end, and not until the process ended */
};

/* variables_read - look for @keys (at most VARIABLES_MAX, which must outlive *ret) in the
 * environment @pid was started with. The first of two equal keys counts, as for getenv(3).
 * -ESRCH if the process is gone; -EACCES if its environment may not be read; else of read(2). */
int variables_read(const char *root, uint32_t pid, const char *const *keys, size_t count,
	struct variables *ret);

/* variables_get - the value of @key; NULL if it is not set. */
const char *variables_get(const struct variables *v, const char *key);
