/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - a program that is started, but held back before its first instruction, so that probes can be put in
 * place before it makes its first call.
 *
 * It is held by ptrace(2) at the end of execve(2): that it can be executed is known by then, and its process is its
 * own in everything that /proc shows. Whoever holds it is the thread that began it. It dies with this process as long
 * as it is held; afterwards nothing ties the two but that it is a child. */
#pragma once

#include <sys/types.h>

#include "base/errinfo.h"
#include "cli/caller.h"

#define LAUNCH_NOT_FOUND      127 /* exit codes, as shells have them */
#define LAUNCH_NOT_EXECUTABLE 126
#define LAUNCH_SIGNAL         128 /* plus its number */

/* launch_begin - start argv[0], looked for in the PATH of @c's environment, as @c. It has our standard descriptors,
 * but for stdout, which is @stdout_fd. Signals are as at the start of this program, none is blocked.
 * Fails with LAUNCH_NOT_FOUND or LAUNCH_NOT_EXECUTABLE as the exit code if it cannot be executed. */
int launch_begin(char *const *argv, const struct caller *c, int stdout_fd, pid_t *ret_pid,
	struct errinfo *reterr);

/* launch_release - let it run. */
int launch_release(pid_t pid);

/* launch_abort - end it while it is held: it has not run at all. */
void launch_abort(pid_t pid);

/* launch_exit_code - what a shell would make of a status of waitpid(2). */
int launch_exit_code(int status);
