/* SPDX-License-Identifier: Apache-2.0 */
/* call_gap.h - calls that were not traced because the library was mapped before it was probed.
 *
 * How many calls there were nobody knows; how long it took is known. Found by the tracer, stored as
 * `call_gaps`, and part of the books: whoever says that nothing was lost says this too. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/event.h"

#define CALL_GAP_FILE_MAX 256

/* X(NAME, name, because): the name is stored; because follows the file's name in a sentence. */
#define CALL_GAP_REASONS(X)                                                                        \
	X(FIRST_SEEN, "first_seen", "found only then")                                             \
	X(ENDED, "ended", "the process exited before it could be probed")

enum call_gap_reason {
#define X(NAME, ...) CALL_GAP_##NAME,
	CALL_GAP_REASONS(X)
#undef X
		CALL_GAP_REASON_COUNT
};

struct call_gap {
	uint32_t pid;
	uint64_t start_ticks; /* 0: the process had ended before it could be asked */
	char comm[COMM_LEN];  /* "": likewise */
	wall_time from, to;
	enum call_gap_reason reason;
	char file[CALL_GAP_FILE_MAX]; /* the library's path, cut at its front */
};

struct call_gap_sum {
	uint64_t processes;
	struct call_gap longest; /* if there is any */
};

static inline uint64_t call_gap_ns(const struct call_gap *g)
{
	return g->to.ns > g->from.ns ? (uint64_t)(g->to.ns - g->from.ns) : 0;
}

const char *call_gap_reason_name(enum call_gap_reason r);

/* call_gap_reason_find - the reason of that name; CALL_GAP_FIRST_SEEN if there is none. */
enum call_gap_reason call_gap_reason_find(const char *name);

/* call_gap_set_file - the path, or its end if it is longer than CALL_GAP_FILE_MAX allows. */
void call_gap_set_file(struct call_gap *g, const char *path);

/* call_gap_sum_add - one more; @is_new_process: the first of its process. */
void call_gap_sum_add(struct call_gap_sum *s, const struct call_gap *g, bool is_new_process);

/* call_gap_sentence - "calls of PID 123 (train) before 12:00:01.003 were not traced (37.0ms;
 * libcudart.so.12 found only then)", of several processes the longest; "" if there is none. No
 * full stop. Names in it are raw: printing escapes. Returns @out. */
const char *call_gap_sentence(const struct call_gap_sum *s, char *out, size_t size);
#define CALL_GAP_SENTENCE_MAX 512
