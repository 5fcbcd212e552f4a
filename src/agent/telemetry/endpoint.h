/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - where OTLP goes and how: the options of the user, checked. */
#pragma once

#include "base/errinfo.h"
#include "net/client.h"

#define ENDPOINT_FIELDS_MAX 16

enum otlp_protocol { OTLP_HTTP_PROTOBUF, OTLP_HTTP_JSON, OTLP_GRPC };

struct endpoint_options {
	const char *text;     /* host:port, http(s)://host:port[/path], grpc(s)://host:port */
	const char *protocol; /* "http/protobuf", "http/json", "grpc"; NULL: by the scheme */
	bool insecure;        /* in the clear where the text has no scheme */
	bool insecure_far;    /* in the clear to other machines too */
};

struct endpoint {
	enum otlp_protocol protocol;
	struct http_endpoint endpoint;
	char path[512];
	char shown[320]; /* "https://gpu1:4318", for people */
};

/* endpoint_parse - -EINVAL or -EPERM with a sentence. Without a scheme it is TLS unless @insecure;
 * in the clear goes to this machine only, unless @insecure_far. */
int endpoint_parse(const struct endpoint_options *o, struct endpoint *ret, struct errinfo *reterr);
const char *otlp_protocol_name(enum otlp_protocol p);

struct endpoint_fields { /* further fields of each request */
	struct http_field field[ENDPOINT_FIELDS_MAX];
	size_t count;
	char *text; /* holds the names and values */
};
void endpoint_fields_done(struct endpoint_fields *f);

/* endpoint_fields_parse - @text as in OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value", values
 * escaped as in URLs; NULL: none. -EINVAL with a sentence that does not tell the values. */
int endpoint_fields_parse(const char *text, struct endpoint_fields *ret, struct errinfo *reterr);
