/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* filter.h - which processes the probes follow. Freestanding, for both halves. */
#pragma once

#define TARGETS_MAX 16384 /* traced processes */
#define TARGET_USERS                                                                               \
	16384 /* a power of two: of these last bits of its number a user's share is counted under */

enum probe_filter {
	FILTER_PIDS, /* those the agent enters, and their children */
	FILTER_USER, /* every process of one user that makes a CUDA call, and its children */
	FILTER_ALL,  /* every process that makes a CUDA call, and its children */
};
