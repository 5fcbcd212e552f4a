/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_names.c - see kernel_names.h. */
#include "agent/answer/kernel_names.h"

#include "agent/answer/answer_private.h"
#include "agent/correlate/report/kernel_sentence.h"

static const char *find_name(void *arg, uint32_t pid, uint64_t function)
{
	const struct sql_table *names = arg;

	for (size_t i = 0; i < names->row_count; i++)
		if (table_int(names, i, 0) == pid && (uint64_t)table_int(names, i, 1) == function)
			return table_text(names, i, 2);
	return NULL;
}

struct naming {
	const char *node;
	struct explanation *e;
};

static int put_names(struct nodedb_snapshot *s, void *arg, struct errinfo *reterr)
{
	_cleanup_(sql_table_done) struct sql_table names = {0};
	const struct naming *n = arg;
	const struct scope scope = {.node = n->node[0] ? n->node : NULL};
	int r = nodedb_snapshot_list(s, NODEDB_KERNEL_NAMES, &scope, 0, &names, reterr);

	for (size_t i = 0; r == 0 && i < n->e->count; i++)
		kernel_sentence_put(&n->e->incidents[i], find_name, &names);
	return r;
}

int kernel_names_put(const char *path, const struct nodedb_content *c, struct explanation *e,
	struct errinfo *reterr)
{
	struct naming n = {c->node, e};
	bool any = false;

	for (size_t i = 0; i < e->count; i++)
		any |= e->incidents[i].launch_count > 0;
	return any ? nodedb_snapshot_read(path, put_names, &n, reterr) : 0;
}
