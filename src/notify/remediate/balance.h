/* SPDX-License-Identifier: Apache-2.0 */
/* balance.h - what memory of the GPU each process has allocated and not freed, from its own calls. Pure.
 *
 * Known are allocations whose pointer is in the call's record (cudaMalloc, cuMemAlloc, managed and pitched
 * ones), made since the trace began. What PyTorch keeps after a tensor is freed is still allocated. */
#pragma once

#include "base/idmap.h"
#include "model/event.h"

#define BALANCE_PROCESSES 1024
#define BALANCE_ALLOCS    8192 /* of a process, by default; beyond them the oldest are forgotten */

struct balance_process {
	uint32_t pid;
	int32_t device; /* of the last allocation */
	char comm[COMM_LEN];
	uint64_t bytes, last_bytes; /* allocated now; by the last call */
	struct idmap allocs;        /* pointer -> struct balance_alloc */
	bool changed;               /* since balance_next() saw it */
};

struct balance {
	struct idmap processes; /* pid -> struct balance_process */
	size_t allocs_max;
};

void balance_init(struct balance *b, size_t allocs_max);
void balance_done(struct balance *b);

/* balance_take - a call, or the end of a process; others are none of its business. */
void balance_take(struct balance *b, const struct event *e);

/* balance_next - the next process whose memory has changed since it was last given; NULL: no more. */
struct balance_process *balance_next(struct balance *b, size_t *cursor);

/* balance_ages - how long the oldest allocations of @pid have lived at @now, in ms, the oldest first, at most
 * @max of them. Returns how many. */
size_t balance_ages(
	const struct balance *b, uint32_t pid, wall_time now, uint64_t *ret, size_t max);
