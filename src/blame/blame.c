/* SPDX-License-Identifier: Apache-2.0 */
/* blame.c - see blame.h; blame_job.h says which file does what. */
#include "blame/blame.h"

#include <errno.h>
#include <stdlib.h>

#include "blame/blame_job.h"

#define STEPS_MIN 3

void blame_done(struct blame *b)
{
	free(b->cleared);
	free(b->stage_of);
	free(b->replica_of);
	*b = (struct blame){0};
}

static int look(struct job *j, struct blame *b)
{
	int r = blame_load(j);

	r = r < 0 ? r : blame_match(j);
	r = r < 0 ? r : blame_clocks(j);
	if (r == 0)
		blame_waits(j);
	r = r < 0 ? r : blame_steps(j);
	if (r == 0 && j->step_count >= STEPS_MIN && blame_suppose_waits(j))
		r = blame_steps(j); /* they end where the waits do */
	r = r < 0 ? r : blame_roles(j);
	if (r < 0 || j->step_count < STEPS_MIN)
		return r;
	r = blame_group_cuts(j);
	r = r < 0 ? r : blame_path(j);
	r = r < 0 ? r : blame_weigh(j);
	r = r < 0 ? r : blame_link(j, b);
	return r < 0 ? r : blame_name(j, b);
}

int blame_find(const struct blame_worker *workers, size_t worker_count,
	const struct blame_call *calls, size_t call_count, struct blame *ret)
{
	_cleanup_(blame_job_done) struct job j = {.workers = workers,
		.calls = calls,
		.worker_count = worker_count,
		.call_count = call_count};
	_cleanup_(blame_done) struct blame b = {.kind = BLAME_NONE, .stages = 1};
	int r = look(&j, &b);

	if (r < 0)
		return r;
	b.steps = (uint32_t)j.step_count;
	b.step_ns = j.step_ns;
	b.is_steady = j.is_steady;
	b.calls = call_count;
	b.span_ns = (uint64_t)(j.end_ns - j.begin_ns);
	b.end_ns = j.end_ns;
	b.stages = j.stage_count;
	b.stage_of = TAKE(j.stage);
	b.replica_of = TAKE(j.replica);
	b.spread_step = j.load.spread_step;
	b.spread_lasting = j.load.spread_lasting;
	b.unmatched = j.unmatched;
	b.gap_ns = j.gap_ns;
	*ret = b;
	b = (struct blame){0};
	return 0;
}
