/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_processes.c - the lives of traced processes: what the kernel half tells goes to the table
 * of processes, which tells the stages in the order given here. Runs on the tracer's thread. */
#include "record/trace/tracer_private.h"

#include <errno.h>
#include <signal.h>

/* ---- the stages ---- */

static void admit(void *arg, struct process_entry *p, uint32_t parent, wall_time at)
{
	struct tracer *t = arg;

	t->admit_due = true;
	if (launch_watch_add(t->launches, p->pid) < 0)
		log_warning("launches of process %u are counted only, not estimated: no memory",
			p->pid);
}

static void end_aggregates(void *arg, struct process_entry *p)
{
	struct tracer *t = arg;

	if (t->metric_state)
		metric_state_process_gone(t->metric_state, p->pid);
	tracer_kernels_gone(t, p->pid);
	launch_watch_gone(t->launches, p->pid);
	if (totals_process_gone(t->totals, p->pid) < 0)
		log_warning("cannot read the aggregates of process %u from the kernel", p->pid);
}

/* Of processes that are not traced, and have used a disk, nobody tells the end. Their entries would stay,
 * here and in the kernel's table, until that has no room for new ones. */
void tracer_sweep_totals(struct tracer *t)
{
	struct discover_process p;
	const struct total *v;
	size_t cursor = 0;

	while ((v = totals_next(t->totals, &cursor)))
		if (v->key.pid && !v->gone && !process_table_get(t->processes, v->key.pid) &&
			discover_process_stat("", v->key.pid, &p) == -ESRCH)
			totals_process_gone(t->totals, v->key.pid);
}

static void enter_stacks(void *arg, struct process_entry *p, uint32_t parent, wall_time at)
{
	struct tracer *t = arg;

	if (!t->stacks)
		return;
	if (parent)
		stacks_fork(t->stacks, p->pid);
	else
		stacks_process(t->stacks, p->pid);
}

static void exec_stacks(void *arg, struct process_entry *p, wall_time at)
{
	enter_stacks(arg, p, 0, at);
}

static void end_stacks(void *arg, struct process_entry *p)
{
	struct tracer *t = arg;

	if (t->stacks)
		stacks_gone(t->stacks, p->pid);
}

static const struct process_stage counting = {.on_enter = admit, .on_exit = end_aggregates};
static const struct process_stage walking = {
	.on_enter = enter_stacks, .on_exec = exec_stacks, .on_exit = end_stacks, .is_slow = true};

int tracer_open_processes(struct tracer *t)
{
	int r = process_table_new("", &t->processes);

	if (r < 0)
		return r;
	r = roster_new(
		"", t->processes, t->settings.coverage_sink, t->settings.event_arg, &t->roster);
	if (r >= 0)
		r = group_folders_new("", &t->group_folders);
	if (r < 0)
		return r;
	process_table_add(t->processes, &roster_stage, t->roster); /* first: who it is */
	process_table_add(t->processes, &counting, t);
	process_table_add(t->processes, &walking, t); /* last: it reads all that is mapped */
	return 0;
}

void tracer_close_processes(struct tracer *t)
{
	if (t->processes)
		process_table_free(t->processes);
	if (t->roster)
		roster_free(t->roster);
	group_folders_free(t->group_folders);
}

/* ---- what happens to them ---- */

void tracer_follow(struct tracer *t, const struct event *e)
{
	switch (e->op) {
	case HOST_TARGET_FOUND:
		process_table_found(t->processes, e->pid, roster_found_start(e), e->start);
		roster_found(t->roster, e);
		tracer_enter_children(t, e->pid, e->start);
		break;
	case HOST_PROCESS_FORK:
		process_table_fork(t->processes, e->pid, e->peer_pid, e->start);
		break;
	case HOST_PROCESS_EXEC: process_table_exec(t->processes, e->pid, e->start); break;
	case HOST_PROCESS_EXIT: process_table_exit(t->processes, e->pid, e->start); break;
	}
}

/* Entered just as it ended: nobody reported its end. */
void tracer_forget_dead(struct tracer *t)
{
	struct process_entry *p = NULL;

	while ((p = process_table_next(t->processes, p)))
		if (!p->ended && kill((pid_t)p->pid, 0) < 0 && errno == ESRCH) {
			probe_target_remove(t->probe, p->pid);
			process_table_exit(t->processes, p->pid, wall_now());
		}
}
