/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus.h - a reading of metrics in Prometheus's text format, version 0.0.4.
 *
 * OpenMetrics is not offered: the published names include counters without _total beside ones with
 * it, which that format forbids, and a Prometheus that is offered it takes nothing else. */
#pragma once

#include "base/buf.h"
#include "model/metric.h"

#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* prometheus_text - append the text. Metrics without a Prometheus name are left out. Failures stick
 * in @b. */
void prometheus_text(struct buf *b, const struct metric_set *s);

/* prometheus_escape - append @s, which is UTF-8, as the value of a label, between its quotes. */
void prometheus_escape(struct buf *b, const char *s);
