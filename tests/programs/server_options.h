/* SPDX-License-Identifier: Apache-2.0 */
/* server_options.h - settings of a server from the command line of a test's program, as key=value: cert,
 * key, client_ca, state_dir (any of them: TLS), token_file, name (repeatable), plain=1, and the limits
 * head_ms, idle_ms, age_ms, linger_ms, handshake_ms, per_peer, total, bodies. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "net/server/server.h"

struct server_options {
	struct http_server_settings server;
	struct tls_server_settings tls;
	struct http_limits limits;
	const char *token_file;
	const char *names[16];
	size_t name_count;
	bool with_tls;
};

static inline bool server_options_text(struct server_options *o, const char *key, const char *value)
{
	if (strcmp(key, "cert") == 0)
		o->tls.cert = value;
	else if (strcmp(key, "key") == 0)
		o->tls.key = value;
	else if (strcmp(key, "client_ca") == 0)
		o->tls.client_ca = value;
	else if (strcmp(key, "state_dir") == 0)
		o->tls.state_dir = value;
	else if (strcmp(key, "token_file") == 0)
		o->token_file = value;
	else if (strcmp(key, "name") == 0 && o->name_count < ARRAY_SIZE(o->names) - 1)
		o->names[o->name_count++] = value;
	else
		return false;
	o->with_tls |= o->tls.cert || o->tls.state_dir;
	return true;
}

static inline bool server_options_number(
	struct server_options *o, const char *key, unsigned long value)
{
	const struct {
		const char *key;
		uint64_t *ns;
	} times[] = {
		{"head_ms", &o->limits.head_ns},
		{"idle_ms", &o->limits.idle_ns},
		{"age_ms", &o->limits.age_ns},
		{"linger_ms", &o->limits.linger_ns},
		{"handshake_ms", &o->limits.handshake_ns},
	};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		if (strcmp(key, times[i].key) == 0) {
			*times[i].ns = value * NS_PER_MS;
			return true;
		}
	}
	if (strcmp(key, "per_peer") == 0)
		o->limits.per_peer = (unsigned)value;
	else if (strcmp(key, "total") == 0)
		o->limits.total = (unsigned)value;
	else if (strcmp(key, "bodies") == 0)
		o->limits.bodies = value;
	else if (strcmp(key, "plain") == 0)
		o->server.plain = value;
	else
		return false;
	return true;
}

/* server_options_read - of @args up to NULL. False: one is not known. */
static inline bool server_options_read(struct server_options *o, char **args)
{
	for (; *args; args++) {
		char *value = strchr(*args, '=');

		if (!value)
			return false;
		*value++ = 0;
		if (!server_options_text(o, *args, value) &&
			!server_options_number(o, *args, strtoul(value, NULL, 10)))
			return false;
	}
	return true;
}

/* server_options_open - TLS and tokens, of the file or @variable; the caller frees both. */
static inline int server_options_open(struct server_options *o, const char *variable,
	struct tls **ret_tls, struct token_set **ret_tokens, struct errinfo *reterr)
{
	int r = 0;

	if (o->with_tls)
		r = tls_server_new(&o->tls, ret_tls, reterr);
	if (r == 0)
		r = token_set_new(o->token_file, variable, ret_tokens, reterr);
	o->server.tls = *ret_tls;
	o->server.tokens = *ret_tokens;
	o->server.names = o->names;
	o->server.limits = &o->limits;
	return r;
}
