/* SPDX-License-Identifier: Apache-2.0 */
/* incident_fixture.h - an incident of which every field has a value that no other has, so that a field that is
 * forgotten or mistaken for another is seen, also one that is added tomorrow. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "model/incident.h"

static _unused_ void incident_fill(struct incident *i)
{
	*i = (struct incident){.completeness = -1, .culprit_rank = -1};
	for (int n = 0; n < INCIDENT_FIELD_COUNT; n++) {
		const struct incident_field *f = &incident_fields[n];
		struct incident_value v = {.type = INCIDENT_INT, .i = n + 1};
		char text[16];

		snprintf(text, sizeof(text), "text %d", n);
		if (f->form == INCIDENT_FORM_REAL || f->form == INCIDENT_FORM_SHARE)
			v = (struct incident_value){.type = INCIDENT_REAL, .d = (n + 1) / 64.0};
		else if (f->form == INCIDENT_FORM_SEVERITY)
			v = (struct incident_value){.type = INCIDENT_TEXT, .s = "HIGH"};
		else if (f->form == INCIDENT_FORM_PROBLEM)
			v = (struct incident_value){.type = INCIDENT_TEXT, .s = "pcie"};
		else if (f->form == INCIDENT_FORM_TEXT)
			v = (struct incident_value){.type = INCIDENT_TEXT, .s = text};
		incident_field_set(f, i, &v);
	}
}

/* Whether two incidents have the same value of a field that is no list. */
static _unused_ bool incident_has_same(
	const struct incident_field *f, const struct incident *a, const struct incident *b)
{
	struct incident_value x, y;

	incident_field_get(f, a, true, &x);
	incident_field_get(f, b, true, &y);
	if (x.type != y.type)
		return false;
	switch (x.type) {
	case INCIDENT_NOTHING: return true;
	case INCIDENT_UINT: return x.u == y.u;
	case INCIDENT_INT: return x.i == y.i;
	case INCIDENT_REAL: return x.d == y.d;
	case INCIDENT_TEXT: break;
	}
	return !strcmp(x.s, y.s);
}
