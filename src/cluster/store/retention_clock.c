/* SPDX-License-Identifier: Apache-2.0 */
/* retention_clock.c - see retention_clock.h. */
#include "cluster/store/retention_clock.h"

int64_t retention_clock_read(struct retention_clock *c, int64_t wall_ns, uint64_t mono_ns)
{
	uint64_t passed = c->at_ns ? mono_ns - c->at_ns : 0;
	int64_t expected = c->now_ns + (int64_t)passed;
	bool is_ahead = c->now_ns && wall_ns - expected > (int64_t)RETENTION_CLOCK_SLACK_NS;

	c->at_ns = mono_ns;
	c->waited_ns = is_ahead && c->ahead_ns ? c->waited_ns + passed : 0;
	if (!is_ahead || c->waited_ns >= RETENTION_CLOCK_WAIT_NS) {
		c->now_ns = wall_ns;
		c->ahead_ns = 0;
	} else {
		c->now_ns = expected;
		c->ahead_ns = wall_ns - expected;
	}
	return c->now_ns;
}
