/* SPDX-License-Identifier: Apache-2.0 */
/* severity.h - how bad lost time is: one function of how much of the time it is and how sure that is. */
#pragma once

#include <stdbool.h>

#include "model/incident.h"

/* severity_of - of what costs @share of the time, with @confidence. @is_whole: it is in every unit, and some of it
 * is in every program. */
enum severity severity_of(double share, double confidence, bool is_whole);

/* severity_sure - @severity, or the worst that @confidence is enough for. */
enum severity severity_sure(enum severity severity, double confidence);
