/* SPDX-License-Identifier: Apache-2.0 */
/* export_metric.h - what the exporters tell of themselves, as rows of the same kind as the rest
 * (record/trace/metrics/metric_table.h). docs/metrics.md is compared with both tables by a test. */
#pragma once

#include "notify/telemetry/push.h"
#include "model/metric.h"

enum export_metric_id {
	E_BATCHES,
	E_POINTS,
	E_RETRIES,
	E_QUEUE,
	E_QUEUE_BYTES,
	E_SCRAPES,
	EXPORT_METRIC_COUNT
};

extern const struct metric_desc export_metric_table[EXPORT_METRIC_COUNT];

/* Points since @start. */
void export_metric_push(struct metric_set *s, wall_time start, const struct push_stats *f);
void export_metric_scrapes(struct metric_set *s, wall_time start, uint64_t scrapes);
