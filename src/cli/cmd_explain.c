/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - `ingero explain`: reads a recording, read-only, and says why the GPU waited.
 *
 * Times are those of the recording: without a range the whole file is explained, and --since counts
 * back from its newest event, so that a file saved yesterday answers as it did then. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/correlate/correlate.h"
#include "agent/store/nodedb.h"
#include "agent/store/owner.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/dispatch.h"
#include "cli/explain.h"

struct explain_settings {
	const char *db;
	struct option_pids pids;
	uint64_t since_ns;
	int64_t last;
	bool json, chains, all, annotations, stacks;
};

#define OPTION(field) offsetof(struct explain_settings, field)
static const struct option_row explain_options[] = {
	{"db", 0, OPTION_STRING, OPTION(db), "PATH",
		"recording to read (default: $INGERO_DB, else ~/.ingero/ingero.db)", 0, 0, false},
	{"pid", 'p', OPTION_PIDS, OPTION(pids), "N", "only these processes", 0, 0, false},
	{"since", 0, OPTION_DURATION, OPTION(since_ns), "TIME",
		"only this long before the newest event (default: all)", 0, 0, false},
	{"last", 0, OPTION_INT, OPTION(last), "N", "only the newest N events", 0, INT32_MAX, false},
	{"all", 0, OPTION_FLAG, OPTION(all), NULL, "the whole recording (the default)", 0, 0,
		false},
	{"json", 0, OPTION_FLAG, OPTION(json), NULL, "print a JSON array", 0, 0, false},
	{"chains", 0, OPTION_FLAG, OPTION(chains), NULL,
		"print the verdicts stored in the file instead", 0, 0, false},
	{"annotations", 0, OPTION_FLAG, OPTION(annotations), NULL,
		"say which labels (`ingero annotate`) held during each incident", 0, 0, false},
	{"stacks", 0, OPTION_FLAG, OPTION(stacks), NULL,
		"print the call stacks of the slow calls, or those with most time", 0, 0, false},
	{NULL, 0, OPTION_FLAG, 0, NULL, NULL, 0, 0, false},
};

/* --since needs the newest event's time first. */
static int resolve_since(
	const char *path, uint64_t since_ns, struct nodedb_filter *f, struct errinfo *reterr)
{
	struct nodedb_filter newest = {.last = 1};
	struct nodedb_content c = {0};
	int r;

	if (!since_ns)
		return 0;
	r = nodedb_read(path, &newest, &c, reterr);
	if (r < 0)
		return r;
	f->from_ns = c.event_count ? c.last_ns - (int64_t)since_ns : 0;
	nodedb_content_done(&c);
	return 0;
}

static int explain_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	const struct explain_settings *s = settings;
	struct nodedb_filter f = {.pids = s->pids.pid,
		.pid_count = s->pids.count,
		.last = (size_t)s->last,
		.labels = s->annotations,
		.stacks = NODEDB_STACKS_USED};
	_cleanup_free_ char *default_path = NULL;
	struct nodedb_content content = {0};
	struct explain_style style = explain_style_detect(STDOUT_FILENO);
	const char *path = s->db;
	struct errinfo e = {0};
	int r = 0;

	style.json = s->json;
	style.labels = s->annotations;
	style.stacks = s->stacks;
	if (s->all && s->since_ns)
		return dispatch_fail(&e, errinfo_set(&e, -EINVAL, "give either --all or --since"));
	if (!path) {
		r = store_default_path(&default_path, &e);
		path = default_path;
	}
	if (r == 0 && !s->db && access(path, F_OK) < 0 && errno == ENOENT)
		r = errinfo_set(&e, -ENOENT,
			"nothing has been recorded yet (%s does not exist): `sudo ingero trace` "
			"records, --db names another file, `ingero demo` shows an example",
			path);
	if (r == 0)
		r = resolve_since(path, s->since_ns, &f, &e);
	if (r == 0)
		r = nodedb_read(path, &f, &content, &e);
	if (r == 0) {
		r = s->chains ? explain_chains(&content, style, &e)
			      : explain_content(&content, style, &e);
		nodedb_content_done(&content);
	}
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_explain = {
	.name = "explain",
	.synopsis = "explain [flags]",
	.summary = "Say why the GPU waited: incidents with cause, culprit, proof and fix",
	.details = "Reads a recording made by `ingero trace`, or one of the published agent, and "
		   "never "
		   "changes it.\nNeeds no root. Every incident says what share of the lost time it "
		   "explains.",
	.options = explain_options,
	.settings_size = sizeof(struct explain_settings),
	.run = explain_run,
};
