/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fleet_push.c - `ingero fleet-push`: checks its options and hands them to agent/push. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/health/health_file.h"
#include "agent/push/pusher.h"
#include "agent/push/pusher_provider.h"
#include "base/owner.h"
#include "base/log.h"
#include "cli/commands.h"
#include "command/config_file.h"
#include "command/dispatch.h"
#include "command/trust.h"
#include "deliver/endpoint.h"
#include "net/token.h"

#define TOKEN_VARIABLE "INGERO_FLEET_TOKEN"
#define WARMUP_DEFAULT 30
#define WARMUP_MAX     100000
#define THRESHOLD_PORT 8080

struct fleet_push_settings {
	const char *endpoint, *threshold_url, *cluster, *node;
	uint64_t push_interval_ns, timeout_ns, window_ns;
	bool insecure, stub, once, remediate, first_use;
	struct option_strings fingerprints;
	const char *ca, *cert, *key, *token_file, *token;
	const char *db, *baseline, *provider;
	int64_t gpus, warmup;
};

static const struct fleet_push_settings defaults = {.push_interval_ns = PUSHER_INTERVAL_NS,
	.timeout_ns = PUSHER_TIMEOUT_NS,
	.window_ns = PUSHER_WINDOW_NS,
	.baseline = HEALTH_FILE_DEFAULT,
	.warmup = WARMUP_DEFAULT};

#define OPTION(field) offsetof(struct fleet_push_settings, field)
static const struct option_row fleet_push_options[] = {
	{"endpoint", 0, OPTION_STRING, OPTION(endpoint), "ENDPOINT",
		"OTLP endpoint of the fleet: host:port or http(s)://host:port[/path]", 0, 0, false},
	{"threshold-url", 0, OPTION_STRING, OPTION(threshold_url), "URL",
		"ask for the threshold there when replies do not include it", 0, 0, false},
	{"cluster-id", 0, OPTION_STRING, OPTION(cluster), "NAME", "name of the cluster", 0, 0,
		false},
	{"node-id", 0, OPTION_STRING, OPTION(node), "NAME",
		"name of this node (default: agent.node of ingero.yaml, else the host name)", 0, 0,
		false},
	{"push-interval", 0, OPTION_DURATION, OPTION(push_interval_ns), "TIME",
		"interval between pushes, varied by 10 % (default: 10s)", 1, 0, false},
	{"timeout", 0, OPTION_DURATION, OPTION(timeout_ns), "TIME",
		"give a request up after this time (default: 5s)", 1, 0, false},
	{"insecure", 0, OPTION_FLAG, OPTION(insecure), NULL,
		"allow plain text: http where ENDPOINT has no scheme, and to other machines", 0, 0,
		false},
	{"ca", 0, OPTION_STRING, OPTION(ca), "PATH",
		"CA certificates to trust (default: the system's)", 0, 0, false},
	{"ca-cert", 0, OPTION_STRING, OPTION(ca), "PATH", "as --ca: other commands call it so", 0,
		0, false},
	{"cert", 0, OPTION_STRING, OPTION(cert), "PATH", "client certificate (mTLS)", 0, 0, false},
	{"key", 0, OPTION_STRING, OPTION(key), "PATH", "its key", 0, 0, false},
	{"client-cert", 0, OPTION_STRING, OPTION(cert), "PATH", "as --cert", 0, 0, true},
	{"client-key", 0, OPTION_STRING, OPTION(key), "PATH", "as --key", 0, 0, true},
	{"fingerprint", 0, OPTION_STRINGS, OPTION(fingerprints), "[NODE=]HEX",
		"trust only the certificate with this SHA-256; may be repeated", 0, 0, false},
	{"trust-on-first-use", 0, OPTION_FLAG, OPTION(first_use), NULL,
		"trust an unknown certificate, and remember it in ~/.ingero/known_nodes", 0, 0,
		false},
	{"token-file", 0, OPTION_STRING, OPTION(token_file), "PATH",
		"bearer token to send (default: $" TOKEN_VARIABLE ")", 0, 0, false},
	{"token", 0, OPTION_STRING, OPTION(token), "TEXT", "refused", 0, 0, true},
	{"db", 0, OPTION_STRING, OPTION(db), "PATH",
		"recording that `ingero trace` is writing (default: $INGERO_DB, else ~/.ingero/ingero.db)",
		0, 0, false},
	{"signal-window", 0, OPTION_DURATION, OPTION(window_ns), "TIME",
		"time over which signals are averaged, 10s to 10m (default: 60s)", 1, 0, false},
	{"gpus", 0, OPTION_INT, OPTION(gpus), "N",
		"number of GPUs to report (default: as recorded)", 0, 1024, false},
	{"warmup", 0, OPTION_INT, OPTION(warmup), "N",
		"readings before the node counts as active (default: 30)", 1, WARMUP_MAX, false},
	{"baseline", 0, OPTION_STRING, OPTION(baseline), "PATH",
		"file that keeps the baseline between runs; empty: none (default: " HEALTH_FILE_DEFAULT
		")",
		0, 0, false},
	{"provider", 0, OPTION_STRING, OPTION(provider), "NAME",
		"cloud provider to report; auto: ask the metadata services of AWS, GCP and Azure",
		0, 0, false},
	{"remediate", 0, OPTION_FLAG, OPTION(remediate), NULL,
		"tell local programs when this node is a straggler, over the socket remediate.sock",
		0, 0, false},
	{"stub", 0, OPTION_FLAG, OPTION(stub), NULL,
		"push made-up readings with a score of 0.94, to try a fleet", 0, 0, false},
	{"once", 0, OPTION_FLAG, OPTION(once), NULL, "push once and exit", 0, 0, false},
	/* As published. */
	{"fleet-endpoint", 0, OPTION_STRING, OPTION(endpoint), "ENDPOINT", "as --endpoint", 0, 0,
		true},
	{"fleet-threshold-url", 0, OPTION_STRING, OPTION(threshold_url), "URL",
		"as --threshold-url", 0, 0, true},
	{"fleet-cluster-id", 0, OPTION_STRING, OPTION(cluster), "NAME", "as --cluster-id", 0, 0,
		true},
	{"fleet-node-id", 0, OPTION_STRING, OPTION(node), "NAME", "as --node-id", 0, 0, true},
	{"fleet-push-interval", 0, OPTION_DURATION, OPTION(push_interval_ns), "TIME",
		"as --push-interval", 1, 0, true},
	{"fleet-timeout", 0, OPTION_DURATION, OPTION(timeout_ns), "TIME", "as --timeout", 1, 0,
		true},
	{"fleet-insecure", 0, OPTION_FLAG, OPTION(insecure), NULL, "as --insecure", 0, 0, true},
	{"fleet-tls-ca", 0, OPTION_STRING, OPTION(ca), "PATH", "as --ca", 0, 0, true},
	{"fleet-tls-cert", 0, OPTION_STRING, OPTION(cert), "PATH", "as --cert", 0, 0, true},
	{"fleet-tls-key", 0, OPTION_STRING, OPTION(key), "PATH", "as --key", 0, 0, true},
	{"fleet-persist-path", 0, OPTION_STRING, OPTION(baseline), "PATH", "as --baseline", 0, 0,
		true},
	{"signal-db-path", 0, OPTION_STRING, OPTION(db), "PATH", "as --db", 0, 0, true},
	{"signal-num-gpus", 0, OPTION_INT, OPTION(gpus), "N", "as --gpus", 0, 1024, true},
	{"warmup-samples", 0, OPTION_INT, OPTION(warmup), "N", "as --warmup", 1, WARMUP_MAX, true},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

struct plan {
	struct pusher_settings pusher;
	char node[256];
	char *default_db, *token, *known;
	char provider[16];
	struct config *config;
};

static void plan_done(struct plan *p)
{
	free(p->default_db);
	free(p->token);
	free(p->known);
	if (p->config)
		config_free(p->config);
}

static int resolve_tls(const struct fleet_push_settings *s, struct plan *p, struct errinfo *reterr)
{
	const struct config *c = p->config;
	struct tls_client_settings *t = &p->pusher.tls;
	bool any = s->ca || s->cert || s->key || s->fingerprints.count || s->first_use;

	if (!!s->cert != !!s->key)
		return errinfo_set(reterr, -EINVAL, "give both --cert and --key");
	if (s->insecure && any)
		return errinfo_set(reterr, -EINVAL,
			"--insecure cannot be combined with --ca, --cert, --key, --fingerprint or --trust-on-first-use");
	if (any && !p->pusher.endpoint.endpoint.tls)
		return errinfo_set(reterr, -EINVAL,
			"--ca, --cert, --key, --fingerprint and --trust-on-first-use require an https endpoint");
	if (!p->pusher.endpoint.endpoint.tls && !p->pusher.threshold.tls)
		return 0;
	t->ca = s->ca ? s->ca : c->fleet_ca_cert;
	t->cert = s->cert ? s->cert : c->fleet_client_cert;
	t->key = s->key ? s->key : c->fleet_client_key;
	t->pins = s->fingerprints.value;
	t->pin_count = s->fingerprints.count;
	t->first_use = s->first_use || c->fleet_trust_on_first_use;
	if (!t->ca || t->first_use)
		t->known = trust_known_path(&p->known, NULL) == 0 ? p->known : NULL;
	return t->first_use && !t->known ? trust_known_path(&p->known, reterr) : 0;
}

static int resolve_endpoints(
	const struct fleet_push_settings *s, struct plan *p, struct errinfo *reterr)
{
	const struct endpoint_options o = {.text = s->endpoint,
		.protocol = "http/json",
		.insecure = s->insecure,
		.insecure_far = s->insecure,
		.name = "--endpoint",
		.far_name = "--insecure"};
	int r;

	if (!s->endpoint || !*s->endpoint)
		return errinfo_set(reterr, -EINVAL, "give the fleet's address with --endpoint");
	if (!strncasecmp(s->endpoint, "grpc", 4) && strstr(s->endpoint, "://"))
		return errinfo_set(reterr, -EINVAL,
			"--endpoint %.100s: only http:// and https:// are supported", s->endpoint);
	r = endpoint_parse(&o, &p->pusher.endpoint, reterr);
	if (r == 0 && s->threshold_url)
		r = http_endpoint_parse(s->threshold_url, !s->insecure, THRESHOLD_PORT,
			&p->pusher.threshold, reterr);
	return r;
}

/* What no flag says comes from ingero.yaml. */
static void take_config(struct fleet_push_settings *s, const struct config *c)
{
	if (!s->endpoint)
		s->endpoint = c->fleet_endpoint;
	if (!s->cluster)
		s->cluster = c->fleet_cluster_id;
	if (!s->threshold_url)
		s->threshold_url = c->fleet_threshold_url;
}

/* --node-id, else agent.node of ingero.yaml, else the host's name. */
static int resolve_node(const struct fleet_push_settings *s, struct plan *p)
{
	p->pusher.node = s->node ? s->node : p->config->node;
	if (p->pusher.node)
		return 0;
	if (gethostname(p->node, sizeof(p->node) - 1) < 0)
		return -errno;
	p->pusher.node = p->node;
	return 0;
}

static int resolve_token(
	const struct fleet_push_settings *s, struct plan *p, struct errinfo *reterr)
{
	int r;

	if (s->token)
		return errinfo_set(reterr, -EINVAL,
			"--token is not accepted: other users can see a command line; use --token-file or $" TOKEN_VARIABLE);
	r = token_read(s->token_file, TOKEN_VARIABLE, &p->token, reterr);
	p->pusher.token = p->token;
	p->pusher.insecure = s->insecure;
	return r;
}

static int resolve(struct fleet_push_settings *s, struct plan *p, struct errinfo *reterr)
{
	struct pusher_settings *ps = &p->pusher;
	int r = config_file_load(&p->config, reterr);

	if (r < 0)
		return r;
	take_config(s, p->config);
	r = resolve_endpoints(s, p, reterr);
	if (r == 0)
		r = resolve_tls(s, p, reterr);
	if (r == 0)
		r = resolve_node(s, p);
	if (r < 0)
		return r;
	if (!s->cluster)
		return errinfo_set(reterr, -EINVAL, "give the cluster's name with --cluster-id");
	ps->cluster = s->cluster;
	ps->push_interval_ns = s->push_interval_ns;
	ps->timeout_ns = s->timeout_ns;
	ps->window_ns = s->window_ns;
	ps->gpus = (uint32_t)s->gpus;
	ps->warmup = (uint32_t)s->warmup;
	ps->baseline = *s->baseline ? s->baseline : NULL;
	ps->stub = s->stub;
	ps->once = s->once;
	ps->remediate = s->remediate;
	r = pusher_check(ps, reterr);
	if (r == 0)
		r = resolve_token(s, p, reterr);
	if (r == 0 && !s->db && !s->stub)
		r = store_default_path(&p->default_db, reterr);
	ps->db = s->db ? s->db : p->default_db;
	return r;
}

/* After everything else is known to be right: it asks other machines. */
static int find_provider(const char *name, struct plan *p, struct errinfo *reterr)
{
	p->pusher.provider = name;
	if (name && (!*name || strlen(name) > 31 || strspn(name, PROVIDER_LETTERS) != strlen(name)))
		return errinfo_set(reterr, -EINVAL,
			"--provider must be a name of lower-case letters, digits and '-', or auto");
	if (!name || strcmp(name, "auto"))
		return 0;
	pusher_provider_detect(p->provider);
	p->pusher.provider = p->provider[0] ? p->provider : NULL;
	return 0;
}

static int fleet_push_run(const struct command *c, void *settings, int argc, char **argv)
{
	struct fleet_push_settings *s = settings;
	_cleanup_(plan_done) struct plan p = {0};
	struct errinfo e = {0};
	int r;

	(void)c;
	(void)argc;
	(void)argv;
	dispatch_serve();
	r = resolve(s, &p, &e);
	log_set_level(LOG_LEVEL_INFO);
	if (r == 0)
		r = find_provider(s->provider, &p, &e);
	if (r == 0)
		r = pusher_run(&p.pusher, &e);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_fleet_push = {
	.name = "fleet-push",
	.synopsis = "fleet-push --endpoint ENDPOINT --cluster-id NAME [flags]",
	.summary = "Tell a fleet how this node is doing, from the recording of a running trace",
	.details =
		"Reads the recording that `ingero trace` is writing, and sends the node's health, its\n"
		"collectives and its incidents to `ingero-cluster fleet` or any OTLP receiver. Traced\n"
		"programs never wait for it. Stops on Ctrl-C or SIGTERM, after saving the baseline and\n"
		"sending what is left.\n"
		"  sudo ingero trace &\n"
		"  sudo ingero fleet-push --endpoint https://fleet:4318 --cluster-id train-1",
	.options = fleet_push_options,
	.settings_size = sizeof(struct fleet_push_settings),
	.defaults = &defaults,
	.run = fleet_push_run,
};
