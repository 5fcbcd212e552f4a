/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_explain.c - brings the explainer what the tracer sees, and what it finds to the store, the
 * metrics and the caller. Runs on the tracer's thread. */
#include "record/trace/tracer_private.h"

#include "diagnose/chains/kernel_type.h"

int tracer_open_explainer(struct tracer *t)
{
	struct explainer_config config = {.node = t->settings.node,
		.wants_steps = t->metric_state != NULL,
		.begin = tracer_confine_explainer,
		.begin_arg = &t->settings};
	int r = explainer_new(&config, &t->explainer);

	return r < 0 ? r : explainer_start(t->explainer);
}

static void hand_on(void *arg, const struct explainer_finding *f)
{
	struct tracer *t = arg;
	struct incident named = f->incident;

	kernel_sentence_put(&named, tracer_kernel_name, t);
	if (t->store && !store_writer_push_incident(t->store, &named, f->detected))
		log_warning("the store's queue is full: an incident is lost");
	if (t->metric_state)
		metric_state_incident(t->metric_state, &named, f->change);
	if (t->settings.incident_sink)
		t->settings.incident_sink(t->settings.event_arg, &named, f->change);
}

void tracer_explain_look(struct tracer *t)
{
	struct accounting books;

	tracer_books(t, &books);
	explainer_look(t->explainer, &books);
}

void tracer_poll_explainer(struct tracer *t)
{
	explainer_poll(t->explainer, hand_on, t);
	if (t->metric_state)
		(void)explainer_steps(t->explainer, &t->metric_state->steps);
}

void tracer_close_explainer(struct tracer *t)
{
	struct explainer *x = TAKE(t->explainer);
	struct explainer_dropped dropped;
	struct accounting books;

	if (!x)
		return;
	tracer_books(t, &books);
	explainer_stop(x, &books);
	explainer_poll(x, hand_on, t);
	dropped = explainer_dropped(x);
	if (dropped.inputs || dropped.findings)
		log_info(
			"%llu events and %llu incidents were not analysed live; `ingero explain` analyses all that was stored",
			(unsigned long long)dropped.inputs, (unsigned long long)dropped.findings);
	explainer_free(x);
}
