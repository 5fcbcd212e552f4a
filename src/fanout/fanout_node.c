/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_node.c - see fanout_node.h. */
#include "fanout/fanout_node.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool is_same(const struct http_endpoint *a, const struct http_endpoint *b)
{
	return a->tls == b->tls && a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

static int add(struct fanout_nodes *n, const struct http_endpoint *endpoint, struct errinfo *reterr)
{
	bool v6 = strchr(endpoint->host, ':') != NULL;
	struct fanout_node *p;

	for (size_t i = 0; i < n->count; i++)
		if (is_same(&n->items[i].endpoint, endpoint))
			return 0;
	if (n->count == FANOUT_NODES_MAX)
		return errinfo_set(reterr, -E2BIG, "more than %d nodes", FANOUT_NODES_MAX);
	p = realloc(n->items, (n->count + 1) * sizeof(*p));
	if (!p)
		return errinfo_set(reterr, -ENOMEM, "not enough memory for %zu nodes", n->count);
	n->items = p;
	p += n->count++;
	*p = (struct fanout_node){.endpoint = *endpoint};
	snprintf(p->address, sizeof(p->address), "%s%s%s:%u", v6 ? "[" : "", endpoint->host,
		v6 ? "]" : "", endpoint->port);
	return 0;
}

int fanout_nodes_add(struct fanout_nodes *n, const char *list, bool tls, struct errinfo *reterr)
{
	char text[FANOUT_ADDRESS_LEN + 16];
	struct http_endpoint endpoint;
	int r;

	for (const char *p = list; *p; p += *p == ',') {
		size_t len;

		p += strspn(p, " \t");
		len = strcspn(p, ",");
		if (!len || len >= sizeof(text))
			return errinfo_set(reterr, -EINVAL,
				"'%.100s' is not a list of nodes: write gpu-1:8080,gpu-2:8080",
				list);
		snprintf(text, sizeof(text), "%.*s", (int)len, p);
		p += len;
		while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
			text[--len] = 0;
		if (strpbrk(text, " \t\n"))
			return errinfo_set(reterr, -EINVAL,
				"'%.100s': separate nodes with commas: gpu-1:8080,gpu-2:8080",
				text);
		r = http_endpoint_parse(text, tls, FANOUT_PORT, &endpoint, reterr);
		if (r == 0)
			r = add(n, &endpoint, reterr);
		if (r < 0)
			return r;
	}
	return 0;
}

void fanout_nodes_done(struct fanout_nodes *n)
{
	free(n->items);
	*n = (struct fanout_nodes){0};
}
