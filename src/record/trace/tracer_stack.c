/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_stack.c - the stacks of calls in a run: from the kernel's walks to the store and the
 * event's line. Runs on the tracer's thread. */
#include "record/trace/tracer_private.h"
#include "record/probe/stack/stack.h"

#include <errno.h>
#include <string.h>

#define FINISH_MS      2000  /* at the end, names are waited for this long */
#define LIMITED_STACKS 65536 /* whose rows are counted for --stack-samples */

static void take_stack(void *arg, const struct stack *s)
{
	struct tracer *t = arg;

	if (tracer_take_symbol(t, s))
		return;
	if (t->settings.stack_sink)
		t->settings.stack_sink(t->settings.event_arg, s);
	if (t->explainer)
		explainer_stack(t->explainer, s);
	if (t->store && !store_writer_push_stack(t->store, s))
		t->stacks_unstored++;
}

int tracer_open_stacks(struct tracer *t)
{
	bool in_kernel = t->settings.py_walker != TRACER_PY_USERSPACE;

	if (t->settings.no_stacks)
		return 0;
	t->stack_rows = IDMAP_INIT(LIMITED_STACKS);
	return stacks_new(t->probe, in_kernel, take_stack, t, &t->stacks);
}

void tracer_close_stacks(struct tracer *t)
{
	if (t->stacks)
		stacks_free(t->stacks);
	t->stacks = NULL;
	idmap_done(&t->stack_rows);
}

void tracer_poll_stacks(struct tracer *t)
{
	if (t->stacks)
		stacks_poll(t->stacks);
}

void tracer_finish_stacks(struct tracer *t)
{
	if (!t->stacks)
		return;
	stacks_finish(t->stacks, FINISH_MS);
	stacks_report(t->stacks, &t->stack_report);
}

uint64_t tracer_stacks_ns(const struct tracer *t)
{
	struct stack_tally tally = {0};

	if (t->stacks)
		probe_stack_tally(t->probe, &tally);
	return tally.taken_ns;
}

void tracer_view_stacks(const struct tracer *t, struct tracer_view *v)
{
	v->has_stacks = t->stacks != NULL;
	if (t->stopped)
		v->stacks = t->stack_report;
	else if (t->stacks)
		stacks_report(t->stacks, &v->stacks);
	v->stacks.dropped += t->stacks_unstored;
}

/* Rows of a stack beyond the limit are ordinary repetitions: they are in the aggregates. */
static bool is_one_too_many(struct tracer *t, const struct event *e)
{
	uintptr_t rows;

	if (!t->settings.stack_samples || e->flags & WIRE_SLOW || e->ret ||
		(e->source == SOURCE_HOST && e->op == HOST_CPU_SAMPLE))
		return false;
	rows = (uintptr_t)idmap_get(&t->stack_rows, e->stack_hash);
	if (rows >= t->settings.stack_samples)
		return true;
	(void)idmap_put(&t->stack_rows, e->stack_hash, (void *)(rows + 1)); /* full: no limit */
	return false;
}

bool tracer_take_stack(struct tracer *t, struct event *e, const struct stack **ret)
{
	*ret = NULL;
	if (!t->stacks || !e->stack_hash)
		return true;
	if (t->settings.py_walker == TRACER_PY_USERSPACE)
		e->stack_hash = stacks_userspace(t->stacks, e->pid, e->tid, e->stack_hash);
	*ret = stacks_find(t->stacks, e->stack_hash);
	return !is_one_too_many(t, e);
}
