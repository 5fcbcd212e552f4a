/* SPDX-License-Identifier: Apache-2.0 */
/* stall.c - hangs and mismatches, as episodes.
 *
 * Whether a rank that is missing at a collective hangs or merely takes long is told by what its agent
 * says it is doing: one that runs, or waits for its own GPU, is given a minute. */
#include "cluster/detect/fleet_private.h"

#include "base/clock.h"
#include "base/hash.h"
#include "blame/comm_join.h"
#include "wire/names.h"

#define PATIENCE_NS    (60 * NS_PER_S)
#define CERTAIN_NS     NS_PER_S
#define TIED_NS        (2 * NS_PER_S) /* for which the calls of others are waited for */
#define DEADLOCK_NS    (10 * NS_PER_S)
#define DEADLOCK_STEPS 3 /* likewise, if that is longer */
#define GONE_NS        NS_PER_S

static bool worker_find(const struct calls *c, uint32_t worker, struct worker_view *ret)
{
	size_t cursor = 0;

	while (calls_worker_next(c, &cursor, ret))
		if (ret->worker == worker)
			return true;
	return false;
}

static void say_doing(struct episode *e, const struct push_report *r, uint32_t missing)
{
	int n = 0;

	if (missing > 1)
		n = snprintf(e->e.cause, sizeof(e->e.cause), "%u ranks are missing; the first ",
			missing);
	else
		n = snprintf(e->e.cause, sizeof(e->e.cause), "the missing rank ");
	n = MIN(n, (int)sizeof(e->e.cause) - 1);
	if (!r || r->doing == PUSH_DOING_UNKNOWN)
		snprintf(e->e.cause + n, sizeof(e->e.cause) - n,
			"has not reported what it is doing");
	else
		snprintf(e->e.cause + n, sizeof(e->e.cause) - n, "is %s%s%s",
			r->doing == PUSH_DOING_GPU          ? "waiting for its GPU"
			: r->doing == PUSH_DOING_COLLECTIVE ? "in another collective"
							    : push_doing_id(r->doing),
			!r->doing_where[0]                       ? ""
			: strncmp(r->doing_where, "in ", 3) == 0 ? " "
								 : " at ",
			r->doing_where);
}

/* Ranks that disagree wait for each other: that is told, and what follows from it is not. */
static bool follows_mismatch(struct cluster *c, const struct hang_view *h)
{
	uint32_t who = h->first_missing[0];
	struct mismatch_view m;
	struct calls_jobs jobs;
	size_t cursor = 0;
	bool found = false;

	if (!calls_mismatch_next(c->calls, &cursor, &m) || calls_jobs(c->calls, &jobs) < 0)
		return false;
	do
		found |= m.at_ns <= h->since_ns + (int64_t)CERTAIN_NS &&
			 (m.comm == h->comm ||
				 (who < jobs.worker_count && m.worker < jobs.worker_count &&
					 jobs.of[who] == jobs.of[m.worker]));
	while (!found && calls_mismatch_next(c->calls, &cursor, &m));
	calls_jobs_done(&jobs);
	return found;
}

static void take_hang(
	struct fleet *f, struct cluster *c, const struct hang_view *h, const struct price *p)
{
	struct worker_view w = {.node = "", .world_rank = -1};
	bool known =
		h->first_missing[0] != UINT32_MAX && worker_find(c->calls, h->first_missing[0], &w);
	const struct push_report *r =
		known ? report_find(c, w.node, w.pid, w.world_rank, f->now_ns) : NULL;
	uint64_t who = (uint64_t)h->first_missing[0] << 32 | (uint32_t)h->missing_rank[0];
	uint64_t key = hash_number(h->comm ^ hash_number(h->seq * 64 + FLEET_HANG)) ^
		       hash_name(c->name, strlen(c->name)) ^ hash_number(who);
	bool works = r && (r->doing == PUSH_DOING_RUNNING || r->doing == PUSH_DOING_GPU);
	struct episode *e;

	if ((works && f->now_ns - h->since_ns < (int64_t)PATIENCE_NS) || follows_mismatch(c, h))
		return;
	e = episode_get(f, c, FLEET_HANG, key);
	if (!e)
		return;
	e->e.since_ns = h->since_ns;
	snprintf(e->e.node, sizeof(e->e.node), "%s", w.node);
	e->e.rank = known && w.world_rank >= 0 ? w.world_rank : h->missing_rank[0];
	e->e.pid = w.pid;
	e->e.comm = h->comm;
	e->e.seq = h->seq;
	e->e.op = h->op;
	e->e.seen = h->waiting;
	e->e.late = h->missing;
	e->e.share = 1;
	e->e.confidence = works ? 0.6 : r ? 0.95 : 0.8;
	e->e.lag_ns = (uint64_t)MAX(f->now_ns - h->since_ns, (int64_t)0);
	say_doing(e, r, h->missing);
	if (r)
		memcpy(e->e.fix, r->fix, sizeof(e->e.fix));
	episode_waits(e, h->waiting, p);
	/* Of a rank whose agent is a moment behind it only looks as if it had not come. */
	if (e->told || f->now_ns - e->born_ns >= (int64_t)CERTAIN_NS)
		episode_tell(f, e);
}

static void take_mismatch(struct fleet *f, struct cluster *c, const struct mismatch_view *m)
{
	uint64_t key = hash_number(m->comm ^ hash_number(m->worker * 64ULL + FLEET_MISMATCH)) ^
		       hash_name(c->name, strlen(c->name));
	struct worker_view w;
	struct episode *e;
	char a[32], b[32];

	if (m->is_tied && f->now_ns - m->at_ns < (int64_t)TIED_NS)
		return; /* the others' calls say who it is */
	e = episode_get(f, c, FLEET_MISMATCH, key);
	if (!e || e->told || !worker_find(c->calls, m->worker, &w))
		return; /* what follows from the first disagreement is not told */
	snprintf(e->e.node, sizeof(e->e.node), "%s", w.node);
	e->e.rank = w.world_rank;
	e->e.pid = w.pid;
	e->e.comm = m->comm;
	e->e.seq = m->seq;
	e->e.confidence = 1;
	if (m->what == CALLS_MISMATCH_OP)
		snprintf(e->e.cause, sizeof(e->e.cause), "it calls %s where another rank calls %s",
			wire_op_name(SOURCE_NCCL, (unsigned)m->value, a),
			wire_op_name(SOURCE_NCCL, (unsigned)m->other_value, b));
	else
		snprintf(e->e.cause, sizeof(e->e.cause),
			"its %s is %llu where another rank has %llu", calls_mismatch_id(m->what),
			(unsigned long long)m->value, (unsigned long long)m->other_value);
	snprintf(e->e.fix, sizeof(e->e.fix),
		"All ranks must make the same calls in the same order: look for a branch that depends on the rank");
	episode_tell(f, e);
}

void stall_look(struct fleet *f, struct cluster *c)
{
	struct mismatch_view m;
	struct hang_view h;
	size_t cursor = 0;

	/* The others wait for those who wait. Without a root they all wait for each other, where it is known with whom. */
	if (calls_hang_next(c->calls, &cursor, &h) &&
		(h.is_root || (h.seq < COMM_JOIN_MADE_UP &&
				      f->now_ns - h.since_ns > calls_lasting(c->calls, DEADLOCK_NS,
								       DEADLOCK_STEPS)))) {
		struct price p = price_of(f, c->name);

		do
			take_hang(f, c, &h, &p);
		while (calls_hang_next(c->calls, &cursor, &h) && h.is_root);
	}
	for (int what = 0; what < CALLS_MISMATCH_COUNT; what++) /* the operation says most */
		for (cursor = 0; calls_mismatch_next(c->calls, &cursor, &m);)
			if ((int)m.what == what)
				take_mismatch(f, c, &m);
	episode_end_unseen(f, c, FLEET_HANG, GONE_NS);
	episode_end_unseen(f, c, FLEET_MISMATCH, 60 * NS_PER_S);
}
