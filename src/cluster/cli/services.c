/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - see flags.h. */
#include "cluster/cli/flags.h"

#include "base/log.h"
#include "base/notify.h"
#include "cluster/cli/commands.h"
#include "command/program.h"
#include "duck/duck.h"
#include "net/address.h"

#define DRAIN_NS (5 * NS_PER_S)

struct run {
	const struct services_settings *settings;
	struct echo_prepared prepared;
	struct loop *loop;
	struct tls *tls;
	struct server_access access;
	struct tenants *tenants;
	struct echo_service *echo;
	struct outlets *outlets;
	struct service *fleet;
	struct server_life life;
	struct path_user before;
};

static void run_done(struct run *c)
{
	service_freep(&c->fleet);
	outlets_freep(&c->outlets);
	echo_service_freep(&c->echo);
	server_life_done(&c->life);
	tenants_freep(&c->tenants);
	server_access_done(&c->access);
	tls_freep(&c->tls);
	loop_freep(&c->loop);
	echo_prepared_done(&c->prepared);
	path_user_leave(&c->before);
}

/* ---- signals ---- */

/* The fleet's last notices are kept, too. */
static void on_fleet_drained(void *arg)
{
	struct run *c = arg;

	if (c->echo)
		echo_service_drain(c->echo, server_life_over, &c->life);
	else
		server_life_over(&c->life);
}

static void drain(void *arg)
{
	struct run *c = arg;

	if (c->echo) {
		fprintf(stderr, "%singero-cluster: storing acknowledged data, then exiting\n",
			log_mark(LOG_LEVEL_INFO));
		echo_service_refuse(c->echo);
	}
	if (c->fleet)
		service_drain(c->fleet, on_fleet_drained, c);
	else
		on_fleet_drained(c);
}

static struct server_access_options access_options(const struct run *c)
{
	return access_flags_options(c->settings->access, listen_address_widest(&c->settings->at));
}

static void reload(void *arg)
{
	struct run *c = arg;
	struct server_access_options o = access_options(c);
	struct errinfo e = {0};
	int r = 0;

	if (c->tenants)
		r = tenants_reload(c->tenants, mono_now().ns, &e);
	if (r == 0 && c->echo)
		r = echo_service_share(c->echo);
	if (r == 0 && c->echo && c->tls)
		r = tls_reload(c->tls, &e);
	if (r == 0 && !c->echo)
		r = server_access_reload(&c->access, &o, c->tls, &e);
	if (r == 0 && c->fleet)
		r = service_reload(c->fleet, &e);
	server_life_tell_reload(
		c->fleet ? "certificates, tokens and rates" : "certificates, tokens", r, &e);
}

/* What agents push to is the fleet's, if there is one; page and API are the memory's. */
static struct service_addresses addresses(const struct run *c)
{
	struct service_addresses fleet = {0}, a = {0};

	if (c->fleet)
		fleet = a = service_addresses(c->fleet);
	if (c->echo)
		a = echo_service_addresses(c->echo);
	if (c->fleet) {
		a.grpc = fleet.grpc;
		a.http = fleet.http;
	}
	return a;
}

static void ready(void *arg)
{
	const struct run *c = arg;
	struct service_addresses a = addresses(c);

	if (c->echo)
		notify_ready("%s", c->fleet ? "fleet and echo" : "echo");
	else
		notify_ready("fleet at %s", a.http ? a.http : a.grpc ? a.grpc : a.api);
}

/* ---- opening ---- */

/* Files of tokens are the memory's tenants, with grace after a reload; what is generated or in the environment
 * may do everything. */
static int open_access(struct run *c, struct errinfo *reterr)
{
	const struct access_flags *f = c->settings->access;
	struct server_access_options o = access_options(c);
	const char *path = f->acl ? f->acl : f->token_file;

	return path && c->settings->echo ? tenants_read(path, &c->tenants, reterr)
					 : server_access_open(&o, &c->access, reterr);
}

/* The memory makes itself a certificate; the fleet without one is plain, on loopback or as --no-tls says. */
static int open_tls(struct run *c, struct errinfo *reterr)
{
	const struct access_flags *f = c->settings->access;
	struct tls_server_settings tls = access_flags_tls(f);

	if (c->settings->echo)
		return f->no_tls ? 0 : server_tls_open(&tls, &c->tls, reterr);
	return f->cert ? tls_server_new(&tls, &c->tls, reterr) : 0;
}

static struct http_server_settings http_settings(const struct run *c)
{
	return (struct http_server_settings){.tls = c->tls,
		.tokens = c->tenants ? tenants_tokens(c->tenants) : c->access.tokens,
		.owners = c->access.owners,
		.owner_count = c->access.owner_count,
		.names = c->settings->access->names.value,
		.plain = !c->settings->echo && c->settings->access->no_tls};
}

static int open_fleet(
	struct run *c, const struct http_server_settings *http, struct errinfo *reterr)
{
	struct service_settings s = fleet_flags_settings(c->settings->fleet);

	s.outlets = c->outlets;
	s.http = *http;
	s.grpc_address = listen_address(c->settings->at.grpc);
	s.http_address = listen_address(c->settings->at.http);
	if (c->echo) {
		s.api_elsewhere = true;
		s.keeping = echo_service_keeping(c->echo);
	} else {
		s.api_address = listen_address(c->settings->at.api);
	}
	return service_new(c->loop, &s, &c->fleet, reterr);
}

static int open_services(struct run *c, struct errinfo *reterr)
{
	const struct services_settings *s = c->settings;
	struct echo_addresses a = {.http = http_settings(c), .api = listen_address(s->at.api)};
	int r = 0;

	if (s->echo) {
		c->prepared.settings.tenants = c->tenants;
		a.health = listen_address(s->echo->health);
		r = echo_service_new(c->loop, &c->prepared.settings, &c->echo, reterr);
	}
	if (r == 0 && s->fleet)
		r = open_fleet(c, &a.http, reterr);
	if (r < 0 || !s->echo)
		return r;
	if (s->fleet) {
		a.fleet = service_api(c->fleet);
	} else {
		a.grpc = listen_address(s->at.grpc);
		a.otlp_http = listen_address(s->at.http);
	}
	return echo_service_listen(c->echo, &a, reterr);
}

/* Loads and opens what takes rights, and gives up the rest. */
static int take_rights(struct run *c, struct errinfo *reterr)
{
	const struct fleet_flags *fleet = c->settings->fleet;
	bool is_duck = c->settings->echo && c->prepared.settings.engine == ECHO_DUCKDB;
	struct service_rights rights = {
		.sql = is_duck, .low_port = listen_address_any_low(&c->settings->at)};
	struct outlets_settings told;
	int r = is_duck ? duck_load(reterr) : 0;

	if (r == 0 && fleet) {
		told = fleet_flags_outlets(fleet);
		r = outlets_new(c->loop, &told, &c->outlets, reterr);
	}
	if (r < 0)
		return r;
	service_rights_write(&rights, c->prepared.folder); /* NULL: no memory */
	access_flags_rights(c->settings->access, &rights);
	if (c->tls && tls_is_self_signed(c->tls))
		service_rights_own(&rights, tls_cert_path(c->tls));
	if (fleet) {
		fleet_flags_rights(fleet, &rights);
		outlets_rights(c->outlets, &rights);
	}
	r = service_rights_files(&rights, &c->before, reterr);
	if (r == 0 && fleet)
		r = outlets_open(c->outlets, reterr);
	if (r == 0)
		service_rights_confine(&rights);
	return r;
}

/* ---- what is said ---- */

static void announce_access(const struct run *c)
{
	const struct access_flags *f = c->settings->access;
	const char *api = addresses(c).api;
	char url[160] = "";

	trust_warn(c->tls);
	if (c->tls)
		printf("Certificate: SHA-256 %s\n", tls_fingerprint(c->tls));
	if (c->tls && tls_is_self_signed(c->tls))
		printf("  It is self-signed: give the file to clients, curl --cacert %s\n",
			tls_cert_path(c->tls));
	if (f->client_ca)
		printf("Clients need a certificate signed by %s\n", f->client_ca);
	if (c->tenants) {
		printf("Token: required (Authorization: Bearer …), one of %s\n",
			f->acl ? f->acl : f->token_file);
		return;
	}
	if (api && c->fleet)
		snprintf(url, sizeof(url), "%s://%s/", c->tls ? "https" : "http", api);
	server_access_say(&c->access, stdout, url[0] ? url : NULL);
}

static void announce(const struct run *c)
{
	_cleanup_buf_ struct buf store = BUF_INIT(4096);
	const char *scheme = c->tls ? "https" : "http";
	struct service_addresses a = addresses(c);

	if (a.grpc)
		printf("OTLP over gRPC: %s%s\n", a.grpc, c->tls ? " (TLS)" : "");
	if (a.http)
		printf("OTLP over HTTP: %s://%s\n", scheme, a.http);
	if (a.api && c->fleet)
		printf("Page and API: %s://%s/\n", scheme, a.api);
	if (a.api && !c->echo)
		printf("Metrics: %s://%s/metrics\n", scheme, a.api);
	if (a.api && c->echo)
		printf("API: %s://%s/api/v2/openapi.json\nMCP: %s://%s/mcp\n", scheme, a.api,
			scheme, a.api);
	if (a.health)
		printf("Health: http://%s/readyz\n", a.health);
	if (c->echo) {
		echo_service_describe(c->echo, &store);
		printf("Store: %s\n", buf_str(&store));
	}
	announce_access(c);
	fflush(stdout);
}

static int run(struct run *c, struct errinfo *reterr)
{
	const struct echo_flags *echo = c->settings->echo;
	int r = echo ? echo_flags_prepare(echo, &c->prepared, reterr) : 0;

	r = r ?: open_access(c, reterr);
	r = r ?: open_tls(c, reterr);
	r = r ?: take_rights(c, reterr);
	if (r < 0)
		return r;
	c->life = (struct server_life){.loop = c->loop,
		.patience_ns = DRAIN_NS,
		.drain = drain,
		.reload = reload,
		.ready = ready,
		.arg = c};
	r = open_services(c, reterr);
	r = r ?: server_life_watch(&c->life, reterr);
	if (r < 0)
		return r;
	announce(c);
	return server_life_run(&c->life, reterr);
}

/* Of the fleet alone, which may be plain beyond loopback if that is said. */
static int check_access(const struct access_flags *f, const char *address, struct errinfo *reterr)
{
	struct server_access_options access = access_flags_options(f, address);
	struct tls_server_settings tls = access_flags_tls(f);
	union address parsed;
	int r = address_parse(address, &parsed, reterr);

	r = r ?: server_tls_check(&tls, f->no_tls ? "--no-tls" : NULL, reterr);
	if (r < 0)
		return r;
	if (f->client_ca && !f->cert)
		return errinfo_set(reterr, -EINVAL, "--client-ca needs --tls-cert and --tls-key");
	if (!address_text_is_loopback(address) && !f->cert && !f->no_tls)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"%s is reachable from other machines: give --tls-cert and --tls-key, or --no-tls for plain HTTP, or listen on 127.0.0.1",
			address);
	return server_access_check(&access, reterr);
}

static int check(const struct services_settings *s, struct errinfo *reterr)
{
	const char *widest = listen_address_widest(&s->at);
	int r;

	if (!listen_address_any(&s->at))
		return errinfo_set(reterr, -EINVAL,
			"no address to listen on: give --grpc-addr, --http-addr or --api-addr");
	r = s->echo ? echo_flags_check(s->echo, widest, reterr)
		    : check_access(s->access, widest, reterr);
	return r == 0 && s->fleet ? fleet_flags_check(s->fleet, reterr) : r;
}

int services_run(const struct services_settings *s)
{
	_cleanup_(run_done) struct run c = {.settings = s};
	struct errinfo e = {0};
	int r;

	dispatch_serve();
	r = check(s, &e);
	r = r ?: loop_new(&c.loop);
	r = r ?: run(&c, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

/* `ingero-cluster all`: fleet and echo in one process, on the same ports. */

struct all_flags {
	struct listen_addresses at;
	struct fleet_flags fleet;
	struct echo_flags echo;
};

static const struct all_flags all_flag_defaults = {
	.at = LISTEN_DEFAULTS("127.0.0.1:8080"),
	.fleet = FLEET_FLAGS_DEFAULTS,
	.echo = ECHO_FLAGS_DEFAULTS,
};

#define AT(field)     offsetof(struct all_flags, at.field)
#define FLEET(field)  offsetof(struct all_flags, fleet.field)
#define ECHO(field)   offsetof(struct all_flags, echo.field)
#define ACCESS(field) offsetof(struct all_flags, echo.access.field)
static const struct option_row all_options[] = {
	LISTEN_GRPC_OPTION(AT, "grpc-addr"),
	OPTION_ALIAS(TEXT, "otlp-addr", AT(grpc), "HOST:PORT", "as --grpc-addr"),
	LISTEN_HTTP_OPTION(AT),
	LISTEN_API_OPTION(AT, "api-addr", "the page, the APIs, MCP and /metrics", "127.0.0.1:8080"),
	OPTION_ALIAS(TEXT, "mcp-addr", AT(api), "HOST:PORT", "as --api-addr"),
	FLEET_FLAGS_OPTIONS(FLEET),
	ECHO_FLAGS_OPTIONS(ECHO, ACCESS),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

static int all_run(
	const struct command *cmd _unused_, void *settings, int argc _unused_, char **argv _unused_)
{
	const struct all_flags *f = settings;

	return services_run(&(struct services_settings){
		.echo = &f->echo, .fleet = &f->fleet, .access = &f->echo.access, .at = f->at});
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
	.defaults = &all_flag_defaults,
	.run = all_run,
};

/* `ingero-cluster fleet`: which rank makes the others wait. */

struct fleet_typed { /* the flags */
	struct listen_addresses at;
	struct fleet_flags core;
	struct access_flags access;
};

static const struct fleet_typed fleet_flag_defaults = {
	.at = LISTEN_DEFAULTS("127.0.0.1:8080"),
	.core = FLEET_FLAGS_DEFAULTS,
};

#define TYPED_AT(field)     offsetof(struct fleet_typed, at.field)
#define TYPED_ACCESS(field) offsetof(struct fleet_typed, access.field)
#define CORE(field)         offsetof(struct fleet_typed, core.field)
static const struct option_row fleet_options[] = {
	LISTEN_GRPC_OPTION(TYPED_AT, "grpc-addr"),
	LISTEN_HTTP_OPTION(TYPED_AT),
	LISTEN_API_OPTION(TYPED_AT, "api-addr", "the API, the page and /metrics", "127.0.0.1:8080"),
	FLEET_FLAGS_OPTIONS(CORE),
	OPTION_ROW(STRING, "tls-cert", TYPED_ACCESS(cert), "PEM",
		"server certificate (default: none, plain on loopback)"),
	ACCESS_KEY_OPTIONS(TYPED_ACCESS),
	OPTION_ROW(FLAG, "no-tls", TYPED_ACCESS(no_tls), NULL,
		"plain HTTP beyond loopback too: traffic can be read and changed in transit"),
	ACCESS_TOKEN_FILE_OPTION(TYPED_ACCESS),
	OPTION_ROW(FLAG, "no-token", TYPED_ACCESS(no_token), NULL,
		"require no token: any local user can push and read; loopback only"),
	ACCESS_HOST_OPTION(TYPED_ACCESS),
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
	.defaults = &fleet_flag_defaults,
	.run = fleet_run,
};
