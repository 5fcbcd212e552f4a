/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of calls: what was unpacked, packed anew, unpacks to the same. */
#include <errno.h>

#include "fuzz.h"
#include "push/push_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf packed = BUF_INIT(64 << 20);
	struct push_calls c = {0}, again = {0};
	int r = push_calls_unpack(data, size, &c);

	if (r < 0) {
		MUST((r == -EBADMSG || r == -E2BIG || r == -ENOMEM) && !c.items);
		return 0;
	}
	MUST(c.count <= size); /* a small input makes no large batch */
	push_calls_pack(&packed, &c);
	MUST(packed.err == 0);
	MUST(push_calls_unpack(packed.data, packed.len, &again) == 0);
	MUST(again.count == c.count && again.batch == c.batch && again.lost == c.lost &&
		again.sent_ns == c.sent_ns);
	for (size_t i = 0; i < c.count; i++)
		MUST(memcmp(&again.items[i], &c.items[i], sizeof(c.items[i])) == 0);
	free(c.items);
	free(again.items);
	return 0;
}
