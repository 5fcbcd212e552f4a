/* SPDX-License-Identifier: Apache-2.0 */
/* fanout_node.c - see fanout.h. */
#include "fanout/fanout.h"

#include <strings.h>

#include "base/search.h"
#include "base/clock.h"
#include "base/macros.h"

#define FANOUT_NODES_MAX 1024
#define FANOUT_PORT      8080

/* Foreign times are kept within WALL_NS_MAX, so that no
 * difference of two overflows. */

static bool makes_sense(const struct fanout_clock_sample *s)
{
	return s->remote_ns >= 0 && s->remote_ns < WALL_NS_MAX && s->sent_ns >= 0 &&
	       s->got_ns >= s->sent_ns && s->got_ns < WALL_NS_MAX;
}

ORDER(by_offset, struct fanout_clock, ASCENDING(offset_ns))

struct fanout_clock fanout_clock_median(const struct fanout_clock_sample *samples, size_t count)
{
	struct fanout_clock found[FANOUT_CLOCK_SAMPLES];
	size_t n = 0;

	for (size_t i = 0; i < MIN(count, (size_t)FANOUT_CLOCK_SAMPLES); i++) {
		const struct fanout_clock_sample *s = &samples[i];
		int64_t way = s->got_ns - s->sent_ns;

		if (!makes_sense(s))
			continue;
		found[n++] = (struct fanout_clock){.known = true,
			.offset_ns = s->remote_ns - (s->sent_ns + way / 2),
			.error_ns = (uint64_t)(way + 1) / 2};
	}
	if (!n)
		return (struct fanout_clock){0};
	if (n == 2)
		return found[found[1].error_ns < found[0].error_ns];
	SORT(found, n, by_offset);
	return found[n / 2];
}

struct candidate {
	size_t node;
	struct fanout_clock clock;
};

ORDER(by_clock, struct candidate, by_offset(&x->clock, &y->clock) ?: ASCENDING(node))

ORDER(by_size, struct fanout_skew, COMPARE(llabs(y->by_ns), llabs(x->by_ns)) ?: ASCENDING(node))

static bool is_skewed(const struct fanout_skew *s, uint64_t threshold_ns)
{
	uint64_t by = (uint64_t)llabs(s->by_ns);

	return by > s->error_ns && by - s->error_ns > threshold_ns;
}

size_t fanout_clock_skews(const struct fanout_clock *clocks, size_t count, uint64_t threshold_ns,
	struct fanout_skew *ret, size_t max)
{
	_cleanup_free_ struct candidate *list = calloc(MAX(count, (size_t)1), sizeof(*list));
	_cleanup_free_ struct fanout_skew *found = calloc(count + 1, sizeof(*found));
	const struct candidate *middle;
	size_t n = 0, skewed = 0;

	if (!list || !found)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (clocks[i].known)
			list[n++] = (struct candidate){i, clocks[i]};
	if (!n)
		return 0;
	SORT(list, n, by_clock);
	middle = &list[(n - 1) / 2];
	for (size_t i = 0; i <= n; i++) {
		const struct candidate *c = i < n ? &list[i] : middle;
		bool us = i == n;
		struct fanout_skew s = {.node = c->node,
			.other = us ? SIZE_MAX : middle->node,
			.by_ns = c->clock.offset_ns - (us ? 0 : middle->clock.offset_ns),
			.error_ns = c->clock.error_ns + (us ? 0 : middle->clock.error_ns)};

		if ((us || c != middle) && is_skewed(&s, threshold_ns))
			found[skewed++] = s;
	}
	SORT(found, skewed, by_size);
	for (size_t i = 0; i < MIN(skewed, max); i++)
		ret[i] = found[i];
	return skewed;
}

static int add(struct fanout_nodes *n, const struct http_endpoint *endpoint, struct errinfo *reterr)
{
	bool v6 = strchr(endpoint->host, ':') != NULL;
	struct fanout_node *p;

	for (size_t i = 0; i < n->count; i++)
		if (n->items[i].endpoint.tls == endpoint->tls &&
			n->items[i].endpoint.port == endpoint->port &&
			strcasecmp(n->items[i].endpoint.host, endpoint->host) == 0)
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
		r = r ?: add(n, &endpoint, reterr);
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
