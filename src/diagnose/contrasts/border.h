/* SPDX-License-Identifier: Apache-2.0 */
/* border.h - the first slow step, where steps became much slower and stayed so. */
#pragma once

#include "diagnose/contrasts/classify.h"

/* border_settle - steps that are taken for slow because of when they were, and are as short as ordinary ones, are
 * ordinary up to the first that is not: what is a little longer before a large change is not the change. */
void border_settle(struct step_facts *steps, size_t n, struct classification *found);
