/* SPDX-License-Identifier: Apache-2.0 */
/* allow.c - see allow.h. Comparisons are exact but for the case of letters: no suffixes, no
 * patterns (but those of a certificate), no trailing dot. */
#include "net/server/allow.h"

#include <limits.h>
#include <strings.h>

#define NAMES_MAX  64
#define HOST_BYTES 256 /* a name of DNS has at most 253 */

struct allow {
	struct allow_settings settings;
	char *names[NAMES_MAX];
	size_t count;
};

struct authority { /* "name:port", "[::1]" */
	char name[HOST_BYTES];
	int port; /* -1: not there */
};

static int authority_parse(const char *text, struct authority *ret)
{
	size_t len = strlen(text), name_len;
	const char *colon;

	if (text[0] == '[') {
		const char *close = strchr(text, ']');

		if (!close)
			return -EINVAL;
		name_len = (size_t)(close - text) - 1;
		text++;
		colon = close + 1;
	} else {
		name_len = strcspn(text, ":");
		colon = text + name_len;
	}
	if (name_len == 0 || name_len >= sizeof(ret->name) || (*colon && *colon != ':'))
		return -EINVAL;
	ret->port = -1;
	if (*colon == ':') {
		len = strlen(++colon);
		if (len == 0 || len > 5 || strspn(colon, "0123456789") != len)
			return -EINVAL;
		ret->port = atoi(colon);
	}
	memcpy(ret->name, text, name_len);
	ret->name[name_len] = 0;
	return 0;
}

static int add_name(struct allow *a, const char *name, struct errinfo *reterr)
{
	const char *host = strstr(name, "://");
	struct authority parsed;
	union address number;

	if (a->count == NAMES_MAX)
		return errinfo_set(reterr, -E2BIG, "too many allowed names: at most %d", NAMES_MAX);
	if (authority_parse(host ? host + 3 : name, &parsed) < 0 &&
		address_parse_host(name, &number) < 0)
		return errinfo_set(reterr, -EINVAL,
			"'%.64s' is not a valid host name: give gpu1, gpu1:9443 or https://gpu.example",
			name);
	a->names[a->count] = strdup(name);
	if (!a->names[a->count])
		return -ENOMEM;
	a->count++;
	return 0;
}

/* The machine's own name, whole and up to its first dot. */
static int add_own_names(struct allow *a)
{
	char name[HOST_NAME_MAX + 1] = "";
	size_t dot;

	if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
		return 0;
	dot = strcspn(name, ".");
	if (add_name(a, name, NULL) == -ENOMEM)
		return -ENOMEM;
	if (!name[dot])
		return 0;
	name[dot] = 0;
	return add_name(a, name, NULL) == -ENOMEM ? -ENOMEM : 0;
}

int allow_new(const struct allow_settings *s, struct allow **ret, struct errinfo *reterr)
{
	_cleanup_(allow_freep) struct allow *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->settings = *s;
	a->settings.names = NULL;
	for (size_t i = 0; s->names && s->names[i]; i++) {
		r = add_name(a, s->names[i], reterr);
		if (r < 0)
			return r;
	}
	if (s->beyond_loopback) {
		r = add_own_names(a);
		if (r < 0)
			return r;
	}
	*ret = TAKE(a);
	return 0;
}

void allow_free(struct allow *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->names[i]);
	free(a);
}

/* knows - whether @name is one of this server's own, on the port it listens on. */
static bool knows(const struct allow *a, const char *name, const union address *local)
{
	static const char *const loopback[] = {"localhost", "127.0.0.1", "::1"};
	union address number;

	if (EXISTS(i, ARRAY_SIZE(loopback), strcasecmp(name, loopback[i]) == 0))
		return true;
	if (EXISTS(i, a->count, strcasecmp(name, a->names[i]) == 0))
		return true;
	if (a->settings.named_by && tls_has_name(a->settings.named_by, name))
		return true;
	/* A number cannot be made to mean another machine, unlike a name. */
	return local && address_parse_host(name, &number) == 0 &&
	       address_host_equal(&number, local);
}

/* names_exactly - whether @text is a configured "name:port", or the host of a configured origin. */
static bool names_exactly(const struct allow *a, const char *text)
{
	for (size_t i = 0; i < a->count; i++) {
		const char *host = strstr(a->names[i], "://");

		if (strcasecmp(text, host ? host + 3 : a->names[i]) == 0)
			return true;
	}
	return false;
}

bool allow_host(const struct allow *a, const char *host, const union address *local)
{
	struct authority parsed;

	if (authority_parse(host, &parsed) < 0)
		return false;
	if ((parsed.port < 0 || parsed.port == a->settings.port) && knows(a, parsed.name, local))
		return true;
	return names_exactly(a, host);
}

bool allow_origin(const struct allow *a, const char *origin, const union address *local)
{
	const char *scheme = a->settings.tls ? "https://" : "http://";
	struct authority parsed;

	if (EXISTS(i, a->count, strstr(a->names[i], "://") && strcasecmp(origin, a->names[i]) == 0))
		return true;
	if (strncasecmp(origin, scheme, strlen(scheme)) != 0)
		return false;
	origin += strlen(scheme);
	if (authority_parse(origin, &parsed) < 0)
		return false;
	if (EXISTS(i, a->count, parsed.port >= 0 && strcasecmp(origin, a->names[i]) == 0))
		return true;
	if (parsed.port < 0)
		parsed.port = a->settings.tls ? 443 : 80;
	return parsed.port == a->settings.port && knows(a, parsed.name, local);
}
