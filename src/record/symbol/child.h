/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - the process that reads foreign ELF, DWARF and JIT maps.
 *
 * It is this program, executed again under the name SYMBOL_CHILD_NAME with the socket to the agent
 * as file descriptor SYMBOL_CHILD_FD; main() hands over to symbol_child_main() when it finds that
 * name. It runs as nobody, without capabilities or the way to any file (landlock), limited in
 * memory and file size: files come as open descriptors over the socket. */
#pragma once

#include "base/spawn.h"

#define SYMBOL_CHILD_NAME "ingero-symbol"
#define SYMBOL_CHILD_FD   SPAWN_SOCKET

bool symbol_child_is_meant(int argc, char **argv);
int symbol_child_main(int argc, char **argv);

/* What the symbol process may still do after it has shut the doors behind itself: read
 * the files it is handed, compute, allocate, and answer on its socket. */

struct sandbox {
	int landlock; /* version of the kernel's interface; 0: it has none, and was done without */
	bool seccomp; /* false under sanitizers, which need more calls */
};

/* sandbox_enter - for a process made by spawn_self() whose parent holds the other end of @socket:
 * nobody instead of root, no capability, none to be gained, no path, no network, few system calls,
 * limits on memory and on what it writes. There is no way back. Negative errno: what was refused;
 * the process must then touch nothing foreign. */
int sandbox_enter(int socket, struct sandbox *ret);
