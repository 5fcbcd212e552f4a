/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_explain.c - `ingero explain`: reads a recording, read-only, and says why the GPU waited.
 *
 * Times are those of the recording: without a range the whole file is explained, and --since counts
 * back from its newest event, so that a file saved yesterday answers as it did then. */
#include <errno.h>
#include <unistd.h>

#include "agent/store/nodedb.h"
#include "cli/commands.h"
#include "cli/db_option.h"
#include "cli/dispatch.h"
#include "cli/explain.h"

#define WHERE_STACKS 4096 /* the heaviest are enough to say where; 0.1 ms each to read */

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

static int explain_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	const struct explain_settings *s = settings;
	struct nodedb_filter f = {.pids = s->pids.pid,
		.pid_count = s->pids.count,
		.last = (size_t)s->last,
		.labels = true, /* numbers among them are judged */
		.stacks = NODEDB_STACKS_USED,
		.stacks_max = s->stacks ? 0 : WHERE_STACKS};
	_cleanup_free_ char *default_path = NULL;
	struct nodedb_content content = {0};
	struct explain_style style = explain_style_detect(STDOUT_FILENO);
	const char *path = NULL;
	struct errinfo e = {0};
	int r;

	style.json = s->json;
	style.labels = s->annotations;
	style.stacks = s->stacks;
	if (s->all && s->since_ns)
		return dispatch_fail(&e, errinfo_set(&e, -EINVAL, "give either --all or --since"));
	r = db_option_path(s->db, &default_path, &path, &e);
	if (r == 0)
		r = db_option_since(path, s->since_ns, &f, &e);
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
