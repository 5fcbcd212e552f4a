/* SPDX-License-Identifier: Apache-2.0 */
/* joins.c - see joins.h. A stream is known by a hash of what its calls have in common. */
#include "cluster/detect/joins.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/macros.h"

#define TRY_NS        ((int64_t)NS_PER_S)
#define TRY_FIRST     4u /* times, before it is tried more and more seldom */
#define TRY_DOUBLINGS 5u
#define FORGET_MAX    64                 /* streams at once */
#define WORK_MAX      UINT64_C(10000000) /* 0.1 s, in which nobody else is answered */

void joins_init(struct joins *j)
{
	*j = (struct joins){.known = IDMAP_INIT(JOINS_STREAMS_MAX)};
}

void joins_done(struct joins *j)
{
	size_t cursor = 0;
	void *s;

	while ((s = idmap_next(&j->known, &cursor, NULL)))
		free(s);
	idmap_done(&j->known);
	free(j->held);
}

static uint64_t key_of(uint32_t worker, const struct push_call *c)
{
	bool is_pair = c->op == NCCL_SEND || c->op == NCCL_RECV;
	uint64_t tag = c->comm ? 0 : -c->seq >> COMM_JOIN_TAG;
	uint64_t who =
		hash_number(c->comm ^ hash_number((uint64_t)worker << 32 | (uint32_t)c->nranks));
	uint64_t what = is_pair ? (uint64_t)(uint32_t)c->peer << 2 | 2 | (c->op == NCCL_SEND) : 0;

	return hash_number(who ^ hash_number(tag << 32 | (uint32_t)c->rank) ^ hash_number(what)) |
	       1;
}

bool joins_name(struct joins *j, uint32_t worker, struct push_call *call)
{
	uint64_t key = key_of(worker, call);
	struct known_stream *k = idmap_get(&j->known, key);
	int64_t number = comm_join_number(call);

	if (!k || !comm_join_is_of(&k->s, worker, call))
		return false;
	if (number <= k->last && call->enter_ns > k->last_ns) { /* its tracer counts anew */
		free(idmap_remove(&j->known, key));
		return false;
	}
	if (number > k->last) {
		k->last = number;
		k->last_ns = call->enter_ns;
	}
	comm_join_name(&k->s, call);
	return true;
}

int joins_hold(struct joins *j, uint32_t worker, const struct push_call *call, int64_t received_ns)
{
	int r;

	if (comm_join_number(call) <= 2 * COMM_JOIN_PAIRS)
		j->failures = 0;
	if (j->count == JOINS_HELD_MAX) {
		size_t n = JOINS_HELD_MAX / 4;

		j->given_up += n;
		j->count -= n;
		j->tried -= MIN(j->tried, n);
		memmove(j->held, j->held + n, j->count * sizeof(*j->held));
	}
	r = ARRAY_RESERVE(j->held, j->room, j->count + 1, JOINS_HELD_MAX);
	if (r == 0)
		j->held[j->count++] =
			(struct held_call){{.worker = worker, .c = *call}, received_ns};
	return r;
}

bool joins_is_due(const struct joins *j, int64_t now_ns)
{
	unsigned more = j->failures > TRY_FIRST ? j->failures - TRY_FIRST : 0;

	return j->count > j->tried && now_ns - j->tried_ns >= TRY_NS << MIN(more, TRY_DOUBLINGS);
}

/* Remembers the joined streams of @found, by one call of each. */
static int remember(struct joins *j, const struct comm_join *found)
{
	for (size_t i = 0; i < found->count; i++) {
		const struct comm_join_stream *s = &found->streams[i];
		const struct push_call one = {.comm = s->comm,
			.seq = -(s->tag << COMM_JOIN_TAG | 1),
			.rank = s->rank,
			.nranks = s->nranks,
			.peer = s->peer,
			.op = s->peer < 0  ? NCCL_ALL_REDUCE
			      : s->is_send ? NCCL_SEND
					   : NCCL_RECV};
		struct known_stream *k;
		int r;

		if (!s->is_joined)
			continue;
		k = malloc(sizeof(*k));
		if (!k)
			return -ENOMEM;
		*k = (struct known_stream){.s = *s};
		free(idmap_remove(&j->known, key_of(s->worker, &one)));
		r = idmap_put(&j->known, key_of(s->worker, &one), k);
		if (r < 0)
			free(k);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

/* Moves what has a name now to @ret. */
static void release(struct joins *j, int64_t oldest_ns, struct held_call *ret, size_t *ret_count)
{
	size_t kept = 0, n = 0;

	for (size_t i = 0; i < j->count; i++) {
		struct held_call *h = &j->held[i];

		if (joins_name(j, h->b.worker, &h->b.c))
			ret[n++] = *h;
		else if (h->received_ns < oldest_ns)
			j->given_up++;
		else
			j->held[kept++] = *h;
	}
	j->count = kept;
	j->joined += n;
	*ret_count = n;
}

int joins_try(struct joins *j, const struct blame_worker *workers, const struct blame_call *others,
	size_t other_count, int64_t now_ns, int64_t oldest_ns, struct held_call **ret,
	size_t *ret_count)
{
	_cleanup_free_ struct blame_call *calls =
		calloc(j->count + other_count + 1, sizeof(*calls));
	_cleanup_free_ struct held_call *named = calloc(j->count + 1, sizeof(*named));
	struct comm_join found;
	int r;

	if (!calls || !named)
		return -ENOMEM;
	for (size_t i = 0; i < j->count; i++)
		calls[i] = j->held[i].b;
	if (other_count)
		memcpy(calls + j->count, others, other_count * sizeof(*calls));
	r = comm_join_run(workers, calls, j->count + other_count, WORK_MAX, &found);
	if (r < 0)
		return r;
	r = remember(j, &found);
	comm_join_done(&found);
	if (r < 0)
		return r;
	release(j, oldest_ns, named, ret_count);
	j->tried = j->count;
	j->tried_ns = now_ns;
	j->failures = *ret_count ? 0 : j->failures + 1;
	*ret = TAKE(named);
	return 0;
}

void joins_forget(struct joins *j, uint32_t worker)
{
	uint64_t keys[FORGET_MAX], key;
	size_t cursor = 0, n = 0;
	struct known_stream *k;

	do {
		cursor = n = 0;
		while (n < FORGET_MAX && (k = idmap_next(&j->known, &cursor, &key)))
			if (k->s.worker == worker)
				keys[n++] = key;
		for (size_t i = 0; i < n; i++)
			free(idmap_remove(&j->known, keys[i]));
	} while (n == FORGET_MAX);
}
