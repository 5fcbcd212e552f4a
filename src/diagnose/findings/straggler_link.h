/* SPDX-License-Identifier: Apache-2.0 */
/* straggler_link.h - links and collectives that a job waits for though all its ranks are on time. */
#pragma once

#include "diagnose/findings/straggler_job.h"
#include "diagnose/findings/detector.h"

/* straggler_link_report - one incident for each, which names no rank. */
void straggler_link_report(
	const struct detector_input *in, const struct straggler_job *j, struct incident_list *out);
