/* SPDX-License-Identifier: Apache-2.0 */
/* diff_promise.c - whether a fix gave what was promised: incidents of A say what a unit of work would take without them,
 * B's steps say what it takes. Both are means of all steps: an incident of every tenth step promises a tenth. */
#include <stdio.h>

#include "answer/diff/diff_private.h"
#include "base/macros.h"

#define NEAR_SHARE 0.10 /* of what A's step takes: as near as promises are meant to be */
#define NONE_SHARE 0.10 /* of the promised gain: less is none */

static const struct step_account *account_of(const struct diff_side *a, uint32_t pid)
{
	for (size_t i = 0; i < a->steps.count; i++)
		if (a->accounts[i].account->pid == pid)
			return a->accounts[i].account;
	return NULL;
}

static const struct diff_job *job_of(const struct diff_answer *d, uint32_t pid)
{
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i].pid[0] == pid)
			return &d->jobs[i];
	return NULL;
}

static enum diff_outcome judge(const struct diff_promise *p, const struct diff_job *j)
{
	double near = NEAR_SHARE * p->before_ns;

	if (j->step.verdict != COMPARE_LESS ||
		p->before_ns - p->given_ns < NONE_SHARE * (p->before_ns - p->promised_ns))
		return DIFF_NOTHING;
	if (p->given_ns < p->least_ns - near)
		return DIFF_MORE;
	return p->given_ns <= p->most_ns + near ? DIFF_KEPT : DIFF_PART;
}

/* False: nothing was promised, or there is nothing to compare it with. */
static bool compare(const struct incident *i, const struct diff_side *a,
	const struct diff_answer *d, struct diff_promise *ret)
{
	const struct step_account *account = account_of(a, i->pid);
	const struct diff_job *j = job_of(d, i->pid);
	double steps = account ? (double)account->ordinary_steps + account->slow_steps : 0;
	double part = steps > 0 ? MIN((double)i->count / steps, 1.0) : 0;
	double unit = (double)i->unit_ns;

	if (!j || !(part > 0) || i->severity < SEVERITY_MEDIUM || i->fixed_ns >= i->unit_ns)
		return false;
	*ret = (struct diff_promise){.pid = i->pid,
		.before_ns = j->step.ns[0],
		.promised_ns = j->step.ns[0] - part * (unit - (double)i->fixed_ns),
		.least_ns = j->step.ns[0] - part * (unit - (double)i->fixed_least_ns),
		.most_ns = j->step.ns[0] - part * (unit - (double)i->fixed_most_ns),
		.given_ns = j->step.ns[1]};
	snprintf(ret->what, sizeof(ret->what), "%s", i->summary);
	ret->outcome = judge(ret, j);
	return true;
}

void diff_compare_promises(const struct diff_side sides[2], struct diff_answer *ret)
{
	for (size_t i = 0; i < sides[0].incident_count && ret->promise_count < DIFF_PROMISES; i++)
		ret->promise_count += compare(
			&sides[0].incidents[i], &sides[0], ret, &ret->promises[ret->promise_count]);
}
