/* SPDX-License-Identifier: Apache-2.0 */
/* source_limit.h - how often an address may ask what needs no token. Of the addresses that asked longest ago
 * nothing is remembered. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/macros.h"

#define SOURCE_LIMIT_RATE    30 /* a second */
#define SOURCE_LIMIT_BURST   100
#define SOURCE_LIMIT_SOURCES 4096

struct source_limit;
int source_limit_new(struct source_limit **ret);
void source_limit_free(struct source_limit *l);
DEFINE_CLEANUP(struct source_limit *, source_limit_free)

/* source_limit_take - one more question of @peer; false: too many. */
bool source_limit_take(struct source_limit *l, const char *peer, uint64_t now_ns);
