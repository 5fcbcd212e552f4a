/* SPDX-License-Identifier: Apache-2.0 */
/* keep.h - answers that were costly, kept for the next who asks the same soon.
 *
 * An answer is good for KEEP_NS, and longer while the recording's files have not changed. Who asks
 * while another is making that very answer waits for it. Safe from any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

#define KEEP_NS      (5 * NS_PER_S)
#define KEEP_SAME_NS (60 * NS_PER_S) /* files unchanged: only the clock goes on */
#define KEEP_SLOTS   16

struct keep;
struct keep_slot;

int keep_new(struct keep **ret);
void keep_free(struct keep *k);
DEFINE_CLEANUP(struct keep *, keep_free)

/* keep_begin - true: the answer to @key about the recording @path was appended to @out, *ret_age_ns
 * old. False: the caller makes it and calls keep_end() with *ret_slot, which may be NULL. */
bool keep_begin(struct keep *k, const char *path, const char *key, struct buf *out,
	uint64_t *ret_age_ns, struct keep_slot **ret_slot);

/* keep_end - @made is what was made; NULL: nothing to keep. */
void keep_end(struct keep *k, struct keep_slot *slot, const struct buf *made);
