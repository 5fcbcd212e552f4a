/* SPDX-License-Identifier: Apache-2.0 */
/* echo_run.c - see echo_run.h. */
#include "cluster/cli/echo_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "command/server_access.h"
#include "duck/duck.h"

#define DRAIN_NS (25 * NS_PER_S) /* sealing takes its time; 5 s less than Kubernetes gives */

struct run {
	const struct echo_run_settings *settings;
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
	if (c->fleet)
		service_free(c->fleet);
	if (c->outlets)
		outlets_free(c->outlets);
	if (c->echo)
		echo_service_free(c->echo);
	server_life_done(&c->life);
	if (c->tenants)
		tenants_free(c->tenants);
	server_access_done(&c->access);
	if (c->tls)
		tls_free(c->tls);
	if (c->loop)
		loop_free(c->loop);
	echo_prepared_done(&c->prepared);
	path_user_leave(&c->before);
}

/* ---- signals ---- */

/* The fleet's last notices are kept, too. */
static void on_fleet_drained(void *arg)
{
	struct run *c = arg;

	echo_service_drain(c->echo, server_life_over, &c->life);
}

static void drain(void *arg)
{
	struct run *c = arg;

	fprintf(stderr, "%singero-cluster: storing acknowledged data, then exiting\n",
		log_mark(LOG_LEVEL_INFO));
	echo_service_refuse(c->echo);
	if (c->fleet)
		service_drain(c->fleet, on_fleet_drained, c);
	else
		on_fleet_drained(c);
}

static void reload(void *arg)
{
	struct run *c = arg;
	struct errinfo e = {0};
	int r = 0;

	if (c->tenants)
		r = tenants_reload(c->tenants, mono_now().ns, &e);
	if (r == 0 && c->echo)
		r = echo_service_share(c->echo);
	if (r == 0 && c->tls)
		r = tls_reload(c->tls, &e);
	if (r == 0 && c->fleet)
		r = service_reload(c->fleet, &e);
	server_life_tell_reload(
		c->fleet ? "tokens, certificates and rates" : "tokens, certificates", r, &e);
}

static void ready(void *arg)
{
	const struct run *c = arg;

	notify_ready("%s", c->fleet ? "fleet and echo" : "echo");
}

/* ---- opening ---- */

/* Files of tokens are the tenants', with grace after a reload; what is generated or in the environment
 * may do everything. */
static int open_access(struct run *c, struct errinfo *reterr)
{
	const struct echo_flags *f = c->settings->echo;
	struct server_access_options o =
		echo_flags_access(f, listen_address_widest(&c->settings->at));
	const char *path = f->acl ? f->acl : f->token_file;

	return path ? tenants_read(path, &c->tenants, reterr)
		    : server_access_open(&o, &c->access, reterr);
}

static struct http_server_settings http_settings(const struct run *c)
{
	return (struct http_server_settings){.tls = c->tls,
		.tokens = c->tenants ? tenants_tokens(c->tenants) : c->access.tokens,
		.owners = c->access.owners,
		.owner_count = c->access.owner_count,
		.names = c->settings->echo->names.value};
}

static int open_fleet(
	struct run *c, const struct http_server_settings *http, struct errinfo *reterr)
{
	struct service_settings s = fleet_flags_settings(c->settings->fleet);

	s.outlets = c->outlets;
	s.http = *http;
	s.grpc_address = listen_address(c->settings->at.grpc);
	s.http_address = listen_address(c->settings->at.http);
	s.api_elsewhere = true;
	s.keeping = echo_service_keeping(c->echo);
	return service_new(c->loop, &s, &c->fleet, reterr);
}

static int open_services(
	struct run *c, const struct http_server_settings *http, struct errinfo *reterr)
{
	struct echo_addresses a = {.http = *http,
		.api = listen_address(c->settings->at.api),
		.health = listen_address(c->settings->echo->health)};
	int r;

	c->prepared.settings.tenants = c->tenants;
	r = echo_service_new(c->loop, &c->prepared.settings, &c->echo, reterr);
	if (r < 0)
		return r;
	if (c->settings->fleet) {
		r = open_fleet(c, http, reterr);
		if (r < 0)
			return r;
		a.fleet = service_api(c->fleet);
	} else {
		a.grpc = listen_address(c->settings->at.grpc);
		a.otlp_http = listen_address(c->settings->at.http);
	}
	return echo_service_listen(c->echo, &a, reterr);
}

/* Loads and opens what takes rights, and gives up the rest. */
static int take_rights(struct run *c, struct errinfo *reterr)
{
	const struct echo_flags *f = c->settings->echo;
	const struct fleet_flags *fleet = c->settings->fleet;
	bool is_duck = c->prepared.settings.engine == ECHO_DUCKDB;
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
	service_rights_write(&rights, c->prepared.folder);
	echo_flags_rights(f, &rights);
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

static void announce_addresses(const struct run *c)
{
	const char *scheme = c->tls ? "https" : "http";
	const char *grpc =
		c->fleet ? service_grpc_address(c->fleet) : echo_service_grpc_address(c->echo);
	const char *http =
		c->fleet ? service_http_address(c->fleet) : echo_service_http_address(c->echo);
	const char *api = echo_service_api_address(c->echo);
	const char *health = echo_service_health_address(c->echo);

	if (grpc)
		printf("OTLP over gRPC: %s%s\n", grpc, c->tls ? " (TLS)" : "");
	if (http)
		printf("OTLP over HTTP: %s://%s\n", scheme, http);
	if (api && c->fleet)
		printf("Page and API: %s://%s/\n", scheme, api);
	if (api)
		printf("API: %s://%s/api/v2/openapi.json\nMCP: %s://%s/mcp\n", scheme, api, scheme,
			api);
	if (health)
		printf("Health: http://%s/readyz\n", health);
}

static void announce_access(const struct run *c)
{
	const struct echo_flags *f = c->settings->echo;
	const char *api = echo_service_api_address(c->echo);
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

	announce_addresses(c);
	echo_service_describe(c->echo, &store);
	printf("Store: %s\n", buf_str(&store));
	announce_access(c);
	fflush(stdout);
}

static int run(struct run *c, struct errinfo *reterr)
{
	const struct echo_flags *f = c->settings->echo;
	struct tls_server_settings tls = echo_flags_tls(f);
	struct http_server_settings http;
	int r = echo_flags_prepare(f, &c->prepared, reterr);

	if (r == 0)
		r = open_access(c, reterr);
	if (r == 0 && !f->no_tls)
		r = server_tls_open(&tls, &c->tls, reterr);
	if (r == 0)
		r = take_rights(c, reterr);
	if (r < 0)
		return r;
	c->life = (struct server_life){.loop = c->loop,
		.patience_ns = DRAIN_NS,
		.drain = drain,
		.reload = reload,
		.ready = ready,
		.arg = c};
	http = http_settings(c);
	r = open_services(c, &http, reterr);
	if (r == 0)
		r = server_life_watch(&c->life, reterr);
	if (r < 0)
		return r;
	announce(c);
	return server_life_run(&c->life, reterr);
}

int echo_run(const struct echo_run_settings *s, struct errinfo *reterr)
{
	_cleanup_(run_done) struct run c = {.settings = s};
	int r;

	if (!listen_address_any(&s->at))
		return errinfo_set(reterr, -EINVAL, "no address to listen on");
	r = echo_flags_check(s->echo, listen_address_widest(&s->at), reterr);
	if (r == 0 && s->fleet)
		r = fleet_flags_check(s->fleet, reterr);
	if (r == 0)
		r = loop_new(&c.loop);
	return r < 0 ? r : run(&c, reterr);
}
