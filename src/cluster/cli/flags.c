/* SPDX-License-Identifier: Apache-2.0 */
/* flags.c - see flags.h. */
#include "cluster/cli/flags.h"

#include "net/address.h"

/* ---- addresses ---- */

const char *listen_address(const char *typed)
{
	return typed && typed[0] ? typed : NULL;
}

bool listen_address_any(const struct listen_addresses *a)
{
	return listen_address(a->grpc) || listen_address(a->http) || listen_address(a->api);
}

static bool is_low(const char *typed)
{
	const char *colon = typed ? strrchr(typed, ':') : NULL;
	long port = colon ? strtol(colon + 1, NULL, 10) : 0;

	return port > 0 && port < 1024;
}

bool listen_address_any_low(const struct listen_addresses *a)
{
	return is_low(a->grpc) || is_low(a->http) || is_low(a->api);
}

const char *listen_address_widest(const struct listen_addresses *a)
{
	const char *all[] = {a->api, a->http, a->grpc}, *found = "127.0.0.1:0";

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (listen_address(all[i]) && address_text_is_loopback(found))
			found = all[i];
	return found;
}

/* ---- who may come ---- */

struct server_access_options access_flags_options(const struct access_flags *f, const char *address)
{
	return (struct server_access_options){.address = address,
		.token_file = f->token_file,
		.variable = TOKEN_VARIABLE,
		.client_ca = f->client_ca,
		.no_token = f->no_token};
}

struct tls_server_settings access_flags_tls(const struct access_flags *f)
{
	return (struct tls_server_settings){
		.cert = f->cert, .key = f->key, .client_ca = f->client_ca, .names = f->names.value};
}

void access_flags_rights(const struct access_flags *f, struct service_rights *rights)
{
	const char *const reads[] = {f->acl, f->token_file, f->cert, f->key, f->client_ca};

	for (size_t i = 0; i < ARRAY_SIZE(reads); i++)
		service_rights_read(rights, reads[i]);
}

/* ---- the fleet's core ---- */

int fleet_flags_check(const struct fleet_flags *f, struct errinfo *reterr)
{
	if (f->node_page && strncmp(f->node_page, "https://", 8) != 0 &&
		strncmp(f->node_page, "http://", 7) != 0)
		return errinfo_set(reterr, -EINVAL,
			"--node-page: give an address that begins with https:// or http://, for example 'https://{node}:8080/'");
	if (f->forward_spool && !f->forward)
		return errinfo_set(reterr, -EINVAL, "--forward-spool needs --forward");
	return 0;
}

static struct fleet_settings core_settings(const struct fleet_flags *f)
{
	struct fleet_settings s = fleet_defaults;

	s.nodes = nodes_defaults;
	s.calls = calls_defaults;
	s.nodes.k = f->k;
	s.nodes.ema_alpha = f->ema_alpha;
	s.nodes.interval_ns = f->interval_ns;
	s.nodes.ttl_multiplier = (uint32_t)f->ttl_multiplier;
	s.nodes.quorum = (uint32_t)f->quorum;
	s.nodes.nodes_max = (uint32_t)f->max_nodes;
	s.nodes.nodes_per_token = (uint32_t)f->nodes_per_token;
	s.provider = f->provider;
	s.seed = (uint64_t)wall_now().ns;
	return s;
}

struct service_settings fleet_flags_settings(const struct fleet_flags *f)
{
	return (struct service_settings){.fleet = core_settings(f),
		.rates = f->rates,
		.snapshot = f->snapshot,
		.node_page = f->node_page};
}

struct outlets_settings fleet_flags_outlets(const struct fleet_flags *f)
{
	return (struct outlets_settings){.config = f->alerts,
		.forward = f->forward,
		.forward_spool = f->forward_spool,
		.remediate = f->remediate};
}

void fleet_flags_rights(const struct fleet_flags *f, struct service_rights *rights)
{
	service_rights_write_file(rights, f->snapshot);
	service_rights_read(rights, f->rates);
}

/* ---- the memory ---- */

static int check_engine(const struct echo_flags *f, struct errinfo *reterr)
{
	bool is_click = strcmp(f->engine, "clickhouse") == 0;

	if (!is_click && strcmp(f->engine, "duckdb") != 0)
		return errinfo_set(
			reterr, -EINVAL, "--engine %s: choose duckdb or clickhouse", f->engine);
	if (is_click && !f->clickhouse.count)
		return errinfo_set(reterr, -EINVAL,
			"--engine clickhouse: give the servers with --clickhouse http://host:8123");
	if (!is_click && f->clickhouse.count)
		return errinfo_set(reterr, -EINVAL, "--clickhouse needs --engine clickhouse");
	if (f->clickhouse.count > 1 && !f->clickhouse_cluster)
		return errinfo_set(reterr, -EINVAL,
			"several shards need --clickhouse-cluster, their name in the servers' remote_servers");
	if (f->clickhouse.count > CLICKHOUSE_SHARDS_MAX)
		return errinfo_set(
			reterr, -EINVAL, "--clickhouse: at most %d shards", CLICKHOUSE_SHARDS_MAX);
	return 0;
}

static int check_tokens(const struct access_flags *f, struct errinfo *reterr)
{
	if (f->acl && f->token_file)
		return errinfo_set(reterr, -EINVAL,
			"--bearer-acl-file cannot be combined with --token-file: put the token into the former, without allowed_clusters");
	if (f->acl && f->no_token)
		return errinfo_set(
			reterr, -EINVAL, "--no-token cannot be combined with --bearer-acl-file");
	return 0;
}

int echo_flags_check(const struct echo_flags *f, const char *address, struct errinfo *reterr)
{
	const struct access_flags *a = &f->access;
	struct server_access_options access = access_flags_options(a, address);
	struct tls_server_settings tls = access_flags_tls(a);
	bool far = !address_text_is_loopback(address);
	union address parsed;
	int r = address_parse(address, &parsed, reterr);

	r = r ?: check_tokens(a, reterr);
	r = r ?: check_engine(f, reterr);
	r = r ?: server_tls_check(&tls, a->no_tls ? "--insecure-no-tls" : NULL, reterr);
	if (r < 0)
		return r;
	if (a->no_tls && far)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"--insecure-no-tls: %s is reachable from other machines, and traffic would not be encrypted; listen on 127.0.0.1",
			address);
	if (far && !a->acl && !a->token_file && !getenv(TOKEN_VARIABLE) && !a->client_ca)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"%s is reachable from other machines: require tokens with --token-file or --bearer-acl-file, or certificates with --client-ca, or listen on 127.0.0.1",
			address);
	return server_access_check(&access, reterr);
}

/* As root the store was in the home of who called sudo: whoever has one there is not to begin anew unawares. */
static int check_earlier(const char *now, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_free_ char *earlier = NULL;

	if (!state_folder_is_roots() || access(now, F_OK) == 0 ||
		owner_home_file("echo", &earlier, NULL) < 0 ||
		path_user_enter(earlier, &before, reterr) < 0 || access(earlier, F_OK) < 0)
		return 0;
	return errinfo_set_exit(reterr, EXIT_CONFIG, -EEXIST,
		"there is a store in %s, but root's default is %s now: move it there, or use it with --db-path %s; to start a new one, create the folder %s",
		earlier, now, earlier, now);
}

static int find_folder(const struct echo_flags *f, char **ret, struct errinfo *reterr)
{
	_cleanup_free_ char *home = NULL;
	int r;

	if (f->folder) {
		*ret = strdup(f->folder);
		return *ret ? 0 : -ENOMEM;
	}
	r = state_folder(&home, reterr);
	if (r == 0 && asprintf(ret, "%s/echo", home) < 0) {
		*ret = NULL;
		r = -ENOMEM;
	}
	return r ?: check_earlier(*ret, reterr);
}

static int read_password(const char *path, char **ret, struct errinfo *reterr)
{
	return path ? token_read(path, NULL, ret, reterr) : 0;
}

void echo_prepared_done(struct echo_prepared *p)
{
	free(p->folder);
	free(p->password);
	free(p->reader_password);
}

int echo_flags_prepare(
	const struct echo_flags *f, struct echo_prepared *ret, struct errinfo *reterr)
{
	struct echo_service_settings *s = &ret->settings;
	int r = find_folder(f, &ret->folder, reterr);

	r = r ?: read_password(f->clickhouse_password_file, &ret->password, reterr);
	r = r ?: read_password(f->clickhouse_reader_password_file, &ret->reader_password, reterr);
	if (r < 0)
		return r;
	*s = (struct echo_service_settings){.folder = ret->folder,
		.engine = strcmp(f->engine, "duckdb") == 0 ? ECHO_DUCKDB : ECHO_CLICKHOUSE,
		.journal_bytes_max = f->journal_bytes,
		.audit = !f->no_audit};
	s->duck = (struct store_duck_settings){.memory_bytes = f->memory_bytes,
		.retention_ns = f->retention_ns,
		.trust_clock = f->trust_clock,
		.bytes_max = f->bytes_max};
	s->clickhouse = (struct store_clickhouse_settings){.shards = f->clickhouse.value,
		.shard_count = f->clickhouse.count,
		.cluster = f->clickhouse_cluster,
		.database = f->clickhouse_database,
		.user = f->clickhouse_user,
		.password = ret->password,
		.reader = f->clickhouse_reader,
		.reader_password = ret->reader_password,
		.retention_ns = f->retention_ns,
		.trust_clock = f->trust_clock};
	return 0;
}
