/* SPDX-License-Identifier: Apache-2.0 */
/* confine_server.h - what a program that answers strangers over the network gives up before the first of them:
 * `dashboard`, `mcp`, the cluster's services. */
#pragma once

#include "base/confine_thread.h"
#include "base/spawn.h"

struct confine_server {
	uint64_t capabilities; /* kept, of those it has */
	struct confine_files files;
	const struct spawn_program *programs; /* that it begins; none: no process at all */
	size_t program_count;
};

/* confine_server - from here on the process can listen, connect, and use @s->files; to be called while there is
 * one thread, since threads inherit it. What the kernel lacks is a warning; without the process
 * that begins others nothing is given up, which is a warning, too. */
void confine_server(const struct confine_server *s);
