/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto_step.c - the steps of a process as slices, with the time of each line of their account beside
 * them. Of many steps, some that followed each other are one slice (struct account_bar). */
#include <stdio.h>
#include <string.h>

#include "answer/steps.h"
#include "export/perfetto_private.h"

static const char *const line_names[] = {
#define X(NAME, id, title) [ACCOUNT_##NAME] = id "_ns",
	ACCOUNT_LINES_LIST(X)
#undef X
};

static void name_bar(char out[64], const struct account_bar *bar)
{
	if (bar->steps == 1)
		snprintf(out, 64, "%s", bar->slow_steps ? "slow step" : "step");
	else if (bar->slow_steps)
		snprintf(out, 64, "%u steps, %u slow", bar->steps, bar->slow_steps);
	else
		snprintf(out, 64, "%u steps", bar->steps);
}

static int put_bar(
	struct perfetto *p, const struct perfetto_owner *o, const struct account_bar *bar)
{
	struct event_args args = {0};
	char name[64];
	struct perfetto_slice s = {.source = PERFETTO_STEPS,
		.name = name,
		.start_ns = bar->start.ns,
		.end_ns = bar->start.ns + (int64_t)bar->dur_ns,
		.args = &args};

	name_bar(name, bar);
	event_arg_number(&args, "steps", bar->steps);
	event_arg_number(&args, "slow_steps", bar->slow_steps);
	for (int i = 0; i < ACCOUNT_LINES; i++)
		if (bar->ns[i])
			event_arg_number(&args, line_names[i], (int64_t)bar->ns[i]);
	p->stats.steps += bar->steps;
	return perfetto_slice_put(p, o, &s);
}

int perfetto_steps_put(struct perfetto *p, const char *node)
{
	const struct steps_answer *steps = p->options->steps;
	int r = 0;

	for (size_t i = 0; r == 0 && i < steps->count; i++) {
		const struct step_account *a = steps->rows[i].account;
		struct perfetto_owner o = {.kind = LINE_STEPS,
			.id = a->pid,
			.pid = a->pid,
			.tid = a->tid,
			.name = a->comm};

		if (strcmp(steps->rows[i].node, node) != 0)
			continue;
		r = perfetto_track_find(p, node, strlen(node),
			perfetto_rank(p, node, strlen(node), a->pid), &o.track);
		for (size_t k = 0; r == 0 && k < a->bar_count; k++)
			r = put_bar(p, &o, &a->bars[k]);
	}
	return r;
}
