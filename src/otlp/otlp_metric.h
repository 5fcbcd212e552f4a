/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_metric.h - a reading of metrics as an ExportMetricsServiceRequest of OTLP 1.x, and what a
 * receiver says to it. No I/O. */
#pragma once

#include "base/buf.h"
#include "model/metric.h"

#define OTLP_RESOURCE_MAX 16

struct otlp_resource {       /* whose metrics these are; a NULL or "" is left out */
	const char *service; /* service.name; NULL: ingero */
	const char *version; /* service.version */
	const char *node;    /* ingero.node.id, and service.instance.id */
	const char *host;    /* host.name */
	const char *cluster; /* ingero.cluster.id */
	struct otlp_resource_row {
		const char *key, *value;
	} more[OTLP_RESOURCE_MAX]; /* the user's; those that stand above are left out */
	size_t more_count;
};

/* What receivers know a sender by: Prometheus's `instance` is the service.instance.id, vendors' hosts are host.name;
 * without them all nodes behind one Collector are one. */
#define OTLP_RESOURCE_ROWS (6 + OTLP_RESOURCE_MAX)

/* otlp_resource_rows - all attributes of @r that are there, each key once. Returns their number. */
size_t otlp_resource_rows(
	const struct otlp_resource *r, struct otlp_resource_row ret[OTLP_RESOURCE_ROWS]);

/* otlp_metric_write - appends the request, as JSON or protobuf. Metrics without an OTLP name are left out. The
 * number of data points is returned; failures stick in @b. */
size_t otlp_metric_write(
	struct buf *b, bool json, const struct metric_set *s, const struct otlp_resource *r);

#define OTLP_MESSAGE_MAX 256

struct otlp_answer {                    /* of an ExportMetricsServiceResponse */
	int64_t rejected;               /* data points that the receiver did not take */
	char message[OTLP_MESSAGE_MAX]; /* why, in its words (cut, UTF-8): foreign text */
};

/* otlp_answer_X - 0, or -EBADMSG if it is not such a response. An empty protobuf is one. */
int otlp_answer_protobuf(const void *data, size_t len, struct otlp_answer *ret);
int otlp_answer_json(const char *text, size_t len, struct otlp_answer *ret);
