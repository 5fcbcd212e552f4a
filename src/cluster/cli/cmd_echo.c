/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_echo.c - `ingero-cluster echo`: the cluster's memory as a service; and backup, verify, repair, restore and export
 * of its store. */
#include <libgen.h>

#include "base/log.h"
#include "base/text.h"
#include "cluster/cli/commands.h"
#include "cluster/cli/flags.h"
#include "cluster/keep/keeper.h"
#include "command/program.h"

struct echo_typed {
	struct listen_addresses at;
	const char *cluster;
	struct echo_flags echo;
};

/* ---- files of a store: each prints one line, and one more for each thing that is damaged, missing or brought back ---- */

/* Root uses a store, and what is beside it, with the rights of whoever may change names there. */
static int enter(
	const char *store, const char *other, struct path_user *ret_before, struct errinfo *reterr)
{
	_cleanup_free_ char *copy = other ? strdup(other) : NULL;
	const char *folders[] = {store, copy ? dirname(copy) : NULL};

	if (other && !copy)
		return -ENOMEM;
	return service_rights_enter(folders, other ? 2 : 1, ret_before, reterr);
}

/* find_store - the folder that the flags name, used with its owner's rights from here on. */
static int find_store(const struct echo_flags *f, const char *other, struct echo_prepared *p,
	struct path_user *before, struct errinfo *reterr)
{
	int r = echo_flags_prepare(f, p, reterr);

	if (r == 0 && p->settings.engine != ECHO_DUCKDB)
		r = errinfo_set(reterr, -EINVAL,
			"this is for --engine duckdb: ClickHouse has its own backup and export");
	r = r ?: enter(p->folder, other, before, reterr);
	if (r == 0 && access(p->folder, F_OK) < 0)
		r = errinfo_set(
			reterr, -ENOENT, "there is no store in %s: give --db-path", p->folder);
	return r;
}

#define NOT_SEALED                                                                                 \
	"Rows that a running service has not sealed yet, about the last minute, are not in it.\n"

static int backup(const struct echo_typed *t, char **words, struct errinfo *reterr)
{
	const char *to = words[0];
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(echo_prepared_done) struct echo_prepared p = {0};
	int r = find_store(&t->echo, to, &p, &before, reterr);

	r = r ?: store_duck_backup(p.folder, to, reterr);
	if (r == 0)
		printf("Backed up %s to %s: check it with `ingero-cluster echo verify %s`\n" NOT_SEALED,
			p.folder, to, to);
	return r;
}

/* ---- damage ---- */

/* Names in it are of the manifest, which may be a stranger's. */
static void tell_line(void *arg _unused_, const char *sentence)
{
	printf("%s\n", TEXT_SHOWN(sentence));
}

/* The journal of a store; a backup has none. */
static int verify_journal(const char *folder, uint64_t durable, struct errinfo *reterr)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (asprintf(&path, "%s/journal", folder) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	r = journal_verify(path, durable, tell_line, NULL, reterr);
	return r > 0 ? errinfo_set_exit(reterr, EXIT_BAD_DATA, -EBADMSG, "%s is not intact", folder)
		     : r;
}

static int verify(const struct echo_typed *t _unused_, char **words, struct errinfo *reterr)
{
	const char *folder = words[0];
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	struct store_report report = {.tell = tell_line};
	int r = enter(folder, NULL, &before, reterr), j;

	r = r ?: store_duck_verify(folder, &report, reterr);
	if (r < 0 && r != -EBADMSG)
		return r;
	if (r == -EBADMSG && !report.findings) /* not even its manifest can be read */
		return r;
	j = verify_journal(folder, report.durable, reterr);
	if (r == 0 && j == 0)
		printf("%s is intact\n", folder);
	return r < 0 ? r : j;
}

/* What of the journal's entries is rows of one cluster. */
static int put_rows(const struct journal_entry *e, const char *cluster, struct buf *ret)
{
	struct batch_row row;
	struct entry entry;
	struct batch_reader reader;
	const uint8_t *at;
	int r = e->data ? entry_get(e->data, e->len, &entry) : -EBADMSG;

	if (r < 0)
		return -ENODATA;
	reader = (struct batch_reader){entry.batch, entry.len};
	for (at = reader.data; (r = batch_next(&reader, &row)) > 0; at = reader.data) {
		const struct sql_value *v = &row.cells[store_tables[row.table].cluster];

		if (v->type == SQL_TEXT && v->len == strlen(cluster) &&
			memcmp(v->p, cluster, v->len) == 0)
			buf_append(ret, at, (size_t)(reader.data - at));
	}
	return r < 0 ? -ENODATA : 0;
}

static int rows_of_journal(
	void *arg, const char *cluster, uint64_t first, uint64_t last, struct buf *ret)
{
	_cleanup_(journal_reader_freep) struct journal_reader *reader = NULL;
	struct journal_entry e = {0};
	int r = journal_reader_new(arg, first - 1, &reader, NULL);

	while (r >= 0 && e.position < last) {
		r = journal_next(reader, 0, &e, NULL);
		if (r == 0)
			return -ENODATA; /* it ends before */
		if (r > 0)
			r = put_rows(&e, cluster, ret);
	}
	return r < 0 ? r : 0;
}

/* Else one would be made, and found intact. */
static bool is_store(const char *folder)
{
	static const char *const names[] = {"manifest", "manifest.copy", "journal"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (access(FORMATTED(4096, "%s/%s", folder, names[i]), F_OK) == 0)
			return true;
	}
	return false;
}

static int repair(const struct echo_typed *t, char **words, struct errinfo *reterr)
{
	const char *folder = words[0], *from = words[1]; /* NULL: no backup */
	const struct store_duck_settings settings = {
		.folder = folder, .memory_bytes = t->echo.memory_bytes};
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(journal_freep) struct journal *journal = NULL;
	_cleanup_(store_freep) struct store *s = NULL;
	struct store_report report = {.tell = tell_line};
	const char *const folders[] = {folder, from};
	char path[4096];
	int r, j;

	if (access(folder, F_OK) < 0)
		return errinfo_set(reterr, -ENOENT, "there is no store in %s", folder);
	snprintf(path, sizeof(path), "%s/journal", folder);
	r = service_rights_enter(folders, from ? 2 : 1, &before, reterr);
	if (r == 0 && !is_store(folder))
		r = errinfo_set(reterr, -ENOENT, "there is no store in %s", folder);
	r = r ?: store_duck_open(&settings, &s, reterr);
	r = r ?: journal_open_to_read(path, &journal, reterr);
	if (r < 0)
		return r;
	r = store_duck_repair(s, from, rows_of_journal, journal, &report, reterr);
	if (r < 0 && r != -EBADMSG)
		return r;
	j = verify_journal(folder, store_durable(s), reterr);
	if (r == 0 && j == 0)
		printf("%s is intact\n", folder);
	return r < 0 ? r : j;
}

/* ---- copies ---- */

static int restore(const struct echo_typed *t _unused_, char **words, struct errinfo *reterr)
{
	const char *from = words[0], *to = words[1];
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = enter(from, to, &before, reterr);

	r = r ?: store_duck_restore(from, to, reterr);
	if (r == 0)
		printf("Restored %s to %s: start it with `ingero-cluster echo --db-path %s`\n",
			from, to, to);
	return r;
}

static int find_table(const char *name, enum store_table *ret, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf names = BUF_INIT(256);

	for (int t = 0; t < TABLE_COUNT; t++) {
		if (strcmp(store_tables[t].name, name) == 0) {
			*ret = (enum store_table)t;
			return 0;
		}
		buf_printf(&names, "%s%s", t ? ", " : "", store_tables[t].name);
	}
	return errinfo_set(
		reterr, -EINVAL, "there is no table %.60s: choose %s", name, buf_str(&names));
}

/* The service may have the store open: what is read is a second store of the same files. */
static int export_linked(struct echo_prepared *p, const char *linked, const char *cluster,
	enum store_table t, const char *path, uint64_t *ret_rows, struct store_missing *ret_missing,
	struct errinfo *reterr)
{
	_cleanup_(store_freep) struct store *s = NULL;
	struct store_scope scope = {
		.clusters = cluster ? &cluster : NULL, .cluster_count = cluster ? 1 : 0};
	int r;

	p->settings.duck.folder = linked;
	p->settings.duck.retention_ns = 0; /* looking changes nothing */
	p->settings.duck.bytes_max = 0;
	r = store_duck_open(&p->settings.duck, &s, reterr);
	r = r ?: store_duck_export(s, t, &scope, path, ret_rows, reterr);
	if (r == 0)
		store_missing(s, &scope, ret_missing);
	return r;
}

static int export_table(const struct echo_typed *t, char **words, struct errinfo *reterr)
{
	const char *table = words[0], *path = words[1];
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	_cleanup_(echo_prepared_done) struct echo_prepared p = {0};
	_cleanup_free_ char *linked = NULL;
	enum store_table which = TABLE_EVENTS;
	uint64_t rows = 0;
	struct store_missing missing = {0};
	int r = find_table(table, &which, reterr);

	if (asprintf(&linked, "%s.store", path) < 0) {
		linked = NULL;
		return -ENOMEM;
	}
	r = r ?: find_store(&t->echo, path, &p, &before, reterr);
	r = r ?: store_duck_link(p.folder, linked, reterr);
	if (r < 0)
		return r;
	r = export_linked(&p, linked, t->cluster, which, path, &rows, &missing, reterr);
	store_duck_unlink(linked);
	if (r == 0)
		printf("Wrote %s of %s to %s, as Parquet\n" NOT_SEALED, TEXT_PLURAL(rows, "rows"),
			table, path);
	if (missing.parts || missing.requests)
		log_warning("incomplete: %" PRIu64 " rows of all tables, and those of %" PRIu64
			    " requests, are damaged and missing from it",
			missing.rows, missing.requests);
	return r;
}

/* ---- the command ---- */

static const struct echo_typed defaults = {
	.at = LISTEN_DEFAULTS("127.0.0.1:8081"),
	.echo = ECHO_FLAGS_DEFAULTS,
};

#define OPTION(field) offsetof(struct echo_typed, field)
#define AT(field)     offsetof(struct echo_typed, at.field)
#define ECHO(field)   offsetof(struct echo_typed, echo.field)
#define ACCESS(field) offsetof(struct echo_typed, echo.access.field)
static const struct option_row echo_options[] = {
	LISTEN_GRPC_OPTION(AT, "otlp-addr"),
	OPTION_ALIAS(TEXT, "grpc-addr", AT(grpc), "HOST:PORT", "as --otlp-addr"),
	LISTEN_HTTP_OPTION(AT),
	LISTEN_API_OPTION(AT, "mcp-addr", "MCP, the API and /metrics", "127.0.0.1:8081"),
	OPTION_ALIAS(TEXT, "api-addr", AT(api), "HOST:PORT", "as --mcp-addr"),
	ECHO_FLAGS_OPTIONS(ECHO, ACCESS),
	OPTION_ROW(STRING, "cluster-id", OPTION(cluster), "NAME",
		"of `export`: only this cluster (default: all)"),
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

/* The words behind the command, and how many each needs. 1: the service is to be started. */
static int do_words(const struct echo_typed *t, int argc, char **argv, struct errinfo *reterr)
{
	static const struct {
		const char *word, *rest;
		int least, most;
		int (*run)(const struct echo_typed *t, char **words, struct errinfo *reterr);
	} rows[] = {{"serve", "", 0, 0, NULL}, {"backup", "FOLDER", 1, 1, backup},
		{"verify", "FOLDER", 1, 1, verify}, {"restore", "BACKUP FOLDER", 2, 2, restore},
		{"export", "TABLE FILE", 2, 2, export_table},
		{"repair", "FOLDER [BACKUP]", 1, 2, repair}};
	size_t i = 0;

	while (i < ARRAY_SIZE(rows) && strcmp(rows[i].word, argv[0]) != 0)
		i++;
	if (i == ARRAY_SIZE(rows))
		return errinfo_set(reterr, -EINVAL,
			"echo %.60s: unknown; use backup, verify, repair, restore or export, or nothing to start the service",
			argv[0]);
	if (argc - 1 < rows[i].least || argc - 1 > rows[i].most)
		return errinfo_set(
			reterr, -EINVAL, "usage: echo %s %s", rows[i].word, rows[i].rest);
	return rows[i].run ? rows[i].run(t, argv + 1, reterr) : 1;
}

static int echo_command(const struct command *cmd _unused_, void *settings, int argc, char **argv)
{
	const struct echo_typed *t = settings;
	struct errinfo e = {0};
	int r = argc ? do_words(t, argc, argv, &e) : 1;

	if (r > 0)
		return services_run(&(struct services_settings){
			.echo = &t->echo, .access = &t->echo.access, .at = t->at});
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_echo = {
	.name = "echo",
	.synopsis = "echo [backup|verify|repair|restore|export …] [flags]",
	.summary = "Store what agents and exporters send, and answer queries over MCP and HTTP",
	.details =
		"Takes OTLP (metrics, logs, traces) and keeps it in DuckDB or ClickHouse; answers over MCP and\nHTTP. What is acknowledged is on disk. Stops on Ctrl-C or SIGTERM; SIGHUP reloads tokens and\ncertificates.\n"
		"  ingero-cluster echo                                    this machine only\n"
		"  ingero-cluster echo --otlp-addr :4317 --http-addr :4318 --mcp-addr :8081 \\\n"
		"      --tls-cert cert.pem --tls-key key.pem --bearer-acl-file acl.yaml --db-path /var/lib/echo\n"
		"  ingero-cluster echo backup FOLDER                      also while the service runs\n"
		"  ingero-cluster echo verify FOLDER                      a backup, or a store that is not in use\n"
		"  ingero-cluster echo repair FOLDER [BACKUP]             restore what backup and journal still have\n"
		"  ingero-cluster echo restore BACKUP FOLDER              into a new folder\n"
		"  ingero-cluster echo export events events.parquet --cluster-id prod-a",
	.options = echo_options,
	.settings_size = sizeof(struct echo_typed),
	.defaults = &defaults,
	.max_args = 3,
	.run = echo_command,
};
