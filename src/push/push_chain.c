/* SPDX-License-Identifier: Apache-2.0 */
/* push_chain.c - explained incidents as log records with attributes. The body says the summary once more, for
 * receivers that show only that. */
#include <string.h>

#include "push/push_private.h"

#define SEVERITY_WARN 13

static void put_text(struct otlp_attributes *a, const char *key, const char *text)
{
	if (text[0])
		otlp_put_text(a, key, text);
}

static void put_number(struct otlp_attributes *a, const char *key, double v)
{
	if (v > 0)
		otlp_put_double(a, key, v);
}

static void put_attributes(struct otlp_attributes *a, const struct push_chain *c)
{
	put_text(a, "id", c->id);
	put_text(a, "causal_chain_id", c->id); /* the event's, too */
	put_text(a, "severity", c->severity);
	put_text(a, "summary", c->summary);
	put_text(a, "root_cause", c->root_cause);
	put_text(a, "explanation", c->explanation);
	put_text(a, "recommendations", c->recommendations);
	put_text(a, "cuda_op", c->op);
	put_number(a, "p99_us", c->p99_us);
	put_number(a, "p50_us", c->p50_us);
	put_number(a, "tail_ratio", c->tail_ratio);
	put_text(a, "timeline", c->timeline);
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
