/* SPDX-License-Identifier: Apache-2.0 */
/* window.h - what a thread did in given stretches of time: kept from the CPU, blocked on the disk,
 * inside CUDA calls. The means of attribute.h for time that is not a slow call. */
#pragma once

#include "diagnose/compose/correlate.h"

struct window {
	int64_t start_ns, end_ns;
	uint32_t tid;
};

struct window_use {
	uint64_t total_ns;
	uint64_t cpu_ns;     /* ready to run, but others had the CPU */
	uint64_t disk_ns;    /* blocked on requests of its own */
	uint64_t network_ns; /* asleep in a send or receive */
	uint64_t asleep_ns;  /* waiting for something no probe covers */
	uint64_t call_ns;    /* inside CUDA calls */
	uint8_t call_source;
	uint16_t call_op;           /* the one with most of call_ns */
	struct incident_cause lead; /* largest of cpu_ns and disk_ns: who; ns 0: nobody */
};

/* window_examine - sums @windows (ascending, disjoint) of threads of @pid into *ret. 0 or -ENOMEM. */
int window_examine(const struct recording *rec, uint32_t pid, const struct window *windows,
	size_t n, struct window_use *ret);

/* window_describe - "its thread was blocked on the disk for 81 % of that", by the largest use; what is
 * not recorded is called so. */
void window_describe(const struct window_use *u, uint32_t pid, char *out, size_t size);
