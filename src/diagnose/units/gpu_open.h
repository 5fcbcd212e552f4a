/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_open.h - in which time of a unit the GPU may have work of the process: from when it is given some until a wait for it
 * ends. In the rest it has nothing to do for it. */
#pragma once

#include "diagnose/units/boundaries.h"

/* gpu_open_count - fills the open_ns of @s's units, which are 0; they stay so where it is not known: of a recording without
 * a ledger, or a process that waits for parts of its work. 0 or -ENOMEM. */
int gpu_open_count(const struct timeline *t, struct step_spans *s);
