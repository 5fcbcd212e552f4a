/* SPDX-License-Identifier: Apache-2.0 */
/* classify.h - which steps of a job are slow, which are ordinary, and which are neither because they
 * did something else. */
#pragma once

#include "diagnose/accounts/compiler.h"
#include "diagnose/contrasts/separate.h"
#include "diagnose/units/boundaries.h"

enum step_class { STEP_ORDINARY, STEP_SLOW, STEP_OTHER };

struct step_facts {
	uint64_t dur_ns;
	uint64_t wait_ns;          /* of it, for the GPU */
	uint64_t made_ns[MAKINGS]; /* of it, by how code was made (compiler.h) */
	uint32_t backwards, loads;
	double probed; /* share of it in which launches were, which costs time */
	enum step_class class;
};

struct classification {
	uint32_t group; /* steps between two long waits for the GPU; 1: every step waits, or none */
	size_t slow, ordinary, other;
	bool is_setup[MAKINGS]; /* what was made so is set-up: dur_ns is without it */
	uint64_t lost_ns;       /* by slow steps, beyond what as many ordinary ones take */
	struct trend trend;     /* of units */
};

/* classify_steps - sets the class of each of @steps, which are in order of time. 0 or -ENOMEM. */
int classify_steps(struct step_facts *steps, size_t n, struct classification *ret);

/* How much longer steps take while the tracer probes every launch. It does so now and
 * then only (trace/governor), and steps that are slow for that reason alone are nobody's fault. */

/* probe_cost_find - sets @ret to the length of probed steps of @steps, as a multiple of that of the
 * others around them: 1 to 1.5, and 1 where too few stretches of probed steps say so. 0 or -ENOMEM. */
int probe_cost_find(const struct step_facts *steps, size_t n, double *ret);
