/* SPDX-License-Identifier: Apache-2.0 */
/* lane.h - a part of the device that works on a limited number of things at a time: the kernels'
 * compute slots, each direction of PCIe. Pure arithmetic on times. */
#pragma once

#include <stdint.h>

#define LANE_MAX_SLOTS 128

struct lane {
	unsigned slots; /* 1..LANE_MAX_SLOTS */
	uint64_t free_ns[LANE_MAX_SLOTS];
};

void lane_init(struct lane *l, unsigned slots);

/* lane_take - occupy a slot for @dur_ns, not before @ready_ns; returns when it starts. The slot
 * that was left last before @ready_ns is taken, so that idle ones stay free for earlier work. */
uint64_t lane_take(struct lane *l, uint64_t ready_ns, uint64_t dur_ns);

/* lane_transfer_ns - time for @bytes at @bytes_per_s, rounded up. */
uint64_t lane_transfer_ns(uint64_t bytes, uint64_t bytes_per_s);
