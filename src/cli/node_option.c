/* SPDX-License-Identifier: Apache-2.0 */
/* node_option.c - see node_option.h. */
#include "cli/node_option.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"

static int unknown(const struct nodedb_node *nodes, size_t count, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(300);

	for (size_t i = 0; i < count; i++) {
		buf_puts(&b, i ? ", " : "");
		text_escape_terminal(&b, nodes[i].name);
	}
	if (!count)
		return errinfo_set(reterr, -EINVAL, "--node: the recording has no node names");
	return errinfo_set(
		reterr, -EINVAL, "--node: the recording has %s%s", buf_str(&b), b.err ? "…" : "");
}

int node_option_list(const char *path, const char *name, struct nodedb_node **ret,
	size_t *ret_count, struct errinfo *reterr)
{
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	size_t count = 0;
	int r = nodedb_nodes(path, &nodes, &count, reterr);

	if (r < 0)
		return r;
	for (size_t i = 0; name && i < count; i++)
		if (!strcmp(nodes[i].name, name)) {
			nodes[0] = nodes[i];
			*ret = TAKE(nodes);
			*ret_count = 1;
			return 0;
		}
	if (name)
		return unknown(nodes, count, reterr);
	*ret = TAKE(nodes);
	*ret_count = count;
	return 0;
}
