/* SPDX-License-Identifier: Apache-2.0 */
/* source_limit.c - see source_limit.h. */
#include "cluster/answer/source_limit.h"

#include <errno.h>
#include <string.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "base/idmap.h"
#include "net/rate.h"

struct source {
	TAILQ_ENTRY(source) link; /* who asked longest ago is first */
	uint64_t id;              /* 0: not in use */
	struct rate rate;
};

struct source_limit {
	struct source sources[SOURCE_LIMIT_SOURCES];
	TAILQ_HEAD(, source) by_age;
	struct idmap by_id;
};

int source_limit_new(struct source_limit **ret)
{
	struct source_limit *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->by_id = IDMAP_INIT(SOURCE_LIMIT_SOURCES);
	TAILQ_INIT(&l->by_age);
	for (size_t i = 0; i < ARRAY_SIZE(l->sources); i++)
		TAILQ_INSERT_TAIL(&l->by_age, &l->sources[i], link);
	*ret = l;
	return 0;
}

void source_limit_free(struct source_limit *l)
{
	idmap_done(&l->by_id);
	free(l);
}

static struct source *find(struct source_limit *l, uint64_t id)
{
	struct source *s = idmap_get(&l->by_id, id);

	if (s)
		return s;
	s = TAILQ_FIRST(&l->by_age);
	if (s->id)
		idmap_remove(&l->by_id, s->id);
	*s = (struct source){.link = s->link};
	if (idmap_put(&l->by_id, id, s) == 0) /* without memory it is forgotten at once */
		s->id = id;
	return s;
}

bool source_limit_take(struct source_limit *l, const char *peer, uint64_t now_ns)
{
	uint64_t id = hash_bytes(peer, strlen(peer)) | 1;
	struct source *s = find(l, id);

	TAILQ_REMOVE(&l->by_age, s, link);
	TAILQ_INSERT_TAIL(&l->by_age, s, link);
	return rate_take(&s->rate, now_ns, SOURCE_LIMIT_BURST, NS_PER_S / SOURCE_LIMIT_RATE);
}
