/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c - `ingero mcp`: a recording's answers for assistants, by the Model Context Protocol on
 * standard input and output, or over HTTPS.
 *
 * Over standard output goes the protocol and nothing else: the descriptor is moved away first, so
 * that what anything prints by accident lands on stderr. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path_user.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/demo_scenario.h"
#include "cli/fleet.h"
#include "command/program.h"
#include "command/server_access.h"
#include "config.h"
#include "net/address.h"
#include "serve/mcp/mcp_registry.h"
#include "serve/serve.h"

#define TOKEN_VARIABLE "INGERO_MCP_BEARER_TOKEN"

struct mcp_options {
	const char *db, *http, *cert, *key, *client_ca, *token_file, *log;
	bool no_tls, no_token;
};

#define OPTION(field) offsetof(struct mcp_options, field)
static const struct option_row mcp_rows[] = {
	OPTION_ROW(STRING, "db", OPTION(db), "PATH",
		"recording to read (default: $INGERO_DB, else ~/.ingero/ingero.db)"),
	OPTION_ROW(STRING, "http", OPTION(http), "ADDR",
		"serve https://ADDR/mcp instead of stdin and stdout: 127.0.0.1:8090, :8090"),
	OPTION_ROW(STRING, "tls-cert", OPTION(cert), "FILE",
		"server certificate (default: a self-signed one that is kept)"),
	OPTION_ROW(STRING, "tls-key", OPTION(key), "FILE", "private key of the certificate"),
	OPTION_ROW(STRING, "client-ca", OPTION(client_ca), "FILE",
		"require client certificates signed by this CA"),
	OPTION_ROW(STRING, "token-file", OPTION(token_file), "FILE",
		"require one of the tokens in this file, one per line (default: $" TOKEN_VARIABLE
		"; else one is generated, which you and root do not need)"),
	OPTION_ROW(FLAG, "no-token", OPTION(no_token), NULL,
		"require no token: any local user can connect; loopback only"),
	OPTION_ROW(FLAG, "no-tls", OPTION(no_tls), NULL, "plain HTTP; loopback only"),
	OPTION_ROW(
		STRING, "log", OPTION(log), "FILE", "append a line for every request to this file"),
	OPTION_REFUSED_SECRET("mcp-bearer-token", TOKEN_VARIABLE),
	OPTION_ALIAS(REFUSED, "pagerduty-routing-key", 0, "KEY",
		"this server is read-only and sends no pages"),
	OPTION_END,
};

/* Who asked what: a line in a file for every request that was answered. Names come from clients, so they are escaped. */

#define LINE_MAX_BYTES 1024
#define NAME_SHOWN     128

struct mcp_log {
	int fd; /* -1: none */
};
#define MCP_LOG_NONE ((struct mcp_log){.fd = -1})

/* Appends to @path, which is made with mode 0600 if it is not there. */
static int mcp_log_open(const char *path, struct mcp_log *ret, struct errinfo *reterr)
{
	return log_file_open(path, &ret->fd, reterr);
}

static void mcp_log_close(struct mcp_log *l)
{
	fd_closep(&l->fd);
}

/* One write for one line, so that threads do not mix; @arg is the log. */
static void mcp_log_line(void *arg, const char *method, const char *name, uint64_t ns, bool failed)
{
	_cleanup_buf_ struct buf b = BUF_INIT(LINE_MAX_BYTES);
	const struct mcp_log *l = arg;
	time_t now = time(NULL);
	char when[32] = "";
	struct tm tm;

	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_printf(&b, "%s %s ", when, failed ? "failed" : "ok");
	text_escape_terminal_len(&b, method, strnlen(method, NAME_SHOWN));
	buf_putc(&b, ' ');
	text_escape_terminal_len(&b, name ? name : "-", strnlen(name ? name : "-", NAME_SHOWN));
	buf_printf(&b, " %llu ms\n", (unsigned long long)(ns / NS_PER_MS));
	/* A log that cannot be written does not keep anybody from being answered. */
	if (!b.err && write(l->fd, b.data, b.len) < 0)
		return;
}

static struct server_access_options access_options(const struct mcp_options *o)
{
	return (struct server_access_options){.address = o->http,
		.token_file = o->token_file,
		.variable = TOKEN_VARIABLE,
		.client_ca = o->client_ca,
		.no_token = o->no_token};
}

static struct tls_server_settings tls_settings(const struct mcp_options *o)
{
	return (struct tls_server_settings){
		.cert = o->cert, .key = o->key, .client_ca = o->client_ca};
}

static int check_options(const struct mcp_options *o, struct errinfo *reterr)
{
	bool web = o->cert || o->key || o->client_ca || o->token_file || o->no_tls || o->no_token;
	struct server_access_options access = access_options(o);
	struct tls_server_settings tls = tls_settings(o);
	int r;

	if (web && !o->http)
		return errinfo_set(reterr, -EINVAL,
			"--tls-cert, --tls-key, --client-ca, --token-file, --no-token and --no-tls require --http");
	r = server_tls_check(&tls, o->no_tls ? "--no-tls" : NULL, reterr);
	if (r < 0)
		return r;
	if (o->no_tls && !address_text_is_loopback(o->http))
		return errinfo_set(reterr, -EINVAL,
			"--no-tls: traffic would not be encrypted; use a loopback address such as 127.0.0.1:8090");
	return o->http ? server_access_check(&access, reterr) : 0;
}

/* Not as other commands: assistants start this server before anything has been recorded. */
static int find_db(
	const char *given, char **ret_default, const char **ret_path, struct errinfo *reterr)
{
	int r = given ? 0 : store_default_path(ret_default, reterr);

	if (r < 0)
		return r;
	*ret_path = given ? given : *ret_default;
	if (access(*ret_path, F_OK) < 0 && errno == ENOENT)
		fprintf(stderr,
			"ingero: %s does not exist yet: queries are answered once it does\n",
			*ret_path);
	return 0;
}

static int run_stdio(
	const struct dispatcher *t, struct serve_confine *confine, struct errinfo *reterr)
{
	_cleanup_fd_ int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return errinfo_set(reterr, -errno, "standard output: %s", strerror(errno));
	serve_confine(confine);
	return mcp_stdio_run(t, STDIN_FILENO, out, reterr);
}

/* ---- HTTPS ---- */

struct web { /* in the order in which they are made; let go of in the other */
	struct loop *loop;
	struct tls *tls;
	struct server_access access;
	struct mcp_http *http;
	struct http_server *server;
};

static void web_done(struct web *w)
{
	http_server_freep(&w->server);
	mcp_http_freep(&w->http);
	server_access_done(&w->access);
	tls_freep(&w->tls);
	loop_freep(&w->loop);
}

static void on_stop(void *arg)
{
	struct web *w = arg;

	http_server_drain(w->server, loop_stop, w->loop);
}

static void on_reload(void *arg)
{
	struct web *w = arg;
	struct errinfo e = {0};

	if (w->tls && tls_reload(w->tls, &e) < 0)
		log_error(
			"cannot reload the certificate, the previous one stays in use: %s", e.text);
	if (w->access.tokens && token_set_reload(w->access.tokens, &e) < 0)
		log_error("cannot reload the tokens, the previous ones stay in use: %s", e.text);
}

static void say_where(const struct web *w)
{
	fprintf(stderr, "ingero: MCP at %s\n",
		FORMATTED(128, "%s://%s%s", w->tls ? "https" : "http",
			http_server_address(w->server), MCP_HTTP_PATH));
	if (w->tls && tls_is_self_signed(w->tls))
		fprintf(stderr, "ingero: self-signed certificate %s, SHA-256 %s\n",
			tls_cert_path(w->tls), tls_fingerprint(w->tls));
	server_access_say(&w->access, stderr, NULL);
	trust_warn(w->tls);
}

static int run_web(const struct mcp_options *o, const struct dispatcher *t,
	struct serve_confine *confine, struct errinfo *reterr)
{
	static const struct http_route routes[] = {
		MCP_HTTP_ROUTES(mcp_http_handler), {.method = NULL}};
	_cleanup_(web_done) struct web w = {0};
	struct http_server_settings s = {.address = o->http, .flag = "--http", .routes = routes};
	struct server_access_options access = access_options(o);
	struct tls_server_settings tls = tls_settings(o);
	int r = loop_new(&w.loop);

	if (r == 0 && !o->no_tls)
		r = server_tls_open(&tls, &w.tls, reterr);
	r = r ?: server_access_open(&access, &w.access, reterr);
	if (r == 0)
		serve_confine(confine);
	r = r ?: mcp_http_new(t, w.loop, &w.http);
	s.tls = w.tls;
	s.tokens = w.access.tokens;
	s.owners = w.access.owners;
	s.owner_count = w.access.owner_count;
	s.arg = w.http;
	r = r ?: http_server_new(w.loop, &s, &w.server, reterr);
	if (r < 0)
		return r;
	r = loop_signal(w.loop, SIGINT, on_stop, &w);
	r = r ?: loop_signal(w.loop, SIGTERM, on_stop, &w);
	r = r ?: loop_signal(w.loop, SIGHUP, on_reload, &w);
	if (r < 0)
		return errinfo_set(reterr, r, "cannot handle signals: %s", strerror(-r));
	say_where(&w);
	return loop_run(w.loop);
}

static int mcp_run(const struct command *c, void *settings, int argc, char **argv)
{
	const struct mcp_options *o = settings;
	struct mcp_demo demos[MCP_DEMOS_MAX] = {0};
	struct serve_confine confine = {0};
	struct mcp_settings s = {.version = INGERO_VERSION,
		.demos = demos,
		.probes = &confine.probes,
		.ask_fleet = mcp_fleet_ask};
	_cleanup_(mcp_log_close) struct mcp_log log = MCP_LOG_NONE;
	_cleanup_(mcp_server_freep) struct mcp_server *server = NULL;
	_cleanup_free_ char *default_path = NULL;
	struct errinfo e = {0};
	int r = check_options(o, &e);

	mcp_demos_list(demos);
	r = r ?: find_db(o->db, &default_path, &s.db, &e);
	confine.db = s.db;
	if (r == 0 && o->log)
		r = mcp_log_open(o->log, &log, &e);
	if (r == 0 && o->log) {
		s.answered = mcp_log_line;
		s.answered_arg = &log;
	}
	r = r ?: mcp_server_new(&s, &server, &e);
	r = r
		    ?: o->http ? run_web(o, mcp_server_dispatcher(server), &confine, &e)
			       : run_stdio(mcp_server_dispatcher(server), &confine, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_mcp = {
	.name = "mcp",
	.synopsis = "mcp [flags]",
	.summary = "Serve a recording to AI assistants (Model Context Protocol); read-only",
	.details =
		"  ingero mcp --db run.db                 over stdin and stdout\n"
		"  ingero mcp --http 127.0.0.1:8090       over HTTPS, at /mcp\n"
		"Tools, resources and the prompt `investigate` are read-only. Addresses other than\nloopback need a token or --client-ca. SIGHUP reloads certificate and tokens.",
	.options = mcp_rows,
	.settings_size = sizeof(struct mcp_options),
	.run = mcp_run,
};

void mcp_demos_list(struct mcp_demo out[MCP_DEMOS_MAX])
{
	int n = 0;

	for (; n < MCP_DEMOS_MAX - 1 && demo_scenarios[n].name; n++)
		out[n] = (struct mcp_demo){demo_scenarios[n].name, demo_scenarios[n].title,
			demo_scenarios[n].recording};
	out[n] = (struct mcp_demo){0};
}

int mcp_fleet_ask(
	const struct fanout_question *q, struct fanout_result *ret, struct errinfo *reterr)
{
	_cleanup_(fleet_done) struct fleet fleet = {0};
	struct fleet_options nothing_else = FLEET_OPTIONS_INIT;
	int r = fleet_open(&nothing_else, NULL, &fleet, reterr);

	if (r < 0)
		return r;
	if (!fleet.fanout)
		return errinfo_set(reterr, -ENOENT,
			"no other nodes are configured: list them under fleet.nodes in ingero.yaml");
	return fanout_wait(fleet.fanout, q, ret, reterr);
}
