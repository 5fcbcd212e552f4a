/* SPDX-License-Identifier: Apache-2.0 */
/* check_gpu.c - the driver and its GPUs, CUDA's libraries, and the processes that use them. */
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "record/attach/coverage_assess.h"
#include "record/attach/feature.h"
#include "record/check/check_private.h"
#include "record/discover/discover.h"
#include "base/file.h"
#include "base/text.h"

#define LISTED_MAX 8 /* libraries or processes named one by one */

/* The first word of @s that looks like a version (535.104.05). */
static void copy_version(const char *s, char *out, size_t size)
{
	while (*s) {
		size_t len = strcspn(s, " \t\n");

		if (*s >= '0' && *s <= '9' && memchr(s, '.', len)) {
			snprintf(out, size, "%.*s", (int)len, s);
			return;
		}
		s += len + (s[len] != 0);
	}
}

void check_driver(const struct check_context *c, struct check_row *row)
{
	char line[256];

	if (file_read_line(c->root, "/proc/driver/nvidia/version", line, sizeof(line)) == 0 ||
		file_read_line(c->root, "/sys/module/nvidia/version", line, sizeof(line)) == 0)
		copy_version(line, row->value, sizeof(row->value));
	if (row->value[0]) {
		c->report->has_driver = true;
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "not loaded");
	ADVICE(row, "no NVIDIA driver: only the stand-in GPU can be traced (ingero demo)");
}

static void add_gpu(struct check_row *row, const char *path)
{
	_cleanup_buf_ struct buf b = BUF_INIT(8192);
	const char *model;

	if (file_read(path, 8192, &b) < 0)
		return;
	model = strstr(buf_str(&b), "Model:");
	if (!model)
		return;
	model += strlen("Model:");
	model += strspn(model, " \t");
	VALUE(row, "%s%.*s", row->value[0] ? ", " : "", (int)strcspn(model, "\n"), model);
}

void check_gpu(const struct check_context *c, struct check_row *row)
{
	char pattern[PATH_MAX];
	glob_t g = {0};

	if (file_join(pattern, sizeof(pattern), c->root,
		    "/proc/driver/nvidia/gpus/*/information") == 0 &&
		glob(pattern, 0, NULL, &g) == 0)
		for (size_t i = 0; i < g.gl_pathc; i++)
			add_gpu(row, g.gl_pathv[i]);
	globfree(&g);
	if (row->value[0]) {
		c->report->has_gpu = true;
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "none");
	if (c->report->has_driver)
		ADVICE(row,
			"the driver shows no GPU: look for Xid or \"fallen off the bus\" in dmesg, "
			"and whether this container was given one");
}

void check_libraries(const struct check_context *c, struct check_row *row)
{
	_cleanup_free_ struct target_library *files = NULL;
	int n = discover_library_files(c->root, NULL, &files);

	for (int i = 0; i < MIN(n, LISTED_MAX); i++)
		DETAIL(row, "%s%s", i ? "\n" : "", files[i].path);
	if (n > LISTED_MAX)
		DETAIL(row, "\nand %d more", n - LISTED_MAX);
	if (n > 0) {
		VALUE(row, "%d %s on disk", n, n == 1 ? "file" : "files");
		return;
	}
	row->state = CHECK_OPTIONAL;
	VALUE(row, "none in the usual places");
	ADVICE(row, "nothing to do if they lie elsewhere: a library is probed as soon as a process "
		    "maps it; `trace --library` names one in advance");
}

/* What a trace would see of @p; nothing is probed for that. */
static void describe_process(const struct check_context *c, struct coverage *coverage,
	const struct target_process *p, struct check_row *row)
{
	struct process_layers layers = {0};
	char sentence[LAYER_SENTENCE_MAX];

	DETAIL(row, "%spid %" PRIu32 " %s (uid %" PRIu32 ")", row->detail[0] ? "\n" : "", p->pid,
		p->comm, p->uid);
	if (!coverage)
		return;
	coverage_assess(coverage, c->root, p);
	coverage_assess_process(coverage, c->root, p, &layers);
	for (int l = 0; l < LAYER_COUNT; l++) {
		_cleanup_buf_ struct buf b = BUF_INIT(8192);

		if (layers.rows[l].state == LAYER_ABSENT)
			continue;
		/* A newline in a file's name must not begin a line of ours. */
		text_escape_terminal(&b,
			layer_sentence((enum layer)l, &layers.rows[l], sentence, sizeof(sentence)));
		DETAIL(row, "\n  %s", buf_str(&b));
	}
}

static void list_processes(
	const struct check_context *c, const struct discover_result *found, struct check_row *row)
{
	_cleanup_(coverage_freep) struct coverage *coverage = NULL;

	(void)coverage_new(NULL, &coverage);
	for (size_t i = 0; i < MIN(found->count, (size_t)LISTED_MAX); i++)
		describe_process(c, coverage, &found->processes[i], row);
	if (found->count > LISTED_MAX)
		DETAIL(row, "\nand %zu more", found->count - LISTED_MAX);
	VALUE(row, "%zu", found->count);
}

void check_processes(const struct check_context *c, struct check_row *row)
{
	_cleanup_(discover_scanner_freep) struct discover_scanner *s = NULL;
	const struct discover_result *found;
	char why[OBSTACLE_MAX];
	bool is_kept_out;
	int r;

	if (c->probes->is_old) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "not checked: a server cannot inspect processes");
		ADVICE(row, "run `ingero check` to list them");
		return;
	}
	r = discover_scanner_new(c->root, &s);
	if (r == 0)
		r = discover_scan(s, &found);
	if (r < 0) {
		row->state = CHECK_OPTIONAL;
		VALUE(row, "unknown: %s", strerror(-r));
		ADVICE(row, "mount /proc here, with the processes to trace in it");
		return;
	}
	list_processes(c, found, row);
	is_kept_out = found->unreadable && obstacle_to_look(&c->view, why);
	if (is_kept_out)
		VALUE(row, "; cannot inspect %zu of %zu processes", found->unreadable, found->seen);
	if (!feature_host_pids(c->root)) {
		row->state = CHECK_OPTIONAL;
		ADVICE(row, FEATURE_HOST_PIDS_ADVICE);
		return;
	}
	if (found->count > 0)
		return;
	row->state = CHECK_OPTIONAL;
	ADVICE(row, "%s", is_kept_out ? why : "nothing to do: processes are found when they start");
}
