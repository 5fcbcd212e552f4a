/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_fields.h - field numbers of OTLP's published messages, which never change: collector, metrics,
 * logs, trace, resource and common, v1. Fields that nobody here writes or reads are left out. */
#pragma once

/* Messages of metrics, logs and traces nest alike: request, resource, scope, item. */
enum { REQUEST_RESOURCES = 1 };
enum { RESOURCE_ITEM_RESOURCE = 1, RESOURCE_ITEM_SCOPES = 2 };
enum { SCOPE_ITEM_SCOPE = 1, SCOPE_ITEM_ITEMS = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_NAME = 1, SCOPE_VERSION = 2 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 };
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_BYTES = 7 };

enum {
	METRIC_NAME = 1,
	METRIC_DESCRIPTION = 2,
	METRIC_UNIT = 3,
	METRIC_DATA_GAUGE = 5,
	METRIC_DATA_SUM = 7,
	METRIC_DATA_HISTOGRAM = 9,
	METRIC_DATA_EXPONENTIAL = 10,
	METRIC_DATA_SUMMARY = 11,
};
enum { DATA_POINTS = 1, DATA_TEMPORALITY = 2, DATA_MONOTONIC = 3 };
enum { TEMPORALITY_DELTA = 1, TEMPORALITY_CUMULATIVE = 2 };
enum { POINT_START = 2, POINT_TIME = 3 };
enum { NUMBER_DOUBLE = 4, NUMBER_INT = 6, NUMBER_ATTRIBUTES = 7 };
enum { /* of summaries and exponential ones too, but for the attributes */
	HISTOGRAM_COUNT = 4,
	HISTOGRAM_SUM = 5,
	HISTOGRAM_BUCKETS = 6,
	HISTOGRAM_BOUNDS = 7,
	HISTOGRAM_ATTRIBUTES = 9,
	HISTOGRAM_MIN = 11,
	HISTOGRAM_MAX = 12,
};
enum { EXPONENTIAL_ATTRIBUTES = 1, SUMMARY_ATTRIBUTES = 7 };

enum {
	RECORD_TIME = 1,
	RECORD_SEVERITY = 2,
	RECORD_BODY = 5,
	RECORD_ATTRIBUTES = 6,
	RECORD_OBSERVED = 11,
	RECORD_EVENT = 12,
};

enum {
	SPAN_TRACE = 1,
	SPAN_ID = 2,
	SPAN_PARENT = 4,
	SPAN_NAME = 5,
	SPAN_KIND = 6,
	SPAN_START = 7,
	SPAN_END = 8,
	SPAN_ATTRIBUTES = 9,
	SPAN_EVENTS = 11,
	SPAN_STATUS = 15,
};
enum { SPAN_EVENT_TIME = 1, SPAN_EVENT_NAME = 2, SPAN_EVENT_ATTRIBUTES = 3 };
enum { STATUS_CODE = 3 };
