/* SPDX-License-Identifier: Apache-2.0 */
/* incident_json.c - see incident_json.h. Names of traced processes are inside, so any byte may
 * occur; the writer makes valid JSON of it. */
#include "store/schema/incident_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "json/writer.h"

/* A column holds the array alone, without the newline that ends a document. */
static void finish(struct json_writer *w, struct buf *out)
{
	json_end_array(w);
	if (json_finish(w) == 0 && out->len)
		out->data[--out->len] = 0;
}

static struct json_writer begin(struct buf *out)
{
	struct json_writer w = json_writer_to_buf(out);

	json_begin_array(&w);
	return w;
}

void incident_json_causes(const struct incident *i, struct buf *out)
{
	struct json_writer w = begin(out);

	for (int n = 0; n < i->cause_count; n++) {
		const struct incident_cause *c = &i->causes[n];

		json_begin_object(&w);
		json_string_member(&w, "cause", cause_name(c->cause));
		json_string_member(&w, "layer", cause_layer(c->cause));
		json_uint_member(&w, "ns", c->ns);
		json_uint_member(&w, "calls", c->calls);
		if (c->culprit_pid || c->culprit[0]) {
			json_uint_member(&w, "culprit_pid", c->culprit_pid);
			json_string_member(&w, "culprit", c->culprit);
			json_double_member(&w, "culprit_share", c->culprit_share);
		}
		json_end_object(&w);
	}
	finish(&w, out);
}

void incident_json_evidence(const struct incident *i, const char *node, struct buf *out)
{
	struct json_writer w = begin(out);
	char id[320];

	for (int n = 0; n < i->evidence_count; n++) {
		snprintf(id, sizeof(id), "%s:%" PRIu64, node, i->evidence[n]);
		json_put_string(&w, id);
	}
	finish(&w, out);
}

void incident_json_timeline(const struct incident *i, struct buf *out)
{
	struct json_writer w = begin(out);

	for (int n = 0; n < i->step_count; n++) {
		const struct incident_step *s = &i->timeline[n];

		json_begin_object(&w);
		json_string_member(&w, "layer", s->layer);
		json_string_member(&w, "op", s->op);
		json_string_member(&w, "detail", s->detail);
		if (s->dur_ns)
			json_uint_member(&w, "dur_us", s->dur_ns / NS_PER_US);
		json_int_member(&w, "timestamp", s->time.ns);
		json_end_object(&w);
	}
	finish(&w, out);
}

void incident_json_fixes(const struct incident *i, struct buf *out)
{
	struct json_writer w = begin(out);

	for (int n = 0; n < i->fix_count; n++)
		json_put_string(&w, i->fixes[n]);
	finish(&w, out);
}
