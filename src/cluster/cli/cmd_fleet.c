/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fleet.c - `ingero-cluster fleet`: the service, until a signal ends it.
 *
 * SIGHUP reads certificates, tokens and rates again; what cannot be read stays as it was. SIGTERM and
 * SIGINT let replies under way end for DRAIN_NS and write the snapshot, a second one does not wait. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/notify.h"
#include "cluster/cli/commands.h"
#include "cluster/cli/flags.h"
#include "command/program.h"
#include "command/server_access.h"
#include "net/address.h"

#define DRAIN_NS       (5 * NS_PER_S)
#define TOKEN_VARIABLE "INGERO_TOKEN"

struct fleet_typed { /* the flags */
	struct listen_addresses at;
	struct fleet_flags core;
	const char *token_file, *cert, *key, *client_ca;
	bool no_tls, no_token;
	struct option_strings names;
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
	OPTION_ROW(STRING, "tls-cert", OPTION(cert), "PEM",
		"server certificate (default: none, plain on loopback)"),
	OPTION_ROW(STRING, "tls-key", OPTION(key), "PEM",
		"private key of the certificate, readable only by its owner"),
	OPTION_ROW(STRING, "client-ca", OPTION(client_ca), "PEM",
		"require client certificates signed by this CA (mTLS)"),
	OPTION_ROW(FLAG, "no-tls", OPTION(no_tls), NULL,
		"no TLS beyond loopback either: traffic can be read and changed on the way"),
	OPTION_ROW(STRING, "token-file", OPTION(token_file), "PATH",
		"require one of the tokens in this file, one per line (default: $" TOKEN_VARIABLE
		"; else one is generated; you and root need none)"),
	OPTION_ROW(FLAG, "no-token", OPTION(no_token), NULL,
		"require no token: any local user can push and read; loopback only"),
	OPTION_ROW(STRINGS, "allow-host", OPTION(names), "NAME",
		"accept this host name too, besides those in --tls-cert; may be repeated"),
	OPTION_REFUSED_SECRET("token", TOKEN_VARIABLE),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

struct run { /* of the command */
	const struct fleet_typed *typed;
	struct loop *loop;
	struct tls *tls;
	struct server_access access;
	struct outlets *outlets;
	struct service *service;
	struct server_life life;
	struct path_user before;
};

static void run_done(struct run *c)
{
	if (c->service)
		service_free(c->service);
	if (c->outlets)
		outlets_free(c->outlets);
	server_life_done(&c->life);
	server_access_done(&c->access);
	if (c->tls)
		tls_free(c->tls);
	path_user_leave(&c->before);
}

/* ---- flags ---- */

static struct server_access_options access_options(const struct fleet_typed *t)
{
	return (struct server_access_options){.address = listen_address_widest(&t->at),
		.token_file = t->token_file,
		.variable = TOKEN_VARIABLE,
		.client_ca = t->client_ca,
		.no_token = t->no_token};
}

static struct tls_server_settings tls_settings(const struct fleet_typed *t)
{
	return (struct tls_server_settings){
		.cert = t->cert, .key = t->key, .client_ca = t->client_ca};
}

static int check_flags(const struct fleet_typed *t, struct errinfo *reterr)
{
	struct server_access_options access = access_options(t);
	struct tls_server_settings tls = tls_settings(t);
	int r;

	if (!listen_address_any(&t->at))
		return errinfo_set(reterr, -EINVAL,
			"no address to listen on: give --grpc-addr, --http-addr or --api-addr");
	r = server_tls_check(&tls, t->no_tls ? "--no-tls" : NULL, reterr);
	if (r < 0)
		return r;
	if (t->client_ca && !t->cert)
		return errinfo_set(reterr, -EINVAL, "--client-ca needs --tls-cert and --tls-key");
	if (!address_text_is_loopback(access.address) && !t->cert && !t->no_tls)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"%s is reachable from other machines: give --tls-cert and --tls-key, or --no-tls for plain HTTP, or listen on 127.0.0.1",
			access.address);
	if (fleet_flags_check(&t->core, reterr) < 0)
		return -EINVAL;
	return server_access_check(&access, reterr);
}

/* ---- running ---- */

static void drain(void *arg)
{
	struct run *c = arg;

	service_drain(c->service, server_life_over, &c->life);
}

static void ready(void *arg)
{
	const struct run *c = arg;
	const char *at = service_http_address(c->service);

	if (!at)
		at = service_grpc_address(c->service);
	notify_ready("fleet at %s", at ? at : service_api_address(c->service));
}

static void reload(void *arg)
{
	struct run *c = arg;
	struct server_access_options o = access_options(c->typed);
	struct errinfo e = {0};
	int r = server_access_reload(&c->access, &o, c->tls, &e);

	if (r == 0)
		r = service_reload(c->service, &e);
	server_life_tell_reload("certificates, tokens and rates", r, &e);
}

static void announce(const struct run *c)
{
	const char *scheme = c->tls ? "https" : "http";
	const char *grpc = service_grpc_address(c->service),
		   *http = service_http_address(c->service), *api = service_api_address(c->service);
	char url[160] = "";

	if (grpc)
		printf("OTLP over gRPC: %s%s\n", grpc, c->tls ? " (TLS)" : "");
	if (http)
		printf("OTLP over HTTP: %s://%s\n", scheme, http);
	if (api) {
		snprintf(url, sizeof(url), "%s://%s/", scheme, api);
		printf("Page and API: %s\nMetrics: %smetrics\n", url, url);
	}
	if (c->tls)
		printf("Certificate: SHA-256 %s\n", tls_fingerprint(c->tls));
	if (c->typed->client_ca)
		printf("Clients need a certificate signed by %s\n", c->typed->client_ca);
	server_access_say(&c->access, stdout, api ? url : NULL);
	fflush(stdout);
	trust_warn(c->tls);
}

/* Opens what takes rights, and gives up the rest. */
static int take_rights(struct run *c, struct errinfo *reterr)
{
	const struct fleet_typed *t = c->typed;
	struct outlets_settings told = fleet_flags_outlets(&t->core);
	struct service_rights rights = {.low_port = listen_address_any_low(&t->at)};
	const char *const reads[] = {t->token_file, t->cert, t->key, t->client_ca};
	int r = outlets_new(c->loop, &told, &c->outlets, reterr);

	if (r < 0)
		return r;
	fleet_flags_rights(&t->core, &rights);
	outlets_rights(c->outlets, &rights);
	for (size_t i = 0; i < ARRAY_SIZE(reads); i++)
		service_rights_read(&rights, reads[i]);
	r = service_rights_files(&rights, &c->before, reterr);
	if (r == 0)
		r = outlets_open(c->outlets, reterr);
	if (r == 0)
		service_rights_confine(&rights);
	return r;
}

static int run_service(struct run *c, struct errinfo *reterr)
{
	const struct fleet_typed *t = c->typed;
	struct server_access_options access = access_options(t);
	struct tls_server_settings tls = tls_settings(t);
	struct service_settings s = fleet_flags_settings(&t->core);
	int r = server_access_open(&access, &c->access, reterr);

	if (r == 0 && t->cert)
		r = tls_server_new(&tls, &c->tls, reterr);
	if (r == 0)
		r = take_rights(c, reterr);
	if (r < 0)
		return r;
	s.outlets = c->outlets;
	s.grpc_address = listen_address(t->at.grpc);
	s.http_address = listen_address(t->at.http);
	s.api_address = listen_address(t->at.api);
	s.http.names = t->names.value;
	s.http.plain = t->no_tls;
	s.http.tls = c->tls;
	s.http.tokens = c->access.tokens;
	s.http.owners = c->access.owners;
	s.http.owner_count = c->access.owner_count;
	c->life = (struct server_life){.loop = c->loop,
		.patience_ns = DRAIN_NS,
		.drain = drain,
		.reload = reload,
		.ready = ready,
		.arg = c};
	r = service_new(c->loop, &s, &c->service, reterr);
	if (r == 0)
		r = server_life_watch(&c->life, reterr);
	if (r < 0)
		return r;
	announce(c);
	return server_life_run(&c->life, reterr);
}

static int fleet_run(const struct command *cmd _unused_, void *settings, int argc, char **argv)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	_cleanup_(run_done) struct run c = {.typed = settings};
	struct errinfo e = {0};
	int r;

	(void)argc;
	(void)argv;
	dispatch_serve();
	r = check_flags(settings, &e);
	if (r == 0)
		r = loop_new(&loop);
	c.loop = loop;
	if (r == 0)
		r = run_service(&c, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
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
