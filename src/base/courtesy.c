/* SPDX-License-Identifier: Apache-2.0 */
#include "base/courtesy.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

/* Some times the usual one (3 ms): who asks for a longer slice is due later. Not the longest possible: beside
 * many busy threads its turn comes after so much time of each. */
#define SLICE_NS (10 * NS_PER_MS)

void courtesy_begin(void)
{
	struct sched_attr attr = {.size = sizeof(attr)};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) < 0)
		return;
	attr.sched_policy = SCHED_BATCH; /* as nice as we were told to be */
	attr.sched_runtime = SLICE_NS;
	(void)syscall(SYS_sched_setattr, 0, &attr, 0);
}
