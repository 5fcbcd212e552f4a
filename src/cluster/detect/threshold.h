/* SPDX-License-Identifier: Apache-2.0 */
/* threshold.h - below which score a node of a cohort is a straggler: median - k sigma, smoothed. Pure. */
#pragma once

#include "cluster/detect/nodes.h"

struct threshold_average { /* of a cohort, over its computations */
	double median, sigma;
	bool is_set;
	uint32_t
		fell; /* computations in a row in which half were below what had been the threshold */
};

struct threshold_input {
	const double *sorted; /* scores of the nodes that count */
	size_t count;
	uint32_t known;    /* nodes of the cohort in any state */
	uint32_t expected; /* that its job has; 0: not known */
};

/* threshold_update - one computation, which is due every interval. */
void threshold_update(struct threshold_average *a, const struct nodes_settings *s,
	const struct threshold_input *in, struct threshold *ret);
