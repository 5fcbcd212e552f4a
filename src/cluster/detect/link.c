/* SPDX-License-Identifier: Apache-2.0 */
/* link.c - links and collectives that are slow themselves, all ranks being on time, as episodes. Nobody is
 * blamed for them.
 *
 * The past by which one is known leaves the window after a while: what was usual is remembered with the
 * episode. */
#include "cluster/detect/fleet_private.h"

#include "base/clock.h"
#include "base/hash.h"

#define STEPS_LEAST 20
#define LOOKS_LEAST 2
#define LOOKS_STEPS 6 /* from the first look that finds it to the one that tells */
#define GONE_NS     (15 * NS_PER_S)
#define GONE_STEPS  12   /* likewise, if that is longer */
#define STILL       1.5  /* times what was usual: it is not over */
#define SHARE_STILL 0.01 /* likewise, of the job's time */

static uint64_t key_of(
	const struct cluster *c, const struct blame_transfer *t, const struct blame_worker *workers)
{
	uint64_t who = hash_number(t->comm);

	if (t->from != UINT32_MAX)
		who = hash_number(who ^ hash_number(workers[t->from].pid) ^
				  (uint64_t)workers[t->to].pid << 32) ^
		      hash_name(workers[t->to].node, strlen(workers[t->to].node));
	return hash_number(hash_name(c->name, strlen(c->name)) ^ who ^ FLEET_LINK);
}

/* What of the job's time it costs by what was usual when it began. */
static double remembered_share(
	const struct blame *b, const struct blame_transfer *t, uint64_t usual_ns)
{
	double took = (double)MAX(t->took_ns, UINT64_C(1)), usual = (double)usual_ns;

	if (took < STILL * usual || !b->span_ns)
		return 0;
	return (double)t->path_ns * (1 - usual / took) / (double)b->span_ns;
}

static void set_ends(
	struct fleet_episode *e, const struct blame_transfer *t, const struct blame_worker *workers)
{
	if (t->from == UINT32_MAX)
		return;
	e->from_rank = workers[t->from].rank;
	e->to_rank = workers[t->to].rank;
	snprintf(e->from_node, sizeof(e->from_node), "%s", workers[t->from].node);
	snprintf(e->to_node, sizeof(e->to_node), "%s", workers[t->to].node);
}

/* Where all have become slower there is one cause: it is told by one of them. */
static bool is_told_by_another(const struct fleet *f, const struct cluster *c, uint64_t key)
{
	for (size_t i = 0; i < f->live_count; i++) {
		const struct episode *e = f->live[i];

		if (e->cluster == c && e->key != key && e->e.by_past)
			return true;
	}
	return false;
}

/* A rank of the job is late: what others wait for it looks as if their communications took longer. */
static bool is_waited_for(const struct fleet *f, const struct cluster *c,
	const struct blame_worker *workers, size_t count)
{
	for (size_t i = 0; i < f->live_count; i++) {
		const struct episode *e = f->live[i];

		if (e->cluster != c || e->e.problem != FLEET_STRAGGLER)
			continue;
		for (size_t w = 0; w < count; w++)
			if (workers[w].pid == e->e.pid && !strcmp(workers[w].node, e->e.node))
				return true;
	}
	return false;
}

static void take(struct fleet *f, struct cluster *c, const struct suspect_job *j,
	const struct blame *b, const struct blame_transfer *t, const struct blame_worker *workers,
	size_t count)
{
	uint64_t key = key_of(c, t, workers);
	enum fleet_problem problem = t->from == UINT32_MAX ? FLEET_COLLECTIVE : FLEET_LINK;
	struct episode *e = episode_find(f, c->name, problem, key);
	struct price p = price_of(f, c->name);
	double share = t->share;

	if (e && e->looked_at_ns == f->now_ns)
		return; /* another size of the same, which costs more */
	if (!t->is_slow) {
		share = e && e->e.by_past ? remembered_share(b, t, e->e.usual_ns) : 0;
		if (share < SHARE_STILL)
			return;
	}
	if ((!e || !e->told) && t->by_past &&
		(is_told_by_another(f, c, key) || is_waited_for(f, c, workers, count)))
		return;
	e = episode_get(f, c, problem, key);
	if (!e)
		return;
	e->looked_at_ns = f->now_ns;
	if (t->is_slow) {
		e->e.usual_ns = t->usual_ns;
		e->e.by_past = t->by_past;
		if (!e->told)
			e->e.since_ns = MIN(t->since_ns, f->now_ns);
	}
	set_ends(&e->e, t, workers);
	e->e.bytes = t->bytes;
	e->e.took_ns = t->took_ns;
	e->e.comm = t->comm;
	e->e.op = t->op;
	e->e.seen = t->ranks;
	e->e.share = share;
	e->e.confidence = b->confidence;
	episode_waits(e, share * (double)count, &p);
	if (!e->looks++)
		e->looked_ns = f->now_ns;
	c->is_settled &= e->told;
	if (e->told || (pace_is_steady(j, f->now_ns) && e->looks >= LOOKS_LEAST &&
			       f->now_ns - e->looked_ns >= LOOKS_STEPS * (int64_t)b->step_ns))
		episode_tell(f, e);
}

void link_look(struct fleet *f, struct cluster *c, const struct suspect_job *j,
	const struct blame *b, const struct blame_worker *workers, size_t count)
{
	for (size_t i = 0; b->steps >= STEPS_LEAST && i < b->transfer_count; i++)
		take(f, c, j, b, &b->transfers[i], workers, count);
}

void link_end(struct fleet *f, const struct cluster *c)
{
	uint64_t after = (uint64_t)calls_lasting(c->calls, GONE_NS, GONE_STEPS);

	episode_end_unseen(f, c, FLEET_LINK, after);
	episode_end_unseen(f, c, FLEET_COLLECTIVE, after);
}
