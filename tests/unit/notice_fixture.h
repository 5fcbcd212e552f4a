/* SPDX-License-Identifier: Apache-2.0 */
/* notice_fixture.h - notices for the tests of cluster/notify. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cluster/detect/fleet.h"

static _unused_ struct fleet_notice notice(enum fleet_notice_kind kind, uint64_t id)
{
	struct fleet_notice n = {.kind = kind,
		.episode = {.id = id,
			.cluster = "c1",
			.problem = FLEET_STRAGGLER,
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

	snprintf(n.episode.event, sizeof(n.episode.event), "event-%llu", (unsigned long long)id);
	if (kind == FLEET_NOTICE_ENDED)
		n.episode.until_ns = 2 * (int64_t)NS_PER_S;
	return n;
}
