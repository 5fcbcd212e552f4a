/* SPDX-License-Identifier: Apache-2.0 */
/* pusher_doing.h - what the main thread of a process is doing now, by /proc: a few small reads. */
#pragma once

#include "push/push.h"

struct pusher_doing {
	enum push_doing doing;
	bool is_elsewhere; /* it is blocked, and neither by its GPU nor by a collective: asleep, a file, a peer */
	char where[96]; /* "in futex (futex_wait_queue)"; "": not known */
};

/* pusher_doing_read - @root is "" but in tests. A pid that another process has meanwhile (@start_ticks
 * differs, unless 0) is gone. */
void pusher_doing_read(
	const char *root, uint32_t pid, uint64_t start_ticks, struct pusher_doing *ret);
