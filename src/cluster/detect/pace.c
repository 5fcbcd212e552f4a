/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - how long a step of a job is: what is a hang in one that takes a tenth of a second for a step is an
 * ordinary wait in one that takes half a minute, and a minute that shows hundreds of the one's steps shows
 * two of the other's. So windows and waits follow the steps (calls_lasting()).
 *
 * While fewer than STEPS_KNOWN steps were seen, a step is at least as long as the time of the job has room for
 * no more; a job of many calls that has none has no steps that could be found.
 *
 * In the first steps of a job, layers and micro-batches look like steps, and replicas that have not met yet like jobs:
 * what is found there is shown at most. It is told once all calls come again with each step (blame.h, is_steady), or
 * after SURELY_NS: of a job that never becomes so regular what is found is as good as it gets. */
#include "cluster/detect/fleet_private.h"

#include "base/clock.h"

#define STEPS_KNOWN  3
#define STEPS_ENOUGH 20
#define CALLS_ENOUGH 100000
#define YOUNG_NS                                                                                   \
	(5 * NS_PER_S) /* until it is looked for again; of a cluster with many calls longer */
#define KNOWN_NS     (60 * NS_PER_S) /* likewise, once enough were seen */
#define KNOWN_STEPS  10
#define ALIKE        2              /* part of it by which it may differ */
#define STEADY_NS    (5 * NS_PER_S) /* for so long, and so many steps: it stays so */
#define STEADY_STEPS 20
#define SURELY_NS    (300 * NS_PER_S) /* four of the longest steps are over, and some */
#define ENDED_NS     (60 * NS_PER_S)
#define ENDED_STEPS  10

void pace_note(struct suspect_job *j, const struct blame *b, int64_t now_ns)
{
	uint64_t was = j->step_ns;

	if (b->steps >= STEPS_KNOWN && pace_is_steady(j, now_ns))
		j->step_ns = b->step_ns;
	else if (b->calls < CALLS_ENOUGH)
		j->step_ns = MAX(j->step_ns, b->span_ns / STEPS_KNOWN);
	j->steps = b->steps;
	j->span_ns = pace_is_steady(j, now_ns) || b->calls >= CALLS_ENOUGH ? 0 : b->span_ns;
	if (j->step_ns > was + was / ALIKE || was > j->step_ns + j->step_ns / ALIKE)
		j->step_since_ns = now_ns;
}

void pace_look(struct suspect_job *j, const struct blame *b, int64_t now_ns)
{
	if (!b->is_steady) {
		j->steady_ns = 0;
		return;
	}
	j->steady_ns = j->steady_ns ?: now_ns;
	j->is_steady |= b->steps >= STEADY_STEPS && now_ns - j->steady_ns >= (int64_t)STEADY_NS;
}

bool pace_is_steady(const struct suspect_job *j, int64_t now_ns)
{
	return j->is_steady || j->steady_ns || now_ns - j->born_ns >= (int64_t)SURELY_NS;
}

bool pace_is_known(const struct suspect_job *j, int64_t now_ns)
{
	return now_ns - j->step_since_ns >= KNOWN_STEPS * (int64_t)j->step_ns;
}

void pace_set(struct fleet *f, struct cluster *c)
{
	uint64_t step_ns = 0, span_ns = 0, every;
	bool any = false, all_known = true;

	for (size_t i = 0; i < ARRAY_SIZE(c->jobs); i++) {
		const struct suspect_job *j = &c->jobs[i];

		if (!j->comm ||
			f->now_ns - j->seen_ns > (int64_t)MAX(ENDED_NS, ENDED_STEPS * j->step_ns))
			continue;
		step_ns = MAX(step_ns, j->step_ns);
		span_ns = MAX(span_ns, j->span_ns);
		any = true;
		all_known &= j->steps >= STEPS_ENOUGH;
	}
	every = any && all_known ? KNOWN_NS : YOUNG_NS; /* one may begin at any moment */
	every *= 1 + calls_stats(c->calls).kept / CALLS_ENOUGH;
	c->pace_due_ns = f->now_ns + (int64_t)MAX(every, step_ns);
	calls_set_step(c->calls, step_ns);
	calls_set_patience(c->calls, span_ns + span_ns / 2); /* it may all be one step */
}
