/* SPDX-License-Identifier: Apache-2.0 */
/* demo_day.h - the day of a cluster that does not exist, as plays: 64 ranks on 8 nodes, all healthy but for a GPU
 * that was throttled 20 hours ago, a hang 6 hours ago, and a rank that is late in every 14th step now. */
#pragma once

#include "cluster/simulate/play.h"

#define DEMO_CLUSTER  "demo"
#define DEMO_RANKS    64
#define DEMO_PER_NODE 8
#define DEMO_NODES    (DEMO_RANKS / DEMO_PER_NODE)
#define DEMO_PERIOD   14 /* steps */

enum demo_act { DEMO_THROTTLED, DEMO_HANG, DEMO_NOW }; /* what is over, then what goes on */

/* demo_quiet - the rest of the day: how well the nodes are, every five minutes. Nothing is found in it. */
struct simulation_settings demo_quiet(int64_t now_ns);

/* demo_act - its play, for a day that ends at @now_ns. What it points to is static. */
struct play_settings demo_act(enum demo_act act, int64_t now_ns);

/* demo_core - the core that hears an act. */
struct fleet_settings demo_core(enum demo_act act, const struct rates *rates);
