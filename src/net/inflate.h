/* SPDX-License-Identifier: Apache-2.0 */
/* inflate.h - gzip undone piece by piece, as it comes from a stranger, and made in one. No I/O.
 *
 * A few bytes can be told to become gigabytes. What comes out has a ceiling (the buffer's), and once
 * INFLATE_FREE bytes are out it may not be more than INFLATE_RATIO times what went in: a bomb is
 * found out long before it fills the buffer. Ordinary telemetry inflates 5 to 60 times, nothing
 * but zeros 1030 times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define INFLATE_RATIO 200
#define INFLATE_FREE  (1u << 20) /* bytes that may come out whatever the ratio */
#define INFLATE_BYTES (48 << 10) /* what one holds besides its output: mostly a window of 32 KiB */

struct inflate;

int inflate_new(struct inflate **ret);
void inflate_free(struct inflate *z);
DEFINE_CLEANUP(struct inflate *, inflate_free)

/* inflate_feed - appends what @data becomes to @out. -E2BIG: more than @out's ceiling or the ratio
 * allows; -EBADMSG: not gzip, damaged, or something follows its end; -ENOMEM. *ret_fault is then a
 * sentence. */
int inflate_feed(
	struct inflate *z, const void *data, size_t len, struct buf *out, const char **ret_fault);

/* inflate_is_complete - whether the end of the stream has come, with its checksum. */
bool inflate_is_complete(const struct inflate *z);

/* inflate_undo - the opposite: appends all of @data as gzip to @out. -ENOMEM, -ENOBUFS. */
int inflate_undo(const void *data, size_t len, struct buf *out);
