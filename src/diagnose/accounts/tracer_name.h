/* SPDX-License-Identifier: Apache-2.0 */
/* tracer_name.h - the tracer among the culprits. By the names of its threads and processes: a recording does
 * not say which pid recorded it. What the tracer costs is told as such, not as a fault of the job. */
#pragma once

#include <stdbool.h>

#include "model/incident.h"

#define TRACER_NAME "ingero" /* all its threads are one culprit */

/* tracer_is - whether @comm is a thread of `ingero trace` or one of its helper processes. The cluster's
 * service is not. */
bool tracer_is(const char *comm);

/* tracer_is_blamed - whether of all culprits of @inc the tracer has most. */
bool tracer_is_blamed(const struct incident *inc);

/* tracer_fold - the name under which @comm is summed: its own, or TRACER_NAME. */
const char *tracer_fold(const char *comm);
