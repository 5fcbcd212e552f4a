/* SPDX-License-Identifier: Apache-2.0 */
/* recording.h - what the stages look at: the rows of a recording, loaded. */
#pragma once

#include <stddef.h>

#include "model/accounting.h"
#include "model/collective.h"
#include "model/event.h"
#include "model/identity.h"
#include "model/kernel.h"
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

/* What is made of events: two of each of the 4 M that a reader holds, and as many to spare. */
#define RECORDING_ROWS_MAX (16u << 20)
