/* SPDX-License-Identifier: Apache-2.0 */
/* nodedb_merge.c - see nodedb_merge.h: the order of a merge, and the file it makes.
 *
 * Invariants:
 *  1. The output is complete or not there: it is made under another name, synced and renamed.
 *  2. Collectives of all sources go in first, because what they say about clocks moves the times of
 *     everything after them. */
#include "store/merge/nodedb_merge.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "store/lock.h"
#include "store/merge/nodedb_merge_private.h"
#include "base/file.h"
#include "base/path_user.h"

struct identity_of_file {
	dev_t dev;
	ino_t ino;
};

struct run {
	struct merge merge;
	struct identity_of_file *files; /* of each source */
	char temporary[PATH_MAX];
	bool made;
};

static void run_done(struct run *r)
{
	if (r->merge.out)
		sql_close(r->merge.out);
	if (r->made) {
		_cleanup_path_user_ struct path_user before = PATH_USER_INIT;

		if (path_user_enter(r->temporary, &before, NULL) == 0)
			unlink(r->temporary);
	}
	for (size_t i = 0; i < r->merge.node_count; i++)
		free(r->merge.nodes[i]);
	free(r->merge.syncs);
	merge_result_done(&r->merge.result);
	free(r->files);
	free(r);
}
DEFINE_CLEANUP(struct run *, run_done)

void merge_result_done(struct merge_result *r)
{
	free(r->clocks);
	*r = (struct merge_result){0};
}

static int check_options(const struct merge_options *w, struct errinfo *reterr)
{
	if (w->source_count < 1 || w->source_count > MERGE_SOURCES_MAX)
		return errinfo_set(reterr, -EINVAL, "give 1 to %d files to merge, not %zu",
			MERGE_SOURCES_MAX, w->source_count);
	if (!w->force_node)
		return 0;
	if (w->source_count > 1)
		return errinfo_set(reterr, -EINVAL,
			"--force-node names the node of one file: merge that one alone, then the "
			"result with the others");
	if (!w->force_node[0] || strlen(w->force_node) >= MERGE_NODE_LEN ||
		strchr(w->force_node, ':'))
		return errinfo_set(reterr, -EINVAL,
			"--force-node: a node name must have 1 to %d bytes and no colon",
			MERGE_NODE_LEN - 1);
	return 0;
}

static int check_sources(struct run *run, struct errinfo *reterr)
{
	const struct merge_options *w = run->merge.options;
	struct stat st;

	for (size_t i = 0; i < w->source_count; i++) {
		if (stat(w->sources[i], &st) == 0) /* else opening it will say why */
			run->files[i] = (struct identity_of_file){st.st_dev, st.st_ino};
	}
	if (file_is_beside_recording(w->output))
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s belongs to a recording: write to another with --output", w->output);
	if (stat(w->output, &st) < 0)
		return 0;
	for (size_t i = 0; i < w->source_count; i++)
		if (run->files[i].dev == st.st_dev && run->files[i].ino == st.st_ino)
			return errinfo_set(reterr, -EINVAL,
				"%s is one of the files to merge: write to another with --output",
				w->output);
	if (!S_ISREG(st.st_mode))
		return errinfo_set_exit(
			reterr, EXIT_NO_CREATE, -EINVAL, "%s is not a file", w->output);
	if (!w->replace)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, -EEXIST,
			"%s already exists: give another name, or --force to overwrite it",
			w->output);
	if (store_lock_holder(w->output))
		return errinfo_set(reterr, -EBUSY, "%s is being recorded by process %ld", w->output,
			(long)store_lock_holder(w->output));
	return 0;
}

/* The output is made, opened and named with the rights of whoever may change its path; the sources
 * are read with those of the caller. */
static int make_temporary(struct run *run, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int fd, r,
		n = snprintf(run->temporary, sizeof(run->temporary), "%s.XXXXXX",
			run->merge.options->output);

	if (n < 0 || (size_t)n >= sizeof(run->temporary))
		return errinfo_set(reterr, -ENAMETOOLONG, "--output: the path is too long");
	r = path_user_enter(run->temporary, &before, reterr);
	if (r < 0)
		return r;
	fd = mkostemp(run->temporary, O_CLOEXEC);
	r = fd < 0 ? -errno : 0;
	run->made = fd >= 0;
	r = r ?: owner_give(fd);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return errinfo_set_exit(reterr, EXIT_NO_CREATE, r, "cannot create %s: %s",
			run->merge.options->output, strerror(-r));
	return 0;
}

static int open_temporary(struct run *run, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	int r = path_user_enter(run->temporary, &before, reterr);

	return r < 0 ? r : sql_open_fresh(run->temporary, &run->merge.out, reterr);
}

static void add_tally(struct merge_tally *t, const struct merge_tally *more)
{
	t->copied += more->copied;
	t->duplicates += more->duplicates;
}

static void add_report(struct merge_report *t, const struct merge_report *r)
{
	add_tally(&t->events, &r->events);
	add_tally(&t->chains, &r->chains);
	add_tally(&t->stacks, &r->stacks);
	add_tally(&t->others, &r->others);
	t->skipped += r->skipped;
	t->renumbered += r->renumbered;
	t->differing_stacks += r->differing_stacks;
	t->unplaced += r->unplaced;
}

typedef int step(struct merge *m, struct errinfo *reterr);

/* Opens a source, takes the steps and closes it. */
static int visit(struct merge *m, size_t index, step *const *steps, struct errinfo *reterr)
{
	_cleanup_(sql_closep) sql_db *sql = NULL;
	const char *path = m->options->sources[index];
	struct sql_stamp stamp = {0};
	int r = merge_source_open(m, index, &sql, &stamp, reterr);

	for (; r >= 0 && *steps; steps++)
		r = (*steps)(m, reterr);
	merge_source_close(m);
	if (r >= 0 && sql_stamp_changed(path, &stamp))
		r = errinfo_set(
			reterr, -EBUSY, "%s was changed while it was read: try again", path);
	return MIN(r, 0);
}

/* The very file, under whatever name, given before @index. */
static bool was_given(const struct run *run, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (run->files[i].dev == run->files[index].dev &&
			run->files[i].ino == run->files[index].ino)
			return true;
	return false;
}

static int note_file(struct merge *m, size_t index, struct errinfo *reterr)
{
	_cleanup_(sql_finalizep) sql_stmt *put = NULL;
	const struct merge_report *p = &m->source.report;
	int r = sql_prepare(m->out,
		"INSERT INTO merged_files (path, schema, rows, duplicates, skipped, renumbered)"
		" VALUES (?1,?2,?3,?4,?5,?6)",
		&put, reterr);

	if (r < 0)
		return r;
	return SQL_PUT(put, reterr, SQL_S(m->options->sources[index]), SQL_S(p->schema),
		SQL_I(p->events.copied + p->chains.copied + p->stacks.copied + p->others.copied),
		SQL_I(p->events.duplicates + p->chains.duplicates + p->stacks.duplicates +
			p->others.duplicates),
		SQL_I(p->skipped), SQL_I(p->renumbered));
}

static int copy_sources(struct run *run, struct errinfo *reterr)
{
	static step *const first[] = {merge_collectives, merge_syncs, NULL};
	static step *const rest[] = {merge_sessions, merge_events, merge_stacks, merge_chains,
		merge_incidents, merge_aggregates, merge_other_tables, NULL};
	struct merge *m = &run->merge;
	const struct merge_options *w = m->options;
	_cleanup_free_ struct merge_report *early = calloc(w->source_count, sizeof(*early));
	int r = early ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < w->source_count; i++) {
		if (was_given(run, i))
			continue;
		r = visit(m, i, first, reterr);
		early[i] = m->source.report;
	}
	if (r >= 0)
		r = merge_clocks(m, reterr);
	for (size_t i = 0; r >= 0 && i < w->source_count; i++) {
		struct merge_report report = {.is_again = was_given(run, i)};

		if (!report.is_again) {
			r = visit(m, i, rest, reterr);
			add_report(&m->source.report, &early[i]);
			report = m->source.report;
			add_report(&m->result.total, &report);
		}
		if (r >= 0 && !report.is_again)
			r = note_file(m, i, reterr);
		if (r >= 0 && w->done)
			w->done(w->arg, i, &report);
	}
	return r;
}

static int fill(struct run *run, struct errinfo *reterr)
{
	struct merge *m = &run->merge;
	int r = open_temporary(run, reterr);

	if (r >= 0)
		r = sql_exec(m->out, "BEGIN EXCLUSIVE", reterr);
	if (r >= 0)
		r = schema_create_merged(m->out, reterr);
	if (r >= 0)
		r = copy_sources(run, reterr);
	if (r >= 0)
		r = schema_finish_merged(m->out, reterr);
	if (r >= 0)
		r = sql_exec(m->out, "COMMIT", reterr);
	if (r >= 0 && sql_close(TAKE(m->out)) < 0)
		r = errinfo_set(reterr, -EIO, "cannot close %s", m->options->output);
	for (size_t i = 0; i < m->node_count; i++)
		m->result.nodes += m->nodes[i]->len > 0;
	return r;
}

static int sync_path(const char *path, int flags)
{
	_cleanup_fd_ int fd = open(path, flags | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int give_name(struct run *run, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	const struct merge_options *w = run->merge.options;
	char folder[PATH_MAX], log[PATH_MAX];
	char *slash;
	int r = path_user_enter(w->output, &before, reterr);

	if (r < 0)
		return r;
	r = sync_path(run->temporary, O_RDONLY);
	/* The log of a file that is replaced must not be taken for the new one's. */
	for (int i = 0; r == 0 && w->replace && i < 2; i++) {
		snprintf(log, sizeof(log), "%s%s", w->output, i ? "-shm" : "-wal");
		unlink(log);
	}
	if (r == 0 && renameat2(AT_FDCWD, run->temporary, AT_FDCWD, w->output,
			      w->replace ? 0 : RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		return errinfo_set_exit(
			reterr, EXIT_NO_CREATE, r, "cannot create %s: %s", w->output, strerror(-r));
	run->made = false;
	snprintf(folder, sizeof(folder), "%s", w->output);
	slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = 0;
	(void)sync_path(slash ? folder : ".", O_RDONLY | O_DIRECTORY);
	return 0;
}

int nodedb_merge(
	const struct merge_options *options, struct merge_result *ret, struct errinfo *reterr)
{
	_cleanup_(run_donep) struct run *run = calloc(1, sizeof(*run));
	int r;

	if (!run)
		return -ENOMEM;
	run->merge.options = options;
	r = check_options(options, reterr);
	if (r < 0)
		return r;
	run->files = calloc(options->source_count, sizeof(*run->files));
	if (!run->files)
		return -ENOMEM;
	r = check_sources(run, reterr);
	r = r ?: make_temporary(run, reterr);
	r = r ?: fill(run, reterr);
	if (r >= 0)
		r = give_name(run, reterr);
	if (r < 0)
		return r;
	*ret = run->merge.result;
	run->merge.result = (struct merge_result){0};
	return 0;
}
