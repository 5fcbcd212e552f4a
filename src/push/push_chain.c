/* SPDX-License-Identifier: Apache-2.0 */
/* push_chain.c - explained incidents as log records with attributes. The body says the summary once more, for
 * receivers that show only that. */
#include <string.h>

#include "push/push_private.h"

#define SEVERITY_WARN 13

static void put_attributes(struct otlp_attributes *a, const struct push_chain *c)
{
	for (size_t i = 0; i < c->attribute_count; i++) {
		const struct push_attribute *p = &c->attributes[i];

		if (p->kind == PUSH_TEXT && p->text[0])
			otlp_put_text(a, p->key, p->text);
		else if (p->kind == PUSH_INT && p->i)
			otlp_put_int(a, p->key, p->i);
		else if (p->kind == PUSH_REAL && p->d > 0)
			otlp_put_double(a, p->key, p->d);
	}
	otlp_put_text(a, "causal_chain_id", c->id); /* the event's, too */
}

void push_chains_protobuf(
	struct buf *b, const struct push_who *who, const struct push_chain *chains, size_t count)
{
	struct otlp_attributes resource, a;
	struct otlp_writer w;

	resource.count = 0;
	push_who_put(&resource, who);
	otlp_write_begin(&w, b, false, true, &resource, PUSH_SCOPE_CHAIN, PUSH_SCOPE_VERSION);
	for (size_t i = 0; i < count; i++) {
		const struct push_chain *c = &chains[i];

		a.count = 0;
		put_attributes(&a, c);
		otlp_write_record(&w, &(struct otlp_record){.attributes = &a,
					      .time_ns = (uint64_t)c->detected_ns,
					      .severity = SEVERITY_WARN,
					      .body = {.kind = OTLP_TEXT,
						      .text = c->summary,
						      .len = strlen(c->summary)},
					      .event = PUSH_SCOPE_CHAIN,
					      .event_len = strlen(PUSH_SCOPE_CHAIN)});
	}
	otlp_write_end(&w);
}
