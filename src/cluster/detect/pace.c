/* SPDX-License-Identifier: Apache-2.0 */
/* pace.c - how long a step of a job is: what is a hang in one that takes a tenth of a second for a step is an
 * ordinary wait in one that takes half a minute, and a minute that shows hundreds of the one's steps shows
 * two of the other's. So windows and waits follow the steps (calls_lasting()).
 *
 * While fewer than STEPS_KNOWN steps were seen, a step is at least as long as the time of the job has room for
 * no more; a job of many calls that has none has no steps that could be found. */
#include "cluster/detect/fleet_private.h"

#include "base/clock.h"

#define STEPS_KNOWN  3
#define STEPS_ENOUGH 20
#define CALLS_ENOUGH 100000
#define YOUNG_NS                                                                                   \
	(5 * NS_PER_S) /* until it is looked for again; of a cluster with many calls longer */
#define KNOWN_NS    (60 * NS_PER_S) /* likewise, once enough were seen */
#define KNOWN_STEPS 10
#define ALIKE       2 /* part of it by which it may differ */
#define ENDED_NS    (60 * NS_PER_S)
#define ENDED_STEPS 10

void pace_note(struct suspect_job *j, const struct blame *b, int64_t now_ns)
{
	uint64_t was = j->step_ns;

	if (b->steps >= STEPS_KNOWN)
		j->step_ns = b->step_ns;
	else if (b->calls < CALLS_ENOUGH)
		j->step_ns = MAX(j->step_ns, b->span_ns / STEPS_KNOWN);
	j->steps = b->steps;
	if (j->step_ns > was + was / ALIKE || was > j->step_ns + j->step_ns / ALIKE)
		j->step_since_ns = now_ns;
}

bool pace_is_known(const struct suspect_job *j, int64_t now_ns)
{
	return now_ns - j->step_since_ns >= KNOWN_STEPS * (int64_t)j->step_ns;
}

void pace_set(struct fleet *f, struct cluster *c)
{
	uint64_t step_ns = 0, every = KNOWN_NS;

	for (size_t i = 0; i < ARRAY_SIZE(c->jobs); i++) {
		const struct suspect_job *j = &c->jobs[i];

		if (!j->comm ||
			f->now_ns - j->seen_ns > (int64_t)MAX(ENDED_NS, ENDED_STEPS * j->step_ns))
			continue;
		step_ns = MAX(step_ns, j->step_ns);
		if (j->steps < STEPS_ENOUGH)
			every = YOUNG_NS;
	}
	every *= 1 + calls_stats(c->calls).kept / CALLS_ENOUGH;
	c->pace_due_ns = f->now_ns + (int64_t)MAX(every, step_ns);
	calls_set_step(c->calls, step_ns);
}
