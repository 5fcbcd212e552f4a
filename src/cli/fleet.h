/* SPDX-License-Identifier: Apache-2.0 */
/* fleet.h - the flags by which commands ask other nodes, and what such commands have in common.
 *
 * Nodes come from --nodes, or if neither it nor --db is given from fleet.nodes of ingero.yaml.
 * `--nodes ''` asks nobody. */
#pragma once

#include "fanout/fanout.h"
#include "command/config_file.h"
#include "command/option.h"

struct fleet_options {
	struct option_strings nodes;
	uint64_t timeout_ns; /* 0: not given */
	uint64_t usual_ns;   /* if ingero.yaml has none either; 0: FANOUT_TIMEOUT_NS */
	uint64_t skew_ns;    /* CONFIG_UNSET: not given */
	const char *ca_cert, *client_cert, *client_key, *token_file;
	struct option_strings fingerprints;
	bool no_tls, require_tls, first_use;
};

#define FLEET_OPTIONS_INIT                                                                         \
	{                                                                                          \
		.skew_ns = CONFIG_UNSET, .require_tls = true                                       \
	}

/* The rows of a command's option table for the field @wish of its struct @settings. --timeout is
 * the command's own. */
/* clang-format off */
#define FLEET_OPTIONS(settings, options) \
	OPTION_ROW(STRINGS, "nodes", offsetof(settings, options.nodes), "LIST", \
		"query these nodes instead: gpu-1:8080,gpu-2:8080; may be repeated (default: fleet.nodes in ingero.yaml)"), \
	OPTION_ROW(STRING, "ca-cert", offsetof(settings, options.ca_cert), "FILE", \
		"nodes: CA certificates to trust (default: the system's)"), \
	OPTION_ROW(STRING, "client-cert", offsetof(settings, options.client_cert), "FILE", \
		"nodes: client certificate (mTLS)"), \
	OPTION_ROW(STRING, "client-key", offsetof(settings, options.client_key), "FILE", \
		"nodes: private key of the client certificate"), \
	OPTION_ROW(STRINGS, "fingerprint", offsetof(settings, options.fingerprints), "[NODE=]HEX", \
		"nodes: trust only this SHA-256, of NODE or of any; may be repeated"), \
	OPTION_ROW(FLAG, "trust-on-first-use", offsetof(settings, options.first_use), NULL, \
		"nodes: trust unknown certificates, and remember them in ~/.ingero/known_nodes"), \
	OPTION_ROW(STRING, "token-file", offsetof(settings, options.token_file), "FILE", \
		"nodes: file with the bearer token (default: $INGERO_FLEET_TOKEN)"), \
	OPTION_ROW(DURATION, "clock-skew-threshold", offsetof(settings, options.skew_ns), "TIME", \
		"nodes: warn if clocks differ by more (default: 10ms)"), \
	OPTION_ROW(FLAG, "no-tls", offsetof(settings, options.no_tls), NULL, \
		"nodes: use plain HTTP"), \
	OPTION_ROW(FLAG, "fleet-require-tls", offsetof(settings, options.require_tls), NULL, \
		"nodes: refuse plain HTTP to other machines (default: true)")
/* clang-format on */

struct fleet {
	struct config *config;
	struct loop *loop;
	struct fanout *fanout; /* NULL: no nodes are meant, read a recording */
	char *bearer, *known;
	size_t node_count;
	bool from_config; /* the nodes are those of ingero.yaml */
};
void fleet_done(struct fleet *f);

/* fleet_open - reads ingero.yaml and gets ready to ask. @db is --db: with it, only --nodes counts,
 * and both together are an error. */
int fleet_open(
	const struct fleet_options *w, const char *db, struct fleet *ret, struct errinfo *reterr);

/* fleet_ask - asks, with a line on a terminal while it takes long. Nodes that nobody knows are shown to
 * the user, who may trust them; then all are asked again. */
int fleet_ask(struct fleet *f, const struct fanout_question *q, struct fanout_result *ret,
	struct errinfo *reterr);

/* fleet_print - prints the warnings of @r on stderr; if no node answered, also why. The exit code:
 * see fanout_verdict(). */
int fleet_print(const struct fanout_result *r);
