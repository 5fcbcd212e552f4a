/* SPDX-License-Identifier: Apache-2.0 */
/* contents.c - see contents.h. */
#include "answer/contents.h"

#include <errno.h>
#include <stdlib.h>

int contents_load(const char *path, const struct nodedb_filter *f, struct contents *ret,
	struct errinfo *reterr)
{
	_cleanup_(contents_done) struct contents c = {0};
	_cleanup_free_ struct nodedb_node *nodes = NULL;
	struct nodedb_filter one = *f;
	size_t count = 0;
	int r = f->scope.node ? 0 : nodedb_nodes(path, &nodes, &count, reterr);

	if (r < 0)
		return r;
	c.items = calloc(MAX(count, (size_t)1), sizeof(*c.items));
	if (!c.items)
		return -ENOMEM;
	do {
		if (count > 1)
			one.scope.node = nodes[c.count].name;
		r = nodedb_read(path, &one, &c.items[c.count++], reterr);
	} while (r == 0 && c.count < count);
	if (r < 0)
		return r;
	*ret = c;
	c = (struct contents){0};
	return 0;
}

void contents_done(struct contents *c)
{
	for (size_t i = 0; c->items && i < c->count; i++)
		nodedb_content_done(&c->items[i]);
	free(c->items);
	*c = (struct contents){0};
}
