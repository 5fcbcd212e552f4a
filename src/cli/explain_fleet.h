/* SPDX-License-Identifier: Apache-2.0 */
/* explain_fleet.h - what many nodes found, in one report. */
#pragma once

#include "fanout/fanout.h"
#include "base/buf.h"
#include "cli/explain.h"

/* explain_fleet_text - appends the incidents of @r, worst first, each with its node in front. */
void explain_fleet_text(struct buf *b, const struct fanout_result *r, struct explain_style style);

/* explain_fleet_json - prints an array of them to stdout: all that each node said. */
void explain_fleet_json(const struct fanout_result *r);
