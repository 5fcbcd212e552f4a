/* SPDX-License-Identifier: Apache-2.0 */
/* push_private.h - names on the wire, and what the files of push_wire.h share. */
#pragma once

#include "otlp/otlp_read.h"
#include "otlp/otlp_write.h"
#include "push/push_wire.h"

/* Of the resource. */
#define PUSH_KEY_NODE     "ingero.node.id"
#define PUSH_KEY_CLUSTER  "ingero.cluster.id"
#define PUSH_KEY_WORLD    "ingero.world_size"
#define PUSH_KEY_RANK     "ingero.node.rank"
#define PUSH_KEY_PROVIDER "ingero.provider"
#define PUSH_KEY_BOOT     "ingero.agent.boot"
/* Of points. */
#define PUSH_KEY_STATE     "ingero.node.state"
#define PUSH_KEY_WORKLOAD  "ingero.workload_type"
#define PUSH_KEY_COHORT    "ingero.cgroup_path_hash"
#define PUSH_KEY_MODE      "ingero.detection_mode"
#define PUSH_KEY_MODEL     "ingero.gpu_model"
#define PUSH_KEY_GPUS      "ingero.gpu_count"
#define PUSH_KEY_DIRECTION "ingero.memcpy.direction"
#define PUSH_KEY_THRESHOLD "threshold"
#define PUSH_KEY_SCORE     "score"
#define PUSH_KEY_DOMINANT  "dominant_signal"
#define PUSH_KEY_EVENT     "ingero.event.id"

/* What the score is made of. X(member of struct push_health, metric) */
#define PUSH_RATIOS(X)                                                                             \
	X(throughput, "ingero.node.throughput_ratio")                                              \
	X(compute, "ingero.node.compute_efficiency")                                               \
	X(memory, "ingero.node.memory_headroom")                                                   \
	X(cpu, "ingero.node.cpu_availability")

#define PUSH_METRIC_SCORE     "ingero.node.health_score"
#define PUSH_METRIC_DEGRADED  "ingero.node.degradation_warning"
#define PUSH_METRIC_MODE      "ingero.agent.detection_mode"
#define PUSH_METRIC_REACHABLE "ingero.agent.fleet_reachable"
#define PUSH_METRIC_INFO      "ingero.node.info"
#define PUSH_METRIC_WORLD     "ingero.node.world_size"
#define PUSH_METRIC_STRAGGLER "ingero.node.straggler_event"
#define PUSH_METRIC_LAUNCHES  "ingero.node.cuda_kernel_launch_total"
#define PUSH_METRIC_STALL     "ingero.node.cpu_stall_nanos_total"
#define PUSH_METRIC_COPIED    "ingero.node.cuda_memcpy_bytes_total"

/* push_who_put - as attributes of a resource. push_who_get - from them; NULL, or what is wrong. */
void push_who_put(struct otlp_attributes *a, const struct push_who *who);
const char *push_who_get(const struct otlp_attributes *a, struct push_who *ret);

/* push_word_get - the text of attribute @key, "" if it is not there. False: it is longer than @size
 * has room for, or has control characters. */
bool push_word_get(const struct otlp_attributes *a, const char *key, char *ret, size_t size);
/* push_text_get - a sentence: as much as fits, whole characters only. */
void push_text_get(const struct otlp_attributes *a, const char *key, char *ret, size_t size);
/* push_int_get - a whole number, also one in a text; @missing if there is none. */
int64_t push_int_get(const struct otlp_attributes *a, const char *key, int64_t missing);
double push_double_get(const struct otlp_attributes *a, const char *key, double missing);

/* push_report_get - from the record's attributes; who, sent_ns are the caller's. False: not a report. */
bool push_report_get(const struct otlp_record *r, struct push_report *ret);

/* push_reject - counts; the first reason is kept. Returns -EINVAL. */
int push_reject(struct push_taken *t, size_t count, const char *fmt, ...) _printf_(3, 4);
