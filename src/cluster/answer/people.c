/* SPDX-License-Identifier: Apache-2.0 */
/* people.c - see people.h. */
#include "cluster/answer/people.h"

#include <errno.h>
#include <stdlib.h>

static int compare_who(const void *a, const void *b)
{
	const struct who *x = a, *y = b;

	return (x->worker > y->worker) - (x->worker < y->worker);
}

int people_list(const struct calls *c, struct people *ret)
{
	size_t cursor = 0, room = 0;
	struct worker_view v;

	while (calls_worker_next(c, &cursor, &v)) {
		if (ret->count == room) {
			struct who *more;

			room = MAX(room * 2, (size_t)64);
			more = realloc(ret->who, room * sizeof(*more));
			if (!more)
				return -ENOMEM;
			ret->who = more;
		}
		ret->who[ret->count++] = (struct who){v.worker, v.pid, v.world_rank, v.node};
	}
	if (ret->count)
		qsort(ret->who, ret->count, sizeof(*ret->who), compare_who);
	return 0;
}

void people_done(struct people *p)
{
	free(p->who);
}

const struct who *people_find(const struct people *p, uint32_t worker)
{
	struct who key = {.worker = worker};

	return p->count ? bsearch(&key, p->who, p->count, sizeof(key), compare_who) : NULL;
}
