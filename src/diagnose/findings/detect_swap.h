/* SPDX-License-Identifier: Apache-2.0 */
/* detect_swap.h - steps that are spent on loading a model. */
#pragma once

#include "diagnose/compose/detector.h"
#include "diagnose/calls/gap.h"

/* swap_report - finds the steps of each process that load a model, reports them, and marks the
 * pauses in them (IDLE_SWAP), so that they are not told twice. 0 or -ENOMEM. */
int swap_report(const struct detector_input *s, const struct step_table *steps,
	struct gap_list *gaps, struct incident_list *out);
