/* SPDX-License-Identifier: Apache-2.0 */
/* rhythm.h - in what order slow steps come: every so many steps, or as work does that varies by itself. */
#pragma once

#include "diagnose/units/boundaries.h"
#include "diagnose/contrasts/classify.h"

struct rhythm {
	uint32_t period_steps;    /* every so many steps some are slow; 0: not periodic */
	double period_confidence; /* share of the distances that are so */
	bool is_varied;           /* steps of all lengths, now shorter and now longer */
	bool is_staged;           /* slow ones are as long as that little by little, or in stages */
	bool is_proportional;     /* and longer ones do as much more of the same */
};

/* rhythm_find - of the @n steps at @spans, which have the classes of @facts and are taken @group together. 0 or
 * -ENOMEM. */
int rhythm_find(const struct step_span *spans, const struct step_facts *facts, size_t n,
	uint32_t group, struct rhythm *ret);

/* rhythm_is_regular - whether slow steps come every so many steps, which hardly any other order would show: said of
 * steps that are not slow by their lengths alone. 0 or -ENOMEM. */
int rhythm_is_regular(const struct step_facts *facts, size_t n, uint32_t group, bool *ret);
