/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_diff.c - `ingero diff`: what is different between two recordings, or between two times of one. Only
 * reads. */
#include <sys/stat.h>

#include "answer/encode/report.h"
#include "cli/commands.h"
#include "cli/explain.h"
#include "cli/progress.h"
#include "cli/recording_option.h"
#include "command/program.h"

#define OUTPUT_MAX (64u << 20)
#define SHOWN      10

struct diff_settings {
	struct time_request range, range2;
	struct option_pids pids, pids2;
	int64_t rank, limit;
	const char *op, *node;
	bool json;
};

#define OPTION(field) offsetof(struct diff_settings, field)
static const struct option_row diff_options[] = {
	OPTION_ROW(STRING, "from", OPTION(range.from), "TIME",
		"A: only from this time on: 2026-03-24T13:48:44Z, '2026-03-24 13:48:44', 13:48, epoch"),
	OPTION_ROW(STRING, "to", OPTION(range.to), "TIME", "A: only up to this time"),
	OPTION_ROW(STRING, "from2", OPTION(range2.from), "TIME", "B: only from this time on"),
	OPTION_ROW(STRING, "to2", OPTION(range2.to), "TIME", "B: only up to this time"),
	OPTION_SHORT(PIDS, "pid", 'p', OPTION(pids), "N", "only these process ids"),
	OPTION_ROW(PIDS, "pid2", OPTION(pids2), "N", "B: only these instead of --pid"),
	RANK_OPTION(struct diff_settings, rank),
	OPTION_ROW(STRING, "op", OPTION(op), "NAME",
		"only this operation: cudaMemcpyAsync, or driver:cuMemAlloc"),
	OPTION_ROW(STRING, "node", OPTION(node), "NAME", "only this node of merged recordings"),
	OPTION_WITHIN(INT, "limit", OPTION(limit), "N", 1, DIFF_LIMIT_MAX,
		"number of operations (default: 10; 50 with --json)"),
	OPTION_ROW(FLAG, "json", OPTION(json), NULL, "print one JSON object"),
	OPTION_END,
};

struct asking {
	const struct diff_settings *settings;
	const char *path2;
	struct answer_request request[2];
	const struct question *first;
	struct diff_answer answer;
};

static bool has_time(const struct time_request *t)
{
	return !time_request_is_empty(t);
}

static int check_files(const struct diff_settings *s, int argc, char **argv, struct errinfo *reterr)
{
	struct stat a, b;
	bool same;

	if (!argc)
		return errinfo_set(reterr, -EINVAL,
			"name two recordings (ingero diff A.db B.db), or one and two times of it "
			"(--from, --to, --from2, --to2)");
	if (argc == 1)
		return has_time(&s->range2)
			       ? 0
			       : errinfo_set(reterr, -EINVAL,
					 "name a second recording, or a second time of this one "
					 "with --from2, --to2 or both");
	same = stat(argv[0], &a) == 0 && stat(argv[1], &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
	if (same && !has_time(&s->range) && !has_time(&s->range2))
		return errinfo_set(reterr, -EINVAL,
			"A and B are the same file: name another one, or give two times of it "
			"(--from, --to, --from2, --to2)");
	return 0;
}

/* What is asked of one side. */
static int make_request(const struct diff_settings *s, bool second, struct answer_request *ret,
	struct errinfo *reterr)
{
	const struct option_pids *pids = second && s->pids2.count ? &s->pids2 : &s->pids;
	struct nodedb_filter f = {
		.scope = {.pids = pids->pid, .pid_count = pids->count, .node = s->node}};
	const struct wire_op_row *op = NULL;
	int r = op_option_find(s->op, &op, reterr);

	if (r == 0 && op) {
		f.scope.source = op->source;
		f.scope.op = op->op;
	}
	r = r ?: range_request(second ? &s->range2 : &s->range, &f, ret, reterr);
	if (r < 0)
		return r;
	ret->has_rank = s->rank >= 0;
	ret->rank = (int32_t)s->rank;
	return 0;
}

static int ask_both(const struct question *q, void *arg, struct errinfo *reterr)
{
	struct asking *a = arg;

	diff_answer_done(&a->answer); /* of a first try */
	return answer_diff(a->first, q, &a->answer, reterr);
}

/* The first stays open while the second is asked, so that one file is seen at one moment as far as it can be. */
static int ask_first(const struct question *q, void *arg, struct errinfo *reterr)
{
	struct asking *a = arg;

	a->first = q;
	return answer_ask(a->path2, &a->request[1], 0, ask_both, a, reterr);
}

static int print(const struct diff_settings *s, const struct diff_answer *a, struct errinfo *reterr)
{
	_cleanup_buf_ struct buf b = BUF_INIT(OUTPUT_MAX);
	struct json_writer w = json_writer_to_buf(&b);
	size_t limit = s->limit ? (size_t)s->limit : s->json ? DIFF_LIMIT : SHOWN;

	if (s->json) {
		w.indent = true;
		json_begin_object(&w);
		diff_put(&w, a, limit);
		json_bool_member(&w, "truncated", a->truncated || a->op_count > limit);
		json_end_object(&w);
		json_finish(&w);
	} else {
		diff_text(&b, a, limit, explain_style_detect(STDOUT_FILENO).colour);
	}
	if (b.err || w.err)
		return errinfo_set(reterr, -ENOBUFS, "the output is too large: give --limit");
	fwrite(buf_str(&b), 1, b.len, stdout);
	return 0;
}

static int diff_run(const struct command *cmd, void *settings, int argc, char **argv)
{
	const struct diff_settings *s = settings;
	_cleanup_(progress_done) struct progress progress = PROGRESS_INIT;
	_cleanup_free_ struct asking *a = calloc(1, sizeof(*a));
	struct errinfo e = {0};
	int r = a ? check_files(s, argc, argv, &e) : -ENOMEM;

	r = r ?: range_pids(argv[0], &s->pids, &e);
	r = r ?: range_pids(argv[argc - 1], s->pids2.count ? &s->pids2 : &s->pids, &e);
	r = r ?: make_request(s, false, &a->request[0], &e);
	r = r ?: make_request(s, true, &a->request[1], &e);
	if (r == 0) {
		a->path2 = argv[argc - 1];
		progress_begin(&progress, STDERR_FILENO, "comparing");
		r = answer_ask(argv[0], &a->request[0], 0, ask_first, a, &e);
		progress_done(&progress);
	}
	r = r ?: print(s, &a->answer, &e);
	if (a)
		diff_answer_done(&a->answer);
	return r < 0 ? dispatch_fail(&e, r) : EXIT_OK;
}

const struct command cmd_diff = {
	.name = "diff",
	.synopsis = "diff A [B] [flags]",
	.summary = "Compare two recordings, or two times of one: steps, operations, stacks, GPUs",
	.details = "Differences within noise are marked as noise.\n"
		   "  ingero diff before.db after.db\n"
		   "  ingero diff run.db --from 13:40 --to 13:45 --from2 13:50 --to2 13:55",
	.options = diff_options,
	.settings_size = sizeof(struct diff_settings),
	.defaults = &(const struct diff_settings){.rank = -1},
	.max_args = 2,
	.run = diff_run,
};
