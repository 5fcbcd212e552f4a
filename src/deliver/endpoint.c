/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c - see endpoint.h. */
#include "deliver/endpoint.h"

#include <ctype.h>

#include "net/address.h"
#include "net/server/server.h"

#define HTTP_PORT 4318
#define GRPC_PORT 4317

static const struct {
	const char *http, *grpc;
} signals[] = {
#define X(NAME, id, service, ...) {OTLP_HTTP_PATH(id), OTLP_GRPC_PATH(service)},
	OTLP_SIGNALS(X)
#undef X
};

static const char *const protocols[] = {[OTLP_HTTP_PROTOBUF] = "http/protobuf",
	[OTLP_HTTP_JSON] = "http/json",
	[OTLP_GRPC] = "grpc"};

const char *otlp_protocol_name(enum otlp_protocol p)
{
	return protocols[p];
}

static const char *option_of(const struct endpoint_options *o)
{
	return o->name ? o->name : "--otlp";
}

static const struct scheme {
	const char *prefix;
	bool tls, is_grpc;
} schemes[] = {
	{"http://", false, false},
	{"https://", true, false},
	{"grpc://", false, true},
	{"grpcs://", true, true},
};

static int protocol_choose(const struct endpoint_options *o, const struct scheme *scheme,
	enum otlp_protocol *ret, struct errinfo *reterr)
{
	*ret = scheme && scheme->is_grpc ? OTLP_GRPC : OTLP_HTTP_PROTOBUF;
	if (!o->protocol)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
		if (!strcmp(o->protocol, protocols[i])) {
			if (scheme && scheme->is_grpc && i != OTLP_GRPC)
				break;
			*ret = (enum otlp_protocol)i;
			return 0;
		}
	return errinfo_set(reterr, -EINVAL,
		scheme && scheme->is_grpc
			? "%s-protocol %s cannot be combined with a grpc:// endpoint"
			: "%s-protocol %s: choose http/protobuf, http/json or grpc",
		option_of(o), o->protocol);
}

/* What stands before "/v1/metrics", which may be there already, or another signal's. */
static size_t path_begin(const char *path)
{
	size_t len = strlen(path);

	while (len && path[len - 1] == '/')
		len--;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		size_t end = strlen(signals[i].http);

		if (len >= end && !strncmp(path + len - end, signals[i].http, end))
			return len - end;
	}
	return len;
}

static int path_set(const struct endpoint_options *o, struct endpoint *e, const char *path,
	struct errinfo *reterr)
{
	size_t len = path_begin(path);

	for (const char *c = path; *c; c++)
		if (*c <= ' ' || *c > '~')
			return errinfo_set(reterr, -EINVAL,
				"%s: the path has characters that must be escaped as %%XX",
				option_of(o));
	if (e->protocol == OTLP_GRPC && strlen(path) > 1)
		return errinfo_set(reterr, -EINVAL,
			"%s: a gRPC endpoint cannot have a path: %.200s", option_of(o), path);
	if (len > sizeof(e->path[0]) - 32)
		return errinfo_set(reterr, -EINVAL, "%s: the path is too long", option_of(o));
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (e->protocol == OTLP_GRPC)
			snprintf(e->path[i], sizeof(e->path[i]), "%s", signals[i].grpc);
		else
			snprintf(e->path[i], sizeof(e->path[i]), "%.*s%s", (int)len, path,
				signals[i].http);
	return 0;
}

const char *endpoint_show(const struct http_endpoint *e, char out[ENDPOINT_SHOWN_MAX])
{
	snprintf(out, ENDPOINT_SHOWN_MAX, strchr(e->host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
		e->tls ? "https" : "http", e->host, e->port);
	return out;
}

bool endpoint_is_near(const struct http_endpoint *e)
{
	char shown[ENDPOINT_SHOWN_MAX];

	return address_text_is_loopback(strstr(endpoint_show(e, shown), "://") + 3);
}

static int plain_check(
	const struct endpoint_options *o, const struct endpoint *e, struct errinfo *reterr)
{
	if (e->endpoint.tls || o->insecure_far || endpoint_is_near(&e->endpoint))
		return 0;
	return errinfo_set_exit(reterr, EXIT_USAGE, -EPERM,
		"%s %s: traffic would not be encrypted; use https, or add %s%s", option_of(o),
		o->text, o->far_name ? o->far_name : option_of(o),
		o->far_name ? "" : "-insecure-allow-non-loopback");
}

int endpoint_parse(const struct endpoint_options *o, struct endpoint *ret, struct errinfo *reterr)
{
	const struct scheme *scheme = NULL;
	const char *rest = o->text, *path;
	struct endpoint e = {0};
	char authority[300];
	bool tls;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(schemes) && !scheme; i++)
		if (!strncasecmp(o->text, schemes[i].prefix, strlen(schemes[i].prefix))) {
			scheme = &schemes[i];
			rest += strlen(scheme->prefix);
		}
	if (!scheme && strstr(o->text, "://"))
		return errinfo_set(reterr, -EINVAL,
			"%s %.100s: an endpoint must begin with http://, https://, grpc://, grpcs:// or a host name",
			option_of(o), o->text);
	tls = scheme ? scheme->tls : !o->insecure;
	path = rest + strcspn(rest, "/");
	if ((size_t)(path - rest) >= sizeof(authority))
		return errinfo_set(reterr, -EINVAL, "%s: the host name is too long", option_of(o));
	snprintf(authority, sizeof(authority), "%.*s", (int)(path - rest), rest);
	r = protocol_choose(o, scheme, &e.protocol, reterr);
	r = r
		    ?: http_endpoint_parse(authority, tls,
			       e.protocol == OTLP_GRPC ? GRPC_PORT : HTTP_PORT, &e.endpoint,
			       reterr);
	r = r ?: path_set(o, &e, path, reterr);
	r = r ?: plain_check(o, &e, reterr);
	if (r < 0)
		return r;
	endpoint_show(&e.endpoint, e.shown);
	*ret = e;
	return 0;
}

/* ---- further fields ---- */

void endpoint_fields_done(struct endpoint_fields *f)
{
	free(f->text);
	*f = (struct endpoint_fields){0};
}

/* Removes blanks around @s, in place. */
static char *trim(char *s)
{
	size_t len;

	while (*s == ' ' || *s == '\t')
		s++;
	for (len = strlen(s); len && (s[len - 1] == ' ' || s[len - 1] == '\t'); len--)
		s[len - 1] = 0;
	return s;
}

static bool name_is_good(char *name)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (char *c = name; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr(others, *c))
			return false;
		*c = (char)tolower((unsigned char)*c);
	}
	return *name;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes %XX in place; false for a bad escape, or a byte that no field may hold. */
static bool value_decode(char *value)
{
	char *to = value;

	for (const char *c = value; *c; to++) {
		int high = *c == '%' ? hex_digit(c[1]) : 0, low = 0;

		if (*c == '%') {
			low = high < 0 ? -1 : hex_digit(c[2]);
			if (low < 0)
				return false;
			*to = (char)(high * 16 + low);
			c += 3;
		} else {
			*to = *c++;
		}
		if ((unsigned char)*to < ' ' || *to == 0x7f)
			return false;
	}
	*to = 0;
	return true;
}

int endpoint_fields_parse(
	const char *text, const char *source, struct endpoint_fields *ret, struct errinfo *reterr)
{
	struct endpoint_fields f = {0};
	char *rest, *pair;
	int r = 0;

	f.text = text ? strdup(text) : NULL;
	if (text && !f.text)
		return -ENOMEM;
	for (rest = f.text; r == 0 && rest && (pair = strsep(&rest, ","));) {
		char *value = strchr(pair, '=');

		if (!value && !*trim(pair))
			continue; /* a comma at the end */
		if (value)
			*value++ = 0;
		if (!value || !name_is_good(pair = trim(pair)) ||
			!value_decode(value = trim(value)))
			r = errinfo_set(reterr, -EINVAL,
				"%s: pair %zu is not name=value with the value escaped as in URLs",
				source, f.count + 1);
		else if (f.count == ENDPOINT_FIELDS_MAX)
			r = errinfo_set(reterr, -EINVAL, "%s: more than %d pairs", source,
				ENDPOINT_FIELDS_MAX);
		else
			f.field[f.count++] = (struct http_field){pair, value};
	}
	if (r < 0) {
		endpoint_fields_done(&f);
		return r;
	}
	*ret = f;
	return 0;
}
