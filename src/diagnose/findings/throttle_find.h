/* SPDX-License-Identifier: Apache-2.0 */
/* throttle_find.h - when a GPU ran at lowered clocks, by its readings. */
#pragma once

#include "diagnose/recording.h"

struct throttle_span { /* one reading with lowered clocks */
	int64_t start_ns, end_ns;
};

struct gpu_throttle_spans {
	int64_t index;
	struct throttle_span *throttle_spans; /* ascending, disjoint */
	size_t count, readings;
	uint64_t bits;                       /* reasons of them all; 0: none was given */
	int64_t ns;                          /* all together */
	int64_t clock_inside, clock_outside; /* median of busy readings, MHz; -1: not known */
	double busy;                         /* mean use of the GPU inside, 0..1; 1: not known */
	int64_t first_ns, last_ns;
};

/* throttle_find - fills @ret (released with throttle_done(), also after a failure) with those of GPU
 * @index. 0 or -ENOMEM. */
int throttle_find(const struct recording *rec, int64_t index, struct gpu_throttle_spans *ret);
void throttle_done(struct gpu_throttle_spans *g);
