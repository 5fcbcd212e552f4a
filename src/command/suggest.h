/* SPDX-License-Identifier: Apache-2.0 */
/* suggest.h - "did you mean …?" for mistyped commands and flags. */
#pragma once

#include <stddef.h>

/* suggest_distance - insertions, deletions, replacements and swaps of neighbours that turn @a into
 * @b; words longer than 63 bytes count as far from everything. */
unsigned suggest_distance(const char *a, const char *b);

/* suggest_is_near - whether @typed is probably a slip for @name: at most a third of its letters. */
int suggest_is_near(const char *typed, const char *name, unsigned *ret_distance);
