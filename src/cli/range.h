/* SPDX-License-Identifier: Apache-2.0 */
/* range.h - which time of a recording a command looks at: --from, --to, --since, --all.
 *
 * Without any of them it is the whole recording, unless a trace is writing it: then the last five
 * minutes, and it says so. All times are those of the recording, so that a file saved yesterday
 * answers as it did then. */
#pragma once

#include "agent/answer/answer.h"
#include "command/option.h"

/* The rows of a command's option table for the field @asked of its struct @settings. */
#define RANGE_OPTIONS(settings, asked)                                                               \
	{"from", 0, OPTION_STRING, offsetof(settings, asked.from), "TIME",                           \
		"only from this time on: 2026-03-24T13:48:44Z, '2026-03-24 13:48:44', 13:48, epoch", \
		0, 0, false},                                                                        \
		{"to", 0, OPTION_STRING, offsetof(settings, asked.to), "TIME",                       \
			"only up to this time; times without a zone are local", 0, 0, false},        \
		{"since", 0, OPTION_DURATION, offsetof(settings, asked.since_ns), "TIME",            \
			"only this long before the end of the recording (default: all)", 0, 0,       \
			false},                                                                      \
	{                                                                                            \
		"all", 0, OPTION_FLAG, offsetof(settings, asked.all), NULL,                          \
			"the whole recording, even while it is being written", 0, 0, false           \
	}

/* range_request - what @asked and @f mean, as the answers (agent/answer) are asked. */
int range_request(const struct time_request *asked, const struct nodedb_filter *f,
	struct answer_request *ret, struct errinfo *reterr);

/* range_resolve - sets the times of @f as the answers do. *ret_note is range_note(). -EINVAL with a
 * sentence for a bad or contradictory time; what answer_ask() returned. */
int range_resolve(const char *path, const struct time_request *asked, struct nodedb_filter *f,
	pid_t *ret_note, struct errinfo *reterr);

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

/* range_note - 0, or the process that writes the file, because of which the last five minutes are shown. */
pid_t range_note(const struct question *q);

/* range_print - what *ret_note means, on stderr; nothing for 0. */
void range_print(pid_t note);
