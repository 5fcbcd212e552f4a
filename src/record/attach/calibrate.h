/* SPDX-License-Identifier: Apache-2.0 */
/* calibrate.h - what one probe hit costs on this machine, measured. */
#pragma once

#include "record/probe/probe.h"

#define CALIBRATE_SOURCE 15 /* its hits are nobody's events */

/* calibrate_hit_ns - run a function some thousand times in a child, without and with the probes of
 * @p's method, and give the difference per call. Takes about 50 ms; the probes must be enabled and
 * nothing else attached. -EIO and the like if it cannot be measured, -ENODATA if no hit was counted. */
int calibrate_hit_ns(struct probe *p, double *ret);
