/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_write.h - requests of one resource and one scope, in either encoding, from the structs that
 * otlp_read.h gives. No I/O.
 *
 *	otlp_write_begin(&w, &b, true, false, &resource, "ingero.health", "0.10.0");
 *	otlp_write_metric(&w, "ingero.node.world_size", NULL, "1", OTLP_GAUGE);
 *	otlp_write_point(&w, &point);
 *	otlp_write_metric_end(&w);
 *	otlp_write_end(&w);
 *
 * Failures stick in the buffer. Whole numbers are JSON numbers as far as every reader has them
 * exactly (2^53), strings beyond, unless longs_as_text is set; times are strings. */
#pragma once

#include "base/buf.h"
#include "json/writer.h"
#include "otlp/otlp_read.h"

struct otlp_writer {
	struct buf *b;
	bool is_json;
	bool longs_as_text; /* in JSON all whole numbers of 64 bits are texts */
	struct json_writer json;
	size_t marks[8]; /* protobuf: of the messages that are open */
	unsigned depth;
};

void otlp_write_begin(struct otlp_writer *w, struct buf *b, bool json, bool logs,
	const struct otlp_attributes *resource, const char *scope,
	const char *version); /* NULL: not told */
void otlp_write_end(struct otlp_writer *w);

/* otlp_write_metric - a gauge, a sum (then cumulative and monotonic) or a histogram (cumulative); its points
 * follow. @description may be NULL. */
void otlp_write_metric(struct otlp_writer *w, const char *name, const char *description,
	const char *unit, enum otlp_point_kind kind);
/* otlp_write_point - its attributes (NULL: none), times (a start of 0: none) and value. */
void otlp_write_point(struct otlp_writer *w, const struct otlp_point *p);
/* otlp_write_histogram - likewise, its value is @h. */
struct otlp_histogram {
	uint64_t count;
	double sum, min, max;    /* extremes only if count > 0 */
	const uint64_t *buckets; /* one more than bounds */
	const double *bounds;
	size_t bound_count;
};
void otlp_write_histogram(
	struct otlp_writer *w, const struct otlp_point *p, const struct otlp_histogram *h);
void otlp_write_metric_end(struct otlp_writer *w);

/* otlp_write_record - a body of bytes only as protobuf. */
void otlp_write_record(struct otlp_writer *w, const struct otlp_record *r);

/* otlp_write_span - only as protobuf, in a request that is begun as one of metrics: its messages nest
 * alike. @event may be NULL. */
struct otlp_span_event {
	const char *name;
	uint64_t time_ns;
	const struct otlp_attributes *attributes;
};
void otlp_write_span(
	struct otlp_writer *w, const struct otlp_span *s, const struct otlp_span_event *event);

/* otlp_put_X - appends an attribute; one beyond the ceiling is left out. */
void otlp_put_text(struct otlp_attributes *a, const char *key, const char *text);
void otlp_put_int(struct otlp_attributes *a, const char *key, int64_t v);
void otlp_put_double(struct otlp_attributes *a, const char *key, double v);
