/* SPDX-License-Identifier: Apache-2.0 */
/* notice_row.h - what the fleet finds as a row of the table incidents. Pure. */
#pragma once

#include "cluster/detect/fleet.h"
#include "cluster/store/batch.h"

void notice_row(struct batch *b, const struct fleet_notice *n, int64_t now_ns);

/* notice_row_is_due - whether an incident that lasts is to have a row again at @now_ns, after @before_ns: 1, 2,
 * 4 … s after its beginning, from a minute on every minute. */
bool notice_row_is_due(const struct fleet_episode *e, int64_t before_ns, int64_t now_ns);
