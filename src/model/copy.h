/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - which way a copy goes. */
#pragma once

#include <stdbool.h>

#include "base/macros.h"
#include "wire/record.h"

/* X(NAME, name). The first five are cudaMemcpyKind, so that a direction is a kind of wire/record.h
 * less one. */
#define COPY_DIRECTIONS(X)                                                                         \
	X(H2H, "h2h")                                                                              \
	X(H2D, "h2d")                                                                              \
	X(D2H, "d2h")                                                                              \
	X(D2D, "d2d")                                                                              \
	X(DEFAULT, "default")                                                                      \
	X(UNKNOWN, "unknown")

enum copy_direction {
#define X(NAME, name) COPY_##NAME,
	COPY_DIRECTIONS(X)
#undef X
		COPY_DIRECTION_COUNT
};
STATIC_ASSERT(COPY_DIRECTION_COUNT == WIRE_KIND_OTHER);

extern const char *const copy_direction_names[COPY_DIRECTION_COUNT];

/* copy_direction - of (@source, @op); -1 if it is no copy, COPY_UNKNOWN where the op does not tell
 * (then the kind of its aggregate may). */
int copy_direction(unsigned source, unsigned op);

/* copy_has_kind - whether the direction is an argument of the call: its aggregates have a kind. */
bool copy_has_kind(unsigned source, unsigned op);
