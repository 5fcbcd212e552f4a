/* SPDX-License-Identifier: Apache-2.0 */
/* suspect.c - what blame finds in a cluster's collectives, as episodes.
 *
 * Blame over many ranks is dear, so it is asked only while somebody is late, and more seldom the more
 * calls there are. An episode that is not found again for a while has ended: a periodic straggler is
 * given the time of a few periods.
 *
 * Who is late by far more than chance is shown at once, as provisional: nobody is woken before it has
 * happened again. */
#include "cluster/detect/fleet_private.h"

#include "base/clock.h"
#include "base/hash.h"

#define EVERY_NS      (NS_PER_S / 2)
#define CALLS_AT_ONCE 100000 /* calls for which EVERY_NS is right; more are asked in proportion */
#define EVERY_MAX_NS  (10 * NS_PER_S)
#define SLOW_EVERY_NS (2 * NS_PER_S) /* while nobody is late, but communications take long */
#define SETTLED       3              /* times that time, while looks bring nothing new */
#define SUDDEN_EVERY  5 /* part of that time, after which somebody who is late by far is looked at */
#define SUDDEN_NS                                                                                  \
	(3 * NS_PER_S / 2) /* for which its step and the calls of all ranks may take to come */
#define GONE_NS        (15 * NS_PER_S)
#define GONE_STEPS     12 /* likewise, if that is longer */
#define FORGET_STEPS   100
#define FORGET_NS      (300 * NS_PER_S) /* what was seen too seldom to be told */
#define SIGHTINGS      3                /* of one that is late by far: then it is no chance */
#define SIGHTINGS_MANY 4                /* likewise, though it costs little, */
#define MATERIAL_MANY  0.02             /* at least this of the time, */
#define LAG_MANY       0.25             /* and of a step each time */
#define SIGHTINGS_GONE 3 /* of the time between two of them, without another: it is over */
#define SURE           0.5
#define SURE_SUDDEN    0.4
#define SURE_OWN       0.5  /* of that, where it may be what the job has rank 0 do */
#define MATERIAL       0.05 /* of the job's time since it began: less is not worth waking anybody */
#define MATERIAL_NS    (300 * NS_PER_MS) /* in all, likewise */
#define SUDDEN_LEAST   (10 * NS_PER_MS)  /* late just now: less is not shown */
#define MATERIAL_SMALL 0.10              /* likewise, where it is late by little (BLAME_SMALL_NS) */
#define MATERIAL_STAGE 0.10  /* likewise: neither layers nor batches can be divided evenly */
#define MATERIAL_STILL 0.5   /* part of that, of what was told: it is not over */
#define SHARE_REGULAR  0.003 /* likewise, of one that is late again and again, its peers never, */
#define LATE_REGULAR   4     /* in so many steps, */
#define LAG_REGULAR    0.5   /* by so much of a step */
#define LATE_LEAST     3     /* steps: twice may be chance */
#define LOOKS_LEAST    2     /* in which somebody is found */
#define STEPS_LEAST    8     /* to compare ranks by */
#define STEPS_SHOWN    5     /* likewise, before anybody is told */
#define SHARE_SHOWN    0.05  /* likewise */
#define STEPS_EARLY    50    /* less is early */
#define STEPS_SHAPE    20    /* to tell a slow stage, or load that moves, from chance */
#define LOOKS_NS       (NS_PER_S / 2) /* from the first of them to the last */
#define HOLDS_STEPS    12             /* whole ones, for which these are found again */

uint64_t episode_key(const struct cluster *c, enum fleet_problem problem, uint64_t who)
{
	return hash_number(hash_name(c->name, strlen(c->name)) ^ hash_number(who * 64 + problem));
}

bool episode_explain(struct fleet *f, struct episode *e)
{
	const struct push_report *r =
		e->cluster ? report_find(e->cluster, e->e.node, e->e.pid, e->e.rank, f->now_ns)
			   : NULL;

	if (!r || !r->cause[0] || (e->e.place[0] && !r->place[0]))
		return false; /* what names a line is not replaced by what names none */
	memcpy(e->e.cause, r->cause, sizeof(e->e.cause));
	memcpy(e->e.fix, r->fix, sizeof(e->e.fix));
	memcpy(e->e.place, r->place, sizeof(e->e.place));
	return true;
}

static void set_who(struct episode *e, const struct blame_worker *w)
{
	snprintf(e->e.node, sizeof(e->e.node), "%s", w->node);
	e->e.rank = w->rank;
	e->e.pid = w->pid;
}

/* The same cause is told once, by what says more. */
static void end_of_node(struct fleet *f, const struct cluster *c, const struct episode *e)
{
	struct episode *slow = e->told ? NULL : episode_of_node(f, FLEET_NODE, c->name, e->e.node);

	if (slow)
		episode_end(f, slow);
}

static uint64_t straggler_key(const struct cluster *c, const struct blame_worker *w)
{
	return episode_key(
		c, FLEET_STRAGGLER, hash_name(w->node, strlen(w->node)) ^ hash_number(w->pid));
}

/* Stragglers that were not found for a while: one that comes rarely, but comes again, has more time. */
static void episode_end_late(struct fleet *f, const struct cluster *c)
{
	int64_t gone = calls_lasting(c->calls, GONE_NS, GONE_STEPS);
	int64_t forgotten = calls_lasting(c->calls, FORGET_NS, FORGET_STEPS);

	for (size_t i = f->live_count; i-- > 0;) {
		struct episode *e = f->live[i];
		int64_t unseen_ns = f->now_ns - e->seen_ns, after;

		if (e->e.problem != FLEET_STRAGGLER || e->cluster != c)
			continue;
		if (unseen_ns >= gone)
			e->looks = 0;
		after = e->told ? MAX(gone, (int64_t)(SIGHTINGS_GONE * e->sightings_apart_ns))
				: forgotten;
		if (unseen_ns >= after)
			episode_end(f, e);
	}
}

/* It was late once more: what comes more seldom than the window is long is found by that. */
static void note_sighting(struct episode *e, const struct blame *b)
{
	const struct blame_suspect *s = &b->sudden;

	if (e->sightings && s->since_ns - e->sighted_ns < (int64_t)b->step_ns)
		return;
	if (e->sightings)
		e->sightings_apart_ns =
			MAX(e->sightings_apart_ns, (uint64_t)(s->since_ns - e->sighted_ns));
	else
		e->first_sighted_ns = s->since_ns;
	e->sighted_ns = s->since_ns;
	e->e.late_ns = MAX(e->e.late_ns, s->until_ns);
	e->sightings_lag_ns += s->lag_ns;
	e->sightings++;
}

/* What it was late by far, of the time since it first was. */
static bool sightings_are_material(
	const struct fleet *f, const struct blame *b, const struct episode *e)
{
	double lag = (double)e->sightings_lag_ns;
	double share = lag / (double)MAX(f->now_ns - e->first_sighted_ns, INT64_C(1));

	return share >= MATERIAL || (e->sightings >= SIGHTINGS_MANY && share >= MATERIAL_MANY &&
					    lag >= LAG_MANY * (double)b->step_ns * e->sightings);
}

/* Rank 0 evaluates, logs and saves while the others wait: what it is away for whole steps for is how the job is written,
 * unless its agent knows of something else. */
static bool is_its_own(
	const struct blame *b, const struct blame_suspect *s, const struct episode *e)
{
	return e->e.rank == 0 && !e->told && s->lag_ns >= b->step_ns && !e->e.cause[0];
}

/* It was late by far so often, and by so much, that it is no chance. */
static bool is_repeated(const struct fleet *f, const struct suspect_job *j, const struct blame *b,
	const struct episode *e)
{
	return e->sightings >= SIGHTINGS && sightings_are_material(f, b, e) &&
	       pace_is_known(j, f->now_ns) && pace_is_steady(j, f->now_ns);
}

/* Once it comes again and again it is shown what rank 0 is away for, as a question; nobody is woken for what may be planned. */
static void show_its_own(
	struct fleet *f, const struct suspect_job *j, const struct blame *b, struct episode *e)
{
	e->e.provisional = is_repeated(f, j, b, e);
	if (!e->e.provisional)
		return;
	e->e.until_ns = 0;
	e->e.since_ns = MIN(e->first_sighted_ns, f->now_ns);
	e->e.confidence *= SURE_OWN;
	snprintf(e->e.cause, sizeof(e->e.cause),
		"rank 0 is away for whole steps: evaluation, logging or saving on rank 0?");
	fleet_sentence(&e->e);
	e->e.cause[0] = '\0'; /* a guess does not stand for what is known of it */
}

/* It is shown; what is known of it already says more. */
static void take_sudden(struct fleet *f, struct cluster *c, const struct suspect_job *j,
	const struct blame *b, const struct blame_worker *w, const struct price *p)
{
	const struct blame_suspect *s = &b->sudden;
	struct episode *e = episode_get(f, c, FLEET_STRAGGLER, straggler_key(c, w));
	uint32_t steps = 0;

	if (!e)
		return;
	note_sighting(e, b);
	if (e->told)
		return;
	set_who(e, w);
	episode_explain(f, e);
	if (!e->e.provisional)
		e->e.since_ns = MIN(s->since_ns, f->now_ns);
	e->e.provisional = true;
	e->e.until_ns = 0;
	e->e.stage = s->stage;
	e->e.share = s->share;
	e->e.confidence = s->confidence;
	e->e.lag_ns = s->lag_ns;
	e->e.late = e->sightings;
	if (b->steps)
		steps = (uint32_t)((uint64_t)MAX(s->since_ns - e->e.since_ns, INT64_C(0)) /
				   MAX(b->step_ns, b->span_ns / b->steps + 1));
	e->e.seen = MAX(e->sightings, steps);
	e->e.comm = s->comm;
	e->e.seq = s->seq;
	e->e.op = s->op;
	episode_waits(e, 0, p);
	if (is_its_own(b, s, e))
		show_its_own(f, j, b, e);
	else if (is_repeated(f, j, b, e))
		episode_tell(f, e);
	else
		fleet_sentence(&e->e);
}

/* Who waits, and how long each: victims are a part of the story of who is late. */
static void set_waiting(struct episode *e, const struct blame_suspect *s, size_t workers)
{
	uint32_t late = MAX(e->e.ranks, 1U);

	if (workers <= late || !s->late)
		return;
	e->e.waiting = (uint32_t)workers - late;
	e->e.waited_ns = s->waited_ns / s->late / e->e.waiting;
}

/* How much of the time that is looked at has passed since @s is late: a whole step at least. */
static int64_t since_began(
	const struct blame *b, const struct blame_suspect *s, const struct episode *e)
{
	int64_t since = e && e->told ? MIN(e->e.since_ns, s->since_ns) : s->since_ns;
	int64_t step_ns = (int64_t)b->step_ns + 1, late_ns = MAX(b->end_ns - since, step_ns);

	return b->span_ns ? MIN(late_ns, (int64_t)b->span_ns) : late_ns;
}

/* Whether it is a stage of several ranks: one of its own is told as that rank, with its cause. */
static bool is_stage(const struct blame *b, const struct blame_suspect *s, size_t workers)
{
	size_t ranks = 0;

	for (size_t i = 0; b->kind == BLAME_STAGE && i < workers; i++)
		ranks += b->stage_of[i] == s->stage;
	return ranks > 1;
}

static uint64_t key_of_suspect(const struct cluster *c, const struct suspect_job *j,
	const struct blame_suspect *s, const struct blame_worker *w, bool is_stage)
{
	return is_stage ? episode_key(c, FLEET_STAGE, hash_number(j->comm) + (uint64_t)s->stage)
			: straggler_key(c, w);
}

static const struct episode *known(const struct fleet *f, const struct cluster *c,
	const struct suspect_job *j, const struct blame_suspect *s, const struct blame_worker *w,
	bool is_stage)
{
	return episode_find(f, c->name, is_stage ? FLEET_STAGE : FLEET_STRAGGLER,
		key_of_suspect(c, j, s, w, is_stage));
}

/* Not @sure: it is shown at most. @count ranks has the job. */
static void take_suspect(struct fleet *f, struct cluster *c, const struct suspect_job *j,
	const struct blame *b, const struct blame_suspect *s, const struct blame_worker *w,
	size_t count, const struct price *p, bool sure)
{
	bool stage = is_stage(b, s, count);
	enum fleet_problem problem = stage ? FLEET_STAGE : FLEET_STRAGGLER;
	struct episode *e = episode_get(f, c, problem, key_of_suspect(c, j, s, w, stage));
	int64_t late_ns;
	bool tells;

	if (!e)
		return;
	/* Of the time since it began: what was before makes it neither cheaper nor less. */
	late_ns = since_began(b, s, e);
	if (!stage) {
		set_who(e, w);
		end_of_node(f, c, e);
	}
	if (!e->told && s->since_ns > 0)
		e->e.since_ns = MIN(s->since_ns, f->now_ns);
	e->e.late_ns = MAX(e->e.late_ns, s->until_ns);
	e->e.stage = s->stage;
	e->e.share = MIN((double)s->lost_ns / (double)late_ns, 1.0);
	e->e.confidence = s->confidence;
	e->e.lag_ns = s->lag_ns;
	e->e.late = s->on_time ? 0 : s->late;
	e->e.seen = (uint32_t)MIN(
		(uint64_t)s->seen, b->step_ns ? (uint64_t)late_ns / b->step_ns : s->seen);
	e->e.seen = MAX(e->e.seen, s->late);
	e->e.period = s->period;
	e->e.comm = s->comm;
	e->e.seq = s->seq;
	e->e.op = s->op;
	set_waiting(e, s, count);
	if (sure && !e->looks++)
		e->looked_ns = f->now_ns;
	tells = e->told || (sure && pace_is_steady(j, f->now_ns) && e->looks >= LOOKS_LEAST &&
				   f->now_ns - e->looked_ns >= (int64_t)LOOKS_NS);
	/* What is not told yet costs nothing yet; then it is charged for the time that its rate is the mean of. */
	episode_waits(e, tells && late_ns > 0 ? (double)s->waited_ns / (double)late_ns : 0, p);
	if (tells) {
		e->paid_ns = MAX(e->paid_ns, b->end_ns - late_ns);
		e->rated_ns = MAX(e->rated_ns, s->until_ns);
	}
	fleet_received(&e->e, s->received);
	episode_explain(f, e);
	c->is_settled &= e->told;
	if (is_its_own(b, s, e)) {
		show_its_own(f, j, b, e);
	} else if (tells) {
		episode_tell(f, e);
	} else if (!stage) {
		e->e.provisional = true;
		e->e.until_ns = 0;
		fleet_sentence(&e->e);
	}
}

/* What is remembered of @job, which is known by its largest communicator. NULL: no memory. */
static struct suspect_job *job_get(struct fleet *f, struct cluster *c, uint64_t comm)
{
	struct suspect_job *j = NULL, *oldest = &c->jobs[0];

	for (size_t i = 0; i < ARRAY_SIZE(c->jobs); i++) {
		if (c->jobs[i].comm == comm)
			j = &c->jobs[i];
		if (c->jobs[i].seen_ns < oldest->seen_ns)
			oldest = &c->jobs[i];
	}
	if (!j) {
		j = oldest;
		*j = (struct suspect_job){.comm = comm, .born_ns = f->now_ns};
	}
	j->seen_ns = f->now_ns;
	return j;
}

/* Whether enough was seen for what @b says, and it was said for a while. */
static bool holds(struct suspect_job *j, const struct blame *b, int64_t now_ns)
{
	if (b->kind != j->kind) {
		j->kind = b->kind;
		j->kind_ns = now_ns;
	}
	if (b->kind == BLAME_WORKERS)
		return b->steps >= STEPS_LEAST;
	if (b->kind == BLAME_STAGE &&
		!b->suspects[0].by_design) /* known by whole steps before and since */
		return b->steps >= STEPS_SHAPE;
	return b->steps >= STEPS_SHAPE && now_ns - j->kind_ns >= HOLDS_STEPS * (int64_t)b->step_ns;
}

/* What is late at regular distances, by what anybody would see, is not chance, however little it costs. */
static bool is_regular(const struct blame *b, const struct blame_suspect *s)
{
	return s->share >= SHARE_REGULAR && s->period > 1 && s->late >= LATE_REGULAR &&
	       (double)s->lag_ns >= LAG_REGULAR * (double)b->step_ns;
}

/* Whether what @s costs is worth somebody's time; @e NULL: it was not told yet. A stage that became slow longer ago than
 * calls are kept looks like one that always was. */
static bool is_material(
	const struct blame *b, const struct blame_suspect *s, const struct episode *e)
{
	bool is_told = e && e->told;
	double least = b->kind == BLAME_STAGE       ? MATERIAL_STAGE
		       : s->lag_ns < BLAME_SMALL_NS ? MATERIAL_SMALL
						    : MATERIAL;
	double share = (double)s->lost_ns / (double)since_began(b, s, e);

	if (s->by_design && !is_told)
		return false;
	return share >= (is_told ? MATERIAL_STILL * least : least) || is_regular(b, s);
}

/* Late in nearly all of the steps there are, by much: it is shown, though these are too few to wake anybody. */
static bool is_shown_early(const struct blame *b, const struct blame_suspect *s)
{
	return b->kind == BLAME_WORKERS && b->suspect_count == 1 && b->steps >= STEPS_SHOWN &&
	       s->late >= LATE_LEAST && s->late + 1 >= s->seen && s->share >= SHARE_SHOWN;
}

/* Whether blame is to be asked again. */
static bool is_time(const struct fleet *f, const struct cluster *c)
{
	uint64_t every = EVERY_NS * (1 + calls_stats(c->calls).kept / CALLS_AT_ONCE);

	if (!calls_is_late(c->calls) && !calls_is_slow(c->calls) && !calls_is_slower(c->calls))
		return false;
	every = MIN(c->is_settled ? SETTLED * every : every, EVERY_MAX_NS);
	if (!calls_is_late(c->calls))
		every = MAX(every, SLOW_EVERY_NS);
	every = (uint64_t)calls_lasting(c->calls, 2 * (int64_t)every, 1) / 2; /* two in a step */
	if (f->now_ns - calls_sudden_ns(c->calls) < (int64_t)SUDDEN_NS &&
		calls_settled(c->calls) != c->settled)
		every = EVERY_NS * (1 + calls_stats(c->calls).kept / CALLS_AT_ONCE) / SUDDEN_EVERY;
	return f->now_ns - c->blame_ns >= (int64_t)every;
}

/* All ranks of @node in this job are suspects that count, at least two, and there are other nodes: the cause
 * is the node's. *ret is all of them together. */
static bool is_whole_node(const struct blame *b, const struct blame_worker *workers, size_t count,
	const char *node, struct blame_suspect *ret)
{
	size_t ranks = 0, suspects = 0;

	for (size_t i = 0; i < count; i++)
		ranks += strcmp(workers[i].node, node) == 0;
	*ret = (struct blame_suspect){0};
	for (size_t i = 0; i < b->suspect_count; i++) {
		const struct blame_suspect *s = &b->suspects[i];
		double share = ret->share + s->share;
		uint64_t waited = ret->waited_ns + s->waited_ns, lost = ret->lost_ns + s->lost_ns;

		if (strcmp(workers[s->worker].node, node) != 0)
			continue;
		if (s->confidence < SURE || s->late < LATE_LEAST)
			return false;
		if (!suspects++ || s->lag_ns > ret->lag_ns)
			*ret = *s;
		ret->share = share;
		ret->waited_ns = waited;
		ret->lost_ns = lost;
	}
	return suspects >= 2 && suspects == ranks && ranks < count && is_material(b, ret, NULL);
}

static bool take_nodes(struct fleet *f, struct cluster *c, const struct suspect_job *j,
	const struct blame *b, const struct blame_suspect *who, const struct blame_worker *workers,
	size_t count, const struct price *p)
{
	struct blame_worker node = workers[who->worker];
	struct blame_suspect all;
	struct episode *e;
	int64_t paid_ns = 0;

	if (b->kind != BLAME_WORKERS || !node.node[0] ||
		!is_whole_node(b, workers, count, node.node, &all))
		return false;
	node.rank = -1;
	node.pid = 0;
	/* The ranks of a node that is told of as a whole are not told of one by one. */
	for (size_t i = f->live_count; i-- > 0;) {
		e = f->live[i];
		if (e->cluster != c || e->e.problem != FLEET_STRAGGLER || e->e.ranks != 0 ||
			strcmp(e->e.node, node.node) != 0)
			continue;
		paid_ns = MAX(paid_ns, e->paid_ns);
		episode_end(f, e);
	}
	e = episode_get(f, c, FLEET_STRAGGLER, straggler_key(c, &node));
	if (!e || (e->e.ranks && e->seen_ns == f->now_ns && e->looked_at_ns == f->now_ns))
		return true; /* told with the first of its ranks */
	e->looked_at_ns = f->now_ns;
	e->paid_ns = MAX(e->paid_ns, paid_ns);
	e->e.ranks = 0;
	for (size_t i = 0; i < count; i++)
		e->e.ranks += strcmp(workers[i].node, node.node) == 0;
	take_suspect(f, c, j, b, &all, &node, count, p, true);
	return true;
}

static void take_blame(struct fleet *f, struct cluster *c, struct suspect_job *j,
	const struct blame *b, const struct blame_worker *workers, size_t count)
{
	double uneven = MAX(b->uneven_share, b->uneven_begun);
	struct price p = price_of(f, c->name);
	bool sure = holds(j, b, f->now_ns);

	c->is_settled &= b->steps >= STEPS_EARLY && (sure || b->kind == BLAME_NONE);
	if (sure && uneven >= MATERIAL_STAGE && b->confidence >= SURE &&
		pace_is_steady(j, f->now_ns) && !b->has_sudden)
		uneven_take(f, c, j->comm, uneven, b->confidence);
	if (!sure && b->suspect_count && b->suspects[0].worker < count &&
		is_shown_early(b, &b->suspects[0]))
		take_suspect(f, c, j, b, &b->suspects[0], &workers[b->suspects[0].worker], count,
			&p, false);
	for (size_t i = 0; sure && i < b->suspect_count; i++) {
		const struct blame_suspect *who = &b->suspects[i];

		if (who->worker >= count || take_nodes(f, c, j, b, who, workers, count, &p))
			continue;
		if (who->confidence < SURE || who->late < LATE_LEAST ||
			!is_material(b, who,
				known(f, c, j, who, &workers[who->worker],
					is_stage(b, who, count))))
			continue;
		take_suspect(f, c, j, b, who, &workers[who->worker], count, &p,
			who->lost_ns >= MATERIAL_NS);
	}
	link_look(f, c, j, b, workers, count);
	if (b->has_sudden && b->sudden.confidence >= SURE_SUDDEN && b->sudden.worker < count &&
		b->sudden.lag_ns >= SUDDEN_LEAST)
		take_sudden(f, c, j, b, &workers[b->sudden.worker], &p);
}

/* A job that has ended makes nobody wait; one that hangs is stall.c's. Not @takes: only its steps matter. */
static int look_at(
	struct fleet *f, struct cluster *c, const struct calls_jobs *jobs, uint32_t job, bool takes)
{
	const struct job_view *v = &jobs->items[job];
	_cleanup_free_ struct blame_worker *workers = NULL;
	struct suspect_job *j;
	struct blame b = {0};
	size_t count = 0;
	int r;

	if (v->ranks < 2 || f->now_ns - v->last_ns > calls_lasting(c->calls, GONE_NS, GONE_STEPS))
		return 0;
	r = calls_blame_job(c->calls, jobs, job, !takes, &workers, &count, &b);
	if (r < 0)
		return r;
	j = job_get(f, c, v->comm);
	pace_look(j, &b, f->now_ns);
	if (takes)
		take_blame(f, c, j, &b, workers, count);
	else
		pace_note(j, &b, f->now_ns);
	blame_done(&b);
	return 0;
}

static int look(struct fleet *f, struct cluster *c, bool takes)
{
	struct calls_jobs jobs;
	int r = calls_jobs(c->calls, &jobs);

	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < jobs.count; i++)
		r = look_at(f, c, &jobs, i, takes);
	calls_jobs_done(&jobs);
	if (!takes)
		pace_set(f, c);
	return r;
}

void suspect_look(struct fleet *f, struct cluster *c)
{
	uint64_t gone = (uint64_t)calls_lasting(c->calls, GONE_NS, GONE_STEPS);
	int r = 0;

	episode_end_late(f, c);
	episode_end_unseen(f, c, FLEET_STAGE, gone);
	episode_end_unseen(f, c, FLEET_UNEVEN, gone);
	link_end(f, c);
	if (f->now_ns >= c->pace_due_ns)
		r = look(f, c, false);
	if (r == 0 && is_time(f, c)) {
		c->blame_ns = f->now_ns;
		c->settled = calls_settled(c->calls);
		c->is_settled = true;
		r = look(f, c, true);
	}
	if (r < 0)
		f->stats.blame_failed++;
}
