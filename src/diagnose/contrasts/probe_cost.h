/* SPDX-License-Identifier: Apache-2.0 */
/* probe_cost.h - how much longer steps take while the tracer probes every launch. It does so now and
 * then only (trace/governor), and steps that are slow for that reason alone are nobody's fault. */
#pragma once

#include "diagnose/contrasts/classify.h"

/* probe_cost_find - sets @ret to the length of probed steps of @steps, as a multiple of that of the
 * others around them: 1 to 1.5, and 1 where too few stretches of probed steps say so. 0 or -ENOMEM. */
int probe_cost_find(const struct step_facts *steps, size_t n, double *ret);
