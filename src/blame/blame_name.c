/* SPDX-License-Identifier: Apache-2.0 */
/* blame_name.c - who is named for what the job loses, and who is cleared.
 *
 * A worker is named if it costs NAMED_SHARE of the job's time and that is not chance: its own time
 * exceeds its peers' by five standard errors, or it is late in more steps than its peers are. One that
 * is late at regular distances, or again and again while its peers never are, is named for less. Those
 * that are about as slow as the costliest are named with it and share its cost: had it been the only
 * one, the others would have kept the job waiting just as long.
 *
 * A stage is named if it costs more than its workers do. One that was as slow in all steps that are known is how work is
 * divided among the stages: it is named if there is nobody else, and said to be so. If many cost a little, each in its turn, the
 * load moves and no worker is named; a stage may be slow besides. */
#include "blame/blame_job.h"
#include "blame/comm_join.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define NAMED_SHARE   0.02
#define REGULAR_SHARE 0.003
#define NOISE_FACTOR  5    /* many workers are looked at, again and again */
#define EXCESS_MIN    0.02 /* of the peers' own time */
#define LATE_MIN      2
#define LATE_OFTEN    4 /* while peers hardly ever are */
#define LATE_FACTOR   3
#define LATE_CHANCE   1e-3 /* that one of the group is: it is looked at again and again */
#define STALL_STEPS   10   /* that one late step takes as long as: once is enough */
#define LATE_ALIKE                                                                                 \
	0.5 /* of its lateness: a peer that is late by less is so for reasons of its own */
#define TOGETHER    0.5
#define STAGE_SHARE 0.03
#define UNEVEN_SPREAD                                                                              \
	0.07 /* ranks of real jobs differ by 0.02 to 0.06 in a step, and of many the slowest by far more */
#define UNEVEN_SHARE  0.03
#define UNEVEN_FACTOR 3 /* spread per step to lasting spread */
#define UNEVEN_STEPS                                                                               \
	32 /* before that it may be the start of the job: code is compiled for each new length */
#define UNEVEN_NS                                                                                  \
	(5.0 * NS_PER_MS) /* a step: ranks are apart by less in any job, by their hosts and sockets */
#define UNEVEN_NAMED 3    /* the moving load costs so much more than who is named */
#define UNEVEN_BEGUN                                                                               \
	10 /* steps, that load which has begun to move costs in all: hosts of one job are apart by some for a while */
#define UNEVEN_CLEAR  5 /* likewise, where they were not before */
#define CLEARED_SHARE 0.03
#define CLEARED_MAX   64
#define GAP_STEPS     3
#define GAP_STALLS    1.5
#define STEPS_HALF    4.0
#define LATE_HALF     1.0
#define LATE_BITS     6.0 /* of evidence that it takes, where one is late now and then: load may move */

struct naming {
	struct job *j;
	double span_ns;
	bool *named; /* by worker */
	uint32_t *
		late; /* by group: late steps of all its members, by size_of() what they are late by */
	uint32_t *peers; /* by group: members */
};

static void naming_done(struct naming *n)
{
	free(n->named);
	free(n->late);
	free(n->peers);
}

/* Half octaves. */
#define SIZES 128
static uint32_t size_of(double ns)
{
	return ns > 1 ? MIN((uint32_t)(2 * log2(ns)), SIZES - 1U) : 0;
}

/* Adds the steps that @worker is late in to @sizes. What it is late by in all of them. */
static double count_late(const struct job *j, uint32_t worker, uint32_t sizes[SIZES])
{
	double sum = 0;

	for (size_t at = worker * j->step_count; at < (worker + 1) * j->step_count; at++) {
		if (!j->late[at])
			continue;
		sizes[size_of((double)j->excess[at])]++;
		sum += (double)j->excess[at];
	}
	return sum;
}

static int naming_init(struct naming *n, struct job *j)
{
	n->j = j;
	n->span_ns = (double)(j->cuts[j->step_count] - j->cuts[0]);
	n->named = calloc(j->worker_count + 1, sizeof(*n->named));
	n->late = calloc(((size_t)j->group_count + 1) * SIZES, sizeof(*n->late));
	n->peers = calloc((size_t)j->group_count + 1, sizeof(*n->peers));
	if (!n->named || !n->late || !n->peers)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++) {
		count_late(j, w, n->late + (size_t)j->group[w] * SIZES);
		n->peers[j->group[w]]++;
	}
	return 0;
}

/* How likely one of @n workers is late in @late steps or more if each is in @usual: Poisson's tail, of which the first
 * term is most. */
static double chance_of(uint32_t late, double usual, double n)
{
	int sign; /* lgamma() would leave it in a variable that threads share */

	if (usual <= 0 || usual >= late)
		return usual <= 0 ? 0 : 1;
	return n * exp(late * log(usual) - usual - lgamma_r(late + 1.0, &sign)) /
	       (1 - usual / (late + 1.0));
}

/* Its late steps are its own: its peers are far more seldom as late, and of so many none is by chance as often. */
static bool is_late_alone(const struct naming *n, uint32_t worker, uint32_t least)
{
	const struct job *j = n->j;
	uint32_t own[SIZES] = {0}, g = j->group[worker], late = 0, others = 0;
	double sum = count_late(j, worker, own), usual;

	if (j->costs[worker].late < least)
		return false;
	for (uint32_t i = size_of(LATE_ALIKE * sum / j->costs[worker].late); i < SIZES; i++) {
		late += own[i];
		others += n->late[(size_t)g * SIZES + i] - own[i];
	}
	usual = others / MAX(n->peers[g] - 1.0, 1.0);
	return late >= LATE_FACTOR * usual + LATE_MIN &&
	       chance_of(late, usual, n->peers[g]) <= LATE_CHANCE;
}

/* How long it kept the job waiting at once, if that was the time of many steps; else 0. */
static double stall_ns(const struct job *j, uint32_t worker)
{
	double most = 0;

	for (size_t s = 0; s < j->step_count; s++) {
		size_t at = worker * j->step_count + s;

		if (j->late[at])
			most = MAX(most, (double)MIN(j->excess[at], j->path[at]));
	}
	return most >= STALL_STEPS * (double)j->step_ns ? most : 0;
}

/* How many standard errors of @steps steps are as rare as NOISE_FACTOR of very many: the error itself is
 * known from these steps only (Student's t, by Wallace's approximation). */
static double errors_needed(uint32_t steps)
{
	double free = steps - 1.0, z = NOISE_FACTOR;

	if (steps < 3)
		return INFINITY;
	return sqrt(
		free * expm1(z * z * (free - 5.0 / 6) /
			       ((free - 2.0 / 3 + 0.1 / free) * (free - 2.0 / 3 + 0.1 / free))));
}

static bool is_slower(const struct naming *n, uint32_t worker)
{
	const struct job_cost *c = &n->j->costs[worker];
	double ratio = c->peer_ns > 0 ? c->own_ns / c->peer_ns - 1 : 0;

	return ratio >= EXCESS_MIN && ratio >= errors_needed(c->seen) * c->noise;
}

static void name_workers(struct naming *n)
{
	struct job *j = n->j;

	for (uint32_t w = 0; w < j->worker_count; w++) {
		double share = j->costs[w].lost_ns / n->span_ns;

		n->named[w] = (share >= NAMED_SHARE &&
				      (is_slower(n, w) || is_late_alone(n, w, LATE_MIN) ||
					      stall_ns(j, w) > 0)) ||
			      (share >= REGULAR_SHARE && is_late_alone(n, w, LATE_OFTEN));
	}
}

/* Peers that are about as slow as the slowest that is named share what they cost together. */
static int name_together(struct naming *n)
{
	struct job *j = n->j;
	_cleanup_free_ double *most = calloc((size_t)j->group_count + 1, sizeof(*most));
	_cleanup_free_ double *lost = calloc((size_t)j->group_count + 1, sizeof(*lost));
	_cleanup_free_ double *excess = calloc((size_t)j->group_count + 1, sizeof(*excess));

	if (!most || !lost || !excess)
		return -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++)
		if (n->named[w])
			most[j->group[w]] = MAX(most[j->group[w]], j->costs[w].excess_ns);
	for (uint32_t w = 0; w < j->worker_count; w++) {
		const struct job_cost *c = &j->costs[w];
		double top = most[j->group[w]];

		if (top > 0 && c->excess_ns >= TOGETHER * top &&
			(is_slower(n, w) || is_late_alone(n, w, LATE_MIN)))
			n->named[w] = true;
		if (n->named[w]) {
			lost[j->group[w]] += c->lost_ns;
			excess[j->group[w]] += c->excess_ns;
		}
	}
	for (uint32_t w = 0; w < j->worker_count; w++)
		if (n->named[w] && excess[j->group[w]] > 0)
			j->costs[w].lost_ns =
				lost[j->group[w]] * j->costs[w].excess_ns / excess[j->group[w]];
	return 0;
}

/* How many are in it. One that was brought together by when calls ended, and lacks some, may be wrong in the others, too. */
static double told_of(const struct job_comm *c)
{
	double told = MAX(c->nranks, c->members);

	return c->first_seq >= COMM_JOIN_MADE_UP ? told * told / c->members : told;
}

/* The share of all waiting whose cause is unknown: a few calls of unknown communicators may be most of it. */
static double unknown_share(const struct job *j)
{
	double all = 0, unknown = 0;

	for (size_t i = 0; i < j->item_count; i++) {
		const struct job_item *t = &j->items[i];
		double waited = (double)(t->leave_ns - t->start_ns);

		all += waited;
		unknown += t->match == JOB_NONE ? waited : 0;
	}
	return all > 0 ? unknown / all : 0;
}

/* Few steps, workers that are missing, calls without a partner and time that no call explains make
 * all figures less sure. @stall_ns of it is explained by one who did not come; @is_shown: nobody is told. */
static double sureness(const struct job *j, double stall_ns, bool is_shown)
{
	double seen = 0, told = 0,
	       sure = (double)j->step_count / ((double)j->step_count + STEPS_HALF);
	double all = (double)MAX(j->item_count, (size_t)1);

	for (size_t i = 0; i < j->comm_count; i++) {
		/* who sends nothing to somebody is not missing; calls that nobody else made are counted below */
		if (!j->comms[i].collectives || j->comms[i].members < 2)
			continue;
		seen += j->comms[i].members;
		told += is_shown ? MAX(j->comms[i].nranks, j->comms[i].members)
				 : told_of(&j->comms[i]);
	}
	sure *= told > 0 ? seen / told : 1;
	sure *= 1 - MAX(MIN((double)j->unmatched / all, 1.0), unknown_share(j));
	if (j->gap_ns > GAP_STEPS * j->step_ns && (double)j->gap_ns > GAP_STALLS * stall_ns)
		sure *= 1 - MIN((double)j->gap_ns / (double)(j->end_ns - j->begin_ns), 0.5);
	return sure;
}

static int describe_sudden(const struct naming *n, struct blame *b)
{
	const struct job *j = n->j;
	struct blame_suspect s;
	uint32_t worker;
	size_t step;
	int r = blame_sudden(j, &worker, &step);

	if (r <= 0)
		return r;
	r = blame_describe(j, worker, (double)j->excess[worker * j->step_count + step], &s);
	if (r < 0)
		return r;
	s.lag_ns = (uint64_t)j->excess[worker * j->step_count + step];
	s.since_ns = j->cuts[step];
	s.until_ns = j->cuts[step + 1];
	s.confidence = sureness(j, 0, true);
	b->sudden = s;
	b->has_sudden = true;
	return 0;
}

static void keep_costliest(struct blame *b, const struct blame_suspect *s)
{
	size_t at = b->suspect_count;

	while (at && b->suspects[at - 1].lost_ns < s->lost_ns)
		at--;
	if (b->suspect_count == BLAME_SUSPECTS_MAX)
		b->left_out++;
	else
		b->suspect_count++;
	if (at == BLAME_SUSPECTS_MAX)
		return;
	memmove(&b->suspects[at + 1], &b->suspects[at],
		(b->suspect_count - at - 1) * sizeof(*b->suspects));
	b->suspects[at] = *s;
}

/* Those that are late in the same steps, with the same work, have one cause. */
static void number_causes(const struct job *j, struct blame *b)
{
	for (size_t i = 0; i < b->suspect_count; i++) {
		size_t k = 0;

		while (k < i &&
			(b->suspects[k].cause != k || !blame_late_together(j, b->suspects[k].worker,
							      b->suspects[i].worker)))
			k++;
		b->suspects[i].cause = (uint32_t)k;
	}
}

static int list_workers(const struct naming *n, struct blame *b)
{
	for (uint32_t w = 0; w < n->j->worker_count; w++) {
		struct blame_suspect s;
		int r;

		if (!n->named[w])
			continue;
		r = blame_describe(n->j, w, n->j->costs[w].lost_ns, &s);
		if (r < 0)
			return r;
		keep_costliest(b, &s);
	}
	b->kind = BLAME_WORKERS;
	number_causes(n->j, b);
	return 0;
}

/* The worker of @stage with the most of the path. */
static uint32_t worst_of(const struct job *j, int32_t stage)
{
	double most = -1;
	uint32_t worst = 0;

	for (uint32_t w = 0; w < j->worker_count; w++) {
		if (j->stage[w] == stage && j->costs[w].own_ns > most) {
			most = j->costs[w].own_ns;
			worst = w;
		}
	}
	return worst;
}

static bool stage_is_slow(const struct naming *n, int32_t s)
{
	return !n->j->is_guessed && n->j->stage_ratio[s] >= JOB_STAGE_RATIO &&
	       n->j->stage_cost_ns[s] >= STAGE_SHARE * n->span_ns;
}

static int list_stages(const struct naming *n, struct blame *b)
{
	const struct job *j = n->j;

	for (int32_t s = 0; s < j->stage_count; s++) {
		struct blame_suspect found;
		int r;

		if (!stage_is_slow(n, s))
			continue;
		r = blame_describe(j, worst_of(j, s), j->stage_cost_ns[s], &found);
		if (r < 0)
			return r;
		found.peer_own_ns = (uint64_t)((double)found.own_ns / j->stage_ratio[s]);
		found.lag_ns = found.own_ns - found.peer_own_ns;
		found.late = found.seen;
		found.period = 1;
		found.by_design = j->stage_since[s] == 0;
		found.since_ns = j->cuts[j->stage_since[s]];
		found.until_ns = j->cuts[j->step_count];
		keep_costliest(b, &found);
	}
	for (size_t i = 0; i < b->suspect_count; i++)
		b->suspects[i].cause = (uint32_t)i;
	b->kind = BLAME_STAGE;
	return 0;
}

/* What slow stages cost; *ret_became: of that, those that were not so from the beginning. */
static double slow_stages_ns(const struct naming *n, double *ret_became)
{
	const struct job *j = n->j;
	double all = 0;

	*ret_became = 0;
	for (int32_t s = 0; j->stage_count > 1 && s < j->stage_count; s++) {
		if (!stage_is_slow(n, s))
			continue;
		all += j->stage_cost_ns[s];
		*ret_became += j->stage_since[s] ? j->stage_cost_ns[s] : 0;
	}
	return all;
}

/* What those who are named lose in all, beyond what every one of their peers loses as well, each in its turn: @least, by
 * group. */
static double named_alone_ns(const struct naming *n, double *least)
{
	double sum = 0;

	for (uint32_t g = 0; g < n->j->group_count; g++)
		least[g] = n->span_ns;
	for (uint32_t w = 0; w < n->j->worker_count; w++)
		least[n->j->group[w]] = MIN(least[n->j->group[w]], n->j->costs[w].lost_ns);
	for (uint32_t w = 0; w < n->j->worker_count; w++)
		sum += n->named[w] ? n->j->costs[w].lost_ns - least[n->j->group[w]] : 0;
	return sum;
}

/* Load that moves makes all workers late in their turn: it is more than what sets apart those who are named. @spread: by how
 * much workers differ in a step at least. */
static bool load_moves(const struct job_load *l, double spread, double alone_ns)
{
	return l->spread_step >= spread && l->uneven_ns >= UNEVEN_SHARE * l->span_ns &&
	       l->spread_step >= UNEVEN_FACTOR * l->spread_lasting &&
	       l->uneven_ns >= UNEVEN_NAMED * alone_ns;
}

/* What that costs, where it can be told. */
static double load_cost_ns(const struct job_load *l)
{
	bool is_told = l->steps >= UNEVEN_STEPS && l->uneven_ns >= UNEVEN_NS * l->steps;

	return is_told ? MIN(l->uneven_ns, l->span_ns) : 0;
}

/* Whether load has begun to move: workers differ by UNEVEN_FACTOR times what they did before in the same job, or by so much
 * that the job need not be known. */
static bool load_has_begun(const struct job *j, double alone_ns)
{
	const struct job_load *l = &j->begun;
	double steps = l->uneven_ns / (double)j->step_ns, before = UNEVEN_FACTOR * j->spread_before;

	return (steps >= UNEVEN_BEGUN && load_moves(l, UNEVEN_SPREAD, alone_ns)) ||
	       (steps >= UNEVEN_CLEAR && before > 0 && load_moves(l, before, alone_ns));
}

/* Those that came last to collectives for a good part of the time, but are not named. */
static int list_cleared(const struct naming *n, struct blame *b)
{
	const struct job *j = n->j;
	_cleanup_free_ double *lag = calloc(j->worker_count + 1, sizeof(*lag));

	b->cleared = calloc(CLEARED_MAX, sizeof(*b->cleared));
	if (!lag || !b->cleared)
		return -ENOMEM;
	for (size_t i = 0; i < j->match_count; i++) {
		const struct job_match *m = &j->matches[i];
		double mean = 0;

		if (m->count < 2 || blame_is_pair(j->items[m->last].op))
			continue;
		for (uint32_t k = 0; k < m->count; k++)
			mean += (double)(m->arrival_ns -
					 j->items[j->members[m->first + k]].enter_ns);
		lag[job_item_worker(j, m->last)] += mean / (m->count - 1);
	}
	for (uint32_t w = 0; w < j->worker_count && b->cleared_count < CLEARED_MAX; w++)
		if (lag[w] >= CLEARED_SHARE * n->span_ns && !n->named[w] &&
			j->costs[w].lost_ns < NAMED_SHARE * n->span_ns)
			b->cleared[b->cleared_count++] = w;
	return 0;
}

/* Nothing that was found makes most steps longer. */
static bool is_free(const struct blame *b)
{
	for (size_t i = 0; b->kind == BLAME_WORKERS && i < b->suspect_count; i++)
		if (2 * b->suspects[i].late >= b->suspects[i].seen)
			return false;
	return b->kind == BLAME_NONE || b->kind == BLAME_WORKERS;
}

/* Who is sent more than before: what makes one late that is named; where nothing that was found makes most steps longer, the
 * one whose GPU is known to have more to do. */
static int list_received(const struct naming *n, struct blame *b)
{
	struct blame_suspect found, s;
	uint32_t worker = 0;
	int r = blame_received(n->j, &worker, &found);

	if (r <= 0)
		return r;
	for (size_t i = 0; b->kind == BLAME_WORKERS && i < b->suspect_count; i++)
		if (b->suspects[i].worker == worker) {
			b->suspects[i].received = found.received;
			return 0;
		}
	if (!is_free(b) || (double)found.lost_ns < NAMED_SHARE * n->span_ns)
		return 0;
	r = blame_describe(n->j, worker, (double)found.lost_ns, &s);
	s.received = found.received;
	s.late = found.late;
	s.seen = found.seen;
	s.lag_ns = found.lag_ns;
	s.period = found.period;
	s.since_ns = found.since_ns;
	s.until_ns = n->j->cuts[n->j->step_count];
	s.on_time = true;
	if (r == 0) {
		b->kind = BLAME_WORKERS;
		keep_costliest(b, &s);
		number_causes(n->j, b);
	}
	return r;
}

/* Late steps that make one half sure: of few peers, each is the latest by chance in many steps. */
static double late_half(const struct job *j, const struct blame_suspect *s)
{
	double peers = 0;

	for (uint32_t w = 0; w < j->worker_count; w++)
		peers += j->group[w] == j->group[s->worker];
	return s->period || peers < 2 ? LATE_HALF : LATE_HALF * MAX(LATE_BITS / log2(peers), 1.0);
}

static void weigh_confidence(const struct job *j, struct blame *b)
{
	b->confidence = sureness(j, 0, false);
	for (size_t i = 0; i < b->suspect_count; i++) {
		struct blame_suspect *s = &b->suspects[i];
		double stall = b->kind == BLAME_WORKERS ? stall_ns(j, s->worker) : 0;

		s->confidence = sureness(j, stall, false) *
				(stall > 0 ? 1 : s->late / (s->late + late_half(j, s)));
	}
	if (b->suspect_count)
		b->confidence = b->suspects[0].confidence;
}

int blame_name(struct job *j, struct blame *b)
{
	_cleanup_(naming_done) struct naming n = {0};
	_cleanup_free_ double *least = calloc((size_t)j->group_count + 1, sizeof(*least));
	double workers = 0, alone, stages, became;
	int r = naming_init(&n, j);

	if (r < 0)
		return r;
	name_workers(&n);
	r = name_together(&n);
	if (r < 0 || !least)
		return r < 0 ? r : -ENOMEM;
	for (uint32_t w = 0; w < j->worker_count; w++)
		workers += n.named[w] ? j->costs[w].lost_ns : 0;
	alone = named_alone_ns(&n, least);
	stages = slow_stages_ns(&n, &became);
	if (load_has_begun(j, alone))
		b->uneven_begun = load_cost_ns(&j->begun) / j->begun.span_ns;
	if (load_moves(&j->load, UNEVEN_SPREAD, alone)) {
		b->uneven_ns = (uint64_t)load_cost_ns(&j->load);
		b->uneven_share = (double)b->uneven_ns / n.span_ns;
		memset(n.named, 0, j->worker_count * sizeof(*n.named));
		workers = 0;
	}
	if (workers > 0 && workers >= became)
		r = list_workers(&n, b);
	else if (stages > 0)
		r = list_stages(&n, b);
	else if (b->uneven_ns)
		b->kind = BLAME_UNEVEN;
	r = r < 0 ? r : list_received(&n, b);
	b->lost_ns = b->uneven_ns;
	for (size_t i = 0; i < b->suspect_count; i++)
		b->lost_ns += b->suspects[i].lost_ns;
	b->lost_ns = MIN(b->lost_ns, (uint64_t)n.span_ns);
	weigh_confidence(j, b);
	if (r == 0)
		r = describe_sudden(&n, b);
	return r < 0 ? r : list_cleared(&n, b);
}
