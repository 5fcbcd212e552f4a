/* SPDX-License-Identifier: Apache-2.0 */
/* labels.h - which labels of annotations held during an incident or a call.
 *
 * A label is about the whole trace or about the incident's process. Set at a moment, it holds until
 * it is set again; set over a span, it holds inside it. */
#pragma once

#include <stddef.h>

#include "model/event.h"
#include "model/incident.h"

#define LABELS_KEYS_MAX   32
#define LABELS_VALUES_MAX 8

struct label_range { /* one key during the incident; points into the labels */
	const char *key;
	const char
		*values[LABELS_VALUES_MAX]; /* in order: the first ones, and at the end the last */
	int value_count;
	size_t total; /* values it had; may be more than are kept */
};

struct labels_span { /* of a process: an incident, a call */
	uint32_t pid;
	int64_t first_ns, last_ns;
};

/* labels_during - fills @ret for @incident from @labels (@count, by time). Returns the number of
 * keys, in the order in which they were first set; *ret_more counts keys that did not fit. */
int labels_during(const struct annotation_label *labels, size_t count,
	const struct incident *incident, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more);
int labels_within(const struct annotation_label *labels, size_t count,
	const struct labels_span *span, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more);
