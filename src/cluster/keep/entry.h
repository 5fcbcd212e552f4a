/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - what an entry of the journal holds: keys of what counts once, then rows.
 *
 *	entry    kind[1] 0[3] key_count[4] covered[8] key[16]*key_count batch
 *
 * Numbers are little-endian. An entry of the kind SEEN has no rows: its keys are all those that are known, as
 * far as they were told by entries up to covered. */
#pragma once

#include "base/buf.h"
#include "cluster/keep/seen.h"

enum entry_kind { ENTRY_ROWS = 1, ENTRY_SEEN = 2 };

struct entry {
	enum entry_kind kind;
	uint64_t covered;
	const struct seen_key *keys;
	size_t key_count;
	const void *batch;
	size_t len;
};

/* entry_put - appends all of it, but for the batch and keys that the caller appends: @key_count of them. */
void entry_put(struct buf *b, enum entry_kind kind, uint64_t covered, size_t key_count);

/* entry_get - -EBADMSG. What it points to lies in @data. */
int entry_get(const void *data, size_t len, struct entry *ret);
