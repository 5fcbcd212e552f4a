/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - see entry.h. */
#include "cluster/keep/entry.h"

#include <errno.h>
#include <string.h>

struct head {
	uint8_t kind, zero[3];
	uint32_t key_count;
	uint64_t covered;
};
STATIC_ASSERT(sizeof(struct head) == 16);

void entry_put(struct buf *b, enum entry_kind kind, uint64_t covered, size_t key_count)
{
	const struct head h = {
		.kind = (uint8_t)kind, .key_count = (uint32_t)key_count, .covered = covered};

	buf_append(b, &h, sizeof(h));
}

int entry_get(const void *data, size_t len, struct entry *ret)
{
	const char *at = data;
	struct head h;
	size_t keys;

	if (len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, at, sizeof(h));
	at += sizeof(h);
	len -= sizeof(h);
	keys = h.key_count * sizeof(struct seen_key);
	if ((h.kind != ENTRY_ROWS && h.kind != ENTRY_SEEN) || keys > len)
		return -EBADMSG;
	*ret = (struct entry){.kind = h.kind,
		.covered = h.covered,
		.keys = (const struct seen_key *)at,
		.key_count = h.key_count,
		.batch = at + keys,
		.len = len - keys};
	return 0;
}
