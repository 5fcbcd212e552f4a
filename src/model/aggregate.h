/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate.h - all calls of one process and op in one time bucket, stored or not. */
#pragma once

#include <stdint.h>

#include "base/clock.h"
#include "stat/sketch.h"
#include "wire/record.h"

struct aggregate {
	wall_time bucket; /* start of the bucket */
	uint32_t pid;
	uint8_t source;
	uint8_t flags; /* WIRE_NESTED or 0 */
	uint16_t op;
	uint64_t stored;      /* of sketch.count, kept as rows of their own */
	uint64_t sum_arg0;    /* bytes, where arg0 is a byte count */
	struct sketch sketch; /* count, sum, min, max and the distribution of durations */
};
