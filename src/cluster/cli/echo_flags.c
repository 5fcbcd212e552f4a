/* SPDX-License-Identifier: Apache-2.0 */
/* echo_flags.c - see echo_flags.h. */
#include "cluster/cli/echo_flags.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/path_user.h"
#include "net/address.h"
#include "net/server/token.h"

struct server_access_options echo_flags_access(const struct echo_flags *f, const char *address)
{
	return (struct server_access_options){.address = address,
		.token_file = f->token_file,
		.variable = ECHO_TOKEN_VARIABLE,
		.client_ca = f->client_ca,
		.no_token = f->no_token};
}

struct tls_server_settings echo_flags_tls(const struct echo_flags *f)
{
	return (struct tls_server_settings){
		.cert = f->cert, .key = f->key, .client_ca = f->client_ca, .names = f->names.value};
}

void echo_flags_rights(const struct echo_flags *f, struct service_rights *rights)
{
	const char *const reads[] = {f->acl, f->token_file, f->cert, f->key, f->client_ca};

	for (size_t i = 0; i < ARRAY_SIZE(reads); i++)
		service_rights_read(rights, reads[i]);
}

static int check_engine(const struct echo_flags *f, struct errinfo *reterr)
{
	bool is_click = strcmp(f->engine, "clickhouse") == 0;

	if (!is_click && strcmp(f->engine, "duckdb") != 0)
		return errinfo_set(
			reterr, -EINVAL, "--engine %s: choose duckdb or clickhouse", f->engine);
	if (is_click && !f->clickhouse.count)
		return errinfo_set(reterr, -EINVAL,
			"--engine clickhouse: say where the servers are, with --clickhouse http://host:8123");
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

static int check_tokens(const struct echo_flags *f, struct errinfo *reterr)
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
	struct server_access_options access = echo_flags_access(f, address);
	struct tls_server_settings tls = echo_flags_tls(f);
	bool far = !address_text_is_loopback(address);
	int r = check_tokens(f, reterr);

	if (r == 0)
		r = check_engine(f, reterr);
	if (r == 0)
		r = server_tls_check(&tls, f->no_tls ? "--insecure-no-tls" : NULL, reterr);
	if (r < 0)
		return r;
	if (f->no_tls && far)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"--insecure-no-tls: %s is reachable from other machines, and traffic would not be encrypted; listen on 127.0.0.1",
			address);
	if (far && !f->acl && !f->token_file && !getenv(ECHO_TOKEN_VARIABLE) && !f->client_ca)
		return errinfo_set_exit(reterr, EXIT_NO_PERMISSION, -EPERM,
			"%s is reachable from other machines: require tokens with --token-file or --bearer-acl-file, or certificates with --client-ca, or listen on 127.0.0.1",
			address);
	return server_access_check(&access, reterr);
}

/* ---- settings ---- */

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
		"there is a store in %s, but root's default is %s now: move it there, or use it with --db-path %s; to begin anew, make the folder %s",
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
	return r == 0 ? check_earlier(*ret, reterr) : r;
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

	if (r == 0)
		r = read_password(f->clickhouse_password_file, &ret->password, reterr);
	if (r == 0)
		r = read_password(
			f->clickhouse_reader_password_file, &ret->reader_password, reterr);
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
		.retention_ns = f->retention_ns};
	return 0;
}
