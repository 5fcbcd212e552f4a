/* SPDX-License-Identifier: Apache-2.0 */
/* retention_clock.h - the time that retention goes by, which a clock that jumps forward does not move.
 *
 * It follows the machine's clock as long as that goes with the time that this process has seen pass. A clock
 * that is further ahead is believed after RETENTION_CLOCK_WAIT_NS of running without a break; until then
 * retention goes on from where it was, as fast as time passes. One that goes back is followed at once: that
 * removes nothing. No I/O. */
#pragma once

#include "base/clock.h"

#define RETENTION_CLOCK_SLACK_NS (3600 * NS_PER_S) /* corrections, and a service that was stopped */
#define RETENTION_CLOCK_WAIT_NS  (24 * 3600 * NS_PER_S)

struct retention_clock {
	int64_t now_ns;     /* what is believed; 0: nothing yet, the next clock is */
	uint64_t at_ns;     /* monotonic; when it was last asked; 0: never */
	uint64_t waited_ns; /* since the clock is ahead */
	int64_t ahead_ns;   /* by so much; 0: it is not */
};

/* retention_clock_read - what retention may take for now. */
int64_t retention_clock_read(struct retention_clock *c, int64_t wall_ns, uint64_t mono_ns);
