/* SPDX-License-Identifier: Apache-2.0 */
/* share.h - a GPU that several processes use: their kernels take turns.
 *
 * Processes with the same SIM_GPU_SHARE and device share one: a kernel lasts as many times longer
 * as processes have work under way when it is enqueued, as with time slices. Without SIM_GPU_SHARE
 * each process has a GPU of its own. */
#pragma once

#include <stdint.h>

/* share_device - the device whose kernels count from now on. */
void share_device(int device);

/* share_stretch_ns - what @dur_ns becomes when the others are as busy as they are now. */
uint64_t share_stretch_ns(uint64_t dur_ns);
