/* SPDX-License-Identifier: Apache-2.0 */
/* texts.h - each text once, and each mangled name demangled once. What is handed out stays until
 * texts_free(). */
#pragma once

#include <stddef.h>

#include "base/macros.h"

#define TEXTS_BYTES_MAX (64u << 20) /* texts and the names they were made from */

struct texts;

int texts_new(struct texts **ret); /* -ENOMEM */
void texts_free(struct texts *t);
DEFINE_CLEANUP(struct texts *, texts_free)

/* Both take @len bytes at @s and return NULL when the ceiling is reached or memory is out. Results
 * are at most NAMES_TEXT_MAX - 1 bytes long, cut with "…". */
const char *texts_keep(struct texts *t, const char *s, size_t len);
const char *texts_demangled(struct texts *t, const char *mangled, size_t len);
