/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - see peer.h. Sets of 8 places, chosen by a hash with a secret in it, so that nobody can
 * aim at a set. 4096 sets hold the 12,000 connections of 12,000 addresses with room to spare. */
#include "net/server/peer.h"

#include <sys/random.h>

#include "base/hash.h"
#include "net/rate.h"

#define SETS 4096
#define WAYS 8
#define EACH (PEER_FAILURES_SPAN / PEER_FAILURES_MAX)

struct peer {
	uint64_t key; /* 0: free */
	struct rate failures;
	unsigned connections;
	size_t body_bytes;
};

struct peers {
	uint64_t secret;
	struct peer peer[SETS][WAYS];
};

int peers_new(struct peers **ret)
{
	_cleanup_(peers_freep) struct peers *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	if (getrandom(&p->secret, sizeof(p->secret), 0) != sizeof(p->secret))
		return -errno;
	*ret = TAKE(p);
	return 0;
}

void peers_free(struct peers *p)
{
	free(p);
}

uint64_t peer_key(const union address *a)
{
	uint64_t key = 0;

	if (a->any.sa_family == AF_INET)
		key = ntohl(a->v4.sin_addr.s_addr) | 1ULL << 32;
	else if (IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
		key = ntohl(a->v6.sin6_addr.s6_addr32[3]) | 1ULL << 32;
	else
		memcpy(&key, &a->v6.sin6_addr, sizeof(key));
	return key ? key : UINT64_MAX; /* ::1 is all zeros in front */
}

static struct peer *set_of(struct peers *p, uint64_t key)
{
	return p->peer[hash_number(hash_number(key ^ p->secret) + p->secret) % SETS];
}

static struct peer *find(struct peers *p, uint64_t key)
{
	struct peer *set = set_of(p, key);

	return FIND(x, set, WAYS, x->key == key);
}

/* obtain - the place of @key, if need be that of the address that failed longest ago. */
static struct peer *obtain(struct peers *p, uint64_t key)
{
	struct peer *found = find(p, key), *set;

	if (found)
		return found;
	set = set_of(p, key);
	for (int i = 0; i < WAYS; i++)
		if (!set[i].connections && !set[i].body_bytes &&
			(!found || set[i].failures.last_ns < found->failures.last_ns))
			found = &set[i];
	if (found)
		*found = (struct peer){.key = key};
	return found;
}

int peers_enter(struct peers *p, const union address *a, unsigned max)
{
	struct peer *e = obtain(p, peer_key(a));

	if (!e || e->connections >= max)
		return -EAGAIN;
	e->connections++;
	return 0;
}

void peers_leave(struct peers *p, const union address *a)
{
	struct peer *e = find(p, peer_key(a));

	if (e && e->connections)
		e->connections--;
}

size_t peers_hold(struct peers *p, uint64_t key, size_t before, size_t now)
{
	struct peer *e = now ? obtain(p, key) : find(p, key);

	if (!e)
		return 0;
	e->body_bytes += now - MIN(before, e->body_bytes);
	return e->body_bytes;
}

void peers_fail(struct peers *p, const union address *a, uint64_t now_ns)
{
	struct peer *e = obtain(p, peer_key(a));

	if (e)
		rate_take(&e->failures, now_ns, PEER_FAILURES_MAX, EACH);
}

unsigned peers_is_blocked(struct peers *p, const union address *a, uint64_t now_ns)
{
	struct peer *e = find(p, peer_key(a));
	uint64_t over;

	if (!e || !rate_is_spent(&e->failures, now_ns, PEER_FAILURES_MAX, EACH))
		return 0;
	over = e->failures.used_ns + EACH - PEER_FAILURES_MAX * EACH;
	return (unsigned)((over + NS_PER_S - 1) / NS_PER_S);
}
