/* SPDX-License-Identifier: Apache-2.0 */
/* failures.h - the calls of a recording that failed, and which of them are one mistake. */
#pragma once

#include "diagnose/findings/detector.h"
#include "diagnose/findings/device_error.h"

struct failure { /* one row */
	const struct event *event;
	uint32_t family;
	uint32_t forked_from; /* an ancestor that had used CUDA before the fork; 0: none */
};

struct failure_list {
	struct failure *items;
	size_t count;
};

struct error_group { /* failures that are told together, in order of process and time */
	const struct failure *items;
	size_t count;
	const struct error_row *row;
	const struct event *first;
	int64_t last_ns;
	uint64_t calls; /* rows have weights */
	uint32_t processes;
};

/* failures_find - the failed calls of @s without the consequences of others, those of one mistake
 * next to each other. *ret is released with failures_done(), also after a failure. 0 or -ENOMEM. */
int failures_find(const struct detector_input *s, struct failure_list *ret);
void failures_done(struct failure_list *l);

/* failures_group - the failures from @items on that are one mistake: its first one and its sums.
 * The next group begins at items + count. */
struct error_group failures_group(const struct failure *items, const struct failure *end);

static inline bool failure_is_nccl(const struct event *e)
{
	return e->source == SOURCE_NCCL;
}
