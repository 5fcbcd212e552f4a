/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_all.c - `ingero-cluster all`: fleet and echo in one process, on the same ports. */
#include "cluster/cli/commands.h"
#include "cluster/cli/echo_run.h"
#include "command/program.h"

struct all_flags {
	struct listen_addresses at;
	struct fleet_flags fleet;
	struct echo_flags echo;
};

static const struct all_flags defaults = {
	.at = {.grpc = "127.0.0.1:4317", .http = "127.0.0.1:4318", .api = "127.0.0.1:8080"},
	.fleet = FLEET_FLAGS_DEFAULTS,
	.echo = ECHO_FLAGS_DEFAULTS,
};

#define OPTION(field) offsetof(struct all_flags, field)
#define FLEET(field)  offsetof(struct all_flags, fleet.field)
#define ECHO(field)   offsetof(struct all_flags, echo.field)
static const struct option_row all_options[] = {
	OPTION_ROW(STRING, "grpc-addr", OPTION(at.grpc), "HOST:PORT",
		"address for OTLP over gRPC (default: 127.0.0.1:4317; '': none)"),
	OPTION_ALIAS(STRING, "otlp-addr", OPTION(at.grpc), "HOST:PORT", "as --grpc-addr"),
	OPTION_ROW(STRING, "http-addr", OPTION(at.http), "HOST:PORT",
		"address for OTLP over HTTP (default: 127.0.0.1:4318; '': none)"),
	OPTION_ROW(STRING, "api-addr", OPTION(at.api), "HOST:PORT",
		"address of the page, the APIs, MCP and /metrics (default: 127.0.0.1:8080; '': none)"),
	OPTION_ALIAS(STRING, "mcp-addr", OPTION(at.api), "HOST:PORT", "as --api-addr"),
	FLEET_FLAGS_OPTIONS(FLEET),
	ECHO_FLAGS_OPTIONS(ECHO),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

static int all_run(
	const struct command *cmd _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	const struct all_flags *f = settings;
	struct echo_run_settings s = {.echo = &f->echo, .fleet = &f->fleet, .at = f->at};
	struct errinfo e = {0};
	int r = echo_run(&s, &e);

	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_all = {
	.name = "all",
	.synopsis = "all [flags]",
	.summary = "Run fleet and echo in one process: find stragglers now, and keep the history",
	.details =
		"Agents push to it as to `fleet`; what they push, and the incidents that are found, are kept as\nby `echo`. One address has the page, the APIs and MCP.\n"
		"  ingero-cluster all                                     this machine only\n"
		"  ingero-cluster all --grpc-addr :4317 --http-addr :4318 --api-addr :8080 \\\n"
		"      --tls-cert cert.pem --tls-key key.pem --bearer-acl-file acl.yaml",
	.options = all_options,
	.settings_size = sizeof(struct all_flags),
	.defaults = &defaults,
	.run = all_run,
};
