/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - the one figure that a demo is about, taken from what was recorded. */
#pragma once

#include <stdbool.h>

#include "diagnose/recording.h"
#include "base/buf.h"
#include "model/incident.h"

enum measure {
	MEASURE_SLOWDOWN,    /* how much slower steps were, and beside whom */
	MEASURE_FIRST_CALLS, /* the first call of an op against later ones */
	MEASURE_COPIES,      /* share of the time that copies take */
	MEASURE_PERIOD,      /* slow calls that come back every so many calls */
};

/* measure_put - appends a sentence like "cudaMalloc 47x slower (52µs -> 2.5ms) every 203 calls".
 * @list are the incidents of @rec, worst first. False, with nothing appended, if there is nothing
 * of the kind in @rec. Names of traced processes are in it as they are: escape what is printed. */
bool measure_put(struct buf *out, enum measure m, const struct recording *rec,
	const struct incident *list, size_t count);
