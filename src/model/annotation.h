/* SPDX-License-Identifier: Apache-2.0 */
/* annotation.h - what a workload says about itself: labels at a moment or over a span.
 *
 * Comes in by the annotation socket, is stored in `annotations`, and is laid beside incidents. */
#pragma once

#include <stdint.h>

#include "base/clock.h"

#define ANNOTATION_LINE_MAX   (16 << 10) /* bytes of one line on the socket, newline included */
#define ANNOTATION_LABELS_MAX 32
#define ANNOTATION_KEY_MAX    64  /* bytes of [A-Za-z0-9_.-] */
#define ANNOTATION_VALUE_MAX  256 /* bytes of UTF-8 without control characters */

struct annotation {
	wall_time time;
	uint32_t pid;                       /* 0: about the whole trace */
	uint64_t start_time;                /* of pid, clock ticks since boot; 0: not said */
	int64_t span_start_ns, span_end_ns; /* 0, 0: a moment */
	uint32_t peer_uid, peer_gid, peer_pid;
	char labels[ANNOTATION_LINE_MAX]; /* a JSON object of strings */
};

struct annotation_label { /* one label of a stored annotation */
	int64_t time_ns;
	int64_t span_start_ns, span_end_ns;
	uint64_t start_time;
	uint32_t pid;
	char key[ANNOTATION_KEY_MAX + 1];
	char value[ANNOTATION_VALUE_MAX + 1];
};
