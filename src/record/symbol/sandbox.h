/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.h - what the symbol process may still do after it has shut the doors behind itself: read
 * the files it is handed, compute, allocate, and answer on its socket. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sandbox {
	int landlock; /* version of the kernel's interface; 0: it has none, and was done without */
	bool seccomp; /* false under sanitizers, which need more calls */
};

/* sandbox_enter - for a process made by spawn_self() whose parent holds the other end of @socket:
 * nobody instead of root, no capability, none to be gained, no path, no network, few system calls,
 * limits on memory and on what it writes. There is no way back. Negative errno: what was refused;
 * the process must then touch nothing foreign. */
int sandbox_enter(int socket, struct sandbox *ret);
