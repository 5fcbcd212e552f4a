/* SPDX-License-Identifier: Apache-2.0 */
/* otlp_read.h - foreign OTLP requests (metrics, logs and traces, protobuf or JSON) as a walk over their
 * points. Nothing is kept: what a visitor is given is valid during its call. No I/O.
 *
 * A value that makes no sense (NaN where a number is needed is passed on: it is the visitor's to
 * refuse) does not stop the walk; a message that cannot be parsed does, with -EBADMSG. Depth, points
 * and attributes have ceilings: -E2BIG. */
#pragma once

#include "base/errinfo.h"
#include "otlp/otlp_response.h"

#define OTLP_ATTRIBUTES_MAX 64
#define OTLP_POINTS_MAX     100000 /* of a request */

enum otlp_kind { OTLP_NONE, OTLP_TEXT, OTLP_INT, OTLP_DOUBLE, OTLP_BOOL, OTLP_BYTES };

struct otlp_value {
	enum otlp_kind kind;
	const char *text; /* OTLP_TEXT (valid UTF-8, no NUL inside), OTLP_BYTES; not terminated */
	size_t len;
	int64_t i; /* OTLP_INT, OTLP_BOOL */
	double d;
};

struct otlp_attribute {
	const char *key;
	size_t key_len;
	struct otlp_value value;
};

struct otlp_attributes {
	struct otlp_attribute item[OTLP_ATTRIBUTES_MAX];
	size_t count;
};

/* otlp_attribute_get - NULL: not there. */
const struct otlp_value *otlp_attribute_get(const struct otlp_attributes *a, const char *key);

enum otlp_point_kind { OTLP_GAUGE, OTLP_SUM, OTLP_HISTOGRAM, OTLP_OTHER };

struct otlp_point {
	const struct otlp_attributes *resource;
	size_t resource_number; /* counts the resources of the request, so that a new one is seen */
	const char *scope;
	size_t scope_len;
	const char *name;
	size_t name_len;
	const char *unit;
	size_t unit_len;
	enum otlp_point_kind kind;
	bool is_monotonic, is_delta;
	const struct otlp_attributes *attributes;
	uint64_t time_ns, start_ns;
	struct otlp_value value; /* OTLP_INT or OTLP_DOUBLE; of histograms the sum, or OTLP_NONE */
	uint64_t count;          /* of histograms */
};

struct otlp_record { /* of a log */
	const struct otlp_attributes *resource;
	size_t resource_number;
	const char *scope;
	size_t scope_len;
	const struct otlp_attributes *attributes;
	uint64_t time_ns, observed_ns;
	int severity;
	struct otlp_value body;
	const char *event; /* event_name */
	size_t event_len;
};

#define OTLP_TRACE_ID 16
#define OTLP_SPAN_ID  8

struct otlp_span {
	const struct otlp_attributes *resource;
	size_t resource_number;
	const char *scope;
	size_t scope_len;
	const struct otlp_attributes *attributes;
	const char *name;
	size_t name_len;
	uint64_t start_ns, end_ns;
	int kind;   /* OTLP's: 1 internal, 2 server, 3 client, 4 producer, 5 consumer */
	int status; /* 0 not told, 1 well, 2 an error */
	/* One that does not have the right length is zeros, as one that is not told. */
	uint8_t trace[OTLP_TRACE_ID], id[OTLP_SPAN_ID], parent[OTLP_SPAN_ID];
};

struct otlp_visitor { /* one that is NULL is not called: there is nothing of it in the request */
	void *arg;
	/* 0: taken; a negative errno: this one is rejected, and counted; the walk goes on */
	int (*point)(void *arg, const struct otlp_point *p);
	int (*record)(void *arg, const struct otlp_record *r);
	int (*span)(void *arg, const struct otlp_span *s);
};

struct otlp_walk {
	size_t taken, rejected;
};

/* otlp_read - 0; -EBADMSG, -E2BIG or -ENOMEM with a sentence for the sender, *ret untouched. */
int otlp_read(enum otlp_signal signal, bool json, const void *data, size_t len,
	const struct otlp_visitor *v, struct otlp_walk *ret, struct errinfo *reterr);
