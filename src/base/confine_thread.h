/* SPDX-License-Identifier: Apache-2.0 */
/* confine_thread.h - what a thread of a running program gives up once it has all that it needed
 * privileges for: capabilities, files to write, system calls.
 *
 * Each of them is the kernel's per thread, so every thread of the program enters a plan of its own,
 * as the first thing it does; what it begins inherits it. Threads share their memory: whoever has
 * taken over one can use what another was left with, so what counts is the sum of the plans.
 *
 * A part that the kernel does not have is left out and reported. */
#pragma once

#include "base/confine.h"
#include "base/spawn.h"

#define CONFINE_CAP(number) (1ULL << (number)) /* CAP_X of <linux/capability.h> */

struct confine_thread {
	uint64_t capabilities; /* kept, of those it has; none can come back */
	/* Files are opened as nobody, so that root's own cannot be written; CAP_DAC_READ_SEARCH
	 * must be among @capabilities, and nothing changes without it. */
	bool files_as_nobody;
	bool paths; /* has @files alone */
	struct confine_files files;
	struct confine_calls calls;
};

enum confine_part {
	CONFINE_CAPABILITIES,
	CONFINE_NO_NEW_PRIVILEGES,
	CONFINE_PATHS,
	CONFINE_CALLS,
	CONFINE_PARTS
};

struct confine_report {
	int parts[CONFINE_PARTS]; /* 0: in force or not wanted, else the negative errno */
};

/* confine_thread_enter - from here on the calling thread can do what @plan says and no more.
 * Everything is tried, whatever fails. */
void confine_thread_enter(const struct confine_thread *plan, struct confine_report *ret);

/* confine_thread_permitted - the capabilities that the calling thread has. */
uint64_t confine_thread_permitted(void);

/* confine_thread_keep - of @plan only what it says of capabilities and of the user of files. */
int confine_thread_keep(const struct confine_thread *plan);

/* confine_thread_try - the same in a process of its own that then ends, to learn what this machine
 * allows. Returns 0, or what fork(2) or pipe(2) gave. */
int confine_thread_try(const struct confine_thread *plan, struct confine_report *ret);

/* confine_report_warn - log every part that is not in force; of a program's threads the first that
 * misses it. */
void confine_report_warn(const struct confine_report *r);

/* confine_part_name - "capabilities", "no_new_privs", "landlock", "seccomp". */
const char *confine_part_name(enum confine_part part);

/* confine_part_reason - why @part is not in force, for people: @err is of a report. */
const char *confine_part_reason(enum confine_part part, int err);

/* What a program that answers strangers over the network gives up before the first of them:
 * `dashboard`, `mcp`, the cluster's services. */

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
