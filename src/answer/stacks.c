/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.c - see stacks.h. */
#include "answer/stacks.h"

#include <stdlib.h>

int answer_stacks(const struct question *q, struct stacks_answer *ret, struct errinfo *reterr)
{
	struct stacks_answer a = {.ns = 0};
	int r = nodedb_snapshot_list(
		q->snapshot, NODEDB_STACK_TOTALS, &q->scope, 0, &a.totals, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; i < a.totals.row_count; i++) {
		int64_t rows = table_int(&a.totals, i, STACKS_ROWS);

		a.ns += table_real(&a.totals, i, STACKS_NS);
		a.rows += rows;
		a.without += table_int(&a.totals, i, STACKS_HASH) ? 0 : rows;
	}
	*ret = a;
	return 0;
}

void stacks_answer_done(struct stacks_answer *a)
{
	sql_table_done(&a->totals);
}

/* "17 python3,18 a name, with a comma": what does not begin with a number belongs to the name. */
bool stacks_next_process(
	const char **text, uint32_t *ret_pid, const char **ret_name, size_t *ret_len)
{
	char *end;
	size_t len;

	if (!**text)
		return false;
	*ret_pid = (uint32_t)strtoul(*text, &end, 10);
	*ret_name = end + (*end == ' ');
	len = strcspn(*ret_name, ",");
	while ((*ret_name)[len] == ',' &&
		((*ret_name)[len + 1] < '0' || (*ret_name)[len + 1] > '9'))
		len += 1 + strcspn(*ret_name + len + 1, ",");
	*ret_len = len;
	*text = *ret_name + len + ((*ret_name)[len] == ',');
	return true;
}
