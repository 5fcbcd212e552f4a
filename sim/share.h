/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - a GPU that several processes use: their kernels take turns.
 *
 * Processes with the same SIM_GPU_SHARE and device share one: a kernel lasts as many times longer
 * as processes have work under way when it is enqueued, as with time slices. Without SIM_GPU_SHARE
 * each process has a GPU of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* share_device - the device whose kernels count from now on. */
void share_device(int device);

/* share_stretch_ns - what @dur_ns becomes when the others are as busy as they are now. */
uint64_t share_stretch_ns(uint64_t dur_ns);

/* share_runs - a kernel of this process runs from @start_ns to @end_ns (tally_now_ns()). */
void share_runs(uint64_t start_ns, uint64_t end_ns);

#define SHARE_PROCESSES 32

/* share_use_of - how long each process has had a kernel running on @device, summed up. False: nothing is shared. */
struct share_use {
	uint64_t now_ns, busy_ns;
	int processes; /* that are there */
	uint32_t pids[SHARE_PROCESSES];
};
bool share_use_of(int device, struct share_use *ret);
