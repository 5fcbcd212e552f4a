/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_migrate.c - `ingero migrate`: a recording of the published agent in the present schema, as a copy.
 *
 * No command needs it, since all of them read older files as they are; it is for SQL that names the
 * present columns, and for tools of others. The file itself is evidence and stays as it is. */
#include <limits.h>

#include "store/merge/nodedb_merge.h"
#include "store/read/nodedb_snapshot.h"
#include "store/schema/schema.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/recording_option.h"
#include "cli/progress.h"
#include "command/program.h"

struct migrate_settings {
	const char *db, *db_path, *output, *force_node;
	bool dry_run, force;
};

#define OPTION(field) offsetof(struct migrate_settings, field)
static const struct option_row migrate_options[] = {
	DB_OPTION(struct migrate_settings, db),
	OPTION_ROW(STRING, "db-path", OPTION(db_path), "PATH", "as --db"),
	OPTION_SHORT(STRING, "output", 'o', OPTION(output), "PATH",
		"path of the copy (default: NAME.migrated.db beside NAME.db)"),
	OPTION_SHORT(FLAG, "force", 'f', OPTION(force), NULL, "overwrite the copy if it exists"),
	OPTION_ROW(STRING, "force-node", OPTION(force_node), "NAME",
		"node that the file was recorded on (older files do not contain it)"),
	OPTION_ROW(FLAG, "dry-run", OPTION(dry_run), NULL, "only show what would be done"),
	OPTION_END,
};

struct found {
	char schema[16];
	bool is_ours;
};

static int look(struct nodedb_snapshot *l, void *arg, struct errinfo *reterr _unused_)
{
	struct found *f = arg;

	snprintf(f->schema, sizeof(f->schema), "%s", nodedb_snapshot_schema(l));
	f->is_ours = nodedb_snapshot_is_ours(l);
	return 0;
}

/* "a/NAME.migrated.db" for "a/NAME.db". */
static int copy_path(
	const char *given, const char *path, char out[PATH_MAX], struct errinfo *reterr)
{
	size_t len = strlen(path), stem = len > 3 && !strcmp(path + len - 3, ".db") ? len - 3 : len;
	int n = given ? snprintf(out, PATH_MAX, "%s", given)
		      : snprintf(out, PATH_MAX, "%.*s.migrated.db", (int)stem, path);

	return n >= PATH_MAX
		       ? errinfo_set(reterr, -ENAMETOOLONG, "the path of the copy is too long")
		       : 0;
}

static int copy(const struct migrate_settings *s, const char *path, const char *to,
	struct merge_result *ret, struct errinfo *reterr)
{
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	struct merge_options options = {.sources = &path,
		.source_count = 1,
		.output = to,
		.force_node = s->force_node,
		.replace = s->force};

	progress_begin(&progress, STDERR_FILENO, "copying");
	return nodedb_merge(&options, ret, reterr);
}

static void print_path(const char *before, const char *path, const char *after)
{
	printf("%s%s%s", before, TEXT_SHOWN(path), after);
}

static int migrate(const struct migrate_settings *s, struct errinfo *reterr)
{
	_cleanup_(merge_result_done) struct merge_result result = {0};
	_cleanup_free_ char *default_path = NULL;
	const char *path = NULL;
	struct found found = {0};
	char to[PATH_MAX];
	int r;

	if (s->db && s->db_path)
		return errinfo_set(reterr, -EINVAL, "give either --db or --db-path, not both");
	r = db_option_path(s->db ? s->db : s->db_path, &default_path, &path, reterr);
	r = r ?: nodedb_snapshot_read(path, look, &found, reterr);
	r = r ?: copy_path(s->output, path, to, reterr);
	if (r < 0)
		return r;
	if (found.is_ours) {
		print_path("", path, " has the present schema (");
		printf("%s): nothing to do.\n", found.schema);
		return 0;
	}
	if (s->dry_run) {
		print_path("", path, " has schema ");
		printf("%s. Would copy it ", found.schema);
		print_path(
			"to ", to, " with schema " NODEDB_SCHEMA_TEXT "; nothing was written.\n");
		return 0;
	}
	r = copy(s, path, to, &result, reterr);
	if (r < 0)
		return r;
	print_path("", path, " (schema ");
	printf("%s) is copied ", found.schema);
	print_path("to ", to, " (schema " NODEDB_SCHEMA_TEXT "): ");
	printf("%s, %s, %s.", TEXT_PLURAL(result.total.events.copied, "events"),
		TEXT_PLURAL(result.total.chains.copied, "chains"),
		TEXT_PLURAL(result.total.stacks.copied, "stacks"));
	if (result.total.skipped)
		printf(" %s left out.", TEXT_PLURAL(result.total.skipped, "damaged rows"));
	printf(" The original is unchanged.\n");
	return 0;
}

static int migrate_run(const struct command *c, void *settings, int argc, char **argv)
{
	struct errinfo e = {0};
	int r = migrate(settings, &e);

	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_migrate = {
	.name = "migrate",
	.synopsis = "migrate [flags]",
	.summary = "Copy an older recording into the present schema",
	.details =
		"  ingero migrate --db old.db                writes old.migrated.db\n"
		"  ingero migrate --db old.db --dry-run      only shows what it would do\n"
		"Never changes the original. All commands also read older recordings as they are;\n"
		"the copy is for SQL that names the present columns.",
	.options = migrate_options,
	.settings_size = sizeof(struct migrate_settings),
	.run = migrate_run,
};
