/* SPDX-License-Identifier: Apache-2.0 */
/* folded.c - see folded.h. Lines come in the order of the tree, largest branch first. */
#include "export/folded.h"

#include <inttypes.h>

#include "base/macros.h"

#define DEPTH_MAX (STACK_FRAMES_MAX + 2)

static void put_path(struct buf *b, const struct flame *f, uint32_t node)
{
	uint32_t path[DEPTH_MAX];
	size_t n = 0;

	for (; node && n < DEPTH_MAX; node = f->nodes[node].parent)
		path[n++] = node;
	while (n-- > 0) {
		buf_puts(b, flame_name_of(f, path[n])->text);
		buf_putc(b, n ? ';' : ' ');
	}
}

void folded_text(struct buf *b, const struct flame *f, uint64_t unit)
{
	for (uint32_t n = flame_next(f, 0, false); n; n = flame_next(f, n, false)) {
		uint64_t self = f->nodes[n].self, value = self / unit;

		if (!self)
			continue;
		value += self % unit >= unit - unit / 2;
		put_path(b, f, n);
		buf_printf(b, "%" PRIu64 "\n", MAX(value, UINT64_C(1)));
	}
}
