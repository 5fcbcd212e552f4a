/* SPDX-License-Identifier: Apache-2.0 */
/* deadband.h - which host samples are worth storing.
 *
 *   points 0, beat 0   every one
 *   points P           those that differ from the last one stored by more than P percent points in
 *                      CPU, memory or swap (of all memory)
 *   beat B             the first after every B, whatever it says; alone: only these */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/sample.h"

struct deadband {
	double points;
	uint64_t beat_ns;
	bool has_last;
	struct host_sample last; /* stored */
};

/* deadband_admits - whether @s is to be stored; if so it is the last one from now on. */
bool deadband_admits(struct deadband *d, const struct host_sample *s);
