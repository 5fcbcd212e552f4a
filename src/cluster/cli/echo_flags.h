/* SPDX-License-Identifier: Apache-2.0 */
/* echo_flags.h - the flags of the cluster's memory, which `echo` and `all` have in common: where rows are kept,
 * for how long, and who may come. */
#pragma once

#include "base/clock.h"
#include "cluster/cli/echo_service.h"
#include "cluster/cli/service_rights.h"
#include "command/option.h"
#include "command/server_access.h"

#define ECHO_TOKEN_VARIABLE "INGERO_TOKEN"

struct echo_flags {
	const char *folder, *engine;
	uint64_t retention_ns, bytes_max, journal_bytes, memory_bytes;
	bool trust_clock;
	struct option_strings clickhouse;
	const char *clickhouse_cluster, *clickhouse_database, *clickhouse_user,
		*clickhouse_password_file, *clickhouse_reader, *clickhouse_reader_password_file;
	bool no_audit;
	const char *health;
	const char *acl, *token_file, *cert, *key, *client_ca;
	bool no_tls, no_token;
	struct option_strings names;
};

#define ECHO_FLAGS_DEFAULTS                                                                        \
	{                                                                                          \
		.engine = "duckdb", .retention_ns = 30 * 86400 * NS_PER_S,                         \
		.journal_bytes = 8ULL << 30, .memory_bytes = 512ULL << 20,                         \
		.clickhouse_database = "ingero", .clickhouse_user = "default"                      \
	}

/* Rows of a table of options; FLAG(field) is the offset of that field of an echo_flags. */
#define ECHO_FLAGS_OPTIONS(FLAG)                                                                                                        \
	{"health-addr", 0, OPTION_STRING, FLAG(health), "HOST:PORT",                                                                    \
		"one more address with only /livez, /readyz and /healthz, plain and open (default: none)",                              \
		0, 0, false},                                                                                                           \
		{"db-path", 0, OPTION_STRING, FLAG(folder), "FOLDER",                                                                   \
			"where rows are kept (default: ~/.ingero/echo; root: /var/lib/ingero-cluster/echo)",                            \
			0, 0, false},                                                                                                   \
		{"engine", 0, OPTION_STRING, FLAG(engine), "NAME",                                                                      \
			"duckdb, in this process, or clickhouse (default: duckdb)", 0, 0, false},                                       \
		{"retention", 0, OPTION_DURATION, FLAG(retention_ns), "TIME",                                                           \
			"remove rows that are older (default: 30d; 0: never)", 0, 0, false},                                            \
		{"max-size", 0, OPTION_SIZE, FLAG(bytes_max), "SIZE",                                                                   \
			"remove the oldest rows beyond this size (default: 0, no limit)", 0, 0,                                         \
			false},                                                                                                         \
		{"trust-clock", 0, OPTION_FLAG, FLAG(trust_clock), NULL,                                                                \
			"let --retention go by this machine's clock at once, also if it has jumped ahead",                              \
			0, 0, false},                                                                                                   \
		{"journal-size", 0, OPTION_SIZE, FLAG(journal_bytes), "SIZE",                                                           \
			"refuse, retryably, what comes while the store lags so far behind (default: 8g)",                               \
			0, 0, false},                                                                                                   \
		{"memory", 0, OPTION_SIZE, FLAG(memory_bytes), "SIZE",                                                                  \
			"memory that DuckDB may use (default: 512m)", 0, 0, false},                                                     \
		{"clickhouse", 0, OPTION_STRINGS, FLAG(clickhouse), "URL",                                                              \
			"a shard of --engine clickhouse: http(s)://host:8123; may be repeated", 0,                                      \
			0, false},                                                                                                      \
		{"clickhouse-cluster", 0, OPTION_STRING, FLAG(clickhouse_cluster), "NAME",                                              \
			"name of the shards in the servers' remote_servers (default: one shard)",                                       \
			0, 0, false},                                                                                                   \
		{"clickhouse-database", 0, OPTION_STRING, FLAG(clickhouse_database), "NAME",                                            \
			"database, made if it is missing (default: ingero)", 0, 0, false},                                              \
		{"clickhouse-user", 0, OPTION_STRING, FLAG(clickhouse_user), "NAME",                                                    \
			"user that writes (default: default)", 0, 0, false},                                                            \
		{"clickhouse-password-file", 0, OPTION_STRING, FLAG(clickhouse_password_file),                                          \
			"FILE", "file with its password (default: none)", 0, 0, false},                                                 \
		{"clickhouse-reader", 0, OPTION_STRING, FLAG(clickhouse_reader), "NAME",                                                \
			"read-only user for SQL of others (default: none, SQL is refused)", 0, 0,                                       \
			false},                                                                                                         \
		{"clickhouse-reader-password-file", 0, OPTION_STRING,                                                                   \
			FLAG(clickhouse_reader_password_file), "FILE",                                                                  \
			"file with its password (default: none)", 0, 0, false},                                                         \
		{"no-audit", 0, OPTION_FLAG, FLAG(no_audit), NULL,                                                                      \
			"keep no log of who asked for what (default: audit.log in the folder)", 0,                                      \
			0, false},                                                                                                      \
		{"bearer-acl-file", 0, OPTION_STRING, FLAG(acl), "PATH",                                                                \
			"YAML or JSON file of tokens, each with the clusters and verbs it is for",                                      \
			0, 0, false},                                                                                                   \
		{"token-file", 0, OPTION_STRING, FLAG(token_file), "PATH",                                                              \
			"require one of the tokens in this file, one per line (default: $" ECHO_TOKEN_VARIABLE                          \
			"; else one is generated, which you and root do not need)",                                                     \
			0, 0, false},                                                                                                   \
		OPTION_REFUSED_SECRET("auth-token", ECHO_TOKEN_VARIABLE),                                                               \
		{"trust-proxy-headers", 0, OPTION_REFUSED, 0, NULL,                                                                     \
			"limits are by token and by the address that connects; put a proxy's own limit before it",                      \
			0, 0, true},                                                                                                    \
		{"auth-token-file", 0, OPTION_STRING, FLAG(token_file), "PATH", "as --token-file",                                      \
			0, 0, true},                                                                                                    \
		{"no-token", 0, OPTION_FLAG, FLAG(no_token), NULL,                                                                      \
			"require no token: any local user can send and read; loopback only", 0, 0,                                      \
			false},                                                                                                         \
		{"tls-cert", 0, OPTION_STRING, FLAG(cert), "PEM",                                                                       \
			"server certificate (default: a self-signed one, kept in ~/.ingero/tls; root: in /var/lib/ingero-cluster/tls)", \
			0, 0, false},                                                                                                   \
		{"tls-key", 0, OPTION_STRING, FLAG(key), "PEM",                                                                         \
			"private key of the certificate, readable only by its owner", 0, 0,                                             \
			false},                                                                                                         \
		{"client-ca", 0, OPTION_STRING, FLAG(client_ca), "PEM",                                                                 \
			"require client certificates signed by this CA (mTLS)", 0, 0, false},                                           \
		{"insecure-no-tls", 0, OPTION_FLAG, FLAG(no_tls), NULL,                                                                 \
			"plain text; loopback only", 0, 0, false},                                                                      \
		{"no-tls", 0, OPTION_FLAG, FLAG(no_tls), NULL, "as --insecure-no-tls", 0, 0,                                            \
			true},                                                                                                          \
		{"allow-host", 0, OPTION_STRINGS, FLAG(names), "NAME",                                                                  \
			"accept this host name too, besides those in --tls-cert; may be repeated",                                      \
			0, 0, false},                                                                                                   \
		OPTION_REFUSED_SECRET("token", ECHO_TOKEN_VARIABLE)

/* echo_flags_access - who may reach @address, the one that most people can reach. */
struct server_access_options echo_flags_access(const struct echo_flags *f, const char *address);

struct tls_server_settings echo_flags_tls(const struct echo_flags *f);

int echo_flags_check(const struct echo_flags *f, const char *address, struct errinfo *reterr);

/* echo_flags_rights - adds the files that are read again while it runs. */
void echo_flags_rights(const struct echo_flags *f, struct service_rights *rights);

struct echo_prepared { /* from flags to settings, with what these point to */
	struct echo_service_settings settings;
	char *folder, *password, *reader_password;
};
void echo_prepared_done(struct echo_prepared *p);
int echo_flags_prepare(
	const struct echo_flags *f, struct echo_prepared *ret, struct errinfo *reterr);
