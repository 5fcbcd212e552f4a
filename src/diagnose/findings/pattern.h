/* SPDX-License-Identifier: Apache-2.0 */
/* pattern.h - which problem a delay is. */
#pragma once

#include "diagnose/findings/time_finding.h"

/* pattern_problem - the first row of the table that fits. @d's chain was followed. */
enum problem pattern_problem(const struct recording *rec, const struct step_account *a,
	enum time_contrast contrast, const struct delay *d);
