/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fleet.c - `ingero-cluster fleet`: which rank makes the others wait. */
#include "cluster/cli/commands.h"
#include "cluster/cli/services.h"

struct fleet_typed { /* the flags */
	struct listen_addresses at;
	struct fleet_flags core;
	struct access_flags access;
};

static const struct fleet_typed defaults = {
	.at = {.grpc = "127.0.0.1:4317", .http = "127.0.0.1:4318", .api = "127.0.0.1:8080"},
	.core = FLEET_FLAGS_DEFAULTS,
};

#define OPTION(field) offsetof(struct fleet_typed, field)
#define CORE(field)   offsetof(struct fleet_typed, core.field)
static const struct option_row fleet_options[] = {
	OPTION_ROW(STRING, "grpc-addr", OPTION(at.grpc), "HOST:PORT",
		"address for OTLP over gRPC (default: 127.0.0.1:4317; '': none)"),
	OPTION_ROW(STRING, "http-addr", OPTION(at.http), "HOST:PORT",
		"address for OTLP over HTTP (default: 127.0.0.1:4318; '': none)"),
	OPTION_ROW(STRING, "api-addr", OPTION(at.api), "HOST:PORT",
		"address of the API, the page and /metrics (default: 127.0.0.1:8080; '': none)"),
	FLEET_FLAGS_OPTIONS(CORE),
	OPTION_ROW(STRING, "tls-cert", OPTION(access.cert), "PEM",
		"server certificate (default: none, plain on loopback)"),
	OPTION_ROW(STRING, "tls-key", OPTION(access.key), "PEM",
		"private key of the certificate, readable only by its owner"),
	OPTION_ROW(STRING, "client-ca", OPTION(access.client_ca), "PEM",
		"require client certificates signed by this CA (mTLS)"),
	OPTION_ROW(FLAG, "no-tls", OPTION(access.no_tls), NULL,
		"no TLS beyond loopback either: traffic can be read and changed on the way"),
	OPTION_ROW(STRING, "token-file", OPTION(access.token_file), "PATH",
		"require one of the tokens in this file, one per line (default: $" TOKEN_VARIABLE
		"; else one is generated; you and root need none)"),
	OPTION_ROW(FLAG, "no-token", OPTION(access.no_token), NULL,
		"require no token: any local user can push and read; loopback only"),
	OPTION_ROW(STRINGS, "allow-host", OPTION(access.names), "NAME",
		"accept this host name too, besides those in --tls-cert; may be repeated"),
	OPTION_REFUSED_SECRET("token", TOKEN_VARIABLE),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

static int fleet_run(
	const struct command *cmd _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	const struct fleet_typed *t = settings;

	return services_run(
		&(struct services_settings){.fleet = &t->core, .access = &t->access, .at = t->at});
}

const struct command cmd_fleet = {
	.name = "fleet",
	.synopsis = "fleet [flags]",
	.summary = "Listen to all agents of a cluster and find the rank that makes the others wait",
	.details =
		"Agents push with `ingero fleet-push`; OpenTelemetry's exporters may push too. Stops on\nCtrl-C or SIGTERM; SIGHUP reloads certificates, tokens and rates.\n"
		"  ingero-cluster fleet                                   this machine only\n"
		"  ingero-cluster fleet --grpc-addr :4317 --http-addr :4318 --api-addr :8080 \\\n"
		"      --tls-cert cert.pem --tls-key key.pem --token-file tokens\n"
		"  ingero-cluster blame                                   which rank is it?",
	.options = fleet_options,
	.settings_size = sizeof(struct fleet_typed),
	.defaults = &defaults,
	.run = fleet_run,
};
