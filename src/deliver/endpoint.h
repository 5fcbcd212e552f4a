/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - where OTLP goes and how: the options of the user, checked. */
#pragma once

#include "base/errinfo.h"
#include "net/client/client.h"
#include "otlp/otlp_response.h"

#define ENDPOINT_FIELDS_MAX 16

enum otlp_protocol { OTLP_HTTP_PROTOBUF, OTLP_HTTP_JSON, OTLP_GRPC };

struct endpoint_options {
	const char *name;     /* of the option, in sentences; NULL: "--otlp" */
	const char *text;     /* host:port, http(s)://host:port[/path], grpc(s)://host:port */
	const char *protocol; /* "http/protobuf", "http/json", "grpc"; NULL: by the scheme */
	bool insecure;        /* in the clear where the text has no scheme */
	bool insecure_far;    /* in the clear to other machines too */
	const char
		*far_name; /* of the option that says so; NULL: name-insecure-allow-non-loopback */
};

struct endpoint {
	enum otlp_protocol protocol;
	struct http_endpoint endpoint;
	char path[OTLP_SIGNAL_COUNT][512]; /* where requests of each signal go */
	char shown[320];                   /* "https://gpu1:4318", for people */
};

/* endpoint_parse - -EINVAL or -EPERM with a sentence. Without a scheme it is TLS unless @insecure;
 * in the clear goes to this machine only, unless @insecure_far. */
int endpoint_parse(const struct endpoint_options *o, struct endpoint *ret, struct errinfo *reterr);
const char *otlp_protocol_name(enum otlp_protocol p);

/* endpoint_show - "https://gpu1:4318", for people. endpoint_is_near - whether it is this machine. */
#define ENDPOINT_SHOWN_MAX 320
const char *endpoint_show(const struct http_endpoint *e, char out[ENDPOINT_SHOWN_MAX]);
bool endpoint_is_near(const struct http_endpoint *e);

struct endpoint_fields { /* further fields of each request */
	struct http_field field[ENDPOINT_FIELDS_MAX];
	size_t count;
	char *text; /* holds the names and values */
};
void endpoint_fields_done(struct endpoint_fields *f);

/* endpoint_fields_parse - @text as in OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value", values
 * escaped as in URLs; NULL: none. -EINVAL with a sentence that tells @source, where the text came
 * from, and not the values. */
int endpoint_fields_parse(
	const char *text, const char *source, struct endpoint_fields *ret, struct errinfo *reterr);
