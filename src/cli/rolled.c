/* SPDX-License-Identifier: Apache-2.0 */
/* rolled.c - see rolled.h. The merged file has a name while it is read, because SQL runs in a process
 * that opens it; so a signal takes it away before it ends the program. */
#include "cli/rolled.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/merge/nodedb_merge.h"
#include "store/write/retention.h"
#include "base/path_user.h"
#include "base/text.h"
#include "cli/progress.h"

#define FILE_NAME "all.db"

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
static struct rolled *volatile now; /* what a signal takes away */
static volatile sig_atomic_t is_merging, stopped;

/* Only what a handler may call. The merge's own file has another name: it is told to stop. */
static void take_away(const struct rolled *r)
{
	unlink(r->path);
	rmdir(r->folder);
}

static void on_signal(int number)
{
	stopped = number;
	if (is_merging)
		return;
	if (now)
		take_away(now);
	signal(number, SIG_DFL);
	raise(number);
}

static bool report(void *arg _unused_, size_t source _unused_, uint64_t events _unused_)
{
	return !stopped;
}

static int make_folder(struct rolled *r, struct errinfo *reterr)
{
	_cleanup_path_user_ struct path_user before = PATH_USER_INIT;
	const char *tmp = getenv("TMPDIR");
	int err;

	snprintf(r->folder, sizeof(r->folder), "%s/ingero-rolled-XXXXXX",
		tmp && tmp[0] == '/' ? tmp : "/var/tmp");
	err = path_user_enter(r->folder, &before, reterr); /* the merge makes its file so, too */
	if (err < 0) {
		r->folder[0] = 0;
		return err;
	}
	if (!mkdtemp(r->folder)) {
		err = errno;
		errinfo_set_exit(reterr, EXIT_NO_CREATE, -err,
			"cannot make a folder for the merged recordings (%s): %s", r->folder,
			strerror(err));
		r->folder[0] = 0;
		return -err;
	}
	if (snprintf(r->path, sizeof(r->path), "%s/" FILE_NAME, r->folder) >= (int)sizeof(r->path))
		return -ENAMETOOLONG;
	return 0;
}

static int merge(const struct rollover_list *files, const char *path, const struct rolled *r,
	struct errinfo *reterr)
{
	_cleanup_(merge_result_done) struct merge_result result = {0};
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_free_ const char **sources = calloc(files->count + 1, sizeof(*sources));
	struct merge_options options = {.sources = sources,
		.source_count = files->count + 1,
		.output = r->path,
		.report = report};

	if (!sources)
		return -ENOMEM;
	for (size_t i = 0; i < files->count; i++)
		sources[i] = files->paths[i];
	sources[files->count] = path;
	progress_begin(&progress, STDERR_FILENO, "merging rolled-over recordings");
	return nodedb_merge(&options, &result, reterr);
}

int rolled_open(const char *path, struct rolled *ret, struct errinfo *reterr)
{
	_cleanup_(rollover_list_done) struct rollover_list files = {0};
	char n[TEXT_PLURAL_MAX];
	int r = rollover_list(path, &files, reterr);

	if (r < 0)
		return r;
	fprintf(stderr, "ingero: %s and the present one\n",
		text_format_plural(n, files.count, "rolled-over recordings"));
	if (snprintf(ret->path, sizeof(ret->path), "%s", path) >= (int)sizeof(ret->path))
		return -ENAMETOOLONG;
	if (!files.count)
		return 0;
	r = make_folder(ret, reterr);
	if (r < 0)
		return r;
	is_merging = true;
	now = ret;
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		sigaction(ending[i],
			&(struct sigaction){.sa_handler = on_signal, .sa_flags = SA_RESTART}, NULL);
	r = merge(&files, path, ret, reterr);
	is_merging = false;
	if (stopped)
		on_signal(stopped);
	return r;
}

void rolled_done(struct rolled *r)
{
	if (!r->folder[0])
		return;
	now = NULL;
	take_away(r);
	r->folder[0] = 0;
}
