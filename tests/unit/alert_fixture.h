/* SPDX-License-Identifier: Apache-2.0 */
/* alert_fixture.h - notices for the tests of alert. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/macros.h"
#include "alert/alert_body.h"

static _unused_ struct alert_notice notice(enum alert_kind kind, uint64_t id)
{
	struct alert_notice n = {.kind = kind,
		.matter = {.id = id,
			.name = "IngeroStraggler",
			.class = "gpu_straggler",
			.is_job = true,
			.cluster = "c1",
			.problem = "straggler",
			.node = "node-3",
			.rank = 0,
			.stage = -1,
			.signal = "throughput",
			.score = 0.5,
			.threshold = 0.88,
			.since_ns = 1500000000,
			.text = "rank 0 on node-3 is late",
			.cause = "<disk> & co",
			.cost = {.priced = true,
				.per_hour = 12.55,
				.currency = "USD",
				.symbol = "$"}}};

	snprintf(n.matter.event, sizeof(n.matter.event), "event-%llu", (unsigned long long)id);
	if (kind == ALERT_ENDED)
		n.matter.until_ns = 2 * (int64_t)NS_PER_S;
	return n;
}
