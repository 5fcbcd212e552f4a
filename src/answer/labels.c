/* SPDX-License-Identifier: Apache-2.0 */
/* labels.c - see labels.h. Pure. */
#include "answer/labels.h"

#include <stdbool.h>
#include <string.h>

static bool is_span(const struct annotation_label *l)
{
	return l->span_end_ns != 0;
}

static bool holds(const struct annotation_label *l, const struct labels_span *i)
{
	if (l->pid && l->pid != i->pid)
		return false;
	if (is_span(l))
		return l->span_start_ns <= i->last_ns && l->span_end_ns >= i->first_ns;
	return l->time_ns <= i->last_ns;
}

static struct label_range *range_of(
	const char *key, struct label_range *ranges, int *count, size_t *more)
{
	for (int k = 0; k < *count; k++)
		if (!strcmp(ranges[k].key, key))
			return &ranges[k];
	if (*count == LABELS_KEYS_MAX) {
		++*more;
		return NULL;
	}
	ranges[*count] = (struct label_range){.key = key};
	return &ranges[(*count)++];
}

static void add_value(struct label_range *r, const char *value)
{
	if (r->value_count && !strcmp(r->values[r->value_count - 1], value))
		return;
	if (r->value_count == LABELS_VALUES_MAX)
		r->value_count--; /* the last place is for the last value */
	r->values[r->value_count++] = value;
	r->total++;
}

int labels_within(const struct annotation_label *labels, size_t count,
	const struct labels_span *span, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more)
{
	int keys = 0;

	*ret_more = 0;
	for (size_t n = 0; n < count; n++) {
		struct label_range *r;

		if (!holds(&labels[n], span))
			continue;
		r = range_of(labels[n].key, ret, &keys, ret_more);
		if (!r)
			continue;
		if (!is_span(&labels[n]) && labels[n].time_ns <= span->first_ns)
			r->total = (size_t)(r->value_count = 0); /* replaced before it began */
		add_value(r, labels[n].value);
	}
	return keys;
}

int labels_during(const struct annotation_label *labels, size_t count,
	const struct incident *incident, struct label_range ret[LABELS_KEYS_MAX], size_t *ret_more)
{
	struct labels_span span = {incident->pid, incident->first.ns, incident->last.ns};

	return labels_within(labels, count, &span, ret, ret_more);
}
