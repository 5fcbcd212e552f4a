/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.c - the core: clusters by name, each with its collectives and reports; nodes of all of them in
 * one table. What comes in is handed on; the tick looks for what has begun and what has ended. */
#include "cluster/detect/fleet.h"

#include "base/clock.h"
#include "base/hash.h"
#include "cluster/detect/fleet_private.h"

#define OWN_SURE 0.6              /* of what a node says of itself: its peers may all be as slow */
#define OWN_NS   (600 * NS_PER_S) /* for which that holds, if it is not said again */
#define QUIET_NS                                                                                   \
	(600 * NS_PER_S) /* a cluster that says nothing for so long gives its place to another */

const struct fleet_settings fleet_defaults = {.clusters_max = 256};

static enum nodes_work work_of(void *arg, const char *cluster, const char *node)
{
	const struct cluster *c = cluster_find(arg, cluster);

	return c ? calls_work(c->calls, node) : NODES_WORK_GOES_ON;
}

int fleet_new(const struct fleet_settings *s, struct fleet **ret)
{
	_cleanup_(fleet_freep) struct fleet *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	f->settings = *s;
	f->clusters = IDMAP_INIT(s->clusters_max);
	f->ended_of = IDMAP_INIT(ENDED_MAX);
	f->live = calloc(EPISODES_MAX, sizeof(*f->live));
	f->ended = calloc(ENDED_MAX, sizeof(*f->ended));
	f->notices = calloc(NOTICES_MAX, sizeof(*f->notices));
	if (!f->live || !f->ended || !f->notices)
		return -ENOMEM;
	r = nodes_new(&s->nodes, &f->nodes);
	if (r < 0)
		return r;
	nodes_set_work(f->nodes, work_of, f);
	*ret = TAKE(f);
	return 0;
}

static void cluster_free(struct cluster *c)
{
	reports_done(c);
	calls_freep(&c->calls);
	free(c);
}
DEFINE_CLEANUP(struct cluster *, cluster_free)

void fleet_free(struct fleet *f)
{
	size_t cursor = 0;

	for (struct cluster *c; (c = idmap_next(&f->clusters, &cursor, NULL));)
		cluster_free(c);
	idmap_done(&f->clusters);
	episodes_done(f);
	nodes_freep(&f->nodes);
	free(f);
}

struct cluster *cluster_find(const struct fleet *f, const char *name)
{
	struct cluster *c = idmap_get(&f->clusters, hash_name(name, strlen(name)));

	return c && strcmp(c->name, name) == 0 ? c : NULL;
}

static size_t clusters_of(const struct fleet *f, uint64_t token)
{
	size_t cursor = 0, n = 0;

	for (const struct cluster *c; (c = idmap_next(&f->clusters, &cursor, NULL));)
		n += c->token == token;
	return n;
}

/* Of @token's, or of all, the one that has said nothing for longest. */
static struct cluster *quietest(const struct fleet *f, bool of_all, uint64_t token)
{
	struct cluster *quiet = NULL;
	size_t cursor = 0;

	for (struct cluster *c; (c = idmap_next(&f->clusters, &cursor, NULL));)
		if ((of_all || c->token == token) && (!quiet || c->heard_ns < quiet->heard_ns))
			quiet = c;
	return quiet;
}

/* The quietest of the token with the most clusters, if @token has fewer; NULL: there is none. */
static struct cluster *greediest(const struct fleet *f, uint64_t token)
{
	size_t cursor = 0, most = clusters_of(f, token) + 1;
	uint64_t who = token;

	for (const struct cluster *c; (c = idmap_next(&f->clusters, &cursor, NULL));) {
		size_t n = c->token == who ? 0 : clusters_of(f, c->token);

		if (n > most) {
			most = n;
			who = c->token;
		}
	}
	return who == token ? NULL : quietest(f, false, who);
}

/* Clusters that are named after their jobs come and go: of those that are quiet the quietest makes room, else one of
 * the token that has brought the most. */
static void make_room(struct fleet *f, uint64_t token, int64_t now_ns)
{
	struct cluster *quiet = quietest(f, true, 0);

	if (quiet && now_ns - quiet->heard_ns < (int64_t)QUIET_NS)
		quiet = greediest(f, token);
	if (!quiet)
		return;
	episodes_forget(f, quiet);
	idmap_remove(&f->clusters, hash_name(quiet->name, strlen(quiet->name)));
	cluster_free(quiet);
}

/* @token: 0 of what does not tell whose it is. -ENOBUFS: there are too many. */
static int cluster_get(
	struct fleet *f, const char *name, uint64_t token, int64_t now_ns, struct cluster **ret)
{
	_cleanup_(cluster_freep) struct cluster *c = NULL;
	int r;

	*ret = cluster_find(f, name);
	if (*ret) {
		(*ret)->heard_ns = now_ns;
		(*ret)->token = (*ret)->token ?: token;
		return 0;
	}
	if (!name[0])
		return -EINVAL;
	if (idmap_get(&f->clusters, hash_name(name, strlen(name))))
		return -ENOBUFS; /* another one's: by chance once in the life of a universe */
	if (f->clusters.used >= f->settings.clusters_max)
		make_room(f, token, now_ns);
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->heard_ns = now_ns;
	c->token = token;
	c->reports = IDMAP_INIT(REPORTS_MAX);
	r = calls_new(&f->settings.calls, &c->calls);
	r = r ?: idmap_put(&f->clusters, hash_name(name, strlen(name)), c);
	if (r < 0) {
		f->stats.clusters_refused++;
		return r;
	}
	*ret = TAKE(c);
	return 0;
}

enum nodes_refusal fleet_take_health(struct fleet *f, const struct push_health *h, uint64_t token,
	int64_t now_ns, struct threshold *ret)
{
	enum nodes_refusal refusal = nodes_take(f->nodes, h, token, now_ns, ret);
	struct cluster *c;

	f->stats.health++;
	if (refusal == NODES_NONE && cluster_get(f, h->who.cluster, token, now_ns, &c) ==
					     0) /* what does not fit is counted */
		calls_heard(c->calls, h->who.node, now_ns);
	return refusal;
}

int fleet_take_calls(
	struct fleet *f, const struct push_calls *b, int64_t now_ns, struct calls_taken *ret)
{
	struct cluster *c;
	int r = cluster_get(f, b->who.cluster, 0, now_ns, &c);

	if (r < 0)
		return r;
	f->stats.calls += b->count;
	return calls_take(c->calls, b, now_ns, ret);
}

int fleet_take_report(struct fleet *f, const struct push_report *r, int64_t now_ns)
{
	struct cluster *c;
	int err = cluster_get(f, r->who.cluster, 0, now_ns, &c);

	if (err < 0)
		return err;
	f->stats.reports++;
	err = report_keep(c, r, now_ns);
	if (err == 0 && r->cause[0]) {
		/* Why a rank is late is added as soon as it is told. */
		for (size_t i = 0; i < f->live_count; i++) {
			struct episode *e = f->live[i];

			if (e->cluster != c || e->e.problem != FLEET_STRAGGLER ||
				e->e.pid != r->pid || strcmp(e->e.node, r->who.node) != 0 ||
				!episode_explain(f, e))
				continue;
			if (e->told)
				episode_tell(f, e);
			else
				fleet_sentence(&e->e);
		}
	}
	return err;
}

static uint64_t node_key(const struct push_who *who, enum fleet_problem problem)
{
	return hash_number(hash_name(who->cluster, strlen(who->cluster)) ^
			   hash_number(hash_name(who->node, strlen(who->node)) + problem));
}

static void take_change(struct fleet *f, const struct nodes_change *change)
{
	const struct node_view *v = &change->node;
	const struct push_who *who = &v->last->who;
	enum fleet_problem problem = v->reason == NODES_SILENT_REASON ? FLEET_SILENT : FLEET_NODE;
	struct episode *e = episode_find(f, who->cluster, problem, node_key(who, problem));
	const struct episode *late = episode_of_node(f, FLEET_STRAGGLER, who->cluster, who->node);

	if (!change->began) {
		if (e)
			episode_end(f, e);
		return;
	}
	if (problem == FLEET_NODE && late && late->told)
		return; /* its rank is named already, and for what */
	e = episode_get(f, cluster_find(f, who->cluster), problem, node_key(who, problem));
	if (!e)
		return;
	memcpy(e->e.node, who->node, sizeof(e->e.node));
	e->e.is_own = false;
	e->e.rank = who->rank;
	e->e.score = v->last->score;
	e->e.threshold = v->threshold;
	e->e.since_ns = v->since_ns;
	e->e.confidence = 0.9;
	snprintf(e->e.signal, sizeof(e->e.signal), "%s", v->dominant);
	episode_explain(f, e);
	episode_tell(f, e);
}

/* Whether a node that calls itself slow is to be heard: it is known, and none of its ranks is named. */
static bool is_heard(const struct fleet *f, const struct push_who *who)
{
	const struct episode *late = episode_of_node(f, FLEET_STRAGGLER, who->cluster, who->node);
	struct node_view v;

	return !(late && late->told) && nodes_find(f->nodes, who->cluster, who->node, &v);
}

int fleet_take_straggler(
	struct fleet *f, const struct push_who *who, const struct push_straggler *s, int64_t now_ns)
{
	struct episode *e = episode_find(f, who->cluster, FLEET_NODE, node_key(who, FLEET_NODE));

	f->now_ns = MAX(f->now_ns, now_ns);
	if (s->resolved) {
		if (e && e->e.is_own)
			episode_end(f, e);
		return 0;
	}
	if ((e && !e->e.is_own) || !is_heard(f, who))
		return 0;
	e = episode_get(f, cluster_find(f, who->cluster), FLEET_NODE, node_key(who, FLEET_NODE));
	if (!e)
		return 0; /* counted */
	memcpy(e->e.node, who->node, sizeof(e->e.node));
	e->e.is_own = true;
	e->e.rank = who->rank;
	e->e.score = s->score;
	e->e.threshold = s->threshold;
	e->e.confidence = OWN_SURE;
	snprintf(e->e.signal, sizeof(e->e.signal), "%s", s->dominant);
	episode_explain(f, e);
	episode_tell(f, e);
	return 0;
}

/* Episodes of nodes last until nodes says otherwise; what agents find out meanwhile is added. */
static void renew_nodes(struct fleet *f)
{
	struct node_view v;

	for (size_t i = f->live_count; i-- > 0;) {
		struct episode *e = f->live[i];

		if (e->e.problem != FLEET_NODE)
			continue;
		if (e->e.is_own && f->now_ns - e->seen_ns >= (int64_t)OWN_NS) {
			episode_end(f, e); /* its end was never told */
			continue;
		}
		if (!e->cluster)
			episode_set_cluster(e, cluster_find(f, e->e.cluster));
		if (!e->e.is_own && nodes_find(f->nodes, e->e.cluster, e->e.node, &v)) {
			e->e.score = v.last->score;
			e->e.threshold = v.threshold;
		}
		if (episode_explain(f, e))
			episode_tell(f, e);
	}
}

void fleet_tick(struct fleet *f, int64_t now_ns)
{
	uint64_t elapsed = f->now_ns && now_ns > f->now_ns ? (uint64_t)(now_ns - f->now_ns) : 0;
	struct nodes_change change;
	size_t cursor = 0;

	f->now_ns = now_ns;
	nodes_tick(f->nodes, now_ns);
	while (nodes_change(f->nodes, &change))
		take_change(f, &change);
	renew_nodes(f);
	for (struct cluster *c; (c = idmap_next(&f->clusters, &cursor, NULL));) {
		calls_tick(c->calls, now_ns);
		report_expire(c, now_ns);
		stall_look(f, c);
		suspect_look(f, c);
		slower_look(f, c);
	}
	episode_account(f, elapsed);
	episode_sort(f);
}

void fleet_set_rates(struct fleet *f, const struct rates *r)
{
	f->settings.rates = r;
}

struct nodes *fleet_nodes(struct fleet *f)
{
	return f->nodes;
}

const struct calls *fleet_calls(const struct fleet *f, const char *cluster)
{
	const struct cluster *c = cluster_find(f, cluster);

	return c ? c->calls : NULL;
}

const struct push_report *fleet_report(
	const struct fleet *f, const char *cluster, const char *node, uint32_t pid, int32_t rank)
{
	const struct cluster *c = cluster_find(f, cluster);

	return c ? report_find(c, node, pid, rank, f->now_ns) : NULL;
}

bool fleet_cluster_next(const struct fleet *f, size_t *cursor, const char **ret_cluster)
{
	const struct cluster *c = idmap_next(&f->clusters, cursor, NULL);

	if (c)
		*ret_cluster = c->name;
	return c;
}

struct fleet_stats fleet_stats(const struct fleet *f)
{
	return f->stats;
}
