/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.c - see kernels.h. */
#include "answer/kernels.h"

#include <string.h>

#include "base/text.h"

#define NAME_COLUMNS 100

int answer_kernels(
	const struct question *q, size_t limit, struct sql_table *ret, struct errinfo *reterr)
{
	return nodedb_snapshot_list(q->snapshot, NODEDB_KERNELS, &q->scope, limit, ret, reterr);
}

void kernels_text(struct buf *b, const struct sql_table *k)
{
	for (size_t i = 0; i < k->row_count; i++) {
		const char *name = table_text(k, i, table_column(k, "name"));
		bool known = strcmp(table_text(k, i, table_column(k, "origin")), "unknown") != 0;
		char count[TEXT_MAX], cut[NAME_COLUMNS + 4];

		if (i == 0)
			buf_puts(b, "\n  Kernels, by launches (estimated from 1 in 16)\n");
		text_format_count(count, (uint64_t)table_int(k, i, table_column(k, "launches")));
		buf_printf(b, "   %12s  ", count);
		if (!known)
			buf_puts(b, "unknown kernel at ");
		snprintf(cut, sizeof(cut), "%.*s%s", NAME_COLUMNS, name,
			strlen(name) > NAME_COLUMNS ? "…" : "");
		text_escape_terminal(b, name[0] ? cut : "a function in no file");
		buf_putc(b, '\n');
	}
}
