/* SPDX-License-Identifier: Apache-2.0 */
/* layer.h - what of a process is seen: for each layer of calls whether it is covered, and if not,
 * why. Judged by record/attach, stored as `coverage`, shown by check, the live table and JSON. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* X(NAME, name, calls): the name is stored; calls are how sentences speak of it. */
#define LAYERS(X)                                                                                  \
	X(RUNTIME, "runtime", "runtime calls")                                                     \
	X(DRIVER, "driver", "driver calls")                                                        \
	X(NCCL, "nccl", "NCCL calls")                                                              \
	X(MARKS, "marks", "PyTorch's steps")                                                       \
	X(COLLECTOR, "collector", "garbage collections")                                           \
	X(IDENTITY, "identity", "rank and job") /* not calls, but what is said of them */

enum layer {
#define X(NAME, ...) LAYER_##NAME,
	LAYERS(X)
#undef X
		LAYER_COUNT
};

enum layer_state {
	LAYER_ABSENT,    /* the process does not use it, as far as is known */
	LAYER_COVERED,   /* every call is seen from `since` on */
	LAYER_UNCOVERED, /* it is there, or may be, and is not seen */
	LAYER_FAILED,    /* it is there and could not be probed */
};

#define LAYER_DETAIL_MAX 512

struct layer_row {
	enum layer_state state;
	wall_time since;               /* covered: when the file was probed */
	char detail[LAYER_DETAIL_MAX]; /* by what it is covered, or why not; raw names in it */
};

struct process_layers {
	struct layer_row rows[LAYER_COUNT];
};

const char *layer_name(enum layer l);             /* "runtime" */
const char *layer_state_name(enum layer_state s); /* "covered" */

/* layer_is_gap - something happens there that is not seen. */
bool layer_is_gap(const struct layer_row *r);
bool layer_has_gap(const struct process_layers *p);

/* layer_same - nothing that would be reported has changed. */
bool layer_same(const struct process_layers *a, const struct process_layers *b);

/* layer_sentence - "runtime calls are not covered: …"; "" for an absent layer. Names in it are raw:
 * printing escapes. Returns @out. */
const char *layer_sentence(enum layer l, const struct layer_row *r, char *out, size_t size);
#define LAYER_SENTENCE_MAX (LAYER_DETAIL_MAX + 64)
