/* SPDX-License-Identifier: Apache-2.0 */
/* fleet_metrics.h - the cluster service as metrics. Series of ranks and episodes are bounded: those
 * that make nobody wait have none. */
#pragma once

#include "cluster/detect/fleet.h"
#include "model/metric.h"

#define FLEET_METRICS_EPISODES 200 /* of nodes and ranks that cost something now */

/* fleet_metrics - puts everything that the core knows into @s. */
void fleet_metrics(struct metric_set *s, struct fleet *f);
