/* SPDX-License-Identifier: Apache-2.0 */
/* response_cache.h - answers that were costly, kept for the next who asks the same soon.
 *
 * An answer is good for RESPONSE_CACHE_NS, and longer while the recording's files have not changed. Who asks
 * while another is making that very answer waits for it. Safe from any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"

#define RESPONSE_CACHE_SLOTS 16

struct response_cache;
struct response_cache_slot;

int response_cache_new(struct response_cache **ret);
void response_cache_free(struct response_cache *k);
DEFINE_CLEANUP(struct response_cache *, response_cache_free)

/* response_cache_begin - true: the answer to @key about the recording @path was appended to @out, *ret_age_ns
 * old. False: the caller makes it and calls response_cache_end() with *ret_slot, which may be NULL. */
bool response_cache_begin(struct response_cache *k, const char *path, const char *key,
	struct buf *out, uint64_t *ret_age_ns, struct response_cache_slot **ret_slot);

/* response_cache_end - @made is what was made; NULL: nothing to keep. */
void response_cache_end(
	struct response_cache *k, struct response_cache_slot *slot, const struct buf *made);

/* How a recording's files look, to know later whether they have changed. */

struct file_mark {
	uint64_t value[6]; /* inode, size and time of the file and of its log */
};

struct file_mark file_mark(const char *path);
bool file_mark_same(const struct file_mark *a, const struct file_mark *b);
/* file_mark_is_of - both are of one file, whatever was written into it meanwhile. */
bool file_mark_is_of(const struct file_mark *a, const struct file_mark *b);
