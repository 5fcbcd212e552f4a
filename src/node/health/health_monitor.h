/* SPDX-License-Identifier: Apache-2.0 */
/* health_monitor.h - from readings of a node to its state, score and the verdict on itself: the parts of
 * this folder put together. Pure.
 *
 * While the node is a straggler its readings are not added to the baseline: throughput is measured
 * against that, and an average that followed a lasting fall would call it ordinary after two minutes. What a
 * program did that has ended is taken out of it, and nothing is decided while a reading still has some of it. */
#pragma once

#include "node/health/health_classifier.h"
#include "node/health/health_mode.h"
#include "node/health/health_state.h"

struct health_monitor {
	struct health_score_settings score_settings;
	struct health_baseline_settings baseline_settings;
	struct health_state_settings state_settings;
	struct health_classifier_settings classifier_settings;
	struct health_baseline baseline;
	struct health_state state;
	struct health_classifier classifier;
	enum health_mode mode;
};

/* health_monitor_init - the usual settings with @warmup readings. @restored is a baseline of an earlier
 * run; NULL: none. */
void health_monitor_init(
	struct health_monitor *m, uint32_t warmup, const struct health_baseline *restored);

/* health_monitor_check - settings that contradict each other: -EINVAL with a sentence. */
int health_monitor_check(const struct health_monitor *m, struct errinfo *reterr);

struct health_input {
	struct health_reading reading;
	double raw[HEALTH_SIGNAL_COUNT]; /* throughput in launches a second, the others as shares */
	bool is_ratio;                   /* throughput is a ratio already */
	const struct health_program *programs; /* whose throughput it is; none: not known */
	size_t program_count;
	struct health_threshold cached; /* what the fleet said last */
	int64_t now_ns;                 /* monotonic, as cached.at_ns */
	uint64_t push_interval_ns;
	bool reachable;
	uint8_t random[16];
};

struct health_output {
	struct health_step step;
	double values[HEALTH_SIGNAL_COUNT]; /* 0 to 1 */
	double score, threshold;            /* threshold 0: none */
	struct health_anomalies anomalies;
	bool degraded;
	enum health_verdict verdict;
	const char *dominant; /* of a verdict */
};

/* health_monitor_take - all but step, threshold and verdict is empty after a failed reading. */
void health_monitor_take(
	struct health_monitor *m, const struct health_input *in, struct health_output *ret);
