/* SPDX-License-Identifier: Apache-2.0 */
/* period.h - "every 14 steps". */
#pragma once

#include "diagnose/units/step.h"
#include "stat/periodicity.h"

/* period_of_steps - whether things that happened in the steps @at (in any order, SIZE_MAX: in none)
 * come back every so many steps. Steps in a row are one. Confidence is that of the period times
 * that of the steps. @at is reordered. Without memory: false. */
bool period_of_steps(const struct step_list *steps, size_t *at, size_t n, struct periodicity *ret);
