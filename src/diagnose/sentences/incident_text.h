/* SPDX-License-Identifier: Apache-2.0 */
/* incident_text.h - writes an incident's texts from its figures. */
#pragma once

#include "diagnose/calls/attribute.h"
#include "base/buf.h"

struct verdict { /* what was concluded; correlate.c decides, incident_text.c says it */
	const struct incident_cause *lead;   /* the row it is named after */
	double lead_share;                   /* of the excess: this culprit, this layer */
	double other_share;                  /* of the excess: this culprit, the other layer */
	double layer_share;                  /* of the excess: all causes of the lead's layer */
	const struct incident_cause *second; /* somebody else who is to be named; NULL: nobody */
	double second_share;                 /* of the excess, in all layers */
	bool is_crowd;                       /* no culprit stands out */
	uint64_t span_ns;                    /* how long the process was observed */
	bool from_aggregates;
	bool has_books;
	uint64_t lost, hits, unseen; /* events; processes whose first calls were not traced */
};

/* narrate - fills summary, root_cause, explanation and fixes; the figures of @inc must be set.
 * 0 or -ENOMEM. */
int incident_text_put(const struct detection *d, const struct slow_episode *s,
	const struct part_list *l, const struct verdict *v, struct incident *inc);

/* incident_text_blame - appends who is to blame for which share of @lost ("the extra time") to @b,
 * and fills root_cause and fixes likewise. Check b->err. */
void incident_text_blame(
	struct buf *b, const struct verdict *v, const char *lost, struct incident *inc);
