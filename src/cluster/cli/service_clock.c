/* SPDX-License-Identifier: Apache-2.0 */
/* service_clock.c - a wall clock that does not go back. */
#include "cluster/cli/service.h"

int64_t service_clock_at(struct service_clock *c, int64_t wall_ns, uint64_t mono_ns)
{
	int64_t elapsed = (int64_t)(mono_ns - c->mono_ns);

	if (!c->now_ns || wall_ns >= c->now_ns + elapsed)
		c->now_ns = wall_ns;
	else if (wall_ns >= c->now_ns + elapsed / 2)
		c->now_ns = wall_ns; /* slower than it should be, but forward */
	else
		c->now_ns += elapsed / 2;
	c->mono_ns = mono_ns;
	return c->now_ns;
}
