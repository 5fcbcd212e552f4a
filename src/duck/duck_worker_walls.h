/* SPDX-License-Identifier: Apache-2.0 */
/* duck_worker_walls.h - what the kernel keeps around the worker; private to duck/. */
#pragma once

#include "duck/duck_worker_attach.h"

struct duck_walls {
	int landlock; /* version of the kernel's interface; 0: it has none */
	bool seccomp;
};

/* duck_worker_confine - from now on this process reads @f and nothing else, for good: no privileges, no
 * processes, no network, no file written, DUCK_WORKER_ADDRESS of memory, @left_ns and a little of CPU time.
 * It dies with its parent. What the kernel does not have is told in *ret; what it refuses is an error. */
int duck_worker_confine(const struct duck_files *f, uint64_t left_ns, struct duck_walls *ret);
