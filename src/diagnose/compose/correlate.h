/* SPDX-License-Identifier: Apache-2.0 */
/* correlate.h - explains slow calls from a recorded stream. Pure: no I/O, no clock, no globals.
 *
 * The same input always gives the same incidents in the same order, so every answer can be
 * replayed. Nothing is blamed without overlap: see correlate.c for how. */
#pragma once

#include <stddef.h>

#include "model/accounting.h"
#include "model/aggregate.h"
#include "model/annotation.h"
#include "model/collective.h"
#include "model/container_sample.h"
#include "model/event.h"
#include "model/gpu_sample.h"
#include "model/identity.h"
#include "model/incident.h"
#include "model/kernel.h"
#include "model/ledger.h"
#include "model/sample.h"
#include "model/stack.h"
#include "model/step_account.h"

/* Rows are a selection: what was ordinary may be there as a sample or, of a large file and while
 * tracing, not at all (wire/op_kind.h says what always is). How often and how long is in the
 * aggregates, never to be counted from rows. */
struct recording {
	const struct event *events; /* in order of start */
	size_t event_count;
	const struct aggregate *aggregates; /* 5 s buckets in order of time; may be none */
	size_t aggregate_count;
	const struct host_sample *samples;
	size_t sample_count;
	const struct gpu_sample *gpus; /* in order of time; may be none */
	size_t gpu_count;
	const struct collective_row *collectives; /* in order of time; may be none */
	size_t collective_count;
	const struct process_home *homes; /* by pid; may be none */
	size_t home_count;
	const struct annotation_label *labels; /* in order of time; may be none */
	size_t label_count;
	const struct ledger_row *ledger; /* in order of start; may be none */
	size_t ledger_count;
	const struct kernel_use *kernels; /* by pid, function and since; may be none */
	size_t kernel_count;
	const struct container_sample *containers; /* in order of time; may be none */
	size_t container_count;
	const struct stack_list *stacks; /* of the rows above; NULL: none */
	struct account_task *accounts;   /* of the same rows; NULL: made when they are needed */
	const struct accounting *books;  /* NULL: not known (published files) */
	const char *node;
};

#define CORRELATE_INCIDENTS_MAX 256 /* the worst are kept */
/* What is made of events: two of each of the 4 M that a reader holds, and as many to spare. */
#define CORRELATE_ROWS_MAX (16u << 20)

/* correlate_run - finds and explains the incidents of @rec, the most severe and then those
 * with most excess first.
 * Events out of order are accepted; rows whose times make no sense are left out and counted as
 * lost. On success *ret is the caller's (free()), *ret_count its length. Returns 0 or -ENOMEM. */
int correlate_run(const struct recording *rec, struct incident **ret, size_t *ret_count);
