/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_keeper.h - the index of the recording's time line (answer/timeline/timeline_index.h), kept while a
 * server runs: made on a thread of its own at the first question, extended while the recording
 * grows, made anew when the file is another one. Safe from any thread. */
#pragma once

#include "answer/timeline/timeline_index.h"

struct timeline_keeper;

/* timeline_keeper_new - @path stays the caller's and outlives it. */
int timeline_keeper_new(const char *path, struct timeline_keeper **ret);
void timeline_keeper_free(struct timeline_keeper *k); /* waits for what is being made */
DEFINE_CLEANUP(struct timeline_keeper *, timeline_keeper_free)

/* timeline_keeper_begin - the index, which stays as it is until timeline_keeper_end(). NULL: it is
 * being made, and *ret_progress of 1000 are done; of a small recording it is waited for.
 * timeline_keeper_end() is called in either case. */
const struct timeline_index *timeline_keeper_begin(
	struct timeline_keeper *k, unsigned *ret_progress);
void timeline_keeper_end(struct timeline_keeper *k);
