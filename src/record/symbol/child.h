/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - the process that reads foreign ELF, DWARF and JIT maps.
 *
 * It is this program, executed again under the name SYMBOL_CHILD_NAME with the socket to the agent
 * as file descriptor SYMBOL_CHILD_FD; main() hands over to symbol_child_main() when it finds that
 * name. It runs as nobody, without capabilities or the way to any file (landlock), limited in
 * memory and file size: files come as open descriptors over the socket. */
#pragma once

#include <stdbool.h>

#include "base/spawn.h"

#define SYMBOL_CHILD_NAME "ingero-symbol"
#define SYMBOL_CHILD_FD   SPAWN_SOCKET

bool symbol_child_is_meant(int argc, char **argv);
int symbol_child_main(int argc, char **argv);
