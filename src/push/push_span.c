/* SPDX-License-Identifier: Apache-2.0 */
/* push_span.c - an episode of a node as a span. One that is over has an event with outcome=resolved at its
 * end; one that the agent's own end cut off has none. */
#include <string.h>

#include "push/push_private.h"

#define NAME_STRAGGLER "ingero.detection.straggler"
#define NAME_DEGRADED  "ingero.detection.degradation"
#define EVENT_OUTCOME  "outcome"
#define KEY_OUTCOME    "outcome"
#define KIND_INTERNAL  1

void push_span_protobuf(struct buf *b, const struct push_span *s)
{
	const char *name = s->is_straggler ? NAME_STRAGGLER : NAME_DEGRADED;
	struct otlp_attributes resource, a, outcome;
	struct otlp_writer w;
	struct otlp_span span = {.attributes = &a,
		.name = name,
		.name_len = strlen(name),
		.start_ns = (uint64_t)s->start_ns,
		.end_ns = (uint64_t)s->end_ns,
		.kind = KIND_INTERNAL};
	const struct otlp_span_event event = {
		.name = EVENT_OUTCOME, .time_ns = (uint64_t)s->end_ns, .attributes = &outcome};

	resource.count = a.count = outcome.count = 0;
	push_who_put(&resource, &s->who);
	otlp_put_text(&a, PUSH_KEY_CLUSTER, s->who.cluster);
	otlp_put_text(&a, PUSH_KEY_COHORT, s->cohort);
	otlp_put_text(&a, PUSH_KEY_WORKLOAD, s->workload);
	if (s->gpu_model[0])
		otlp_put_text(&a, PUSH_KEY_MODEL, s->gpu_model);
	otlp_put_text(&a, PUSH_KEY_EVENT, s->event);
	otlp_put_text(&outcome, KEY_OUTCOME, "resolved");
	memcpy(span.trace, s->trace, sizeof(span.trace));
	memcpy(span.id, s->id, sizeof(span.id));
	otlp_write_begin(&w, b, false, false, &resource, PUSH_SCOPE_HEALTH, PUSH_SCOPE_VERSION);
	otlp_write_span(&w, &span, s->resolved ? &event : NULL);
	otlp_write_end(&w);
}
