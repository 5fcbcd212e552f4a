/* SPDX-License-Identifier: Apache-2.0 */
/* nodes.c - see nodes.h: takes pushes, refuses what must not count, answers. Judging is done by
 * nodes_tick(). A refused push changes nothing but its counter. */
#include "cluster/detect/nodes.h"

#include <math.h>

#include "base/search.h"
#include "cluster/detect/nodes_table.h"

#define SECOND_NS 1000000000LL
#define FUTURE_NS (60 * SECOND_NS)
#define PAST_NS   (300 * SECOND_NS)
#define WORLD_MAX (1u << 20) /* ranks */

const struct nodes_settings nodes_defaults = {
	.k = 2.0,
	.ema_alpha = 0.2,
	.interval_ns = 10 * SECOND_NS,
	.ttl_multiplier = 5,
	.quorum = 5,
	.coverage = 0.80,
	.nodes_max = 10000,
	.mad_floor = 0.01,
	.hysteresis = 0.02,
};

static const struct {
	const char *id;
	int status;
} refusals[] = {
#define X(NAME, id, status) [NODES_##NAME] = {id, status},
	NODES_REFUSALS(X)
#undef X
};

const char *nodes_refusal_id(enum nodes_refusal r)
{
	return refusals[r].id;
}

int nodes_refusal_status(enum nodes_refusal r)
{
	return refusals[r].status;
}

uint64_t nodes_refused(const struct nodes *n, enum nodes_refusal r)
{
	return n->refused[r];
}

const char *nodes_reason_id(enum nodes_reason r)
{
	return LIST_IDS(NODES_REASONS)[r];
}

static bool settings_are_sound(const struct nodes_settings *s)
{
	return s->k >= 1 && s->k <= 4 && s->ema_alpha > 0 && s->ema_alpha <= 1 &&
	       s->interval_ns >= SECOND_NS / 10 && s->interval_ns <= 3600 * (uint64_t)SECOND_NS &&
	       s->ttl_multiplier >= 1 && s->ttl_multiplier <= 1000 && s->nodes_max >= 1 &&
	       s->nodes_max <= 1u << 20 && s->coverage >= 0 && s->coverage <= 1 &&
	       s->mad_floor > 0 && s->mad_floor < 1 && s->hysteresis >= 0 && s->hysteresis < 0.5;
}

int nodes_new(const struct nodes_settings *s, struct nodes **ret)
{
	struct nodes *n;

	if (!settings_are_sound(s))
		return -EINVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->settings = *s;
	n->by_name = IDMAP_INIT(s->nodes_max);
	n->cohorts = IDMAP_INIT(COHORT_KIND_COUNT * ((size_t)s->nodes_max + 1));
	n->tokens = IDMAP_INIT(s->nodes_max);
	n->ticked_ns = INT64_MIN;
	LIST_INIT(&n->clusters);
	TAILQ_INIT(&n->changes);
	*ret = n;
	return 0;
}

void nodes_free(struct nodes *n)
{
	struct nodes_change change;

	if (!n)
		return;
	nodes_clear(n);
	while (nodes_change(n, &change))
		;
	free(n->shown);
	idmap_done(&n->by_name);
	idmap_done(&n->cohorts);
	idmap_done(&n->tokens);
	free(n->order);
	free(n->values);
	free(n);
}

/* Texts are checked first: nothing may be looked up by a text that does not end. */
#define TEXT_ENDS(text) (strnlen((text), sizeof(text)) < sizeof(text))

static bool texts_end(const struct push_health *h)
{
	return TEXT_ENDS(h->who.cluster) && TEXT_ENDS(h->who.node) && TEXT_ENDS(h->who.provider) &&
	       TEXT_ENDS(h->cohort) && TEXT_ENDS(h->workload) && TEXT_ENDS(h->gpu_model);
}

static bool numbers_are_finite(const struct push_health *h)
{
	bool finite = isfinite(h->score) && isfinite(h->throughput) && isfinite(h->compute) &&
		      isfinite(h->memory) && isfinite(h->cpu);

	for (size_t i = 0; i < ARRAY_SIZE(h->signals); i++)
		finite = finite && isfinite(h->signals[i]);
	return finite;
}

static bool is_ratio(double v)
{
	return v >= 0 && v <= 1;
}

static bool numbers_are_in_range(const struct push_health *h)
{
	bool in = is_ratio(h->score) && is_ratio(h->throughput) && is_ratio(h->compute) &&
		  is_ratio(h->memory) && is_ratio(h->cpu);

	for (size_t i = 0; i < ARRAY_SIZE(h->signals); i++)
		in = in && (h->signals[i] >= 0 || h->signals[i] == -1);
	return in && (unsigned)h->state < PUSH_STALE && h->who.world_size <= WORLD_MAX &&
	       h->who.rank >= -1 &&
	       (!h->who.world_size || h->who.rank < (int64_t)h->who.world_size);
}

enum nodes_refusal push_refusal(const struct push_health *h)
{
	if (!texts_end(h))
		return NODES_OUT_OF_RANGE;
	if (!h->who.cluster[0] || !h->who.node[0])
		return NODES_NO_NAME;
	if (!numbers_are_finite(h))
		return NODES_NOT_FINITE;
	return numbers_are_in_range(h) ? NODES_NONE : NODES_OUT_OF_RANGE;
}

static enum nodes_refusal push_check(const struct push_health *h, int64_t now_ns)
{
	enum nodes_refusal r = push_refusal(h);

	if (r != NODES_NONE)
		return r;
	if (h->sent_ns < 0)
		return NODES_PAST;
	if (h->sent_ns > now_ns && h->sent_ns - now_ns > FUTURE_NS)
		return NODES_FUTURE;
	if (h->sent_ns < now_ns && now_ns - h->sent_ns > PAST_NS)
		return NODES_PAST;
	return NODES_NONE;
}

/* has_rival - the push is another agent's than the one that speaks for the node. Which of two is a
 * restart shows when the old one is heard again: then it was the first and is believed. */
static bool has_rival(const struct nodes *n, const struct node *d, uint64_t boot, int64_t now_ns)
{
	uint64_t quiet_ns = (uint64_t)(now_ns - d->last_ns);
	uint64_t gap_ns = MAX(d->gap_ns, n->settings.interval_ns);

	if (boot == d->last.who.boot || (d->former && boot == d->former))
		return false;
	return quiet_ns < (boot == d->rival ? nodes_ttl_ns(n) : gap_ns + gap_ns / 2);
}

static void change_agent(struct node *d, uint64_t boot)
{
	if (boot == d->last.who.boot)
		return;
	if (d->former && boot == d->former) {
		d->rival = d->last.who.boot;
		d->former = 0;
	} else {
		d->former = d->last.who.boot;
		d->rival = 0;
	}
	memset(d->traces, 0, sizeof(d->traces));
}

/* The token with the most nodes, if @token has fewer; 0: there is none. */
static uint64_t greediest(const struct nodes *n, uint64_t token)
{
	uintptr_t most = token ? (uintptr_t)idmap_get(&n->tokens, token) + 1 : UINTPTR_MAX;
	uint64_t who = 0, id;
	size_t cursor = 0;

	for (void *uses; (uses = idmap_next(&n->tokens, &cursor, &id));)
		if ((uintptr_t)uses > most) {
			most = (uintptr_t)uses;
			who = id;
		}
	return who;
}

/* Of @token, 0 of any, the one that was not heard for longest. */
static struct node *quietest(const struct nodes *n, uint64_t token)
{
	struct node *oldest = NULL;

	for (size_t i = 0; i < n->count; i++)
		if ((!token || n->order[i]->token == token) &&
			(!oldest || n->order[i]->last_ns < oldest->last_ns))
			oldest = n->order[i];
	return oldest;
}

/* A name that is not heard makes room for one that is, else one of the token that has brought the most. */
static bool make_room(struct nodes *n, uint64_t token, int64_t now_ns)
{
	struct node *oldest;
	uint64_t most;

	if (n->count < n->settings.nodes_max)
		return true;
	oldest = quietest(n, 0);
	if (now_ns - oldest->last_ns <= (int64_t)nodes_ttl_ns(n)) {
		most = greediest(n, token);
		oldest = most ? quietest(n, most) : NULL;
	}
	if (!oldest)
		return false;
	node_end_all(n, oldest);
	oldest->is_gone = true;
	nodes_forget_gone(n);
	return true;
}

static enum nodes_refusal find_or_add(struct nodes *n, const struct push_health *h, uint64_t token,
	int64_t now_ns, struct node **ret)
{
	struct node *d = node_find(n, h->who.cluster, h->who.node);

	if (d && has_rival(n, d, h->who.boot, now_ns))
		return NODES_TWO_AGENTS;
	if (d && !node_set_token(n, d, token))
		return NODES_TOKEN_NODES;
	if (!d) {
		if (!token_has_room(n, token))
			return NODES_TOKEN_NODES;
		d = make_room(n, token, now_ns) ? node_add(n, &h->who, token) : NULL;
		if (!d)
			return NODES_TOO_MANY_NODES;
		d->first_ns = d->last_ns = now_ns;
	}
	*ret = d;
	return NODES_NONE;
}

static void node_take(struct nodes *n, struct node *d, const struct push_health *h, int64_t now_ns)
{
	struct cohort *cluster = d->in[COHORT_CLUSTER];

	if (d->reasons & 1u << NODES_SILENT_REASON)
		node_end_all(n, d);
	if (h->state == PUSH_IDLE) /* it does nothing, so it holds nobody up */
		node_end_all(n, d);
	if (cluster->heard_ns != INT64_MIN &&
		now_ns - cluster->heard_ns > 2 * (int64_t)n->settings.interval_ns)
		cluster->deaf_ns = now_ns + (int64_t)nodes_ttl_ns(n);
	cluster->heard_ns = now_ns;
	cluster->unjudged++;
	d->gap_ns = MIN((uint64_t)(now_ns - d->last_ns), nodes_ttl_ns(n));
	d->last_ns = now_ns;
	d->is_fresh = true;
}

enum nodes_refusal nodes_take(struct nodes *n, const struct push_health *h, uint64_t token,
	int64_t now_ns, struct threshold *ret)
{
	enum nodes_refusal r = push_check(h, now_ns);
	struct node *d = NULL;

	*ret = (struct threshold){0};
	if (r == NODES_NONE)
		r = find_or_add(n, h, token, now_ns, &d);
	n->refused[r]++;
	if (r != NODES_NONE) {
		if (texts_end(h) && !nodes_threshold(n, h->who.cluster, h->cohort, ret))
			nodes_threshold(n, h->who.cluster, "", ret);
		return r;
	}
	change_agent(d, h->who.boot);
	d->last = *h;
	if (node_join(n, d) < 0 && !d->in[COHORT_PEERS]) {
		d->is_gone = true;
		nodes_forget_gone(n);
		n->refused[NODES_NONE]--;
		n->refused[NODES_TOO_MANY_NODES]++;
		return NODES_TOO_MANY_NODES;
	}
	node_take(n, d, h, now_ns);
	*ret = cohort_of_score(d)->threshold;
	return NODES_NONE;
}

bool nodes_threshold(
	const struct nodes *n, const char *cluster, const char *cohort, struct threshold *ret)
{
	struct cohort *c =
		cohort_find(n, cohort[0] ? COHORT_HASH : COHORT_CLUSTER, cluster, cohort);

	c = c ?: cohort_find(n, COHORT_WORKLOAD, cluster, cohort);
	if (!c)
		return false;
	*ret = c->threshold;
	return true;
}

bool nodes_next(const struct nodes *n, const char *cluster, size_t *cursor, struct node_view *ret)
{
	size_t at = *cursor;

	if (cluster && at == 0)
		at = LOWER_BOUND(i, n->count, strcmp(n->order[i]->last.who.cluster, cluster) < 0);
	if (at >= n->count || (cluster && strcmp(n->order[at]->last.who.cluster, cluster) != 0))
		return false;
	node_show(n->order[at], ret);
	*cursor = at + 1;
	return true;
}

bool nodes_find(const struct nodes *n, const char *cluster, const char *node, struct node_view *ret)
{
	const struct node *d = node_find(n, cluster, node);

	if (d)
		node_show(d, ret);
	return d;
}

void nodes_set_work(struct nodes *n, nodes_work_fn *fn, void *arg)
{
	n->work = fn;
	n->work_arg = arg;
}

/* Each cohort has one member that is the first in its list: at that one it is shown. */
static const struct cohort *cohort_at(const struct nodes *n, size_t i, enum cohort_kind kind)
{
	const struct node *d = n->order[i];
	const struct cohort *c = d->in[kind];

	if (kind == COHORT_CLUSTER)
		return i == 0 || n->order[i - 1]->in[kind] != c ? c : NULL;
	if (kind == COHORT_PEERS || !c || LIST_FIRST(&c->members) != d)
		return NULL;
	return kind == COHORT_HASH || d->last.workload[0] ? c : NULL;
}

bool nodes_cohort_next(const struct nodes *n, size_t *cursor, const char **ret_cluster,
	const char **ret_cohort, struct threshold *ret)
{
	while (*cursor < n->count * COHORT_KIND_COUNT) {
		size_t at = (*cursor)++;
		const struct cohort *c =
			cohort_at(n, at / COHORT_KIND_COUNT, at % COHORT_KIND_COUNT);

		if (!c)
			continue;
		*ret_cluster = c->cluster;
		*ret_cohort = c->name;
		*ret = c->threshold;
		return true;
	}
	return false;
}
