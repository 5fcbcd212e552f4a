/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dashboard.c - `ingero dashboard`: a recording as page and API over HTTPS, until a signal ends
 * it.
 *
 * SIGHUP reads certificates and tokens again, all or nothing; SIGTERM and SIGINT let replies under
 * way end for DRAIN_NS, a second one does not. */
#include <signal.h>
#include <time.h>

#include "net/address.h"
#include "serve/mcp/mcp_registry.h"
#include "serve/serve.h"
#include "store/nodedb.h"
#include "base/path_user.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "cli/commands.h"
#include "command/config_file.h"
#include "cli/recording_option.h"
#include "command/program.h"
#include "command/server_access.h"
#include "config.h"
#include "sql/sql_table.h"
#include "sql/sql_worker.h"

#define DRAIN_NS       (5 * NS_PER_S)
#define IDLE_WAITS     50
#define DEFAULT_ADDR   "127.0.0.1:8080"
#define TOKEN_VARIABLE "INGERO_TOKEN"

struct dashboard_settings {
	const char *addr, *db, *cert, *key, *client_ca, *token_file;
	struct option_strings names;
	bool no_tls, no_token;
};

#define OPTION(field) offsetof(struct dashboard_settings, field)
static const struct option_row dashboard_options[] = {
	OPTION_ROW(STRING, "addr", OPTION(addr), "HOST:PORT",
		"address to listen on (default: " DEFAULT_ADDR
		"); any other than loopback needs a token or --client-ca"),
	OPTION_ROW(STRING, "db", OPTION(db), "PATH",
		"recording to show (default: $INGERO_DB, else ~/.ingero/ingero.db)"),
	OPTION_ROW(STRING, "tls-cert", OPTION(cert), "PEM",
		"server certificate (default: a self-signed one, kept in ~/.ingero/tls)"),
	OPTION_ROW(STRING, "tls-key", OPTION(key), "PEM",
		"private key of the certificate, readable only by its owner"),
	OPTION_ROW(STRING, "client-ca", OPTION(client_ca), "PEM",
		"require client certificates signed by this CA (mTLS)"),
	OPTION_ROW(FLAG, "no-tls", OPTION(no_tls), NULL, "plain HTTP; loopback only"),
	OPTION_ROW(STRING, "token-file", OPTION(token_file), "PATH",
		"require one of the tokens in this file, one per line (default: $" TOKEN_VARIABLE
		"; else one is generated, which you and root do not need)"),
	OPTION_ROW(FLAG, "no-token", OPTION(no_token), NULL,
		"require no token: any local user can read the recording; loopback only"),
	OPTION_ROW(STRINGS, "allow-host", OPTION(names), "NAME",
		"accept this host name too, besides those in --tls-cert; may be repeated"),
	OPTION_REFUSED_SECRET("token", TOKEN_VARIABLE),
	OPTION_END,
};

struct dashboard { /* a run */
	const struct dashboard_settings *settings;
	const char *db;
	struct loop *loop;
	struct tls *tls;
	struct server_access access;
	struct serve *serve;
	struct mcp_demo demos[MCP_DEMOS_MAX];
	struct mcp_server *mcp;
	struct mcp_http *mcp_http;
	struct serve_confine confine;
	struct server_life life;
};

static bool is_idle(const struct dashboard *d)
{
	return serve_is_idle(d->serve) && mcp_http_is_idle(d->mcp_http);
}

/* A lane is idle a moment after its last reply; answers that outlast the patience end with the
 * process. */
static void free_answers(struct dashboard *d)
{
	const struct timespec wait_briefly = {.tv_nsec = 2 * (long)NS_PER_MS};

	for (int i = 0; i < IDLE_WAITS && !is_idle(d); i++)
		nanosleep(&wait_briefly, NULL);
	if (!is_idle(d))
		return;
	serve_free(d->serve);
	mcp_http_free(d->mcp_http);
	mcp_server_free(d->mcp);
}

static void dashboard_done(struct dashboard *d)
{
	if (d->serve)
		free_answers(d);
	server_life_done(&d->life);
	server_access_done(&d->access);
	if (d->tls)
		tls_free(d->tls);
}

/* ---- setting up ---- */

static struct server_access_options access_options(const struct dashboard_settings *s)
{
	return (struct server_access_options){.address = s->addr,
		.token_file = s->token_file,
		.variable = TOKEN_VARIABLE,
		.client_ca = s->client_ca,
		.no_token = s->no_token};
}

static struct tls_server_settings tls_settings(const struct dashboard_settings *s)
{
	return (struct tls_server_settings){
		.cert = s->cert, .key = s->key, .client_ca = s->client_ca, .names = s->names.value};
}

static int check_settings(const struct dashboard_settings *s, struct errinfo *reterr)
{
	struct server_access_options access = access_options(s);
	struct tls_server_settings tls = tls_settings(s);
	union address parsed;
	int r = address_parse(s->addr, &parsed, reterr);

	r = r ?: server_tls_check(&tls, s->no_tls ? "--no-tls" : NULL, reterr);
	if (r < 0)
		return r;
	if (s->no_tls && !address_text_is_loopback(s->addr))
		return errinfo_set(reterr, -EINVAL,
			"--no-tls: %s is reachable from other machines, and traffic would not be encrypted; listen on 127.0.0.1",
			s->addr);
	if (!s->token_file && !getenv(TOKEN_VARIABLE) && !s->client_ca &&
		!address_text_is_loopback(s->addr))
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"%s is reachable from other machines: require authentication with --token-file (or $" TOKEN_VARIABLE
			") or --client-ca, or listen on 127.0.0.1",
			s->addr);
	return server_access_check(&access, reterr);
}

/* A recording that is named must be there; the default one may come later. */
static int find_db(const struct dashboard_settings *s, char **ret_default, const char **ret,
	struct errinfo *reterr)
{
	struct nodedb_range range;
	int r = 0;

	*ret = s->db;
	if (!s->db) {
		r = store_default_path(ret_default, reterr);
		*ret = *ret_default;
		if (r == 0 && access(*ret, F_OK) < 0 && errno == ENOENT) {
			fprintf(stderr,
				"%singero: no recording yet (%s does not exist): start one with `sudo ingero trace`\n",
				log_mark(LOG_LEVEL_WARNING), *ret);
			return 0;
		}
	}
	return r < 0 ? r : nodedb_range(*ret, &range, reterr);
}

/* ---- running ---- */

static void drain(void *arg)
{
	struct dashboard *d = arg;

	serve_drain(d->serve, server_life_over, &d->life);
}

static void ready(void *arg)
{
	const struct dashboard *d = arg;

	notify_ready(
		"%s://%s/ shows %s", d->tls ? "https" : "http", serve_address(d->serve), d->db);
}

static void reload(void *arg)
{
	struct dashboard *d = arg;
	struct server_access_options o = access_options(d->settings);
	struct errinfo e = {0};

	if (server_access_reload(&d->access, &o, d->tls, &e) < 0)
		fprintf(stderr,
			"%singero: reload failed, the previous certificates and tokens stay in use: %s\n",
			log_mark(LOG_LEVEL_ERROR), e.text);
	else
		fprintf(stderr, "%singero: certificates and tokens reloaded\n",
			log_mark(LOG_LEVEL_INFO));
	trust_warn(d->tls);
}

/* One statement, to see that a worker can be started and what walls it has. */
static void try_worker(const struct dashboard *d)
{
	struct sql_guard_rules rules = {.rows_max = 1};
	_cleanup_(sql_table_done) struct sql_table t = {0};
	struct errinfo e = {0};
	int r;

	if (access(d->db, R_OK) < 0)
		return;
	r = nodedb_ask(d->db, "SELECT 1", &rules, &t, NULL, &e);
	if (r < 0)
		fprintf(stderr, "%singero: SQL does not work: %s\n", log_mark(LOG_LEVEL_ERROR),
			e.text);
	else if (sql_worker_weakness())
		fprintf(stderr, "%singero: %s\n", log_mark(LOG_LEVEL_WARNING),
			sql_worker_weakness());
}

static void announce(const struct dashboard *d)
{
	char url[128];

	snprintf(url, sizeof(url), "%s://%s/", d->tls ? "https" : "http", serve_address(d->serve));
	printf("Dashboard: %s\n", url);
	printf("MCP endpoint: %.*s%s\n", (int)strlen(url) - 1, url, MCP_HTTP_PATH);
	printf("Recording: %s\n", d->db);
	if (d->tls)
		printf("Certificate: SHA-256 %s\n", tls_fingerprint(d->tls));
	if (d->tls && tls_is_self_signed(d->tls))
		printf("  It is self-signed: compare this fingerprint with the one in the browser,\n  or pass the file to clients: curl --cacert %s, ingero query "
		       "--ca-cert %s,\n  or the fingerprint: ingero query --fingerprint %s\n",
			tls_cert_path(d->tls), tls_cert_path(d->tls), tls_fingerprint(d->tls));
	if (d->settings->client_ca)
		printf("Clients need a certificate signed by %s\n", d->settings->client_ca);
	server_access_say(&d->access, stdout, url);
	fflush(stdout);
	trust_warn(d->tls);
}

/* The same recording for assistants, at /mcp. */
static int open_mcp(struct dashboard *d, struct errinfo *reterr)
{
	struct mcp_settings s = {.db = d->db,
		.version = INGERO_VERSION,
		.demos = d->demos,
		.probes = &d->confine.probes,
		.ask_fleet = mcp_fleet_ask};
	int r;

	mcp_demos_list(d->demos);
	r = mcp_server_new(&s, &d->mcp, reterr);
	return r < 0 ? r : mcp_http_new(mcp_server_dispatcher(d->mcp), d->loop, &d->mcp_http);
}

static int run(struct dashboard *d, struct errinfo *reterr)
{
	static const struct http_route routes[] = {
		MCP_HTTP_ROUTES(mcp_http_serve_handler), {.method = NULL}};
	struct serve_settings s = {.db = d->db,
		.address = d->settings->addr,
		.names = d->settings->names.value,
		.version = INGERO_VERSION};
	struct server_access_options access = access_options(d->settings);
	struct tls_server_settings tls = tls_settings(d->settings);
	int r = server_access_open(&access, &d->access, reterr);

	if (r == 0 && !d->settings->no_tls)
		r = server_tls_open(&tls, &d->tls, reterr);
	if (r < 0)
		return r;
	d->confine.db = d->db;
	serve_confine(&d->confine); /* before threads are made and strangers heard */
	r = open_mcp(d, reterr);
	if (r < 0)
		return r;
	s.routes = routes;
	s.arg = d->mcp_http;
	s.tls = d->tls;
	s.tokens = d->access.tokens;
	s.owners = d->access.owners;
	s.owner_count = d->access.owner_count;
	d->life = (struct server_life){.loop = d->loop,
		.patience_ns = DRAIN_NS,
		.drain = drain,
		.reload = reload,
		.ready = ready,
		.arg = d};
	r = serve_new(d->loop, &s, &d->serve, reterr);
	r = r ?: server_life_watch(&d->life, reterr);
	if (r < 0)
		return r;
	try_worker(d);
	announce(d);
	return server_life_run(&d->life, reterr);
}

/* What no flag says comes from the `dashboard` part of ingero.yaml. Certificate and key belong
 * together, and plain HTTP needs none of them. */
static void take_config(struct dashboard_settings *s, const struct config *c)
{
	s->addr = s->addr ?: c->dashboard_addr;
	if (!s->no_tls && !s->cert && !s->key) {
		s->cert = c->dashboard_tls_cert;
		s->key = c->dashboard_tls_key;
	}
	if (!s->no_tls && !s->client_ca)
		s->client_ca = c->dashboard_client_ca;
	if (!s->token_file && !s->no_token)
		s->token_file = c->dashboard_token_file;
	if (s->names.count)
		return;
	s->names.count = MIN(c->dashboard_names.count, (size_t)OPTION_STRINGS_MAX);
	for (size_t i = 0; i < s->names.count; i++)
		s->names.value[i] = c->dashboard_names.items[i];
}

static int dashboard_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	struct dashboard_settings *s = settings;
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_free_ char *default_path = NULL;
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_(dashboard_done) struct dashboard d = {.settings = s};
	struct errinfo e = {0};
	int r;

	(void)cmd;
	(void)argc;
	(void)argv;
	dispatch_serve();
	r = config_file_load(&config, &e);
	if (r < 0)
		return dispatch_fail(&e, r);
	take_config(s, config);
	if (!s->addr)
		s->addr = DEFAULT_ADDR;
	r = check_settings(s, &e);
	r = r ?: find_db(s, &default_path, &d.db, &e);
	r = r ?: loop_new(&loop);
	d.loop = loop;
	r = r ?: run(&d, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_dashboard = {
	.name = "dashboard",
	.synopsis = "dashboard [flags]",
	.summary = "Serve a recording, live or saved, as a web page and an API over HTTPS",
	.details =
		"Only reads the recording; does not need root. Stops on Ctrl-C or SIGTERM; SIGHUP reloads\ncertificates and tokens. On loopback, other users of this machine need the token in\n~/.ingero/token; you do not.\n"
		"  ingero dashboard                                   https://127.0.0.1:8080/\n"
		"  ingero dashboard --addr :8080 --token-file token   for other machines\n"
		"  curl --cacert ~/.ingero/tls/cert.pem https://localhost:8080/api/v1/overview",
	.options = dashboard_options,
	.settings_size = sizeof(struct dashboard_settings),
	.run = dashboard_run,
};
