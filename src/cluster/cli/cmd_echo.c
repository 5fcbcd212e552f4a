/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_echo.c - `ingero-cluster echo`: the cluster's memory as a service; and backup, verify, repair, restore and export
 * of its store. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cluster/cli/commands.h"
#include "cluster/cli/echo_files.h"
#include "cluster/cli/echo_run.h"
#include "command/dispatch.h"

struct echo_typed {
	struct listen_addresses at;
	const char *cluster;
	struct echo_flags echo;
};

static const struct echo_typed defaults = {
	.at = {.grpc = "127.0.0.1:4317", .http = "127.0.0.1:4318", .api = "127.0.0.1:8081"},
	.echo = ECHO_FLAGS_DEFAULTS,
};

#define OPTION(field) offsetof(struct echo_typed, field)
#define ECHO(field)   offsetof(struct echo_typed, echo.field)
static const struct option_row echo_options[] = {
	{"otlp-addr", 0, OPTION_STRING, OPTION(at.grpc), "HOST:PORT",
		"address for OTLP over gRPC (default: 127.0.0.1:4317; '': none)", 0, 0, false},
	{"grpc-addr", 0, OPTION_STRING, OPTION(at.grpc), "HOST:PORT", "as --otlp-addr", 0, 0, true},
	{"http-addr", 0, OPTION_STRING, OPTION(at.http), "HOST:PORT",
		"address for OTLP over HTTP (default: 127.0.0.1:4318; '': none)", 0, 0, false},
	{"mcp-addr", 0, OPTION_STRING, OPTION(at.api), "HOST:PORT",
		"address of MCP, the API and /metrics (default: 127.0.0.1:8081; '': none)", 0, 0,
		false},
	{"api-addr", 0, OPTION_STRING, OPTION(at.api), "HOST:PORT", "as --mcp-addr", 0, 0, true},
	ECHO_FLAGS_OPTIONS(ECHO),
	{"cluster-id", 0, OPTION_STRING, OPTION(cluster), "NAME",
		"of `export`: only this cluster (default: all)", 0, 0, false},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

static int serve(const struct echo_typed *t, struct errinfo *reterr)
{
	struct echo_run_settings s = {.echo = &t->echo, .at = t->at};

	return echo_run(&s, reterr);
}

/* The words behind the command, and how many each needs. */
static int do_files(const struct echo_typed *t, int argc, char **argv, struct errinfo *reterr)
{
	static const struct {
		const char *word, *rest;
		int least, most;
	} rows[] = {{"serve", "", 0, 0}, {"backup", "FOLDER", 1, 1}, {"verify", "FOLDER", 1, 1},
		{"restore", "BACKUP FOLDER", 2, 2}, {"export", "TABLE FILE", 2, 2},
		{"repair", "FOLDER [BACKUP]", 1, 2}};
	size_t i = 0;

	while (i < ARRAY_SIZE(rows) && strcmp(rows[i].word, argv[0]) != 0)
		i++;
	if (i == ARRAY_SIZE(rows))
		return errinfo_set(reterr, -EINVAL,
			"echo %.60s: say backup, verify, repair, restore or export, or nothing to start the service",
			argv[0]);
	if (argc - 1 < rows[i].least || argc - 1 > rows[i].most)
		return errinfo_set(
			reterr, -EINVAL, "usage: echo %s %s", rows[i].word, rows[i].rest);
	switch (i) {
	case 0: return serve(t, reterr);
	case 1: return echo_files_backup(&t->echo, argv[1], reterr);
	case 2: return echo_files_verify(argv[1], reterr);
	case 3: return echo_files_restore(argv[1], argv[2], reterr);
	case 5: return echo_files_repair(&t->echo, argv[1], argc > 2 ? argv[2] : NULL, reterr);
	default: return echo_files_export(&t->echo, t->cluster, argv[1], argv[2], reterr);
	}
}

static int echo_command(const struct command *cmd _unused_, void *settings, int argc, char **argv)
{
	const struct echo_typed *t = settings;
	struct errinfo e = {0};
	int r = argc ? do_files(t, argc, argv, &e) : serve(t, &e);

	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_echo = {
	.name = "echo",
	.synopsis = "echo [backup|verify|repair|restore|export …] [flags]",
	.summary =
		"Keep what agents and exporters send, and answer people, programs and assistants",
	.details =
		"Takes OTLP (metrics, logs, traces) and keeps it in DuckDB or ClickHouse; answers over MCP and\nHTTP. What is acknowledged is on disk. Stops on Ctrl-C or SIGTERM; SIGHUP reloads tokens and\ncertificates.\n"
		"  ingero-cluster echo                                    this machine only\n"
		"  ingero-cluster echo --otlp-addr :4317 --http-addr :4318 --mcp-addr :8081 \\\n"
		"      --tls-cert cert.pem --tls-key key.pem --bearer-acl-file acl.yaml --db-path /var/lib/echo\n"
		"  ingero-cluster echo backup FOLDER                      also while the service runs\n"
		"  ingero-cluster echo verify FOLDER                      a backup, or a store that nobody has open\n"
		"  ingero-cluster echo repair FOLDER [BACKUP]             brings back what they still have\n"
		"  ingero-cluster echo restore BACKUP FOLDER              into a new folder\n"
		"  ingero-cluster echo export events events.parquet --cluster-id prod-a",
	.options = echo_options,
	.settings_size = sizeof(struct echo_typed),
	.defaults = &defaults,
	.max_args = 3,
	.run = echo_command,
};
