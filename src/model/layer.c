/* SPDX-License-Identifier: Apache-2.0 */
/* layer.c - names and sentences of layer.h. Pure. */
#include "model/layer.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

static const struct {
	const char *name, *calls;
} layers[] = {
#define X(NAME, name, calls) [LAYER_##NAME] = {name, calls},
	LAYERS(X)
#undef X
};

static const struct {
	const char *name, *words;
} states[] = {
	[LAYER_ABSENT] = {"absent", ""},
	[LAYER_COVERED] = {"covered", "are covered"},
	[LAYER_UNCOVERED] = {"not_covered", "are not covered"},
	[LAYER_FAILED] = {"failed", "are not covered"},
};

const char *layer_name(enum layer l)
{
	return layers[l].name;
}

const char *layer_state_name(enum layer_state s)
{
	return states[s].name;
}

bool layer_is_gap(const struct layer_row *r)
{
	return r->state == LAYER_UNCOVERED || r->state == LAYER_FAILED;
}

bool layer_has_gap(const struct process_layers *p)
{
	for (int i = 0; i < LAYER_COUNT; i++)
		if (layer_is_gap(&p->rows[i]))
			return true;
	return false;
}

bool layer_same(const struct process_layers *a, const struct process_layers *b)
{
	for (int i = 0; i < LAYER_COUNT; i++)
		if (a->rows[i].state != b->rows[i].state ||
			strcmp(a->rows[i].detail, b->rows[i].detail) != 0)
			return false;
	return true;
}

const char *layer_sentence(enum layer l, const struct layer_row *r, char *out, size_t size)
{
	if (r->state == LAYER_ABSENT)
		out[0] = 0;
	else
		snprintf(out, size, "%s %s%s%s", layers[l].calls, states[r->state].words,
			r->detail[0] ? ": " : "", r->detail);
	return out;
}
