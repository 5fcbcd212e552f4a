/* SPDX-License-Identifier: Apache-2.0 */
/* compose.h - which findings become incidents, and how bad they are.
 *
 * Each lost nanosecond of a process is in at most one incident: slow units share out what they lost, all units what
 * they consist of, and what a state finding (a graph captured again and again, a hang) explains of that is its own.
 * Two processes that hold each other up are one incident. The order of findings does not matter. */
#pragma once

#include "diagnose/findings/time_finding.h"

/* compose - adds to @out, which holds the state findings, the incidents of @findings (@n processes). What is spent at one
 * line on different things, or waited for of one process in different ways, is one incident. 0 or -ENOMEM. */
int compose(const struct time_findings *findings, size_t n, double completeness,
	struct incident_list *out);
