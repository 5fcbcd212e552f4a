/* SPDX-License-Identifier: Apache-2.0 */
/* flags.h - the flags that `fleet`, `echo` and `all` have in common: addresses, the fleet's core, the cluster's memory:
 * where rows are kept, for how long, and who may come. */
#pragma once

#include "base/clock.h"
#include "cluster/cli/echo_service.h"
#include "command/option.h"
#include "command/server_access.h"

/* ---- addresses, as they were typed ---- */

struct listen_addresses { /* "" or NULL: not opened */
	const char *grpc, *http, *api;
};

/* listen_address - NULL: this port is not wanted. */
const char *listen_address(const char *typed);

bool listen_address_any(const struct listen_addresses *a); /* one is wanted */

bool listen_address_any_low(
	const struct listen_addresses *a); /* one has a port that only root may open */

/* listen_address_widest - the one that most people can reach: its needs are those of all. */
const char *listen_address_widest(const struct listen_addresses *a);

/* clang-format off */
#define LISTEN_DEFAULTS(address) {.grpc = "127.0.0.1:4317", .http = "127.0.0.1:4318", .api = address}

/* Rows of a table of options; AT(field) is the offset of that field of a listen_addresses. */
#define LISTEN_GRPC_OPTION(AT, name) \
	OPTION_ROW(TEXT, name, AT(grpc), "HOST:PORT", "address for OTLP over gRPC (default: 127.0.0.1:4317; '': none)")
#define LISTEN_HTTP_OPTION(AT) \
	OPTION_ROW(TEXT, "http-addr", AT(http), "HOST:PORT", "address for OTLP over HTTP (default: 127.0.0.1:4318; '': none)")
#define LISTEN_API_OPTION(AT, name, what, address) \
	OPTION_ROW(TEXT, name, AT(api), "HOST:PORT", "address of " what " (default: " address "; '': none)")
/* clang-format on */

/* ---- who may come ---- */

#define TOKEN_VARIABLE "INGERO_TOKEN"

struct access_flags {
	const char *acl, *token_file, *cert, *key, *client_ca;
	bool no_tls, no_token;
	struct option_strings names;
};

/* clang-format off */
/* Rows that the services share; AT(field) is the offset of that field of an access_flags. */
#define ACCESS_TOKEN_FILE_OPTION(AT) \
	OPTION_ROW(STRING, "token-file", AT(token_file), "PATH", \
		"require one of the tokens in this file, one per line (default: $" TOKEN_VARIABLE "; else one is generated; you and root need none)")
#define ACCESS_KEY_OPTIONS(AT) \
	OPTION_ROW(STRING, "tls-key", AT(key), "PEM", "private key of the certificate, readable only by its owner"), \
	OPTION_ROW(STRING, "client-ca", AT(client_ca), "PEM", "require client certificates signed by this CA (mTLS)")
#define ACCESS_HOST_OPTION(AT) \
	OPTION_ROW(STRINGS, "allow-host", AT(names), "NAME", \
		"accept this host name too, besides those in --tls-cert; may be repeated")
/* clang-format on */

/* access_flags_options - who may reach @address, the one that most people can reach. */
struct server_access_options access_flags_options(
	const struct access_flags *f, const char *address);
struct tls_server_settings access_flags_tls(const struct access_flags *f);
/* access_flags_rights - adds the files that are read again while it runs. */
void access_flags_rights(const struct access_flags *f, struct service_rights *rights);

/* ---- the fleet's core ---- */

struct fleet_flags {
	double k, ema_alpha;
	uint64_t interval_ns;
	int64_t ttl_multiplier, quorum, max_nodes, nodes_per_token;
	const char *rates, *provider, *snapshot, *alerts, *forward, *forward_spool, *node_page;
	bool remediate;
};

/* clang-format off */
#define FLEET_FLAGS_DEFAULTS \
	{.k = 2, .ema_alpha = 0.2, .interval_ns = 10 * NS_PER_S, .ttl_multiplier = 5, .quorum = 5, \
		.max_nodes = 10000}

/* Rows of a table of options; AT(field) is the offset of that field of a fleet_flags. */
#define FLEET_FLAGS_OPTIONS(AT) \
	{"k", 0, OPTION_NUMBER, AT(k), "X", \
		"nodes this many deviations below the median are stragglers, 1 to 4 (default: 2)", 1000, 4000, false}, \
	{"ema-alpha", 0, OPTION_NUMBER, AT(ema_alpha), "X", \
		"weight of the newest threshold, 0.01 to 1 (default: 0.2)", 10, 1000, false}, \
	{"push-interval", 0, OPTION_DURATION, AT(interval_ns), "TIME", \
		"how often agents push (default: 10s)", 1, 0, false}, \
	{"ttl-multiplier", 0, OPTION_INT, AT(ttl_multiplier), "N", \
		"forget a node after this many push intervals (default: 5)", 2, 1000, false}, \
	{"quorum", 0, OPTION_INT, AT(quorum), "N", \
		"active nodes that a threshold needs (default: 5; in smaller jobs a majority)", 1, 100000, false}, \
	{"max-nodes", 0, OPTION_INT, AT(max_nodes), "N", \
		"maximum number of nodes; more are refused (default: 10000)", 1, 1000000, false}, \
	{"max-nodes-per-token", 0, OPTION_INT, AT(nodes_per_token), "N", \
		"node names that one token may push (default: 0, as --max-nodes)", 0, 1000000, false}, \
	OPTION_ROW(STRING, "rates", AT(rates), "FILE", \
		"prices of GPUs (default: the built-in list; see `ingero rates`)"), \
	OPTION_ROW(STRING, "provider", AT(provider), "NAME", \
		"provider of nodes that do not name theirs: aws, gcp, azure, lambda, coreweave"), \
	OPTION_ROW(STRING, "snapshot", AT(snapshot), "FILE", \
		"file that keeps the state of the nodes across restarts"), \
	OPTION_ROW(STRING, "alerts", AT(alerts), "FILE", \
		"YAML file of alert receivers and forwarding targets"), \
	OPTION_ROW(STRING, "forward", AT(forward), "URL", \
		"forward everything received to this OTLP endpoint: https://host:4318, grpcs://host:4317"), \
	OPTION_ROW(STRING, "forward-spool", AT(forward_spool), "FOLDER", \
		"disk queue of --forward, up to 1 GiB (default: 16 MiB of memory)"), \
	OPTION_ROW(STRING, "node-page", AT(node_page), "URL", \
		"link nodes on the page to their dashboards at this URL: 'https://{node}:8080/'"), \
	OPTION_ROW(FLAG, "remediate", AT(remediate), NULL, \
		"notify local programs of stragglers over the socket remediate-cluster.sock")
/* clang-format on */

int fleet_flags_check(const struct fleet_flags *f, struct errinfo *reterr);

/* fleet_flags_settings - all of a service but its addresses and who is told. */
struct service_settings fleet_flags_settings(const struct fleet_flags *f);
struct outlets_settings fleet_flags_outlets(const struct fleet_flags *f);

/* fleet_flags_rights - adds the files that are used while it runs. */
void fleet_flags_rights(const struct fleet_flags *f, struct service_rights *rights);

/* ---- the memory ---- */

struct echo_flags {
	const char *folder, *engine;
	uint64_t retention_ns, bytes_max, journal_bytes, memory_bytes;
	bool trust_clock;
	struct option_strings clickhouse;
	const char *clickhouse_cluster, *clickhouse_database, *clickhouse_user,
		*clickhouse_password_file, *clickhouse_reader, *clickhouse_reader_password_file;
	bool no_audit;
	const char *health;
	struct access_flags access;
};

/* clang-format off */
#define ECHO_FLAGS_DEFAULTS \
	{.engine = "duckdb", .retention_ns = 30 * 86400 * NS_PER_S, .journal_bytes = 8ULL << 30, \
		.memory_bytes = 512ULL << 20, .clickhouse_database = "ingero", .clickhouse_user = "default"}

/* Rows of a table of options; AT(field) is the offset of that field of an echo_flags, ACCESS(field) of its access. */
#define ECHO_FLAGS_OPTIONS(AT, ACCESS) \
	OPTION_ROW(TEXT, "health-addr", AT(health), "HOST:PORT", \
		"additional address for /livez, /readyz and /healthz only, without TLS and token (default: none)"), \
	OPTION_ROW(STRING, "db-path", AT(folder), "FOLDER", \
		"folder of the store (default: ~/.ingero/echo; root: /var/lib/ingero-cluster/echo)"), \
	OPTION_ROW(STRING, "engine", AT(engine), "NAME", \
		"duckdb, in this process, or clickhouse (default: duckdb)"), \
	OPTION_ROW(DURATION, "retention", AT(retention_ns), "TIME", \
		"delete rows older than this (default: 30d; 0: never)"), \
	OPTION_ROW(SIZE, "max-size", AT(bytes_max), "SIZE", \
		"delete the oldest rows beyond this size (default: 0, no limit)"), \
	OPTION_ROW(FLAG, "trust-clock", AT(trust_clock), NULL, \
		"apply --retention even if this machine's clock has jumped ahead"), \
	OPTION_ROW(SIZE, "journal-size", AT(journal_bytes), "SIZE", \
		"refuse requests, retryably, while the store lags this far behind (default: 8g)"), \
	OPTION_ROW(SIZE, "memory", AT(memory_bytes), "SIZE", \
		"memory that DuckDB may use (default: 512m)"), \
	OPTION_ROW(STRINGS, "clickhouse", AT(clickhouse), "URL", \
		"a shard of --engine clickhouse: http(s)://host:8123; may be repeated"), \
	OPTION_ROW(STRING, "clickhouse-cluster", AT(clickhouse_cluster), "NAME", \
		"name of the shards in the servers' remote_servers (default: one shard)"), \
	OPTION_ROW(STRING, "clickhouse-database", AT(clickhouse_database), "NAME", \
		"database, created if missing (default: ingero)"), \
	OPTION_ROW(STRING, "clickhouse-user", AT(clickhouse_user), "NAME", \
		"user for writing (default: default)"), \
	OPTION_ROW(STRING, "clickhouse-password-file", AT(clickhouse_password_file), "FILE", \
		"file with its password (default: none)"), \
	OPTION_ROW(STRING, "clickhouse-reader", AT(clickhouse_reader), "NAME", \
		"read-only user for SQL queries (default: none, SQL is refused)"), \
	OPTION_ROW(STRING, "clickhouse-reader-password-file", AT(clickhouse_reader_password_file), "FILE", \
		"file with its password (default: none)"), \
	OPTION_ROW(FLAG, "no-audit", AT(no_audit), NULL, \
		"write no audit log (default: audit.log in the folder)"), \
	OPTION_ROW(STRING, "bearer-acl-file", ACCESS(acl), "PATH", \
		"YAML or JSON file of tokens, each with its clusters and verbs"), \
	ACCESS_TOKEN_FILE_OPTION(ACCESS), \
	OPTION_REFUSED_SECRET("auth-token", TOKEN_VARIABLE), \
	OPTION_ALIAS(REFUSED, "trust-proxy-headers", 0, NULL, \
		"limits apply per token and per connecting address; use the proxy's own limits"), \
	OPTION_ALIAS(STRING, "auth-token-file", ACCESS(token_file), "PATH", "as --token-file"), \
	OPTION_ROW(FLAG, "no-token", ACCESS(no_token), NULL, \
		"require no token: any local user can send and read; loopback only"), \
	OPTION_ROW(STRING, "tls-cert", ACCESS(cert), "PEM", \
		"server certificate (default: a self-signed one, kept in ~/.ingero/tls; root: in /var/lib/ingero-cluster/tls)"), \
	ACCESS_KEY_OPTIONS(ACCESS), \
	OPTION_ROW(FLAG, "insecure-no-tls", ACCESS(no_tls), NULL, "plain text; loopback only"), \
	OPTION_ALIAS(FLAG, "no-tls", ACCESS(no_tls), NULL, "as --insecure-no-tls"), \
	ACCESS_HOST_OPTION(ACCESS), \
	OPTION_REFUSED_SECRET("token", TOKEN_VARIABLE)
/* clang-format on */

int echo_flags_check(const struct echo_flags *f, const char *address, struct errinfo *reterr);

struct echo_prepared { /* from flags to settings, with what these point to */
	struct echo_service_settings settings;
	char *folder, *password, *reader_password;
};
void echo_prepared_done(struct echo_prepared *p);
int echo_flags_prepare(
	const struct echo_flags *f, struct echo_prepared *ret, struct errinfo *reterr);

/* The fleet, the cluster's memory, or both (`fleet`, `echo`, `all`), until a signal ends them.
 *
 * SIGHUP reads certificates, tokens and rates again; what cannot be read stays as it was. SIGTERM and SIGINT let
 * replies under way end and write the snapshot; with a memory who comes is told to come again, and what was
 * acknowledged is stored; a second one does not wait. */

struct services_settings {
	const struct echo_flags *echo;   /* NULL: no memory */
	const struct fleet_flags *fleet; /* NULL: no fleet */
	const struct access_flags *access;
	struct listen_addresses at;
};

/* services_run - the exit code, after saying what went wrong. */
int services_run(const struct services_settings *s);
