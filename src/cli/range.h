/* SPDX-License-Identifier: Apache-2.0 */
/* range.h - which time of a recording a command looks at: --from, --to, --since, --all.
 *
 * Without any of them it is the newest run of `ingero trace` in it, unless a trace is writing it: then the
 * last five minutes. If that is not all, it says so. All times are those of the recording, so that a file saved yesterday
 * answers as it did then. */
#pragma once

#include "answer/answer.h"
#include "command/option.h"

/* The rows of a command's option table for the field @asked of its struct @settings. */
#define RANGE_OPTIONS(settings, asked)                                                               \
	{"from", 0, OPTION_STRING, offsetof(settings, asked.from), "TIME",                           \
		"only from this time on: 2026-03-24T13:48:44Z, '2026-03-24 13:48:44', 13:48, epoch", \
		0, 0, false},                                                                        \
		{"to", 0, OPTION_STRING, offsetof(settings, asked.to), "TIME",                       \
			"only up to this time; times without a zone are local", 0, 0, false},        \
		{"since", 0, OPTION_DURATION, offsetof(settings, asked.since_ns), "TIME",            \
			"only this long before the end of the recording (default: the newest run)",  \
			0, 0, false},                                                                \
	{                                                                                            \
		"all", 0, OPTION_FLAG, offsetof(settings, asked.all), NULL,                          \
			"the whole recording: all runs in it, even while it is being written", 0,    \
			0, false                                                                     \
	}

struct range_note { /* why less than the whole recording is shown although no time was asked for */
	pid_t writer;   /* it is being written: the last five minutes; 0: it is not */
	uint64_t runs;  /* so many are in it, and this is the newest; 0: all are shown */
	int64_t run_ns; /* when that began */
};

/* range_request - what @asked and @f mean, as the answers (answer) are asked. */
int range_request(const struct time_request *asked, const struct nodedb_filter *f,
	struct answer_request *ret, struct errinfo *reterr);

/* range_resolve - sets the times of @f as the answers do. *ret_note is for range_print(). -EINVAL with a
 * sentence for a bad or contradictory time; what answer_ask() returned. */
int range_resolve(const char *path, const struct time_request *asked, struct nodedb_filter *f,
	struct range_note *ret_note, struct errinfo *reterr);

/* RANK_OPTION - the row of --rank; the field's default is -1. */
#define RANK_OPTION(settings, rank)                                                                \
	{                                                                                          \
		"rank", 0, OPTION_INT, offsetof(settings, rank), "N",                              \
			"only the process with this rank of a distributed job", 0, INT32_MAX,      \
			false                                                                      \
	}

/* range_rank - the processes of @rank (below 0: not asked for) into @pids. -ESRCH: there are none. */
int range_rank(const char *path, int64_t rank, const char *node, struct option_pids *pids,
	struct errinfo *reterr);

/* range_pids - -ESRCH with the processes that there are if the recording has none of @pids. */
int range_pids(const char *path, const struct option_pids *pids, struct errinfo *reterr);

struct range_note range_note_of(const struct question *q);

/* range_print - what @note means, on stderr; nothing if all is shown. */
void range_print(const struct range_note *note);
