/* SPDX-License-Identifier: Apache-2.0 */
/* slower.c - a job whose steps have become longer though no rank comes late to its collectives. Then it is a GPU that is
 * late, load that moves between GPUs, or nothing that ranks differ by: calls cannot tell, but the agents' recordings can.
 * So the agents of such a job are asked (fleet_late()), and what one of them says of a rank is told. A rank that is alone on its
 * node is known by the node's launches as well: ranks of one job make as many steps, so it is the only one that launches more
 * than its peers and did not do so before.
 *
 * Pace: how long a communicator takes for each of its collectives, by windows, against what was usual. */

#include "base/clock.h"
#include "base/hash.h"
#include "cluster/detect/calls_core.h"
#include "cluster/detect/fleet_private.h"

#define FIRST_CALLS  16 /* of a communicator: its first steps are not usual ones */
#define WINDOW_CALLS 16
#define WINDOW_NS    (2 * (int64_t)NS_PER_S) /* both are reached */
#define LONGER       1.10
#define USUAL_ALPHA  0.3
#define HOLDS_NS     (5 * (int64_t)NS_PER_S) /* without another window: it is not known any more */
#define ACCEPTED_NS  (600 * (int64_t)NS_PER_S) /* then it is how the job is */
#define SURE         0.5
#define LATE_NS      (15 * (int64_t)NS_PER_S)
#define MORE_SURE    0.6 /* of a rank that launches more: other work may wait in the same steps */

void calls_note_pace(struct calls *c, struct comm *m, int64_t at_ns)
{
	double each;

	if (m->matched < FIRST_CALLS || m->paced_ns == 0 || at_ns < m->paced_ns) {
		m->paced = 0;
		m->paced_ns = at_ns;
		return;
	}
	if (++m->paced < WINDOW_CALLS || at_ns - m->paced_ns < WINDOW_NS)
		return;
	each = (double)(at_ns - m->paced_ns) / m->paced;
	if (m->usual_each == 0)
		m->usual_each = each;
	m->slower = each / m->usual_each;
	if (m->slower >= LONGER && !m->slower_since_ns)
		m->slower_since_ns = m->paced_ns;
	if (m->slower < LONGER || at_ns - m->slower_since_ns > ACCEPTED_NS) {
		m->usual_each += USUAL_ALPHA * (each - m->usual_each);
		m->slower_since_ns = 0;
	} else {
		for (size_t i = 0; i < m->member_count; i++) {
			struct worker *w = c->workers.items[m->members[i].worker];

			w->slower_since_ns = m->slower_since_ns;
			w->slower = m->slower;
			w->slower_until_ns = c->now_ns + HOLDS_NS;
		}
		c->slower_until_ns = c->now_ns + HOLDS_NS;
	}
	m->paced = 0;
	m->paced_ns = at_ns;
}

/* Whether what makes it slow is known. */
static bool is_explained(const struct fleet *f, const struct cluster *c)
{
	for (size_t i = 0; i < f->live_count; i++) {
		const struct episode *e = f->live[i];

		if (e->cluster == c && e->e.problem != FLEET_NODE && !e->is_agents &&
			(e->told || episode_is_late(f, e)))
			return true;
	}
	return false;
}

size_t slower_pids(const struct fleet *f, const struct cluster *c, const char *node, uint32_t *pids,
	size_t max)
{
	struct worker_view w;
	size_t n = 0, cursor = 0;

	if (!calls_is_slower(c->calls) || is_explained(f, c))
		return 0;
	while (n < max && calls_worker_next(c->calls, &cursor, &w))
		if (w.slower > 0 && !strcmp(w.node, node))
			pids[n++] = w.pid;
	return n;
}

/* One rank is late by far now and then: that is not load that moves, while several that were only shown are. */
static bool has_late(const struct fleet *f, const struct cluster *c)
{
	size_t shown = 0;

	for (size_t i = 0; i < f->live_count; i++) {
		const struct episode *e = f->live[i];

		if (e->cluster != c || e->e.problem != FLEET_STRAGGLER ||
			!(e->told || e->e.provisional) || f->now_ns - e->seen_ns >= LATE_NS)
			continue;
		shown++;
		if (e->told)
			return true;
	}
	return shown == 1;
}

struct episode *uneven_take(
	struct fleet *f, struct cluster *c, uint64_t comm, double share, double confidence)
{
	struct price p = price_of(f, c->name);
	struct episode *e = has_late(f, c)
				    ? NULL
				    : episode_get(f, c, FLEET_UNEVEN,
					      episode_key(c, FLEET_UNEVEN, hash_number(comm)));

	if (!e)
		return NULL;
	e->e.share = share;
	e->e.confidence = confidence;
	episode_waits(e, 0, &p);
	episode_tell(f, e);
	return e;
}

/* What an agent says of its own job: why, since when and how sure. */
static void tell_report(struct fleet *f, struct cluster *c, struct episode *e,
	const struct worker_view *w, const struct push_report *r)
{
	struct price p = price_of(f, c->name);

	e->is_agents = true;
	if (!e->told)
		e->e.since_ns = MIN(w->slower_since_ns, f->now_ns);
	memcpy(e->e.cause, r->cause, sizeof(e->e.cause));
	memcpy(e->e.fix, r->fix, sizeof(e->e.fix));
	e->e.share = 1 - 1 / w->slower;
	e->e.confidence = r->confidence;
	episode_waits(e, 0, &p);
	episode_tell(f, e);
}

static void take_late(struct fleet *f, struct cluster *c, const struct worker_view *w,
	const struct push_report *r)
{
	uint64_t who = hash_name(w->node, strlen(w->node)) ^ hash_number(w->pid);
	struct episode *e =
		episode_get(f, c, FLEET_STRAGGLER, episode_key(c, FLEET_STRAGGLER, who));

	if (!e)
		return;
	snprintf(e->e.node, sizeof(e->e.node), "%s", w->node);
	e->e.rank = w->world_rank;
	e->e.pid = w->pid;
	e->e.lag_ns = r->step_ns > r->ordinary_ns ? r->step_ns - r->ordinary_ns : 0;
	memcpy(e->e.place, r->place, sizeof(e->e.place));
	tell_report(f, c, e, w, r);
}

/* No rank is late and none has more to do: the collectives themselves take longer. */
static void take_link(struct fleet *f, struct cluster *c, const struct worker_view *w,
	const struct push_report *r)
{
	struct episode *e = episode_get(
		f, c, FLEET_COLLECTIVE, episode_key(c, FLEET_COLLECTIVE, hash_number(0)));

	if (e)
		tell_report(f, c, e, w, r);
}

/* The rank of the only node that has come to launch more than its peers, if no other rank of a slower job is on it. */
static bool find_more(
	const struct fleet *f, const struct cluster *c, struct worker_view *ret, double *ret_more)
{
	struct worker_view w;
	struct node_view v;
	size_t cursor = 0, found = 0;

	while (calls_worker_next(c->calls, &cursor, &w)) {
		if (w.slower < LONGER || !nodes_find(f->nodes, c->name, w.node, &v) ||
			v.more_launches <= 0)
			continue;
		*ret = w;
		*ret_more = v.more_launches;
		found++;
	}
	return found == 1;
}

static void take_more(struct fleet *f, struct cluster *c)
{
	struct push_report r = {.confidence = MORE_SURE};
	struct worker_view w;
	double more;

	if (!find_more(f, c, &w, &more))
		return;
	snprintf(r.cause, sizeof(r.cause),
		"more work on its GPU: its node launches %.0f %% more kernels than the others",
		100 * more);
	snprintf(r.fix, sizeof(r.fix),
		"Look for what this rank launches and the others do not: `ingero diff` of two nodes' recordings shows it");
	take_late(f, c, &w, &r);
}

void slower_look(struct fleet *f, struct cluster *c)
{
	struct worker_view w;
	struct episode *e;
	size_t cursor = 0;

	if (!calls_is_slower(c->calls) || is_explained(f, c))
		return;
	take_more(f, c);
	while (calls_worker_next(c->calls, &cursor, &w)) {
		const struct push_report *r =
			w.slower > 0 ? report_find(c, w.node, w.pid, w.world_rank, f->now_ns)
				     : NULL;

		if (!r || r->confidence < SURE || w.slower < LONGER)
			continue;
		if (!strcmp(r->line, PUSH_LINE_LATE))
			take_late(f, c, &w, r);
		else if (!strcmp(r->line, PUSH_LINE_LINK))
			take_link(f, c, &w, r);
		else if (!strcmp(r->line, PUSH_LINE_LOAD) &&
			 (e = uneven_take(f, c, 0, 1 - 1 / w.slower, r->confidence)))
			e->is_agents = true;
	}
}
