/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_fleet_push.c - `ingero fleet-push`: checks its options and hands them to node/push. */
#include <limits.h>
#include <linux/capability.h>
#include <strings.h>

#include "node/push/pusher.h"
#include "node/push/pusher_node.h"
#include "base/confine_thread.h"
#include "base/path_user.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/socket_path.h"
#include "cli/commands.h"
#include "cli/fleet_push_settings.h"
#include "command/config_file.h"
#include "command/program.h"
#include "command/server_access.h"
#include "deliver/endpoint.h"
#include "net/server/token.h"
#include "stream/stream.h"

#define THRESHOLD_PORT 8080

struct plan {
	struct pusher_settings pusher;
	char node[256];
	char *default_db, *token, *known, *mark;
	char provider[16];
	struct endpoint spans;
	struct endpoint_fields span_fields;
	struct config *config;
};

static void plan_done(struct plan *p)
{
	free(p->default_db);
	free(p->token);
	free(p->known);
	free(p->mark);
	endpoint_fields_done(&p->span_fields);
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
	if (any && !p->pusher.endpoint.endpoint.tls && !(p->pusher.spans && p->spans.endpoint.tls))
		return errinfo_set(reterr, -EINVAL,
			"--ca, --cert, --key, --fingerprint and --trust-on-first-use require an https endpoint");
	if (!p->pusher.endpoint.endpoint.tls && !p->pusher.threshold.tls &&
		!(p->pusher.spans && p->spans.endpoint.tls))
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

/* Spans go where the user says, with the fields that other exporters of OpenTelemetry send there. */
static int resolve_spans(
	const struct fleet_push_settings *s, struct plan *p, struct errinfo *reterr)
{
	const struct endpoint_options o = {.text = s->otlp_endpoint,
		.protocol = "http/protobuf",
		.insecure = s->otlp_insecure,
		.insecure_far = s->otlp_insecure,
		.name = "--otlp-endpoint",
		.far_name = "--otlp-insecure"};
	int r;

	if (!s->otlp_endpoint && s->otlp_insecure)
		return errinfo_set(reterr, -EINVAL, "--otlp-insecure requires --otlp-endpoint");
	if (!s->otlp_endpoint || !s->otlp_enabled)
		return 0;
	if (!strncasecmp(s->otlp_endpoint, "grpc", 4) && strstr(s->otlp_endpoint, "://"))
		return errinfo_set(reterr, -EINVAL,
			"--otlp-endpoint %.100s: only http:// and https:// are supported",
			s->otlp_endpoint);
	r = endpoint_parse(&o, &p->spans, reterr);
	r = r
		    ?: endpoint_fields_parse(getenv("OTEL_EXPORTER_OTLP_HEADERS"),
			       "OTEL_EXPORTER_OTLP_HEADERS", &p->span_fields, reterr);
	p->pusher.spans = &p->spans;
	p->pusher.span_fields = &p->span_fields;
	return r;
}

/* What no flag says comes from ingero.yaml. */
static void take_config(struct fleet_push_settings *s, const struct config *c)
{
	s->endpoint = s->endpoint ?: c->fleet_endpoint;
	s->cluster = s->cluster ?: c->fleet_cluster_id;
	s->threshold_url = s->threshold_url ?: c->fleet_threshold_url;
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
	int r = token_read(s->token_file, FLEET_TOKEN_VARIABLE, &p->token, reterr);

	p->pusher.token = p->token;
	p->pusher.insecure = s->insecure;
	return r;
}

static int resolve_mode(
	const struct fleet_push_settings *s, struct pusher_settings *ps, struct errinfo *reterr)
{
	if (s->mode && !health_mode_find(s->mode, &ps->mode))
		return errinfo_set(reterr, -EINVAL,
			"--detection-mode %.60s: choose none, fleet, fleet-cached, local-cached or local-baseline",
			s->mode);
	if (!s->remediate && (s->remediate_socket || s->remediate_gid >= 0))
		return errinfo_set(reterr, -EINVAL,
			"--remediate-socket and --remediate-gid require --remediate");
	return 0;
}

/* What needs no check, or has it in pusher_check(). */
static void resolve_rest(const struct fleet_push_settings *s, struct pusher_settings *ps)
{
	ps->push_interval_ns = s->push_interval_ns;
	ps->timeout_ns =
		s->timeout_ns ? s->timeout_ns : MIN(PUSHER_TIMEOUT_NS, ps->push_interval_ns);
	ps->replay = s->replay != NULL;
	ps->replay_rate = (uint32_t)s->replay_rate;
	ps->window_ns = s->window_ns;
	ps->poll_interval_ns = s->poll_interval_ns;
	ps->gpus = (uint32_t)s->gpus;
	ps->warmup = (uint32_t)s->warmup;
	ps->hysteresis = s->hysteresis;
	ps->baseline = *s->baseline ? s->baseline : NULL;
	ps->baseline_age_ns = s->baseline_age_ns;
	ps->world_size = (uint32_t)s->world_size;
	ps->rank = (int32_t)s->node_rank;
	ps->workload = s->workload;
	ps->stub = s->stub;
	ps->once = s->once;
	ps->remediate = s->remediate;
	ps->stream_path = s->remediate_socket;
	ps->stream_group = s->remediate_gid >= 0 ? (gid_t)s->remediate_gid : SOCKET_NO_GROUP;
}

/* Beside the recording, one for each place that it is sent to. */
static int resolve_mark(const struct fleet_push_settings *s, struct plan *p)
{
	struct pusher_settings *ps = &p->pusher;
	uint64_t to = 0;

	if (s->mark) {
		ps->mark = *s->mark ? s->mark : NULL;
		return 0;
	}
	if (!ps->db)
		return 0;
	for (size_t i = 0; i < 3; i++) {
		const char *text = (const char *[]){ps->endpoint.shown, ps->cluster, ps->node}[i];

		to = hash_number(to ^ hash_bytes(text, strlen(text)));
	}
	if (asprintf(&p->mark, "%s.push-%016" PRIx64, ps->db, to) < 0)
		return -ENOMEM;
	ps->mark = p->mark;
	return 0;
}

static int resolve(struct fleet_push_settings *s, struct plan *p, struct errinfo *reterr)
{
	struct pusher_settings *ps = &p->pusher;
	int r = config_file_load(&p->config, reterr);

	if (r < 0)
		return r;
	take_config(s, p->config);
	r = resolve_endpoints(s, p, reterr);
	r = r ?: resolve_spans(s, p, reterr);
	r = r ?: resolve_tls(s, p, reterr);
	r = r ?: resolve_node(s, p);
	if (r < 0)
		return r;
	if (!s->cluster)
		return errinfo_set(reterr, -EINVAL, "give the cluster's name with --cluster-id");
	ps->cluster = s->cluster;
	resolve_rest(s, ps);
	r = resolve_mode(s, ps, reterr);
	r = r ?: pusher_check(ps, reterr);
	r = r ?: resolve_token(s, p, reterr);
	if (r == 0 && s->replay && (s->db || s->stub || s->once))
		return errinfo_set(reterr, -EINVAL,
			"--replay names the recording: it cannot be combined with --db, --stub and --once");
	if (r == 0 && !s->db && !s->stub && !s->replay)
		r = store_default_path(&p->default_db, reterr);
	ps->db = s->replay ? s->replay : s->db ? s->db : p->default_db;
	return r ?: resolve_mark(s, p);
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

/* Its lines come before the sentence of what failed. */
static int check(const struct pusher_settings *s, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf out = BUF_INIT(64 << 10);
	int r = pusher_probe(s, &out, reterr);

	fputs(buf_str(&out), stdout);
	return r;
}

/* The folder that @path is in, or the nearest one above it that is there. */
static size_t add_folder(const char *path, char room[PATH_MAX], const char **folders, size_t count)
{
	char *slash;

	if (!path || snprintf(room, PATH_MAX, "%s%s", *path == '/' ? "" : "./", path) >= PATH_MAX)
		return count;
	do {
		slash = strrchr(room, '/');
		if (slash)
			slash[slash == room] = 0;
	} while (slash && slash > room && access(room, F_OK) < 0);
	folders[count] = room;
	return count + (slash != NULL);
}

/* Before the first byte of a recording or a reply is read. It changes files beside the recording (SQLite's own), the
 * baseline, the known nodes and the stream's socket, all of which may be the user's who called sudo. */
static void confine(const struct pusher_settings *s)
{
	_cleanup_free_ char *real = s->db ? realpath(s->db, NULL) : NULL;
	char stream[SOCKET_PATH_MAX] = "";
	const char *const paths[] = {s->db, real, s->baseline, s->mark, s->tls.known,
		s->remediate ? s->stream_path : NULL, stream};
	char rooms[ARRAY_SIZE(paths)][PATH_MAX];
	const char *folders[ARRAY_SIZE(paths)];
	struct confine_server c = {
		.capabilities = CONFINE_CAP(CAP_CHOWN) | CONFINE_CAP(CAP_DAC_OVERRIDE) |
				CONFINE_CAP(CAP_FOWNER) | CONFINE_CAP(CAP_SETUID) |
				CONFINE_CAP(CAP_SETGID),
		.files = {.folders = folders, .freedoms = s->remediate ? CONFINE_SOCKETS : 0},
	};
	size_t n = 0;

	if (s->remediate && !s->stream_path)
		(void)socket_path_default(STREAM_AGENT_SOCKET, stream, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		n = paths[i] && *paths[i] ? add_folder(paths[i], rooms[i], folders, n) : n;
	c.files.folder_count = n;
	confine_server(&c);
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
	r = r ?: find_provider(s->provider, &p, &e);
	if (r == 0 && s->check) {
		r = check(&p.pusher, &e);
	} else if (r == 0) {
		confine(&p.pusher);
		r = pusher_run(&p.pusher, &e);
	}
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_fleet_push = {
	.name = "fleet-push",
	.synopsis = "fleet-push --endpoint ENDPOINT --cluster-id NAME [flags]",
	.summary = "Report this node's health to a fleet, from the recording of a running trace",
	.details =
		"Reads the recording that `ingero trace` is writing, and sends the node's health, its\n"
		"collectives and its incidents to `ingero-cluster fleet` or any OTLP receiver. It never\n"
		"delays traced programs. Stops on Ctrl-C or SIGTERM, after saving the baseline and\n"
		"sending what is left.\n"
		"  sudo ingero trace &\n"
		"  sudo ingero fleet-push --endpoint https://fleet:4318 --cluster-id train-1\n"
		"After a restart, even after kill -9, it continues where it stopped. --check tests everything and\n"
		"sends nothing; --replay sends a finished recording.",
	.options = fleet_push_options,
	.settings_size = sizeof(struct fleet_push_settings),
	.defaults = &fleet_push_defaults,
	.run = fleet_push_run,
};
