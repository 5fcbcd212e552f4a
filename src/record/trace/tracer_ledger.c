/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_ledger.c - what threads spent their time on, and what control groups were denied, on their way
 * to the explainer and the store. Runs on the tracer's thread. */
#include "record/capture/container.h"
#include "record/trace/tracer_private.h"

void tracer_ledger(struct tracer *t, const struct ledger_row *row)
{
	struct account *own = &t->own.source[SOURCE_HOST];

	if (row->mark == MARK_OPTIMIZER)
		cost_trial_mark(&t->trial, row->pid, (wall_time){ledger_end_ns(row)});
	if (row->mark == MARK_STAY)
		tracer_enter_waker(t, row);
	explainer_ledger(t->explainer, row);
	if (!t->store)
		own->aggregated++; /* the books: it was seen, and nobody wants it as a row */
	else if (!store_writer_push_ledger(t->store, row))
		own->lost[LOSS_QUEUE_FULL]++;
}

void tracer_read_containers(struct tracer *t, wall_time now)
{
	struct roster_group groups[CONTAINER_GROUPS_MAX];
	size_t count = roster_groups(t->roster, groups, CONTAINER_GROUPS_MAX);
	bool is_full = false;

	for (size_t i = 0; i < count; i++) {
		const struct group_asked asked = {
			groups[i].cgroup_id, groups[i].pid, groups[i].path};
		const struct group_folder *folder = group_folders_find(t->group_folders, &asked);
		struct container_sample s;

		if (!folder || container_read("", folder, asked.id, now, &s) < 0)
			continue;
		explainer_container(t->explainer, &s);
		if (t->store)
			is_full = !store_writer_push_container(t->store, &s) || is_full;
	}
	if (is_full)
		log_warning("the store's queue is full: samples of control groups are lost");
}
