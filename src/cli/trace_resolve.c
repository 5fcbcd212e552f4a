/* SPDX-License-Identifier: Apache-2.0 */
/* trace_resolve.c - checks the options of `ingero trace` and turns them into what the agent wants.
 * Nothing is opened or written here, so a wrong option leaves no trace. */
#include <pwd.h>

#include "base/path_user.h"
#include "cli/trace_settings.h"
#include "command/config_file.h"
#include "config.h"
#include "notify/remediate/remediate.h"
#include "record/annotate/annotate.h"
#include "record/discover/identity.h"
#include "record/gpu/child.h"
#include "record/probe/probe.h"
#include "store/write/prune.h"

/* The options of `ingero trace` that are about the remediation stream and steps of
 * inference. */

#define INFERENCE_HEARTBEAT_NS (30 * NS_PER_S)
#define INFERENCE_ROLLOVER     (1ULL << 30)

static int trace_resolve_stream_check_companions(
	const struct trace_settings *s, struct errinfo *reterr)
{
	const struct trace_settings *d = &trace_defaults;

	if (!s->remediate && !s->inference && (s->remediate_socket || s->remediate_gid >= 0))
		return errinfo_set(reterr, -EINVAL,
			"--remediate-socket and --remediate-gid require --remediate");
	if (!s->inference && (s->inference_warmup != d->inference_warmup ||
				     s->inference_ratio != d->inference_ratio ||
				     s->inference_pause || s->inference_phase || s->kv_lineage))
		return errinfo_set(reterr, -EINVAL, "--inference-* options require --inference");
	if (!s->kv_lineage && (s->kv_top != d->kv_top || s->kv_max))
		return errinfo_set(reterr, -EINVAL,
			"--inference-kvcache-* options require --inference-kvcache-lineage");
	if (s->inference_phase && strcmp(s->inference_phase, "off") != 0)
		return errinfo_set(reterr, -EINVAL,
			"--inference-phase-classifier: only off is accepted: launches are sampled, so a step's phase is unknown; label phases with `ingero annotate`");
	return 0;
}

static int resolve_pause(const char *name, int *ret, struct errinfo *reterr)
{
	*ret = SEVERITY_HIGH;
	if (!name)
		return 0;
	*ret = SEVERITY_COUNT;
	for (int i = 0; *name && i < SEVERITY_COUNT; i++)
		if (strcmp(name, severity_name((enum severity)i)) == 0)
			*ret = i;
	if (*name && *ret == SEVERITY_COUNT)
		return errinfo_set(reterr, -EINVAL,
			"--inference-pause-on-severity %.40s: choose LOW, MEDIUM, HIGH, CRITICAL or ''",
			name);
	return 0;
}

/* What --inference brings along where nothing else was said. */
static void imply(const struct trace_settings *s, struct trace_plan *p)
{
	p->json = s->json;
	if (!s->inference)
		return;
	p->json |= !isatty(STDOUT_FILENO);
	if (!s->heartbeat_ns)
		p->tracer.heartbeat_ns = INFERENCE_HEARTBEAT_NS;
	if (s->max_db_bytes == TRACE_NOT_GIVEN && !s->rollover_bytes) {
		p->tracer.max_db_bytes = 0;
		p->tracer.rollover_bytes = INFERENCE_ROLLOVER;
	}
}

static int trace_resolve_stream(
	const struct trace_settings *s, struct trace_plan *p, struct errinfo *reterr)
{
	int r = trace_resolve_stream_check_companions(s, reterr);

	r = r ?: resolve_pause(s->inference_pause, &p->pause_severity, reterr);
	if (r < 0)
		return r;
	imply(s, p);
	p->has_stream = s->remediate || s->inference;
	if (!p->has_stream)
		return 0;
	if (!s->remediate_socket)
		r = socket_path_default(REMEDIATE_SOCKET, p->stream_path, reterr);
	else if (strlen(s->remediate_socket) >= sizeof(p->stream_path))
		r = errinfo_set(reterr, -EINVAL, "--remediate-socket: the path is too long");
	else
		snprintf(p->stream_path, sizeof(p->stream_path), "%s", s->remediate_socket);
	p->tracer.stream_path = p->stream_path;
	p->stream = (struct remediate_settings){.path = p->stream_path,
		.group = s->remediate_gid >= 0 ? (gid_t)s->remediate_gid : SOCKET_NO_GROUP,
		.node = p->node,
		.cluster = s->cluster ? s->cluster : "",
		.inference = s->inference,
		.steps = {.warmup = (unsigned)s->inference_warmup, .ratio = s->inference_ratio},
		.kv_top = s->kv_lineage ? (size_t)s->kv_top : 0,
		.allocs_max = s->kv_max ? (size_t)s->kv_max : BALANCE_ALLOCS};
	return r;
}

#define BUDGET_DEFAULT    0.01
#define MAX_DB_DEFAULT    (10ULL << 30)
#define INTERVAL_MIN_NS   NS_PER_S
#define CLUSTER_BYTES_MAX 255

static int resolve_method(const char *name, int *ret, struct errinfo *reterr)
{
	*ret = TRACER_METHOD_AUTO;
	if (!name)
		return 0;
	for (int m = PROBE_SESSION; m <= PROBE_PERF; m++)
		if (!strcmp(name, probe_method_name((enum probe_method)m))) {
			*ret = m;
			return 0;
		}
	return errinfo_set(
		reterr, -EINVAL, "--attach-method %s: choose session, multi or perf", name);
}

static int resolve_py_walker(const char *name, enum tracer_py_walker *ret, struct errinfo *reterr)
{
	static const char *const names[] = {[TRACER_PY_AUTO] = "auto",
		[TRACER_PY_EBPF] = "ebpf",
		[TRACER_PY_USERSPACE] = "userspace"};

	for (size_t i = 0; name && i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum tracer_py_walker)i;
			return 0;
		}
	return name ? errinfo_set(reterr, -EINVAL, "--py-walker %s: choose auto, ebpf or userspace",
			      name)
		    : 0;
}

static int resolve_filter(
	const struct trace_settings *s, struct tracer_settings *t, struct errinfo *reterr)
{
	struct passwd *pw;

	t->filter = FILTER_ALL;
	if (s->pids.count && s->user)
		return errinfo_set(reterr, -EINVAL, "give either --pid or --user, not both");
	if (s->pids.count) {
		t->filter = FILTER_PIDS;
		t->pids = s->pids.pid;
		t->pid_count = s->pids.count;
	}
	if (s->user) {
		pw = getpwnam(s->user);
		if (!pw)
			return errinfo_set(reterr, -ENOENT, "unknown user '%s'", s->user);
		t->filter = FILTER_USER;
		t->uid = pw->pw_uid;
	}
	return 0;
}

/* --node, else agent.node of ingero.yaml, else the host's name; --notify likewise. */
static int resolve_agent(
	const struct trace_settings *s, struct trace_plan *p, struct errinfo *reterr)
{
	_cleanup_(config_freep) struct config *config = NULL;
	const char *name = s->node;
	int r = config_file_load(&config, reterr);

	if (r < 0)
		return r;
	if (s->notify || config->notify) {
		p->notify = strdup(s->notify ? s->notify : config->notify);
		if (!p->notify)
			return -ENOMEM;
	}
	name = name ?: config->node;
	if (gethostname(p->host, sizeof(p->host) - 1) < 0)
		return -errno;
	snprintf(p->node, sizeof(p->node), "%s", name ? name : p->host);
	return identity_node_check(name ? name : p->node, reterr);
}

static int resolve_ring(uint64_t bytes, uint32_t *ret, struct errinfo *reterr)
{
	if (bytes && (bytes < 4096 || bytes > (1u << 30) || (bytes & (bytes - 1))))
		return errinfo_set(reterr, -EINVAL,
			"--ringbuf-size: must be a power of two from 4096 bytes to 1 GiB");
	*ret = (uint32_t)bytes;
	return 0;
}

static int resolve_period(uint64_t ns, uint64_t *ret, struct errinfo *reterr)
{
	if (ns < GPU_PERIOD_MIN_NS || ns > GPU_PERIOD_MAX_NS)
		return errinfo_set(
			reterr, -EINVAL, "--throttle-poll-interval: must be between 100ms and 1m");
	*ret = ns;
	return 0;
}

static int resolve_budget(const char *text, double *ret, struct errinfo *reterr)
{
	char *end;

	*ret = BUDGET_DEFAULT;
	if (!text)
		return 0;
	*ret = strtod(text, &end);
	if (*end == '%') {
		*ret /= 100;
		end++;
	}
	if (end == text || *end || !(*ret >= 0) || *ret > 1)
		return errinfo_set(reterr, -EINVAL,
			"--overhead-budget %s: must be a share like 1%% or 0.01, or 0 for no limit",
			text);
	return 0;
}

static int resolve_size(
	const struct trace_settings *s, struct tracer_settings *t, struct errinfo *reterr)
{
	if (s->max_db_bytes != TRACE_NOT_GIVEN && s->rollover_bytes)
		return errinfo_set(
			reterr, -EINVAL, "give either --max-db or --db-rollover-size, not both");
	t->rollover_bytes = s->rollover_bytes;
	t->rollover_keep = (unsigned)s->rollover_keep;
	if (!s->rollover_bytes)
		t->max_db_bytes =
			s->max_db_bytes == TRACE_NOT_GIVEN ? MAX_DB_DEFAULT : s->max_db_bytes;
	if ((t->max_db_bytes && t->max_db_bytes < PRUNE_LIMIT_MIN) ||
		(t->rollover_bytes && t->rollover_bytes < PRUNE_LIMIT_MIN))
		return errinfo_set(reterr, -EINVAL,
			"--max-db and --db-rollover-size: must be at least 1m, or 0 for no limit");
	return 0;
}

static int resolve_annotate(
	const struct trace_settings *s, struct trace_plan *t, struct errinfo *reterr)
{
	struct tracer_settings *ts = &t->tracer;
	int r = 0;

	ts->annotate_gid = s->annotate_gid;
	if (!s->annotate)
		return 0;
	if (!s->record)
		return errinfo_set(
			reterr, -EINVAL, "--annotate cannot be combined with --record=false");
	if (s->annotate_socket && strlen(s->annotate_socket) < sizeof(t->annotate_path))
		snprintf(t->annotate_path, sizeof(t->annotate_path), "%s", s->annotate_socket);
	else if (s->annotate_socket)
		r = errinfo_set(reterr, -EINVAL, "--annotate-socket: the path is too long");
	else
		r = socket_path_default(ANNOTATE_SOCKET, t->annotate_path, reterr);
	ts->annotate_path = t->annotate_path;
	return r;
}

/* OpenTelemetry's variables: that of metrics goes before the one of all signals, and "" is none. */
static const char *variable(const char *of_metrics, const char *of_all)
{
	const char *value = getenv(of_metrics);

	if (!value || !*value)
		value = getenv(of_all);
	return value && *value ? value : NULL;
}

static int resolve_compression(bool *ret, struct errinfo *reterr)
{
	const char *said = variable(
		"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION");

	if (said && strcmp(said, "gzip") != 0 && strcmp(said, "none") != 0)
		return errinfo_set(
			reterr, -EINVAL, "OTEL_EXPORTER_OTLP_COMPRESSION: must be gzip or none");
	*ret = said && strcmp(said, "gzip") == 0;
	return 0;
}

/* OTEL_RESOURCE_ATTRIBUTES, by which Kubernetes tells pod and environment, and OTEL_SERVICE_NAME. */
static int resolve_resource(struct trace_plan *p, struct errinfo *reterr)
{
	static const char name[] = "OTEL_RESOURCE_ATTRIBUTES";
	struct otlp_resource *r = &p->telemetry.push.resource;
	int err = endpoint_fields_parse(variable(name, name), name, &p->attributes, reterr);

	for (size_t i = 0; err == 0 && i < p->attributes.count && i < OTLP_RESOURCE_MAX; i++) {
		r->more[r->more_count++] = (struct otlp_resource_row){
			p->attributes.field[i].name, p->attributes.field[i].value};
		if (!strcmp(p->attributes.field[i].name, "service.name"))
			r->service = p->attributes.field[i].value;
	}
	if (getenv("OTEL_SERVICE_NAME") && *getenv("OTEL_SERVICE_NAME"))
		r->service = getenv("OTEL_SERVICE_NAME");
	return err;
}

static int resolve_otlp(
	const struct trace_settings *s, struct trace_plan *p, struct errinfo *reterr)
{
	const struct endpoint_options o = {.text = s->otlp,
		.protocol = s->otlp_protocol,
		.insecure = s->otlp_insecure,
		.insecure_far = s->otlp_insecure_far};
	const char *headers = getenv("OTEL_EXPORTER_OTLP_METRICS_HEADERS");
	int r;

	if (!!s->otlp_client_cert != !!s->otlp_client_key)
		return errinfo_set(reterr, -EINVAL,
			"--otlp-client-cert and --otlp-client-key must be given together");
	r = endpoint_parse(&o, &p->endpoint, reterr);
	r = r
		    ?: endpoint_fields_parse(
			       headers ? headers : getenv("OTEL_EXPORTER_OTLP_HEADERS"),
			       "OTEL_EXPORTER_OTLP_HEADERS", &p->fields, reterr);
	if (r < 0)
		return r;
	p->telemetry.push = (struct push_settings){.endpoint = &p->endpoint,
		.fields = &p->fields,
		.ca = s->otlp_ca_cert,
		.cert = s->otlp_client_cert,
		.key = s->otlp_client_key,
		.insecure_far = s->otlp_insecure_far,
		.resource = {.version = INGERO_VERSION,
			.node = p->node,
			.host = p->host,
			.cluster = s->cluster}};
	r = resolve_compression(&p->telemetry.push.gzip, reterr);
	return r < 0 ? r : resolve_resource(p, reterr);
}

/* An option that does nothing alone is a mistake of the user's, and often a costly one. */
static int check_companions(const struct trace_settings *s, struct errinfo *reterr)
{
	if (!s->otlp && (s->otlp_protocol || s->otlp_insecure || s->otlp_insecure_far ||
				s->otlp_interval_ns || s->otlp_ca_cert || s->otlp_client_cert ||
				s->otlp_client_key))
		return errinfo_set(reterr, -EINVAL, "--otlp-* options require --otlp");
	if (!s->prometheus && (s->prometheus_token_file || s->prometheus_allow_remote))
		return errinfo_set(reterr, -EINVAL, "--prometheus-* options require --prometheus");
	if (s->otlp_interval_ns && s->otlp_interval_ns < INTERVAL_MIN_NS)
		return errinfo_set(reterr, -EINVAL,
			"--otlp-interval: must be at least 1s: metrics are updated once a second");
	if (!s->nccl)
		return errinfo_set(reterr, -EINVAL,
			"--nccl=false: NCCL calls are always traced; leave it out");
	if (s->cluster && (!s->cluster[0] || strlen(s->cluster) > CLUSTER_BYTES_MAX))
		return errinfo_set(reterr, -EINVAL, "--cluster: must be a name of 1 to %d bytes",
			CLUSTER_BYTES_MAX);
	return 0;
}

static int resolve_telemetry(
	const struct trace_settings *given, struct trace_plan *p, struct errinfo *reterr)
{
	struct trace_settings with = *given, *s = &with;
	int r;

	if (!s->otlp)
		s->otlp = variable(
			"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
	if (s->otlp && !s->otlp_protocol)
		s->otlp_protocol = variable(
			"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL");
	r = check_companions(s, reterr);
	if (r == 0 && s->otlp)
		r = resolve_otlp(s, p, reterr);
	p->telemetry.interval_ns = s->otlp_interval_ns;
	p->telemetry.scrape = (struct scrape_settings){.address = s->prometheus,
		.token_file = s->prometheus_token_file,
		.allow_remote = s->prometheus_allow_remote};
	p->has_telemetry = s->otlp || s->prometheus;
	p->tracer.metrics = p->has_telemetry;
	return r;
}

/* ~/.ingero is made; a folder that somebody named and that is not there is a mistake more often than a wish. */
static int resolve_db(const struct trace_settings *s, struct trace_plan *p, struct errinfo *reterr)
{
	const char *set = getenv("INGERO_DB"), *named = s->db ? s->db : set && *set ? set : NULL;
	_cleanup_free_ char *folder = s->record && named ? strdup(named) : NULL;
	char *slash = folder ? strrchr(folder, '/') : NULL;

	if (!s->record)
		return 0;
	if (slash && slash > folder) {
		*slash = 0;
		if (access(folder, F_OK) < 0 && errno == ENOENT)
			return errinfo_set_exit(reterr, EXIT_NO_CREATE, -ENOENT,
				"folder %s does not exist: create it, or choose another file with --db",
				folder);
	}
	return s->db ? 0 : store_default_path(&p->default_path, reterr);
}

/* What needs no check. */
static void resolve_rest(const struct trace_settings *s, struct trace_plan *p)
{
	struct tracer_settings *ts = &p->tracer;

	if (s->record)
		p->db_path = s->db ? s->db : p->default_path;
	ts->cuda_lib = s->cuda_lib;
	ts->nccl_lib = s->nccl_lib;
	ts->libraries = s->libraries.value;
	ts->library_count = s->libraries.count;
	ts->record_all = s->record_all;
	ts->no_block = s->no_io;
	ts->no_net = s->no_net || s->no_tcp;
	ts->sampling_rate = (uint32_t)s->sampling_rate;
	ts->no_stacks = !s->stack;
	ts->stack_samples = (uint32_t)s->stack_samples;
	ts->sample_hz = (uint32_t)s->sample_hz;
	ts->no_memory = s->no_memory;
	ts->old_kernel = s->old_kernel;
	ts->refuse_program = s->refuse_program;
	ts->user_targets = (uint32_t)s->user_targets;
	ts->deadband_points = (double)s->deadband;
	ts->heartbeat_ns = s->heartbeat_ns;
	ts->node = p->node;
	ts->db_path = p->db_path;
}

int trace_resolve(const struct trace_settings *s, struct trace_plan *p, struct errinfo *reterr)
{
	struct tracer_settings *ts = &p->tracer;
	int r = resolve_filter(s, ts, reterr);

	r = r ?: resolve_agent(s, p, reterr);
	r = r ?: resolve_method(s->method, &ts->method, reterr);
	r = r ?: resolve_py_walker(s->py_walker, &ts->py_walker, reterr);
	r = r ?: resolve_ring(s->ring_bytes, &ts->ring_bytes, reterr);
	r = r ?: resolve_budget(s->budget, &ts->overhead_budget, reterr);
	r = r ?: resolve_size(s, ts, reterr);
	r = r ?: resolve_annotate(s, p, reterr);
	r = r ?: resolve_telemetry(s, p, reterr);
	r = r ?: resolve_db(s, p, reterr);
	resolve_rest(s, p);
	r = r ?: resolve_period(s->gpu_period_ns, &ts->gpu_period_ns, reterr);
	return r < 0 ? r : trace_resolve_stream(s, p, reterr);
}

void trace_plan_done(struct trace_plan *p)
{
	endpoint_fields_done(&p->fields);
	endpoint_fields_done(&p->attributes);
	free(p->default_path);
	free(p->notify);
}
